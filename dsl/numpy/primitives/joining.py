"""Concatenation, repetition, padding, rolling and gathering: new arrays of others' elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ....base.diagnostic import CdIndexError, CdShapeError, CdTypeError, CdValueError
from ....lowering.ir import dtypes
from ....lowering.ir.assignments import Fault
from ....lowering.ir.dtypes import DType
from ....lowering.ir.expressions import Const, Domain, Expr, Position, Read, Select
from ....lowering.ir.indexing import Affine, const, floordiv, mod, var
from ....lowering.ir.indexing import maximum as index_max
from ....lowering.ir.indexing import minimum as index_min
from ...values.adapting import require_held
from ...values.arrays import (
    as_scalar,
    describe,
    elementwise,
    stack,
    strong,
    with_sums_stored,
)
from ...values.broadcasting import broadcast_to
from ...values.builder import compare, error
from ...values.call_site import (
    NONE,
    ZERO,
    Site,
    array_of,
    axis_of,
    bounded,
    constant,
    dtype_of,
    extent_of,
    index_in,
    integer_of,
    is_list,
    is_none,
    items_of,
    multiplied,
    static_int,
    static_shape,
    text_of,
)
from ...values.memory_order import if_fortran, in_k_order
from ...values.stores import assign, require_storable
from ...values.types import BOOL, Kind, any_of, cast, join_all
from ...values.values import Array, Group, Masked, Scalar, Section, Static, Value
from .elementwise import converted
from .python_reductions import as_number
from .shaping import at_least, diagonal, diagonal_place, elements, expand_dims, remap, reshape
from .ufuncs import Pair, require_fit, strong_of
from .views import subscript


def arrays_in(site: Site, value: Value) -> list[Array]:
    """Return the arrays of a sequence, or the rows of an array, with strong element types.

    CdTypeError CD0453 for a number, CdValueError CD0453 for an empty sequence.
    """
    items = items_of(value)
    if items is None:
        array = array_of(site, value)
        if not array.rank:
            raise error("CD0453", CdTypeError, "this takes a sequence of arrays", site.span)
        rows = static_int(site, as_number(array.shape[0]), "the number of arrays")
        rest = [Section(None, None, None)] * (array.rank - 1)
        items = tuple(
            subscript(site.ctx, array, [Static(n), *rest], site.span, "the array")
            for n in range(rows)
        )
    if not items:
        raise error("CD0453", CdValueError, "this takes at least one array", site.span)
    return [with_strong_type(array_of(site, item)) for item in items]


def with_strong_type(array: Array) -> Array:
    """Return the array with its strong element type: Python's numbers are 64 bits wide."""
    if not array.kind.weak:
        return array
    dtype = strong_of(array.kind)
    return Array(array.axes, array.shape, cast(array.body, dtype), Kind(dtype), array.copied)


def concatenate(site: Site, arrays: Value, axis: Value = ZERO, *, dtype: Value = NONE) -> Value:
    """Return the arrays joined along an existing axis; with `axis=None` all are flattened first.

    CdShapeError CD0313 where ranks differ, CdTypeError CD0405 beyond `same_kind` casts.
    """
    parts = arrays_in(site, arrays)
    if is_none(axis):
        parts, axis = [elements(site, part) for part in parts], ZERO
    if any(part.rank != parts[0].rank for part in parts) or not parts[0].rank:
        shown = " and ".join(describe(part) for part in parts)
        raise error(
            "CD0313",
            CdShapeError,
            f"joined arrays need the same number of axes: {shown}",
            site.span,
        )
    dim = axis_of(site, axis, parts[0].rank)
    element = dtype_of(site, dtype) or join_all([part.kind for part in parts]).dtype
    for part in parts:
        _require_joined(site, part, element)
    offsets = [const(0)]
    for part in parts:
        for n in range(part.rank):
            if n != dim:
                site.ctx.equal_extents(parts[0].shape[n], part.shape[n], "joined arrays", site.span)
        offsets.append(offsets[-1] + part.shape[dim])
    shape = tuple(offsets[-1] if n == dim else size for n, size in enumerate(parts[0].shape))
    node = site.ctx.node("joined", shape, element)
    for part, start in zip(parts, offsets, strict=False):
        index = [var(a) + (start if n == dim else const(0)) for n, a in enumerate(part.axes)]
        target = Array(part.axes, part.shape, Read(node, tuple(index), site.span), Kind(element))
        site.ctx.store(target, cast(part.body, element), site.span)
    return in_k_order(site.ctx, site.ctx.whole(node, site.span), *parts, joined=True)


