"""Short loops whose tests depend on their rounds alone, and all that keeps them loops."""

TRAPS = {
    "neighbours": """
        for i in range(1, 7):
            s = 0.0
            for d in range(-1, 2):
                if d != 0:
                    s += x[i + d]
            y[i] = s
    """,
    "neighbours in two loops": """
        for i in range(1, 7):
            for j in range(1, 7):
                for d in range(-1, 2):
                    for e in range(-1, 2):
                        if d != 0 or e != 0:
                            b[i, j] += a[i + d, j + e]
    """,
    "places that are computed": """
        for i in range(8):
            for d in range(-1, 2):
                if d != 0:
                    y[i] += x[(p[i] + d) % 8]
    """,
    "places in two loops": """
        for i in range(8):
            for d in range(-1, 2):
                for e in range(-1, 2):
                    if d != 0 or e != 0:
                        b[i, i] += a[(p[i] + d) % 8, (q[i] + e) % 8]
    """,
    "all but one": """
        for i in range(1, 7):
            for d in range(-1, 2):
                for e in range(-1, 2):
                    if d == 0 and e == 0:
                        continue
                    b[i, i] -= a[i + d, i + e]
                    c[0] += 1
    """,
    "up to one": """
        for i in range(8):
            for d in range(5):
                y[i] += x[d]
                if d == 2:
                    break
                z[i] += d
    """,
    "one side or the other": """
        for d in range(4):
            if d % 2 == 0:
                y[d] = x[d]
            else:
                z[d] = x[d + 1]
    """,
    "downwards": """
        for d in range(5, -1, -2):
            if d < 4:
                y[d] = c[0]
            c[0] += d
    """,
    "the data breaks": """
        for d in range(4):
            if d > 0:
                y[d] = d
            if x[d] > 0.5:
                break
            z[d] = 1
    """,
    "the data goes on": """
        for d in range(4):
            if x[d] > 0.5:
                continue
            if d > 0:
                y[d] = d
    """,
    "the data decides": """
        for d in range(4):
            if x[d] > 0.5:
                y[d] = 1
            if d > n:
                z[d] = 1
    """,
    "a loop inside that is left": """
        for d in range(3):
            if d == 1:
                y[0] = 5
            for i in range(8):
                if x[i] > 0.8:
                    break
                z[i] += d
    """,
    "a loop inside that lasts": """
        for d in range(3):
            for i in range(d, n + 5):
                t = x[i] * d
                y[i] += t
            if d == 0:
                z[0] = 1
    """,
    "a test on both sides": """
        for i in range(8):
            for d in range(3):
                if i > d:
                    y[i] += x[i - d]
    """,
    "none of the rounds": """
        for d in range(3, 3):
            if d > 0:
                y[d] = 1
    """,
    "many rounds": """
        for d in range(8):
            for e in range(8):
                if d == e:
                    b[d, e] = 1
    """,
    "a count in a loop that is left": """
        while c[0] < 3:
            for d in range(3):
                if d == 1:
                    c[0] += 1
    """,
}
