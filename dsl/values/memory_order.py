"""Memory order (layout) of arrays, as in NumPy: strides of views, C, Fortran and K order.

A view has the strides of its base. A new array keeps the order of its operands (K order): `order`
lists its axes from the outermost in memory to the innermost, `()` for C order, None where it is
known at run time only. It is observable only through `ravel`, `reshape` and the like, which give
a view for one layout and a copy for another. Elaboration therefore starts without tracking it,
and restarts with it (`NeedOrder`) where the layout of a local array matters; local arrays are
then laid out as in NumPy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from ...base.diagnostic import Span
from ...lowering.ir.dtypes import DType
from ...lowering.ir.expressions import Expr, Read
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
"""The strides of each operand along the axes of the result, 0 where it is broadcast."""


def in_memory(
    ctx: Context, value: Array, label: str, span: Span, dtype: DType | None = None
) -> Array:
    """Return a new array that holds the value, in NumPy's memory order where orders are tracked."""
    order = order_of(ctx, value)
    if not order:
        array = ctx.materialize(value, label, span, dtype)
        if order is None and array.element is not None:
            ctx.unordered.add(array.element.node)
        return array
    return _permute_axes(
        ctx.materialize(_permute_axes(value, order), label, span, dtype), _invert_permutation(order)
    )


def held(
    ctx: Context,
    value: Array,
    label: str,
    span: Span,
    dtype: DType | None = None,
    bases: frozenset[Node] = frozenset(),
) -> Array:
    """Return a new array that holds a value, where Python binds the value's own array.

    `bases` are the nodes that it may alias, where it is no view of a single one.
    """
    array = in_memory(ctx, value, label, span, dtype)
    binds(ctx, array, value, span, bases)
    return replace(array, listed=value.listed)


def binds(
    ctx: Context, array: Array, value: Array, span: Span, bases: frozenset[Node] = frozenset()
) -> None:
    """Record that the write of a whole array at `span` is a rebinding to `value`."""
    assert array.element is not None
    key = array.element.node, span
    ctx.bindings[key] = ctx.bindings.get(key, frozenset()) | bases | bases_of(value)


def bases_of(value: Value) -> frozenset[Node]:
    """Return the node that an array is a view of, as in NumPy; the empty set for other values."""
    aliased = value.aliased if isinstance(value, Array) else None
    return frozenset() if aliased is None else frozenset({aliased.node})


def as_new(ctx: Context, result: Value, given: Iterable[Value]) -> Value:
    """Return the result `result` of a function of the values `given`.

    Views of other arrays in it that are not dense in C order count as new arrays in C order.
    """
    match result:
        case Group(items):
            return result.of(as_new(ctx, item, given) for item in items)
        case Array() if result.aliased is None or bases_of(result) <= _collect_bases(given):
            return result
        case Array() if is_dense(ctx, result, range(result.rank)) is not True:
            return replace(result, copied=True)
        case _:
            return result


def _collect_bases(values: Iterable[Value]) -> frozenset[Node]:
    """Return the nodes that values, and items of tuples and lists, are views of."""
    bases = frozenset[Node]()
    for value in values:
        bases |= _collect_bases(value.items) if isinstance(value, Group) else bases_of(value)
    return bases


def based(ctx: Context, value: Array, span: Span) -> Array:
    """Return the array, a new value materialized where views of it need NumPy's strides."""
    if not ctx.orders or ctx.pointwise or not value.rank or value.aliased is not None:
        return value
    array = in_memory(ctx, value, "value", span)
    return replace(array, sealed=value.sealed, listed=value.listed)


def alike(
    ctx: Context, label: str, values: Sequence[Array], shape: Strides, kind: Kind, span: Span
) -> Array:
    """Return a new uninitialized array, in the memory order that all `values` have."""
    orders = {order_of(ctx, value) for value in values}
    order = orders.pop() if len(orders) == 1 else None
    sizes = tuple(shape[axis] for axis in order) if order else shape
    node = ctx.node(label, sizes, kind.dtype)
    if order is None:
        ctx.unordered.add(node)
    array = ctx.whole(node, span)
    return _permute_axes(array, _invert_permutation(order)) if order else array


def order_of(ctx: Context, value: Array) -> Order:
    """Return the memory order of a dense array, None for other views and where it is dynamic."""
    if not ctx.orders or not value.rank:
        return ()
    if value.aliased is None:
        return value.order
    order = k_order(ctx, [strides_of(ctx, value)], value.shape)
    axes = order or range(value.rank)
    return order if order is not None and is_dense(ctx, value, axes) else None


def strides_of(ctx: Context, value: Array) -> Strides | None:
    """Return the stride of each axis in elements; None where it is not constant, or known at run
    time only."""
    read = value.aliased
    if read is None:
        return None if value.order is None else dense(value.shape, value.order)
    if _is_parameter(ctx, read):
        ctx.asks_layout = True
    return _view_strides(ctx, value, read)