def _require_joined(site: Site, part: Array, dtype: DType) -> None:
    """Refuse (CdTypeError CD0405) an operand that does not cast to `dtype` by `same_kind`."""
    part_dtype = part.kind.dtype
    if dtypes.bfloat16 in (part_dtype, dtype):
        require_storable(part.kind, dtype, part, site.span)
    elif not np.can_cast(part_dtype.numpy, dtype.numpy, "same_kind"):
        text = f"{part_dtype} values are not joined as {dtype}"
        helps = (f"convert them: `x.astype(np.{dtype})`",)
        raise error("CD0405", CdTypeError, text, site.span, helps=helps)


def stacked(site: Site, arrays: Value, axis: Value = ZERO) -> Value:
    """Return the arrays joined along a new axis."""
    parts = arrays_in(site, arrays)
    for part in parts[1:]:
        if part.rank != parts[0].rank:
            raise error("CD0313", CdShapeError, "stacked arrays need one shape", site.span)
        for extent, other_extent in zip(parts[0].shape, part.shape, strict=True):
            site.ctx.equal_extents(extent, other_extent, "stacked arrays", site.span)
    dim = axis_of(site, axis, parts[0].rank + 1)
    kind = join_all([part.kind for part in parts])
    result = stack(site.ctx, parts, dim, site.span, kind)
    expanded = (expand_dims(site, part, Static(dim)) for part in parts)
    return in_k_order(
        site.ctx,
        result,
        *(array_of(site, expanded_part) for expanded_part in expanded),
        joined=True,
    )


def hstack(site: Site, tup: Value) -> Value:
    """Return the arrays joined along the second axis; arrays of rank 1, along their only one."""
    parts = [at_least(1, site, part) for part in arrays_in(site, tup)]
    return concatenate(site, Group(tuple(parts)), Static(0 if parts[0].rank == 1 else 1))


def vstack(site: Site, tup: Value) -> Value:
    """Return the arrays joined as rows."""
    return concatenate(site, Group(tuple(at_least(2, site, part) for part in arrays_in(site, tup))))


def dstack(site: Site, tup: Value) -> Value:
    """Return the arrays joined along a third axis."""
    parts = [at_least(3, site, part) for part in arrays_in(site, tup)]
    return concatenate(site, Group(tuple(parts)), Static(2))


def column_stack(site: Site, tup: Value) -> Value:
    """Return the arrays joined along the second axis; each of rank 1 is a column."""
    parts: list[Value] = []
    for part in arrays_in(site, tup):
        column = part if part.rank >= 2 else expand_dims(site, at_least(1, site, part), Static(1))
        parts.append(column)
    return concatenate(site, Group(tuple(parts)), Static(1))


def append(site: Site, arr: Value, values: Value, axis: Value = NONE) -> Value:
    """Return the array followed by the values, both flattened where there is no axis."""
    return concatenate(site, Group((array_of(site, arr), array_of(site, values))), axis)


def repeat(site: Site, a: Value, repeats: Value, axis: Value = NONE) -> Value:
    """Return each element repeated. CdTypeError CD0554 for an array of counts."""
    array = _store_reductions(site, a)
    if is_none(axis):
        array, axis = elements(site, array), ZERO
    dim = axis_of(site, axis, array.rank)
    if isinstance(repeats, Array) and repeats.rank or items_of(repeats) is not None:
        raise error(
            "CD0554", CdTypeError, "`repeat` takes one number for all elements here", site.span,
            helps=("the length of the result has to be known: write a loop",),
        )  # fmt: skip
    times = extent_of(site, repeats, "the number of repeats")
    index = [var(a) for a in array.axes]
    shape = list(array.shape)
    if times.constant != 0:
        index[dim] = floordiv(index[dim], times)
    shape[dim] = multiplied(site, shape[dim], times)
    return _as_copy(remap(array, array.axes, shape, index))


def _store_reductions(site: Site, value: Value) -> Array:
    """Return the array with its reductions stored, because its elements are read several times."""
    return with_sums_stored(site.ctx, array_of(site, value), "values", site.span)


