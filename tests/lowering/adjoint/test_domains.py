"""Sums that have no terms at some points of their targets: nothing is read or written there."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.lowering.adjoint.domains import by_axis, not_empty, within_axes
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.assignments import Access
from plusequals.lowering.ir.indexing import Range, Symbol, const, var
from plusequals.lowering.ir.node import Node

I, J = Symbol("i", 1), Symbol("j", 2)
OVER_I = Range(I, const(0), const(4))

SUMS = {
    "a divisor that is zero": "sum[j < i](x[j] / y[i])",
    "an element before the first": "sum[j < i](x[j] * w[i - 1] ** 2)",
    "an element before the first, under a test": "sum[j](x[j] * w[i - 1] if j < i else 0.0)",
    "a test of an element before the first": "sum[j < i](x[j] * y[i] if w[i - 1] > 1.5 else 0.0)",
    "a subscript of the data": "sum[j](x[j] * w[k[i]] if j < i else 0.0)",
    "two letters": "sum[j < i, m < j](x[j] * w[i - 2] * x[m])",
}


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("way", ["numpy", "cc"])
def test_points_without_terms_are_left_out(name: str, way: str) -> None:
    text = f"def f(x, y, w, k):\n    q = np.zeros(4)\n    q[i] = {SUMS[name]}\n    return q @ q\n"
    f = pe.cd_from_source(text, {"np": np}, backend=way)
    x, y, w = np.arange(1.0, 5.0), np.arange(4.0), np.arange(1.0, 4.0)
    k = np.array([-9, 0, 1, 2])
    found = pe.gradient(f, wrt=("x", "y", "w"))(x, y, w, k)
    rng, step = np.random.default_rng(1), 1e-6
    moves = [rng.standard_normal(4), np.append(0.0, rng.standard_normal(3)), np.arange(3.0)]
    ends = [
        f(*(v + side * m for v, m in zip((x, y, w), moves, strict=True)), k)
        for side in (step, -step)
    ]
    along = sum(float(d @ m) for d, m in zip(found, moves, strict=True))
    assert along == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-6)


def test_what_is_known_is_not_tested() -> None:
    rows = Range(J, const(0), var(I)), Range(J, const(0), var(I) + 1), Range(J, const(0), const(3))
    assert [len(not_empty([r], [OVER_I])) for r in rows] == [1, 0, 0]
    node = Node(7, "w", (const(4),), dtypes.float64)
    targets = (Access(node, (var(I) + shift,)) for shift in (0, -1, 1))
    assert [len(within_axes(target, [OVER_I])) for target in targets] == [0, 1, 1]


def test_letters_come_in_the_order_of_the_axes() -> None:
    over_j, node = Range(J, const(0), const(3)), Node(0, "w", (const(4), const(9)), dtypes.float64)
    assert by_axis((OVER_I, over_j), Access(node, (var(J), var(I)))) == (over_j, OVER_I)
    assert by_axis((OVER_I, over_j), Access(node, (var(I) * 2 + 1, var(J)))) == (OVER_I, over_j)
    longer = Range(J, const(0), var(I))
    assert by_axis((OVER_I, longer), Access(node, (var(J), var(I)))) == (OVER_I, longer)
