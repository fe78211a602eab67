"""Python's order of evaluation: what was evaluated stays what it was, whatever a call does next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from ...base.diagnostic import Span
from ...lowering.ir import dtypes
from ...lowering.ir.assignments import Statement
from ...lowering.ir.expressions import Dynamic, Expr, Read, walk
from ...lowering.ir.indexing import var
from ...lowering.ir.node import Node
from ...lowering.ir.walk import writes
from .builder import Context
from .memory_order import in_memory
from .types import Kind
from .values import Array, Group, Masked, Scalar, Section, Value

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


def fixed(ctx: Context, place: Value, out: list[Statement], span: Span) -> tuple[Value, Value]:
    """Return the place of `place op= value` and what it held, both as before `out` computes the
    value: where `out` changes what the place is found by, that is read before."""
    written = frozenset(writes(out))
    if not written:
        return place, place
    match place:
        case Array() if place.place is not None:
            place = _with_index(ctx, place, place.place, written, span)
            if not place.rank and _reads(place.body, written):
                return place, _kept(ctx, Scalar(place.body, place.kind), written, span)
            return place, place
        case Masked(array, mask, held) if _reads(array.body, written) or _reads(mask.body, written):
            mask = mask if held else _copied(ctx, mask, "mask", span)
            old = _copied(ctx, array, "before", span)
            return Masked(array, mask, True), Masked(old, mask, True)
        case Array() | Masked():
            return place, place
        case _:
            return place, _kept(ctx, place, written, span)


def _copied(ctx: Context, value: Array, label: str, span: Span) -> Array:
    """Return a copy of an array as it is now, over the same axes."""
    made = ctx.materialize(replace(value, copied=True), label, span)
    return replace(value, body=made.at(tuple(map(var, value.axes))), copied=True)


def _with_index(
    ctx: Context, place: Array, read: Read, written: frozenset[Node], span: Span
) -> Array:
    """Return a place whose data-dependent subscripts are as they were before a write of nodes."""
    index = list(read.index)
    for axis, at in enumerate(index):
        if isinstance(at, Dynamic) and _reads(at.value, written):
            found = Array(place.axes, place.shape, at.value, Kind(dtypes.int64))
            index[axis] = Dynamic(_copied(ctx, found, "at", span).body)
    return replace(place, body=replace(read, index=tuple(index)))


def _kept(ctx: Context, value: Value, written: frozenset[Node], span: Span) -> Value:
    match value:
        case Scalar(expr, kind) if _reads(expr, written):
            return Scalar(Read(ctx.variable("before", value, span), ()), kind)
        case Array() if value.aliased is None and _reads(value.body, written):
            return in_memory(ctx, value, "before", span)
        case Array() if _reads(value.body, written & ctx.rebound):
            return in_memory(ctx, value, "before", span)
        case Group(items):
            return value.of(_kept(ctx, item, written, span) for item in items)
        case Section(lower, upper, step):
            ends = (lower, upper, step)
            return Section(*(end and _kept(ctx, end, written, span) for end in ends))
        case _:
            return value


def _reads(expr: Expr, nodes: frozenset[Node]) -> bool:
    return any(isinstance(part, Read) and part.node in nodes for part in walk(expr))
