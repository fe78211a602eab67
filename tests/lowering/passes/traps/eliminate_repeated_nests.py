"""Nests that were run before, and nests that only look like it."""

TRAPS = {
    "twice": "t[i] = sum(a[i, j])\nu[i] = sum(a[i, k])\ny[i] = t[i] - u[i] * 2",
    "three times": """
        t[i] = sum(a[i, j])
        u[i] = sum(a[i, k])
        v[i] = sum(a[i, m])
        y[i] = t[i] - u[i] * 2
        z[i] = v[i] + u[i]
    """,
    "what follows from it, too": """
        t[i] = sum(a[i, j])
        u[i] = sum(a[i, k])

        v[i] = t[i] * 2
        w[i] = u[i] * 2
        y[i] = v[i] + w[7 - i]
    """,
    "a stored expression": "t[i] = x[i] * 2\nu[k] = x[k] * 2\ny[i] = t[i] + u[7 - i]",
    "a number": "s = sum(x[i])\nh = sum(x[k])\ny[i] = x[i] * s / (h + 1)",
    "another source": "t[i] = sum(a[i, j])\nu[i] = sum(b[i, j])\ny[i] = t[i] - u[i] * 2",
    "another operation": "t[i] = sum(a[i, j])\nu[i] = max(a[i, k])\ny[i] = t[i] - u[i] * 2",
    "another axis": "t[i] = sum(a[i, j])\nu[i] = sum(a[k, i])\ny[i] = t[i] - u[i] * 2",
    "another range": """
        t[i] = sum(a[i, j])
        u[i] = sum[k in range(7)](a[i, k])
        y[i] = t[i] - u[i] * 2
    """,
    "another start": """
        t[i] = sum(a[i, j])
        u[i] = sum[k in range(1, 8)](a[i, k])
        y[i] = t[i] - u[i] * 2
    """,
    "another place": """
        t[i] = sum(a[i, j])
        u[i] = sum[k in range(8)](a[i, 7 - k])
        y[i] = t[i] - u[i] * 2
    """,
    "numbers of another kind": "t[i] = p[i] * 2\nu[i] = f64(p[i] * 2)\ny[i] = t[i] - u[i] * 2",
    "the source is written between": """
        t[i] = sum(a[i, j])
        a[0, 0] = 1
        u[i] = sum(a[i, k])
        y[i] = t[i] - u[i] * 2
    """,
    "another array is written between": """
        t[i] = sum(a[i, j])
        x[0] = 1
        u[i] = sum(a[i, k])
        y[i] = t[i] - u[i] * 2
    """,
    "one of two sources is written between": """
        t[i] = a[i, 0] * x[i]
        x[3] = 1
        u[i] = a[i, 0] * x[i]
        y[i] = t[i] - u[i] * 2
    """,
    "the first is written again": """
        t[i] = sum(a[i, j])
        t[0] = 1
        u[i] = sum(a[i, k])
        y[i] = t[i] - u[i] * 2
    """,
    "the first is written afterwards": """
        t[i] = sum(a[i, j])
        u[i] = sum(a[i, k])
        t[0] = 1
        y[i] = t[i] - u[i] * 2
    """,
    "the second is written afterwards": """
        t[i] = sum(a[i, j])
        u[i] = sum(a[i, k])
        u[0] = 1
        y[i] = t[i] - u[i] * 2
    """,
    "the second is used before": """
        u: f64[8]
        t[i] = sum(a[i, j])
        z[i] = u[i]
        u[i] = sum(a[i, k])
        y[i] = t[i] - u[i] * 2
    """,
    "the first is the caller's": "y[i] = sum(a[i, j])\nt[i] = sum(a[i, k])\nz[i] = t[i] + y[i]",
    "the second is the caller's": "t[i] = sum(a[i, j])\ny[i] = sum(a[i, k])\nz[i] = t[i]",
    "the first is a result": "r[i] = sum(a[i, j])\nt[i] = sum(a[i, k])\ny[i] = t[i]\nreturn r",
    "the second is a result": "t[i] = sum(a[i, j])\nr[i] = sum(a[i, k])\ny[i] = t[i]\nreturn r",
    "both are results": "r[i] = sum(a[i, j])\nu[i] = sum(a[i, k])\nreturn r, u",
    "the same array": "t[i] = x[i]\nt[i] = x[i]\ny[i] = t[7 - i]",
    "the caller's, twice": "y[i] = x[i]\ny[i] = x[i]",
    "in a round": """
        for k in range(3):
            t[i] = sum(a[i, j] * k)
            u[i] = sum(a[i, m] * k)
            y[i] += t[i] * u[7 - i]
    """,
    "before the rounds": """
        t[i] = sum(a[i, j])

        for k in range(3):
            u[i] = sum(a[i, m])
            y[i] += t[i] * u[7 - i] * k
    """,
    "in a round, and used in the next": """
        u: f64[8]
        for k in range(3):
            z[i] += u[i]
            t[i] = sum(a[i, j] * k)
            u[i] = sum(a[i, m] * k)
            y[i] += t[i] * u[7 - i]
    """,
    "in a round, and used afterwards": """
        u: f64[8]
        for k in range(3):
            t[i] = sum(a[i, j] * k)
            u[i] = sum(a[i, m] * k)
            y[i] += t[i] * u[7 - i]
        z[i] = u[i]
    """,
    "in two different rounds": """
        for k in range(3):
            t[i] = sum(a[i, j])
            y[i] += t[i]
        for k in range(2):
            u[i] = sum(a[i, j])
            z[i] += u[i]
    """,
    "on two sides": """
        for k in range(3):
            if x[k] > 0:
                t[i] = x[i] * 2
                y[i] += t[7 - i]
            else:
                u[i] = x[i] * 2
                y[i] -= u[7 - i]
    """,
    "in one side, twice": """
        for k in range(3):
            if x[k] > 0:
                t[i] = x[i] * 2
                u[i] = x[i] * 2
                y[i] += t[7 - i] - u[i]
    """,
    "in a while": """
        h = 0
        while h < 3:
            t[i] = x[i] * h
            u[i] = x[i] * h
            y[i] += t[7 - i] - u[i]
            h += 1
    """,
    "a round that may be left": """
        for k in range(3):
            t[i] = x[i] * 2
            if x[k] > 1:
                break
            u[i] = x[i] * 2
            y[i] += t[i] - u[7 - i]
    """,
    "a round that may be cut short": """
        for k in range(3):
            t[i] = x[i] * 2
            if x[k] > 1:
                continue
            u[i] = x[i] * 2
            y[i] += t[i] - u[7 - i]
    """,
    "behind a loop that may be left": """
        for k in range(3):
            if x[k] > 1:
                break
            c[0] += 1
        t[i] = x[i] * 2
        u[i] = x[i] * 2
        y[i] = t[i] - u[i] * 2
    """,
    "only some are written": """
        t: f64[8]
        u: f64[8]
        for k in range(5):
            t[k] = x[k]
        for k in range(5):
            u[k] = x[k]
        y[i] = t[i] - u[i] * 2
    """,
    "others are written": """
        t: f64[8]
        u: f64[8]
        for k in range(5):
            t[k] = x[k]
        for k in range(5):
            u[k + 1] = x[k]
        y[i] = t[i] - u[i] * 2
    """,
    "under a guard": """
        t: f64[8]
        u: f64[8]
        if x[i] > 0:
            t[i] = z[i]
        if x[i] > 0:
            u[i] = z[i]
        y[i] = t[i] - u[i] * 2
    """,
    "under another guard": """
        t: f64[8]
        u: f64[8]
        if x[i] > 0:
            t[i] = z[i]
        if x[i] > 1:
            u[i] = z[i]
        y[i] = t[i] - u[i] * 2
    """,
    "from itself": """
        t[i] = x[i]
        u[i] = x[i]
        t[i] = t[i] * 2
        u[i] = u[i] * 2
        y[i] = t[i] - u[i] * 2
    """,
    "accumulated from itself": """
        t: f64[8]
        u: f64[8]
        for k in range(1, 8):
            t[k] = t[k - 1] + x[k]
        for k in range(1, 8):
            u[k] = u[k - 1] + x[k]
        y[i] = t[i] - u[i] * 2
    """,
    "two arrays at once": """
        t: f64[8]
        u: f64[8]
        for k in range(8):
            t[k] = x[k]
            y[k] = z[k]
        for k in range(8):
            u[k] = x[k]
            y[k] = z[k]
        z[i] = t[i] + u[i]
    """,
    "another shape": """
        t: f64[9]
        u: f64[8]
        for k in range(8):
            t[k] = x[k]
        for k in range(8):
            u[k] = x[k]
        y[i] = t[7 - i] + u[i]
    """,
    "a check": "y[i] = x[p[i]]\nz[i] = x[p[i]] * 2",
    "a check of another array": "y[i] = x[p[i]]\nz[i] = x[q[i]] * 2",
    "a check of what was written": "y[i] = x[p[i]]\np[0] = 3\nz[i] = x[p[i]] * 2",
    "a check by the user": "assert x[0] < 3\ny[i] = 1\nassert x[0] < 3\nz[i] = 1",
    "another check": "assert x[0] < 3\ny[i] = 1\nassert x[0] < 2\nz[i] = 1",
    "a check in a round": """
        assert x[0] < 3
        for k in range(3):
            y[k] = 1
            assert x[0] < 3
            z[k] = 2
    """,
    "a print": "print(x[0])\ny[i] = 1\nprint(x[0])",
    "they trade places": """
        u[i] = x[i] * 2
        w[i] = x[i] * 2
        for k in range(3):
            w[k] = u[k] * 2
            u, w = w, u
        y[i] = u[i]
    """,
    "filled": "t = np.zeros(8)\nu = np.zeros(8)\nt[2] = 1\ny[i] = t[i] + u[i]",
    "filled and left": "t = np.zeros(8)\nu = np.zeros(8)\ny[i] = t[i] + u[i]",
    "storage of a size that changes": """
        for k in range(1, 8):
            t = x[:k] * 2
            u = x[:k] * 2
            z[:k] = t + u
    """,
    "positions": "t[i] = argmax[j](a[i, j])\nu[i] = argmax[j](a[i, j])\nq[i] = t[i] + u[i]",
    "asked to be kept": """
        t[i] = x[i] * 2
        u[i] = x[i] * 2
        memory(u, "local")
        y[i] = t[i] + u[i]
    """,
    "the first is asked to be kept": """
        t[i] = x[i] * 2
        memory(t, "local")
        u[i] = x[i] * 2
        y[i] = t[i] + u[i]
    """,
}
