"""Loops that search for one index, and loops that do more."""

TRAPS = {
    "one is looked up": "y[i] = sum[k](where(k == p[i], a[i, k], 0.0))",
    "one is looked up from a start": "y[i] += sum[k](where(k == p[i], a[i, k], 0.0))",
    "it may be nowhere": "y[i] = sum[k](where(k == p[i] - 4, a[i, k], 0.0))",
    "more has to hold": "y[i] = sum[k](where((k == p[i]) & (x[k] > 0), a[i, k], 0.0))",
    "more has to hold before": "y[i] = sum[k](where((x[k] > 0) & (p[i] == k), a[i, k], 0.0))",
    "the others count": "y[i] = sum[k](where(k == p[i], a[i, k], 1.0))",
    "the others are minus zero": "y[i] = sum[k](where(k == p[i], a[i, k], -0.0))",
    "the largest": "y[i] = max[k](where(k == p[i], a[i, k], 0.0))",
    "the number depends on it": "y[i] = sum[k](where(k == p[k], a[i, k], 0.0))",
    "whole numbers": "q[i] += sum[k in range(8)](where(k == p[i], k * k, 0))",
    "the place depends on it": """
        for k in range(8):
            y[k] += where(k == p[0], x[k], 0.0)
    """,
    "a branch": """
        for m in range(8):
            for k in range(8):
                if k == p[m]:
                    a[m, k] = y[m] + k
    """,
    "a branch of more": """
        for m in range(8):
            for k in range(8):
                if k == p[m] and x[k] > 0:
                    a[m, k] = y[m] + k
    """,
    "a branch that changes the number": """
        for m in range(8):
            for k in range(8):
                if k == p[m]:
                    p[m] = k + 1
    """,
    "a branch that leaves": """
        for m in range(8):
            for k in range(8):
                if k == p[m]:
                    y[m] = k
                    break
    """,
    "two branches": """
        for m in range(8):
            for k in range(8):
                if k == p[m]:
                    y[m] = k
                else:
                    z[m] += k
    """,
    "part of the range": """
        for m in range(8):
            for k in range(2, 6):
                if k == p[m]:
                    y[m] = k
    """,
    "a stride": """
        for m in range(8):
            for k in range(0, 8, 2):
                if p[m] == k:
                    y[m] = k
    """,
    "a remainder": """
        for m in range(8):
            for k in range(8):
                if k == p[m]:
                    y[m] = x[k % 3] + x[(k + 1) % 8]
    """,
    "remainders in a sum": "y[i] = sum[k in range(8)](where(k == p[i], x[(k + i) % 8], 0.0))",
    "a position": "y[i] = sum[k](where(k == i + 2, a[i, k], 0.0))",
    "the sum is what it reads": """
        for k in range(8):
            q[0] += where(k == q[0], k + 1, 0)
    """,
    "from one": """
        for m in range(8):
            for k in range(1, 8):
                if p[m] == k:
                    y[m] = x[k]
    """,
    "of a sum that starts elsewhere": """
        for m in range(1, 8):
            y[m - 1] = 0
            for k in range(8):
                y[m] += where(k == p[m], x[k], 0.0)
    """,
    "of a sum that starts at a looked up place": """
        for m in range(8):
            y[p[m]] = 0
            for k in range(8):
                y[p[m]] += where(k == q[m], x[k], 0.0)
    """,
    "of a sum that starts from one": """
        for m in range(8):
            y[m] = 1
            for k in range(8):
                y[m] += where(k == q[m], x[k], 0.0)
    """,
    "with two conditions and": """
        for m in range(8):
            for k in range(8):
                if x[k] > 0 and k == p[m] and x[m] < 2:
                    y[m] += k
    """,
    "the others are minus zero from zero": """
        for m in range(8):
            y[m] = 0
            for k in range(8):
                y[m] += where(k == p[m], x[k], -0.0)
    """,
    "a branch that skips": """
        for m in range(8):
            for k in range(8):
                if k == p[m]:
                    if x[k] > 0:
                        continue
                    y[m] = k
    """,
    "shifted": "y[i] = sum[k in range(7)](where(k == p[i], x[k + 1] + k, 0.0))",
    "doubled": "y[i] = sum[k in range(4)](where(k == p[i], x[2 * k + 1] * k, 0.0))",
    "up to a run-time length": """
        for m in range(8):
            for k in range(n):
                if k == p[m]:
                    y[m] = k
    """,
    "more has to hold in a sum": "y[i] = sum[k](a[i, k] if k == p[i] and x[k] > 0 else 0.0)",
    "the test is of something else": """
        for m in range(8):
            for k in range(8):
                if p[m] == q[m]:
                    y[m] += k
    """,
    "the place of a whole number depends on it": """
        for k in range(8):
            q[k] += where(k == p[0], k + 1, 0)
    """,
    "one place of two is a remainder": """
        for m in range(8):
            y[m] = 0
            for k in range(8):
                y[m] += where(k == p[m], x[k] * x[k % 3], 0.0)
    """,
    "a window that moves": """
        for m in range(4):
            for k in range(m, m + 4):
                if k == p[m]:
                    y[m] = x[k]
    """,
    "other stores before the start": """
        for m in range(8):
            z[m] = 1
            y[m] = 0
            for k in range(8):
                y[m] += where(k == p[m], x[k], 0.0)
    """,
    "what is found is looked up": "y[i] = sum[k](where(k == p[i], x[q[k]], 0.0))",
}
