"""Evaluation order of operands: earlier values are saved before a later operand writes them."""

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
    """Return the value of `evaluate()`, the next operand.

    Scalars and new arrays among the earlier values that read a node it writes are saved before
    and replaced in `earlier`; views see the write, as in Python.
    """
    with ctx.block() as out:
        value = evaluate()
    written = frozenset(writes(out))
    if written and not ctx.pointwise:
        earlier[:] = [_save_value(ctx, earlier_value, written, span) for earlier_value in earlier]
    ctx.out += out
    return value


def fixed(ctx: Context, target: Value, out: list[Statement], span: Span) -> tuple[Value, Value]:
    """Return the target of `target op= value` and its old value, both as before `out`.

    `out` are the statements that compute the value: subscripts and masks of the target that they
    write are saved before.
    """
    written = frozenset(writes(out))
    if not written:
        return target, target
    match target:
        case Array() if target.element is not None:
            target = _save_subscripts(ctx, target, target.element, written, span)
            if not target.rank and _reads_any(target.body, written):
                return target, _save_value(ctx, Scalar(target.body, target.kind), written, span)
            return target, target
        case Masked(array, mask, held) if _reads_any(array.body, written) or _reads_any(
            mask.body, written
        ):
            mask = mask if held else _copy_now(ctx, mask, "mask", span)
            old = _copy_now(ctx, array, "before", span)
            return Masked(array, mask, True), Masked(old, mask, True)
        case Array() | Masked():
            return target, target
        case _:
            return target, _save_value(ctx, target, written, span)


def _copy_now(ctx: Context, value: Array, label: str, span: Span) -> Array:
    """Return a copy of an array, materialized here, over the same axes."""
    copy = ctx.materialize(replace(value, copied=True), label, span)
    return replace(value, body=copy.at(tuple(map(var, value.axes))), copied=True)


def _save_subscripts(
    ctx: Context, target: Array, read: Read, written: frozenset[Node], span: Span
) -> Array:
    """Return a target with the data-dependent subscripts that read written nodes saved."""
    index = list(read.index)
    for axis, at in enumerate(index):
        if isinstance(at, Dynamic) and _reads_any(at.value, written):
            subscript = Array(target.axes, target.shape, at.value, Kind(dtypes.int64))
            index[axis] = Dynamic(_copy_now(ctx, subscript, "at", span).body)
    return replace(target, body=replace(read, index=tuple(index)))


def _save_value(ctx: Context, value: Value, written: frozenset[Node], span: Span) -> Value:
    match value:
        case Scalar(expr, kind) if _reads_any(expr, written):
            return Scalar(Read(ctx.variable("before", value, span), ()), kind)
        case Array() if value.aliased is None and _reads_any(value.body, written):
            return in_memory(ctx, value, "before", span)
        case Array() if _reads_any(value.body, written & ctx.rebound):
            return in_memory(ctx, value, "before", span)
        case Group(items):
            return value.of(_save_value(ctx, item, written, span) for item in items)
        case Section(lower, upper, step):
            ends = (lower, upper, step)
            return Section(*(end and _save_value(ctx, end, written, span) for end in ends))
        case _:
            return value


def _reads_any(expr: Expr, nodes: frozenset[Node]) -> bool:
    return any(isinstance(part, Read) and part.node in nodes for part in walk(expr))
