"""In which order the elements of an array are in memory, as NumPy has it.

A view has the strides of its base. A new array keeps the order of what it is made of ("K order"):
`order` are its axes from the outermost in memory to the innermost, `()` for C order, None where
the run decides. Nobody sees it but `ravel`, `reshape` and what else gives a view for one layout
and a copy for another: so elaboration begins without it, and again with it (`NeedOrder`) where
that is asked of a local array, which is in memory then as NumPy has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from ...base.diagnostic import Span
from ...lowering.ir.dtypes import DType
from ...lowering.ir.expressions import Read
from ...lowering.ir.indexing import (
    Affine,
    Quasi,
    Symbol,
    const,
    multiply,
    recombine_quotients,
    substitute,
)
from ...lowering.ir.node import Node
from .builder import Context, NeedOrder
from .types import Kind
from .values import Array, Group, Order, Value

Strides = tuple[Affine, ...]
Rows = Sequence[Strides | None]
"""Of each operand its strides along the axes of the result, 0 where it repeats elements."""


def in_memory(
    ctx: Context, value: Array, label: str, span: Span, dtype: DType | None = None
) -> Array:
    """Return a new array that holds the value, in memory as NumPy has it."""
    order = order_of(ctx, value)
    if not order:
        made = ctx.materialize(value, label, span, dtype)
        if order is None and made.place is not None:
            ctx.unordered.add(made.place.node)
        return made
    return _turned(ctx.materialize(_turned(value, order), label, span, dtype), _inverse(order))


def held(
    ctx: Context,
    value: Array,
    label: str,
    span: Span,
    dtype: DType | None = None,
    bases: frozenset[Node] = frozenset(),
) -> Array:
    """Return a new array that holds a value where Python has no new one, but the value's own.

    `bases` are the nodes of which it is one, where it is no view of a single one.
    """
    made = in_memory(ctx, value, label, span, dtype)
    binds(ctx, made, value, span, bases)
    return replace(made, listed=value.listed)


def binds(
    ctx: Context, array: Array, value: Array, span: Span, bases: frozenset[Node] = frozenset()
) -> None:
    """Note that a whole array, written by the statement at `span`, is bound to a value anew."""
    assert array.place is not None
    key = array.place.node, span
    ctx.bindings[key] = ctx.bindings.get(key, frozenset()) | bases | bases_of(value)


def bases_of(value: Value) -> frozenset[Node]:
    """Return the node that an array is a view of in NumPy's sense; none for other values."""
    aliased = value.aliased if isinstance(value, Array) else None
    return frozenset() if aliased is None else frozenset({aliased.node})


def as_new(ctx: Context, made: Value, given: Iterable[Value]) -> Value:
    """Return what a function has made of values: what it keeps somewhere else in another order is
    a new array in C order."""
    match made:
        case Group(items):
            return made.of(as_new(ctx, item, given) for item in items)
        case Array() if made.aliased is None or bases_of(made) <= _bases(given):
            return made
        case Array() if is_dense(ctx, made, range(made.rank)) is not True:
            return replace(made, copied=True)
        case _:
            return made


def _bases(values: Iterable[Value]) -> frozenset[Node]:
    """Return the nodes that values are views of, items of tuples and lists too."""
    found = frozenset[Node]()
    for value in values:
        found |= _bases(value.items) if isinstance(value, Group) else bases_of(value)
    return found


def based(ctx: Context, value: Array, span: Span) -> Array:
    """Return the array, a new value held, where views of it are to have strides as in NumPy."""
    if not ctx.orders or ctx.pointwise or not value.rank or value.aliased is not None:
        return value
    made = in_memory(ctx, value, "value", span)
    return replace(made, sealed=value.sealed, listed=value.listed)


def alike(
    ctx: Context, label: str, values: Sequence[Array], shape: Strides, kind: Kind, span: Span
) -> Array:
    """Return a new array, not filled yet, in the order that all of some values have."""
    orders = {order_of(ctx, value) for value in values}
    order = orders.pop() if len(orders) == 1 else None
    sizes = tuple(shape[axis] for axis in order) if order else shape
    node = ctx.node(label, sizes, kind.dtype)
    if order is None:
        ctx.unordered.add(node)
    made = ctx.whole(node, span)
    return _turned(made, _inverse(order)) if order else made


