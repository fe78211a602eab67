"""Valid functions that the fuzzer mutates, each with arguments that it takes."""

from __future__ import annotations

import numpy as np

import plusequals as pe
from tests.errors.case import Case, cases


def arguments(seed: Case) -> tuple[object, ...]:
    """Return new arguments for a seed; `a(3, 4)` in their text counts from one."""
    names = {"np": np, "pe": pe, "a": _counted}
    return tuple(eval(f"({seed.arguments},)", names))


def _counted(*shape: int) -> object:
    return np.arange(1.0, np.prod(shape) + 1).reshape(shape)


SEEDS: tuple[Case, ...] = tuple(
    cases(
        r"""
=== product: a(3, 5), a(3, 4), a(4, 5)
def f(y, a, x):
    y[i, j] = sum(a[i, k] * x[k, j])

=== accumulate: a(3, 5), a(3, 4), a(4, 5)
def f(y, a, x):
    y[i, j] += a[i, k] * x[k, j] - 2 * y[i, j]

=== matmul: a(3, 5), a(3, 4), a(4, 5)
def f(y, a, x):
    y[:] = a @ x
    y += np.maximum(y, 0)
    return y.sum(axis=0)

=== stencil: a(5), a(5)
def f(y, x):
    y[i] = x[pad(i - 1)] + x[i] + x[clamp(i + 1)]

=== guard: a(5), a(5)
def f(y, x):
    if i > 0 and i < 4:
        y[i] = x[i - 1] - x[i + 1]
    else:
        y[i] = 0

=== slices: a(5), a(5)
def f(y, x):
    y[1:-1] = 0.5 * (x[:-2] + x[2:])
    y[0], y[-1] = x[0], x[-1]

=== softmax: a(5), a(5)
def f(y, x):
    m = max(x[i])
    e[i] = exp(x[i] - m)
    y[i] = e[i] / sum[k](e[k])

=== loops: a(5), a(5)
def f(y, x):
    for t in range(3):
        s = 0.0
        for k in range(t, 5):
            s += x[k] * y[t]
        y[t] = s if s > 0 else -s
    return s

=== views: a(5), a(5)
def f(y, x):
    t = x + 1
    row = y[::-1]
    row[:] = t * 2
    return row, t.mean(), len(t)

=== lambdas: a(5), a(5)
def f(y, x):
    g = lambda v, w=2: v * w
    return [g(y), g(x, 3), g(y[0])]

=== branches: a(5), a(5)
def f(y, x):
    def g(v):
        if v > 0:
            return v
        return 0.0
    y[i] = g(x[i]) + g(-x[i])

=== scatter: a(4), np.array([0, 2, 2, 1]), a(4)
def f(h, x, w):
    h[x[n]] += w[n]
    return h[x].max()

=== masks: a(4), np.array([0, 2, 2, 1]), a(4)
def f(h, x, w):
    h[h > 1] = 0
    w[x] = h[x]
    return w[w > 0].sum(), np.where(h > 0, w, 1)

=== checks: a(3, 5), a(3, 4), a(4, 5)
def f(y, a, x):
    assert a.shape[0] == 3, 'rows'
    if x[0, 0] < 0:
        raise ValueError(f'bad {x[0, 0]}')
    return np.concatenate([a, y], axis=1)

=== declared: a(3), 3
def f(x, n):
    t: f64[3, 4]
    for k in range(n):
        t[k, :] = x[k] * k
    return t.T

=== enumerate: a(3), 3
def f(x, n):
    z = np.zeros((n, n))
    for k, v in enumerate(x):
        z[k, k] = v
    print('sum', z.sum())
    return z.reshape(-1)

=== while: a(3), 3
def f(x, n):
    k = 0
    while k < n and x[k] > 0:
        k += 1
        if k == 2:
            break
    return k

=== sorting: a(4)
def f(x):
    a = np.sort(x)
    b = np.cumsum(a)[::-1]
    return np.stack([a, b]), np.argmax(b)

=== comment: a(4)
def f(x):
    with comment('norm'):
        n = np.sqrt((x ** 2).sum())
    return x / n, x.astype(np.int64) // 2

=== einsum: a(4)
def f(x):
    q, r = divmod(7, 3)
    return x[q:, None] * np.arange(r), np.einsum('i,i->', x, x)

=== tensor: pe.tensor("p", (3,)), 0.1
def f(p, lr):
    g = p.grad + 0.1 * p.value
    p.value -= lr * g

=== argmin: a(4)
def f(x):
    label[n] = argmin[c]((x[n] - x[c]) ** 2)
    return label

=== cholesky: a(3, 3), 3
def f(a, n):
    for j in range(n):
        a[j, j] = sqrt(a[j, j] + sum[k < j](a[j, k] ** 2))
        if i > j:
            a[i, j] /= a[j, j]

=== swap: a(5)
def f(x):
    a, b = x, x * 2
    for t in range(4):
        b[1:-1] = a[:-2] + a[2:]
        a, b = b, a
    return a
"""
    ).values()
)
