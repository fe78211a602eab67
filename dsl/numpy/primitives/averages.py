"""Statistics: mean, variance, weighted average and peak-to-peak, also without regard to NaN."""

from __future__ import annotations

from collections.abc import Sequence
from functools import wraps
from math import inf, nan

import numpy as np

from ....base.diagnostic import CdError, CdTypeError, CdValueError
from ....lowering.ir import dtypes
from ....lowering.ir.assignments import Fault
from ....lowering.ir.dtypes import DType
from ....lowering.ir.expressions import Apply, Const, Domain, Expr, Position, Select
from ....lowering.ir.indexing import const, var
from ....lowering.ir.ops import OPS
from ...values.arrays import as_array, cheap_or_stored, count, describe, elementwise
from ...values.builder import error
from ...values.call_site import (  # fmt: skip
    NO,
    NONE,
    ONE,
    YES,
    ZERO,
    Body,
    Site,
    array_of,
    axes_of,
    axis_of,
    dtype_of,
    is_none,
    real_of,
    static_bool,
)
from ...values.memory_order import in_memory, mapped
from ...values.stores import require_storable
from ...values.types import FALSE, TRUE, Kind, both, cast
from ...values.values import Array, Group, Scalar, Static, Value
from .elementwise import arithmetic, converted
from .elementwise import where as choose
from .reductions import (
    accumulate,
    number_axis,
    operand,
    rebase_predicate,
    reducer,
    require_elements,
    require_ordered,
)
from .ufuncs import combine_of, loop_dtype, strong_of


def number_of_elements(
    site: Site, array: Array, axes: Sequence[int], where: Expr | None, keepdims: bool = False
) -> Value:
    """Return the element count of a reduction, an int64; under a mask, one for each result."""
    if where is None:
        return Scalar(Position(count(array.shape, axes)), Kind(dtypes.int64, True))
    ones = mapped(site.ctx, array, Position(const(1)), Kind(dtypes.int64))
    return accumulate(site, OPS["add"], ones, axes, Kind(dtypes.int64), keepdims, where)


def averaging(out: DType | None = None) -> Body:
    """Return the body of `np.mean`; `out` is the type that it writes, which the sum has then.

    Integers are averaged in float64, and float16 is accumulated in float32. CdTypeError CD0404 for
    a bool `dtype`.
    """

    def body(
        site: Site,
        a: Value,
        axis: Value = NONE,
        dtype: Value = NONE,
        *,
        keepdims: Value = NO,
        where: Value = YES,
    ) -> Value:
        over = operand(site, a, axis, keepdims, where)
        wanted, element = dtype_of(site, dtype), strong_of(over.array.kind)
        if out is not None and wanted is None:
            wanted = loop_dtype(site, np.add, element, out)
            if element.kind in "biu" or element is dtypes.float16:
                wanted = dtypes.float32 if element.kind == "f" else dtypes.float64
        means = mean_of(site, over.array, over.axes, wanted, over.keepdims, over.where, out)
        return over.result(means)

    return body


mean = averaging()


def mean_into(body: Body, out: DType) -> Body:
    """Return the body of `np.mean` that writes an `out` of a type."""
    typed: Body = wraps(body)(averaging(out))
    return typed


def mean_of(
    site: Site,
    array: Array,
    axes: Sequence[int],
    dtype: DType | None = None,
    keepdims: bool = False,
    where: Expr | None = None,
    out: DType | None = None,
) -> Value:
    """Return the mean over axes of an array; with an integer `dtype` it is truncated.

    With `out` the sum is rounded to that type before. CdTypeError CD0404 for a bool `dtype`.
    """
    element = array.kind.dtype
    if dtype is not None and dtype.kind == "b":
        raise _dtype_error(site, "mean", array, dtype, "leave `dtype=` out, or use `np.any`")
    kind = Kind(dtype or (dtypes.float64 if element.kind in "biu" else element))
    total = accumulate(site, OPS["add"], array, axes, kind, keepdims, where)
    number = number_of_elements(site, array, axes, where, keepdims)
    return _divide(site, *_total_in(site, total, kind, out), number)


