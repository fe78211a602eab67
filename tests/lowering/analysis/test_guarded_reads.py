"""What an expression reads, and under which tests."""

from __future__ import annotations

from plusequals.lowering.analysis.guarded_reads import guarded_reads, negate, nodes_of
from plusequals.lowering.ir.expressions import Expr, Select
from tests.lowering.ir.build import ap, i64, node, num, pos, read, symbols

(k,) = symbols("k")
X, Y, Z = node(0, "x", 4), node(1, "y", 4), node(2, "z", 4)
TEST: Expr = ap("lt", pos(k), num(4, i64))


def test_each_side_of_a_choice_is_read_under_its_test() -> None:
    choice = Select(TEST, read(X, k), read(Y, k))
    holding = {one.node.label: tests for one, tests in guarded_reads(choice)}
    assert holding == {"x": (TEST,), "y": (negate(TEST),)}


def test_a_test_is_read_always_and_what_is_around_stays() -> None:
    test = ap("and", ap("gt", read(Z, k), num(0.0)), TEST)
    found = guarded_reads(ap("add", Select(test, read(X, k), num(1.0)), read(Y, k)), (TEST,))
    assert [(one.node.label, tests) for one, tests in found] == [
        ("z", (TEST,)),
        ("x", (TEST, *test.args)),
        ("y", (TEST,)),
    ]


def test_nodes_are_told_once() -> None:
    assert nodes_of(ap("add", read(X, k), ap("mul", read(X, k), read(Y, k)))) == {X, Y}
    assert nodes_of(num(1.0)) == frozenset()
