"""Arrays and sums that fit into less, and those that do not."""

TRAPS = {
    "a sum in place": "y[i] = sum(a[i, j])",
    "a sum onto what is there": "y[i] += a[i, j]",
    "a sum into one cell of many": """
        for k in range(8):
            for m in range(8):
                y[m % 2] += a[k, m]
    """,
    "the cell is read in the loop": """
        for k in range(8):
            y[0] += x[k]
            z[k] = y[0]
    """,
    "another cell is read in the loop": """
        for k in range(1, 8):
            t[i] = y[i]
            y[0] = t[0] + x[k] * t[k]
    """,
    "the cell is looked up in the loop": """
        for k in range(8):
            t[i] = y[i]
            y[0] = t[0] + t[p[k]] * 2
    """,
    "the cell is written besides": """
        for k in range(8):
            y[0] += x[k]
            y[k] = 2
    """,
    "the place is looked up": """
        for k in range(8):
            y[p[0]] += x[k]
    """,
    "the place changes": """
        for k in range(8):
            y[p[0]] += x[k]
            p[0] = q[k]
    """,
    "a loop that may not run": "for k in range(n):\n    y[7] += x[k]",
    "a sum that is left early": """
        for k in range(8):
            if x[k] > 2:
                break
            y[0] += x[k]
    """,
    "a sum with a check": """
        for k in range(8):
            y[0] += x[k]
            assert y[0] < 4
    """,
    "a sum that is printed": """
        for k in range(4):
            y[0] += x[k]
            print(y[0])
    """,
    "a sum under a guard": """
        for k in range(8):
            if x[k] > 0:
                y[0] += x[k]
    """,
    "two sums at once": """
        for k in range(8):
            y[0] += x[k]
            y[1] += z[k]
            y[0] -= z[k]
    """,
    "values of one round": """
        t: f64[8]
        for k in range(8):
            t[k] = x[k] * 2
            y[k] = t[k] + 1
    """,
    "values of the round before": """
        t: f64[8]
        for k in range(1, 8):
            t[k] = x[k] * 2 + t[k - 1]
            y[k] = t[k]
    """,
    "values that may be missing": """
        t: f64[8]
        for k in range(8):
            if x[k] > 0:
                t[k] = x[k]
            y[k] = t[k]
    """,
    "values of two rounds": """
        t: f64[8]
        for k in range(8):
            t[k] = x[k]
            y[k] = t[k] + t[7 - k]
    """,
    "a row at a time": """
        t: f64[8, 8]
        for k in range(8):
            for m in range(8):
                t[k, m] = a[k, m] * 2
            for m in range(8):
                b[k, m] = t[k, m] + t[k, 0]
    """,
    "a column at a time": """
        t: f64[8, 8]
        for k in range(8):
            for m in range(8):
                t[m, k] = a[m, k] * 2
            for m in range(8):
                b[m, k] = t[m, k] + t[7 - m, k]
    """,
    "a row of the last round": """
        t: f64[8, 8]
        for k in range(8):
            for m in range(8):
                b[k, m] = t[k - 1, m] if k > 0 else 0.0
            for m in range(8):
                t[k, m] = a[k, m]
    """,
    "a shifted row": """
        t: f64[9, 8]
        for k in range(8):
            for m in range(8):
                t[k + 1, m] = a[k, m] * 2
            y[k] = t[k + 1, 3] + t[k + 1, 4]
    """,
    "read after the loop, too": """
        t: f64[8]
        for k in range(8):
            t[k] = x[k] * 2
            y[k] = t[k]
        z[i] = t[7 - i]
    """,
    "storage that starts as zeros in each round": """
        for k in range(3):
            t = np.zeros(8)
            t[k] = x[k]
            y[i] += t[i]
    """,
    "a table of both": "d[i, j] = a[i, j] * b[i, j]\nq[i] = argmax[j](d[i, j])",
    "a while around": """
        t: f64[8]
        s = 0
        while s < 5:
            t[s] = x[s] * 2
            y[s] = t[s]
            s += 1
    """,
    "a place that a while moves": """
        t: f64[8]
        s = 0
        while s < 5:
            t[s] = x[s] * 2
            s += 1
            y[s] = t[s - 1]
    """,
    "a sum backwards": "for k in range(7, -1, -1):\n    y[0] += x[k]",
    "a sum in loops of unknown length": """
        for k in range(n):
            for m in range(8):
                y[0] += a[m, m]
    """,
    "a sum under a loop that may be left": """
        for m in range(8):
            for k in range(8):
                if x[k] > 2:
                    continue
                y[m] += x[k]
    """,
    "a sum of a triangle": "for k in range(8):\n    for m in range(k):\n        y[k] += a[k, m]",
    "the start is stored before": """
        for k in range(8):
            y[k] = 2
            z[k] = 3
            for m in range(8):
                y[k] += a[k, m]
                z[k] += a[m, k]
    """,
    "the start is read before": """
        for k in range(8):
            y[k] = 2
            z[k] = y[k]
            for m in range(8):
                y[k] += a[k, m]
    """,
    "the largest so far": """
        for k in range(8):
            for m in range(8):
                y[k] = max(y[k], a[k, m])
    """,
    "two axes": """
        t: f64[8, 8]
        for k in range(8):
            for m in range(8):
                t[k, m] = a[k, m] * 2
                b[m, k] = t[k, m] + 1
    """,
    "the smallest distance": """
        for k in range(8):
            best = 9.0
            for m in range(8):
                best = min(best, a[k, m])
            y[k] = best
    """,
    "exchanged": """
        u[i] = x[i]
        w[i] = x[i] * 2
        for s in range(3):
            for k in range(8):
                w[k] = u[k] * 2
            u, w = w, u
        y[i] = u[i]
    """,
}