def dense(shape: Strides, order: Sequence[int] = ()) -> Strides:
    """Return the strides of a dense array, in elements; `order` lists axes, outermost first.

    >>> [str(n) for n in dense((const(2), const(3)), (1, 0))]
    ['1', '2']
    """
    out, step = [const(1)] * len(shape), const(1)
    for axis in reversed(order or range(len(shape))):
        out[axis] = step
        step = multiply(step, shape[axis])
    return tuple(out)


def is_dense(ctx: Context, value: Array, axes: Sequence[int]) -> bool | None:
    """Whether a view is dense with `axes` from the outermost to the innermost; None where that is
    known at run time only.

    Raises NeedOrder for a local array where orders are not tracked.
    """
    strides = _require_strides(ctx, value)
    if any(size.constant == 0 for size in value.shape):
        return True
    return None if strides is None else _has_dense_strides(ctx, value.shape, strides, axes)


def is_mergeable(ctx: Context, value: Array, groups: Sequence[Sequence[int]]) -> bool | None:
    """Whether the axes of each group can be merged into one of constant stride; None where that is
    known at run time only."""
    strides, is_proven = _require_strides(ctx, value), True
    for outer, inner in (pair for group in groups for pair in pairwise(group)):
        if strides is None:
            return None
        wanted = multiply(strides[inner], value.shape[inner])
        if ctx.assumptions.equal(strides[outer], wanted):
            continue
        several = all(ctx.assumptions.less(const(1), value.shape[axis]) for axis in (outer, inner))
        if several and ctx.assumptions.differ(strides[outer], wanted):
            return False
        is_proven = False
    return True if is_proven else None


def k_order(ctx: Context, rows: Rows, shape: Strides, joined: bool = False) -> Order:
    """Return the memory order that NumPy gives a new array of operands with the strides `rows`.

    Axes of smaller strides go further in; where operands disagree, C order. It is an insertion
    sort from the innermost axis, or from the outermost one where the operands are `joined`
    (concatenated), which differs for axes of one element. None where it is known at run time only.
    """
    if not ctx.orders or len(shape) < 2:
        return ()
    if None in rows:
        return None
    steps = [[_magnitude(ctx, step, n) for step, n in zip(row, shape, strict=True)]
             for row in rows if row is not None]  # fmt: skip
    axes = range(len(shape))
    sorted_axes: list[int] = []
    for axis in axes if joined else reversed(axes):
        at = len(sorted_axes)
        for position in reversed(range(len(sorted_axes))):
            sides = (sorted_axes[position], axis) if joined else (axis, sorted_axes[position])
            is_inner = _compare_strides(ctx, [(row[sides[0]], row[sides[1]]) for row in steps])
            if is_inner == "unknown":
                return None
            if is_inner == "no":
                break
            at = position if is_inner == "yes" else at
        sorted_axes.insert(at, axis)
    return normal(tuple(sorted_axes if joined else reversed(sorted_axes)), shape)


def of_operands(
    ctx: Context, values: Sequence[Array], shape: Strides, joined: bool = False
) -> Order:
    """Return the memory order of the result of an elementwise operation on `values`."""
    if not ctx.orders or len(shape) < 2:
        return ()
    rows = [_pad_strides(ctx, value, len(shape)) for value in values if value.rank]
    return k_order(ctx, rows, shape, joined)


def of_rest(ctx: Context, value: Array, axes: Sequence[int]) -> Order:
    """Return the memory order of a reduction of an array that keeps `axes`."""
    order = of_operands(ctx, [value], value.shape)
    if not order:
        return order
    positions = {axis: n for n, axis in enumerate(axes)}
    shape = tuple(value.shape[axis] for axis in axes)
    return normal(tuple(positions[axis] for axis in order if axis in positions), shape)


def if_fortran(ctx: Context, value: Array) -> Order:
    """Return the order of a new array in NumPy's A order: Fortran where `value` is, else C.

    None where that is known at run time only.
    """
    if not ctx.orders or value.rank < 2:
        return ()
    axes = tuple(range(value.rank))
    if value.aliased is None:
        return value.order if value.order in (None, axes[::-1]) else ()
    is_dense_in = [is_dense(ctx, value, each) for each in (axes, axes[::-1])]
    if is_dense_in[0] or is_dense_in[1] is False:
        return ()
    return axes[::-1] if is_dense_in[1] and is_dense_in[0] is False else None


def normal(order: tuple[int, ...], shape: Strides) -> tuple[int, ...]:
    """Return an order in normal form: `()` where it is C order up to axes of one element."""
    seen = [axis for axis in order if shape[axis].constant != 1]
    return () if seen == sorted(seen) else order


