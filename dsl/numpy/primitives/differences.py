"""Finite differences along axes: `np.diff` and `np.gradient`."""

from __future__ import annotations

from collections.abc import Sequence

from ....base.diagnostic import CdShapeError, CdTypeError, CdValueError
from ....lowering.ir import dtypes
from ....lowering.ir.assignments import Fault
from ....lowering.ir.expressions import Domain, Position
from ....lowering.ir.indexing import Affine, const, var
from ...values.arrays import cheap_or_stored, describe
from ...values.broadcasting import broadcast_to
from ...values.builder import compare, error
from ...values.call_site import (
    NONE,
    ONE,
    Site,
    array_of,
    axes_in_order,
    axis_of,
    is_none,
    static_int,
)
from ...values.memory_order import in_k_order
from ...values.types import cast
from ...values.values import Array, Group, Static, Value
from .elementwise import arithmetic, converted, converted_float
from .joining import concatenate, with_strong_type
from .reductions import require_subtracted
from .shaping import remap


def diff(
    site: Site,
    a: Value,
    n: Value = ONE,
    axis: Value = Static(-1),
    prepend: Value = NONE,
    append: Value = NONE,
) -> Value:
    """Return the `n`-th difference of adjacent elements along an axis (`!=` for bools).

    `prepend` and `append` are joined to the array before; numbers, as one element each.
    """
    array = array_of(site, a)
    dim = axis_of(site, axis, array.rank)
    symbol = "!=" if array.kind.dtype.kind == "b" else "-"
    times = static_int(site, n, "the number of differences")
    if times < 0:
        text = f"the number of differences is negative: {times}"
        raise error("CD0445", CdValueError, text, site.span)
    ends = [None if is_none(one) else _end(site, one, array, dim) for one in (prepend, append)]
    parts = tuple(one for one in (ends[0], array, ends[1]) if one is not None)
    if times and len(parts) > 1:
        array = array_of(site, concatenate(site, Group(parts), Static(dim)))
        symbol = "!=" if array.kind.dtype.kind == "b" else "-"
    for _ in range(times):
        array = cheap_or_stored(site.ctx, array, "values", site.span)
        size = site.ctx.assumptions.maximum(array.shape[dim] - 1, const(0))
        upper, lower = (shifted(array, dim, step, size) for step in (1, 0))
        array = array_of(site, arithmetic(site, symbol, upper, lower))
    return array


def _end(site: Site, value: Value, array: Array, axis: int) -> Array:
    """Return what is put before or after an array along an axis: a number as one element."""
    end = with_strong_type(array_of(site, value))
    if end.rank:
        return end
    shape = tuple(const(1) if m == axis else size for m, size in enumerate(array.shape))
    return broadcast_to(site.ctx, end, shape, site.span)


def shifted(value: Array, axis: int, by: int | Affine, size: Affine) -> Array:
    """Return the slice of `size` elements along an axis that begins at offset `by`, as a view."""
    index = [var(a) + by if n == axis else var(a) for n, a in enumerate(value.axes)]
    shape = [size if n == axis else extent for n, extent in enumerate(value.shape)]
    return remap(value, value.axes, shape, index)


def gradient(
    site: Site, f: Value, *varargs: Value, axis: Value = NONE, edge_order: Value = ONE
) -> Value:
    """Return finite differences of second order inside, and of `edge_order` (1 or 2) at both ends
    of each axis. A spacing is a number, or the coordinates of the points along that axis."""
    require_subtracted(site, array_of(site, f), "gradient")
    values = cheap_or_stored(
        site.ctx, array_of(site, converted_float(site, f)), "values", site.span
    )
    axes = axes_in_order(site, axis, values.rank)
    if len(varargs) not in (0, 1, len(axes)):
        text = f"`gradient` along {len(axes)} axes takes as many spacings, or one for all, and is "
        helps = ("give one spacing: `np.gradient(x, 0.5)`, or one for each axis",)
        raise error("CD0440", CdTypeError, f"{text}given {len(varargs)}", site.span, helps=helps)
    order = static_int(site, edge_order, "`edge_order`")
    if order not in (1, 2):
        text = f"`edge_order` of `gradient` is 1 or 2, and is given {order}"
        raise error("CD0445", CdValueError, text, site.span, helps=("give one of them",))
    steps = varargs * len(axes) if len(varargs) == 1 else varargs or (Static(1.0),) * len(axes)
    slopes = [_slope(site, values, n, step, order) for n, step in zip(axes, steps, strict=True)]
    return slopes[0] if len(slopes) == 1 else Group(tuple(slopes))


def _slope(site: Site, values: Array, axis: int, step: Value, order: int) -> Value:
    """Return the differences along an axis, in three parts: inside, at its begin, at its end."""
    size = values.shape[axis]
    _require_points(site, values, axis, order + 1)
    gaps = _gaps(site, values, axis, step)
    node = site.ctx.node("slope", values.shape, values.kind.dtype)
    whole = site.ctx.whole(node, site.span)
    parts = (
        (const(1), size - 2, _inside(site, values, axis, step, gaps)),
        (const(0), const(1), _at_end(site, values, axis, step, gaps, order, 0)),
        (size - 1, const(1), _at_end(site, values, axis, step, gaps, order, 1)),
    )
    for start, length, part in parts:
        target = shifted(whole, axis, start, length)
        body = array_of(site, part).at(tuple(map(var, target.axes)))
        site.ctx.store(target, cast(body, node.dtype), site.span)
    return in_k_order(site.ctx, whole, values)


