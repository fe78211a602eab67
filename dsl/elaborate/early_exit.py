"""Leaving a loop early, rewritten before it is elaborated: what a jump skips, what a `return` ends.

A loop that runs has real jumps. In one that is unrolled there is nothing to jump out of: a jump
under a test of the run becomes an `else` around what it skips, and a flag for the rounds to come.
"""

from __future__ import annotations

from dataclasses import replace

from ...base.diagnostic import CdSyntaxError, Span
from ...lowering.ir.expressions import Read
from ..source import surface as s
from ..source.desugar import Body, has_break, nested_blocks
from ..values.builder import Context, error
from ..values.memory_order import alike
from ..values.values import Array, Group, Scalar, Value
from .bindings import copy_into, uses_symbols
from .scope import EXIT

_JUMPS = s.Break | s.Continue


def leaves(body: Body) -> bool:
    """Whether statements leave their round or loop; inner loops keep their jumps for themselves."""
    return any(isinstance(one, _JUMPS) or any(map(leaves, nested_blocks(one))) for one in body)


def returns_inside(body: Body) -> bool:
    """Whether statements, inner loops included, hold a `return`."""
    return any(
        isinstance(one, s.Return)
        or any(map(returns_inside, nested_blocks(one)))
        or isinstance(one, s.For | s.While) and returns_inside(one.body)
        for one in body
    )  # fmt: skip


def straightened(body: Body, flag: str) -> Body:
    """Return an unrolled round without jumps: what they skip is in an `else`, `break` sets a flag.

    Both sides of a test get what follows it where neither is sure to jump.
    """
    for at, statement in enumerate(body):
        before, rest = body[:at], body[at + 1 :]
        match statement:
            case s.Continue():
                return before
            case s.Break(span):
                return (*before, s.Assign((s.Name(flag, span),), s.Literal(True, span), span))
            case s.If(_, then, other) if leaves((statement,)):
                sides = (straightened((*side, *rest), flag) for side in (then, other))
                return (*before, replace(statement, then=next(sides), other=next(sides)))
            case s.Comment(_, inner) if leaves((statement,)):
                return (*before, replace(statement, body=straightened((*inner, *rest), flag)))
    return body


def with_exits(body: Body) -> Body:
    """Return a loop's body whose returns break out of it, and so out of every loop around them."""
    out: list[s.Statement] = []
    for statement in body:
        match statement:
            case s.Return(_, span):
                return (*out, statement, s.Break(span))
            case s.For(_, _, inner, span) | s.While(_, inner, span) if returns_inside(inner):
                gone = s.If(s.Name(EXIT, span), (s.Break(span),), (), span)
                out += [replace(statement, body=with_exits(inner)), gone]
            case s.If(_, then, other):
                out.append(replace(statement, then=with_exits(then), other=with_exits(other)))
            case s.Comment(_, inner):
                out.append(replace(statement, body=with_exits(inner)))
            case _:
                out.append(statement)
    return tuple(out)


def endless(statement: s.For | s.While) -> bool:
    """Whether a loop ends by `return` only."""
    if not isinstance(statement, s.While) or not isinstance(statement.test, s.Literal):
        return False
    return bool(statement.test.value) and not has_break(statement.body)


def lasting(ctx: Context, value: Value, span: Span) -> Value:
    """Return what a `return` in a loop gives back, held where it can be read after the loop.

    CdSyntaxError CD0144 for an array whose size is another in each round.
    """
    match value:
        case Scalar():
            return Scalar(Read(ctx.variable("result", value, span), ()), value.kind)
        case Group(items):
            return value.of(lasting(ctx, item, span) for item in items)
        case Array():
            if value.aliased is not None and not _of_round(ctx, value):
                return value
            return _kept(ctx, value, span)
        case _:
            return value


def _of_round(ctx: Context, value: Array) -> bool:
    gone = frozenset(ctx.loop_symbols)
    return uses_symbols(value, gone) or not _sized(ctx, value)


def _sized(ctx: Context, value: Array) -> bool:
    fixed = ctx.origin.keys() | ctx.sizes
    return all(extent.symbols() <= fixed for extent in value.shape)


def _kept(ctx: Context, value: Array, span: Span) -> Array:
    """Return a copy of an array in a node that is there before the loop begins."""
    if not _sized(ctx, value):
        raise error(
            "CD0144", CdSyntaxError,
            "`return` inside a loop cannot give an array whose size depends on the round", span,
            helps=("set the slice's ends, `break`, and return the array after the loop",),
        )  # fmt: skip
    outer, ctx.out = ctx.out, ctx.prologue
    try:
        target = alike(ctx, "result", (value,), value.shape, value.kind, span)
    finally:
        ctx.out = outer
    copy_into(ctx, target, value, span)
    return target
