"""Sums, means and variances over each axis of a matrix and over all of it; running sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..cell import Array, Case, Result, Tolerance, Workload, three, uniform

SIZES = three((32, 32), (512, 512), (8192, 4096))
AXES = {"axis0": (0,), "axis1": (1,), "all": (0, 1)}


def _matrix(axes: tuple[int, ...]) -> Callable[..., Case]:
    def make(random: np.random.Generator, rows: int, columns: int) -> Case:
        left = tuple(n for axis, n in enumerate((rows, columns)) if axis not in axes)
        x = uniform(random, rows, columns) + np.float32(0.25)  # so that no sum is near zero
        return Case((x,), (Result(left or (1,)),))

    return make


def _reference(function: Any, axes: tuple[int, ...]) -> Callable[[Array], Array]:
    return lambda x: np.atleast_1d(function(x, axis=axes))


def _line(random: np.random.Generator, n: int) -> Case:
    return Case((uniform(random, n) + np.float32(0.25),), (Result((n,)),))


def _workload(name: str, function: Any, passes: int, where: str) -> Workload:
    axes = AXES[where]
    return Workload(
        f"{name}_{where}", "reductions", SIZES, _matrix(axes), _reference(function, axes),
        lambda n, m: passes * n * m, Tolerance(1e-3 if where == "all" else 1e-4),
    )  # fmt: skip


WORKLOADS = (
    *(_workload("sum", np.sum, 1, where) for where in AXES),
    *(_workload("mean", np.mean, 1, where) for where in AXES),
    *(_workload("var", np.var, 3, where) for where in AXES),
    Workload(
        "cumsum", "reductions", three((64,), (100_000,), (16_000_000,)), _line, np.cumsum,
        lambda n: n, Tolerance(1e-3),
    ),
)  # fmt: skip