def _as_copy(array: Array) -> Array:
    return Array(array.axes, array.shape, array.body, array.kind, copied=True)


def tile(site: Site, A: Value, reps: Value) -> Value:
    """Return the array tiled: repeated as a whole along each axis."""
    array = _store_reductions(site, A)
    items = items_of(reps)
    counts = items if items is not None else (reps,)
    times = [extent_of(site, number, "a number of repeats") for number in counts]
    times = [const(1)] * (array.rank - len(times)) + times
    extra = len(times) - array.rank
    old_shape = [const(1)] * extra + list(array.shape)
    axes = site.ctx.axes(len(times))
    shape = [multiplied(site, *pair) for pair in zip(old_shape, times, strict=True)]
    index = [
        const(0) if size.constant == 1 else var(a) if count.constant == 1 else mod(var(a), size)
        for a, size, count in zip(axes, old_shape, times, strict=True)
        if size.constant != 0
    ]
    if len(index) < len(axes):
        index = [var(a) for a in axes]
    tiled = _as_copy(remap(array, axes, shape, index[extra:]))
    is_unrepeated = all(count.constant == 1 for count in times)
    return in_k_order(site.ctx, tiled, array) if is_unrepeated else tiled


def roll(site: Site, a: Value, shift: Value, axis: Value = NONE) -> Value:
    """Return the elements rotated along axes: result[n] = a[(n - shift) mod size].

    Shifts and axes are broadcast with each other. CdValueError CD0311 where they do not.
    """
    array = array_of(site, a)
    if is_none(axis):
        flat = roll(site, elements(site, array), shift, ZERO)
        return flat if array.rank == 1 else reshape(site, flat, _shape_value(array))
    axes, shifts = rows_of(site, axis), rows_of(site, shift)
    dims, steps = (axis,) if axes is None else axes, (shift,) if shifts is None else shifts
    if len(dims) != len(steps) and 1 not in (len(dims), len(steps)):
        text = f"`roll` is given {len(steps)} shifts, and {len(dims)} axes"
        helps = ("give one shift for each axis, or one for all",)
        raise error("CD0311", CdValueError, text, site.span, helps=helps)
    dims, steps = (
        side * len(other) if len(side) == 1 else side
        for side, other in ((dims, steps), (steps, dims))
    )
    index = [var(a) for a in array.axes]
    for dim, step in zip(dims, steps, strict=True):
        if items_of(step) is not None or isinstance(step, Array) and step.rank:
            text = f"a shift of `roll` is one integer, and is {describe(step)}"
            raise error("CD0311", CdValueError, text, site.span, helps=("write `(1, 2)`",))
        n = axis_of(site, dim, array.rank)
        offset = index_in(site, step, "the shift")
        if array.shape[n].constant != 0:
            index[n] = mod(index[n] - _reduce_shift(site, offset, array.shape[n]), array.shape[n])
    return in_k_order(site.ctx, _as_copy(remap(array, array.axes, array.shape, index)), array)


def _reduce_shift(site: Site, shift: Affine, extent: Affine) -> Affine:
    """Return a shift modulo the extent: subtracting a large one from an index would overflow."""
    ctx = site.ctx
    if shift.constant is not None or ctx.pointwise or ctx.conditions:
        return shift
    return var(ctx.let("shift", Position(mod(shift, extent)), site.span))


def _shape_value(array: Array) -> Value:
    return Group(tuple(as_number(extent) for extent in array.shape))


def triangle(lower: bool) -> Callable[..., Value]:
    """Return the handler of `np.tril` or `np.triu`: a select by column - row <= k, or >= k."""

    def body(site: Site, m: Value, k: Value = ZERO) -> Value:
        array = array_of(site, m)
        if not array.rank:
            raise error("CD0452", CdTypeError, "a triangle needs an axis", site.span)
        if array.rank == 1:  # as rows of a square
            array = broadcast_to(site.ctx, array, array.shape * 2, site.span)
        shift = index_in(site, k, "the offset")
        gap = var(array.axes[-1]) - var(array.axes[-2])
        test = compare("le" if lower else "ge", gap, shift)
        dtype = array.kind.dtype.compute
        selected = Select(test, cast(array.body, dtype), cast(Const(0, dtypes.int64), dtype))
        result = Array(array.axes, array.shape, selected, strong(array.kind), copied=True)
        return in_k_order(
            site.ctx, result, array, Array(site.ctx.axes(2), array.shape[-2:], test, BOOL)
        )

    return body


