"""Reads of an expression, each with the conditions under which it is evaluated."""

from __future__ import annotations

from ..ir.expressions import Apply, Expr, Read, Select, children, conjuncts, reads
from ..ir.node import Node
from ..ir.ops import OPS


def guarded_reads(expr: Expr, tests: tuple[Expr, ...] = ()) -> list[tuple[Read, tuple[Expr, ...]]]:
    """Return each read of an expression with the tests that hold where it is evaluated."""
    guarded: list[tuple[Read, tuple[Expr, ...]]] = []
    _collect_reads(expr, tests, guarded)
    return guarded


def _collect_reads(
    expr: Expr, tests: tuple[Expr, ...], guarded: list[tuple[Read, tuple[Expr, ...]]]
) -> None:
    if isinstance(expr, Select):
        _collect_reads(expr.test, tests, guarded)
        _collect_reads(expr.yes, (*tests, *conjuncts(expr.test)), guarded)
        _collect_reads(expr.no, (*tests, negate(expr.test)), guarded)
        return
    if isinstance(expr, Read):
        guarded.append((expr, tests))
    for child in children(expr):
        _collect_reads(child, tests, guarded)


def nodes_of(expr: Expr) -> frozenset[Node]:
    """Return the nodes that an expression reads."""
    return frozenset([read.node for read in reads(expr)])


def negate(test: Expr) -> Expr:
    """Return the test that holds where the given one does not."""
    return Apply(OPS["logical_not"], (test,), test.dtype)