def _total_in(site: Site, total: Value, kind: Kind, out: DType | None) -> tuple[Value, Kind]:
    """Return a total in the type of `out`, where it is stored there before it is divided."""
    if out is None or out is kind.dtype:
        return total, kind
    require_storable(kind, out, total, site.span)
    return converted(site, total, out), Kind(out)


def _divide(site: Site, total: Value, kind: Kind, number: Value) -> Value:
    """Return `total / number` in the kind of the total; integers are divided in float64."""
    dtype = dtypes.float64 if kind.dtype.kind in "iu" else kind.dtype.compute

    def combine(left: tuple[Expr, Kind], right: tuple[Expr, Kind]) -> tuple[Expr, Kind]:
        divisor = cast(right[0], dtype.real) if dtype.kind != "c" else cast(right[0], dtype)
        quotient = Apply(OPS["div"], (cast(left[0], dtype), divisor), dtype)
        return (cast(quotient, kind.dtype) if kind.dtype.kind in "iu" else quotient), kind

    return elementwise(site.ctx, combine, [total, number], site.span)


def variance(root: bool, out: DType | None = None) -> Body:
    """Return the body of `np.var`, or of `np.std` with `root`; `out` is the type that it writes."""

    def body(
        site: Site,
        a: Value,
        axis: Value = NONE,
        dtype: Value = NONE,
        ddof: Value = ZERO,
        *,
        keepdims: Value = NO,
        correction: Value = NONE,
        where: Value = YES,
    ) -> Value:
        over = operand(site, a, axis, keepdims, where)
        freedom = _freedom(site, ddof, correction)
        result = _variance(
            site, over.array, over.axes, dtype_of(site, dtype), freedom, over.keepdims, over.where,
            out,
        )  # fmt: skip
        if root:
            result = elementwise(site.ctx, combine_of(np.sqrt), [result], site.span)
        return over.result(result)

    return body


def variance_method(root: bool) -> Body:
    """Return the body of the method `var`, or `std` with `root`, which takes no `correction`."""
    function = variance(root)

    def body(
        site: Site,
        a: Value,
        axis: Value = NONE,
        dtype: Value = NONE,
        ddof: Value = ZERO,
        *,
        keepdims: Value = NO,
        where: Value = YES,
    ) -> Value:
        return function(site, a, axis, dtype, ddof, keepdims=keepdims, where=where)

    return body


def variance_into(body: Body, out: DType, *, root: bool) -> Body:
    """Return the body of `np.var` or `np.std` that writes an `out` of a type."""
    typed: Body = wraps(body)(variance(root, out))
    return typed


def _dtype_error(site: Site, statistic: str, array: Array, dtype: DType, fix: str) -> CdError:
    text = f"the {statistic} of {describe(array)} is not worked out in {dtype}"
    return error("CD0404", CdTypeError, text, site.span, helps=(fix,))


