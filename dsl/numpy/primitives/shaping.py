"""The same elements under other axes: transposes, reshapes, flips, new and dropped axes, diagonals.

Each gives a view where NumPy gives one, so that writing through it writes the base.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....base.diagnostic import CdShapeError, CdTypeError, CdValueError
from ....lowering.ir.assignments import Fault
from ....lowering.ir.expressions import Domain
from ....lowering.ir.indexing import Affine, Symbol, const, multiply, var
from ...values.arrays import permuted
from ...values.broadcasting import broadcast_to
from ...values.builder import NeedOrder, compare, error
from ...values.call_site import (
    NONE,
    ONE,
    ZERO,
    Body,
    Site,
    array_of,
    axes_of,
    axis_of,
    index_in,
    is_none,
    items_of,
    static_int,
    static_shape,
    text_of,
)
from ...values.memory_order import based, bases_of, held, of_operands
from ...values.positions import clipped
from ...values.values import Array, Group, Static, Value
from .reshaping import is_in_order, reshaped


def remap(
    value: Array, axes: Sequence[Symbol], shape: Sequence[Affine], index: Sequence[Affine]
) -> Array:
    """Return the array over other axes: its element at `index`, a view where it was one."""
    return Array(tuple(axes), tuple(shape), value.at(tuple(index)), value.kind, value.copied)


def _based(site: Site, value: Value) -> Array:
    """Return a value as an array that views are made of."""
    return based(site.ctx, array_of(site, value), site.span)


def transpose(site: Site, a: Value, axes: Value = NONE) -> Value:
    """Return the axes reversed, or in the order given."""
    array = _based(site, a)
    if is_none(axes):
        turned = permuted(array, range(array.rank)[::-1])
        fresh = site.ctx.axes(array.rank)  # a view of its own, of a line too
        return replace(turned, axes=fresh, body=turned.at(tuple(map(var, fresh))))
    items = items_of(axes)
    order = [axis_of(site, item, array.rank) for item in (items if items is not None else (axes,))]
    if sorted(order) != list(range(array.rank)):
        raise error("CD0311", CdShapeError, "the axes do not match the array", site.span)
    return permuted(array, order)


def transpose_method(site: Site, a: Value, *axes: Value) -> Value:
    """Return `x.transpose(...)`, whose axes may stand without a tuple."""
    if not axes:
        return transpose(site, a)
    return transpose(site, a, axes[0] if len(axes) == 1 else Group(axes))


def matrix_transpose(site: Site, x: Value) -> Value:
    """Return the last two axes exchanged."""
    return swapaxes(site, x, Static(-1), Static(-2))


def swapaxes(site: Site, a: Value, axis1: Value, axis2: Value) -> Value:
    """Return two axes exchanged."""
    array = _based(site, a)
    first, second = axis_of(site, axis1, array.rank), axis_of(site, axis2, array.rank)
    order = list(range(array.rank))
    order[first], order[second] = order[second], order[first]
    return permuted(array, order)


def moveaxis(site: Site, a: Value, source: Value, destination: Value) -> Value:
    """Return axes moved to other places, the rest in order."""
    array = _based(site, a)
    pairs = [
        [axis_of(site, item, array.rank) for item in (items_of(value) or (value,))]
        for value in (source, destination)
    ]
    if len(set(pairs[0])) != len(set(pairs[1])) or len(pairs[0]) != len(pairs[1]):
        text = f"{len(pairs[0])} axes do not move to {len(pairs[1])} places"
        raise error("CD0311", CdShapeError, text, site.span)
    order = [axis for axis in range(array.rank) if axis not in pairs[0]]
    for to, axis in sorted(zip(pairs[1], pairs[0], strict=True)):
        order.insert(to, axis)
    return permuted(array, order)


def reshape(site: Site, a: Value, shape: Value, order: Value = Static("C")) -> Value:
    """Return the elements under another shape, row by row, or as `order` says; -1 is worked out."""
    array = _based(site, a)
    items = items_of(shape)
    sizes = [_size(site, item) for item in (items if items is not None else (shape,))]
    return _in_order(site, array, sizes, _rising(site, array, order, ("C", "A", "F")))


def _in_order(
    site: Site, array: Array, sizes: Sequence[Affine | None], axes: Sequence[int]
) -> Array:
    """Return the elements under another shape, both counted with the last of some axes first."""
    rising = range(array.rank)
    if list(axes) == list(rising):
        return reshaped(site, array, sizes)
    turned = reshaped(site, permuted(array, axes), sizes[::-1])
    return permuted(turned, range(turned.rank)[::-1])


def _rising(site: Site, array: Array, order: Value, allowed: Sequence[str]) -> Sequence[int]:
    """Return the axes in an order of NumPy: C, F, A as the array is in memory, K just so.

    CdValueError CD0448 where only the run knows.
    """
    how, rising = text_of(site, order, "order", allowed), range(array.rank)
    if how == "C" or array.rank < 2:
        return rising
    if how == "F":
        return rising[::-1]
    if not site.ctx.orders:
        raise NeedOrder
    array, found = _based(site, array), None
    ways = {"C": is_in_order(site, array, rising), "F": is_in_order(site, array, rising[::-1])}
    if how == "A" and (ways["C"] or ways["F"] is False):
        return rising
    if how == "A" and ways["C"] is False and ways["F"]:
        return rising[::-1]
    if how == "K":
        found = of_operands(site.ctx, [array], array.shape)
    if found is None:
        text = f"which elements order={how!r} puts first depends on how the array is in memory, "
        way = "name the order: `order='C'`"
        raise error("CD0448", CdValueError, f"{text}which only the run knows", site.span,
                    helps=(way,))  # fmt: skip
    return found or rising


def _size(site: Site, item: Value) -> Affine | None:
    """Return one size of a new shape, None for -1."""
    if isinstance(item, Static) and item.value == -1:
        return None
    return static_shape(site, item)[0]


def reshape_method(site: Site, a: Value, *shape: Value, order: Value = Static("C")) -> Value:
    """Return `x.reshape(...)`, whose sizes may stand without a tuple."""
    return reshape(site, a, shape[0] if len(shape) == 1 else Group(shape), order)


def ravel(site: Site, a: Value, order: Value = Static("C")) -> Value:
    """Return all elements along one axis: a view where they follow each other in memory."""
    array = _based(site, a)
    axes = _rising(site, array, order, _LINES)
    flat = _in_order(site, array, (None,), axes) if array.rank != 1 else array
    dense = is_in_order(site, array, axes)
    if dense:
        return flat
    if dense is not None:
        return Array(flat.axes, flat.shape, flat.body, flat.kind, copied=True)
    if bases_of(flat) == bases_of(array):
        return held(site.ctx, flat, "flat", site.span)  # refused where somebody could tell
    return flat


_LINES = ("C", "A", "F", "K")


def elements(site: Site, a: Value, order: Value = Static("C")) -> Array:
    """Return all elements along one axis, where it does not matter which memory they share."""
    array = array_of(site, a)
    if array.rank == 1:
        return array
    return _in_order(site, array, (None,), _rising(site, array, order, _LINES))


def flatten(site: Site, a: Value, order: Value = Static("C")) -> Value:
    """Return all elements along one axis, as a new array."""
    flat = elements(site, a, order)
    return Array(flat.axes, flat.shape, flat.body, flat.kind, copied=True)


def expand_dims(site: Site, a: Value, axis: Value) -> Value:
    """Return the array with new axes of size 1 at the places given."""
    array = _based(site, a)
    items = items_of(axis)
    rank = array.rank + (len(items) if items is not None else 1)
    places = axes_of(site, axis, rank)
    axes, shape = list(array.axes), list(array.shape)
    for place in places:
        axes.insert(place, site.ctx.symbol("i"))
        shape.insert(place, const(1))
    return Array(tuple(axes), tuple(shape), array.body, array.kind, array.copied)


def squeeze(site: Site, a: Value, axis: Value = NONE) -> Value:
    """Return the array without its axes of size 1, or without those given."""
    array = _based(site, a)
    if is_none(axis):
        dropped = tuple(n for n, size in enumerate(array.shape) if size.constant == 1)
    else:
        dropped = axes_of(site, axis, array.rank)
        for place in dropped:
            site.ctx.equal_extents(array.shape[place], const(1), "squeeze of an axis", site.span)
    return without_axes(array, {place: const(0) for place in dropped})


def without_axes(array: Array, fixed: dict[int, Affine]) -> Array:
    """Return the array with some axes fixed at a position."""
    kept = [n for n in range(array.rank) if n not in fixed]
    index = [fixed.get(n, var(array.axes[n])) for n in range(array.rank)]
    return remap(array, [array.axes[n] for n in kept], [array.shape[n] for n in kept], index)


def at_least(rank: int, site: Site, a: Value) -> Array:
    """Return the array with at least so many axes, placed as NumPy places them."""
    array = _based(site, a)
    if array.rank >= rank:
        return array
    axes, shape = list(array.axes), list(array.shape)
    while len(axes) < rank:
        place = len(axes) if len(axes) == 2 else 0
        axes.insert(place, site.ctx.symbol("i"))
        shape.insert(place, const(1))
    return Array(tuple(axes), tuple(shape), array.body, array.kind, array.copied)


def atleast(site: Site, rank: int, arrays: Sequence[Value]) -> Value:
    """Return `np.atleast_1d` and its like, of one array or several."""
    made = [at_least(rank, site, array) for array in arrays]
    return made[0] if len(made) == 1 else Group(tuple(made))


def broadcast(site: Site, array: Value, shape: Value) -> Value:
    """Return the array repeated up to a shape, a view of it to be read only."""
    own = _based(site, array)
    wide = broadcast_to(site.ctx, own, static_shape(site, shape), site.span)
    return replace(wide, copied=own.copied, sealed="repeats elements, because it is broadcast")


def windows(site: Site, x: Value, window_shape: Value, axis: Value = NONE) -> Value:
    """Return all windows of an array under new last axes, a view of it to be read only.

    CdTypeError CD0452 where there is not one size for each axis.
    """
    own = _based(site, x)
    sizes = static_shape(site, window_shape)
    items = items_of(axis)
    given = (axis,) if items is None else items
    places = [axis_of(site, item, own.rank) for item in given] if not is_none(axis) else None
    places = list(range(own.rank)) if places is None else places
    if len(sizes) != len(places):
        text = f"there are {len(sizes)} sizes of a window, and {len(places)} axes to move it along"
        raise error("CD0452", CdTypeError, text, site.span, helps=("name the axes: `axis=-1`",))
    shape, axes, inner = list(own.shape), site.ctx.axes(own.rank), site.ctx.axes(len(sizes))
    index = [var(axis) for axis in axes]
    for place, size, offset in zip(places, sizes, inner, strict=True):
        rest = shape[place] - size
        _require_room(site, rest)
        shape[place], index[place] = rest + 1, index[place] + var(offset)
    made = remap(own, (*axes, *inner), (*shape, *sizes), index)
    return replace(made, sealed="shows elements more than once, in several windows")


def _require_room(site: Site, rest: Affine) -> None:
    """Require an axis as long as its window: CdShapeError CD0314."""
    known = site.ctx.known
    if known.nonnegative(rest):
        return
    text = "an axis is shorter than its window"
    if known.nonnegative(-rest - 1):
        raise error("CD0314", CdShapeError, text, site.span, helps=_SHORTER)
    fault = Fault("CD0314", "CdShapeError", text, _SHORTER)
    site.ctx.check(compare("le", const(0), rest), fault, (), site.span, Domain())


_SHORTER = ("take a smaller window, or pass more elements",)


def flip(site: Site, m: Value, axis: Value = NONE) -> Value:
    """Return the elements in opposite order along some axes (default: all)."""
    array = _based(site, m)
    turned = axes_of(site, axis, array.rank)
    index = [
        array.shape[n] - 1 - var(a) if n in turned else var(a) for n, a in enumerate(array.axes)
    ]
    return remap(array, array.axes, array.shape, index)


def rot90(site: Site, m: Value, k: Value = ONE, axes: Value = NONE) -> Value:
    """Return the array turned by quarter turns in the plane of two axes."""
    array = _based(site, m)
    items = (ZERO, ONE) if is_none(axes) else items_of(axes) or ()
    first, second = (axis_of(site, item, array.rank) for item in items)
    turns = static_int(site, k, "the number of turns") % 4
    if turns == 0:
        return array
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
    """Return the diagonal of two axes as the last axis, a view of it to be read only."""
    line = diagonal_place(site, a, offset, axis1, axis2)
    return replace(line, sealed="is a diagonal, which NumPy opens for reading only")


def matrix_diagonal(site: Site, x: Value, *, offset: Value = ZERO) -> Value:
    """Return the diagonals of matrices, which are the last two axes."""
    return diagonal(site, x, offset, Static(-2), Static(-1))


def diagonal_place(
    site: Site, a: Value, offset: Value = ZERO, axis1: Value = ZERO, axis2: Value = ONE
) -> Array:
    """Return the diagonal of two axes as the last axis, to be written, too."""
    array = _based(site, a)
    if array.rank < 2:
        raise error("CD0452", CdTypeError, "a diagonal needs at least two axes", site.span)
    rows, columns = axis_of(site, axis1, array.rank), axis_of(site, axis2, array.rank)
    shift = static_int(site, offset, "the offset")
    below, right = max(-shift, 0), max(shift, 0)
    known = site.ctx.known
    extent = known.minimum(array.shape[rows] - below, array.shape[columns] - right)
    axis = site.ctx.symbol("i")
    kept = [n for n in range(array.rank) if n not in (rows, columns)]
    index = [var(a) for a in array.axes]
    index[rows], index[columns] = var(axis) + below, var(axis) + right
    axes = [*(array.axes[n] for n in kept), axis]
    shape = [*(array.shape[n] for n in kept), known.maximum(extent, const(0))]
    return remap(array, axes, shape, index)


def splitter(uneven: bool) -> Body:
    """Return `np.split`, or `np.array_split` whose parts may be `uneven`."""

    def body(site: Site, ary: Value, indices_or_sections: Value, axis: Value = ZERO) -> Value:
        return split(site, ary, indices_or_sections, axis, uneven)

    return body


def split(
    site: Site, ary: Value, indices_or_sections: Value, axis: Value = ZERO, uneven: bool = False
) -> Value:
    """Return views of consecutive parts along an axis."""
    array = _based(site, ary)
    place = axis_of(site, axis, array.rank)
    items = items_of(indices_or_sections)
    size = array.shape[place]
    if items is not None:
        places = [index_in(site, item, "a split position") for item in items]
        inner = [clipped(site.ctx, at, size, 0, site.span) for at in places]
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
    parts = []
    for lo, hi in zip(ends, ends[1:], strict=False):
        shape = list(array.shape)
        shape[place] = site.ctx.known.maximum(hi - lo, const(0))
        index = [var(a) + (lo if n == place else const(0)) for n, a in enumerate(array.axes)]
        axes = site.ctx.axes(array.rank)
        moved = remap(array, array.axes, shape, index)
        parts.append(remap(moved, axes, shape, [var(a) for a in axes]))
    return Group(tuple(parts), "list")


def total_size(shape: Sequence[Affine]) -> Affine:
    """Return the number of elements of a shape."""
    total = const(1)
    for size in shape:
        total = multiply(total, size)
    return total