def diag(site: Site, v: Value, k: Value = ZERO) -> Value:
    """Return the diagonal of a matrix, or the matrix whose diagonal is a rank-1 array."""
    array = array_of(site, v)
    if array.rank == 2:
        return diagonal(site, array, k)
    if array.rank != 1:
        raise error("CD0452", CdTypeError, "`diag` takes one or two axes", site.span)
    shift, assumptions = integer_of(site, k, "the offset"), site.ctx.assumptions
    axes = site.ctx.axes(2)
    size = array.shape[0] + assumptions.maximum(shift, -shift)
    row, column = var(axes[0]), var(axes[1])
    dtype = array.kind.dtype.compute
    first = row if assumptions.nonnegative(shift) else column
    if shift.constant is None and first == column:
        first = index_min(row, column)
    element = cast(array.at((first,)), dtype)
    test = compare("eq", column - row, shift)
    body = Select(test, element, cast(Const(0, dtypes.int64), dtype))
    return Array(axes, (size, size), body, strong(array.kind), copied=True)


def fill_diagonal(site: Site, a: Value, val: Value) -> Value:
    """Assign to the diagonal of a matrix in place, of more axes to that of all; returns None.

    CdShapeError CD0301 where more than two axes have different sizes.
    """
    array = array_of(site, a)
    if array.rank <= 2:
        assign(site.ctx, diagonal_place(site, a), val, site.span)
        return NONE
    for size in array.shape[1:]:
        site.ctx.equal_extents(array.shape[0], size, "axes of one diagonal", site.span)
    axis = site.ctx.symbol("i")
    diagonal = remap(array, (axis,), array.shape[:1], [var(axis)] * array.rank)
    assign(site.ctx, diagonal, val, site.span)
    return NONE


def pad(
    site: Site,
    array: Value,
    pad_width: Value,
    mode: Value = Static("constant"),
    *,
    constant_values: Value = NONE,
) -> Value:
    """Return the array with a border of a constant, the edge, or periodic or mirrored elements.

    CdValueError CD0440 for `constant_values` of another mode than "constant".
    """
    base = _store_reductions(site, array)
    widths = _pad_widths(site, pad_width, base.rank)
    mode_name = text_of(site, mode, "mode", ("constant", "edge", "wrap", "reflect"))
    if mode_name != "constant" and not is_none(constant_values):
        text = f"`pad` takes no `constant_values` with mode={mode_name!r}"
        helps = ("leave them out, or the mode",)
        raise error("CD0440", CdValueError, text, site.span, helps=helps)
    axes = site.ctx.axes(base.rank)
    order = if_fortran(site.ctx, base)
    shape, index, tests = [], [], []
    for n, (axis, size, (before, after)) in enumerate(zip(axes, base.shape, widths, strict=True)):
        shape.append(size + bounded(site, before) + bounded(site, after))
        if mode_name != "constant" and not before == const(0) == after:
            _require_not_empty(site, size, mode_name)
        at = var(axis) - before
        index.append(at if mode_name == "constant" else _map_padded_position(mode_name, at, size))
        if mode_name == "constant" and not before == const(0) == after:
            tests.append((n, compare("lt", at, const(0)), compare("le", size, at)))
    element = base.at(tuple(index))
    border = ZERO if is_none(constant_values) else constant_values
    values = _border_values(site, border, base.rank)
    if tests:
        inside = Array(axes, tuple(shape), element, base.kind)
        return replace(_select_border(site, inside, tests, values), order=order)
    dtype = base.kind.dtype.compute
    body, kind = cast(element, dtype), strong(base.kind)
    return Array(axes, tuple(shape), body, kind, copied=True, order=order)