def _variance(
    site: Site,
    array: Array,
    axes: Sequence[int],
    dtype: DType | None,
    freedom: Static | Scalar,
    keepdims: bool,
    where: Expr | None,
    out: DType | None = None,
    skips_nan: bool = False,
) -> Value:
    """Return the variance by the two-pass algorithm: the mean, then the mean squared deviation.

    The mean and the sum of squares are in `dtype`, the deviations in what it and the elements
    promote to, with `skips_nan` they and their squares in the type of the elements. With `out` the
    sum is rounded to that type before it is divided. Without a degree of freedom it is a sum
    divided by zero; with `skips_nan`, NaN.
    """
    array = cheap_or_stored(site.ctx, array, "values", site.span)
    element = array.kind.dtype
    kind = Kind(dtype or (dtypes.float64 if element.kind in "biu" else element))
    if kind.dtype.kind in "biu":
        raise _dtype_error(site, "variance", array, kind.dtype, "leave `dtype=` out")
    if element.kind == "c" and kind.dtype.kind != "c":
        fix = "leave `dtype=` out, or take a part: `.real`, `.imag`"
        raise _dtype_error(site, "variance", array, kind.dtype, fix)
    center = mean_of(site, array, axes, kind.dtype, keepdims=True, where=where)
    center = stored_once(site, center, "mean")
    work = Kind(dtypes.promote(strong_of(array.kind), kind.dtype))
    compute = work.dtype.compute
    deviation = elementwise(
        site.ctx,
        lambda x, m: (Apply(OPS["sub"], (cast(x[0], compute), cast(m[0], compute)), compute), work),
        [array, center], site.span,
    )  # fmt: skip
    if skips_nan:  # NumPy keeps them in a copy of the array
        deviation = converted(site, deviation, strong_of(array.kind))
    squares = _square(site, as_array(site.ctx, deviation, site.span), element.kind == "c")
    if skips_nan and element is dtypes.float16:
        rounded = cast(cast(squares.body, element), squares.kind.dtype.compute)
        squares = mapped(site.ctx, squares, rounded, squares.kind)
    result_kind = squares.kind if dtype is None else kind
    if dtype is None and out is not None:
        result_kind = Kind(loop_dtype(site, np.add, squares.kind.dtype, out))
    if where is not None:
        where = rebase_predicate(where, array, squares)
    total = accumulate(site, OPS["add"], squares, axes, result_kind, keepdims, where)
    number = number_of_elements(site, squares, axes, where, keepdims)
    if freedom != Static(0.0):
        number = arithmetic(site, "-", number, freedom)
        if skips_nan:
            is_positive = arithmetic(site, ">", number, ZERO)
            number = choose(site, is_positive, number, Static(nan))
        else:
            number = at_least_zero(site, number, isinstance(freedom, Static))
    return _divide(site, *_total_in(site, total, result_kind, out), number)


def at_least_zero(site: Site, number: Value, is_static: bool) -> Value:
    """Return a number of degrees of freedom, 0 for a negative one. One of the run is compared, as
    nothing else of it is to be known while compiling."""
    if is_static:
        return elementwise(site.ctx, combine_of(np.maximum, True), [number, ZERO], site.span)
    return choose(site, arithmetic(site, "<", number, ZERO), Static(0.0), number)


def _square(site: Site, value: Array, is_absolute: bool) -> Array:
    """Return the squares of values, or |x|**2 of complex ones, which is real."""
    if not is_absolute:
        squared = elementwise(site.ctx, combine_of(np.square), [value], site.span)
        return as_array(site.ctx, squared, site.span)
    dtype = value.kind.dtype.real
    re, im = (Apply(OPS[part], (value.body,), dtype) for part in ("real", "imag"))
    squares = [Apply(OPS["mul"], (part, part), dtype) for part in (re, im)]
    body = Apply(OPS["add"], (squares[0], squares[1]), dtype)
    return mapped(site.ctx, value, body, Kind(dtype))


def stored_once(site: Site, value: Value, label: str) -> Value:
    """Materialize a computed array or scalar, so that each use is a read, no recomputation."""
    match value:
        case Array():
            return in_memory(site.ctx, value, label, site.span)
        case Scalar():
            node = site.ctx.variable(label, value, site.span)
            stored = site.ctx.whole(node, site.span, Kind(node.dtype, value.kind.weak))
            return Scalar(stored.body, stored.kind)
        case _:
            return value


def peak_to_peak(site: Site, a: Value, axis: Value = NONE, *, keepdims: Value = NO) -> Value:
    """Return `np.ptp`: the maximum minus the minimum."""
    ends = [reducer(name)(site, a, axis, keepdims=keepdims) for name in ("max", "min")]
    return arithmetic(site, "-", ends[0], ends[1])


