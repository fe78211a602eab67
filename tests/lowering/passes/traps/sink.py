"""Sums that may be accumulated where they are read, and sums that must not."""

TRAPS = {
    "mirrored": "t[i] = sum(a[i, j])\ny[i] = t[7 - i] * x[i] + 1",
    "shifted": "t[i] = sum(a[i, j])\ny[1:] = t[:-1]",
    "every second": "t[i] = sum(a[i, j])\ny[:4] = t[::2]",
    "the first ones": "t[i] = sum(a[i, j])\ny[:4] = t[:4]",
    "as they were": "t[i] = sum(a[i, j])\ny[i] = t[i]",
    "backwards as they were": """
        t[i] = sum(a[i, j])
        for k in range(7, -1, -1):
            y[k] = t[k]
    """,
    "one of them": "t[i] = sum(a[i, j])\ny[2] = t[3]",
    "two of them": "t[i] = sum(a[i, j])\ny[2] = t[3] - t[4]",
    "onto what is there": "t[i] = sum(a[i, j])\ny[i] += t[7 - i]",
    "transposed": "t[i, k] = sum[j](a[i, j] * b[k, j])\nc[0] = 1\na[i, k] = t[k, i]",
    "a block, transposed": """
        t[i, k] = sum[j](a[i, j] * b[k, j])

        for m in range(3):
            for h in range(5):
                z[m] = x[h]
                x[h] += t[h, m]
    """,
    "a row of many": "t[i, k] = sum[j](a[i, j] * b[k, j])\ny[k] = t[3, k]",
    "the diagonal": "t[i, k] = sum[j](a[i, j] * b[k, j])\ny[i] = t[i, i]",
    "twice at one place": "t[i] = sum(a[i, j])\ny[i] = t[7 - i] * t[7 - i]",
    "at two places": "t[i] = sum(a[i, j])\ny[i] = t[7 - i]\nz[i] = t[7 - i] * 2",
    "for each of a row": "t[i] = sum(a[i, j])\nb[i, j] = t[7 - i]",
    "the letter of the sum": "t[i] = sum(a[i, j])\ny[j] = t[7 - j]",
    "again in every round": """
        t[i] = sum(a[i, j])
        for k in range(3):
            y[i] += t[7 - i] * k
    """,
    "again in a while": """
        t[i] = sum(a[i, j])

        s = 0
        while s < 3:
            y[s] = t[7 - s]
            s += 1
    """,
    "in every round of its own": """
        for k in range(8):
            t[i] = sum(a[i, j] * x[k])
            b[k, i] = t[7 - i]
    """,
    "in a while of its own": """
        s = 0
        while s < 5:
            t[i] = sum(a[i, j] * x[s])
            y[i] += t[7 - i]
            s += 1
    """,
    "read in the next round": """
        t: f64[8]
        for k in range(3):
            y[i] += t[7 - i]
            t[i] = sum(a[i, j] * x[k])
    """,
    "read after its loop": """
        t: f64[8]
        for k in range(3):
            t[i] = sum(a[i, j] * x[k])
            z[i] += t[7 - i]
        y[i] = t[7 - i]
    """,
    "under a guard": "t[i] = sum(a[i, j])\nif x[i] > 0:\n    y[i] = t[7 - i]",
    "used by a test": """
        t[i] = sum(a[i, j])
        for k in range(8):
            if t[7 - k] > 0:
                y[k] = x[k]
    """,
    "used by a check": "t[i] = sum(a[i, j])\nassert t[2] < 9\ny[i] = x[i]",
    "used by a print": "t[i] = sum(a[i, j])\nprint(t[2])",
    "looked up": "t[i] = sum(a[i, j])\ny[i] = t[p[i] % 8]",
    "looked up once": "t[i] = sum(a[i, j])\nh = p[0] % 8\ny[0] = t[h]",
    "used by a place": "t[i] = sum[j](p[i] * q[j])\ny[t[7 - i] % 8] = x[i]",
    "as far as asked": """
        t[i] = sum(a[i, j])
        for k in range(n):
            y[k] = t[7 - k]
    """,
    "used by nobody": "t[i] = sum(a[i, j])\ny[i] = x[i]",
    "changed afterwards": "t[i] = sum(a[i, j])\nt[0] = 1\ny[i] = t[7 - i] + t[i]",
    "added to afterwards": "t[i] = sum(a[i, j])\nt[i] += x[i]\ny[i] = t[7 - i]",
    "only some are summed": "t: f64[8]\nt[1:] = np.sum(a[1:, :], axis=1)\ny[i] = t[7 - i]",
    "all but what starts elsewhere": """
        t: f64[8]
        for k in range(8):
            t[k] = 0
        for k in range(8):
            for m in range(8):
                t[k] += a[k, m]
        y[i] = t[7 - i]
    """,
    "the source is written between": "t[i] = sum(a[i, j])\na[0, 0] = 5\ny[i] = t[7 - i]",
    "the source is written at the use": "t[i] = sum(a[i, j])\na[i, 0] = t[7 - i]",
    "the source is written in the nest of the use": """
        t[i] = sum(a[i, j])

        for k in range(8):
            y[k] = t[7 - k]
            a[k, k] = 0
    """,
    "the source is written before": "a[0, 0] = 5\nt[i] = sum(a[i, j])\ny[i] = t[7 - i]",
    "the source is written after": "t[i] = sum(a[i, j])\ny[i] = t[7 - i]\na[0, 0] = 5",
    "the source is written elsewhere in the round": """
        for k in range(3):
            a[k, 0] = x[k]
            t[i] = sum(a[i, j])
            b[k, i] = t[7 - i]
            a[0, k] = 3
    """,
    "another source is written between": "t[i] = sum(a[i, j] * x[j])\nx[0] = 2\ny[i] = t[7 - i]",
    "what is not a source is written between": """
        t[i] = sum(a[i, j])
        x[0] = 2
        y[i] = t[7 - i] + x[i]
    """,
    "two after each other": """
        t[i] = sum(a[i, j])

        u[i] = max(b[i, j])
        y[i] = t[7 - i]
        z[i] = u[7 - i]
    """,
    "two at one place": "t[i] = sum(a[i, j])\nu[i] = max(b[i, j])\ny[i] = t[7 - i] / u[7 - i]",
    "one and not the other": """
        t[i] = sum(a[i, j])
        u[i] = max(b[i, j])
        y[i] = t[7 - i] / u[p[i] % 8]
    """,
    "a sum of sums": "t[i] = sum(a[i, j])\nu[i] = sum[j](t[7 - j] * a[i, j])\ny[i] = u[7 - i]",
    "a sum under a test": "t[i] = sum[j](a[i, j] if b[i, j] > 0 else 0.0)\ny[i] = t[7 - i]",
    "a triangle": "t[i] = sum[j in range(i)](a[i, j])\ny[i] = t[7 - i]",
    "no sum": "t[i] = x[i] * 2\ny[i] = t[7 - i]",
    "a position": "t[i] = argmax[j](a[i, j])\nq[i] = t[7 - i]",
    "a sum of one cell": "t = sum(x[i])\ny[i] = t * 2",
    "asked to be kept": "t[i] = sum(a[i, j])\nmemory(t, 'local')\ny[i] = t[7 - i]",
    "a guarded sum": """
        t: f64[8]
        for k in range(8):
            t[k] = 0
            for m in range(8):
                if a[k, m] > 0:
                    t[k] += a[k, m]
        y[i] = t[7 - i]
    """,
    "a sum that is left early": """
        t: f64[8]
        for k in range(8):
            t[k] = 0
            for m in range(8):
                if a[k, m] > 2:
                    break
                t[k] += a[k, m]
        y[i] = t[7 - i]
    """,
    "a sum with a check": """
        t: f64[8]
        for k in range(8):
            t[k] = 0
            for m in range(8):
                t[k] += a[k, m]
                assert a[k, m] < 3
        y[i] = t[7 - i]
    """,
    "two sums at once": """
        t: f64[8]
        for k in range(8):
            t[k] = 0
            for m in range(8):
                t[k] += a[k, m]
                t[k] += b[m, k]
        y[i] = t[7 - i]
    """,
    "a sum and another": """
        t: f64[8]
        for k in range(8):
            t[k] = 0
            for m in range(8):
                t[k] += a[k, m]
            z[k] = 1
        y[i] = t[7 - i]
    """,
    "a sum into other cells": """
        t: f64[8]
        for k in range(8):
            t[k] = 0
            for m in range(8):
                t[m] += a[k, m]
        y[i] = t[7 - i]
    """,
    "a sum of its own cells": """
        t: f64[8]
        for k in range(8):
            t[k] = 1
            for m in range(8):
                t[k] += a[k, m] * t[k]
        y[i] = t[7 - i]
    """,
    "a sum where data says": """
        t: f64[8]
        for k in range(8):
            t[p[k] % 8] = 0
            for m in range(8):
                t[p[k] % 8] += a[k, m]
        y[i] = t[7 - i]
    """,
    "a number of the last round": """
        for k in range(8):
            s = 0.0
            for m in range(8):
                s += a[k, m]
        y[0] = s
    """,
}
