"""Programs as they are written in the field, each of which returns one number."""

from __future__ import annotations

from typing import Any

import numpy as np

from plusequals import cd


@cd
def cross_entropy(x: Any, w: Any, b: Any, labels: Any) -> Any:
    z = x @ w + b
    z = z - z.max(axis=1, keepdims=True)
    logs = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    return -np.mean(logs[np.arange(len(labels)), labels])


@cd
def layer_norm(x: Any, gain: Any, bias: Any, weights: Any) -> Any:
    mean = x.mean(axis=-1, keepdims=True)
    variance = x.var(axis=-1, keepdims=True)
    y = (x - mean) / np.sqrt(variance + 1e-5) * gain + bias
    return np.sum(y * weights)


@cd
def attention(x: Any, wq: Any, wk: Any, wv: Any) -> Any:
    q, k, v = x @ wq, x @ wk, x @ wv
    scores = q @ k.T / np.sqrt(2.0)
    mask = np.tril(np.ones((4, 4)))
    scores = np.where(mask > 0, scores, -1e9)
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    return np.sum(np.tanh(p @ v) ** 2)


@cd
def convolution_by_letters(image: Any, kernel: Any, weights: Any) -> Any:
    y[i, j] = sum(image[i + p, j + q] * kernel[p, q])
    return np.sum(np.maximum(y, 0.1) * weights)


@cd
def convolution_by_slices(image: Any, kernel: Any, weights: Any) -> Any:
    y = np.zeros((3, 4))
    for p in range(kernel.shape[0]):
        for q in range(kernel.shape[1]):
            y += kernel[p, q] * image[p : p + 3, q : q + 4]
    return np.sum(np.maximum(y, 0.1) * weights)


@cd
def lstm(xs: Any, w: Any, u: Any, b: Any) -> Any:
    h = np.zeros(2)
    c = np.zeros(2)
    for t in range(xs.shape[0]):
        z = w @ xs[t] + u @ h + b
        gate = 1 / (1 + np.exp(-z[:6]))
        c = gate[:2] * c + gate[2:4] * np.tanh(z[6:])
        h = gate[4:6] * np.tanh(c)
    return np.sum(h * h)


@cd
def conjugate_gradient(a: Any, b: Any) -> Any:
    m = a.T @ a + 4.0 * np.eye(4)
    x = np.zeros(4)
    r = b - m @ x
    p = r.copy()
    rr = r @ r
    for _ in range(30):
        mp = m @ p
        alpha = rr / (p @ mp + 1e-30)
        x = x + alpha * p
        r = r - alpha * mp
        new = r @ r
        p = r + new / (rr + 1e-30) * p
        rr = new
    return np.sum(x * x)


@cd
def runge_kutta(y0: Any, rates: Any) -> Any:
    y = y0.copy()
    h = 0.05
    for _ in range(50):
        k1 = flow(y, rates)
        k2 = flow(y + h / 2 * k1, rates)
        k3 = flow(y + h / 2 * k2, rates)
        k4 = flow(y + h * k3, rates)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return np.sum(y * y)


@cd
def flow(y: Any, rates: Any) -> Any:
    predators = rates[2] * y[0] * y[1] - rates[3] * y[1]
    return np.array([rates[0] * y[0] - rates[1] * y[0] * y[1], predators])


@cd
def n_body(x: Any, v: Any, m: Any) -> Any:
    kinetic = 0.5 * sum(m[i] * v[i, k] * v[i, k])
    d[i, j] = sum[k]((x[i, k] - x[j, k]) ** 2)
    potential = sum[i, j](m[i] * m[j] / sqrt(d[i, j]) if i < j else 0.0)
    return kinetic - potential


@cd
def kalman(ys: Any, a: Any, c: Any, q: Any, r: Any) -> Any:
    x = np.zeros(2)
    p = np.eye(2)
    total = 0.0
    for t in range(ys.shape[0]):
        x = a @ x
        p = a @ p @ a.T + q @ q.T
        s = c @ p @ c.T + r @ r.T
        error = ys[t] - c @ x
        inverse = np.linalg.inv(s)
        total = total + 0.5 * (error @ inverse @ error + np.log(np.linalg.det(s)))
        gain = p @ c.T @ inverse
        x = x + gain @ error
        p = p - gain @ c @ p
    return total


@cd
def needleman_wunsch(scores: Any, gap: Any) -> Any:
    n, m = scores.shape
    d = np.zeros((n + 1, m + 1))
    for i in range(1, n + 1):
        d[i, 0] = d[i - 1, 0] - gap
    for j in range(1, m + 1):
        d[0, j] = d[0, j - 1] - gap
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            across = d[i - 1, j - 1] + scores[i - 1, j - 1]
            gaps = np.logaddexp(d[i - 1, j] - gap, d[i, j - 1] - gap)
            d[i, j] = np.logaddexp(across, gaps)
    return d[n, m]


@cd
def wave(u0: Any, speed: Any) -> Any:
    old = u0.copy()
    now = u0.copy()
    new = np.zeros(8)
    for _ in range(12):
        new[1:-1] = (
            2 * now[1:-1] - old[1:-1] + speed[1:-1] ** 2 * (now[2:] - 2 * now[1:-1] + now[:-2])
        )
        old, now, new = now, new, old
    return np.sum(now * now)


