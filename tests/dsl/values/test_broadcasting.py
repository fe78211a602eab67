"""Axes of one element go over others, also where only the run knows that there is one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe

PROGRAMS = {
    "columns and rows": """
def f(d, at):
    for k in range(len(d)):
        d = np.minimum(d, d[:, k:k + 1] + d[k:k + 1, :])
    return d
""",
    "a column over a store": """
def f(d, at):
    t = d * 2
    for k in range(d.shape[1]):
        t[:] += d[:, k:k + 1]
        t[k:k + 1] = d[at[0], at[0]]
        t[:, 1:] = t[:, k:k + 1]
    return t
""",
    "two of them": """
def f(d, at):
    t = np.zeros_like(d)
    for k in range(at[0]):
        t += d[k:k + 1] * d[:, k:k + 1] + d[k:k + 1, k:k + 1] + np.ones((1, 1))[k:k + 1]
    return t
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_element_goes_over_an_axis(backend: str, name: str) -> None:
    space: dict[str, object] = {"np": np}
    exec(PROGRAMS[name], space)
    expected, function = space["f"], pe.cd_from_source(PROGRAMS[name], {"np": np})
    for n in (2, 3, 4, 7, 9):  # the last ones are run-time sizes
        d, at = np.random.default_rng(n).random((n, n)), np.array([1])
        got = function.on(backend)(d.copy(), at)
        want = expected(d.copy(), at)  # type: ignore[operator]
        np.testing.assert_allclose(got, want, err_msg=str(n))


def test_no_element_does_not(backend: str) -> None:
    text = "def f(y, d, n):\n    for k in range(n[0]):\n        y += d[:, k:k + 1]"
    function = pe.cd_from_source(text, {}).on(backend)
    for n in (2, 3, 4, 7):
        y = np.zeros((n, n + 1))
        function(y, np.ones((n, n)), np.array([n]))
        assert y.tolist() == [[n] * (n + 1)] * n
        with pytest.raises(ValueError, match=f"sizes 0 and {n + 1} differ"):
            function(y, np.ones((n, n)), np.array([n + 1]))


def _of_data(a: Any, at: Any) -> Any:
    k = at[0]
    best = a[:, 0].argmax()
    a[best : best + 1] = a - a[k : k + 1] if len(a) == 1 else a[k - 1 : k]
    while k < 2:
        a = a / (1 + a[:, k : k + 1])
        a[k + 1 :, k + 1 :] -= a[k + 1 :, k : k + 1] * a[k : k + 1, k + 1 :]
        k += 1
    return a, a[k + 1 : k : -1] * a[:1], a[2 * k : 2 * (k + 1)]


def test_one_element_at_a_place_that_is_data_goes_over_others(backend: str) -> None:
    function = pe.cd(_of_data).on(backend)
    for n, at in ((3, 1), (7, 3)):
        a = (np.arange(float(n * (n + 1))) % 7).reshape(n, n + 1)
        for dtype in (np.int64, np.uint8):
            got, want = (f(a.copy(), np.array([at], dtype)) for f in (function, _of_data))
            for one, other in zip(got, want, strict=True):
                np.testing.assert_array_equal(one, other)


def test_one_element_at_an_integer_of_many_values_goes_over_others() -> None:
    function = pe.cd_from_source("def f(x, y, k):\n    return x[k:k + 1] * y, x[k + 1:k:-1] + y\n")
    x = np.arange(1.0, 6)
    for k in (0, 1, 2, 3, -2, -3, -5):
        for one, other in zip(function(x, x * 2, k), (x[k] * x * 2, x[k + 1] + x * 2), strict=True):
            np.testing.assert_array_equal(one, other)
    for k in (-1, 5, 100, -100):
        with pytest.raises(pe.CdError, match="CD0301.*sizes 0 and 5 differ"):
            function(x, x * 2, k)


def test_bounds_of_two_signs_are_apart_in_any_way(backend: str) -> None:
    function = pe.cd_from_source(
        "def f(x, k):\n    return x[1:-1], x[k:-k - 1], x[-2:1:-1], x[k + 1:k], x[-k:k]\n"
    ).on(backend)
    for n in (3, 4, 5, 6, 7, 8):  # sizes and integers are run-time ones from the fourth on
        x, k = np.arange(float(n)), n % 5
        wanted = x[1:-1], x[k : -k - 1], x[-2:1:-1], x[k + 1 : k], x[-k:k]
        for one, other in zip(function(x, k), wanted, strict=True):
            np.testing.assert_array_equal(one, other)
