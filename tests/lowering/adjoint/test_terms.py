"""The contributions of statements to cotangents."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.lowering.adjoint.terms import all_of
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.expressions import Read
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.text import Scope, expr_text

WRITTEN = {
    "equal elements": (
        "y[i] = x[i] * x[i] + 3.0 * x[i]",
        "d_x[i] = 2.0 * d_y[i] * x[i] + 3.0 * d_y[i]",
    ),
    "outside of a sum": (
        "r = np.sum(a, axis=1); y = a / r[:, None]",
        "d_r[i] = -(d_r_sum[i] / r[i])",
    ),
    "under a test": ("y = np.where(x > 0.5, x * n, 0.0)", "if x[i] > 0.5:"),
    "its own value": ("y = np.exp(x)", "d_x[i] = d_y[i] * y[i]"),
    "a divisor that stays": ("r = np.sum(a, axis=1); y = a / r[:, None]", "* (1.0 / r[i])"),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_contributions_are_written_as_one_would(name: str) -> None:
    body, expected = WRITTEN[name]
    source = f"def f(x, a, n):\n    {body}; return (y * y).sum()\n"
    f = pe.cd_from_source(source, {"np": np}, backend="numpy")
    rng = np.random.default_rng(2)
    given = rng.random(4), rng.random((3, 4)) + 0.5, 0.5
    wrt = "a" if "a," in body else "x"
    assert pe.check_gradient(f, given, wrt=wrt).digits > 8
    assert expected in pe.gradient(f, wrt=wrt).text(*given)


def test_tests_are_evaluated_one_after_the_other() -> None:
    p, q = (Read(Node(at, "pq"[at], (), dtypes.bool_), ()) for at in range(2))
    assert all_of([]) is None and all_of([p]) == p
    whole = all_of([p, q])
    assert whole is not None and expr_text(whole, Scope()) == "q if p else False"


def test_terms_under_tests_of_data_are_zero_where_these_fail() -> None:
    text = "def f(h, d, w):\n    y[n, o] = sum[i](d[n, i] * w[i, o] if h[n, i] > 0.0 else 0.0)\n"
    f = pe.cd_from_source(text + "    return np.sum(y * y)\n", {"np": np})
    h, d, w = np.ones((3, 4)), np.ones((3, 4)), np.ones((4, 2))
    found = " ".join(str(pe.gradient(f, wrt="w").explain(h, d, w).assignments).split())
    assert "d_w[i, o] = sum over n in [0, 3): d_y[n, o] * d[n, i] if h[n, i] > 0.0 else" in found


def test_sums_at_the_points_of_a_triangle() -> None:
    text = "def f(a, w):\n    y = a * 0.5\n    if j < i:\n        "
    text += "y[i, j] = sum[k](a[i, j] * w[k] * a[k, i])\n    return np.sum(y * y)\n"
    f = pe.cd_from_source(text, {"np": np}, backend="numpy")
    rng = np.random.default_rng(2)
    for size in (4, 5, 3):
        given = rng.random((size, size)), rng.random(size)
        assert pe.check_gradient(f, given, wrt=("a", "w")).digits > 8
