"""Derivatives at points where a factor is infinite: only what is computed there contributes."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe

X = np.array([4.0, 1.0, 0.25, 0.0])
ROOTS = [0.25, 0.5, 1.0, 0.0]

PROGRAMS = {
    "np.where": ("return np.sum(np.where(x > 0, np.sqrt(x), 0.0))", ROOTS),
    "an operand": ("return np.sum(np.sqrt(np.where(x > 0, x, 1.0)))", ROOTS),
    "a guard": (
        "y = x * 0\n    if x[i] > 0:\n        y[i] = np.sqrt(x[i])\n    return np.sum(y)",
        ROOTS,
    ),
    "a mask": ("return np.sum(np.sqrt(x[x > 0]))", ROOTS),
    "a sum": ("return sum[i, x[i] > 0](sqrt(x[i]))", ROOTS),
    "a quotient": ("return np.sum(x * np.where(x != 0, 1.0 / x, 0.0))", [0.0] * 4),
    "nested": (
        "return np.sum(np.where(x > 0, np.where(x > 2, x, np.sqrt(x)), 0))",
        [1, *ROOTS[1:]],
    ),
    "overwritten": (
        "y = np.where(x > 0, np.sqrt(x), x); y = np.where(y > 0, y * y, y); return np.sum(y)",
        [1.0] * 4,
    ),
    "a jump": (
        "s = 0.0\n    for v in x:\n        if v <= 0:\n            break\n"
        "        s = s + np.sqrt(v)\n    return s",
        ROOTS,
    ),
    "a product with zero": ("return np.sum(np.sqrt(x) * 0.0)", [0.0, 0.0, 0.0, np.nan]),
    "no terms": ("return np.sum((x * 2.0) @ x)", 4 * X),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_side_that_is_not_taken_contributes_nothing(name: str) -> None:
    body, expected = PROGRAMS[name]
    text = f"def f(x):\n    {body}\n"
    f = pe.cd_from_source(text, {"np": np})
    np.testing.assert_allclose(pe.gradient(f, wrt="x")(X.copy()), expected, rtol=1e-12)
