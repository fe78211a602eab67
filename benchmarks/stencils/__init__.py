"""Grids over many steps: each step reads one grid and writes another; the border stays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..cell import Array, Case, Result, Tolerance, Workload, three, uniform

C1, C2, C3 = 1 / 3, 0.2, 0.125
"""What sums of three and five values are multiplied by, and the rate of the heat."""


def _grid(axes: int) -> Callable[..., Case]:
    def make(random: np.random.Generator, n: int, steps: int) -> Case:
        shape = (n,) * axes
        return Case((uniform(random, *shape),), (Result(shape),), (steps,))

    return make


def _steps(step: Callable[[Array, Array], None]) -> Callable[[Array, int], Array]:
    def run(a: Array, steps: int) -> Array:
        u, v = a.copy(), a.copy()
        for _ in range(steps):
            step(v, u)
            u, v = v, u
        return u

    return run


def jacobi_1d(v: Array, u: Array) -> None:
    """Write the mean of each point and its two neighbours."""
    v[1:-1] = C1 * (u[:-2] + u[1:-1] + u[2:])


def jacobi_2d(v: Array, u: Array) -> None:
    """Write the mean of each point and its four neighbours."""
    centre = u[1:-1, 1:-1]
    v[1:-1, 1:-1] = C2 * (centre + u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])


def heat_3d(v: Array, u: Array) -> None:
    """Write what one explicit step of the heat equation makes of each point."""
    c = u[1:-1, 1:-1, 1:-1]
    around = u[:-2, 1:-1, 1:-1] + u[2:, 1:-1, 1:-1] + u[1:-1, :-2, 1:-1] + u[1:-1, 2:, 1:-1]
    v[1:-1, 1:-1, 1:-1] = c + C3 * (around + u[1:-1, 1:-1, :-2] + u[1:-1, 1:-1, 2:] - 6 * c)


WORKLOADS = (
    Workload(
        "jacobi_1d", "stencils", three((64, 10), (100_000, 50), (16_000_000, 5)), _grid(1),
        _steps(jacobi_1d), lambda n, steps: 3 * n * steps, Tolerance(1e-5),
        lambda n, steps: 8 * n * steps,
    ),
    Workload(
        "jacobi_2d", "stencils", three((16, 10), (400, 50), (4096, 5)), _grid(2),
        _steps(jacobi_2d), lambda n, steps: 5 * n**2 * steps, Tolerance(1e-5),
        lambda n, steps: 8 * n**2 * steps,
    ),
    Workload(
        "heat_3d", "stencils", three((10, 10), (56, 20), (256, 5)), _grid(3),
        _steps(heat_3d), lambda n, steps: 8 * n**3 * steps, Tolerance(1e-5),
        lambda n, steps: 8 * n**3 * steps,
    ),
)  # fmt: skip
