"""What an expression reads, and the tests that hold where it does."""

from __future__ import annotations

from ..ir.expressions import Apply, Expr, Read, Select, children, conjuncts, reads
from ..ir.node import Node
from ..ir.ops import OPS


def reads_in(expr: Expr, tests: tuple[Expr, ...] = ()) -> list[tuple[Read, tuple[Expr, ...]]]:
    """Return each read of an expression with the tests that hold where it is evaluated."""
    found: list[tuple[Read, tuple[Expr, ...]]] = []
    _reads_in(expr, tests, found)
    return found


def _reads_in(
    expr: Expr, tests: tuple[Expr, ...], found: list[tuple[Read, tuple[Expr, ...]]]
) -> None:
    if isinstance(expr, Select):
        _reads_in(expr.test, tests, found)
        _reads_in(expr.yes, (*tests, *conjuncts(expr.test)), found)
        _reads_in(expr.no, (*tests, negated(expr.test)), found)
        return
    if isinstance(expr, Read):
        found.append((expr, tests))
    for child in children(expr):
        _reads_in(child, tests, found)


def nodes_of(expr: Expr) -> frozenset[Node]:
    """Return the nodes that an expression reads."""
    return frozenset([read.node for read in reads(expr)])


def negated(test: Expr) -> Expr:
    """Return the test that holds where the given one does not."""
    return Apply(OPS["logical_not"], (test,), test.dtype)