def _gaps(site: Site, values: Array, axis: int, step: Value) -> Array | None:
    """Return the distances of coordinates, along that axis of as many as the values have; None for
    one number. CdValueError CD0452 for more axes, or where there are not as many."""
    points = array_of(site, step)
    if not points.rank:
        return None
    if points.rank > 1:
        text = "`gradient` takes a number or a vector of coordinates for an axis, and is given "
        helps = ("give the coordinates along that axis: `np.gradient(f, x)`",)
        raise error("CD0452", CdValueError, text + describe(points), site.span, helps=helps)
    site.ctx.equal_extents(
        points.shape[0], values.shape[axis], "the coordinates and the values", site.span
    )
    if points.kind.dtype.kind in "biu":
        points = array_of(site, converted(site, points, dtypes.float64))
    gaps = array_of(site, diff(site, points))
    gaps = cheap_or_stored(site.ctx, gaps, "gaps", site.span)
    names = site.ctx.axes(values.rank)
    shape = [gaps.shape[0] if n == axis else const(1) for n in range(values.rank)]
    return remap(gaps, names, shape, [var(names[axis])])


def _inside(site: Site, values: Array, axis: int, step: Value, gaps: Array | None) -> Value:
    """Return the central differences of second order (Fornberg's weights of three points)."""
    length = values.shape[axis] - 2
    before, at, after = (shifted(values, axis, n, length) for n in range(3))
    if gaps is None:
        wide = arithmetic(site, "*", Static(2.0), step)
        return arithmetic(site, "/", arithmetic(site, "-", after, before), wide)
    left, right = (shifted(gaps, axis, n, length) for n in range(2))

    def of(symbol: str, a: Value, b: Value) -> Value:
        return arithmetic(site, symbol, a, b)

    both = of("+", left, right)
    weights = (
        of("/", of("-", Static(0.0), right), of("*", left, both)),
        of("/", of("-", right, left), of("*", left, right)),
        of("/", left, of("*", right, both)),
    )
    return _weighted(site, weights, (before, at, after))


def _weighted(site: Site, weights: Sequence[Value], values: Sequence[Value]) -> Value:
    """Return the sum of three values, each with its weight, in their order."""
    terms = [arithmetic(site, "*", w, x) for w, x in zip(weights, values, strict=True)]
    return arithmetic(site, "+", arithmetic(site, "+", terms[0], terms[1]), terms[2])


def _at_end(
    site: Site,
    values: Array,
    axis: int,
    step: Value,
    gaps: Array | None,
    order: int,
    last: int,
) -> Value:
    """Return the one-sided difference at the first element, or at the last one."""
    size, one = values.shape[axis], const(1)

    def of(symbol: str, a: Value, b: Value) -> Value:
        return arithmetic(site, symbol, a, b)

    if order == 1:
        upper, lower = (shifted(values, axis, (size - 2) * last + n, one) for n in (1, 0))
        gap = step if gaps is None else shifted(gaps, axis, (size - 2) * last, one)
        return of("/", of("-", upper, lower), gap)
    points = [shifted(values, axis, (size - 3) * last + n, one) for n in range(3)]
    if gaps is None:
        factors = (0.5, -2.0, 1.5) if last else (-1.5, 2.0, -0.5)
        return _weighted(site, [of("/", Static(factor), step) for factor in factors], points)
    near, far = (shifted(gaps, axis, (size - 3) * last + (n ^ last), one) for n in (0, 1))
    both = of("+", near, far)
    outer = of("/", of("+", of("*", Static(2.0), near), far), of("*", near, both))
    middle = of("/", both, of("*", near, far))
    inner = of("/", near, of("*", far, both))
    minus = [of("-", Static(0.0), one) for one in (outer, middle, inner)]
    if last:
        return _weighted(site, (inner, minus[1], outer), points)
    return _weighted(site, (minus[0], middle, minus[2]), points)


def _require_points(site: Site, values: Array, axis: int, number: int) -> None:
    """Require (CdShapeError CD0314) elements on an axis: proven, or a run-time check."""
    size = values.shape[axis]
    if site.ctx.assumptions.nonnegative(size - number):
        return
    words = {2: "two points", 3: "three points"}[number]
    text = f"`gradient` needs {words} on axis {axis}, which has {{0}}"
    helps: tuple[str, ...] = (f"pass at least {words}",)
    if values.rank > 1:
        helps = (*helps, "or name the axes that have them: `np.gradient(x, axis=0)`")
    if size.constant is not None:
        raise error("CD0314", CdShapeError, text.format(size), site.span,
                    label=f"this is {describe(values)}", helps=helps)  # fmt: skip
    fault = Fault("CD0314", "CdShapeError", text, helps)
    test = compare("le", const(number), size)
    site.ctx.check(test, fault, (Position(size),), site.span, Domain())
