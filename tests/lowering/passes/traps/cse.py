"""Work that is the same twice, and work that only looks so."""

TRAPS = {
    "what it reads changes": "y[i] = x[i] * c[0]\nc[0] = 2\nz[i] = x[i] * c[0]",
    "in a loop that changes it": """
        for k in range(7):
            y[k] = x[k] * z[k]
            x[k] = x[k] * z[k] + 1
            z[k] = x[k] * z[k]
    """,
    "only one side computes": """
        for k in range(8):
            if x[k] > 0:
                y[k] = x[k] * z[k]
            z[k] = x[k] * z[k]
    """,
    "a side changes it": """
        for k in range(8):
            y[k] = x[k] * c[0]
            if x[k] > 0:
                c[0] = x[k]
            z[k] = x[k] * c[0]
    """,
    "a loop changes it": """
        for k in range(8):
            y[k] = x[k] * c[0]
            for m in range(2):
                z[k] += x[k] * c[0]
                c[0] += 1
            y[k] += x[k] * c[0]
    """,
    "a test of a while": """
        s = 0.0
        c[0] = abs(c[0]) + 1
        while s * c[0] < 3:
            y[0] = s * c[0]
            s += 1
            y[1] = s * c[0]
    """,
    "zeros of two signs": "y[i] = (x[i] + 0.0) * (x[i] + -0.0)",
    "looked up twice": "y[i] = x[p[i]] * x[p[i]]\np[i] = 7 - p[i]\nz[i] = x[p[i]]",
    "checked, then used": """
        for k in range(8):
            assert x[k] * z[k] < 5
            y[k] = x[k] * z[k]
            x[k] = 1
            assert x[k] * z[k] < 2
    """,
    "numbers of the loop": """
        for k in range(4):
            h = p[k]
            y[k] = x[k] * h
            z[k] = x[k] * h + k * h
    """,
    "both sides": """
        for k in range(8):
            if x[k] * z[k] > 0:
                y[k] = x[k] * z[k]
            else:
                y[k] = x[k] * z[k] + 1
    """,
    "in the body of a while": """
        s = 0.0
        while s < 3:
            y[0] = exp(c[0]) * exp(c[0])
            s += 1
            z[0] = exp(c[0])
    """,
    "before a while that changes it": """
        s = 0.0
        y[0] = exp(c[0])
        while s < 3:
            z[0] += exp(c[0])
            c[0] = s
            s += 1
    """,
    "sides of a choice": "y[i] = x[i] * z[i] if x[i] > 0 else x[i] * z[i] + 1",
    "a choice after": "y[i] = exp(x[i]) + (exp(x[i]) if x[i] > 0 else 1.0)",
    "a message": """
        for k in range(8):
            if x[k] * z[k] > 5:
                raise ValueError(f"too large: {x[k] * z[k]}")
            y[k] = x[k] * z[k]
    """,
    "of positions": """
        for k in range(8):
            y[k] = (k * 2 + 1) * 0.5
            z[k] = (k * 2 + 1) * 0.5
    """,
    "converted": "for k in range(8):\n    y[k] = f64(p[k])\n    z[k] = f64(p[k]) + 1",
    "single loads": "for k in range(8):\n    y[k] = x[k]\n    z[k] = x[k]",
    "a message that computes": """
        for k in range(8):
            if x[k] > 2:
                raise ValueError(f"{exp(x[k])} is {exp(x[k])}")
            y[k] = x[k]
    """,
    "zeros of two signs, and again": "y[i] = (x[i] + 0.0) * (x[i] + -0.0) * (x[i] + 0.0)",
}
