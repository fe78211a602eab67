"""Softmax, layer norm and attention, written in several ways."""

from __future__ import annotations

from .variant import Variant

VARIANTS = (
    Variant(
        "softmax with keepdims",
        """
        m = x.max(axis=1, keepdims=True)
        e = np.exp(x - m)
        return e / e.sum(axis=1, keepdims=True)
        """,
        {"x": "f32[64, 128]"},
        ("e",),
    ),
    Variant(
        "softmax into an argument",
        """
        z = x - np.max(x, axis=-1, keepdims=True)
        num = np.exp(z)
        den = np.sum(num, axis=-1, keepdims=True)
        y[...] = num / den
        """,
        {"y": "f32[64, 128]", "x": "f32[64, 128]"},
        ("num",),
    ),
    Variant(
        "softmax in place",
        """
        x -= x.max(axis=1)[:, None]
        np.exp(x, out=x)
        x /= x.sum(axis=1)[:, None]
        """,
        {"x": "f32[64, 128]"},
        (),
    ),
    Variant(
        "softmax of columns",
        """
        m = x.max(axis=0)
        e = np.exp(x - m)
        return e / e.sum(axis=0)
        """,
        {"x": "f32[64, 128]"},
        ("m", "total"),
    ),
    Variant(
        "softmax row by row",
        """
        for i in range(x.shape[0]):
            row = x[i]
            e = np.exp(row - row.max())
            y[i] = e / e.sum()
        """,
        {"y": "f32[64, 128]", "x": "f32[64, 128]"},
        ("e",),
    ),
    Variant(
        "softmax in scalar loops",
        """
        for i in range(x.shape[0]):
            m = x[i, 0]
            for j in range(x.shape[1]):
                m = max(m, x[i, j])
            s = 0.0
            for j in range(x.shape[1]):
                y[i, j] = np.exp(x[i, j] - m)
                s += y[i, j]
            for j in range(x.shape[1]):
                y[i, j] /= s
        """,
        {"y": "f32[64, 128]", "x": "f32[64, 128]"},
        (),
    ),
    Variant(
        "log softmax",
        """
        m = x.max(axis=1, keepdims=True)
        z = x - m
        return z - np.log(np.exp(z).sum(axis=1, keepdims=True))
        """,
        {"x": "f32[64, 128]"},
        ("z",),
    ),
    Variant(
        "layer norm with var",
        """
        mu = x.mean(axis=-1, keepdims=True)
        var = x.var(axis=-1, keepdims=True)
        return (x - mu) / np.sqrt(var + 1e-5) * gamma + beta
        """,
        {"x": "f32[64, 128]", "gamma": "f32[128]", "beta": "f32[128]"},
        (),
    ),
    Variant(
        "layer norm with a centred copy",
        """
        mu = np.mean(x, axis=1)
        d = x - mu[:, None]
        var = np.mean(d ** 2, axis=1)
        xhat = d / np.sqrt(var + 1e-5)[:, None]
        y[...] = gamma * xhat + beta
        """,
        {"y": "f32[64, 128]", "x": "f32[64, 128]", "gamma": "f32[128]", "beta": "f32[128]"},
        ("d",),
    ),
    Variant(
        "layer norm with std",
        """
        y[:] = (x - x.mean(1, keepdims=True)) / (x.std(1, keepdims=True) + 1e-5) * gamma + beta
        """,
        {"y": "f32[64, 128]", "x": "f32[64, 128]", "gamma": "f32[128]", "beta": "f32[128]"},
        (),
    ),
    Variant(
        "layer norm row by row",
        """
        n = x.shape[1]
        for i in range(x.shape[0]):
            row = x[i]
            mu = row.sum() / n
            var = ((row - mu) ** 2).sum() / n
            y[i] = gamma * (row - mu) / np.sqrt(var + 1e-5) + beta
        """,
        {"y": "f32[64, 128]", "x": "f32[64, 128]", "gamma": "f32[128]", "beta": "f32[128]"},
        (),
    ),
    Variant(
        "layer norm with a reciprocal",
        """
        mu[i] = sum(x[i, j]) / x.shape[1]
        var[i] = sum((x[i, j] - mu[i]) ** 2) / x.shape[1]
        inv[i] = 1 / sqrt(var[i] + 1e-5)
        xhat[i, j] = (x[i, j] - mu[i]) * inv[i]
        y[i, j] = xhat[i, j] * gamma[j] + beta[j]
        """,
        {"y": "f32[64, 128]", "x": "f32[64, 128]", "gamma": "f32[128]", "beta": "f32[128]"},
        (),
    ),
    Variant(
        "attention",
        """
        s = q @ k.T / np.sqrt(np.float32(q.shape[1]))
        s = s - s.max(axis=1, keepdims=True)
        e = np.exp(s)
        p = e / e.sum(axis=1, keepdims=True)
        return p @ v
        """,
        {"q": "f32[64, 16]", "k": "f32[64, 16]", "v": "f32[64, 16]"},
        ("s", "e", "p"),
    ),
    Variant(
        "attention scores",
        """
        s = (q @ k.T) * 0.25
        e = np.exp(s - s.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)
        """,
        {"q": "f32[64, 16]", "k": "f32[64, 16]"},
        ("s", "e"),
    ),
    Variant(
        "attention with einsum",
        """
        s = np.einsum('bhid,bhjd->bhij', q, k) * 0.25
        m = s.max(axis=-1, keepdims=True)
        e = np.exp(s - m)
        p = e / e.sum(axis=-1, keepdims=True)
        return np.einsum('bhij,bhjd->bhid', p, v)
        """,
        {"q": "f32[2, 3, 32, 16]", "k": "f32[2, 3, 32, 16]", "v": "f32[2, 3, 32, 16]"},
        ("s", "e", "p"),
    ),
    Variant(
        "attention with a mask",
        """
        n = q.shape[0]
        s = q @ k.T * 0.25
        mask = np.tril(np.ones((n, n)))
        s = np.where(mask == 0, -np.inf, s)
        e = np.exp(s - s.max(axis=1, keepdims=True))
        o[...] = (e @ v) / e.sum(axis=1, keepdims=True)
        """,
        {"o": "f32[64, 16]", "q": "f32[64, 16]", "k": "f32[64, 16]", "v": "f32[64, 16]"},
        ("s", "e"),
    ),
    Variant(
        "attention scores by index",
        """
        s[i, j] = sum(q[i, d] * k[j, d]) * 0.25
        m[i] = max(s[i, j])
        e[i, j] = exp(s[i, j] - m[i])
        z[i] = sum(e[i, j])
        p[i, j] = e[i, j] / z[i]
        """,
        {"p": "f32[64, 64]", "q": "f32[64, 16]", "k": "f32[64, 16]"},
        ("s", "e"),
    ),
)
