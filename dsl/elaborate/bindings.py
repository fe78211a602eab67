"""What names are bound to: scalars in variables, arrays by reference, values made real.

A scalar lives in a rank-0 node per name; an array name is an alias of a view or of a new array.
A name that lives across rounds of a loop has a slot: a variable or an array that every assignment
writes, so that all paths through the loop agree on where it is.
"""

from __future__ import annotations

from dataclasses import replace

from ...base.diagnostic import CdError, CdNameError, CdShapeError, CdTypeError, Span
from ...lowering.ir.expressions import Const, Position, Read
from ...lowering.ir.indexing import Affine, var
from ...lowering.ir.node import Node
from ..values.arrays import as_scalar, describe
from ..values.builder import Context, NeedKind, error
from ..values.memory_order import binds, held, order_of
from ..values.types import Kind, cast, join, kind_of_number
from ..values.values import Array, Group, Lazy, Masked, Scalar, Static, Unset, Value
from .aliasing import seeing
from .scope import Frame


class NeedPeel(Exception):
    """A number before a loop is an array inside: the loop is done again, its first round apart.

    `problem` is the error where that cannot be.
    """

    def __init__(self, name: str, problem: CdError) -> None:
        super().__init__(name)
        self.name = name
        self.problem = problem


def bind(frame: Frame, name: str, value: Value, span: Span) -> None:
    """Bind a name: numbers are stored in its variable, expressions of arrays made arrays."""
    if isinstance(value, Unset):
        raise error("CD0202", CdNameError, f"this {value.reason}", span)
    if name in frame.slots:
        _into_slot(frame, name, value, span)
    elif frame.ctx.pointwise:
        frame.names[name] = value
    elif isinstance(value, Scalar) and not _stays(frame, value):
        frame.names[name] = _stored(frame, name, value, span)
    elif isinstance(value, Array | Group | Masked):
        frame.names[name] = settled(frame.ctx, value, name, span)
    else:
        frame.names[name] = value


def _stays(frame: Frame, value: Scalar) -> bool:
    """Whether a number is an index expression of loop variables: it needs no storage."""
    if not isinstance(value.expr, Position):
        return False
    stable = frame.ctx.stable
    return value.expr.index.symbols() <= stable


def _stored(frame: Frame, name: str, value: Scalar, span: Span) -> Scalar:
    ctx = frame.ctx
    node = frame.variables.get(name)
    if node is not None and frame.names.get(name) == Scalar(Read(node, ()), value.kind):
        ctx.set(node, value.expr, span)
    else:
        node = ctx.variable(name, value, span)
        frame.variables[name] = node
    return Scalar(Read(node, ()), value.kind)


def _as_before(name: str, value: Value) -> tuple[str, ...]:
    """Return what to type where a number before a loop is something else inside."""
    other = "use another name inside the loop"
    if not isinstance(value, Array):
        return (other,)
    sizes = tuple(extent.constant for extent in value.shape)
    shape = "..." if None in sizes else str(sizes[0] if len(sizes) == 1 else sizes)
    dtype = value.kind.dtype.numpy.name
    rest = "" if dtype == "float64" else f", np.{dtype}"
    return f"make it an array before the loop: `{name} = np.zeros({shape}{rest})`", other


def _into_slot(frame: Frame, name: str, value: Value, span: Span) -> None:
    slot = frame.slots[name]
    frame.names[name] = slot
    if isinstance(slot, Scalar):
        if not is_number(value):
            text = f"`{name}` is a number before the loop and {describe(value)} inside"
            if name in frame.reserved:
                text = f"`{name}` is {describe(value)} where the loop is left, and nothing before"
            problem = error("CD0208", CdTypeError, text, span, helps=_as_before(name, value))
            raise NeedPeel(name, problem) if isinstance(value, Array) else problem
        scalar = as_scalar(value, span)
        kind = join(slot.kind, scalar.kind)
        if kind != slot.kind:
            raise NeedKind(name, kind)
        assert isinstance(slot.expr, Read)
        frame.ctx.set(slot.expr.node, cast(scalar.expr, kind.dtype), span)
        return
    assert isinstance(slot, Array)
    if not isinstance(value, Array):
        raise error(
            "CD0208", CdTypeError,
            f"`{name}` is an array before the loop and {describe(value)} inside", span,
        )  # fmt: skip
    if value.rank != slot.rank:
        raise error(
            "CD0209", CdShapeError, f"`{name}` changes its shape in the loop: {describe(slot)} "
            f"before, {describe(value)} inside", span, helps=("use another name inside the loop",),
        )  # fmt: skip
    part = ", ".join(":n" if axis == 0 else ":" for axis in range(slot.rank))
    way = f"make it before the loop as large as it gets, and use parts: `{name}[{part}] = ...`"
    if slot.rank == 1:
        way = (
            f"make it before the loop as large as it gets, and count: `{name}, n = np.zeros(most), "
            f"0`, in the loop `{name}[n] = ...`, `n += 1`; `{name}[:n]` is filled"
        )
    for axis, (a, b) in enumerate(zip(slot.shape, value.shape, strict=True)):
        what = f"`{name}` changes its size along axis {axis} in the loop"
        frame.ctx.equal_extents(a, b, what, span, (way,))
    kind = join(slot.kind, value.kind)
    if kind != slot.kind:
        raise NeedKind(name, kind)
    if name not in frame.ctx.mixed and order_of(frame.ctx, value) != order_of(frame.ctx, slot):
        frame.ctx.mixed.add(name)
        raise NeedKind(name, kind)
    _detach(frame, name, slot, span)
    copy_into(frame.ctx, slot, value, span)
    binds(frame.ctx, slot, value, span)


