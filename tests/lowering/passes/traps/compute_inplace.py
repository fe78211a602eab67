"""Arrays that may take the memory of another one, and arrays that must not."""

TRAPS = {
    "into a temporary": "s[i] = x[i] + 1\ne[i] = exp(s[i])\ny[i] = e[7 - i]",
    "into the caller's": "s[i] = x[i] + 1\ny[i] = s[i] * 2",
    "into a result": "s[i] = x[i] + 1\nr[i] = s[i] * 2\nreturn r",
    "into a result that is read again": """
        s[i] = x[i] + 1
        r[i] = s[i] * 2
        y[i] = r[7 - i]
        return r
    """,
    "from one to the next": """
        s[i] = x[i] + 1
        t[i] = s[i] * 2
        u[i] = t[i] - x[i]
        w[i] = sqrt(u[i] * u[i])
        y[i] = w[i] + w[7 - i]
    """,
    "from one to the next to the caller": "s[i] = x[i] + 1\nt[i] = s[i] * 2\ny[i] = t[i] - x[i]",
    "from one to the next, named before": """
        t: f64[8]
        s[i] = x[i] + 1
        t[i] = s[i] * 2
        u[i] = t[i] - x[i]
        y[i] = u[7 - i]
    """,
    "read twice at the cell": "s[i] = x[i]\ny[i] = s[i] * s[i]",
    "read at another cell, too": "s[i] = x[i]\ny[i] = s[i] - s[7 - i]",
    "read at another cell before": """
        s[i] = x[i]
        for k in range(8):
            z[k] = s[7 - k]
            y[k] = s[k]
    """,
    "read again afterwards": "s[i] = x[i]\ny[i] = s[i] * 2\nz[i] = s[i]",
    "read before": "s[i] = x[i]\nz[i] = s[7 - i]\ny[i] = s[i] * 2",
    "stored after the last read": """
        s[i] = x[i]
        for k in range(8):
            z[k] = s[k]
            y[k] = s[k] * 2
    """,
    "stored long after the last read": """
        s[i] = x[i]
        for k in range(8):
            c[0] += s[k]
            y[k] = x[k] * 2
    """,
    "stored before the last read": """
        s[i] = x[i]
        for k in range(8):
            y[k] = 1
            c[0] += s[k]
    """,
    "stored in a later nest": """
        s[i] = x[i]
        for k in range(8):
            c[0] += s[k]
        y[i] = x[i]
    """,
    "read where it was stored": """
        s[i] = x[i]
        for k in range(8):
            y[k] = s[k] * 2
            z[k] = y[k]
    """,
    "a temporary, read elsewhere where it was stored": """
        e: f64[8]
        s[i] = x[i]
        for k in range(8):
            e[k] = s[k] * 2
            z[k] = e[7 - k]
    """,
    "added to what was there": "s[i] = x[i]\ny[i] += s[i]",
    "read before it is stored": "s[i] = x[i]\nz[i] = y[i]\ny[i] = s[i]",
    "read in the nest before it is stored": """
        s[i] = x[i]
        for k in range(8):
            z[k] = y[k]
            y[k] = s[k]
    """,
    "stored before": "y[i] = 1\ns[i] = x[i] + y[7 - i]\ny[i] = s[i] * 2",
    "stored again afterwards": "s[i] = x[i]\ny[i] = s[i] * 2\ny[0] = 1",
    "stored twice in a round": """
        s[i] = x[i]
        for k in range(8):
            y[k] = s[k]
            y[k] = y[k] * 2
    """,
    "itself written where it is read last": """
        s[i] = x[i]
        for k in range(8):
            s[k] = s[k] + 1
            y[k] = s[k]
    """,
    "the first is written last": """
        s[i] = x[i]
        for k in range(8):
            y[k] = s[k]
            s[k] = 1
    """,
    "numbers of another kind": "t[i] = p[i] * 2\ny[i] = t[i]",
    "another shape": "s = x[1:6] * 2\ny[:5] = s",
    "only a part": "s[i] = x[i]\ny[1:] = s[1:] * 2",
    "only a part of a temporary": "e: f64[8]\ns[i] = x[i]\ne[1:] = s[1:] * 2\ny[i] = e[7 - i]",
    "a part was not written": "s: f64[8]\ns[1:] = x[1:]\ny[i] = s[i] * 2",
    "a part was not written, to a temporary": """
        s: f64[8]
        s[1:] = x[1:]
        e[i] = s[i] * 2
        y[i] = e[7 - i]
    """,
    "mirrored": "s[i] = x[i]\ny[i] = s[7 - i]",
    "backwards": "s[i] = x[i]\nfor k in range(8):\n    y[7 - k] = s[7 - k] * 2",
    "transposed": "t[i, j] = a[i, j] + 1\nb[i, j] = t[j, i]",
    "a matrix": "t[i, j] = a[i, j] + 1\nb[i, j] = t[i, j] * t[i, j]",
    "a matrix by rows": """
        t[i, j] = a[i, j] + 1
        for k in range(8):
            for m in range(8):
                c[0] += t[k, m]
            for m in range(8):
                b[k, m] = x[m]
    """,
    "again in every round": """
        s[i] = x[i]
        for k in range(3):
            y[i] = s[i] + k
    """,
    "again in every round, to a temporary": """
        e: f64[8]
        s[i] = x[i]
        for k in range(3):
            e[i] = s[i] + k
            b[k, i] = e[7 - i]
    """,
    "again in a while": """
        s[i] = x[i]
        h = 0
        while h < 3:
            y[i] = s[i] * 2 + h
            h += 1
    """,
    "in every round of its own": """
        for k in range(3):
            s[i] = x[i] * k
            e[i] = exp(s[i])
            b[k, i] = e[7 - i]
    """,
    "in every round of its own, to the caller": """
        for k in range(3):
            s[i] = x[i] * k
            y[i] = s[i] + 1
    """,
    "in a while of its own": """
        h = 0
        while h < 3:
            s[i] = x[i] * h
            e[i] = s[i] + 1
            y[i] += e[7 - i]
            h += 1
    """,
    "from one round to the next": """
        e: f64[8]
        for k in range(3):
            b[k, i] = e[7 - i]
            s[i] = x[i] * k
            e[i] = s[i] + 1
    """,
    "under a guard": "s[i] = x[i]\nif x[i] > 0:\n    y[i] = s[i]",
    "a temporary under a guard": """
        e: f64[8]
        s[i] = x[i]
        if x[i] > 0:
            e[i] = s[i]
        y[i] = e[7 - i]
    """,
    "used under a guard only": """
        e: f64[8]
        s[i] = x[i]
        for k in range(8):
            if x[k] > 0:
                e[k] = s[k]
                z[k] = e[k]
    """,
    "read by a guard": """
        s[i] = x[i]
        for k in range(8):
            if s[k] > 0:
                y[k] = 1
    """,
    "stored on the other side": """
        s[i] = x[i]
        for k in range(8):
            if x[k] > 0:
                c[0] += s[k]
            else:
                y[k] = 1
    """,
    "a check between": "s[i] = x[i]\nassert x[3] < 2\ny[i] = s[i]",
    "a check in the last nest": """
        s[i] = x[i]
        for k in range(8):
            y[k] = s[k]
            assert x[k] < 2
    """,
    "a check in the first nest": """
        s: f64[8]
        for k in range(8):
            s[k] = x[k]
            assert x[k] < 2
        y[i] = s[i] * 2
    """,
    "a check before": "assert x[3] < 2\ns[i] = x[i]\ny[i] = s[i]",
    "a check after": "s[i] = x[i]\ny[i] = s[i]\nassert x[3] < 2",
    "a print between": "s[i] = x[i]\nprint(y[2])\ny[i] = s[i]",
    "a check between temporaries": "s[i] = x[i]\nassert x[3] < 2\ne[i] = s[i]\ny[i] = e[7 - i]",
    "it trades places": """
        u[i] = x[i]
        w[i] = x[i] * 2
        for k in range(3):
            u, w = w, u
        y[i] = u[i] * 3
    """,
    "it traded places with one that goes on": """
        w[i] = x[i] * 2
        u[i] = w[i] + 1
        for k in range(3):
            u, w = w, u
        y[i] = u[i] + w[i]
    """,
    "looked up": "s[i] = x[i]\ny[p[i]] = s[p[i]]",
    "a column at one place": """
        t[i, j] = a[i, j]
        for k in range(8):
            b[k, 2] = t[k, 2]
    """,
    "a diagonal": """
        t[i, j] = a[i, j]
        for k in range(8):
            b[k, k] = t[k, k]
    """,
    "two that could": """
        s[i] = x[i]
        for k in range(8):
            y[k] = s[k]
            z[k] = 3
    """,
    "two temporaries at once": """
        s[i] = x[i]
        t[i] = z[i]
        for k in range(8):
            y[k] = s[k] + t[k]
            z[k] = s[k] - t[k]
    """,
    "storage of a size that changes": """
        for k in range(1, 8):
            s = x[:k] * 2
            e = s + 1
            z[:k] = e[::-1]
    """,
    "only numbers": "s = x[2]\ne = s * 2\ny[0] = e",
    "stored and not read": "s[i] = x[i]\nt[i] = z[i]\ny[i] = t[i] + 1",
    "asked to be kept": "s[i] = x[i]\nmemory(s, 'local')\ny[i] = s[i] * 2",
}
