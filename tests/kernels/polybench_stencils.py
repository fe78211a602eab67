"""Stencils, filters and dynamic programs of the PolyBench list."""

from __future__ import annotations

import numpy as np

from .kernel import Kernel, inputs


def _sweep(out, src, a, b, d):
    n = src.shape[0]
    p = np.zeros_like(src)
    q = np.zeros_like(src)
    out[0, 1:-1] = 1.0
    q[1:-1, 0] = out[0, 1:-1]
    for j in range(1, n - 1):
        scale = a * p[1:-1, j - 1] + b
        p[1:-1, j] = -a / scale
        known = -d * src[j, :-2] + (1.0 + 2.0 * d) * src[j, 1:-1] - d * src[j, 2:]
        q[1:-1, j] = (known - a * q[1:-1, j - 1]) / scale
    out[-1, 1:-1] = 1.0
    for j in range(n - 2, 0, -1):
        out[j, 1:-1] = p[1:-1, j] * out[j + 1, 1:-1] + q[1:-1, j]


def adi(steps, u):
    """Alternating-direction implicit heat flow: columns, then rows through transposed views."""
    n = u.shape[0]
    ratio = n * n / steps
    v = np.zeros_like(u)
    for _ in range(steps):
        _sweep(v, u, -ratio, 1.0 + 2.0 * ratio, -ratio / 2.0)
        _sweep(u.T, v.T, -ratio / 2.0, 1.0 + ratio, -ratio)


def fdtd_2d(steps, ex, ey, hz, source):
    """Finite-difference time domain on a two-dimensional grid."""
    for t in range(steps):
        ey[0] = source[t]
        ey[1:] -= 0.5 * np.diff(hz, axis=0)
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        curl = ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]
        hz[:-1, :-1] -= 0.7 * curl


def _heat(new, old):
    inner = old[1:-1, 1:-1, 1:-1]
    along_x = old[2:, 1:-1, 1:-1] - 2.0 * inner + old[:-2, 1:-1, 1:-1]
    along_y = old[1:-1, 2:, 1:-1] - 2.0 * inner + old[1:-1, :-2, 1:-1]
    along_z = old[1:-1, 1:-1, 2:] - 2.0 * inner + old[1:-1, 1:-1, :-2]
    new[1:-1, 1:-1, 1:-1] = inner + 0.125 * (along_x + along_y + along_z)


def heat_3d(steps, a, b):
    """Heat in a cube, back and forth between two arrays."""
    for _ in range(steps):
        _heat(b, a)
        _heat(a, b)


def jacobi_1d(steps, a, b):
    """Three-point mean, back and forth between two arrays."""
    for _ in range(1, steps):
        b[1:-1] = (a[:-2] + a[1:-1] + a[2:]) / 3.0
        a[1:-1] = (b[:-2] + b[1:-1] + b[2:]) / 3.0


def jacobi_2d(steps, a):
    """Five-point mean between two copies that change places."""
    old = a.copy()
    new = a.copy()
    for _ in range(2 * steps):
        new[1:-1, 1:-1] = 0.2 * (
            old[1:-1, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:] + old[2:, 1:-1] + old[:-2, 1:-1]
        )
        old, new = new, old
    return old


def seidel_2d(steps, a):
    """Nine-point Gauss-Seidel: the row above is new, the cell to the left too."""
    n = a.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            a[i, 1:-1] += a[i - 1, :-2] + a[i - 1, 1:-1] + a[i - 1, 2:]
            a[i, 1:-1] += a[i, 2:] + a[i + 1, :-2] + a[i + 1, 1:-1] + a[i + 1, 2:]
            for j in range(1, n - 1):
                a[i, j] += a[i, j - 1]
                a[i, j] /= 9.0


