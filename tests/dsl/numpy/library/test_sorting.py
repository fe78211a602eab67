"""What puts rows in order means in Python what it means compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plusequals.dsl.numpy.library import sorting
from plusequals.lowering.ir.ops import OPS

from .test_definitions import python

SIZES = [0, 1, 2, 3, 17, 63, 64, 65, 100, 131]
"""Below and above what is put in order by insertion."""


def sort_rows(x: Any, order: Any = None) -> None:
    places = None if order is None else np.zeros_like(order)
    ordinal = OPS["ordinal"].meaning
    python(sorting.SORT_ROWS)(x, order, np.zeros_like(x), places, ordinal, x.itemsize)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "u2", "i4"])
@pytest.mark.parametrize("size", SIZES)
def test_rows_are_sorted_with_nan_last(size: int, dtype: str) -> None:
    x = np.random.default_rng(size).integers(-90, 90, (2, size)).astype(dtype)
    if x.dtype.kind == "f":
        x[:, ::5], x[:, 1::7] = np.nan, -np.nan
    expected = np.sort(x)
    sort_rows(x)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("size", SIZES)
def test_equal_keys_keep_their_order(size: int) -> None:
    x = np.random.default_rng(size).choice([-1.0, -0.0, 0.0, np.nan], (3, size))
    order = np.tile(np.arange(size), (3, 1))
    expected = np.argsort(x, kind="stable")
    sort_rows(x, order)
    np.testing.assert_array_equal(order, expected)


@pytest.mark.parametrize("patience", ["patience -= 1", "patience = -1"])
@pytest.mark.parametrize("size", [1, 2, 3, 64, 131, 5000])
def test_places_get_what_sorting_puts_there(size: int, patience: str) -> None:
    x = np.random.default_rng(size).choice([np.nan, -np.inf, -0.0, 0.0, *range(40)], (2, size))
    order = np.tile(np.arange(size), (2, 1))
    given, turns = x.copy(), sorted({0, size // 3, size // 2, size - 1})
    text = sorting.SELECT_ROWS.replace("patience -= 1", patience)
    scratch = np.zeros_like(x), np.zeros_like(order)
    python(text)(x, order, *scratch, turns, OPS["ordinal"].meaning)
    np.testing.assert_array_equal(np.take_along_axis(given, order, 1), x)
    for at in turns:
        np.testing.assert_array_equal(np.sort(x[:, :at]), np.sort(given)[:, :at])
        np.testing.assert_array_equal(x[:, at], np.sort(given)[:, at])


@pytest.mark.parametrize("count", [2, 3, 9, 12])
def test_few_are_sorted_by_changing_neighbours(count: int) -> None:
    x = np.random.default_rng(count).integers(-4, 4, (count, 200))
    expected = np.sort(x, axis=0)
    python(sorting.sort_few(count))(x)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 8, 9, 31, 32, 33, 100])
@pytest.mark.parametrize("rows", [1, 4, 5])
def test_rows_are_sorted_side_by_side(rows: int, size: int) -> None:
    x = np.random.default_rng(size).integers(-90, 90, (rows, size))
    expected = np.sort(x)
    python(sorting.SORT_IN_LANES)(x, np.ones((-(-rows // 4), size, 4), int))
    np.testing.assert_array_equal(x, expected)
