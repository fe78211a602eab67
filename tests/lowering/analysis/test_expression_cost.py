"""What values cost, worked out by hand, and how often loops run."""

from __future__ import annotations

import pytest

from plusequals.lowering import thresholds
from plusequals.lowering.analysis.expression_cost import cost, estimate_iterations
from plusequals.lowering.ir.dtypes import bool_
from plusequals.lowering.ir.expressions import Const
from plusequals.lowering.ir.indexing import Symbol, const, var
from plusequals.lowering.ir.loops import For, If, Store, While
from plusequals.lowering.ir.walk import statements

from ..shown import lowered

COSTS = [
    ("y[i] = x[i]", 1), ("y[i] = x[i] * 2", 2), ("y[i] = x[i] / s", 5), ("y[i] = exp(x[i])", 17),
    ("y[i] = s * s", 1), ("y[i] = x[i] if i < 3 else 0.0", 3), ("y[i] = i", 0),
    ("y[i] = x[p[i]]", 2), ("y[i] = f32(h[i])", 2),
]  # fmt: skip


@pytest.mark.parametrize(("body", "expected"), COSTS)
def test_cost(body: str, expected: int) -> None:
    program = lowered(body, y="f32[8]", x="f32[8]", s="f32", p="i64[8]", h="f16[8]")
    (store,) = (s for s in statements(program.kernels[0].body) if isinstance(s, Store))
    assert cost(store.value) in (expected, expected - 1), "a cast may be free"


def test_rounds() -> None:
    i, n = Symbol("i", 0), Symbol("n", 1)
    up, down = For(i, const(0), const(9), 2, ()), For(i, const(8), const(-1), -1, ())
    assert estimate_iterations((up,)) == 5 and estimate_iterations((up, down)) == 45
    assert estimate_iterations((For(i, const(0), var(n), 1, ()),)) == thresholds.ASSUMED_SIZE
    assert estimate_iterations((For(i, const(3), const(0), 1, ()),)) == 0
    waiting = While((), Const(True, bool_), ())
    branch = If(Const(True, bool_), (), ())
    assert (
        estimate_iterations((waiting, up)) == 5 * thresholds.ASSUMED_SIZE
        and estimate_iterations((branch, up)) == 5
    )
