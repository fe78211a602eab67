"""Binding of names: scalars by value in variables, arrays by reference, expressions stored.

A scalar is stored in a rank-0 node per name; an array name is an alias of a view or of a new array.
A loop-carried name has a slot: a variable or an array that every assignment writes, so that its
location is the same on all paths through the loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...base.diagnostic import CdError, CdNameError, CdShapeError, CdTypeError, Span
from ...lowering.ir.assignments import Statement
from ...lowering.ir.expressions import Const, Position, Read
from ...lowering.ir.indexing import Affine, var
from ...lowering.ir.node import Node
from ..source import surface as s
from ..values.adapting import require_joined
from ..values.arrays import as_scalar, describe
from ..values.builder import Context, NeedKind, error
from ..values.evaluation_order import fixed
from ..values.memory_order import binds, held, order_of
from ..values.types import Kind, cast, join, kind_of_number
from ..values.values import (
    AnyObject,
    Array,
    Group,
    Lazy,
    Masked,
    OneOf,
    Scalar,
    Static,
    Unset,
    Value,
    identities_of,
    joined_identity,
)
from .aliasing import seeing
from .scope import Frame, is_result

_ITEM = " item "
"""What separates the name of a loop-carried tuple or list from the number of an item in its key."""


class NeedPeel(Exception):
    """A number before a loop is an array inside, or None is any other value: the loop needs its
    first iteration peeled.

    `problem` is the error where peeling is not possible.
    """

    def __init__(self, name: str, problem: CdError) -> None:
        super().__init__(name)
        self.name = name
        self.problem = problem


def item_of(name: str, number: int) -> str:
    """Return the key of an item of a loop-carried tuple or list; no Python name equals it."""
    return f"{name}{_ITEM}{number}"


def object_of(name: str) -> str:
    """Return the key that tells that another object replaces a loop-carried tuple or list."""
    return f"{name}{_ITEM}"


def carrier_of(key: str) -> str:
    """Return the name of the loop-carried tuple or list of an item's key; other names as given."""
    return key.partition(_ITEM)[0]


def label_of_item(key: str) -> str:
    """Return the label of a name's storage: `best_0` for an item's key."""
    return key.replace(_ITEM, "_")


def shown_item(key: str) -> str:
    """Return a name as it is shown: `best[0]` for an item's key."""
    name, *numbers = key.split(_ITEM)
    return name + "".join(f"[{number}]" for number in numbers)


def bound_to(frame: Frame, key: str) -> Value | None:
    """Return what a name is bound to, or an item of its tuple or list; None where there is none."""
    name, *numbers = key.split(_ITEM)
    value = frame.names.get(name)
    for number in map(int, numbers):
        has_item = isinstance(value, Group) and number < len(value.items)
        value = value.items[number] if has_item and isinstance(value, Group) else None
    return value


def is_carriable(value: Value | None) -> bool:
    """Whether a slot can hold a value: a number, an array, a tuple or list."""
    return isinstance(value, Array | Group) or value is not None and is_number(value)


def bind(frame: Frame, name: str, value: Value, span: Span) -> None:
    """Bind a name: a number is stored in its variable, an array expression in a new array."""
    if isinstance(value, Unset):
        raise error("CD0202", CdNameError, f"this {value.reason}", span)
    if name in frame.slots:
        _store_in_slot(frame, name, value, span)
    elif frame.ctx.pointwise:
        frame.names[name] = value
    elif isinstance(value, Scalar) and not _needs_no_storage(frame, value):
        frame.names[name] = _store_scalar(frame, name, value, span)
    elif isinstance(value, Array | Group | Masked):
        frame.names[name] = materialized(frame.ctx, value, name, span)
    else:
        frame.names[name] = value


def spelled(name: str) -> str:
    """Return a name as error messages show it: what is returned has none in the text."""
    return "the result" if is_result(name) else f"`{shown_item(name)}`"


def _needs_no_storage(frame: Frame, value: Scalar) -> bool:
    """Whether a number is an index expression of loop variables, which needs no storage."""
    if not isinstance(value.expr, Position):
        return False
    stable = frame.ctx.stable
    return value.expr.index.symbols() <= stable


