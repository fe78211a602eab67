"""Conditions at a point, from the elements that are known: true, false or unknown."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.dsl.tracing.known_values import known_test
from plusequals.lowering.ir.dtypes import bool_, float64, int64
from plusequals.lowering.ir.expressions import (
    Apply,
    Cast,
    Const,
    Domain,
    Dynamic,
    Expr,
    Position,
    Read,
    Reduce,
    Select,
)
from plusequals.lowering.ir.indexing import Symbol, const, var
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.ops import OPS

I = Symbol("i", 1)
X = Node(1, "x", (const(3),), float64)
AT = Node(2, "at", (const(3),), int64)
READ, THROUGH = Read(X, (var(I),)), Read(X, (Dynamic(Read(AT, (var(I),))),))
POSITIVE = Apply(OPS["gt"], (READ, Const(0.0, float64)), bool_)
FALSE, TRUE = Const(False, bool_), Const(True, bool_)


@pytest.mark.parametrize(("x", "holds"), [(1.0, True), (-1.0, False), (np.nan, False)])
def test_a_condition_of_a_known_element(x: float, holds: bool) -> None:
    known = {(1, (0,)): np.float64(x), (1, (1,)): None}
    assert known_test(POSITIVE, {I: 0}, known) is holds
    assert known_test(Select(POSITIVE, TRUE, FALSE), {I: 0}, known) is holds
    for unknown in (1, 2):
        assert known_test(POSITIVE, {I: unknown}, known) is None
        assert known_test(Cast(READ, bool_), {I: unknown}, known) is None
    assert known_test(POSITIVE, {}, known) is None


@pytest.mark.parametrize("names", [("and", "or"), ("bitand", "bitor")])
def test_one_operand_may_decide(names: tuple[str, str]) -> None:
    def test(name: str, left: Expr, right: Expr) -> bool | None:
        return known_test(Apply(OPS[name], (left, right), bool_), {I: 0}, {})

    both, either = names
    assert test(both, FALSE, POSITIVE) is False and test(both, POSITIVE, FALSE) is False
    assert test(either, TRUE, POSITIVE) is True and test(either, FALSE, POSITIVE) is None
    assert test(both, TRUE, POSITIVE) is None and test(both, TRUE, TRUE) is True


def test_subscripts_and_positions() -> None:
    known = {(1, (2,)): np.float64(5), (2, (0,)): np.int64(2)}
    assert known_test(Cast(THROUGH, bool_), {I: 0}, known) is True
    assert known_test(Cast(THROUGH, bool_), {I: 1}, known) is None
    after = Apply(OPS["gt"], (Position(var(I)), Position(const(1))), bool_)
    assert known_test(after, {I: 2}, {}) is True and known_test(after, {}, {}) is None
    total = Reduce(OPS["add"], Domain(), READ, float64)
    assert known_test(Cast(total, bool_), {I: 2}, known) is None
