"""Which way lines are sorted: what comes out is the same, for each number and length of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.settings import override

SPECIAL = np.array([-np.inf, -1.5, -0.0, 0.0, 1e-40, 2.0, np.inf, np.nan, -np.nan])


def function(value: str) -> Any:
    return pe.cd_from_source(f"def f(x):\n    return {value}\n", {"np": np})


def lines(shape: tuple[int, ...], dtype: str) -> Any:
    rng = np.random.default_rng(shape[-1])
    if dtype[0] == "f":
        return rng.choice(SPECIAL, shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


def assert_sorted(got: Any, x: Any) -> None:
    """Hold a result against NumPy, and that both zeros are there as often as before."""
    np.testing.assert_array_equal(got, np.sort(x))
    if x.dtype.kind == "f":
        zeros = [np.signbit(a[a == 0]) for a in (got, np.sort(x, kind="stable"))]
        assert zeros[0].sum() == zeros[1].sum()


@pytest.fixture(autouse=True)
def _soon_compiled() -> Iterator[None]:
    with override(optimize=0):
        yield


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u8", "i1", "f2"])
def test_rows_side_by_side(dtype: str) -> None:
    x = lines((131, 37), dtype)
    for threads in (1, 2):
        with override(threads=threads):
            assert_sorted(function("np.sort(x)")(x), x)


def test_sizes_of_the_run_choose_the_way_in_the_run() -> None:
    middle = function("np.median(np.sort(x), axis=-1)")
    for shape in [(40, 13), (40, 14), (33, 65), (1, 65), (40, 1)]:
        x = lines(shape, "i1").astype("f4")
        np.testing.assert_array_equal(middle(x), np.median(x, axis=-1))


def test_what_is_asked_to_be_stable_keeps_the_order_of_zeros() -> None:
    x = np.tile([0.0, -0.0, 1.0, -0.0], (40, 5))
    kept = function("np.sort(x, kind='stable')")(x)
    assert np.signbit(kept).tobytes() == np.signbit(np.sort(x, kind="stable")).tobytes()
    first = function("np.sort(x)")(x)
    assert np.signbit(first[:, :10]).all() and not np.signbit(first[:, 10:]).any()


@pytest.mark.parametrize("shape", [(300, 3, 2), (3, 20, 5)])
def test_any_axis_of_three_and_in_place(shape: tuple[int, ...]) -> None:
    x = lines(shape, "i2")
    for axis in range(3):
        wanted = np.sort(x, axis=axis)
        made = function(f"np.sort(x, axis={axis})")(x)
        np.testing.assert_array_equal(made, wanted)
        assert made.flags.c_contiguous
    pe.cd_from_source("def f(x):\n    x.sort(axis=1)\n")(x)
    np.testing.assert_array_equal(x, np.sort(x, axis=1))
