"""Arrays that may share memory, and arrays that must not."""

TRAPS = {
    "one after the other": "t[i] = sum(a[i, j])\nu[i] = max(a[i, j] - t[i])\n"
    "v[i] = max(a[i, j] - u[i])\ny[i] = v[7 - i]",
    "both at once": "t[i] = sum(a[i, j])\nu[i] = max(a[i, j] - t[7 - i])\n"
    "v[i] = max(a[i, j] - u[7 - i])\ny[i] = v[7 - i] + t[i]",
    "needed in the next round": """
        t[i] = sum(a[i, j])
        for s in range(3):
            u[i] = max(a[i, j] - t[7 - i])
            v[i] = max(a[i, j] - u[7 - i])
            y[i] += v[7 - i]
            t[i] = u[7 - i]
    """,
    "zeros at the start": "t[i] = sum(a[i, j])\ny[i] = t[7 - i]\nv: f64[8]\n"
    "if i > 2:\n    v[i] = max(a[i, j])\nz[i] = v[7 - i]",
    "zeros for an update": "t[i] = sum(a[i, j])\ny[i] = t[7 - i]\nv: f64[8]\n"
    "v[i] += a[i, j]\nz[i] = v[7 - i]",
    "other types": "t[i] = sum(a[i, j])\ny[i] = t[7 - i]\nv[i] = argmax[j](a[i, j])\n"
    "q[i] = v[7 - i]",
    "moved": """
        t[i] = sum(a[i, j])
        y[i] = t[7 - i]
        u[i] = x[i]
        w[i] = x[i] * 2
        for s in range(3):
            w[i] = u[7 - i] * 2
            u, w = w, u
        z[i] = u[7 - i]
    """,
    "in branches": """
        if c[0] > 0:
            t[i] = sum(a[i, j])
            y[i] = t[7 - i]
            u[i] = max(a[i, j])
            z[i] = u[7 - i]
    """,
    "read once before": """
        t: f64[8]
        v[i] = sum(a[i, j])
        for s in range(2):
            y[i] += t[7 - i] + v[7 - i]
            t[i] = max(a[i, j]) + s
    """,
    "in branches of a loop": """
        for s in range(3):
            if x[s] > 0:
                t[i] = sum(a[i, j])
                y[i] += t[7 - i]
            else:
                u[i] = max(a[i, j])
                z[i] += u[7 - i]
    """,
    "on both sides": """
        t: f64[8]
        if c[0] > 0:
            t[i] = sum(a[i, j])
        else:
            t[i] = max(a[i, j])
        y[i] = t[7 - i]
    """,
    "on both sides of a loop": """
        for s in range(3):
            t: f64[8]
            if x[s] > 0:
                t[i] = sum(a[i, j])
            else:
                t[i] = max(a[i, j])
            y[i] += t[7 - i]
            u[i] = x[i] * s
            z[i] += u[7 - i]
    """,
    "in two loops": """
        for s in range(3):
            t[i] = sum(a[i, j])
            y[i] += t[7 - i]
        for s in range(2):
            u[i] = max(a[i, j])
            z[i] += u[7 - i]
    """,
    "in loops in loops": """
        for s in range(3):
            t[i] = sum(a[i, j])
            for h in range(2):
                u[i] = t[7 - i] * x[i] * h
                y[i] += u[7 - i]
            v[i] = max(a[i, j])
            z[i] += v[7 - i]
    """,
    "of three sizes": """
        t[i, j] = a[j, i] * 2
        u[i] = t[i, 7 - i]
        v[i, j] = a[i, j] + u[7 - i]
        y[i] = v[7 - i, i]
        w[i] = x[i] * 2
        z[i] = w[7 - i]
    """,
    "storage in rounds": """
        for k in range(1, 8):
            t = x[:k] * 2
            y[:k] = t[::-1]
            u = x[k:] + 1
            z[k:] = u[::-1]
    """,
    "storage of the smaller size": """
        for k in range(1, 8):
            t = x[: min(k, 5)] * 2
            y[: min(k, 5)] = t[::-1]
    """,
    "storage of the smaller of a half": """
        for k in range(1, 8):
            t = x[: min(k // 2, 5)] * 2
            y[: min(k // 2, 5)] = t[::-1]
    """,
    "storage of the size of a difference": """
        for k in range(0, 8):
            for m in range(k, 8):
                t = x[k : m + 1] * 2
                y[k : m + 1] = t[::-1]
    """,
    "storage that data sizes": "h = p[0] % 8\nt = x[:h] * 2\ny[:h] = t[::-1]",
    "two that come home": """
        u[i] = x[i]
        w[i] = x[i] * 2
        for k in range(3):
            u, w = w, u
        return u, w
    """,
    "one that comes home": """
        u[i] = x[i]
        w[i] = x[i] * 2
        for k in range(3):
            u, w = w, u
        y[i] = w[i]
        return u
    """,
    "numbers that trade places": """
        s = x[0]
        h = x[1]
        for k in range(3):
            s, h = h, s
        y[0] = s
    """,
    "storage that trades places": """
        for k in range(1, 5):
            u = x[:k] * 2
            w = z[:k] + 1
            for m in range(3):
                u, w = w, u
            y[:k] = u + w
    """,
    "storage that data sizes trades places": """
        h = p[0] % 8
        for k in range(1, 5):
            u = x[:h] * 2
            w = z[:h] + 1
            for m in range(3):
                u, w = w, u
            y[:h] = u + w
    """,
    "storage that trades places once": """
        h = p[0] % 8
        u = x[:h] * 2
        w = z[:5] + 1
        u, w = w, u
        y[:5] = u
        z[:h] = w
    """,
    "only numbers": "s = x[0] * 2\ny[0] = s",
    "nothing": "y[i] = x[i]",
}
