"""Tests, loops and indices that are decided, and those that are not."""

TRAPS = {
    "no rounds": "for k in range(3, 3):\n    y[k] = 1\nz[i] = x[i]",
    "one round": "for k in range(3, 4):\n    y[k] = x[k]\nz[i] = x[i]",
    "one round by steps": "for k in range(3, 5, 2):\n    y[k] = x[k]\nz[i] = x[i]",
    "two rounds by steps": "for k in range(3, 6, 2):\n    y[k] = x[k]\nz[i] = x[i]",
    "one round backwards": "for k in range(3, 2, -1):\n    y[k] = x[k]\nz[i] = x[i]",
    "no round backwards": "for k in range(3, 4, -1):\n    y[k] = x[k]\nz[i] = x[i]",
    "one round that is left": """
        for k in range(3, 4):
            if x[k] > 0:
                continue
            y[k] = 1
    """,
    "one round with a loop that is left": """
        for k in range(3, 4):
            for m in range(8):
                if x[m] > 1:
                    break
                y[m] = k
    """,
    "decided tests": """
        for k in range(4):
            if k < 4:
                y[k] = 1
            else:
                y[k] = 2
            if k > 3:
                z[k] = 1
            elif k < 2:
                z[k] = 2
    """,
    "a test tells its sides": """
        for k in range(8):
            if k < 3:
                y[k] = x[min(k, 2)]
            else:
                y[k] = x[max(k, 3)] + x[min(k, 3)]
    """,
    "a while that never runs": "s = 5\nwhile s < 3:\n    s += 1\ny[0] = s",
    "a decided check": "for k in range(8):\n    assert k < 8\n    y[k] = x[k]",
    "a check tells what follows": """
        for k in range(8):
            assert p[k] < 6
            y[k] = x[min(p[k], 5)]
    """,
    "remainders": "y[i] = x[i % 8] + x[(i + 8) % 8] + x[i // 8]",
    "a while that is decided": "s = 0\nwhile False:\n    s += 1\ny[0] = s",
    "a while with remainders": """
        s = 0
        while s * 1 < 3:
            y[s % 8] = x[s] * 1.0
            s += 1
    """,
    "sums with remainders": "for k in range(8):\n    y[k % 8] += x[k] * 1.0",
    "unknown length": "for k in range(n):\n    y[0] += x[0] * 1.0",
    "backwards with remainders": "for k in range(7, -1, -1):\n    y[k % 8] = x[k] / 2.0",
    "backwards by two": "for k in range(7, 3, -2):\n    y[k] = x[min(k, 7)]",
    "other sides": """
        for k in range(8):
            if k >= 5:
                y[k] = x[max(k, 5)]
            else:
                y[k] = x[min(k, 4)] + x[max(k, 5)]
    """,
    "at most one round": "for m in range(2):\n    for k in range(m):\n        y[k] += x[m]",
    "stores of what is there": "y[i] = y[i]\nz[i] = z[7 - i]\nx[i] = x[i] + 0.0",
    "stores of what is there, behind a change": """
        for k in range(8):
            y[k] = x[k]
            y[k] = y[k]
            z[k] = y[p[k]]
            z[p[k]] = z[p[k]]
    """,
}
