"""Arrays that may be computed where they are used, and arrays that must not."""

TRAPS = {
    "one is written again": "u[i] = x[i] * 2\nu[0] = 5\ny[i] = u[i]",
    "what it reads changes": "u[i] = x[i] * 2\nx[i] = 0\ny[i] = u[i]",
    "what it reads changes at once": "u[i] = x[i] * 2\nx[1:] = u[:-1]",
    "what it reads changes at the cell": "u[i] = x[i] * 2\nx[i] = u[i] + 1",
    "what it reads changes later": "u[i] = x[i] * 2\ny[i] = u[i]\nx[i] = 0\nz[i] = y[i]",
    "it is read before and after": "u[i] = x[i]\ny[i] = u[i]\nx[i] = 1\nz[i] = u[i] + y[i]",
    "rows change that others read": """
        u[i] = a[i, 0] * 2
        for k in range(8):
            for m in range(8):
                a[k, m] = u[m]
    """,
    "a cell changes in every round": """
        t = x[0] * 2
        for k in range(8):
            x[0] = t + k
        y[i] = x[0]
    """,
    "a cell changes again and again": """
        t: f64[8]
        t[i] = x[i] * 2
        for k in range(8):
            for m in range(8):
                x[m] = t[m] + k
    """,
    "a while loop changes it": """
        t: f64[8]
        t[i] = x[i] * 2
        s = 0
        while s < 3:
            for m in range(8):
                x[m] = t[m] + s
            s += 1
    """,
    "some are not written": "u: f64[8]\nu[2:] = x[2:] * 3\ny[i] = u[i]",
    "all that are read are written": "u: f64[8]\nu[2:] = x[2:] * 3\ny[3:] = u[3:]",
    "one too few is written": "u: f64[8]\nu[2:] = x[2:] * 3\ny[1:7] = u[1:7]",
    "guarded and used without": "u: f64[8]\nif x[i] > 0:\n    u[i] = x[i]\ny[i] = u[i] + 1",
    "guarded and used in the guard": """
        u: f64[8]
        if x[i] > 0:
            u[i] = sqrt(x[i])
            y[i] = u[i] + 1
    """,
    "used in another guard": """
        u: f64[8]
        if x[i] > 0:
            u[i] = sqrt(x[i])
        if x[i] > 1:
            y[i] = u[i]
    """,
    "the guard changes before": """
        u: f64[8]
        for k in range(8):
            if x[k] > 0:
                u[k] = z[k] * 2
                x[k] = -1
            if x[k] > 0:
                y[k] = u[k]
    """,
    "the guard changes at once": """
        u: f64[8]
        if x[i] > 0:
            u[i] = z[i] * 2
        if x[i] > 0:
            x[i] = u[i] - 9
    """,
    "guarded by a position": """
        u: f64[8]
        if i > 2:
            u[i] = x[i] * 2
        if i > 3:
            y[i] = u[i]
        if i > 1:
            z[i] = u[i]
    """,
    "in the other branch": """
        u: f64[8]
        for k in range(8):
            if x[k] > 0:
                u[k] = x[k]
            else:
                u[k] = 3
            y[k] = u[k]
    """,
    "read in an earlier round": """
        u: f64[8]
        for k in range(1, 8):
            y[k] = u[k - 1]
            u[k] = x[k] * 2
    """,
    "read after the loop": """
        u: f64[8]
        for k in range(8):
            u[k] = x[k] * 2
            y[k] = u[k]
        z[i] = u[i]
    """,
    "the last round wins": """
        u: f64[8]
        for k in range(8):
            u[0] = x[k] * 2
        y[i] = u[0]
    """,
    "a diagonal": "d: f64[8, 8]\nd[i, i] = x[i]\ny[i] = d[i, i]\nz[i] = d[i, 0]",
    "a stride": "u: f64[8]\nu[::2] = x[::2] * 2\ny[::2] = u[::2]\nz[i] = u[i]",
    "a transpose": "b2[i, j] = a[j, i] * 2\nb[i, j] = b2[j, i] + b2[i, j]",
    "a reversed read": "u[i] = x[i] + i\ny[:] = u[::-1]",
    "filled, then used": "u = np.full(8, 3.0)\ny[i] = u[i] + x[i]",
    "filled, then written": "u = np.zeros(8)\nu[2:5] = x[2:5]\ny[i] = u[i]",
    "filled in a loop": """
        for k in range(3):
            u = np.full(8, 2.0)
            u[k] = x[k]
            y[i] += u[i]
    """,
    "moved": """
        u[i] = x[i]
        w[i] = x[i] * 2
        for s in range(3):
            w[i] = u[i] * 2
            u, w = w, u
        y[i] = u[i]
    """,
    "looked up": "u[i] = x[i] * 2\ny[i] = u[p[i]]\nz[i] = x[q[i]]",
    "looked up, and found there": "u: f64[8]\nu[p[i]] = x[i]\ny[i] = u[p[i]]",
    "a chain": "u[i] = x[i] * 2\nv[i] = u[i] + 1\nw[i] = v[i] * u[i]\ny[i] = w[i] + v[i]",
    "a chain behind a guard": """
        u[i] = x[i] > 0
        v: f64[8]
        if u[i]:
            v[i] = x[i] * 2
            y[i] = v[i]
        z[i] = v[i] if u[i] else x[i]
    """,
    "a sum of it": "u[i] = x[i] * 2\nc[0] = sum(u[i])\ny[i] = u[i] * c[0]",
    "an update of it": "u[i] = x[i] * 2\nu[i] += z[i]\ny[i] = u[i]",
    "printed": "u[i] = x[i] * 2\nprint(u[3])\ny[i] = u[i]",
    "of run-time size": """
        for k in range(1, 8):
            t = x[:k] * 2
            u = t + 1
            y[k] = u.sum() + t[0]
    """,
    "left early": """
        u: f64[8]
        for k in range(8):
            if x[k] > 1:
                break
            u[k] = x[k] * 2
        y[i] = u[i]
    """,
    "checked while it is made": """
        u: f64[8]
        for k in range(8):
            assert x[k] < 3
            u[k] = x[k] * 2
        y[i] = u[i]
    """,
    "two sums would be kept for it": "s[i] = sum(a[i, j])\nt[i] = sum(b[i, j])\n"
    "u[i] = s[i] * t[i]\nz[i] = sum(a[j, i])\ny[i] = u[i]",
    "one sum is kept for it": "s[i] = sum(a[i, j])\nu[i] = s[i] * 3\nz[i] = sum(a[j, i])\n"
    "y[i] = u[i]",
    "two sums that are needed anyway": "s[i] = sum(a[i, j])\nt[i] = sum(b[i, j])\n"
    "u[i] = s[i] * t[i]\nz[i] = sum(a[j, i])\ny[i] = u[i]\nx[i] = s[i] + t[i]",
    "a sum for all of a row": "s[i] = sum(a[i, j])\nu[i] = s[i] / 3\nb[i, j] = u[i] * a[i, j]",
    "two reads, used twice": "u[i] = x[i] * z[i]\ny[i] = u[i] * u[i]",
    "two reads, used in a row": "u[i] = x[i] * z[i]\nb[i, j] = u[i] * a[i, j]",
    "a read, used in a row": "u[i] = x[i] * 2\nb[i, j] = u[i] * a[i, j]",
    "a division, used twice": "u[i] = x[i] / z[i]\ny[i] = u[i] + u[i]",
    "a division, used three times": "u[i] = x[i] / z[i]\ny[i] = u[i] + u[i] * u[i]",
    "a choice, used twice": "u[i] = x[i] if x[i] > z[i] else z[i]\ny[i] = u[i] + u[i]",
    "a choice, used three times": "u[i] = x[i] if x[i] > z[i] else z[i]\ny[i] = u[i] + u[i] * u[i]",
    "a function, used twice": "u[i] = exp(x[i])\ny[i] = u[i] + u[i]",
    "a function of positions": "u: f64[8]\nu[i] = i * 2.0\nb[i, j] = u[i] * u[j] + u[i]",
    "a lookup, used twice": "u[i] = x[p[i]]\ny[i] = u[i] + u[i]",
    "a scalar": "h = c[0] * 2\ny[i] = x[i] * h\nz[i] = h",
    "a scalar of a function": "h = exp(c[0])\ny[i] = x[i] * h",
    "a scalar of one use": "h = exp(c[0])\nx[0] = h",
    "a constant": "u: f64[8]\nu[i] = 3\nb[i, j] = u[i] + u[j]",
    "many parts": "u[i] = " + " + ".join(f"x[i] * {n}" for n in range(2, 18)) + "\n"
    "v[i] = " + " + ".join(f"z[i] * {n}" for n in range(2, 8)) + "\ny[i] = u[i] * v[i]",
    "a guard by what is inlined": """
        g[i] = x[i] * 2
        u: f64[8]
        for k in range(8):
            if g[k] > 1:
                u[k] = z[k] * 3
            if g[k] > 1:
                y[k] = u[k]
    """,
    "rows change below": """
        t: f64[8]
        t[i] = a[0, i] * 2
        for k in range(1, 8):
            for m in range(8):
                a[k, m] = t[m] + k
    """,
    "rows change from the first on": """
        t: f64[8]
        t[i] = a[0, i] * 2
        for k in range(8):
            for m in range(8):
                a[k, m] = t[m] + k
    """,
    "the cell changes after it was used, in a branch": """
        t: f64[8]
        t[i] = x[i] * 2
        for k in range(8):
            if z[k] > 0:
                x[k] = t[k] + 1
            else:
                x[k] = t[k]
    """,
    "it is used after the cell changed": """
        t: f64[8]
        t[i] = x[i] * 2
        for k in range(8):
            x[k] = 7
            y[k] = t[k]
    """,
    "it is used before the cell changes": """
        t: f64[8]
        t[i] = x[i] * 2
        for k in range(8):
            y[k] = t[k]
            x[k] = 7
    """,
    "it is used before and after the cell changes": """
        t: f64[8]
        t[i] = x[i] * 2
        for k in range(8):
            y[k] = t[k]
        for k in range(8):
            x[k] = 7
            z[k] = t[k]
    """,
    "read after the loop, further down": """
        u: f64[8]
        for k in range(8):
            u[k] = x[k] * 2
            y[k] = u[k]
        for m in range(8):
            x[m] = 1
            z[m] = 2
            z[m] += u[m]
    """,
    "two sums would be kept, but not for long": "s[i] = sum(a[i, j])\nt[i] = sum(b[i, j])\n"
    "u[i] = s[i] * t[i]\nc[0] = 3\ny[i] = u[i]",
    "what the test of a loop reads": """
        x = np.abs(x) + 1
        while x.sum() > 3:
            x *= 0.5
        y[...] = x
    """,
    "an element in the test of a loop": """
        x = np.abs(x) + 1
        while (x[::-1] * 2)[0] > 1 and np.cumsum(x)[2] > 0.5:
            x *= 0.5
        y[...] = x
    """,
    "two equal sums in the test of a loop": """
        x = np.abs(x) + 1
        while x.sum() > 3 and x.sum() * 2 > 5:
            x *= 0.5
        y[...] = x
    """,
    "cells are shifted in the round": """
        u[i] = x[i] * 2
        for k in range(3):
            for m in range(8):
                y[m] += u[m]
            for m in range(7):
                x[m + 1] = y[m]
    """,
    "cells are shifted in the round, one loop later": """
        u[i] = x[i] * 2
        for k in range(3):
            for m in range(8):
                y[m] += u[m]
            for h in range(8):
                z[h] = h
            for m in range(7):
                x[m + 1] = y[m]
    """,
    "cells are shifted in the round, two loops later": """
        u[i] = x[i] * 2
        for k in range(3):
            for m in range(8):
                y[m] += u[m]
            for h in range(8):
                z[h] = h
            for h in range(8):
                z[h] += 1
            for m in range(7):
                x[m + 1] = y[m]
    """,
    "the source is read once more behind the loop": """
        w[i] = sum(a[i, j])
        for k in range(3):
            u[i] = exp(w[i] * k)
            y[i] += u[7 - i] + u[i]
        z[0] = w[3]
    """,
    "the source is read in the loop only": """
        w[i] = sum(a[i, j])
        for k in range(3):
            u[i] = exp(w[i] * k)
            y[i] += u[7 - i] + u[i]
    """,
    "some are written, used in a while": """
        u: f64[8]
        u[2:] = exp(x[2:])
        s = 0
        while s < 3:
            y[i] += u[i]
            s += 1
    """,
    "some are written, used in a round": """
        u: f64[8]
        u[2:] = exp(x[2:])
        for k in range(3):
            y[i] += u[i]
    """,
    "some are written, used at two places": """
        u: f64[8]
        u[2:] = exp(x[2:])
        y[i] = u[i]
        z[i] = u[7 - i]
    """,
    "some are written, one is used": "u: f64[8]\nu[2:] = exp(x[2:])\ny[0] = u[3] + u[1]",
    "some are written, one is looked up": """
        u: f64[8]
        u[2:] = exp(x[2:])
        h = p[0] % 8
        y[0] = u[h]
    """,
}
