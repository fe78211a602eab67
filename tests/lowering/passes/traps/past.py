"""Nests that may be moved into an earlier one past what is between them, and some that must not."""

_MADE = """
        t: f64[8]
        for k in range(8):
            t[k] = x[k] * x[k]
"""
_AFTER = {
    "past a nest of another length": """
        for k in range(7):
            z[k] = x[k + 1]
        s = 0.0
        for m in range(8):
            for r in range(3):
                s += t[m] + r
        y[0] = s
    """,
    "past a nest that changes what it reads": """
        for k in range(7):
            x[k] = 3
        for m in range(8):
            y[m] = t[m] + x[m]
    """,
    "past a nest that reads what it writes": """
        for k in range(7):
            z[k] = y[k]
        for m in range(8):
            y[m] = t[m]
    """,
    "past a nest that writes what it writes": """
        for k in range(7):
            y[k] = 5
        for m in range(8):
            y[m] = t[m]
    """,
    "past a check, visibly": """
        for k in range(7):
            z[k] = x[p[k]]
        for m in range(8):
            y[m] = t[m]
    """,
    "past a check, unseen": """
        s = 0.0
        for k in range(7):
            z[k] = x[p[k]]
        for m in range(8):
            for r in range(3):
                s += t[m] + r
        y[0] = s
    """,
    "past a check, with a start that is seen": """
        for k in range(7):
            z[k] = x[p[k]]
        y[0] = 2.0
        for m in range(8):
            y[0] += t[m]
    """,
    "past a check, with a check": """
        for k in range(7):
            z[k] = x[p[k]]
        s = 0.0
        for m in range(8):
            for r in range(3):
                s += t[m] * x[q[m]] + r
        y[0] = s
    """,
    "past what its start is made from": """
        for k in range(7):
            z[k] = t[k + 1]
        s = z[3]
        for m in range(8):
            for r in range(3):
                s += t[m] + r
        y[0] = s
    """,
    "past a nest, with a number between": """
        for k in range(7):
            z[k] = x[k + 1]
        h = p[2] % 8
        for m in range(8):
            y[m] = t[m] + x[h]
        z[7] = x[h]
    """,
    "past two nests of other lengths": """
        for k in range(7):
            z[k] = x[k]
        for k in range(6):
            a[k, 0] = x[k]
        for m in range(8):
            y[m] = t[m] + 1
    """,
    "to the one before the last, not the last": """
        for k in range(8):
            z[k] = x[7 - k]
        for m in range(8):
            y[m] = t[m] * z[7 - m]
    """,
    "past a nest, for what others read as well": """
        for k in range(7):
            z[k] = x[k + 1]
        for m in range(8):
            y[m] = t[m] + 1
        for k in range(7):
            z[k] += t[k + 1]
    """,
    "past the check of a number that it needs": """
        for k in range(7):
            z[k] = x[k + 1]
        h = x[p[0]]
        s = 0.0
        for m in range(8):
            for r in range(3):
                s += t[m] * h
        y[0] = s
    """,
    "past the checks that its indices rely on": """
        for k in range(7):
            z[k] = x[p[k]]
        s = 0.0
        for m in range(8):
            for r in range(7):
                s += t[m] * x[p[r]]
        y[0] = s
    """,
    "a check past what is seen": """
        for k in range(7):
            z[k] = x[k + 1]
        s = 0.0
        for m in range(8):
            for r in range(3):
                s += t[m] * x[q[m]]
        y[0] = s
    """,
    "a print past what is seen": """
        for k in range(7):
            z[k] = x[p[k]]
        for m in range(8):
            print(t[m])
    """,
    "past an array of a size that is checked": """
        y[3] = 7
        b = np.zeros(p[0])
        s = 0.0
        for m in range(8):
            for r in range(3):
                s += t[m] * r
        y[0] = s
        b[:] = b + 1
        y[1] = b.sum()
    """,
    "past a loop that may go on": """
        h = 0
        while h < 3:
            for k in range(7):
                z[k] = x[k] + h
            h += 1
        s = 0.0
        for m in range(8):
            for r in range(3):
                s += t[m] * r
        y[0] = s
    """,
}
TRAPS = {name: _MADE + after.removeprefix("\n") for name, after in _AFTER.items()} | {
    "past a way out": """
        t: f64[8]
        for n in range(3):
            for k in range(8):
                t[k] = x[k] + n
            for k in range(7):
                z[k] = x[k] + n
            if x[0] > n:
                break
            for m in range(8):
                y[m] += t[m]
    """,
    "past a nest that trades its arrays": """
        t: f64[8]
        u: f64[8]
        u[i] = z[i]
        for n in range(2):
            for k in range(8):
                t[k] = x[k] + n
            for k in range(7):
                z[k] = x[k] + n
            t, u = u, t
            for m in range(8):
                y[m] += t[m]
    """,
}
