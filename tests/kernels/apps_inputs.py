"""Inputs for the functions of `apps`."""

from __future__ import annotations

import numpy as np

from . import apps
from .kernel import Kernel, inputs


def _csr(r, rows, cols):
    counts = r.integers(0, 4, rows)
    indptr = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    indices = r.integers(0, cols, counts.sum()).astype(np.int32)
    return indptr, indices, r.random(counts.sum()), r.random(cols)


def _definite(r, n, limit):
    root = r.random((n, n))
    return root @ root.T + n * np.eye(n), r.random(n), limit, 1e-6


def _ring(r, n, bins):
    return r.random(n), np.sort(r.random(n)) + 0.001, bins


def _letters(r, n):
    return r.integers(0, 4, n).astype(np.uint8)


def _options(r, n):
    return 80 + 40 * r.random(n), 80 + 40 * r.random(n), 0.2 + r.random(n), 0.03, 0.3


KERNELS: tuple[Kernel, ...] = (
    Kernel("spmv", apps.spmv, inputs(_csr, (7, 6), (200, 150))),
    Kernel("spmv_scalar", apps.spmv_scalar, inputs(
        lambda r, n, m: (*_csr(r, n, m), np.ones(n)), (7, 6), (200, 150)), (4,)),
    Kernel("crc16", apps.crc16, inputs(
        lambda r, n: (r.integers(0, 256, n).astype(np.uint8),), (20,), (2000,))),
    Kernel("azimint_masks", apps.azimint_masks, inputs(_ring, (200, 4), (5000, 20))),
    Kernel("azimint_hist", apps.azimint_hist, inputs(_ring, (200, 4), (5000, 20))),
    Kernel("arc_distance", apps.arc_distance, inputs(lambda r, n: tuple(r.random((4, n))),
                                                     (11,), (3000,))),
    Kernel("go_fast", apps.go_fast, inputs(lambda r, n: (r.random((n, n)),), (6,), (120,))),
    Kernel("compute", apps.compute, inputs(
        lambda r, n, m: (*r.integers(0, 1000, (2, n, m)), 4, 3, 9), (5, 6), (60, 70))),
    Kernel("smith_waterman", apps.smith_waterman, inputs(
        lambda r, n, m: (_letters(r, n), _letters(r, m), 3, 3, 2), (8, 9), (60, 70))),
    Kernel("edit_distance", apps.edit_distance, inputs(
        lambda r, n, m: (_letters(r, n), _letters(r, m)), (8, 9), (60, 70))),
    Kernel("game_of_life", apps.game_of_life, inputs(
        lambda r, n, t: (r.integers(0, 2, (n, n)), t), (6, 3), (40, 6)), (0,)),
    Kernel("life_sliced", apps.life_sliced, inputs(
        lambda r, n: (r.integers(0, 2, (n, n)).astype(np.uint8),), (7,), (60,)), (0,)),
    Kernel("kmeans_step", apps.kmeans_step, inputs(
        lambda r, n, k: (r.random((n, 2)), r.random((k, 2))), (12, 3), (400, 8)), (1,)),
    Kernel("pagerank", apps.pagerank, inputs(
        lambda r, n, limit: ((r.random((n, n)) < 0.4).astype(np.float64), 0.85, limit, 1e-7),
        (6, 8), (60, 50)), rtol=1e-8),
    Kernel("conjugate_gradient", apps.conjugate_gradient, inputs(_definite, (6, 4), (50, 12)),
           rtol=1e-6),
    Kernel("bilateral", apps.bilateral, inputs(lambda r, n, k: (r.random((n, n)), k, 1.5, 0.3),
                                               (6, 1), (24, 2))),
    Kernel("sobel", apps.sobel, inputs(
        lambda r, n, m: (r.integers(0, 256, (n, m)).astype(np.uint8),), (8, 7), (60, 50))),
    Kernel("moving_average", apps.moving_average, inputs(lambda r, n, w: (r.random(n), w),
                                                         (12, 3), (1000, 16))),
    Kernel("exponential_average", apps.exponential_average, inputs(
        lambda r, n: (r.random(n).astype(np.float32), 0.25), (15,), (1000,)), rtol=1e-5),
    Kernel("horner", apps.horner, inputs(lambda r, n, m: (r.random(n), r.random(m)),
                                         (5, 9), (12, 2000))),
    Kernel("pairwise_distances", apps.pairwise_distances, inputs(
        lambda r, n, m: (r.random((n, m)) + 5.0 * np.eye(n, m),), (6, 4), (80, 6)), rtol=1e-6),
    Kernel("pairwise_loops", apps.pairwise_loops, inputs(
        lambda r, n, m: (r.random((n, m)), np.zeros((n, n))), (6, 3), (60, 5)), (1,)),
    Kernel("black_scholes", apps.black_scholes, inputs(_options, (7,), (500,))),
    Kernel("erf_series", apps.erf_series, inputs(lambda r, n: (r.standard_normal(n),),
                                                 (13,), (3000,))),
    Kernel("normalise_columns", apps.normalise_columns, inputs(
        lambda r, n, m: (r.random((n, m)),), (8, 3), (200, 12))),
    Kernel("sieve", apps.sieve, inputs(lambda r, n: (n,), (50,), (3000,))),
    Kernel("bubble_sort", apps.bubble_sort, inputs(lambda r, n: (r.permutation(n),),
                                                   (10,), (60,)), (0,)),
    Kernel("count_words", apps.count_words, inputs(
        lambda r, n, v: (r.integers(0, v - 1, n), v), (30, 5), (3000, 40))),
    Kernel("monte_carlo_pi", apps.monte_carlo_pi, inputs(lambda r, n: tuple(r.random((2, n))),
                                                         (40,), (4000,))),
)  # fmt: skip
