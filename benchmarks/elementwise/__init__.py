"""One result for each point: saxpy, a chain of functions, iterations that stop or do not."""

from __future__ import annotations

import math

import numpy as np

from ..cell import Array, Case, Result, Tolerance, Workload, three, uniform

ROUNDS = 50


def _saxpy(random: np.random.Generator, n: int) -> Case:
    return Case((uniform(random, n), uniform(random, n)), (Result((n,)),), (2.5,))


def _options(random: np.random.Generator, n: int) -> Case:
    draw = [random.random(n, dtype=np.float32) for _ in range(3)]
    spot, strike, years = 80 + 40 * draw[0], 80 + 40 * draw[1], 0.2 + 2 * draw[2]
    return Case((spot, strike, years), (Result((n,)), Result((n,))), (0.05, 0.3))


def black_scholes(
    spot: Array, strike: Array, years: Array, rate: float, sigma: float
) -> tuple[Array, Array]:
    """Return the prices of calls and puts."""
    erf = np.vectorize(math.erf, otypes=[float])
    spread = sigma * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + 0.5 * sigma * sigma) * years) / spread
    n1, n2 = (0.5 + 0.5 * erf(d / math.sqrt(2)) for d in (d1, d1 - spread))
    later = strike * np.exp(-rate * years)
    call = spot * n1 - later * n2
    return call, call - spot + later


def _plane(random: np.random.Generator, rows: int, columns: int) -> Case:
    x = np.linspace(-2.2, 0.8, columns, dtype=np.float32)
    y = np.linspace(-1.3, 1.3, rows, dtype=np.float32)
    return Case((x, y), (Result((rows, columns), "int32"),), (ROUNDS,))


def mandelbrot(x: Array, y: Array, rounds: int) -> Array:
    """Return in how many rounds each point is inside the circle of radius two."""
    real, imaginary = np.broadcast_arrays(x[None, :], y[:, None])
    re, im, count = real.copy(), imaginary.copy(), np.zeros(real.shape, np.int32)
    for _ in range(rounds):
        inside = re * re + im * im <= 4
        count += inside
        with np.errstate(over="ignore", invalid="ignore"):
            new = re * re - im * im + real
            re, im = np.where(inside, new, re), np.where(inside, 2 * re * im + imaginary, im)
    return count


_LEFT = 0.26
"""The share of all rounds that is done where each point stops when it has left."""

WORKLOADS = (
    Workload(
        "saxpy",
        "elementwise",
        three((64,), (100_000,), (16_000_000,)),
        _saxpy,
        lambda x, y, a: a * x + y,
        lambda n: 2 * n,
    ),
    Workload(
        "black_scholes",
        "elementwise",
        three((64,), (50_000,), (8_000_000,)),
        _options,
        black_scholes,
        lambda n: 69 * n,
    ),
    Workload(
        "mandelbrot",
        "elementwise",
        three((8, 8), (128, 128), (512, 512)),
        _plane,
        mandelbrot,
        lambda rows, columns: 8 * ROUNDS * rows * columns,
        Tolerance(1e-6, share=0.03),
    ),
    Workload(
        "mandelbrot_exit",
        "elementwise",
        three((8, 8), (128, 128), (512, 512)),
        _plane,
        mandelbrot,
        lambda rows, columns: 8 * ROUNDS * _LEFT * rows * columns,
        Tolerance(1e-6, share=0.03),
    ),
)