def deriche(alpha, image):
    """Recursive edge filter: four sweeps over one image."""
    e = np.exp(-alpha)
    k = (1.0 - e) ** 2 / (1.0 + 2.0 * alpha * e - np.exp(2.0 * alpha))
    a1 = a5 = k
    a2 = a6 = k * e * (alpha - 1.0)
    a3 = a7 = k * e * (alpha + 1.0)
    a4 = a8 = -k * np.exp(-2.0 * alpha)
    b1 = 2.0 ** (-alpha)
    b2 = -np.exp(-2.0 * alpha)
    w, h = image.shape
    left = np.empty_like(image)
    left[:, 0] = a1 * image[:, 0]
    left[:, 1] = a1 * image[:, 1] + a2 * image[:, 0] + b1 * left[:, 0]
    for j in range(2, h):
        fresh = a1 * image[:, j] + a2 * image[:, j - 1]
        left[:, j] = fresh + b1 * left[:, j - 1] + b2 * left[:, j - 2]
    right = np.empty_like(image)
    right[:, -1] = 0.0
    right[:, -2] = a3 * image[:, -1]
    for j in range(h - 3, -1, -1):
        fresh = a3 * image[:, j + 1] + a4 * image[:, j + 2]
        right[:, j] = fresh + b1 * right[:, j + 1] + b2 * right[:, j + 2]
    mixed = left + right
    down = np.empty_like(image)
    down[0] = a5 * mixed[0]
    down[1] = a5 * mixed[1] + a6 * mixed[0] + b1 * down[0]
    for i in range(2, w):
        down[i] = a5 * mixed[i] + a6 * mixed[i - 1] + b1 * down[i - 1] + b2 * down[i - 2]
    up = np.empty_like(image)
    up[-1] = 0.0
    up[-2] = a7 * mixed[-1]
    for i in reversed(range(w - 2)):
        up[i] = a7 * mixed[i + 1] + a8 * mixed[i + 2] + b1 * up[i + 1] + b2 * up[i + 2]
    return down + up


def floyd_warshall(path):
    """All shortest paths, in place, for integers."""
    for k in range(path.shape[0]):
        path[:] = np.minimum(path, np.add.outer(path[:, k], path[k, :]))


def floyd_warshall_loops(path):
    """All shortest paths with three loops and a branch."""
    n = len(path)
    for k in range(n):
        for i in range(n):
            for j in range(n):
                through = path[i, k] + path[k, j]
                if through < path[i, j]:
                    path[i, j] = through


def _pair(x, y):
    return 1 if x + y == 3 else 0


def nussinov(sequence):
    """The largest number of base pairs: a triangular dynamic program."""
    n = sequence.shape[0]
    table = np.zeros((n, n), dtype=np.int32)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            table[i, j] = max(table[i, j], table[i, j - 1])
            if i + 1 < n:
                table[i, j] = max(table[i, j], table[i + 1, j])
                inner = table[i + 1, j - 1]
                if i < j - 1:
                    inner += _pair(sequence[i], sequence[j])
                table[i, j] = max(table[i, j], inner)
            for k in range(i + 1, j):
                table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])
    return table


def _graph(r, n):
    path = r.integers(1, 100, (n, n)).astype(np.int32)
    np.fill_diagonal(path, 0)
    return (path,)


KERNELS: tuple[Kernel, ...] = (
    Kernel("adi", adi, inputs(lambda r, t, n: (t, r.random((n, n))), (2, 7), (5, 40)), (1,)),
    Kernel("fdtd_2d", fdtd_2d, inputs(
        lambda r, t, n, m: (t, *r.random((3, n, m)), r.random(t)), (3, 6, 7), (8, 50, 60)),
        (1, 2, 3)),
    Kernel("heat_3d", heat_3d, inputs(lambda r, t, n: (t, *r.random((2, n, n, n))),
                                      (2, 6), (4, 20)), (1, 2)),
    Kernel("jacobi_1d", jacobi_1d, inputs(lambda r, t, n: (t, *r.random((2, n))),
                                          (5, 20), (40, 600)), (1, 2)),
    Kernel("jacobi_2d", jacobi_2d, inputs(lambda r, t, n: (t, r.random((n, n))),
                                          (3, 8), (10, 60))),
    Kernel("seidel_2d", seidel_2d, inputs(lambda r, t, n: (t, r.random((n, n))),
                                          (3, 8), (8, 40)), (1,)),
    Kernel("deriche", deriche, inputs(lambda r, n, m: (0.25, r.random((n, m))),
                                      (7, 9), (60, 70)), rtol=1e-8),
    Kernel("floyd_warshall", floyd_warshall, inputs(_graph, (9,), (50,)), (0,)),
    Kernel("floyd_warshall_loops", floyd_warshall_loops, inputs(_graph, (9,), (50,)), (0,)),
    Kernel("nussinov", nussinov, inputs(
        lambda r, n: (r.integers(0, 4, n).astype(np.int32),), (12,), (50,))),
)  # fmt: skip