def _detach(frame: Frame, name: str, slot: Array, span: Span) -> None:
    """Give other names that still see the slot's present contents a copy, before it is written."""
    assert slot.place is not None
    for other in seeing(frame.names, {slot.place.node}):
        if other == name or other in frame.slots:
            continue
        frame.names[other] = _apart(frame.ctx, frame.names[other], slot.place.node, other, span)


def _apart(ctx: Context, value: Value, node: Node, label: str, span: Span) -> Value:
    """Return a value with what lies in a node copied."""
    match value:
        case Array() if value.base is not None and value.base.node == node:
            return held(ctx, value, label, span)
        case Group(items):
            parts = (_apart(ctx, item, node, f"{label}_{n}", span) for n, item in enumerate(items))
            return value.of(parts)
        case _:
            return value


def copy_into(ctx: Context, target: Array, value: Array, span: Span) -> None:
    """Emit a whole copy between arrays of one shape; nothing where they are the same place.

    A copy of the array itself is one all the same: from there on it is another array.
    """
    index = tuple(var(axis) for axis in target.axes)
    body = value.at(index)
    if body != target.body or value.aliased is None:
        ctx.store(target, cast(body, target.kind.dtype), span)


def settled(ctx: Context, value: Value, label: str, span: Span) -> Value:
    """Return the value with array expressions made arrays; views stay views."""
    match value:
        case Array():
            if value.aliased is not None:
                return value
            return replace(held(ctx, value, label, span), sealed=value.sealed)
        case Group(items):
            parts = (_held(ctx, item, f"{label}_{n}", span) for n, item in enumerate(items))
            return value.of(parts)
        case Masked(array, mask, held_):
            plain = Array(array.axes, array.shape, array.body, array.kind, copied=True)
            kept = mask if held_ else ctx.materialize(mask, "mask", span)
            return Masked(ctx.materialize(plain, label, span), kept, held=True)
        case _:
            return value


def _held(ctx: Context, value: Value, label: str, span: Span) -> Value:
    """Return an item of a group settled: a number that reads something is read now."""
    if not isinstance(value, Scalar) or ctx.pointwise or isinstance(value.expr, Position | Const):
        return settled(ctx, value, label, span)
    return Scalar(Read(ctx.variable(label, value, span), ()), value.kind)


def frozen(frame: Frame, value: Value, label: str, span: Span) -> Value:
    """Return the value so that assigning names does not change it (views of arrays stay views)."""
    ctx = frame.ctx
    match value:
        case Scalar() if ctx.pointwise or _stays(frame, value):
            return value
        case Scalar():
            return Scalar(Read(ctx.variable(label, value, span), ()), value.kind)
        case Group(items):
            parts = (frozen(frame, item, f"{label}_{n}", span) for n, item in enumerate(items))
            return value.of(parts)
        case Array() if value.base is not None and _in_slot(frame, value):
            return held(ctx, value, label, span)
        case _:
            return settled(ctx, value, label, span)


def _in_slot(frame: Frame, value: Array) -> bool:
    assert value.base is not None
    nodes = {x.place.node for x in frame.slots.values() if isinstance(x, Array) and x.place}
    return value.base.node in nodes


def is_number(value: Value) -> bool:
    """Whether a value is one number, run-time or known."""
    if isinstance(value, Static):
        return kind_of_number(value.value) is not None
    return isinstance(value, Scalar)


def open_slot(frame: Frame, name: str, kind: Kind | None, span: Span) -> None:
    """Give a bound name a slot that holds its present value, wide enough for `kind`."""
    value = frame.names[name]
    if isinstance(value, Array):
        wide = value.kind if kind is None else join(value.kind, kind)
        slot: Value = held(frame.ctx, value, name, span, wide.dtype)
        if name in frame.ctx.mixed and isinstance(slot, Array) and slot.base is not None:
            frame.ctx.unordered.add(slot.base.node)
    else:
        scalar = as_scalar(value, span)
        wide = scalar.kind if kind is None else join(scalar.kind, kind)
        node = frame.ctx.variable(name, Scalar(scalar.expr, wide), span)
        frame.variables[name] = node
        slot = Scalar(Read(node, ()), wide)
    frame.slots[name] = slot
    frame.names[name] = slot


def uses_symbols(value: Value, symbols: frozenset[object]) -> bool:
    """Whether a binding depends on symbols that are about to go out of scope."""
    match value:
        case Scalar(Position(index), _):
            return bool(index.symbols() & symbols)
        case Array():
            shape_symbols = {x for extent in value.shape for x in extent.symbols()}
            if shape_symbols & symbols:
                return True
            place = value.base
            inner = () if place is None else place.index
            return any(isinstance(i, Affine) and i.symbols() & symbols for i in inner)
        case Group(items, _):
            return any(uses_symbols(item, symbols) for item in items)
        case Lazy(_, _, defaults):
            return any(uses_symbols(item, symbols) for _, item in defaults)
        case _:
            return False
