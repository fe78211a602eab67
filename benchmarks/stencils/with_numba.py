"""With Numba: loops. The peer compiles them, with threads where a cell is not a small one."""

import numpy as np
from numba import prange


def jacobi_1d(out, a, steps):
    """Two buffers that change places."""
    u, v = a.copy(), a.copy()
    third = np.float32(1 / 3)
    for _ in range(steps):
        for i in prange(1, a.size - 1):
            v[i] = third * (u[i - 1] + u[i] + u[i + 1])
        u, v = v, u
    out[:] = u


def jacobi_2d(out, a, steps):
    """Two buffers that change places."""
    u, v = a.copy(), a.copy()
    fifth = np.float32(0.2)
    for _ in range(steps):
        for i in prange(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                v[i, j] = fifth * (u[i, j] + u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
        u, v = v, u
    out[:] = u


def heat_3d(out, a, steps):
    """Two buffers that change places."""
    u, v = a.copy(), a.copy()
    rate, six = np.float32(0.125), np.float32(6)
    for _ in range(steps):
        for i in prange(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                for k in range(1, a.shape[2] - 1):
                    c = u[i, j, k]
                    v[i, j, k] = c + rate * (
                        u[i - 1, j, k] + u[i + 1, j, k] + u[i, j - 1, k] + u[i, j + 1, k]
                        + u[i, j, k - 1] + u[i, j, k + 1] - six * c
                    )  # fmt: skip
        u, v = v, u
    out[:] = u
