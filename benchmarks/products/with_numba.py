"""With Numba: BLAS where it can be called, loops where it cannot."""

import numpy as np
from numba import prange


def gemm_f32(c, a, b):
    """BLAS, if SciPy is there."""
    np.dot(a, b, c)


def gemm_f64(c, a, b):
    """BLAS, if SciPy is there."""
    np.dot(a, b, c)


def gemv(y, a, x):
    """One loop for each row."""
    for i in prange(a.shape[0]):
        total = np.float32(0)
        for k in range(a.shape[1]):
            total += a[i, k] * x[k]
        y[i] = total


def mttkrp(y, x, b, c):
    """A row of results at a time."""
    n, _, m = x.shape
    rank = b.shape[1]
    for i in prange(n):
        total = np.zeros(rank, np.float32)
        for j in range(n):
            row = np.zeros(rank, np.float32)
            for k in range(m):
                for r in range(rank):
                    row[r] += x[i, j, k] * c[k, r]
            for r in range(rank):
                total[r] += row[r] * b[j, r]
        y[i] = total


def contraction(c, a, b):
    """Permute, multiply, permute."""
    n = a.shape[0]
    left = np.ascontiguousarray(a.transpose(1, 3, 0, 2)).reshape(n * n, n * n)
    right = np.ascontiguousarray(b.transpose(3, 1, 0, 2)).reshape(n * n, n * n)
    c[:] = np.dot(left, right).reshape(n, n, n, n).transpose(0, 2, 1, 3)


def syrk(c, a):
    """All of the product, then zeros above."""
    np.dot(a, a.T, c)
    for i in prange(a.shape[0]):
        c[i, i + 1 :] = 0


def carried(m, a):
    """Loops: too small for BLAS."""
    left = np.eye(3)
    for t in range(a.shape[0]):
        new = np.zeros((3, 3))
        for i in range(3):
            for j in range(3):
                for k in range(3):
                    new[i, j] += left[i, k] * a[t, k, j]
        left = new
    m[:] = left