def _store_scalar(frame: Frame, name: str, value: Scalar, span: Span) -> Scalar:
    """Store a number in the variable of a name; return a read of it."""
    ctx = frame.ctx
    node = frame.variables.get(name)
    if node is not None and frame.names.get(name) == Scalar(Read(node, ()), value.kind):
        ctx.set(node, value.expr, span)
    else:
        node = ctx.variable(name, value, span)
        frame.variables[name] = node
    return Scalar(Read(node, ()), value.kind)


def _slot_type_helps(name: str, value: Value) -> tuple[str, ...]:
    """Return the help texts where a number before a loop is something else inside."""
    rename_help = "use another name inside the loop"
    if not isinstance(value, Array):
        return (rename_help,)
    sizes = tuple(extent.constant for extent in value.shape)
    shape = "..." if None in sizes else str(sizes[0] if len(sizes) == 1 else sizes)
    dtype = value.kind.dtype.numpy.name
    dtype_text = "" if dtype == "float64" else f", np.{dtype}"
    return (
        f"make it an array before the loop: `{name} = np.zeros({shape}{dtype_text})`",
        rename_help,
    )


def _store_in_slot(frame: Frame, name: str, value: Value, span: Span) -> None:
    """Store a value in the slot of a name. CdTypeError CD0208, CdShapeError CD0209 where it does
    not fit; NeedKind where an array's slot has to be wider (a number's is noted in `wider`),
    NeedPeel where a number becomes an array."""
    slot = frame.slots[name]
    if isinstance(slot, Group):
        _store_in_items(frame, name, slot, value, span)
        return
    frame.names[name] = slot
    if isinstance(slot, Scalar):
        _store_number(frame, name, slot, value, span)
        return
    assert isinstance(slot, Array)
    _store_array(frame, name, slot, value, span)


def _store_number(frame: Frame, name: str, slot: Scalar, value: Value, span: Span) -> None:
    """Store a value in the variable of a loop-carried number."""
    shown = shown_item(name)
    if not is_number(value):
        text = f"`{shown}` is a number before the loop and {describe(value)} inside"
        if name in frame.reserved:
            text = f"`{shown}` is {describe(value)} where the loop is left, and nothing before"
        problem = error("CD0208", CdTypeError, text, span, helps=_slot_type_helps(shown, value))
        raise NeedPeel(name, problem) if isinstance(value, Array) else problem
    scalar = as_scalar(value, span)
    kind = join(slot.kind, scalar.kind)
    if kind != slot.kind:  # this pass goes on with another variable, and is discarded
        frame.wider[name] = kind
        node = frame.ctx.node(label_of_item(name), (), kind.dtype)
        slot = frame.slots[name] = frame.names[name] = Scalar(Read(node, ()), kind)
    assert isinstance(slot.expr, Read)
    require_joined(frame.ctx, scalar, kind, spelled(name), span)
    frame.ctx.set(slot.expr.node, cast(scalar.expr, kind.dtype), span)


def _store_array(frame: Frame, name: str, slot: Array, value: Value, span: Span) -> None:
    """Store a value in the array of a loop-carried name."""
    shown = shown_item(name)
    if not isinstance(value, Array):
        raise error(
            "CD0208", CdTypeError,
            f"`{shown}` is an array before the loop and {describe(value)} inside", span,
        )  # fmt: skip
    if bool(value.listed) != bool(slot.listed):
        kinds = ("a list", "an array") if slot.listed else ("an array", "a list")
        raise error(
            "CD0208", CdTypeError, f"`{shown}` is {kinds[0]} before the loop and {kinds[1]} inside",
            span, helps=(f"make it an array before the loop: `{shown} = np.array({shown})`",),
        )  # fmt: skip
    if value.rank != slot.rank:
        raise error(
            "CD0209", CdShapeError, f"`{shown}` changes its shape in the loop: {describe(slot)} "
            f"before, {describe(value)} inside", span, helps=("use another name inside the loop",),
        )  # fmt: skip
    part = ", ".join(":n" if axis == 0 else ":" for axis in range(slot.rank))
    fix_help = (
        f"make it before the loop as large as it gets, and use parts: `{shown}[{part}] = ...`"
    )
    if slot.rank == 1:
        fix_help = _filled_array_help(shown)
    for axis, (slot_size, value_size) in enumerate(zip(slot.shape, value.shape, strict=True)):
        what = f"`{shown}` changes its size along axis {axis} in the loop"
        frame.ctx.equal_extents(slot_size, value_size, what, span, (fix_help,))
    kind = join(slot.kind, value.kind)
    if kind != slot.kind:
        raise NeedKind(name, kind=kind)
    if name not in frame.ctx.mixed and order_of(frame.ctx, value) != order_of(frame.ctx, slot):
        frame.ctx.mixed.add(name)
        raise NeedKind(name, kind=kind)
    _copy_for_aliases(frame, name, slot, span)
    copy_into(frame.ctx, slot, value, span)
    binds(frame.ctx, slot, value, span)