def order_of(ctx: Context, value: Array) -> Order:
    """Return the order of an array whose elements follow each other, None where others do not."""
    if not ctx.orders or not value.rank:
        return ()
    if value.aliased is None:
        return value.order
    order = kept(ctx, [strides_of(ctx, value)], value.shape)
    axes = order or range(value.rank)
    return order if order is not None and is_dense(ctx, value, axes) else None


def strides_of(ctx: Context, value: Array) -> Strides | None:
    """Return the elements between neighbours along each axis; None where they vary, or the run
    decides."""
    read = value.aliased
    if read is None:
        return None if value.order is None else dense(value.shape, value.order)
    if _is_given(ctx, read):
        ctx.asks_layout = True
    return _strides(ctx, value, read)


def dense(shape: Strides, order: Sequence[int] = ()) -> Strides:
    """Return strides of elements that follow each other.

    >>> [str(n) for n in dense((const(2), const(3)), (1, 0))]
    ['1', '2']
    """
    out, step = [const(1)] * len(shape), const(1)
    for axis in reversed(order or range(len(shape))):
        out[axis] = step
        step = multiply(step, shape[axis])
    return tuple(out)


def is_dense(ctx: Context, value: Array, axes: Sequence[int]) -> bool | None:
    """Whether elements of a view follow each other, along the last of some axes first; None where
    only the run knows.

    Elaboration starts again (NeedOrder) where a local array is asked about without orders.
    """
    strides = _asked(ctx, value)
    if any(size.constant == 0 for size in value.shape):
        return True
    return None if strides is None else _follow(ctx, value.shape, strides, axes)


def is_mergeable(ctx: Context, value: Array, groups: Sequence[Sequence[int]]) -> bool | None:
    """Whether the axes of each group follow each other in memory without gaps; None where only the
    run knows."""
    strides, sure = _asked(ctx, value), True
    for outer, inner in (pair for group in groups for pair in pairwise(group)):
        if strides is None:
            return None
        wanted = multiply(strides[inner], value.shape[inner])
        if ctx.known.equal(strides[outer], wanted):
            continue
        several = all(ctx.known.less(const(1), value.shape[axis]) for axis in (outer, inner))
        if several and ctx.known.differ(strides[outer], wanted):
            return False
        sure = False
    return True if sure else None


def kept(ctx: Context, rows: Rows, shape: Strides, joined: bool = False) -> Order:
    """Return the order that NumPy gives a new array of operands with some strides: from the
    innermost axis on, the one with the smaller strides; where operands differ, C order. What is
    `joined` of them is ordered from the outermost axis on, which differs for axes of one element.
    """
    if not ctx.orders or len(shape) < 2:
        return ()
    if None in rows:
        return None
    found = [[_size_of_step(ctx, step, n) for step, n in zip(row, shape, strict=True)]
             for row in rows if row is not None]  # fmt: skip
    rising = range(len(shape))
    done: list[int] = []
    for axis in rising if joined else reversed(rising):
        at = len(done)
        for place in reversed(range(len(done))):
            sides = (done[place], axis) if joined else (axis, done[place])
            swapped = _is_further_in(ctx, [(row[sides[0]], row[sides[1]]) for row in found])
            if swapped == "unknown":
                return None
            if swapped == "no":
                break
            at = place if swapped == "yes" else at
        done.insert(at, axis)
    return normal(tuple(done if joined else reversed(done)), shape)


def of_operands(
    ctx: Context, values: Sequence[Array], shape: Strides, joined: bool = False
) -> Order:
    """Return the order of a new array that values are broadcast to, element by element."""
    if not ctx.orders or len(shape) < 2:
        return ()
    rows = [_padded(ctx, value, len(shape)) for value in values if value.rank]
    return kept(ctx, rows, shape, joined)


def of_rest(ctx: Context, value: Array, axes: Sequence[int]) -> Order:
    """Return the order of what is left of an array when others of its axes are gone."""
    order = of_operands(ctx, [value], value.shape)
    if not order:
        return order
    place = {axis: n for n, axis in enumerate(axes)}
    shape = tuple(value.shape[axis] for axis in axes)
    return normal(tuple(place[axis] for axis in order if axis in place), shape)


def if_fortran(ctx: Context, value: Array) -> Order:
    """Return the order of a new array that is in Fortran order where a value is, else in C order;
    None where only the run knows."""
    if not ctx.orders or value.rank < 2:
        return ()
    axes = tuple(range(value.rank))
    if value.aliased is None:
        return value.order if value.order in (None, axes[::-1]) else ()
    ways = [is_dense(ctx, value, each) for each in (axes, axes[::-1])]
    if ways[0] or ways[1] is False:
        return ()
    return axes[::-1] if ways[1] and ways[0] is False else None


