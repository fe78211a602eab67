"""Sums of products: matrices, tensors of permuted axes, half of a symmetric result, chains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from ..cell import Array, Case, Result, Size, Tolerance, Workload, three, uniform

Precision = Literal["f32", "f64"]
TYPES = {"f32": "float32", "f64": "float64"}
GEMM = (
    Size("64", "small", (64, 64, 64)),
    Size("256", "medium", (256, 256, 256)),
    Size("257x513x129", "medium", (257, 513, 129)),
    Size("512", "medium", (512, 512, 512)),
    Size("1024", "large", (1024, 1024, 1024)),
)


def _gemm(precision: Precision) -> Workload:
    def make(random: np.random.Generator, n: int, k: int, m: int) -> Case:
        dtype = TYPES[precision]
        inputs = uniform(random, n, k).astype(dtype), uniform(random, k, m).astype(dtype)
        return Case(inputs, (Result((n, m), dtype),))

    bound = 1e-4 if precision == "f32" else 1e-12
    return Workload(
        f"gemm_{precision}", "products", GEMM, make, np.matmul, lambda n, k, m: 2 * n * k * m,
        Tolerance(bound), precision=precision,
    )  # fmt: skip


def _gemv(random: np.random.Generator, n: int, k: int) -> Case:
    return Case((uniform(random, n, k), uniform(random, k)), (Result((n,)),))


def _mttkrp(random: np.random.Generator, n: int, r: int) -> Case:
    inputs = uniform(random, n, n, n), uniform(random, n, r), uniform(random, n, r)
    return Case(inputs, (Result((n, r)),))


def mttkrp(x: Array, b: Array, c: Array) -> Array:
    """Return the sum over j and k of x[i, j, k] * b[j, r] * c[k, r]."""
    found: Array = ((x @ c) * b).sum(axis=1)
    return found


def _contraction(random: np.random.Generator, n: int) -> Case:
    shape = (n, n, n, n)
    return Case((uniform(random, *shape), uniform(random, *shape)), (Result(shape),))


def contraction(a: Array, b: Array) -> Array:
    """Return the sum over e and f of a[e, i, f, k] * b[j, f, l, e], as [i, j, k, l]."""
    return np.tensordot(a, b, axes=((0, 2), (3, 1))).transpose(0, 2, 1, 3)


def _syrk(random: np.random.Generator, n: int, k: int) -> Case:
    return Case((uniform(random, n, k),), (Result((n, n)),))


def _rotations(random: np.random.Generator, n: int) -> Case:
    rotations, _ = np.linalg.qr(random.standard_normal((n, 3, 3)))  # so that no product overflows
    return Case((rotations,), (Result((3, 3), "float64"),))


def carried(a: Array) -> Array:
    """Return the product of matrices, from the first to the last."""
    m = np.eye(3)
    for one in a:
        m = m @ one
    return m


_TRIANGLE: Callable[..., float] = lambda n, k: n * (n + 1) * k  # noqa: E731 -- as in the tables

WORKLOADS = (
    _gemm("f32"),
    _gemm("f64"),
    Workload(
        "gemv", "products", three((32, 32), (512, 512), (8192, 4096)), _gemv, np.matmul,
        lambda n, k: 2 * n * k, Tolerance(1e-4),
    ),
    Workload(
        "mttkrp", "products", three((8, 8), (64, 16), (320, 32)), _mttkrp, mttkrp,
        lambda n, r: 2 * n**3 * r + 2 * n**2 * r, Tolerance(1e-4),
    ),
    Workload(
        "contraction", "products", three((4,), (16,), (32,)), _contraction, contraction,
        lambda n: 2 * n**6, Tolerance(1e-4),
    ),
    Workload(
        "syrk", "products", three((32, 32), (256, 256), (1024, 1024)), _syrk,
        lambda a: np.tril(a @ a.T), _TRIANGLE, Tolerance(1e-4),
    ),
    Workload(
        "carried", "products", three((50,), (5_000,), (100_000,)), _rotations, carried,
        lambda n: 2 * 27 * n, Tolerance(1e-9), precision="f64",
    ),
)  # fmt: skip
