"""Work that may leave a loop, and work that must not."""

TRAPS = {
    "it is written in the loop": "for k in range(8):\n    y[k] = exp(x[0])\n    x[0] = y[k]",
    "it is written after": "for k in range(7):\n    y[k] = sqrt(abs(x[k]))\n    x[k + 1] += y[k]",
    "it needs the loop": "y[i] = exp(x[i]) * exp(c[0])",
    "a number of the loop": "for k in range(8):\n    h = p[k]\n    y[k] = exp(x[h]) * h",
    "a check comes first": """
        for k in range(8):
            assert x[0] < 2
            y[k] = exp(x[int(abs(x[0]))])
    """,
    "only in one branch": """
        for k in range(8):
            if x[k] > 0:
                y[k] = exp(x[0]) * 2
                x[0] = 0
    """,
    "it may not run": "for k in range(n):\n    y[k] = exp(x[p[0]])",
    "named in the loop": """
        for k in range(8):
            t = exp(c[0])
            y[k] = t * x[k]
            t = exp(c[0]) + 1
            z[k] = t
    """,
    "a name used before": """
        t = 0.0
        for k in range(8):
            y[k] = t
            t = exp(c[0])
            z[k] = t
    """,
    "a name used after": """
        t = 0.0
        for k in range(n):
            t = exp(c[0])
            y[k] = t
        z[i] = t
    """,
    "loops after one another": """
        for k in range(8):
            y[k] = exp(c[0])
        c[0] = 2
        for m in range(8):
            z[m] = exp(c[0])
    """,
    "a while loop": """
        s = 0
        while s < 3:
            y[s] = exp(c[0])
            c[0] += 1
            s += 1
    """,
    "left before": """
        for k in range(8):
            if x[k] > 1:
                break
            y[k] = sqrt(abs(c[0])) * x[k]
    """,
    "an array with one value": """
        t: f64[2]
        for k in range(8):
            t[0] = exp(c[0])
            y[k] = t[0] * x[k]
    """,
    "loops in both sides": """
        for m in range(2):
            if x[m] > 0:
                for k in range(8):
                    y[k] = exp(c[0]) * k
            else:
                for k in range(8):
                    z[k] = exp(c[0]) + k
    """,
    "two loops with one name": """
        for k in range(8):
            t = exp(c[0])
            y[k] = t
        for m in range(8):
            u = exp(c[0])
            z[m] = u
    """,
    "a name that starts as zero": """
        t: f64
        for k in range(8):
            y[k] = t
            t = exp(c[0])
    """,
    "a name with a use behind the loop": """
        t: f64
        for k in range(8):
            t = exp(c[0])
            y[k] = t
        z[0] = t
    """,
    "tests": """
        for k in range(8):
            if c[0] * 2 > 1:
                y[k] = 1
            if x[k] > c[0] * 3:
                y[k] += 2
    """,
    "choices": "for k in range(8):\n    y[k] = x[k] if c[0] * 2 > x[k] else c[0] * 3",
    "sums": "for k in range(8):\n    y[k] += x[k] * exp(c[0]) + x[k] * (c[0] + 1)",
    "sums of scalars": "h = c[0] + 1\nfor k in range(8):\n    y[k] += x[k] * (h * 2)",
    "loops inside of loops": """
        for k in range(8):
            for m in range(8):
                b[k, m] = exp(x[k]) * sqrt(abs(c[0])) * a[k, m]
    """,
    "backwards": "for k in range(7, -1, -1):\n    y[k] = exp(c[0]) * x[k]",
    "printed": "for k in range(3):\n    print(exp(c[0]) * 2)",
    "a loop in a while loop": """
        s = 0
        while s < 3:
            for k in range(8):
                y[k] = exp(c[0]) + s
            s += 1
    """,
    "the same in loops one after another": """
        for k in range(8):
            for m in range(8):
                a[k, m] = b[k, m] * sqrt(c[0])
        for k in range(8):
            for m in range(7):
                b[k, m] = a[k, m] + sqrt(c[0]) * exp(sqrt(c[0]))
        for k in range(7):
            for m in range(6):
                a[k, m] = b[k, m] - exp(sqrt(c[0]))
    """,
    "the same in loops one after another, until it changes": """
        for k in range(8):
            for m in range(8):
                a[k, m] = b[k, m] * sqrt(c[0])
        c[0] = c[0] + 1
        for k in range(8):
            for m in range(7):
                b[k, m] = a[k, m] + sqrt(c[0])
    """,
}
