"""Checked mode: what NumPy answers quietly becomes a check that raises, before the statement.

`a // b` and `a % b` of integers give 0 where `b` is 0; in checked mode they raise CD0763.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..lowering.ir import dtypes
from ..lowering.ir.assignments import Assign, Check, Fault, Procedure, Statement
from ..lowering.ir.expressions import Apply, Const, Domain, Expr, Position, Select, children
from ..lowering.ir.indexing import const
from ..lowering.ir.ops import OPS
from ..lowering.ir.rewrite import map_statements
from .elaborate.types import TRUE, negate

_FAULT = Fault(
    "CD0763", "CdZeroDivisionError", "integer division by zero in checked mode",
    ("test the divisor: `where(x != 0, y // x, 0)`; without checked mode the result is 0",),
)  # fmt: skip


def add_checks(procedure: Procedure) -> Procedure:
    """Return the procedure with a check before each assignment that divides integers."""
    return replace(procedure, body=map_statements(procedure.body, _with_checks))


def _with_checks(statement: Statement) -> Iterator[Statement]:
    if isinstance(statement, Assign):
        ranges = (*statement.free.ranges, *statement.reduced.ranges)
        over = Domain(ranges, statement.free.where)
        for test in _tests(statement.value):
            yield Check(test, _FAULT, (), over, statement.span)
    yield statement


def _tests(expr: Expr) -> Iterator[Expr]:
    """Yield what has to hold for the divisions in an expression, where they are evaluated."""
    match expr:
        case Select(test, yes, no):
            yield from _tests(test)
            yield from (Select(test, inner, TRUE) for inner in _tests(yes))
            yield from (Select(negate(test), inner, TRUE) for inner in _tests(no))
            return
        case Apply(op, (_, divisor), dtype) if op.name in ("floordiv", "mod"):
            if dtype.kind in "iu" and not _is_nonzero(divisor):
                zero = Position(const(0)) if dtype is dtypes.int64 else Const(0, dtype)
                yield Apply(OPS["ne"], (divisor, zero), dtypes.bool_)
        case _:
            pass
    for child in children(expr):
        yield from _tests(child)


def _is_nonzero(expr: Expr) -> bool:
    match expr:
        case Const(value, _):
            return value != 0
        case Position(index):
            return bool(index.constant)
        case _:
            return False
