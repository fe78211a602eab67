"""What the worked examples mean, in NumPy and independently of the notation."""

from __future__ import annotations

import numpy as np


def gemm_ab(c, a, b, alpha, beta):
    c[...] = beta * c + alpha * (a @ b)


def conv2d(y, x, w, bias, stride, p):
    padded = np.pad(x, ((0, 0), (0, 0), (p, p), (p, p)))
    rows, cols = w.shape[2:]
    for h, v in np.ndindex(y.shape[2:]):
        window = padded[:, :, h * stride : h * stride + rows, v * stride : v * stride + cols]
        y[:, :, h, v] = np.tensordot(window, w, ([1, 2, 3], [1, 2, 3])) + bias


def conv1d_valid(x, w):
    n = x.size - w.size + 1
    return np.array([np.sum(x[i : i + w.size] * w) for i in range(n)])


def softmax(y, x):
    if x.size:
        e = np.exp(x - x.max(axis=1, keepdims=True))
        y[...] = e / e.sum(axis=1, keepdims=True)


def attention(o, q, k, v, scale):
    for h, i in np.ndindex(o.shape[:2]):
        s = scale * (k[h, : i + 1] @ q[h, i])
        e = np.exp(s - s.max())
        o[h, i] = (e @ v[h, : i + 1]) / e.sum()


def jacobi(a, steps):
    for _ in range(steps):
        a[1:-1, 1:-1] = 0.25 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])


def cholesky(L, a, n):
    L[...] = np.linalg.cholesky(a)


def lu(a, n):
    for k in range(n):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])


def histogram(h, x, w):
    np.add.at(h, x, w)


def embed(y, table, ids):
    y[...] = table[ids]


def maxpool(y, x, k):
    for c, h, v in np.ndindex(y.shape):
        y[c, h, v] = x[c, h * k : h * k + k, v * k : v * k + k].max()


def layernorm(y, x, gamma, beta, eps):
    mu, var = x.mean(axis=1, keepdims=True), x.var(axis=1, keepdims=True)
    y[...] = (x - mu) / np.sqrt(var + eps) * gamma + beta


def cumsum(y, x):
    y[...] = np.cumsum(x)


def assign(label, pts, cen):
    for n, point in enumerate(pts):
        label[n] = np.argmin(((point - cen) ** 2).sum(axis=1))


def advect(u, c, steps):
    for _ in range(steps):
        u[...] = u - c * (u - np.roll(u, 1))


def dot_f64(out, a, b):
    out[0] = np.sum((a * b).astype(np.float64))
