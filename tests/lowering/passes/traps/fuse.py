"""Loops that may be brought together, and loops that must not."""

TRAPS = {
    "a later round is needed": "z[:-1] = x[:-1]\ny[:-1] = z[1:]",
    "an earlier round is needed": "z[1:] = x[1:]\ny[1:] = z[:-1]",
    "it overwrites what a later round reads": "y[1:] = x[1:] + x[:-1]\nx[:-1] = 3",
    "both write the cell": "y[:-1] = x[:-1]\ny[1:] = x[:-1] * 2",
    "the order of branches": """
        for k in range(8):
            if x[k] > 0:
                z[k] = 1
            if y[k] > 0:
                z[k] = 2
    """,
    "a branch changes its own test": """
        for k in range(8):
            if x[k] > 0:
                x[k] = -1
            if x[k] > 0:
                z[k] = 2
    """,
    "both sides of two branches": """
        for k in range(8):
            if x[k] > 0:
                y[k] = x[k]
            else:
                y[k] = 2
            if x[k] > 0:
                z[k] = y[k]
            else:
                z[k] = y[k] + 3
    """,
    "something stands between two branches": """
        for k in range(8):
            if x[k] > 0:
                y[k] = x[k]
            y[k] += 1
            if x[k] > 0:
                z[k] = y[k]
    """,
    "strides that meet": """
        for k in range(0, 6, 2):
            z[k] = x[k]
        for m in range(0, 6, 2):
            y[m] = z[m + 2]
    """,
    "strides that pass by": """
        for k in range(0, 6, 2):
            z[k] = x[k]
        for m in range(0, 6, 2):
            y[m] = z[m + 1]
    """,
    "backwards and needed later": """
        for k in range(7, 0, -1):
            z[k] = x[k]
        for m in range(7, 0, -1):
            y[m] = z[m - 1]
    """,
    "backwards by two": """
        for k in range(7, 1, -2):
            z[k] = x[k]
        for m in range(7, 1, -2):
            y[m] = z[m - 2] + z[m]
    """,
    "rows of a transpose": """
        b[i, j] = a[i, j] * 2
        for m in range(8):
            for k in range(8):
                y[m] += b[k, m]
    """,
    "a triangle below and above": """
        for k in range(8):
            for m in range(k):
                a[k, m] = x[k]
        for r in range(8):
            for s in range(r):
                y[r] += a[s, r]
    """,
    "a triangle and its reflection": """
        for k in range(8):
            for m in range(k):
                a[k, m] = x[k] + m
        for r in range(8):
            for s in range(r, 8):
                y[r] += a[s, r]
    """,
    "the same letters in loops inside": """
        for k in range(8):
            for m in range(8):
                a[k, m] = x[m] * k
        for k in range(8):
            for m in range(8):
                y[k] += a[m, k]
    """,
    "the second is left early": """
        for k in range(8):
            z[k] = x[k]
        for m in range(8):
            y[m] = z[m]
            if x[m] > 1:
                break
    """,
    "the first skips rounds": """
        for k in range(8):
            if x[k] > 1:
                continue
            z[k] = x[k]
        for m in range(8):
            y[m] = z[m]
    """,
    "a value between is needed by the first": "z[i] = x[i] + c[0]\nc[0] = 5\ny[i] = z[i] * c[0]",
    "a value between is made by the first": "z[i] = x[i]\nc[0] = z[7]\ny[i] = z[i] * c[0]",
    "a value between is free": "z[i] = x[i]\nc[0] = 7\ny[i] = z[i] * c[0]",
    "a check between": """
        for k in range(8):
            z[k] = x[k]
        assert c[0] < 2
        for m in range(8):
            y[m] = z[m]
    """,
    "a print between": """
        for k in range(8):
            z[k] = x[k]
        print(z[3])
        for m in range(8):
            z[m] = z[m] + 1
    """,
    "a branch between": """
        for k in range(8):
            z[k] = x[k]
        if c[0] > 0:
            z[0] = 9
        for m in range(8):
            y[m] = z[m]
    """,
    "checks come before what is written behind them": """
        t: f64[8]
        for k in range(8):
            assert x[k] < 3
            t[k] = x[k]
        c[0] = 2
        u: f64[8]
        for m in range(8):
            u[m] = t[m] * 2
        y[i] = u[i]
    """,
    "checks come before what is read behind them": """
        t: f64[8]
        s: f64[8]
        for k in range(8):
            assert x[k] < 3
            t[k] = x[k]
        s[0] = x[p[0]]
        for m in range(8):
            s[m] = t[m] * 2 + s[0]
        y[i] = s[i]
    """,
    "two checks in order": """
        for k in range(8):
            assert x[k] < 3, "first"
        for m in range(8):
            assert x[m] > -3, "second"
    """,
    "a check, then a visible write": """
        for k in range(8):
            assert x[k] < 3
        for m in range(8):
            y[m] = x[m]
    """,
    "a visible write, then a check": """
        for k in range(8):
            y[k] = x[k]
        for m in range(8):
            assert x[m] < 3
            z[m] = y[m]
    """,
    "a print in both": """
        for k in range(3):
            print(x[k])
        for m in range(3):
            print(x[m] + 1)
    """,
    "gathers that are checked": "z[i] = x[p[i]]\ny[i] = z[q[i]] + z[i]",
    "what a gather brings is needed whole": "z[p[i]] += x[i]\ny[i] = z[i]",
    "a scalar counts on": """
        s = 0.0
        for k in range(8):
            s += x[k]
            y[k] = s
        for m in range(8):
            s += y[m]
            z[m] = s
    """,
    "names of numbers inside both": """
        for k in range(8):
            h = p[k] + 1
            y[k] = x[p[k]] * h
        for m in range(8):
            h = q[m] + 2
            z[m] = y[m] * h
    """,
    "loops of other lengths": """
        for k in range(8):
            z[k] = x[k]
        for m in range(7):
            y[m] = z[m]
        for r in range(1, 8):
            y[r] += z[r]
    """,
    "loops of unknown length": """
        for k in range(n):
            z[k] = x[k]
        for m in range(n):
            y[m] = z[m] + z[0]
    """,
    "three in a row": "z[i] = x[i] * 2\ny[i] = z[i] + 1\nx[i] = y[i] * z[i]",
    "a while between": """
        for k in range(8):
            z[k] = x[k]
        s = 0
        while s < 2:
            z[s] += 1
            s += 1
        for m in range(8):
            y[m] = z[m]
    """,
    "nothing in common": "y[i] = x[i]\nb[i, j] = a[i, j]",
    "nothing written": """
        for k in range(8):
            y[k] = x[k]
        for m in range(8):
            z[m] = p[m]
    """,
    "a scalar in common": """
        s = c[0]
        for k in range(8):
            y[k] = s
        for m in range(8):
            z[m] = s
    """,
    "branches inside of both": """
        for k in range(8):
            if x[k] > 0:
                z[k] = x[k]
        for m in range(8):
            if x[m] > 0:
                y[m] = z[m]
    """,
    "a comment between branches, others of them": """
        for k in range(8):
            if x[k] > 0:
                z[k] = x[k]
            if x[k] > 1:
                y[k] = z[k]
            if x[k] > 1:
                y[k] += 1
    """,
    "an earlier cell of another row": """
        for k in range(1, 8):
            for m in range(8):
                a[k, m] = x[m] * k
        for k in range(1, 8):
            for m in range(8):
                b[k, m] = a[k - 1, m]
    """,
    "a later cell of another row": """
        for k in range(7):
            for m in range(8):
                a[k, m] = x[m] * k
        for k in range(7):
            for m in range(8):
                b[k, m] = a[k + 1, m]
    """,
    "an earlier cell of the row": """
        for k in range(8):
            for m in range(1, 8):
                a[k, m] = x[m] * k
        for k in range(8):
            for m in range(1, 8):
                b[k, m] = a[k, m - 1] + a[k, m]
    """,
    "a later cell of the row": """
        for k in range(8):
            for m in range(7):
                a[k, m] = x[m] * k
        for k in range(8):
            for m in range(7):
                b[k, m] = a[k, m + 1] + a[k, m]
    """,
    "a moved update": "z[i] = x[i]\nc[0] += 7\ny[i] = z[i] * c[0]",
    "lookups of what is written": """
        for k in range(8):
            h = p[k] % 8
            z[h] = x[k]
        for m in range(8):
            y[m] = z[m]
    """,
    "backwards, and the last is needed": """
        for k in range(7, -1, -1):
            z[k] = x[k]
        for m in range(7, -1, -1):
            y[m] = z[0] * 2
    """,
    "a branch changes a part of its own test": """
        for k in range(8):
            if x[k] > z[k]:
                x[k] = -9
            if x[k] > z[k]:
                y[k] = 2
    """,
    "a cell behind the last": """
        for k in range(5):
            z[k] = x[k]
        for m in range(5):
            y[m] = z[5] + z[m]
    """,
    "around an exchange": """
        u[i] = x[i]
        w[i] = x[i] * 2
        for k in range(3):
            for m in range(8):
                y[m] += x[m]
            u, w = w, u
            for m in range(8):
                z[m] += x[m] * 2
        b[0, i] = u[i] - w[i]
    """,
    "around an exchange of what they use": """
        u[i] = x[i]
        w[i] = x[i] * 2
        for k in range(3):
            for m in range(8):
                w[m] += u[m]
            u, w = w, u
            for m in range(8):
                u[m] += x[m] * 2
        b[0, i] = u[i] - w[i]
    """,
}
