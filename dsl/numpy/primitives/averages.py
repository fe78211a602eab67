"""Means, variances and what else divides by a number of elements."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan

import numpy as np

from ....base.diagnostic import CdError, CdTypeError
from ....lowering.ir import dtypes
from ....lowering.ir.assignments import Fault
from ....lowering.ir.dtypes import DType
from ....lowering.ir.expressions import Apply, Const, Domain, Expr, Position, Select
from ....lowering.ir.indexing import const, var
from ....lowering.ir.ops import OPS
from ...values.arrays import as_array, count, describe, elementwise, settled
from ...values.builder import error
from ...values.call_site import (  # fmt: skip
    NO,
    NONE,
    ZERO,
    Body,
    Site,
    array_of,
    axes_of,
    axis_of,
    dtype_of,
    is_none,
    static_bool,
    static_number,
)
from ...values.memory_order import in_memory
from ...values.types import BOOL, FALSE, TRUE, Kind, cast
from ...values.values import Array, Scalar, Static, Value
from .elementwise import arithmetic, converted
from .reductions import accumulate, operand, reducer, require_elements, require_ordered
from .ufuncs import combine_of, strong_of


def number_of_elements(
    site: Site, array: Array, axes: Sequence[int], where: Expr | None, keepdims: bool = False
) -> Value:
    """Return how many elements a reduction takes, as an integer (per kept position if masked)."""
    if where is None:
        return Scalar(Position(count(array.shape, axes)), Kind(dtypes.int64, True))
    ones = Array(array.axes, array.shape, Position(const(1)), Kind(dtypes.int64), copied=True)
    return accumulate(site, OPS["add"], ones, axes, Kind(dtypes.int64), keepdims, where)


def mean(
    site: Site, a: Value, axis: Value = NONE, dtype: Value = NONE, *, keepdims: Value = NO
) -> Value:
    """Return `np.mean`: integers are averaged in float64, half floats summed in float32."""
    array, where = operand(site, a)
    axes = axes_of(site, axis, array.rank)
    return mean_of(
        site, array, axes, dtype_of(site, dtype), static_bool(site, keepdims, "keepdims"), where
    )


def mean_of(
    site: Site,
    array: Array,
    axes: Sequence[int],
    dtype: DType | None = None,
    keepdims: bool = False,
    where: Expr | None = None,
) -> Value:
    """Return the mean over some axes of an array; that of an integer `dtype` is truncated to it."""
    own = array.kind.dtype
    if dtype is not None and dtype.kind == "b":
        raise _not_worked_out(site, "mean", array, dtype, "leave `dtype=` out, or use `np.any`")
    kind = Kind(dtype or (dtypes.float64 if own.kind in "biu" else own))
    total = accumulate(site, OPS["add"], array, axes, kind, keepdims, where)
    number = number_of_elements(site, array, axes, where, keepdims)
    return _divided(site, total, number, kind)


def _divided(site: Site, total: Value, number: Value, kind: Kind) -> Value:
    """Return total / number in the type of the total; integers are divided in float64."""
    dtype = dtypes.float64 if kind.dtype.kind in "iu" else kind.dtype.compute

    def combine(left: tuple[Expr, Kind], right: tuple[Expr, Kind]) -> tuple[Expr, Kind]:
        by = cast(right[0], dtype.real) if dtype.kind != "c" else cast(right[0], dtype)
        quotient = Apply(OPS["div"], (cast(left[0], dtype), by), dtype)
        return (cast(quotient, kind.dtype) if kind.dtype.kind in "iu" else quotient), kind

    return elementwise(site.ctx, combine, [total, number], site.span)


def variance(root: bool) -> Body:
    """Return `np.var`, or `np.std` with `root`."""

    def body(
        site: Site,
        a: Value,
        axis: Value = NONE,
        dtype: Value = NONE,
        ddof: Value = ZERO,
        *,
        keepdims: Value = NO,
        correction: Value = NONE,
    ) -> Value:
        array, where = operand(site, a)
        axes = axes_of(site, axis, array.rank)
        freedom = static_number(site, ddof if is_none(correction) else correction, "ddof")
        kept = static_bool(site, keepdims, "keepdims")
        result = _variance(site, array, axes, dtype_of(site, dtype), freedom, kept, where)
        if not root:
            return result
        return elementwise(site.ctx, combine_of(np.sqrt), [result], site.span)

    return body


def variance_method(root: bool) -> Body:
    """Return the method `var`, or `std` with `root`, which takes no `correction`."""
    function = variance(root)

    def body(
        site: Site,
        a: Value,
        axis: Value = NONE,
        dtype: Value = NONE,
        ddof: Value = ZERO,
        *,
        keepdims: Value = NO,
    ) -> Value:
        return function(site, a, axis, dtype, ddof, keepdims=keepdims)

    return body


def _not_worked_out(site: Site, what: str, array: Array, dtype: DType, way: str) -> CdError:
    text = f"the {what} of {describe(array)} is not worked out in {dtype}"
    return error("CD0404", CdTypeError, text, site.span, helps=(way,))


def _variance(
    site: Site,
    array: Array,
    axes: Sequence[int],
    dtype: DType | None,
    freedom: float,
    keepdims: bool,
    where: Expr | None,
) -> Value:
    """Mean first, then the mean of squared distances from it, as NumPy does."""
    array = settled(site.ctx, array, "values", site.span)
    own = array.kind.dtype
    kind = Kind(dtype or (dtypes.float64 if own.kind in "biu" else own))
    if kind.dtype.kind in "biu":
        raise _not_worked_out(site, "variance", array, kind.dtype, "leave `dtype=` out")
    if own.kind == "c" and kind.dtype.kind != "c":
        way = "leave `dtype=` out, or take a part: `.real`, `.imag`"
        raise _not_worked_out(site, "variance", array, kind.dtype, way)
    centre = mean_of(site, array, axes, kind.dtype, keepdims=True, where=where)
    centre = stored_once(site, centre, "mean")
    distance = elementwise(
        site.ctx,
        lambda x, m: (
            Apply(OPS["sub"], (cast(x[0], kind.dtype.compute), cast(m[0], kind.dtype.compute)),
                  kind.dtype.compute), kind,
        ),
        [array, centre], site.span,
    )  # fmt: skip
    square = _squared(site, as_array(site.ctx, distance, site.span))
    real_kind = square.kind
    if where is not None:
        where = _over(where, array, square)
    total = accumulate(site, OPS["add"], square, axes, real_kind, keepdims, where)
    number = number_of_elements(site, square, axes, where, keepdims)
    if freedom:
        number = arithmetic(site, "-", number, Static(freedom))
        number = elementwise(site.ctx, combine_of(np.maximum, True), [number, ZERO], site.span)
    return _divided(site, total, number, real_kind)


def _over(where: Expr, old: Array, new: Array) -> Expr:
    """Return a predicate over the axes of one array as one over those of another."""
    moved = Array(old.axes, old.shape, where, BOOL)
    return moved.at(tuple(var(axis) for axis in new.axes))


def _squared(site: Site, value: Array) -> Array:
    """Return |x|**2, real also for complex values."""
    if value.kind.dtype.kind != "c":
        squared = elementwise(site.ctx, combine_of(np.square), [value], site.span)
        return as_array(site.ctx, squared, site.span)
    dtype = value.kind.dtype.real
    re, im = (Apply(OPS[part], (value.body,), dtype) for part in ("real", "imag"))
    squares = [Apply(OPS["mul"], (part, part), dtype) for part in (re, im)]
    body = Apply(OPS["add"], (squares[0], squares[1]), dtype)
    return Array(value.axes, value.shape, body, Kind(dtype), copied=True)


def stored_once(site: Site, value: Value, label: str) -> Value:
    """Return a computed value from storage, so that each use of it is a read."""
    match value:
        case Array():
            return in_memory(site.ctx, value, label, site.span)
        case Scalar():
            node = site.ctx.variable(label, value, site.span)
            whole = site.ctx.whole(node, site.span, Kind(node.dtype, value.kind.weak))
            return Scalar(whole.body, whole.kind)
        case _:
            return value


def peak_to_peak(site: Site, a: Value, axis: Value = NONE, *, keepdims: Value = NO) -> Value:
    """Return `np.ptp`: the maximum minus the minimum."""
    ends = [reducer(name)(site, a, axis, keepdims=keepdims) for name in ("max", "min")]
    return arithmetic(site, "-", ends[0], ends[1])


def average(
    site: Site, a: Value, axis: Value = NONE, weights: Value = NONE, *, keepdims: Value = NO
) -> Value:
    """Return `np.average`, weighted along the axis where weights are given."""
    if is_none(weights):
        return mean(site, a, axis, keepdims=keepdims)
    array, factor = array_of(site, a), array_of(site, weights)
    wide = dtypes.promote(strong_of(array.kind), strong_of(factor.kind))
    if array.kind.dtype.kind in "biu":
        wide = dtypes.promote(wide, dtypes.float64)
    array, factor = (array_of(site, converted(site, one, wide)) for one in (array, factor))
    if factor.rank != array.rank and (is_none(axis) or factor.rank != 1):
        text = f"weights of shape {describe(factor)} are none of {describe(array)}"
        helps = ("give one weight for each element, or one for each along `axis=`",)
        raise error("CD0452", CdTypeError, text, site.span, helps=helps)
    if factor.rank != array.rank:
        at = axis_of(site, axis, array.rank)
        site.ctx.equal_extents(factor.shape[0], array.shape[at], "values and weights", site.span)
        names = site.ctx.axes(array.rank)
        shape = tuple(const(1) if n != at else factor.shape[0] for n in range(array.rank))
        factor = Array(names, shape, factor.at((var(names[at]),)), factor.kind, factor.copied)
    total = reducer("sum")
    factor = settled(site.ctx, factor, "weights", site.span)
    spread = elementwise(
        site.ctx, lambda x, w: (cast(w[0], w[1].dtype.compute), w[1]), [array, factor], site.span
    )
    product = arithmetic(site, "*", array, factor)
    if array_of(site, weights).rank == array.rank:
        for one, other in zip(array.shape, factor.shape, strict=True):
            site.ctx.equal_extents(one, other, "values and weights", site.span)
    above = total(site, product, axis, keepdims=keepdims)
    whole = stored_once(site, total(site, spread, axis, keepdims=keepdims), "weight")
    _require_weight(site, array_of(site, whole))
    return arithmetic(site, "/", above, whole)


def _require_weight(site: Site, total: Array) -> None:
    """Require that no sum of weights is zero, as NumPy does."""
    dtype = total.kind.dtype.compute
    zero = cast(Const(0, dtypes.int64), dtype)
    test = Apply(OPS["ne"], (cast(total.body, dtype), zero), dtypes.bool_)
    text = "weights sum to zero, so that there is no average"
    fault = Fault("CD0457", "CdZeroDivisionError", text, ("give weights whose sum is not zero",))
    site.ctx.check(test, fault, (), site.span, Domain((*site.ctx.domain, *total.ranges)))


def variance_skipping_nan(root: bool) -> Body:
    """Return `np.nanvar`, or `np.nanstd` with `root`."""

    def body(
        site: Site, a: Value, axis: Value = NONE, *, ddof: Value = ZERO, keepdims: Value = NO
    ) -> Value:
        array = array_of(site, a)
        if array.kind.dtype.kind not in "fc":
            return variance(root)(site, array, axis, ddof=ddof, keepdims=keepdims)
        array = settled(site.ctx, array, "values", site.span)
        freedom = static_number(site, ddof, "ddof")
        kept = static_bool(site, keepdims, "keepdims")
        axes = axes_of(site, axis, array.rank)
        result = _variance(site, array, axes, None, freedom, kept, present(array))
        if not root:
            return result
        return elementwise(site.ctx, combine_of(np.sqrt), [result], site.span)

    return body


def present(array: Array) -> Expr:
    """Return where the elements of a float array are not NaN, over its axes."""
    missing = Apply(OPS["isnan"], (cast(array.body, array.kind.dtype.compute),), dtypes.bool_)
    return Select(missing, FALSE, TRUE)


def skipping_nan(name: str) -> Body:
    """Return `np.nansum`, `np.nanprod`, `np.nanmax`, `np.nanmin` or `np.nanmean`."""

    def body(site: Site, a: Value, axis: Value = NONE, *, keepdims: Value = NO) -> Value:
        array = array_of(site, a)
        if array.kind.dtype.kind not in "fc":
            whole = mean if name == "mean" else reducer(name)
            return whole(site, array, axis, keepdims=keepdims)
        axes = axes_of(site, axis, array.rank)
        kept = static_bool(site, keepdims, "keepdims")
        where = present(array)
        if name == "mean":
            return mean_of(site, array, axes, None, kept, where)
        if name in ("max", "min"):
            require_ordered(site, array, f"nan{name}")
            require_elements(site, array, axes, f"nan{name}")
            return _extreme_skipping_nan(site, array, axes, kept, name)
        op = OPS[{"sum": "add", "prod": "mul"}.get(name, name)]
        result = accumulate(site, op, array, axes, Kind(array.kind.dtype), kept, where)
        if name in ("sum", "prod"):
            return result
        number = number_of_elements(site, array, axes, where, kept)
        return elementwise(site.ctx, _nan_if_none, [number, result], site.span)

    return body


def _extreme_skipping_nan(
    site: Site, array: Array, axes: Sequence[int], keepdims: bool, name: str
) -> Value:
    """Return the greatest or least of the numbers that are there, NaN where there is none.

    Whether one is there is the greatest of 1 for each NaN and 2 for each number: such extremes
    are looked for in lanes, side by side.
    """
    array = settled(site.ctx, array, "values", site.span)
    kind, dtype = Kind(array.kind.dtype), array.kind.dtype.compute
    element = cast(array.body, dtype)
    missing = Apply(OPS["isnan"], (element,), dtypes.bool_)

    def extreme(op: str, instead: float, there: Expr, of: Kind) -> Value:
        body = Select(missing, Const(instead, dtype), there)
        value = Array(array.axes, array.shape, body, of, copied=True)
        return stored_once(site, accumulate(site, OPS[op], value, axes, of, keepdims), name)

    found = extreme(name, -inf if name == "max" else inf, element, kind)
    some = extreme("max", 1.0, Const(2.0, dtype), Kind(dtype))
    return elementwise(site.ctx, _nan_if_one, [some, found], site.span)


def _nan_if_one(some: tuple[Expr, Kind], found: tuple[Expr, Kind]) -> tuple[Expr, Kind]:
    nothing = Apply(OPS["eq"], (some[0], Const(1.0, some[0].dtype)), dtypes.bool_)
    return Select(nothing, Const(nan, found[0].dtype), found[0]), found[1]


def _nan_if_none(number: tuple[Expr, Kind], result: tuple[Expr, Kind]) -> tuple[Expr, Kind]:
    nothing = Apply(OPS["eq"], (number[0], Position(const(0))), dtypes.bool_)
    return Select(nothing, cast(Const(nan, dtypes.float64), result[0].dtype), result[0]), result[1]
