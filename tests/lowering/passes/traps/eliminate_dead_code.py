"""Work that nobody needs, and work that somebody does."""

TRAPS = {
    "used by a print": "t[i] = x[i] * 2\nprint(t[1])\ny[i] = x[i]",
    "used by a check": "t[i] = x[i] * 2\nassert t[1] < 3\ny[i] = x[i]",
    "used by a test": "t[i] = x[i] * 2\nif t[0] > 0:\n    y[i] = 1",
    "used by a bound": "h = p[0] % 8\nfor k in range(h):\n    y[k] = x[k]",
    "used by a place": "t[i] = p[i] % 8\ny[i] = 0\ny[t[i]] += x[i]",
    "used by an array that moved": """
        u[i] = x[i]
        w[i] = x[i] * 2
        for s in range(3):
            u, w = w, u
        y[i] = u[i]
    """,
    "used by itself only": """
        t[i] = x[i]
        for s in range(3):
            t[i] = t[i] * 2
        y[i] = x[i]
    """,
    "used around a loop": """
        t[i] = x[i]
        u[i] = z[i]
        for s in range(3):
            y[i] = t[i]
            t[i] = u[i]
            u[i] = y[i]
    """,
    "one side is of no use": """
        t: f64[8]
        for k in range(8):
            if x[k] > 0:
                t[k] = 1
            else:
                y[k] = 2
            if not x[k] > 0:
                t[k] = 3
            else:
                z[k] = 4
    """,
    "the value beside a position": "q[i] = argmin[j](a[i, j])",
    "a break is of use": """
        t: f64[8]
        for k in range(8):
            t[k] = 1
            if x[k] > 1:
                break
            y[k] = 3
    """,
    "a loop that leaves": """
        h = 0
        for k in range(8):
            if x[k] > 1:
                break
            h += 1
        y[0] = h
    """,
    "a while that only counts": """
        s = 0
        while s < 5:
            s += 2
        y[0] = s
    """,
    "an update of something of no use": """
        t: f64[8]
        u: f64[8]
        for k in range(8):
            u[k] += x[k]
            t[0] += u[k]
        y[i] = x[i]
    """,
    "filled, and of no use": "t = np.zeros(8)\nt[2] = 1\ny[i] = x[i]",
    "storage of no use": "for k in range(1, 8):\n    t = x[:k] * 2\n    y[k] = x[k]",
    "one side of use, the other not": """
        t: f64[8]
        for k in range(8):
            if x[k] > 0:
                y[k] = 2
            else:
                t[k] = 1
    """,
    "both sides of use": """
        for k in range(8):
            if x[k] > 0:
                y[k] = 2
            else:
                z[k] = 1
    """,
    "two that only update each other": """
        t: f64[8]
        u: f64[8]
        for k in range(8):
            t[k] += u[k]
            u[k] += t[k] + x[k]
        y[i] = x[i]
    """,
    "two loops of no use inside": """
        t: f64[8]
        for k in range(8):
            for m in range(8):
                t[m] = a[k, m]
        y[i] = x[i]
    """,
}
