"""Which sums may be taken out of their loops."""

from __future__ import annotations

import pytest

from plusequals.lowering.analysis.reductions import find_reductions
from plusequals.lowering.ir.loops import For, Update
from plusequals.lowering.ir.walk import statements

from ..shown import lowered

CASES = {
    "y[i] = sum(x[i, j])": ["j"],
    "y[0] = sum(x[i, j])": ["i j"],
    "y[i] = sum[j <= i](x[i, j])": ["j"],
    "y[p[i]] += x[i, j]": [],  # which cell it is depends on data
    "y[p[j]] += x[i, j]": [],
    "for t in range(8):\n    y[t] += x[t, 0]": [],  # no sum, but a loop
    "y[i] = sum(x[i, j])\ny[i] += x[i, 2]": ["j"],
}


@pytest.mark.parametrize("text", CASES)
def test_what_may_be_taken_out(text: str) -> None:
    specs = {"y": "f32[8]", "x": "f32[8, 8]", **({"p": "i64[8]"} if "p[" in text else {})}
    (kernel,) = lowered(text, **specs).kernels
    found = [
        " ".join(loop.symbol.name for loop in one.letters)
        for stmt in statements(kernel.body)
        if isinstance(stmt, For)
        for outer in [tuple(s for s in statements(kernel.body) if _has(s, stmt) and s is not stmt)]
        for one in find_reductions(stmt, outer)
    ]
    assert found == CASES[text]


def _has(outer: object, inner: For) -> bool:
    return isinstance(outer, For) and any(stmt is inner for stmt in statements((outer,)))


def test_a_guarded_term_is_marked() -> None:
    (kernel,) = lowered("y[0] = sum[i, i != 3](x[i])", y="f32[8]", x="f32[8]").kernels
    loops = [stmt for stmt in kernel.body if isinstance(stmt, For)]
    (one,) = [one for loop in loops for one in find_reductions(loop, ())]
    assert one.is_guarded
    assert isinstance(one.update, Update)