def peak_to_peak_into(body: Body, out: DType) -> Body:
    """Return the body of `np.ptp` that writes an `out`: the maximum is stored there before."""

    @wraps(body)
    def typed(site: Site, a: Value, axis: Value = NONE, *, keepdims: Value = NO) -> Value:
        low, high = (reducer(name)(site, a, axis, keepdims=keepdims) for name in ("min", "max"))
        dtype = array_of(site, high).kind.dtype
        loop = loop_dtype(site, np.maximum, dtype, out)
        require_storable(Kind(loop), out, high, site.span)
        return arithmetic(site, "-", converted(site, high, out), low)

    return typed


def average(
    site: Site,
    a: Value,
    axis: Value = NONE,
    weights: Value = NONE,
    returned: Value = NO,
    *,
    keepdims: Value = NO,
) -> Value:
    """Return `np.average`: the mean, or the weighted mean where weights are given; with `returned`
    also the sum of the weights, or the number of elements.

    CdTypeError CD0452 where the shape of the weights does not fit, CdZeroDivisionError CD0457 at
    run time where they sum to zero.
    """
    gives_sum = static_bool(site, returned, "returned")
    if is_none(weights):
        result = mean(site, a, axis, keepdims=keepdims)
        if not gives_sum:
            return result
        array = array_of(site, a)
        number = number_of_elements(site, array, axes_of(site, axis, array.rank), None)
        return _with_sum(site, stored_once(site, result, "mean"), number)
    array, weight = array_of(site, a), array_of(site, weights)
    promoted = dtypes.promote(strong_of(array.kind), strong_of(weight.kind))
    if array.kind.dtype.kind in "biu":
        promoted = dtypes.promote(promoted, dtypes.float64)
    array, weight = (array_of(site, converted(site, item, promoted)) for item in (array, weight))
    if weight.rank != array.rank and (is_none(axis) or weight.rank != 1):
        text = f"weights of shape {describe(weight)} are none of {describe(array)}"
        helps = ("give one weight for each element, or one for each along `axis=`",)
        raise error("CD0452", CdTypeError, text, site.span, helps=helps)
    if weight.rank != array.rank:
        position = axis_of(site, axis, array.rank)
        site.ctx.equal_extents(
            weight.shape[0], array.shape[position], "values and weights", site.span
        )
        names = site.ctx.axes(array.rank)
        shape = tuple(const(1) if n != position else weight.shape[0] for n in range(array.rank))
        weight = Array(names, shape, weight.at((var(names[position]),)), weight.kind, weight.copied)
    sum_over = reducer("sum")
    weight = cheap_or_stored(site.ctx, weight, "weights", site.span)
    broadcast_weight = elementwise(
        site.ctx, lambda x, w: (cast(w[0], w[1].dtype.compute), w[1]), [array, weight], site.span
    )
    product = arithmetic(site, "*", array, weight)
    if array_of(site, weights).rank == array.rank:
        for item, weight_item in zip(array.shape, weight.shape, strict=True):
            site.ctx.equal_extents(item, weight_item, "values and weights", site.span)
    weighted_sum = sum_over(site, product, axis, keepdims=keepdims)
    weight_sum = stored_once(
        site, sum_over(site, broadcast_weight, axis, keepdims=keepdims), "weight"
    )
    _require_weight(site, array_of(site, weight_sum))
    result = arithmetic(site, "/", weighted_sum, weight_sum)
    return _with_sum(site, stored_once(site, result, "mean"), weight_sum) if gives_sum else result


def _with_sum(site: Site, result: Value, total: Value) -> Value:
    """Return a mean and its total, in the type and the shape of the mean."""

    def combine(left: tuple[Expr, Kind], right: tuple[Expr, Kind]) -> tuple[Expr, Kind]:
        return cast(right[0], left[1].dtype.compute), left[1]

    return Group((result, elementwise(site.ctx, combine, [result, total], site.span)))


def _require_weight(site: Site, total: Array) -> None:
    """Emit the check that no sum of weights is zero, which NumPy makes."""
    dtype = total.kind.dtype.compute
    zero = cast(Const(0, dtypes.int64), dtype)
    test = Apply(OPS["ne"], (cast(total.body, dtype), zero), dtypes.bool_)
    text = "weights sum to zero, so that there is no average"
    fault = Fault("CD0457", "CdZeroDivisionError", text, ("give weights whose sum is not zero",))
    site.ctx.check(test, fault, (), site.span, Domain((*site.ctx.domain, *total.ranges)))


