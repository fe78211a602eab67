"""Python's order of evaluation: what was evaluated stays what it was, whatever a call does next."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ...lowering.diagnostic import Span
from ...lowering.ir.assignments import Statement
from ...lowering.ir.expressions import Expr, Read, walk
from ...lowering.ir.node import Node
from ...lowering.ir.walk import writes
from .. import surface as s
from .context import Context
from .values import Array, Group, Scalar, Value

T = TypeVar("T")


def after(ctx: Context, earlier: list[Value], evaluate: Callable[[], T], span: Span) -> T:
    """Return what is evaluated now.

    Numbers and new arrays among the earlier values that read what it writes are read before, and
    put in their places; views see what is written, as in Python.
    """
    with ctx.block() as out:
        value = evaluate()
    written = frozenset(writes(out))
    if written and not ctx.pointwise:
        earlier[:] = [_kept(ctx, one, written, span) for one in earlier]
    ctx.out += out
    return value


def overwritten(
    ctx: Context, out: list[Statement], place_of: Callable[[s.Subscript], Value], target: s.Expr,
    span: Span,
) -> Value | None:  # fmt: skip
    """Return the number that `x[i] += f(x)` adds to where `out`, what `f` does, changes `x[i]`.

    It is read before. None where it is not changed, or is an array, a view of what is written.
    """
    written = frozenset(writes(out))
    if not written or not isinstance(target, s.Subscript):
        return None
    place = place_of(target)
    if not isinstance(place, Array) or place.rank or not _reads(place.body, written):
        return None
    return _kept(ctx, Scalar(place.body, place.kind), written, span)


def _kept(ctx: Context, value: Value, written: frozenset[Node], span: Span) -> Value:
    match value:
        case Scalar(expr, kind) if _reads(expr, written):
            return Scalar(Read(ctx.variable("before", value, span), ()), kind)
        case Array() if value.aliased is None and _reads(value.body, written):
            return ctx.materialize(value, "before", span)
        case Group(items):
            return value.of(_kept(ctx, item, written, span) for item in items)
        case _:
            return value


def _reads(expr: Expr, nodes: frozenset[Node]) -> bool:
    return any(isinstance(part, Read) and part.node in nodes for part in walk(expr))
