"""Evaluation order of operands: earlier values are saved before a later operand writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from ...base.dataclass import dataclass
from ...base.diagnostic import Span
from ...lowering.ir import dtypes
from ...lowering.ir.assignments import Assign, Permute, Statement
from ...lowering.ir.expressions import Apply, Dynamic, Expr, Read, walk
from ...lowering.ir.indexing import var
from ...lowering.ir.node import Node
from ...lowering.ir.walk import direct_writes, statements, writes
from .builder import Context
from .memory_order import held, in_memory
from .types import Kind
from .values import Array, Bound, Edge, Group, Masked, Scalar, Section, Value

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Writes:
    """The nodes that statements write; of these, `rebound` are the ones in which a name or an
    attribute is stored that gets another array: its views keep the elements that it had."""

    nodes: frozenset[Node] = frozenset()
    rebound: frozenset[Node] = frozenset()


def after(ctx: Context, earlier: list[Value], evaluate: Callable[[], T], span: Span) -> T:
    """Return the value of `evaluate()`, the next operand.

    Scalars and new arrays among the earlier values that read a node it writes are saved before
    and replaced in `earlier`; views see the write, as in Python.
    """
    with ctx.block() as out:
        value = evaluate()
    written = _writes_of(ctx, out)
    if written.nodes and not ctx.pointwise:
        earlier[:] = [saved(ctx, earlier_value, written, span) for earlier_value in earlier]
    ctx.out += out
    return value


def _writes_of(ctx: Context, out: list[Statement]) -> Writes:
    """Return what the statements of an operand write; only a call rebinds something there."""
    nodes = frozenset(writes(out))
    return Writes(nodes, nodes & ctx.rebound)


def writes_views(ctx: Context, operands: list[Value], out: list[Statement]) -> bool:
    """Whether the statements of a later operand write in place what earlier ones are views of."""
    written = frozenset(writes(out))
    return any(
        isinstance(value, Array) and value.aliased is not None and _reads_any(value.body, written)
        for value in operands
    )


def saved_before(
    ctx: Context, operands: list[Value], out: list[Statement], span: Span
) -> list[Value]:
    """Return operands that were evaluated before the statements of a later one, as they were."""
    written = _writes_of(ctx, out)
    return [saved(ctx, value, written, span) for value in operands]


def copied_before(ctx: Context, value: Array | Masked, span: Span) -> Array | Masked:
    """Return a copy of an array or a selection, as it is now."""
    if isinstance(value, Array):
        return _copy_now(ctx, value, "before", span)
    mask = value.mask if value.held else _copy_now(ctx, value.mask, "mask", span)
    return replace(value, array=_copy_now(ctx, value.array, "before", span), mask=mask, held=True)


def rebound_by(ctx: Context, body: Iterable[Statement]) -> frozenset[Node]:
    """Return the nodes in which some statements store other arrays: they rebind what they hold."""
    return frozenset(
        node
        for statement in statements(tuple(body))
        for node in direct_writes(statement)
        if isinstance(statement, Permute)
        or isinstance(statement, Assign)
        and (node, statement.span) in ctx.bindings
    )


def fixed(ctx: Context, target: Value, out: list[Statement], span: Span) -> tuple[Value, Value]:
    """Return the target of `target op= value` and its old value, both as before `out`.

    `out` are the statements that compute the value: subscripts and masks of the target that they
    write are saved before.
    """
    writes_of_value = _writes_of(ctx, out)
    written = writes_of_value.nodes
    if not written:
        return target, target
    match target:
        case Array() if _reads_any(target.body, writes_of_value.rebound):
            target = saved(ctx, target, writes_of_value, span)
            return target, target
        case Array() if target.base is not None:
            target = _save_subscripts(ctx, target, target.base, written, span)
            if not _reads_any(target.body, written):
                return target, target
            if not target.rank:
                old = saved(ctx, Scalar(target.body, target.kind), writes_of_value, span)
                return target, old
            return target, _copy_now(ctx, target, "before", span) if target.chosen else target
        case Masked(array, mask, is_held) if _reads_any(array.body, written) or _reads_any(
            mask.body, written
        ):
            mask = mask if is_held else _copy_now(ctx, mask, "mask", span)
            if _reads_any(array.body, writes_of_value.rebound):
                target = replace(target, array=_held_now(ctx, array, span), mask=mask, held=True)
                return target, target
            old = _copy_now(ctx, array, "before", span)
            target = replace(target, mask=mask, held=True)
            return target, replace(target, array=old)
        case Array() | Masked():
            return target, target
        case _:
            return target, saved(ctx, target, writes_of_value, span)


def _copy_now(ctx: Context, value: Array, label: str, span: Span) -> Array:
    """Return a copy of an array, materialized here, over the same axes."""
    copy = ctx.materialize(replace(value, copied=True), label, span)
    return replace(value, body=copy.at(tuple(map(var, value.axes))), copied=True)


def _held_now(ctx: Context, value: Array, span: Span) -> Array:
    """Return the array that a view is of, over the same axes, as its name is bound to another."""
    assert value.base is not None, "only a view is of an array that a name is bound to"
    copy = held(ctx, value, value.base.node.label, span)
    return replace(
        copy, axes=value.axes, body=copy.at(tuple(map(var, value.axes))), sealed=value.sealed
    )


def _save_subscripts(
    ctx: Context, target: Array, read: Read, written: frozenset[Node], span: Span
) -> Array:
    """Return a target with the data-dependent subscripts that read written nodes saved."""
    index = list(read.index)
    for axis, at in enumerate(index):
        if isinstance(at, Dynamic) and _reads_any(at.value, written):
            subscript = Array(target.axes, target.shape, at.value, Kind(dtypes.int64))
            index[axis] = Dynamic(_copy_now(ctx, subscript, "at", span).body)
    body: Expr = replace(read, index=tuple(index))
    if isinstance(target.body, Apply):  # the real or the imaginary part of it
        body = replace(target.body, args=(body,))
    return replace(target, body=body)


def saved(ctx: Context, value: Value, written: Writes, span: Span, label: str = "before") -> Value:
    """Return a value that some writes do not change: what they would change is stored here.

    Views of arrays that are written in place stay views.
    """

    def part(inner: Value) -> Value:
        return saved(ctx, inner, written, span, label)

    match value:
        case Scalar(expr, kind) if _reads_any(expr, written.nodes):
            return Scalar(Read(ctx.variable(label, value, span), ()), kind)
        case Array() if value.aliased is None and _reads_any(value.body, written.nodes):
            array = in_memory(ctx, value, label, span)
            return replace(array, listed=value.listed, sealed=value.sealed)
        case Array() if _reads_any(value.body, written.rebound):
            return _held_now(ctx, value, span)
        case Masked(array, mask, is_held) if _reads_any(array.body, written.nodes) or _reads_any(
            mask.body, written.nodes
        ):
            mask = mask if is_held else _copy_now(ctx, mask, "mask", span)
            return replace(value, array=_copy_now(ctx, array, label, span), mask=mask, held=True)
        case Group(items):
            return value.of(part(item) for item in items)
        case Bound(owner, name):
            return Bound(part(owner), name)
        case Edge(mode, index, fill):
            position = part(index)
            assert isinstance(position, Scalar), "what is saved keeps its kind"
            return Edge(mode, position, fill and part(fill))
        case Section(lower, upper, step):
            return Section(*(end and part(end) for end in (lower, upper, step)))
        case _:
            return value


def _reads_any(expr: Expr, nodes: frozenset[Node]) -> bool:
    return any(isinstance(part, Read) and part.node in nodes for part in walk(expr))
