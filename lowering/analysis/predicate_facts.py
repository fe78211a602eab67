"""Predicates decided by the values of scalars: after stores of constants, and by symbol ranges.

Analysis only.

>>> from plusequals.lowering.ir import dtypes
>>> from plusequals.lowering.ir.indexing import Symbol, const, var
>>> from plusequals.lowering.ir.node import Node
>>> from plusequals.lowering.ir.ops import OPS
>>> b, i = Node(0, "b", (), dtypes.int64), Symbol("i", 0)
>>> is_found = Apply(OPS["ge"], (Read(b, ()), Const(0, dtypes.int64)), dtypes.bool_)
>>> ranges = (Range(i, const(0), const(9)),)
>>> is_always(is_found, {0: Position(var(i))}, ranges), is_never(is_found, {}, ranges)
(True, False)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..ir import dtypes
from ..ir.algebra import FALSE, TRUE
from ..ir.expressions import Apply, Cast, Const, Expr, Position, Read, Select, rebuild
from ..ir.indexing import Affine, Range, const
from ..ir.loops import Comment, Stmt, Store
from ..ir.walk import writes
from .guarded_reads import negate
from .subscripts import is_nonnegative

OVERFLOW_SAFE = 1 << 61
"""Positions, and numbers below this, may be added without wrapping."""
Values = Mapping[int, Expr]
"""Values of scalars, by their ids."""


def scalar_values_after(body: Iterable[Stmt], values: Values | None = None) -> Values:
    """Return the known values of scalars after statements, given those before."""
    current = dict(values or {})
    for stmt in body:
        if isinstance(stmt, Store) and not stmt.access.index:
            current.pop(stmt.access.node.id, None)
            if isinstance(stmt.value, Const | Position):
                current[stmt.access.node.id] = stmt.value
        elif not isinstance(stmt, Comment):
            for node in writes((stmt,)):
                current.pop(node.id, None)
    return current


def is_always(test: Expr, values: Values, domain: tuple[Range, ...]) -> bool:
    """Whether a test holds for all values of the symbols."""
    return _decide(_substitute_values(test, values), domain) is True


def is_never(test: Expr, values: Values, domain: tuple[Range, ...]) -> bool:
    """Whether a test holds for no values of the symbols."""
    return _decide(_substitute_values(test, values), domain) is False


def _substitute_values(expr: Expr, values: Values) -> Expr:
    if isinstance(expr, Read) and not expr.index:
        return values.get(expr.node.id, expr)
    return rebuild(expr, lambda operand: _substitute_values(operand, values), lambda index: index)


def _decide(test: Expr, domain: tuple[Range, ...]) -> bool | None:
    """Return whether a test holds, None where that is not known."""
    match test:
        case Const(bool() as value):
            return value
        case Cast(Const(int() as number), dtype) if dtype is TRUE.dtype:
            return number != 0
        case Apply(op, (inner,)) if op.name == "logical_not":
            operand = _decide(inner, domain)
            return None if operand is None else not operand
        case Select(first, second, no) if no == FALSE:
            both = _decide(first, domain), _decide(second, domain)
            return False if False in both else None if None in both else True
        case Select(first, no, second) if no == FALSE:
            return _decide(Select(negate(first), second, FALSE), domain)
        case Select(first, yes, second) if yes == TRUE:
            either = _decide(first, domain), _decide(second, domain)
            return True if True in either else None if None in either else False
        case Apply(op, (left, right)):
            return _decide_comparison(op.name, left, right, domain)
        case _:
            return None


def _decide_comparison(
    name: str, first: Expr, second: Expr, domain: tuple[Range, ...]
) -> bool | None:
    """Return the result of a comparison of integers, None where that is not known."""
    left, right = _as_index(first), _as_index(second)
    if left is None or right is None:
        return None
    gap = right - left
    non_negative = {"le": gap, "lt": gap - 1, "ge": gap * -1, "gt": gap * -1 - 1}
    opposite = {"le": "gt", "lt": "ge", "ge": "lt", "gt": "le"}
    if name in non_negative:
        if is_nonnegative(non_negative[name], domain):
            return True
        return False if is_nonnegative(non_negative[opposite[name]], domain) else None
    if name not in ("eq", "ne"):
        return None
    unequal = is_nonnegative(non_negative["lt"], domain) or is_nonnegative(
        non_negative["gt"], domain
    )
    equal = gap.constant == 0
    return None if not unequal and not equal else equal == (name == "eq")


def _as_index(expr: Expr) -> Affine | None:
    match expr:
        case Position(index):
            return index
        case Const(bool() as value, _):
            return const(int(value))
        case Const(int() as value, dtype) if dtype.kind in "iu" and abs(value) < OVERFLOW_SAFE:
            return const(value)
        case Apply(op, (first, second), dtype) if (
            op.name in ("add", "sub") and dtype is dtypes.int64
        ):
            left, right = _as_index(first), _as_index(second)
            if left is None or right is None:
                return None
            return left + right if op.name == "add" else left - right
        case _:
            return None
