"""Arrays that loops without an iteration would have made: zeros, whatever is known of the sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.idx import i, j


def in_a_range(b: Any, x: Any) -> Any:
    for t in range(int(x[0])):
        w[i, j] = b[i, j] + t
    y[i] = w[i, 1]
    return y


def in_a_while(b: Any, x: Any) -> Any:
    k = 0
    while x[k] > 0:
        w[i, j] = b[i, j] + k
        k += 1
    y[i] = w[i, 1]
    return y


def in_two(b: Any, x: Any) -> Any:
    for t in range(int(x[0])):
        for u in range(int(x[1])):
            w = np.sort(b + t, axis=0) + u
    return w[:, 1]


def left_early(b: Any, x: Any) -> Any:
    for t in range(3):
        if x[0] < 1:
            break
        w = b * (t + 1)
    return w[:, 1]


@pytest.mark.parametrize("function", [in_a_range, in_a_while, in_two, left_early])
def test_arrays_of_loops_without_an_iteration_are_zeros(function: Callable[..., Any]) -> None:
    compiled = pe.cd(function)
    with pe.override(verify=True):
        for n in range(2, 8):  # run-time sizes from the fourth on
            b = np.full((n, n), 2.0)
            np.testing.assert_array_equal(compiled(b, np.zeros(2)), np.zeros(n))
            assert compiled(b, np.array([1.0, 1.0, 0.0])).min() >= 2


@pe.cd
def returned(b: Any, x: Any) -> Any:
    for _t in range(int(x[0])):
        w = b * 2
    return w


def test_results_of_loops_without_an_iteration_have_their_shape() -> None:
    for n in range(2, 7):
        np.testing.assert_array_equal(returned(np.ones((n, 3)), np.zeros(1)), np.zeros((n, 3)))


@pe.cd
def sized_inside(x: Any) -> Any:
    for t in range(len(x)):
        m = int(x[t])
        v = np.ones(m) * t
    return v.sum()


def test_an_array_whose_size_ends_with_its_loop_is_refused() -> None:
    with pytest.raises(pe.CdError, match="CD0202.*size was found in a loop that has ended"):
        sized_inside(np.array([3.0, 4.0]))


@pe.cd
def longer(x: Any) -> Any:
    for t in range(len(x) - 100):
        v = x[: len(x) - 101] + t
    return v


def test_a_size_that_only_the_loop_makes_positive_is_none(backend: str) -> None:
    with pe.override(backend):
        for n in (105, 106, 107, 108, 109, 5, 100, 3):
            assert longer(np.ones(n)).shape == (max(0, n - 101),)