def variance_skipping_nan(root: bool, out: DType | None = None) -> Body:
    """Return the body of `np.nanvar`, or of `np.nanstd` with `root`; `out` is the type that it
    writes."""

    def body(
        site: Site,
        a: Value,
        axis: Value = NONE,
        dtype: Value = NONE,
        ddof: Value = ZERO,
        *,
        keepdims: Value = NO,
        where: Value = YES,
        correction: Value = NONE,
    ) -> Value:
        array = array_of(site, a)
        if array.kind.dtype.kind not in "fc":
            return variance(root, out)(
                site, array, axis, dtype, ddof,
                keepdims=keepdims, where=where, correction=correction,
            )  # fmt: skip
        array = cheap_or_stored(site.ctx, array, "values", site.span)
        over = operand(site, array, number_axis(site, array, axis), keepdims, where)
        result = _variance(
            site, array, over.axes, dtype_of(site, dtype), _freedom(site, ddof, correction),
            over.keepdims, both(present(array), over.where), out, skips_nan=True,
        )  # fmt: skip
        if not root:
            return result
        return elementwise(site.ctx, combine_of(np.sqrt), [result], site.span)

    return body


def variance_skipping_nan_into(body: Body, out: DType, *, root: bool) -> Body:
    """Return the body of `np.nanvar` or `np.nanstd` that writes an `out` of a type."""
    typed: Body = wraps(body)(variance_skipping_nan(root, out))
    return typed


def _freedom(site: Site, ddof: Value, correction: Value) -> Static | Scalar:
    """Return the degrees of freedom less; CdValueError CD0440 where both names give them."""
    freedom = real_of(site, ddof, "ddof")
    if is_none(correction):
        return freedom
    if freedom != Static(0.0):
        text = "`ddof` and `correction` are two names of one number, and both are given"
        helps = ("give one of them: `ddof=1`",)
        raise error("CD0440", CdValueError, text, site.span, helps=helps)
    return real_of(site, correction, "correction")


def present(array: Array) -> Expr:
    """Return the predicate that an element of a float array is not NaN, over the array's axes."""
    is_nan = Apply(OPS["isnan"], (cast(array.body, array.kind.dtype.compute),), dtypes.bool_)
    return Select(is_nan, FALSE, TRUE)


def total_skipping_nan(name: str) -> Body:
    """Return the body of `np.nansum` or `np.nanprod`: NaN counts as the neutral element."""
    neutral = ZERO if name == "sum" else ONE

    def body(
        site: Site,
        a: Value,
        axis: Value = NONE,
        dtype: Value = NONE,
        *,
        keepdims: Value = NO,
        initial: Value = NONE,
        where: Value = YES,
    ) -> Value:
        array, axis = array_of(site, a), number_axis(site, a, axis)
        reduce = reducer(name)
        if array.kind.dtype.kind not in "fc":
            return reduce(site, array, axis, dtype, keepdims=keepdims, initial=initial, where=where)
        if is_none(dtype) and is_none(initial):
            array = cheap_or_stored(site.ctx, array, "values", site.span)
            over = operand(site, array, axis, keepdims, where)
            op = OPS["add" if name == "sum" else "mul"]
            predicate = both(present(array), over.where)
            kind = Kind(array.kind.dtype)
            return accumulate(site, op, array, over.axes, kind, over.keepdims, predicate)
        is_nan = elementwise(site.ctx, combine_of(np.isnan), [array], site.span)
        replaced = choose(site, is_nan, neutral, array)
        return reduce(site, replaced, axis, dtype, keepdims=keepdims, initial=initial, where=where)

    return body


