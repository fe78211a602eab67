"""Evenly spaced points and grids: `linspace`, `logspace`, `mgrid`, `indices`, `meshgrid`, `r_`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ....base.diagnostic import CdTypeError
from ....lowering.ir import dtypes
from ....lowering.ir.expressions import Apply, Position, Read, Select
from ....lowering.ir.indexing import Affine, const, var
from ....lowering.ir.ops import OPS
from ...values.arrays import as_scalar, elementwise
from ...values.broadcasting import broadcast_to
from ...values.builder import compare, error
from ...values.call_site import (
    NO,
    NONE,
    NOT_CONSTANT,
    ONE,
    YES,
    ZERO,
    Site,
    array_of,
    constant,
    dtype_of,
    extent_of,
    is_none,
    static_bool,
    static_shape,
    text_of,
)
from ...values.types import BOOL, WEAK_INT, Kind, cast, join_all
from ...values.values import Array, Group, Scalar, Section, Static, Value
from .averages import stored_once
from .creation import arange
from .elementwise import arithmetic, converted, where
from .joining import column_stack, concatenate, fitting
from .shaping import at_least, elements
from .ufuncs import combine_of, strong_of


def linspace(
    site: Site,
    start: Value,
    stop: Value,
    num: Value = Static(50),
    endpoint: Value = YES,
    retstep: Value = NO,
    dtype: Value = NONE,
) -> Value:
    """Return `np.linspace`: `num` evenly spaced numbers; with `retstep` the step, too.

    Each operation is rounded in the promoted dtype of the ends, float64 for integers, as in NumPy.
    CdTypeError CD0453 where an end is an array.
    """
    size = extent_of(site, num, "the number of points")
    has_endpoint = static_bool(site, endpoint, "endpoint")
    gaps = size - 1 if has_endpoint else size
    ends = [array_of(site, value) for value in (start, stop)]
    if any(end.rank for end in ends):
        raise error("CD0453", CdTypeError, "`linspace` takes numbers as its ends here", site.span)
    kind = strong_of(join_all([end.kind for end in ends]))
    kind = dtypes.float64 if kind.kind in "biu" else kind
    first, last = (converted(site, value, kind) for value in (start, stop))
    if all(constant(value) is NOT_CONSTANT for value in (start, stop)):
        first, last = stored_once(site, first, "start"), stored_once(site, last, "stop")
    is_single = gaps.constant is not None and gaps.constant <= 0
    divisor = Scalar(
        Position(site.ctx.assumptions.maximum(gaps, const(1))), Kind(dtypes.int64, True)
    )
    gap = converted(site, arithmetic(site, "-", last, first), kind)
    step = arithmetic(site, "/", gap, divisor)
    step = Static(float("nan")) if is_single else step
    step = stored_once(site, step, "step") if isinstance(step, Scalar) else step
    axis = site.ctx.symbol("i")
    positions = Array((axis,), (size,), cast(Position(var(axis)), kind), Kind(kind), copied=True)
    offsets = _offsets(site, positions, step, gap, divisor)
    vector = arithmetic(site, "+", offsets, first)
    if is_single:
        vector = arithmetic(site, "+", arithmetic(site, "*", positions, ZERO), first)
    elif has_endpoint:
        vector = _replace_last(site, array_of(site, vector), last)
    element = dtype_of(site, dtype)
    if element is not None:
        if element.kind in "iu":
            vector = elementwise(site.ctx, combine_of(np.floor), [vector], site.span)
        vector = converted(site, vector, element)
    if not static_bool(site, retstep, "retstep"):
        return vector
    if gaps.constant is None and not site.ctx.assumptions.nonnegative(gaps - 1):
        has_step = Scalar(compare("ge", gaps, const(1)), BOOL)
        step = where(site, has_step, step, Static(float("nan")))
    return Group((vector, step))


def _offsets(site: Site, positions: Array, step: Value, gap: Value, divisor: Value) -> Value:
    """Return `positions * step`; `positions / divisor * gap` where the step underflows to zero."""
    kind = positions.kind.dtype

    def scaled(symbol: str, left: Value, right: Value) -> Value:
        return converted(site, arithmetic(site, symbol, left, right), kind)

    offsets = scaled("*", positions, step)
    is_zero = arithmetic(site, "==", step, ZERO)
    if is_zero == Static(False):
        return offsets
    return where(site, is_zero, scaled("*", scaled("/", positions, divisor), gap), offsets)


def _replace_last(site: Site, vector: Array, last: Value) -> Array:
    """Return the vector with its last element replaced by the exact end."""
    dtype = vector.kind.dtype.compute
    end = cast(as_scalar(last, site.span).expr, dtype)
    position, size = var(vector.axes[0]), vector.shape[0]
    test = compare("eq", position, size - 1)
    if not site.ctx.assumptions.nonnegative(size - 2):  # a single element is the start
        not_first = compare("ge", position, const(1))
        test = Apply(OPS["and"], (test, not_first), dtypes.bool_)
    return Array(
        vector.axes, vector.shape, Select(test, end, vector.body), vector.kind, copied=True
    )


def logspace(
    site: Site,
    start: Value,
    stop: Value,
    num: Value = Static(50),
    endpoint: Value = YES,
    base: Value = Static(10.0),
    dtype: Value = NONE,
) -> Value:
    """Return `np.logspace`: `base` to the power of evenly spaced exponents, along axis 0."""
    exponents = array_of(site, linspace(site, start, stop, num, endpoint))
    bases = array_of(site, base)
    if bases.rank:
        axes = (*exponents.axes, *site.ctx.axes(bases.rank))
        shape = (*exponents.shape, *(const(1),) * bases.rank)
        exponents, base = replace(exponents, axes=axes, shape=shape), bases
    vector = arithmetic(site, "**", base, exponents)
    element = dtype_of(site, dtype)
    return vector if element is None else converted(site, vector, element)


def _slice_points(site: Site, item: Value, alone: bool | None = None) -> Array:
    """Return the points of one slice: a range, or evenly spaced points whose number is `5j`.

    `alone` is False in a grid of several slices, where NumPy computes `index * step + start`; True
    in a grid of one slice, and None in `np.r_`: both have the points of `arange`.
    """
    if not isinstance(item, Section):
        raise error("CD0453", CdTypeError, "a grid is made of slices", site.span)
    lower = ZERO if item.lower is None or is_none(item.lower) else item.lower
    assert lower is not None
    if item.upper is None:
        raise error("CD0453", CdTypeError, "a slice of a grid needs its end", site.span)
    step = None if item.step is None or is_none(item.step) else item.step
    number = None if step is None else constant(step)
    if step is not None and number is NOT_CONSTANT and array_of(site, step).kind.dtype.kind == "c":
        return _dynamic_points(site, lower, item.upper, step, alone)
    if not isinstance(number, complex):
        step = ONE if step is None else step
        points = array_of(site, arange(site, lower, item.upper, step))
        if alone is not False or points.kind.dtype.kind != "f":
            return points
        return _arithmetic_sequence(site, points.shape[0], lower, step)
    size = int(abs(number))
    if alone is None or size < 2:
        return array_of(site, linspace(site, lower, item.upper, Static(size)))
    gap = arithmetic(site, "-", item.upper, lower)
    return _arithmetic_sequence(
        site, const(size), lower, arithmetic(site, "/", gap, Static(float(size - 1)))
    )


def _dynamic_points(
    site: Site, lower: Value, upper: Value, step: Value, alone: bool | None
) -> Array:
    """Return points whose number is the absolute value of a dynamic complex step, as `n * 1j`."""
    number = elementwise(site.ctx, combine_of(np.absolute), [step], site.span)
    whole = converted(site, number, dtypes.int64)
    if alone is None:
        return array_of(site, linspace(site, lower, upper, whole))
    size = extent_of(site, whole, "the number of points")
    gaps = Scalar(Position(site.ctx.assumptions.maximum(size - 1, const(1))), WEAK_INT)
    gap = arithmetic(site, "-", upper, lower)
    return _arithmetic_sequence(site, size, lower, arithmetic(site, "/", gap, gaps))


def _arithmetic_sequence(site: Site, size: Affine, start: Value, step: Value) -> Array:
    axis = site.ctx.symbol("i")
    at = cast(Position(var(axis)), dtypes.float64)
    line = Array((axis,), (size,), at, Kind(dtypes.float64), copied=True)
    return array_of(site, arithmetic(site, "+", arithmetic(site, "*", line, step), start))


def _open_grid(site: Site, points: list[Array], copied: bool = True) -> tuple[Array, ...]:
    """Return each line of points along its axis of the common rank, with extent 1 elsewhere."""
    rank = len(points)
    out = []
    for n, line in enumerate(points):
        axes = site.ctx.axes(rank)
        shape = tuple(line.shape[0] if m == n else const(1) for m in range(rank))
        out.append(Array(axes, shape, line.at((var(axes[n]),)), line.kind, copied))
    return tuple(out)


def _dense_grid(site: Site, points: list[Array], kind: Kind) -> Array:
    """Return the grid of lines of points, with elements of `kind` or what they promote to."""
    for line in points:
        kind = Kind(dtypes.promote(kind.dtype, line.kind.dtype))
    shape = tuple(line.shape[0] for line in points)
    node = site.ctx.node("grid", (const(len(points)), *shape), kind.dtype)
    for n, line in enumerate(points):
        axes = site.ctx.axes(len(points))
        location = Read(node, (const(n), *map(var, axes)), site.span)
        target = Array(axes, shape, location, kind)
        site.ctx.store(target, cast(line.at((var(axes[n]),)), kind.dtype), site.span)
    return site.ctx.whole(node, site.span)


def mgrid(site: Site, items: tuple[Value, ...]) -> Value:
    """Return `np.mgrid[...]`: a dense grid, one array with the coordinates along axis 0."""
    points = [_slice_points(site, item, len(items) == 1) for item in items]
    return points[0] if len(points) == 1 else _dense_grid(site, points, points[0].kind)


def ogrid(site: Site, items: tuple[Value, ...]) -> Value:
    """Return `np.ogrid[...]`: an open grid, one array for each axis, to be broadcast."""
    points = [_slice_points(site, item, len(items) == 1) for item in items]
    if len(points) == 1:
        return points[0]
    dtype = join_all([line.kind for line in points]).dtype
    return Group(_open_grid(site, [array_of(site, converted(site, p, dtype)) for p in points]))


def row_items(site: Site, items: tuple[Value, ...]) -> Value:
    """Return `np.r_[...]`: slices and arrays concatenated along the first axis."""
    operands = _promote_operands(site, items)
    return concatenate(site, Group(tuple(at_least(1, site, operand) for operand in operands)))


def column_items(site: Site, items: tuple[Value, ...]) -> Value:
    """Return `np.c_[...]`: slices and arrays concatenated as columns."""
    return column_stack(site, Group(tuple(_promote_operands(site, items))))


def _promote_operands(site: Site, items: tuple[Value, ...]) -> list[Value]:
    """Return the operands in their promoted type, to which Python's numbers adapt."""
    operands = [_slice_points(site, item) if isinstance(item, Section) else item for item in items]
    dtype = strong_of(join_all([array_of(site, operand).kind for operand in operands]))
    return [fitting(site, operand, dtype) for operand in operands]


