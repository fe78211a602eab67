"""Python's order of evaluation: what was evaluated stays what it was, whatever a call does next."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ...lowering.diagnostic import Span
from ...lowering.ir.expressions import Expr, Read, walk
from ...lowering.ir.node import Node
from ...lowering.ir.walk import writes
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
