"""Coordinate grids: `mgrid`, `ogrid`, `indices`, `meshgrid`, and the joins `r_` and `c_`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ....base.diagnostic import CdTypeError
from ....lowering.ir import dtypes
from ....lowering.ir.expressions import Position, Read
from ....lowering.ir.indexing import Affine, const, var
from ...values.arrays import elementwise
from ...values.broadcasting import broadcast_to
from ...values.builder import error
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
from ...values.types import WEAK_INT, Kind, cast, join_all
from ...values.values import Array, Group, Scalar, Section, Static, Value
from .creation import arange, linspace
from .elementwise import arithmetic, converted
from .joining import column_stack, concatenate, fitting
from .shaping import at_least, elements
from .ufuncs import combine_of, strong_of


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