def in_k_order(ctx: Context, result: Array, *values: Array, joined: bool = False) -> Array:
    """Return `result` as a new array, in the memory order that NumPy derives from its operands."""
    order = of_operands(ctx, values, result.shape, joined)
    return replace(result, copied=True, order=order) if order != () else result


def mapped(ctx: Context, value: Array, body: Expr, kind: Kind) -> Array:
    """Return a new array of an expression over the axes of `value`, in the order NumPy gives it."""
    order = of_operands(ctx, [value], value.shape)
    return Array(value.axes, value.shape, body, kind, copied=True, order=order)


def _pad_strides(ctx: Context, value: Array, rank: int) -> Strides | None:
    strides = strides_of(ctx, value)
    if strides is None:
        return None
    steps = (
        const(0) if size.constant == 1 else step
        for step, size in zip(strides, value.shape, strict=True)
    )
    return (*(const(0),) * (rank - value.rank), *steps)


def _magnitude(ctx: Context, step: Affine, extent: Affine) -> Affine | None:
    """Return the absolute value of a stride; None where its sign is known at run time only."""
    if extent.constant == 1:
        return const(0)
    if ctx.assumptions.nonnegative(step):
        return step
    return -step if ctx.assumptions.nonnegative(-step) else None


def _compare_strides(ctx: Context, pairs: Sequence[tuple[Affine | None, Affine | None]]) -> str:
    """Return whether an axis is further in than another, by pairs of strides: one per operand.

    "yes", "no", "open" where no operand decides, "unknown" where that is known at run time only.
    """
    answer = "open"
    for step, other_step in pairs:
        if step is None or other_step is None:
            return "unknown"
        if 0 in (step.constant, other_step.constant):
            continue
        if ctx.assumptions.nonnegative(step - other_step):
            answer = "no"
        elif ctx.assumptions.less(step, other_step):
            answer = "yes" if answer == "open" else answer
        else:
            return "unknown"
    return answer


def _require_strides(ctx: Context, value: Array) -> Strides | None:
    """Return the strides of a view on which a result depends; NeedOrder if not tracked."""
    read = value.aliased
    assert read is not None, "what is no view has no memory yet"
    if not ctx.orders and not _is_parameter(ctx, read):
        raise NeedOrder
    return _view_strides(ctx, value, read)


def _is_parameter(ctx: Context, read: Read) -> bool:
    return any(parameter.node is read.node for parameter in ctx.parameters.values())


def _has_dense_strides(
    ctx: Context, shape: Strides, strides: Strides, axes: Sequence[int]
) -> bool | None:
    step, is_proven = const(1), True
    for axis in reversed(axes):
        if shape[axis].constant != 1 and not ctx.assumptions.equal(strides[axis], step):
            if ctx.assumptions.differ(strides[axis], step) and ctx.assumptions.less(
                const(1), shape[axis]
            ):
                return False
            is_proven = False
        step = multiply(step, shape[axis])
    return True if is_proven else None


def _view_strides(ctx: Context, value: Array, read: Read) -> Strides | None:
    """Return the stride of each axis of a view in elements, None where one is not constant."""
    if read.node in ctx.unordered:
        return None
    address, is_static = const(0), True
    for index, stride in zip(read.index, read.node.element_strides, strict=True):
        assert isinstance(index, Affine), "a view has no subscripts that depend on data"
        is_static = is_static and stride.constant is not None
        address = address + multiply(index, stride)
    if is_static:
        address = recombine_quotients(address)
        quotient_symbols = {s for atom, _ in address.terms if isinstance(atom, Quasi)
                 for s in Affine(((atom, 1),)).symbols()}  # fmt: skip
        if quotient_symbols & set(value.axes):
            return None
        steps = [const(address.coefficient(axis)) for axis in value.axes]
    else:
        steps = [_stride_along(read, axis) for axis in value.axes]
    return tuple(step * (1 if value.part is None else 2) for step in steps)


def _stride_along(read: Read, axis: Symbol) -> Affine:
    """Return the stride along an axis: the distance from index 0 to 1 (for dynamic strides)."""
    total = const(0)
    for index, stride in zip(read.index, read.node.element_strides, strict=True):
        assert isinstance(index, Affine), "a view has no subscripts that depend on data"
        step = substitute(index, {axis: const(1)}) - substitute(index, {axis: const(0)})
        total = total + multiply(step, stride)
    return total


def _permute_axes(value: Array, order: Sequence[int]) -> Array:
    axes, shape = tuple(value.axes[n] for n in order), tuple(value.shape[n] for n in order)
    return replace(value, axes=axes, shape=shape, order=())


def _invert_permutation(order: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(range(len(order)), key=order.__getitem__))