@cd
def gaussian_by_cholesky(x: Any, mean: Any, a: Any) -> Any:
    covariance = a @ a.T + np.eye(3)
    factor = np.linalg.cholesky(covariance)
    z = np.linalg.solve(factor, x - mean)
    return 0.5 * (z @ z) + np.sum(np.log(np.diag(factor)))


@cd
def mixture(x: Any, logits: Any, means: Any, scales: Any) -> Any:
    peak = logits.max()
    weights = logits - peak - np.log(np.sum(np.exp(logits - peak)))
    t[n, k] = weights[k] - 0.5 * ((x[n] - means[k]) / exp(scales[k])) ** 2 - scales[k]
    top[n] = max[k](t[n, k])
    s[n] = sum[k](exp(t[n, k] - top[n]))
    return -np.mean(top + np.log(s))


@cd
def hidden_markov(start: Any, moves: Any, emits: Any, seen: Any) -> Any:
    alpha = start * emits[:, seen[0]]
    total = np.log(alpha.sum())
    alpha = alpha / alpha.sum()
    for t in range(1, len(seen)):
        alpha = (alpha @ moves) * emits[:, seen[t]]
        total = total + np.log(alpha.sum())
        alpha = alpha / alpha.sum()
    return -total


@cd
def bilinear(image: Any, at: Any) -> Any:
    total = 0.0
    for k in range(at.shape[0]):
        p = int(np.floor(at[k, 0]))
        q = int(np.floor(at[k, 1]))
        s = at[k, 0] - p
        t = at[k, 1] - q
        above = (1 - t) * image[p, q] + t * image[p, q + 1]
        below = (1 - t) * image[p + 1, q] + t * image[p + 1, q + 1]
        value = (1 - s) * above + s * below
        total = total + value * value
    return total


@cd
def bilinear_at_once(image: Any, at: Any) -> Any:
    p = np.floor(at[:, 0]).astype(np.int64)
    q = np.floor(at[:, 1]).astype(np.int64)
    s, t = at[:, 0] - p, at[:, 1] - q
    value = (1 - s) * ((1 - t) * image[p, q] + t * image[p, q + 1])
    value = value + s * ((1 - t) * image[p + 1, q] + t * image[p + 1, q + 1])
    return np.sum(value * value)


@cd
def embedding(table: Any, words: Any, links: Any) -> Any:
    e = table[words]
    sums = np.zeros((3, 2))
    np.add.at(sums, links, e * e)
    return np.sum(np.tanh(sums) * sums)


RNG = np.random.default_rng(11)


def _n(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape) * 0.6


def _p(*shape: int) -> np.ndarray:
    return RNG.random(shape) + 0.3


FIELD: dict[str, tuple[Any, tuple[Any, ...], tuple[str, ...]]] = {
    "softmax cross entropy": (
        cross_entropy, (_n(4, 3), _n(3, 5), _n(5), np.array([0, 3, 4, 1])), ("x", "w", "b")),
    "layer norm": (
        layer_norm, (_n(3, 5), _n(5), _n(5), _n(3, 5)), ("x", "gain", "bias")),
    "attention": (attention, (_n(4, 3), _n(3, 2), _n(3, 2), _n(3, 2)), ("x", "wq", "wk", "wv")),
    "convolution by letters": (
        convolution_by_letters, (_n(5, 6), _n(3, 3), _n(3, 4)), ("image", "kernel")),
    "convolution by slices": (
        convolution_by_slices, (_n(5, 6), _n(3, 3), _n(3, 4)), ("image", "kernel")),
    "an LSTM": (lstm, (_n(5, 3), _n(8, 3), _n(8, 2), _n(8)), ("xs", "w", "u", "b")),
    "conjugate gradient": (conjugate_gradient, (_n(4, 4), _n(4)), ("a", "b")),
    "Runge and Kutta": (
        runge_kutta, (np.array([1.0, 0.5]), np.array([1.1, 0.4, 0.1, 0.4])), ("y0", "rates")),
    "the energy of n bodies": (n_body, (_n(5, 3), _n(5, 3), _p(5)), ("x", "v", "m")),
    "a Kalman filter": (
        kalman, (_n(3, 2), _n(2, 2), _n(2, 2), _n(2, 2), _n(2, 2) + np.eye(2)),
        ("ys", "a", "c", "q", "r")),
    "a soft alignment": (needleman_wunsch, (_n(4, 5), 0.4), ("scores", "gap")),
    "a wave": (wave, (_n(8), _p(8)), ("u0", "speed")),
    "a Gaussian by Cholesky": (gaussian_by_cholesky, (_n(3), _n(3), _n(3, 3)), ("x", "mean", "a")),
    "a mixture": (
        mixture, (_n(6), _n(3), _n(3), _n(3)), ("x", "logits", "means", "scales")),
    "a hidden Markov model": (
        hidden_markov, (_p(3), _p(3, 3), _p(3, 4), np.array([0, 2, 1, 3, 3])),
        ("start", "moves", "emits")),
    "bilinear interpolation": (bilinear, (_n(5, 6), _p(4, 2) * 3), ("image", "at")),
    "bilinear interpolation at once": (
        bilinear_at_once, (_n(5, 6), _p(4, 2) * 3), ("image", "at")),
    "an embedding": (
        embedding, (_n(6, 2), np.array([0, 5, 5, 2]), np.array([2, 0, 2, 1])), ("table",)),
}  # fmt: skip
