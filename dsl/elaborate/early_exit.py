"""Early exits from loops: `break`, `continue` and `return` rewritten in the surface syntax.

A loop of the IR has jumps. An unrolled loop has none: a jump under a run-time test becomes an
`else` around the statements that it skips, and `break` also a flag, which later iterations test.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

from ...base.diagnostic import CdSyntaxError, Span
from ...lowering.ir.expressions import Read
from ..source import surface as s
from ..source.desugar import Body, has_break, leaves, nested_blocks
from ..values.builder import Context, error
from ..values.memory_order import alike
from ..values.values import Array, Group, Scalar, Value
from .bindings import copy_into, uses_symbols
from .scope import EXIT

_MAX_REPEATED = 5
"""How many statements in a row may return in the middle of a side: each doubles what follows."""


def returns_inside(body: Body) -> bool:
    """Whether statements, inner loops included, contain a `return`."""
    return any(
        isinstance(statement, s.Return)
        or any(map(returns_inside, nested_blocks(statement)))
        or isinstance(statement, s.For | s.While) and returns_inside(statement.body)
        for statement in body
    )  # fmt: skip


def returns_within(statement: s.If, rest: Body) -> bool:
    """Whether a side of an `if` returns in the middle, so that what follows belongs to its paths.

    That is elaborated in each side then, so that there may not be too many of them in a row.
    """
    if not returns_inside((statement,)):
        return False
    row = (one for one in rest if isinstance(one, s.If) and returns_inside((one,)))
    return len(tuple(islice(row, _MAX_REPEATED))) < _MAX_REPEATED


def straightened(body: Body, flag: str) -> Body:
    """Return the body of an unrolled iteration without jumps.

    Skipped statements stand in an `else`, and `break` sets the flag. Statements after a test are
    duplicated into both sides where both may fall through.
    """
    for at, statement in enumerate(body):
        before, rest = body[:at], body[at + 1 :]
        match statement:
            case s.Continue():
                return before
            case s.Break(span):
                return (*before, s.Assign((s.Name(flag, span),), s.Literal(True, span), span))
            case s.If(_, then, orelse) if leaves((statement,)):
                sides = (straightened((*side, *rest), flag) for side in (then, orelse))
                return (*before, replace(statement, then=next(sides), orelse=next(sides)))
            case s.Comment(_, inner) if leaves((statement,)):
                return (*before, replace(statement, body=straightened((*inner, *rest), flag)))
    return body


def with_exits(body: Body) -> Body:
    """Return a loop's body with a `break` after each `return`, and in every enclosing loop."""
    out: list[s.Statement] = []
    for statement in body:
        match statement:
            case s.Return(_, span):
                return (*out, statement, s.Break(span))
            case s.For(_, _, inner, span) | s.While(_, inner, span) if returns_inside(inner):
                exit_test = s.If(s.Name(EXIT, span), (s.Break(span),), (), span)
                out += [replace(statement, body=with_exits(inner)), exit_test]
            case s.If(_, then, orelse):
                out.append(replace(statement, then=with_exits(then), orelse=with_exits(orelse)))
            case s.Comment(_, inner):
                out.append(replace(statement, body=with_exits(inner)))
            case _:
                out.append(statement)
    return tuple(out)


def endless(statement: s.For | s.While) -> bool:
    """Whether a loop can end only by `return`."""
    if not isinstance(statement, s.While) or not isinstance(statement.test, s.Literal):
        return False
    return bool(statement.test.value) and not has_break(statement.body)


def lasting(ctx: Context, value: Value, span: Span) -> Value:
    """Return the value of a `return` in a loop, stored where it can be read after the loop.

    CdSyntaxError CD0144 for an array whose size depends on the iteration.
    """
    match value:
        case Scalar():
            return Scalar(Read(ctx.variable("result", value, span), ()), value.kind)
        case Group(items):
            return value.of(lasting(ctx, item, span) for item in items)
        case Array():
            if value.aliased is not None and not _depends_on_iteration(ctx, value):
                return value
            return _copy_before_loop(ctx, value, span)
        case _:
            return value


def _depends_on_iteration(ctx: Context, value: Array) -> bool:
    """Whether an array depends on values of one iteration."""
    loop_symbols = frozenset(ctx.loop_symbols)
    return uses_symbols(value, loop_symbols) or not _has_invariant_shape(ctx, value)


def _has_invariant_shape(ctx: Context, value: Array) -> bool:
    """Whether an array's shape is loop-invariant."""
    invariant = ctx.origin.keys() | ctx.sizes
    return all(extent.symbols() <= invariant for extent in value.shape)


def _copy_before_loop(ctx: Context, value: Array, span: Span) -> Array:
    """Return a copy of an array in a node that is allocated before the loop."""
    if not _has_invariant_shape(ctx, value):
        raise error(
            "CD0144", CdSyntaxError,
            "`return` inside a loop cannot give an array whose size depends on the iteration", span,
            helps=("set the slice's ends, `break`, and return the array after the loop",),
        )  # fmt: skip
    outer, ctx.out = ctx.out, ctx.prologue
    try:
        target = alike(ctx, "result", (value,), value.shape, value.kind, span)
    finally:
        ctx.out = outer
    copy_into(ctx, target, value, span)
    return target
