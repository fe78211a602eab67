"""Views of given arrays by offset and strides, and copies that keep a layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plusequals.dsl.elaborate.typed import Strided
from plusequals.dsl.results import _relaid, _viewed

BASE = np.arange(24.0)
LAYOUTS = [
    BASE.reshape(4, 6),
    BASE.reshape(4, 6).T,
    BASE.reshape(4, 6)[::-1, ::2],
    BASE.reshape(6, 4)[::-2, ::-1].T,
    BASE.reshape(2, 3, 4)[:, ::-1],
    np.broadcast_to(BASE[:4], (3, 4)),
]


def picked(array: np.ndarray, index: Any) -> tuple[np.ndarray, Strided]:
    """What NumPy gives for an index, and the same as offset and strides in elements."""
    found = array[index]
    starts = [a.__array_interface__["data"][0] for a in (array, found)]
    strides = tuple(step // array.itemsize for step in found.strides)
    return found, Strided((starts[1] - starts[0]) // array.itemsize, found.shape, strides)


@pytest.mark.parametrize("array", LAYOUTS)
@pytest.mark.parametrize("index", [(slice(1, None),), (..., slice(None, None, -2)), (1,), (..., 2)])
def test_a_view_is_the_one_numpy_makes(array: np.ndarray, index: Any) -> None:
    expected, view = picked(array, index)
    got = _viewed(array, view)
    np.testing.assert_array_equal(got, expected)
    assert np.shares_memory(got, array) and got.strides == expected.strides
    assert got.flags.writeable == array.flags.writeable


def test_an_empty_view() -> None:
    assert _viewed(np.zeros((0, 3)), Strided(0, (3, 0), (1, 3))).shape == (3, 0)
    assert _viewed(np.zeros(3), Strided(3, (0, 2), (1, 1))).shape == (0, 2)


@pytest.mark.parametrize("array", LAYOUTS[:5])
def test_a_copy_keeps_the_strides_it_is_compiled_for(array: np.ndarray) -> None:
    strides = tuple(step // array.itemsize for step in array.strides)
    for wanted in (None, strides):
        copy = _relaid(array, wanted)
        np.testing.assert_array_equal(copy, array)
        assert not np.shares_memory(copy, array)
        assert copy.flags.c_contiguous if wanted is None else copy.strides == array.strides
