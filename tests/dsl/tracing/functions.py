"""Functions that the tests of traces run: each way to write an array, and what stands around it."""

from __future__ import annotations

import numpy as np

import plusequals as pe
from plusequals import cd
from plusequals.idx import i, j


@cd
def softmax(x):
    e = np.exp(x - x.max(axis=1)[:, None])
    return e / e.sum(axis=1)[:, None]


@cd
def steps(x, y, idx):
    with pe.comment("first"):
        for t in range(3):
            y[i, j] += x[i, j] * t
            if y[0, 0] > 2:
                y[idx[i], 0] = 1
    k = idx[0]
    while k < 3:
        k += 1
        y[0, k] *= 2
    return y[idx.argmax()]


@cd
def swapped(x):
    a, b = x * 1, x * 2
    for t in range(3):
        a[0] += t
        a, b = b, a
    return a + b


@cd
def triangle(a):
    for n in range(4):
        for m in range(n + 1):
            a[n, m] = a[m, n] + 1
    a[i, j] += sum[k <= i](a[k, j]) if j <= i else 0.5
    for n in range(4):
        if i < n:
            a[n, i] = n


@cd
def guarded(x):
    y = np.where(x > 0, np.sqrt(x), 0.0)
    y[x > 1] = x[x > 1] * 2
    return y


@cd
def kinds(b, z, h):
    c = ~b
    z *= 1j
    h += 1
    n = b.sum()
    return c, n * 2


def matrix() -> np.ndarray:
    """Return twelve small numbers in three rows."""
    return np.arange(12.0).reshape(3, 4)


CALLS = {
    "softmax": (softmax, lambda: (matrix(),)),
    "steps": (steps, lambda: (matrix(), matrix() * 0, np.array([0, 1, 2]))),
    "swapped": (swapped, lambda: (np.ones(3),)),
    "triangle": (triangle, lambda: (np.arange(16.0).reshape(4, 4),)),
    "guarded": (guarded, lambda: (np.array([-1.0, 0.5, 2.0, np.nan]),)),
    "kinds": (kinds, lambda: (np.array([True, False]), np.ones(2, "c8"), np.ones(2, "f2"))),
}
