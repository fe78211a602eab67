"""Gradients of 16-bit floats: of their type, and computed in 32 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from tests.lowering.adjoint.programs import EXTREMES, JUMPS, SORTS, WHILES, function_of, values_of

PROGRAMS = {
    "a sum of many": "q = a * 0.001 + x[0]; return np.sum(np.tanh(q) * q) + np.sum(y[:2] ** 2)",
    "selects": "return np.sum(np.where(x > 0.5, x * y, np.sqrt(y)) * a[0, 1:])",
    "overwritten": "x *= y; x = np.where(x > 0.2, x * x, y); x[1:] += x[:-1]; return np.prod(x)",
    "a scatter": "np.add.at(x, [0, 1, 0], y[:3] * y[:3]); return np.sum(x * x)",
    "extremes": EXTREMES["inside of loops"],
    "jumps": JUMPS["a break with values read again"],
    "a while": WHILES["a while of an array"],
    "a sort": SORTS["a sort"],
}


def type_of(name: str) -> Any:
    return np.float16 if name == "float16" else pytest.importorskip("ml_dtypes").bfloat16


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_those_of_wider_floats_rounded(name: str, dtype: str) -> None:
    f, wrt = function_of(PROGRAMS[name], "numpy"), ("a", "x", "y")
    g = pe.value_and_gradient(f, wrt=wrt)
    *arrays, lim = values_of(3)
    narrow = [array.astype(type_of(dtype)) for array in arrays]
    value, found = g(*map(np.copy, narrow), lim)
    assert value == pytest.approx(f(*map(np.copy, narrow), lim), rel=1e-6)
    _, expected = g(*(array.astype(np.float64) for array in narrow), lim)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == type_of(dtype)
        size = max(1.0, np.abs(other).max())
        atol = size * (0.01 if dtype == "float16" else 0.08)
        np.testing.assert_allclose(one.astype(np.float64), other, atol=atol)


def test_cotangents_of_many_terms_are_not_rounded_one_by_one() -> None:
    f = pe.cd_from_source("def f(x, w):\n    return f64(sum[i](f32(x[i]) * f32(w)))\n", {})
    x = np.full(4096, 0.5, np.float16)
    assert pe.gradient(f, wrt="w")(x, np.float16(1.0)) == 2048.0