def _select_border(
    site: Site,
    inside: Array,
    tests: Sequence[tuple[int, Expr, Expr]],
    values: Sequence[tuple[Value, Value]],
) -> Array:
    """Return a select between elements and border constants; in corners the last axis decides."""
    dtype = strong(inside.kind).dtype
    is_uniform = all(value == values[0][0] for pair in values for value in pair)
    constants = {id(value): _border_value(site, value, dtype) for pair in values for value in pair}
    body = cast(inside.body, dtype.compute)
    if is_uniform:
        outside = any_of(*(test for _, *sides in tests for test in sides))
        body = Select(outside, constants[id(values[0][0])], body)
    else:
        for axis, below, above in tests:
            first, last = (constants[id(value)] for value in values[axis])
            body = Select(below, first, Select(above, last, body))
    return Array(inside.axes, inside.shape, body, Kind(dtype), copied=True)


def _border_values(site: Site, value: Value, rank: int) -> list[tuple[Value, Value]]:
    """Return the constants before and after each axis. CdValueError CD0452 for another number."""
    items = items_of(value)
    if items is None:
        return [(value, value)] * rank
    rows = [items_of(item) for item in items]
    if all(row is None for row in rows):
        rows = [items]
    pairs = [(row[0], row[-1]) for row in rows if row is not None and 1 <= len(row) <= 2]
    if len(pairs) != len(rows) or len(pairs) not in (1, rank):
        text = "`constant_values` is one number, or two, or two for each axis"
        raise error("CD0452", CdValueError, text, site.span)
    return pairs * rank if len(pairs) == 1 else pairs


def _border_value(site: Site, value: Value, dtype: DType) -> Expr:
    """Return a border constant in the element type of the array, which has to represent it."""
    return as_scalar(assigned(site, value, dtype), site.span, "a constant of `pad`").expr


def assigned(site: Site, value: Value, dtype: DType) -> Value:
    """Return a number in an element type, converted as by an assignment to an element.

    CdTypeError CD0405 for an infinity or NaN in an integer type; further errors as of `fitting`.
    """
    number = constant(value)
    if dtype.kind in "iu" and type(number) is float:
        if not math.isfinite(number):
            text = f"{number} cannot be held by {dtype}"
            raise error("CD0405", CdTypeError, text, site.span, helps=("give a whole number",))
        value = Static(int(number))
    return fitting(site, value, dtype)


def fitting(site: Site, value: Value, dtype: DType) -> Value:
    """Return a value in an element type, whose range a Python int must not exceed.

    CdOverflowError CD0464 for one out of range, a constant or a run-time value.
    """

    def convert(pair: Pair) -> Pair:
        require_fit(*pair, dtype)
        return cast(cast(pair[0], dtype), dtype.compute), Kind(dtype)

    require_held(site.ctx, array_of(site, value), dtype, site.span)
    return elementwise(site.ctx, convert, [value], site.span)


def _map_padded_position(mode: str, at: Affine, size: Affine) -> Affine:
    """Return the position that a possibly out-of-range position of a padded axis reads."""
    if size.constant == 0:
        return const(0)  # an empty axis is padded by 0 elements only
    match mode:
        case "edge":
            return index_min(index_max(at, const(0)), size - 1)
        case "wrap":
            return mod(at, size)
        case _:
            period = (size - 1) * 2
            if size.constant == 1:
                return const(0)
            phase = mod(at, period)
            return index_min(phase, period - phase)


def _require_not_empty(site: Site, size: Affine, mode: str) -> None:
    """Require (CdValueError CD0459) a nonempty axis, at compile time or by a run-time check."""
    message = f"an empty axis has no elements to extend it by, as mode={mode!r} does"
    helps = ('pad it with a constant: `mode="constant"`',)
    if size.constant == 0:
        raise error("CD0459", CdValueError, message, site.span, helps=helps)
    if not site.ctx.assumptions.less(const(0), size):
        fault = Fault("CD0459", "CdValueError", message, helps)
        site.ctx.check(compare("lt", const(0), size), fault, (), site.span, Domain())


