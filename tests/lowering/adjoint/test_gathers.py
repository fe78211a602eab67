"""Scattered sums as gathers."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe

GATHERED = {
    "two distances": (
        "y = x[2:] * n + x[:-2] * 3.0; return (y * y).sum()",
        "(d_y[i - 3] * n if i - 1 >= 2 else 0.0) + (3.0 * d_y[i - 1] if i - 1 < 3 else 0.0)",
    ),
    "three": (
        "y = x[2:] * x[1:-1] - x[:-2]; return (y * y).sum()",
        "if i - 2 >= 1 and i - 2 < 4 else 0.0",
    ),
    "on both of two axes": (
        "y = a[1:, :-1] * a[:-1, 1:]; return (y * y).sum()",
        "if i - 2 < 3 and j - 2 >= 1 else 0.0",
    ),
    "in place": (
        "x[1:-1] += 0.1 * x[2:] * x[:-2]; return (x * x).sum()",
        "if i < 3 else 0.0",
    ),
    "of sums that come between": (
        "return (x[1:] * x[:-1] * a.sum(axis=1)[:, None]).sum()",
        "x[j - 1] * d_x_sum_2[j - 2] if j - 2 < 4 else 0.0",
    ),
    "at run-time sizes": (
        "y = x[2:] * n + x[:-2] * 3.0; return (y * y).sum()",
        "if i - 1 < x.shape[0] - 2 else 0.0",
    ),
}
APART = {
    "one distance": ("y = x * n + x * x; return (y * y).sum()", "d_x[i] = "),
    "two letters": ("y[i, j] = a[i, j] * a[j, i]; return (y * y).sum()", "d_a[j, i] += "),
    "a sum over one": ("y[i, j] = x[i] * x[j]; return (y * y).sum()", "d_x[j] += d_y[i, j] * x[i]"),
    "wrapped": ("y[i] = x[wrap(i + 1)] * x[i]; return (y * y).sum()", "d_x[(i + 1) % 5] += "),
}


@pytest.mark.parametrize(("name", "cases"), [(n, c) for c in (GATHERED, APART) for n in c])
def test_sums_at_several_distances_are_one(name: str, cases: dict[str, tuple[str, str]]) -> None:
    body, expected = cases[name]
    f = pe.cd_from_source(f"def f(x, a, n):\n    {body}\n", {"np": np}, backend="numpy")
    rng = np.random.default_rng(4)
    wrt = ("a",) if "a[" in body else ("x",)
    g = pe.gradient(f, wrt=wrt)
    for size in range(5, 10) if name == "at run-time sizes" else (5,):
        given = rng.random(size), rng.random((size - 1, size - 1)), 0.5
        assert pe.check_gradient(f, given, wrt=wrt).digits > 8
        g(*(np.copy(value) if np.ndim(value) else value for value in given))
    assert expected in g.source
    assert ("else 0.0" in g.source) == (cases is GATHERED)
