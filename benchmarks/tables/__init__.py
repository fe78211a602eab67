"""Subscripts that are data: counting, taking rows of a table, adding to them."""

from __future__ import annotations

import numpy as np

from ..cell import Array, Case, Result, Tolerance, Workload, three, uniform

BINS = 256
SIZES = three((64, 16, 16), (1000, 64, 2000), (200_000, 128, 100_000))
"""Rows of the table, their width, and how many of them are taken."""


def _values(random: np.random.Generator, n: int) -> Case:
    ids = random.integers(0, BINS, n, dtype=np.int32)
    return Case((ids,), (Result((BINS,), "int64"),))


def _rows(random: np.random.Generator, rows: int, width: int, n: int) -> Case:
    ids = random.integers(0, rows, n)
    return Case((uniform(random, rows, width), ids), (Result((n, width)),))


def _gradient(random: np.random.Generator, rows: int, width: int, n: int) -> Case:
    ids = random.integers(0, rows, n)
    return Case((uniform(random, n, width), ids), (Result((rows, width)),), (rows,))


def scatter_add(values: Array, ids: Array, rows: int) -> Array:
    """Return a table of zeros with values added to the rows that they are for."""
    found = np.zeros((rows, values.shape[1]))
    np.add.at(found, ids, values)
    return found


WORKLOADS = (
    Workload(
        "histogram", "tables", three((64,), (100_000,), (32_000_000,)), _values,
        lambda ids: np.bincount(ids, minlength=BINS), lambda n: n, Tolerance(0.0),
    ),
    Workload(
        "gather", "tables", SIZES, _rows, lambda table, ids: table[ids], lambda *dims: 0,
        Tolerance(0.0), lambda rows, width, n: n * (8 + 8 * width),
    ),
    Workload(
        "scatter_add", "tables", SIZES, _gradient, scatter_add,
        lambda rows, width, n: n * width, Tolerance(1e-5),
        lambda rows, width, n: n * (8 + 4 * width) + 4 * rows * width,
    ),
)  # fmt: skip