def _filled_array_help(name: str) -> str:
    """Return the help text where a name would grow in a loop."""
    return (
        f"make it before the loop as large as it gets, and count: `{name}, n = np.zeros(most), 0`, "
        f"in the loop `{name}[n] = ...`, `n += 1`; `{name}[:n]` is filled"
    )


def _store_in_items(frame: Frame, name: str, slot: Group, value: Value, span: Span) -> None:
    """Store a tuple or list in the slots of its items; all items are read before any is stored.

    CdTypeError CD0208 for another structure, NeedKind for an item that changes without a slot, and
    where this is the first to be another object.
    """
    shown = shown_item(name)
    if not _is_like(value, slot):
        text = f"`{shown}` is {describe(slot)} before the loop and {describe(value)} inside"
        grows = isinstance(value, Group) and len(value.items) != len(slot.items)
        way = _filled_array_help(shown) if grows else "use another name inside the loop"
        raise error("CD0208", CdTypeError, text, span, helps=(way,))
    assert isinstance(value, Group)
    keys = [item_of(name, number) for number in range(len(slot.items))]
    changed = [
        key for key, item, new in zip(keys, slot.items, value.items, strict=True)
        if key not in frame.slots and not _may_stay(key, item, new, span)
    ]  # fmt: skip
    is_other = not set(identities_of(value)) <= set(identities_of(slot))
    if is_other and not any(isinstance(one, AnyObject) for one in identities_of(slot)):
        changed.append(object_of(name))
    if changed:
        raise NeedKind(*changed)
    labels = map(label_of_item, keys)
    values = [
        frozen(frame, new, label, span) if key in frame.slots else new
        for key, label, new in zip(keys, labels, value.items, strict=True)
    ]
    for key, new in zip(keys, values, strict=True):
        if key in frame.slots:
            _store_in_slot(frame, key, new, span)
    items = (frame.slots.get(key, item) for key, item in zip(keys, slot.items, strict=True))
    slot = replace(slot.of(items), identity=joined_identity(slot, value))
    frame.slots[name] = frame.names[name] = slot


def _may_stay(key: str, item: Value, value: Value, span: Span) -> bool:
    """Whether an item without a slot is bound to what it was. CdTypeError CD0208 where it is not,
    and no slot can hold both; NeedPeel where it was None."""
    if same_binding(item, value):
        return True
    if is_carriable(item) and is_carriable(value):
        return False
    before, inside = describe(item), describe(value)
    inside = "another" if inside == before else inside
    text = f"`{shown_item(key)}` is {before} before the loop, and {inside} inside"
    problem = error("CD0208", CdTypeError, text, span)
    raise NeedPeel(key, problem) if item == Static(None) and is_carriable(value) else problem


def _is_like(value: Value, slot: Group) -> bool:
    """Whether a value is a tuple or list of the structure of one in a slot."""
    return (
        isinstance(value, Group)
        and (value.kind, value.named_tuple) == (slot.kind, slot.named_tuple)
        and len(value.items) == len(slot.items)
    )