def normal(order: tuple[int, ...], shape: Strides) -> tuple[int, ...]:
    """Return an order, `()` where it is C order but for axes of one element."""
    seen = [axis for axis in order if shape[axis].constant != 1]
    return () if seen == sorted(seen) else order


def as_kept(ctx: Context, made: Array, *values: Array, joined: bool = False) -> Array:
    """Return a new array, with the order that NumPy gives what is made of values."""
    order = of_operands(ctx, values, made.shape, joined)
    return replace(made, copied=True, order=order) if order != () else made


def _padded(ctx: Context, value: Array, rank: int) -> Strides | None:
    strides = strides_of(ctx, value)
    if strides is None:
        return None
    own = (
        const(0) if size.constant == 1 else step
        for step, size in zip(strides, value.shape, strict=True)
    )
    return (*(const(0),) * (rank - value.rank), *own)


def _size_of_step(ctx: Context, step: Affine, extent: Affine) -> Affine | None:
    """Return how large a step is, whatever its sign; None where only the run knows."""
    if extent.constant == 1:
        return const(0)
    if ctx.known.nonnegative(step):
        return step
    return -step if ctx.known.nonnegative(-step) else None


def _is_further_in(ctx: Context, pairs: Sequence[tuple[Affine | None, Affine | None]]) -> str:
    """Return whether an axis is further in than another by the steps along both."""
    found = "open"
    for step, other in pairs:
        if step is None or other is None:
            return "unknown"
        if 0 in (step.constant, other.constant):
            continue
        if ctx.known.nonnegative(step - other):
            found = "no"
        elif ctx.known.less(step, other):
            found = "yes" if found == "open" else found
        else:
            return "unknown"
    return found


def _asked(ctx: Context, value: Array) -> Strides | None:
    """Return the strides of a view on which depends what it gives."""
    read = value.aliased
    assert read is not None, "what is no view has no memory yet"
    if not ctx.orders and not _is_given(ctx, read):
        raise NeedOrder
    return _strides(ctx, value, read)


def _is_given(ctx: Context, read: Read) -> bool:
    return any(one.node is read.node for one in ctx.parameters.values())


def _follow(ctx: Context, shape: Strides, strides: Strides, axes: Sequence[int]) -> bool | None:
    step, sure = const(1), True
    for axis in reversed(axes):
        if shape[axis].constant != 1 and not ctx.known.equal(strides[axis], step):
            if ctx.known.differ(strides[axis], step) and ctx.known.less(const(1), shape[axis]):
                return False
            sure = False
        step = multiply(step, shape[axis])
    return True if sure else None


def _strides(ctx: Context, value: Array, read: Read) -> Strides | None:
    """Return the elements between neighbours along each axis of a view, None where they vary."""
    if read.node in ctx.unordered:
        return None
    address, plain = const(0), True
    for index, stride in zip(read.index, read.node.element_strides, strict=True):
        assert isinstance(index, Affine), "a view has no subscripts that depend on data"
        plain = plain and stride.constant is not None
        address = address + multiply(index, stride)
    if plain:
        address = recombine_quotients(address)
        inner = {s for atom, _ in address.terms if isinstance(atom, Quasi)
                 for s in Affine(((atom, 1),)).symbols()}  # fmt: skip
        if inner & set(value.axes):
            return None
        found = [const(address.coefficient(axis)) for axis in value.axes]
    else:
        found = [_slope(read, axis) for axis in value.axes]
    return tuple(step * (1 if value.part is None else 2) for step in found)


def _slope(read: Read, axis: Symbol) -> Affine:
    """Return the distance from position 0 to 1 along an axis (run-time strides)."""
    total = const(0)
    for index, stride in zip(read.index, read.node.element_strides, strict=True):
        assert isinstance(index, Affine), "a view has no subscripts that depend on data"
        step = substitute(index, {axis: const(1)}) - substitute(index, {axis: const(0)})
        total = total + multiply(step, stride)
    return total


def _turned(value: Array, order: Sequence[int]) -> Array:
    axes, shape = (tuple(of[n] for n in order) for of in (value.axes, value.shape))
    return replace(value, axes=axes, shape=shape, order=())  # type: ignore[arg-type]


def _inverse(order: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(range(len(order)), key=order.__getitem__))
