"""The texts of the library mean in Python what they mean compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from plusequals.dsl.elaborate import library
from plusequals.lowering.ir.ops import OPS


def _python(text: str) -> Callable[..., Any]:
    """Return a library function as plain Python; a position that `clamp` marks is in range."""

    def clamp(position: int) -> int:
        assert position >= 0, "it would count from the end"
        return position

    scope: dict[str, Any] = {"np": np, "clamp": clamp}
    exec(text, scope)
    found = scope[text.split("def ")[1].split("(")[0]]
    assert callable(found)
    return found  # type: ignore[no-any-return]


SIZES = [0, 1, 2, 3, 17, 63, 64, 65, 100, 131]
"""Below and above what is put in order by insertion."""


def sort_rows(x: Any, order: Any = None) -> None:
    places = None if order is None else np.zeros_like(order)
    ordinal = OPS["ordinal"].meaning
    _python(library.SORT_ROWS)(x, order, np.zeros_like(x), places, ordinal, x.itemsize)


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
    text = library.SELECT_ROWS.replace("patience -= 1", patience)
    scratch = np.zeros_like(x), np.zeros_like(order)
    _python(text)(x, order, *scratch, turns, OPS["ordinal"].meaning)
    np.testing.assert_array_equal(np.take_along_axis(given, order, 1), x)
    for at in turns:
        np.testing.assert_array_equal(np.sort(x[:, :at]), np.sort(given)[:, :at])
        np.testing.assert_array_equal(x[:, at], np.sort(given)[:, at])


@pytest.mark.parametrize("count", [2, 3, 9, 12])
def test_few_are_sorted_by_changing_neighbours(count: int) -> None:
    x = np.random.default_rng(count).choice([-np.inf, -0.0, 0.0, 1.0, np.nan], (count, 200))
    expected = np.sort(x, axis=0, kind="stable")
    with np.errstate(invalid="ignore"):
        _python(library.sort_few(count))(x)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("right", [False, True])
def test_places_in_a_sorted_line(right: bool) -> None:
    a = np.array([0.0, 1.0, 1.0, 2.0, np.nan])
    v = np.array([-1.0, 0.0, 1.0, 1.5, 9.0, np.nan])
    out = np.zeros(6, int)
    _python(library.SEARCH)(a, v, out, right)
    np.testing.assert_array_equal(out, np.searchsorted(a, v, "right" if right else "left"))


@pytest.mark.parametrize("size", range(10))
def test_places_in_lines_of_any_size(size: int) -> None:
    a = np.sort(np.random.default_rng(size).integers(0, 8, size) * 1.0)
    v = np.append(np.arange(-1.0, 9.0, 0.5), np.nan)
    for right in (False, True):
        out = np.zeros(len(v), int)
        _python(library.SEARCH)(a, v, out, right)
        np.testing.assert_array_equal(out, np.searchsorted(a, v, "right" if right else "left"))
    if size > 1:
        counts = np.zeros(size - 1, int)
        _python(library.HISTOGRAM_EDGES)(v, np.ones(len(v), int), a, counts)
        np.testing.assert_array_equal(counts, np.histogram(v[:-1], a)[0])


def test_elimination_solves_and_refuses_singular_matrices() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.random((5, 5)), rng.random((5, 2))
    x = b.copy()
    _python(library.SOLVE)(a.copy(), x)
    np.testing.assert_allclose(a @ x, b, atol=1e-12)
    with pytest.raises(ValueError, match="singular"):
        _python(library.SOLVE)(np.zeros((2, 2)), np.ones((2, 1)))


def test_the_determinant_changes_sign_with_the_rows() -> None:
    a = np.array([[0.0, 2.0], [3.0, 1.0]])
    assert _python(library.DETERMINANT)(a.copy()) == pytest.approx(-6.0)


@pytest.mark.parametrize("matrix", [[[0.0, 2.0], [3.0, 1.0]], [[2.0, 4.0], [1.0, 2.0]]])
def test_the_sign_and_the_logarithm_are_those_of_the_determinant(matrix: list[Any]) -> None:
    with np.errstate(divide="ignore"):
        found = _python(library.SIGN_AND_LOG)(np.array(matrix))
    assert found == pytest.approx(tuple(np.linalg.slogdet(np.array(matrix))))
