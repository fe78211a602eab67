"""Axes of one element go over others, also where only the run knows that there is one."""

from __future__ import annotations

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
