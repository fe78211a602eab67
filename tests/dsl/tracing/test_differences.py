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


def test_numbers_of_the_run_differ_only_where_values_do(backend: str) -> None:
    text = """def h(x, n):
    s = 0.0
    y[i] = x[i] + 1
    z[i] = y[i] * n
    return z.sum() + s
"""
    h = pe.cd_from_source(text, backend=backend)
    found = traced(h, np.ones(3), 2).diff(traced(h, np.ones(3), 3))
    assert str(found).startswith("z[0] differs: 4.0 (first) against 6.0 (second), line 4")
    assert traced(h, np.zeros(3) - 1, 2).diff(traced(h, np.zeros(3) - 1, 3)) is None


def test_loops_of_other_lengths_are_one_way_as_long_as_both_run(backend: str) -> None:
    text = """def f(x, n):
    s = 0.0
    for k in range(n):
        s += x[k]
    for k in range(n, 0, -1):
        s += x[k]
    return s
"""
    f = pe.cd_from_source(text, backend=backend)
    found = traced(f, np.ones(9), 2).diff(traced(f, np.ones(9), 3))
    head = "the runs take different ways: first assigns s (line 5), second assigns s (line 4)"
    assert str(found).startswith(head)
    x = np.arange(9.0)
    found = traced(f, x, 2).diff(traced(f, np.where(x == 1, 1.5, x), 3))
    assert str(found).startswith("s differs: 1.0 (first) against 1.5 (second), line 4")


def test_points_are_told_by_their_elements_whatever_the_sizes(backend: str) -> None:
    text = "def f(y, x, n):\n    y[i, j] = x[i, j] if j <= i and i < n and j < n else 0.0\n"
    lower = """def f(y, x, n):
    for k in range(n):
        for l in range(k + 1):
            y[k, l] = x[k, l]
"""
    for one in (text, lower):
        f = pe.cd_from_source(one, backend=backend)
        x = np.arange(16.0).reshape(4, 4)
        few, more = (traced(f, np.zeros((4, 4)), x, n) for n in (3, 4))
        found = few.diff(more)
        assert found is not None and found.records[1] is not None
        assert found.records[1].index == (3, 0)


def test_tolerances_admit_no_infinity_and_are_exact_for_integers() -> None:
    @pe.cd
    def halves(x, n, y, m):
        s[i] = x[i] / 2
        y[i] = s[i] + 1
        m[k] = n[k] * 2

    def run(x: np.ndarray, n: np.ndarray) -> pe.Trace:
        return traced(halves.on("numpy"), x, n, np.zeros(3), np.zeros(2, np.int64))

    x, n = np.array([1.0, np.nan, np.inf]), np.array([10**6, 7])
    near = run(x * (1 + 1e-9), n)
    assert run(x, n).diff(near, rtol=1e-6) is None
    difference = run(x, n).diff(near)
    assert difference is not None and "s[0] differs" in str(difference)
    for given, rtol, atol in ((2.0, 0.1, 100.0), (-np.inf, 0.1, 0.0), (np.nan, 0.1, 100.0)):
        for one, other in ((x, [1, np.nan, given]), ([1, np.nan, given], x)):
            difference = run(np.array(one), n).diff(run(np.array(other), n), rtol=rtol, atol=atol)
            assert difference is not None and "s[2] differs" in str(difference)
    assert "m[0] differs" in str(run(x, n).diff(run(x, n + [1, 0]), rtol=0.1, atol=100.0))
