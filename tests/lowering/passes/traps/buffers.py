"""Arrays that may share memory, and arrays that must not."""

BUFFERS = {
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
}