def _pad_widths(site: Site, value: Value, rank: int) -> list[tuple[Affine, Affine]]:
    def pair(item: Value) -> tuple[Affine, Affine]:
        ends = rows_of(site, item)
        if ends is not None and len(ends) not in (1, 2):
            text = f"`pad_width` gives an axis one width or two, and has {len(ends)}"
            raised = CdValueError if ends else CdTypeError
            raise error("CD0452", raised, text, site.span, helps=_WIDTH_HINTS)
        sizes = static_shape(site, Group(ends if ends is not None else (item,)))
        return sizes[0], sizes[-1]

    items = rows_of(site, value)
    rows = [value] if items is None else list(items)
    nested = items is not None and any(rows_of(site, item) is not None for item in items)
    if items is not None and not nested:
        rows = [Group(items)]
    if nested and any(rows_of(site, row) is None for row in rows):
        text = "`pad_width` mixes numbers and pairs of them"
        raise error("CD0452", CdValueError, text, site.span, helps=_WIDTH_HINTS)
    pairs = [pair(row) for row in rows]
    if len(pairs) not in (1, rank):
        text = f"`pad_width` has {len(pairs)} rows, and the array {rank} axes"
        raise error("CD0452", CdValueError, text, site.span, helps=_WIDTH_HINTS)
    return pairs * rank if len(pairs) == 1 else pairs


_WIDTH_HINTS = ("give one width, `(before, after)`, or a pair of them for each axis",)


def rows_of(site: Site, value: Value) -> tuple[Value, ...] | None:
    """Return the items of a tuple or list, or of an array of static length; None for a number."""
    items = items_of(value)
    if items is not None or not isinstance(value, Array) or not value.rank:
        return items
    number = static_int(site, as_number(value.shape[0]), "the number of items")
    rest = [Section(None, None, None)] * (value.rank - 1)
    return tuple(
        subscript(site.ctx, value, [Static(n), *rest], site.span, "the array")
        for n in range(number)
    )


def take(site: Site, a: Value, indices: Value, axis: Value = NONE) -> Value:
    """Return a gather: the elements at given positions along an axis, or of the flattened array."""
    array = array_of(site, a)
    if is_none(axis):
        array, axis = elements(site, array), ZERO
    items: list[Value] = [Section(None, None, None)] * array.rank
    items[axis_of(site, axis, array.rank)] = _positions(site, indices)
    result = subscript(site.ctx, array, items, site.span, "the array")
    if isinstance(result, Array) and not result.rank:
        return Scalar(result.body, Kind(result.kind.dtype))
    return replace(result, copied=True, order=()) if isinstance(result, Array) else result


def _positions(site: Site, indices: Value) -> Value:
    """Return the positions of a gather; bools are the positions 0 and 1, and no mask."""
    if isinstance(indices, Masked):
        return indices
    positions = array_of(site, indices)
    if positions.kind.dtype.kind == "b":
        return converted(site, positions, dtypes.int64)
    return indices if items_of(indices) is None else positions


def take_along_axis(site: Site, arr: Value, indices: Value, axis: Value) -> Value:
    """Return a gather whose index array gives the subscript of one axis for each element.

    CdValueError CD0452 where the ranks differ, CdIndexError CD0501 where `indices` are no integers.
    """
    array, index_array = array_of(site, arr), array_of(site, indices)
    if array.rank != index_array.rank:
        text = f"`take_along_axis` takes as many axes of positions as {describe(array)} has, "
        given = f"and is given {describe(index_array)}"
        helps = ("add axes of size 1: `indices[None, :]`",)
        raise error("CD0452", CdValueError, text + given, site.span, helps=helps)
    if index_array.kind.dtype.kind not in "iu":
        text = f"`take_along_axis` takes integers as positions, and is given {describe(indices)}"
        helps = ("convert them: `indices.astype(np.int64)`",)
        raise error("CD0501", CdIndexError, text, site.span, helps=helps)
    dim = axis_of(site, axis, array.rank)
    items: list[Value] = []
    for n in range(array.rank):
        if n == dim:
            items.append(index_array)
            continue
        axes = site.ctx.axes(array.rank)
        shape = tuple(array.shape[n] if m == n else const(1) for m in range(array.rank))
        position = Position(var(axes[n]))
        items.append(Array(axes, shape, position, Kind(dtypes.int64), copied=True))
    return subscript(site.ctx, array, items, site.span, "the array")


def copyto(site: Site, dst: Value, src: Value) -> Value:
    """Assign to an array in place; returns None. CdTypeError CD0441 for what is no array."""
    if is_list(dst) or isinstance(dst, Scalar | Static):
        text = f"`copyto` writes an array, and is given {describe(dst)}"
        raise error("CD0441", CdTypeError, text, site.span)
    assign(site.ctx, array_of(site, dst), src, site.span)
    return NONE