def mean_skipping_nan(out: DType | None = None) -> Body:
    """Return the body of `np.nanmean`; `out` is the type that it writes."""

    def body(
        site: Site,
        a: Value,
        axis: Value = NONE,
        dtype: Value = NONE,
        *,
        keepdims: Value = NO,
        where: Value = YES,
    ) -> Value:
        array = array_of(site, a)
        if array.kind.dtype.kind not in "fc":
            return averaging(out)(site, array, axis, dtype, keepdims=keepdims, where=where)
        array = cheap_or_stored(site.ctx, array, "values", site.span)
        over = operand(site, array, number_axis(site, array, axis), keepdims, where)
        wanted = dtype_of(site, dtype)
        if wanted is not None and wanted.kind not in "fc":
            raise _dtype_error(site, "mean", array, wanted, "leave `dtype=` out")
        if out is not None and wanted is None:
            wanted = loop_dtype(site, np.add, strong_of(array.kind), out)
        predicate = both(present(array), over.where)
        return mean_of(site, array, over.axes, wanted, over.keepdims, predicate, out)

    return body


def mean_skipping_nan_into(body: Body, out: DType) -> Body:
    """Return the body of `np.nanmean` that writes an `out` of a type."""
    typed: Body = wraps(body)(mean_skipping_nan(out))
    return typed


def extreme_skipping_nan(name: str) -> Body:
    """Return the body of `np.nanmax` or `np.nanmin`, `name` being `max` or `min`."""

    def body(
        site: Site,
        a: Value,
        axis: Value = NONE,
        *,
        keepdims: Value = NO,
        initial: Value = NONE,
        where: Value = YES,
    ) -> Value:
        array, axis = array_of(site, a), number_axis(site, a, axis)
        if array.kind.dtype.kind not in "fc":
            reduce = reducer(name)
            return reduce(site, array, axis, keepdims=keepdims, initial=initial, where=where)
        require_ordered(site, array, f"nan{name}")
        if is_none(initial) and where == YES:
            axes = axes_of(site, axis, array.rank)
            require_elements(site, array, axes, f"nan{name}")
            keeps_axes = static_bool(site, keepdims, "keepdims")
            return _extreme_skipping_nan(site, array, axes, keeps_axes, name)
        is_nan = elementwise(site.ctx, combine_of(np.isnan), [array], site.span)
        limit = -inf if name == "max" else inf
        replaced = choose(site, is_nan, Static(limit), array)
        return reducer(name)(site, replaced, axis, keepdims=keepdims, initial=initial, where=where)

    return body


def _extreme_skipping_nan(
    site: Site, array: Array, axes: Sequence[int], keepdims: bool, name: str
) -> Value:
    """Return the maximum or minimum of the elements that are not NaN, NaN where all are.

    Whether there is one is a maximum reduction, too, of 1 for a NaN and 2 for a number: floating
    maximum reductions are vectorized.
    """
    array = cheap_or_stored(site.ctx, array, "values", site.span)
    kind, dtype = Kind(array.kind.dtype), array.kind.dtype.compute
    element = cast(array.body, dtype)
    is_nan = Apply(OPS["isnan"], (element,), dtypes.bool_)

    def extreme(op: str, instead: float, present_value: Expr, result_kind: Kind) -> Value:
        body = Select(is_nan, Const(instead, dtype), present_value)
        value = mapped(site.ctx, array, body, result_kind)
        return stored_once(
            site, accumulate(site, OPS[op], value, axes, result_kind, keepdims), name
        )

    extreme_value = extreme(name, -inf if name == "max" else inf, element, kind)
    validity = extreme("max", 1.0, Const(2.0, dtype), Kind(dtype))
    return elementwise(site.ctx, _select_nan_if_invalid, [validity, extreme_value], site.span)


def _select_nan_if_invalid(
    validity: tuple[Expr, Kind], result: tuple[Expr, Kind]
) -> tuple[Expr, Kind]:
    is_empty = Apply(OPS["eq"], (validity[0], Const(1.0, validity[0].dtype)), dtypes.bool_)
    return Select(is_empty, Const(nan, result[0].dtype), result[0]), result[1]
