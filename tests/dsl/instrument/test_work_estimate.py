"""How much a call computes, counted before anything is compiled."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

import plusequals as pe
from plusequals.dsl.instrument import work_estimate
from plusequals.dsl.instrument.work_estimate import count_points, is_quick
from plusequals.lowering.ir.assignments import Access, Assign
from plusequals.lowering.ir.dtypes import float32 as f32
from plusequals.lowering.ir.expressions import Apply, Domain, Expr, Read, Reduce
from plusequals.lowering.ir.indexing import Range, Symbol, const, var
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.ops import OPS

X = np.zeros((4, 5))


def counted(*lines: str) -> float:
    f = pe.cd_from_source("def f(x, n):\n    " + "\n    ".join(lines), {"np": np})
    return count_points(f.procedure(X, 3).body)


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        (("x[i, j] = 1",), 20),
        (("y[i] = sum(x[i, j])", "return y"), 20),
        (("x[i, j] = sum[k, l](x[k, l] * sum[m](x[m, l]))",), 20 + 20 + 20),
        (("for t in range(0, 10, 2):", "    x[0, j] += t"), 25),
        (("for t in range(9, -1, -1):", "    x[0, j] += t"), 50),
        (("if x[0, 0] > 2:", "    x[i, j] = 1", "else:", "    x[0, j] = 2"), 25),
        (("for t in range(n):", "    x[i, j] += 1"), inf),
        (("while x[0, 0] < 9:", "    x[i, j] += 1"), inf),
    ],
)  # fmt: skip
def test_elements_and_terms_are_counted(lines: tuple[str, ...], count: float) -> None:
    assert counted(*lines) == count


def test_reductions_that_have_no_array_yet_are_counted() -> None:
    i, k, m = (Symbol(name, number) for number, name in enumerate("ikm"))
    x, y = Node(0, "x", (const(4), const(5)), f32), Node(1, "y", (const(4),), f32)

    def total(of: Symbol, value: Expr) -> Expr:
        return Reduce(OPS["add"], Domain((Range(of, const(0), const(5)),)), value, f32)

    inner = total(m, Read(x, (var(i), var(m))))
    outer = total(k, Apply(OPS["mul"], (Read(x, (var(i), var(k))), inner), f32))
    free = Domain((Range(i, const(0), const(4)),))
    stmt = Assign(Access(y, (var(i),)), None, False, outer, free)
    assert count_points([stmt]) == 4 * (1 + 5 * (1 + 5))


def test_few_are_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    procedure = pe.cd_from_source("def f(x):\n    x[i, j] = 1\n").procedure(X)
    assert is_quick(procedure)
    monkeypatch.setattr(work_estimate, "MAX_QUICK_POINTS", 20)
    assert is_quick(procedure)
    monkeypatch.setattr(work_estimate, "MAX_QUICK_POINTS", 19)
    assert not is_quick(procedure)