def _open_items(frame: Frame, name: str, kinds: Mapping[str, Kind | None], span: Span) -> None:
    """Give a tuple or list a slot: one for each item that has a key in `kinds`."""
    value = frame.names[name]
    assert isinstance(value, Group)
    items, identity = list(value.items), value.identity
    for number, item in enumerate(items):
        if (key := item_of(name, number)) in kinds:
            frame.names[key] = item
            open_slot(frame, key, kinds, span)
            items[number] = frame.slots[key]
    if any(key.startswith(object_of(name)) for key in kinds):
        identity = OneOf((*identities_of(value), AnyObject()))
    frame.slots[name] = frame.names[name] = replace(value.of(items), identity=identity)


def close_slot(frame: Frame, name: str) -> None:
    """Remove the slot of a name after its loop; the name stays bound to what is in it."""
    slot = frame.slots.pop(name, None)
    if carrier_of(name) != name:
        frame.names.pop(name, None)
    elif isinstance(slot, Group):
        frame.names[name] = slot  # one of all objects that were stored in it


def _copy_for_aliases(frame: Frame, name: str, slot: Array, span: Span) -> None:
    """Copy the slot's present contents for other names that alias it, before it is written."""
    assert slot.element is not None
    for alias in seeing(frame.names, {slot.element.node}):
        if alias == name or alias in frame.slots:
            continue
        frame.names[alias] = _copied_from(
            frame.ctx, frame.names[alias], slot.element.node, alias, span
        )


def _copied_from(ctx: Context, value: Value, node: Node, label: str, span: Span) -> Value:
    """Return a value with its arrays that are stored in a node copied."""
    match value:
        case Array() if value.base is not None and value.base.node == node:
            return held(ctx, value, label, span)
        case Group(items):
            parts = (
                _copied_from(ctx, item, node, f"{label}_{n}", span) for n, item in enumerate(items)
            )
            return value.of(parts)
        case _:
            return value


def copy_into(ctx: Context, target: Array, value: Array, span: Span) -> None:
    """Emit a copy of an array into one of the same shape; nothing where both are one location.

    An explicit `x.copy()` of the target itself is emitted all the same: it is a new array.
    """
    index = tuple(var(axis) for axis in target.axes)
    body = value.at(index)
    if body != target.body or value.aliased is None:
        ctx.store(target, cast(body, target.kind.dtype), span)


def materialized(ctx: Context, value: Value, label: str, span: Span) -> Value:
    """Return the value with array expressions stored in new arrays; views stay views."""
    match value:
        case Array():
            if value.aliased is not None:
                return value
            return replace(held(ctx, value, label, span), sealed=value.sealed)
        case Group(items):
            parts = (_store_item(ctx, item, f"{label}_{n}", span) for n, item in enumerate(items))
            return value.of(parts)
        case Masked(array, _, True) if array.aliased is not None:
            return value  # another name of a selection that is stored
        case Masked(array, mask, held_):
            copied_array = Array(array.axes, array.shape, array.body, array.kind, copied=True)
            stored_mask = mask if held_ else ctx.materialize(mask, "mask", span)
            stored = ctx.materialize(copied_array, label, span)
            return replace(value, array=stored, mask=stored_mask, held=True)
        case _:
            return value


def _store_item(ctx: Context, value: Value, label: str, span: Span) -> Value:
    """Return an item of a group, stored: a number that reads memory is read now."""
    if not isinstance(value, Scalar) or ctx.pointwise or isinstance(value.expr, Position | Const):
        return materialized(ctx, value, label, span)
    return Scalar(Read(ctx.variable(label, value, span), ()), value.kind)


def frozen(frame: Frame, value: Value, label: str, span: Span) -> Value:
    """Return the value as a snapshot that later assignments to names do not change.

    Views of arrays stay views.
    """
    ctx = frame.ctx
    match value:
        case Scalar() if ctx.pointwise or _needs_no_storage(frame, value):
            return value
        case Scalar():
            return Scalar(Read(ctx.variable(label, value, span), ()), value.kind)
        case Group(items):
            parts = (frozen(frame, item, f"{label}_{n}", span) for n, item in enumerate(items))
            return value.of(parts)
        case Array() if value.base is not None and _is_in_slot(frame, value):
            return held(ctx, value, label, span)
        case _:
            return materialized(ctx, value, label, span)