SPECIAL: tuple[tuple[object, Callable[[Site, tuple[Value, ...]], Value]], ...] = (
    (np.mgrid, mgrid), (np.ogrid, ogrid), (np.r_, row_items), (np.c_, column_items),
)  # fmt: skip


def indices(site: Site, dimensions: Value, dtype: Value = NONE, sparse: Value = NO) -> Value:
    """Return the index of every element along each axis, as a dense or (`sparse`) an open grid."""
    sizes, element = static_shape(site, dimensions), dtype_of(site, dtype)
    lines = []
    for size in sizes:
        axis = site.ctx.symbol("i")
        line = Array((axis,), (size,), Position(var(axis)), Kind(dtypes.int64), copied=True)
        lines.append(line if element is None else array_of(site, converted(site, line, element)))
    if static_bool(site, sparse, "sparse"):
        return Group(_open_grid(site, lines))
    return _dense_grid(site, lines, lines[0].kind if lines else Kind(element or dtypes.int64))


def meshgrid(
    site: Site,
    *xi: Value,
    indexing: Value = Static("xy"),
    sparse: Value = NO,
    copy: Value = YES,
) -> Value:
    """Return the coordinate arrays of arrays of points, flattened; broadcast unless `sparse`."""
    lines = [elements(site, item) for item in xi]
    swapped = text_of(site, indexing, "indexing", ("xy", "ij")) == "xy" and len(lines) > 1
    order = [1, 0, *range(2, len(lines))] if swapped else list(range(len(lines)))
    copied = static_bool(site, copy, "copy")
    grid = list(_open_grid(site, [lines[n] for n in order], copied))
    if not static_bool(site, sparse, "sparse"):
        shape = tuple(lines[n].shape[0] for n in order)
        grid = [
            replace(broadcast_to(site.ctx, line, shape, site.span), copied=copied) for line in grid
        ]
    return Group(tuple(grid[n] for n in order))
