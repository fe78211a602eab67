"""Every point with every other: forces, distances."""

from __future__ import annotations

import numpy as np

from ..cell import Array, Case, Result, Tolerance, Workload, three, uniform

SOFT = 0.01
"""Added to squared distances, so that a point's force on itself is zero."""
CHUNK = 256


def _bodies(random: np.random.Generator, n: int) -> Case:
    mass = random.random(n, dtype=np.float32) + np.float32(0.5)
    return Case((uniform(random, n, 3), mass), (Result((n, 3)),), (SOFT,))


def nbody(p: Array, mass: Array, soft: float) -> Array:
    """Return what pulls at each body."""
    found = np.empty_like(p)
    for first in range(0, len(p), CHUNK):  # all pairs at once need too much memory
        some = slice(first, first + CHUNK)
        d = p[None, :, :] - p[some, None, :]
        r2 = (d * d).sum(axis=2) + soft
        found[some] = np.einsum("ijk,ij->ik", d, mass / (r2 * np.sqrt(r2)))
    return found


def _points(random: np.random.Generator, n: int, width: int) -> Case:
    return Case((uniform(random, n, width), uniform(random, n, width)), (Result((n, n)),))


def pairwise(a: Array, b: Array) -> Array:
    """Return the distance of each point of one set from each of another."""
    found = np.empty((len(a), len(b)))
    for first in range(0, len(a), CHUNK):
        some = slice(first, first + CHUNK)
        squares = (a[some] ** 2).sum(axis=1)[:, None] + (b**2).sum(axis=1)
        found[some] = np.sqrt(np.maximum(squares - 2 * (a[some] @ b.T), 0))
    return found


WORKLOADS = (
    Workload(
        "nbody", "points", three((32,), (512,), (8192,)), _bodies, nbody, lambda n: 24 * n * n,
        Tolerance(1e-4),
    ),
    Workload(
        "pairwise", "points", three((32, 8), (512, 32), (2048, 64)), _points, pairwise,
        lambda n, width: (2 * width + 4) * n * n, Tolerance(1e-4),
    ),
)  # fmt: skip
