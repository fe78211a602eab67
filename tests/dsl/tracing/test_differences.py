"""The first assignment at which two traces part."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import plusequals as pe

from .functions import CALLS, matrix, softmax, steps


def traced(function: pe.CdFunction, *arguments: object) -> pe.Trace:
    with pe.trace() as trace:
        function(*arguments)
    return trace


def test_the_same_is_the_same() -> None:
    x = matrix()
    x[0, 0] = np.nan
    assert traced(softmax, x).diff(traced(softmax, x)) is None


def test_one_element_in_one_place(golden: Callable[[str], Callable[[str], None]]) -> None:
    x, y = matrix(), matrix()
    y[1, 2] += 0.25
    found = traced(softmax.on("numpy"), x).diff(traced(softmax.on("numpy"), y))
    assert found is not None
    one, other = found.records
    assert one is not None and other is not None and one.index == other.index == (1, 2)
    golden("softmax.txt")(f"{found}\n")


def test_within_tolerances() -> None:
    one, other = traced(softmax, matrix()), traced(softmax, matrix() * (1 + 1e-12))
    assert one.diff(other) is not None
    assert one.diff(other, rtol=1e-9) is None and one.diff(other, atol=1e-9) is None


def test_signs_of_zeros_count() -> None:
    f = pe.cd_from_source("def f(x):\n    return x * 1\n")
    found = traced(f, np.zeros(3)).diff(traced(f, np.array([0.0, -0.0, 0.0])))
    assert found is not None and found.records[0] is not None and found.records[0].index == (1,)


def test_other_ways_through_the_function() -> None:
    _, make = CALLS["steps"]
    x, y, idx = make()
    found = traced(steps, x, y, idx).diff(traced(steps, x, y * 0, idx + [1, 0, 0]))
    assert found is not None and "line" in str(found)
    f = pe.cd_from_source("def f(x):\n    if x[0] > 0:\n        x[0] = 1\n    x[1] = 2\n")
    parted = traced(f, np.ones(2)).diff(traced(f, np.zeros(2)))
    assert parted is not None and "different ways" in str(parted)


def test_one_run_more() -> None:
    with pe.trace() as one:
        softmax(matrix())
    with pe.trace() as other:
        softmax(matrix())
        softmax(matrix())
    assert str(one.diff(other)).startswith("the runs take different ways")


def test_two_functions_are_not_compared() -> None:
    with pytest.raises(ValueError, match="CD0874"):
        traced(softmax, matrix()).diff(traced(steps, *CALLS["steps"][1]()))


def test_elements_are_compared_not_places() -> None:
    f = pe.cd_from_source("def f(x, y):\n    y[x > 1] = x[x > 1] * 2\n")
    x, y = np.array([0.0, 0.0, 3.0]), np.array([0.0, 2.0, 3.0])
    found = traced(f, x, x * 0).diff(traced(f, y, y * 0))
    assert found is not None and "second assigns y[1]" in str(found)
    assert "first ends" in str(found) or "first assigns" not in str(found)
    more = traced(softmax, matrix()[:2]).diff(traced(softmax, matrix()))
    assert more is not None and "different ways" in str(more)
