"""Views by index remapping: transposes, reshapes, flips, new and dropped axes, windows, diagonals.

Each is a view where NumPy's is one: a write through it writes the base.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....base.diagnostic import CdShapeError, CdTypeError, CdValueError
from ....lowering.ir import dtypes
from ....lowering.ir.assignments import Fault
from ....lowering.ir.expressions import Apply, Domain, Position
from ....lowering.ir.indexing import Affine, Symbol, const, multiply, var
from ....lowering.ir.ops import OPS
from ...values.arrays import describe, permuted, strong
from ...values.broadcasting import broadcast_to
from ...values.builder import NeedOrder, compare, error
from ...values.call_site import (
    NONE,
    ONE,
    ZERO,
    Body,
    Site,
    array_of,
    axes_in_order,
    axes_of,
    axis_of,
    index_in,
    is_none,
    is_numpy_scalar,
    items_of,
    multiplied,
    position_of,
    static_int,
    static_shape,
    text_of,
    two_axes_of,
)
from ...values.memory_order import based, bases_of, held, of_operands
from ...values.positions import clipped
from ...values.types import Kind
from ...values.values import Array, Group, Scalar, Static, Value, as_new
from .reshaping import is_in_order, reshaped


def remap(
    value: Array, axes: Sequence[Symbol], shape: Sequence[Affine], index: Sequence[Affine]
) -> Array:
    """Return the array over index variables `axes`: its element at `index`, a view of a view."""
    return Array(tuple(axes), tuple(shape), value.at(tuple(index)), value.kind, value.copied)


def _with_base(site: Site, value: Value) -> Array:
    """Return a value as an array of NumPy with a base that views can share."""
    return based(site.ctx, _numpy_array(site, value), site.span)


def _numpy_array(site: Site, value: Value) -> Array:
    """Return `np.asarray(value)`: of a number of Python an array of 64-bit ones, which promotes."""
    array = array_of(site, value)
    return replace(array, kind=strong(array.kind)) if array.kind.weak else array


def transpose(site: Site, a: Value, axes: Value = NONE) -> Value:
    """Return the array with its axes reversed, or permuted as given; a scalar of NumPy as it is."""
    array = _with_base(site, a)
    if is_none(axes):
        if is_numpy_scalar(a):
            return a
        transposed = permuted(array, range(array.rank)[::-1])
        symbols = site.ctx.axes(array.rank)  # distinct from the operand, also for rank 1
        return replace(transposed, axes=symbols, body=transposed.at(tuple(map(var, symbols))))
    items = items_of(axes)
    order = [axis_of(site, item, array.rank) for item in (items if items is not None else (axes,))]
    if sorted(order) != list(range(array.rank)):
        raise error("CD0311", CdShapeError, "the axes do not match the array", site.span)
    return permuted(array, order)


def transpose_method(site: Site, a: Value, *axes: Value) -> Value:
    """Return `x.transpose(...)`, whose axes may be a tuple or separate arguments."""
    if not axes:
        return transpose(site, a)
    return transpose(site, a, axes[0] if len(axes) == 1 else Group(axes))


def matrix_transpose(site: Site, x: Value) -> Value:
    """Return the array with its last two axes exchanged."""
    return swapaxes(site, x, Static(-1), Static(-2))


def swapaxes(site: Site, a: Value, axis1: Value, axis2: Value) -> Value:
    """Return the array with two axes exchanged."""
    array = _with_base(site, a)
    first, second = axis_of(site, axis1, array.rank), axis_of(site, axis2, array.rank)
    order = list(range(array.rank))
    order[first], order[second] = order[second], order[first]
    return permuted(array, order)


def moveaxis(site: Site, a: Value, source: Value, destination: Value) -> Value:
    """Return the array with axes moved to other positions, the rest in order."""
    array = _with_base(site, a)
    pairs = [axes_in_order(site, value, array.rank) for value in (source, destination)]
    if len(pairs[0]) != len(pairs[1]):
        text = f"{len(pairs[0])} axes do not move to {len(pairs[1])} places"
        helps = ("give as many places as axes: `np.moveaxis(x, (0, 1), (-1, 0))`",)
        raise error("CD0311", CdShapeError, text, site.span, helps=helps)
    order = [axis for axis in range(array.rank) if axis not in pairs[0]]
    for to, axis in sorted(zip(pairs[1], pairs[0], strict=True)):
        order.insert(to, axis)
    return permuted(array, order)


def reshape(site: Site, a: Value, shape: Value, order: Value = Static("C")) -> Value:
    """Return the elements under another shape, in C order or as `order` says; -1 is inferred."""
    array = _with_base(site, a)
    items = items_of(shape)
    items = items if items is not None else (shape,)
    is_inferred = any(map(_is_missing, items))
    open_axis = None if is_inferred else _run_time_size(site, items)
    sizes = [
        None if _is_missing(item) or n == open_axis else _size(site, item, is_inferred)
        for n, item in enumerate(items)
    ]
    axes = _axis_order(site, array, order, ("C", "A", "F"))
    in_columns = text_of(site, order, "order", ("C", "A", "F")) == "F"
    result = _reshape_in_order(site, array, sizes, axes, in_columns)
    if open_axis is not None:
        _require_size(site, position_of(items[open_axis]), result.shape[open_axis])
    return result


def _run_time_size(site: Site, items: Sequence[Value]) -> int | None:
    """Return the axis of the only size that is a number of the run and may be -1: whichever it is,
    the others say what it has to be."""
    ctx = site.ctx
    places = {n: at for n, item in enumerate(items) if (at := position_of(item)) is not None}
    free = [n for n, at in places.items() if not ctx.assumptions.nonnegative(at)]
    others = {x for n, at in places.items() if n not in free for x in at.symbols()}
    if len(free) != 1 or len(places) < len(items) or not others <= ctx.sizes:
        return None  # another size may be 0, which leaves none for this one
    if not places[free[0]].symbols() <= ctx.origin.keys():
        return None
    ctx.prefer_static(places[free[0]])
    return free[0]


def _require_size(site: Site, given: Affine | None, size: Affine) -> None:
    """Check a size of a new shape, which is -1 or what the other sizes leave for it."""
    assert given is not None, "the position of a number"
    is_size, is_missing = compare("eq", given, size), compare("eq", given, const(-1))
    text = "an axis of size {1} cannot have {0} elements: `reshape` changes no number of elements"
    fault = Fault("CD0312", "CdShapeError", text, ("leave it to the others: `-1`",))
    test = Apply(OPS["or"], (is_size, is_missing), dtypes.bool_)
    site.ctx.check(test, fault, (Position(given), Position(size)), site.span, Domain())


def _reshape_in_order(
    site: Site,
    array: Array,
    sizes: Sequence[Affine | None],
    axes: Sequence[int],
    in_columns: bool = False,
) -> Array:
    """Return the elements under another shape, both linearized in the order of `axes`; `in_columns`
    says so for the shape where the array has too few axes to."""
    row_major = range(array.rank)
    if list(axes) == list(row_major) and not (in_columns and array.rank < 2):
        return reshaped(site, array, sizes)
    transposed = reshaped(site, permuted(array, axes), sizes[::-1])
    return permuted(transposed, range(transposed.rank)[::-1])


def _axis_order(site: Site, array: Array, order: Value, allowed: Sequence[str]) -> Sequence[int]:
    """Return the axes from outermost to innermost for NumPy's `order`: C, F, A or K.

    A and K depend on the layout: CdValueError CD0448 where it is dynamic.
    """
    name, row_major = text_of(site, order, "order", allowed), range(array.rank)
    if name == "C" or array.rank < 2:
        return row_major
    if name == "F":
        return row_major[::-1]
    if not site.ctx.orders:
        raise NeedOrder
    array, memory_order = _with_base(site, array), None
    contiguous = {
        "C": is_in_order(site, array, row_major),
        "F": is_in_order(site, array, row_major[::-1]),
    }
    if name == "A" and (contiguous["C"] or contiguous["F"] is False):
        return row_major
    if name == "A" and contiguous["C"] is False and contiguous["F"]:
        return row_major[::-1]
    if name == "K":
        memory_order = of_operands(site.ctx, [array], array.shape)
    if memory_order is None:
        text = f"which elements order={name!r} puts first depends on how the array is in memory, "
        hint = "name the order: `order='C'`"
        raise error("CD0448", CdValueError, f"{text}which is known at run time only", site.span,
                    helps=(hint,))  # fmt: skip
    return memory_order or row_major


def _is_missing(item: Value) -> bool:
    return isinstance(item, Static) and item.value == -1


def _size(site: Site, item: Value, is_inferred: bool) -> Affine:
    """Return one size of a new shape, static where it may be -1, which a call may give for one."""
    at = position_of(item)
    if at is not None and not is_inferred and not site.ctx.assumptions.nonnegative(at):
        site.ctx.require_static_parameters(at)
    return static_shape(site, item)[0]


def reshape_method(site: Site, a: Value, *shape: Value, order: Value = Static("C")) -> Value:
    """Return `x.reshape(...)`, whose sizes may be a tuple or separate arguments."""
    return reshape(site, a, shape[0] if len(shape) == 1 else Group(shape), order)


def ravel(site: Site, a: Value, order: Value = Static("C")) -> Value:
    """Return all elements along one axis: a view where the array is contiguous in that order."""
    array = _with_base(site, a)
    axes = _axis_order(site, array, order, _ORDERS)
    flat = _reshape_in_order(site, array, (None,), axes) if array.rank != 1 else as_new(array)
    dense = is_in_order(site, array, axes)
    if dense:
        return flat
    if dense is not None:
        return Array(flat.axes, flat.shape, flat.body, flat.kind, copied=True)
    if bases_of(flat) == bases_of(array):
        return held(site.ctx, flat, "flat", site.span)  # refused where aliasing is observable
    return flat


_ORDERS = ("C", "A", "F", "K")


def elements(site: Site, a: Value, order: Value = Static("C")) -> Array:
    """Return all elements along one axis, for uses that cannot observe aliasing."""
    array = _numpy_array(site, a)
    if array.rank == 1:
        return array
    return _reshape_in_order(site, array, (None,), _axis_order(site, array, order, _ORDERS))


def flatten(site: Site, a: Value, order: Value = Static("C")) -> Value:
    """Return all elements along one axis, as a new array."""
    flat = elements(site, a, order)
    return Array(flat.axes, flat.shape, flat.body, flat.kind, copied=True)


def expand_dims(site: Site, a: Value, axis: Value) -> Value:
    """Return the array with new axes of size 1 at given positions."""
    array = _with_base(site, a)
    items = items_of(axis)
    rank = array.rank + (len(items) if items is not None else 1)
    dims = axes_of(site, axis, rank)
    axes, shape = list(array.axes), list(array.shape)
    for dim in dims:
        axes.insert(dim, site.ctx.symbol("i"))
        shape.insert(dim, const(1))
    return Array(tuple(axes), tuple(shape), array.body, array.kind, array.copied)


def squeeze(site: Site, a: Value, axis: Value = NONE) -> Value:
    """Return the array without its axes of size 1, or without those given; a scalar of NumPy as
    it is.

    Without them, CdShapeError CD0301 in a run in which an axis of run-time size has size 1.
    """
    if is_none(axis) and is_numpy_scalar(a):
        return a
    array = _with_base(site, a)
    if is_none(axis):
        for size in array.shape:
            if size.constant is None and not site.ctx.assumptions.differ(size, const(1)):
                site.ctx.require_static(size)
                helps = ("say which axes go: `np.squeeze(x, axis=0)`",)
                text = "`squeeze` meets an axis that has size 1 in this run only"
                fault = Fault("CD0301", "CdShapeError", text, helps)
                site.ctx.check(compare("ne", size, const(1)), fault, (), site.span, Domain())
        dropped = tuple(n for n, size in enumerate(array.shape) if size.constant == 1)
        if not dropped:
            return array
    else:
        dropped = axes_of(site, axis, array.rank)
        for dim in dropped:
            site.ctx.equal_extents(array.shape[dim], const(1), "squeeze of an axis", site.span)
    return without_axes(array, {dim: const(0) for dim in dropped})


def without_axes(array: Array, fixed: dict[int, Affine]) -> Array:
    """Return the array without some axes, each fixed at a position (axis -> position)."""
    remaining = [n for n in range(array.rank) if n not in fixed]
    index = [fixed.get(n, var(array.axes[n])) for n in range(array.rank)]
    return remap(
        array, [array.axes[n] for n in remaining], [array.shape[n] for n in remaining], index
    )


def at_least(rank: int, site: Site, a: Value) -> Array:
    """Return the array with at least `rank` axes, those of size 1 added where NumPy adds them."""
    array = _with_base(site, a)
    if array.rank >= rank:
        return array
    axes, shape = list(array.axes), list(array.shape)
    while len(axes) < rank:
        dim = len(axes) if len(axes) == 2 else 0
        axes.insert(dim, site.ctx.symbol("i"))
        shape.insert(dim, const(1))
    return Array(tuple(axes), tuple(shape), array.body, array.kind, array.copied)


def atleast(site: Site, rank: int, arrays: Sequence[Value]) -> Value:
    """Return `np.atleast_1d`, `_2d` or `_3d` of one array or several."""
    results = [at_least(rank, site, array) for array in arrays]
    return results[0] if len(results) == 1 else Group(tuple(results))


def broadcast(site: Site, array: Value, shape: Value) -> Value:
    """Return the array broadcast to a shape, a read-only view."""
    base = _with_base(site, array)
    sizes = static_shape(site, shape)
    total = const(1)
    for size in sizes:
        total = multiplied(site, total, size)
    wide = broadcast_to(site.ctx, base, sizes, site.span)
    return replace(
        wide, given=None, copied=base.copied, sealed="repeats elements, because it is broadcast"
    )


def windows(site: Site, x: Value, window_shape: Value, axis: Value = NONE) -> Value:
    """Return all sliding windows of an array along new last axes, a read-only view.

    CdTypeError CD0452 where there is not one size for each axis.
    """
    base = _with_base(site, x)
    sizes = static_shape(site, window_shape)
    items = items_of(axis)
    given = (axis,) if items is None else items
    dims = [axis_of(site, item, base.rank) for item in given] if not is_none(axis) else None
    dims = list(range(base.rank)) if dims is None else dims
    if len(sizes) != len(dims):
        text = f"there are {len(sizes)} sizes of a window, and {len(dims)} axes to move it along"
        raise error("CD0452", CdTypeError, text, site.span, helps=("name the axes: `axis=-1`",))
    shape, axes, inner = list(base.shape), site.ctx.axes(base.rank), site.ctx.axes(len(sizes))
    index = [var(axis) for axis in axes]
    for dim, size, offset in zip(dims, sizes, inner, strict=True):
        rest = shape[dim] - size
        _require_window_fits(site, rest)
        shape[dim], index[dim] = rest + 1, index[dim] + var(offset)
    result = remap(base, (*axes, *inner), (*shape, *sizes), index)
    return replace(result, sealed="shows elements more than once, in several windows")


def _require_window_fits(site: Site, rest: Affine) -> None:
    """Require (CdShapeError CD0314) room for a window on an axis: proven, or a run-time check."""
    assumptions = site.ctx.assumptions
    if assumptions.nonnegative(rest):
        return
    text = "an axis is shorter than its window"
    if assumptions.nonnegative(-rest - 1):
        raise error("CD0314", CdShapeError, text, site.span, helps=_WINDOW_HINTS)
    fault = Fault("CD0314", "CdShapeError", text, _WINDOW_HINTS)
    site.ctx.check(compare("le", const(0), rest), fault, (), site.span, Domain())


_WINDOW_HINTS = ("take a smaller window, or pass more elements",)


def flip(site: Site, m: Value, axis: Value = NONE) -> Value:
    """Return the elements reversed along some axes (default: all), a view; of one a scalar."""
    array = _with_base(site, m)
    if not array.rank and is_none(axis):
        return Scalar(array.body, Kind(array.kind.dtype))
    reversed_dims = axes_of(site, axis, array.rank)
    index = [
        array.shape[n] - 1 - var(a) if n in reversed_dims else var(a)
        for n, a in enumerate(array.axes)
    ]
    return remap(array, array.axes, array.shape, index)


def rot90(site: Site, m: Value, k: Value = ONE, axes: Value = NONE) -> Value:
    """Return the array rotated by `k` quarter turns in the plane of two axes."""
    array = _with_base(site, m)
    items = (ZERO, ONE) if is_none(axes) else items_of(axes)
    if items is None or len(items) != 2:
        given = "one number" if items is None else f"{len(items)}"
        text = f"`rot90` turns the plane of two axes, and is given {given}"
        raised = CdTypeError if items is None else CdValueError
        raise error("CD0446", raised, text, site.span, helps=("write `axes=(0, 1)`",))
    if array.rank < 2:
        text = f"`rot90` turns the plane of two axes, and is given {describe(array)}"
        raise error("CD0452", CdValueError, text, site.span)
    first, second = two_axes_of(site, *items, array.rank)
    turns = static_int(site, k, "the number of turns") % 4
    if turns == 0:
        return as_new(array)
    if turns == 2:
        return flip(site, array, Group((Static(first), Static(second))))
    order = list(range(array.rank))
    order[first], order[second] = order[second], order[first]
    if turns == 1:
        return permuted(array_of(site, flip(site, array, Static(second))), order)
    return flip(site, permuted(array, order), Static(second))


def diagonal(
    site: Site, a: Value, offset: Value = ZERO, axis1: Value = ZERO, axis2: Value = ONE
) -> Value:
    """Return the diagonal of two axes as the last axis, a read-only view."""
    line = diagonal_place(site, a, offset, axis1, axis2)
    return replace(line, sealed="is a diagonal, which NumPy opens for reading only")


def matrix_diagonal(site: Site, x: Value, *, offset: Value = ZERO) -> Value:
    """Return the diagonals of a stack of matrices over the last two axes."""
    return diagonal(site, x, offset, Static(-2), Static(-1))


def diagonal_place(
    site: Site, a: Value, offset: Value = ZERO, axis1: Value = ZERO, axis2: Value = ONE
) -> Array:
    """Return the diagonal of two axes as the last axis, a writable view."""
    array = _with_base(site, a)
    if array.rank < 2:
        text = f"a diagonal needs at least two axes, and is of {describe(array)}"
        raise error("CD0452", CdValueError, text, site.span)
    rows, columns = two_axes_of(site, axis1, axis2, array.rank)
    assumptions, height, width = site.ctx.assumptions, array.shape[rows], array.shape[columns]
    shift = index_in(site, offset, "the offset")
    shift = assumptions.maximum(assumptions.minimum(shift, width), const(0) - height)
    below, right = (assumptions.maximum(side, const(0)) for side in (const(0) - shift, shift))
    extent = assumptions.minimum(height - below, width - right)
    axis = site.ctx.symbol("i")
    remaining = [n for n in range(array.rank) if n not in (rows, columns)]
    index = [var(a) for a in array.axes]
    index[rows], index[columns] = var(axis) + below, var(axis) + right
    axes = [*(array.axes[n] for n in remaining), axis]
    shape = [*(array.shape[n] for n in remaining), assumptions.maximum(extent, const(0))]
    return remap(array, axes, shape, index)


def splitter(uneven: bool) -> Body:
    """Return the handler of `np.split`, or of `np.array_split` whose sections may be `uneven`."""

    def body(site: Site, ary: Value, indices_or_sections: Value, axis: Value = ZERO) -> Value:
        return split(site, ary, indices_or_sections, axis, uneven)

    return body


def split_columns(site: Site, ary: Value, indices_or_sections: Value) -> Value:
    """Return `np.hsplit`: sections along the second axis; of a vector, along its only one."""
    array = array_of(site, ary)
    if not array.rank:
        text = f"`hsplit` needs an axis, and is given {describe(array)}"
        raise error("CD0452", CdValueError, text, site.span)
    return split(site, ary, indices_or_sections, ONE if array.rank > 1 else ZERO)


def split_rows(site: Site, ary: Value, indices_or_sections: Value) -> Value:
    """Return `np.vsplit`: sections along the first axis of two or more."""
    if (array := array_of(site, ary)).rank < 2:
        text = f"`vsplit` needs two axes, and is given {describe(array)}"
        helps = ("`np.split` splits along the first axis of any array",)
        raise error("CD0452", CdValueError, text, site.span, helps=helps)
    return split(site, ary, indices_or_sections, ZERO)


def split(
    site: Site, ary: Value, indices_or_sections: Value, axis: Value = ZERO, uneven: bool = False
) -> Value:
    """Return consecutive sections along an axis as views. CdShapeError CD0311 for uneven ones."""
    array = _with_base(site, ary)
    dim = axis_of(site, axis, array.rank)
    items = items_of(indices_or_sections)
    size = array.shape[dim]
    if items is not None:
        positions = [index_in(site, item, "a split position") for item in items]
        inner = [clipped(site.ctx, position, size, 0, site.span) for position in positions]
        ends = [const(0), *inner, size]
    else:
        number = static_int(site, indices_or_sections, "the number of sections")
        total = size.constant
        if total is None:
            site.ctx.require_static(size)
        if total is None or number <= 0 or (total % number and not uneven):
            raise error(
                "CD0311", CdShapeError, f"an axis of size {size} does not split into {number}",
                site.span, helps=("`np.array_split` takes uneven parts",),
            )  # fmt: skip
        each, extra = divmod(total, number)
        ends = [const(n * each + min(n, extra)) for n in range(number + 1)]
    sections = []
    for lower, upper in zip(ends, ends[1:], strict=False):
        shape = list(array.shape)
        shape[dim] = site.ctx.assumptions.maximum(upper - lower, const(0))
        index = [var(a) + (lower if n == dim else const(0)) for n, a in enumerate(array.axes)]
        axes = site.ctx.axes(array.rank)
        section = remap(array, array.axes, shape, index)
        sections.append(remap(section, axes, shape, [var(a) for a in axes]))
    return Group(tuple(sections), "list")


def total_size(shape: Sequence[Affine]) -> Affine:
    """Return the number of elements of a shape."""
    total = const(1)
    for size in shape:
        total = multiply(total, size)
    return total