def stored_numbers(frame: Frame, value: Value, label: str, span: Span) -> Value:
    """Return the value with its numbers as a snapshot, and its arrays as they are."""
    match value:
        case Scalar():
            return frozen(frame, value, label, span)
        case Group(items):
            return value.of(
                stored_numbers(frame, item, f"{label}_{n}", span) for n, item in enumerate(items)
            )
        case _:
            return value


def _is_in_slot(frame: Frame, value: Array) -> bool:
    """Whether an array is stored in the slot of a name."""
    assert value.base is not None
    slot_nodes = {
        x.element.node for x in frame.slots.values() if isinstance(x, Array) and x.element
    }
    return value.base.node in slot_nodes


def fixed_target(
    frame: Frame, target: s.Expr, location: Value, out: list[Statement]
) -> tuple[Value, Value]:
    """Return the location of `target op= value` and its old value, both as before `out`, which
    computes the value.

    What is saved has the span of the target: alias analysis takes a write of a copy at the span
    at which it was made for the binding itself, and the update is at that of the statement.
    """
    if isinstance(target, s.Name) and isinstance(location, Array):
        now = frame.names.get(target.id, location)
        if isinstance(now, Array) and now != location:  # `out` has copied it for this name
            return now, now
    return fixed(frame.ctx, location, out, target.span)


def is_number(value: Value) -> bool:
    """Whether a value is one number, static or dynamic."""
    if isinstance(value, Static):
        return kind_of_number(value.value) is not None
    return isinstance(value, Scalar)


def open_slot(frame: Frame, name: str, kinds: Mapping[str, Kind | None], span: Span) -> None:
    """Give a bound name a slot with its present value, wide enough for its kind in `kinds` (None:
    its own); tuples and lists one for each of their items there."""
    value, label, kind = frame.names[name], label_of_item(name), kinds[name]
    if isinstance(value, Group):
        _open_items(frame, name, kinds, span)
        return
    if isinstance(value, Array):
        wide = value.kind if kind is None else join(value.kind, kind)
        slot: Value = held(frame.ctx, value, label, span, wide.dtype)
        if name in frame.ctx.mixed and isinstance(slot, Array) and slot.base is not None:
            frame.ctx.unordered.add(slot.base.node)
    else:
        scalar = as_scalar(value, span)
        wide = scalar.kind if kind is None else join(scalar.kind, kind)
        require_joined(frame.ctx, scalar, wide, spelled(name), span)
        node = frame.ctx.variable(label, Scalar(scalar.expr, wide), span)
        frame.ctx.derived[node] = None  # iterations set it
        frame.ctx.stored[node].append(None)
        frame.variables[name] = node
        slot = Scalar(Read(node, ()), wide)
    frame.slots[name] = slot
    frame.names[name] = slot


def same_binding(left: Value, right: Value) -> bool:
    """Whether two values are one value or one location; arrays up to renaming of their axes."""
    if isinstance(left, Array) and isinstance(right, Array) and left.rank == right.rank:
        index = tuple(var(axis) for axis in left.axes)
        return left.shape == right.shape and right.at(index) == left.body
    if isinstance(left, Group) and isinstance(right, Group) and len(left.items) == len(right.items):
        pairs = zip(left.items, right.items, strict=True)
        return left == right.of(left.items) and all(same_binding(x, y) for x, y in pairs)
    return left == right


def uses_symbols(value: Value, symbols: frozenset[object]) -> bool:
    """Whether a binding depends on some symbols, which are about to go out of scope."""
    match value:
        case Scalar(Position(index), _):
            return bool(index.symbols() & symbols)
        case Array():
            shape_symbols = {x for extent in value.shape for x in extent.symbols()}
            if shape_symbols & symbols:
                return True
            base = value.base
            index_items = () if base is None else base.index
            return any(isinstance(i, Affine) and i.symbols() & symbols for i in index_items)
        case Group(items, _):
            return any(uses_symbols(item, symbols) for item in items)
        case Lazy(_, _, defaults):
            return any(uses_symbols(item, symbols) for _, item in defaults)
        case _:
            return False
