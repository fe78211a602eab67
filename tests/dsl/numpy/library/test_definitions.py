"""The texts of the library mean in Python what they mean compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from plusequals.dsl.numpy.library import definitions


def python(text: str) -> Callable[..., Any]:
    """Return a library function as plain Python; a position that `clamp` marks is in range."""

    def clamp(position: int) -> int:
        assert position >= 0, "it would count from the end"
        return position

    scope: dict[str, Any] = {"np": np, "clamp": clamp}
    exec(text, scope)
    found = scope[text.split("def ")[1].split("(")[0]]
    assert callable(found)
    return found  # type: ignore[no-any-return]


@pytest.mark.parametrize("right", [False, True])
def test_places_in_a_sorted_line(right: bool) -> None:
    a = np.array([0.0, 1.0, 1.0, 2.0, np.nan])
    v = np.array([-1.0, 0.0, 1.0, 1.5, 9.0, np.nan])
    out = np.zeros(6, int)
    python(definitions.SEARCH)(a, v, out, right)
    np.testing.assert_array_equal(out, np.searchsorted(a, v, "right" if right else "left"))


@pytest.mark.parametrize("size", range(10))
def test_places_in_lines_of_any_size(size: int) -> None:
    a = np.sort(np.random.default_rng(size).integers(0, 8, size) * 1.0)
    v = np.append(np.arange(-1.0, 9.0, 0.5), np.nan)
    for right in (False, True):
        out = np.zeros(len(v), int)
        python(definitions.SEARCH)(a, v, out, right)
        np.testing.assert_array_equal(out, np.searchsorted(a, v, "right" if right else "left"))
    if size > 1:
        counts = np.zeros(size - 1, int)
        python(definitions.HISTOGRAM_EDGES)(v, np.ones(len(v), int), a, counts)
        np.testing.assert_array_equal(counts, np.histogram(v[:-1], a)[0])


def test_elimination_solves_and_refuses_singular_matrices() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.random((5, 5)), rng.random((5, 2))
    x = b.copy()
    python(definitions.SOLVE)(a.copy(), x)
    np.testing.assert_allclose(a @ x, b, atol=1e-12)
    with pytest.raises(ValueError, match="singular"):
        python(definitions.SOLVE)(np.zeros((2, 2)), np.ones((2, 1)))


def test_the_determinant_changes_sign_with_the_rows() -> None:
    a = np.array([[0.0, 2.0], [3.0, 1.0]])
    assert python(definitions.DETERMINANT)(a.copy()) == pytest.approx(-6.0)


@pytest.mark.parametrize("matrix", [[[0.0, 2.0], [3.0, 1.0]], [[2.0, 4.0], [1.0, 2.0]]])
def test_the_sign_and_the_logarithm_are_those_of_the_determinant(matrix: list[Any]) -> None:
    with np.errstate(divide="ignore"):
        found = python(definitions.SIGN_AND_LOG)(np.array(matrix))
    assert found == pytest.approx(tuple(np.linalg.slogdet(np.array(matrix))))
