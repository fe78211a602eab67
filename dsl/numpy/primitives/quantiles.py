"""Order statistics: median, quantiles and percentiles, by selection or sorting.

A share s of n values is at s * (n - 1) in order, interpolated linearly between its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from functools import reduce as fold_left
from typing import TYPE_CHECKING, Any

import numpy as np

from ....base.diagnostic import CdError, CdTypeError, CdValueError
from ....base.lazy_import import LazyModule
from ....lowering.ir import dtypes
from ....lowering.ir.assignments import Fault
from ....lowering.ir.dtypes import DType, promote
from ....lowering.ir.expressions import Apply, Const, Domain
from ....lowering.ir.indexing import Affine, const, floordiv, mod, var
from ....lowering.ir.indexing import minimum as index_min
from ....lowering.ir.ops import OPS
from ...values.arrays import count, describe, elementwise
from ...values.builder import compare, error
from ...values.call_site import (
    NO,
    NONE,
    NOT_CONSTANT,
    Site,
    array_of,
    axes_of,
    constant,
    integer_of,
    items_of,
    position_of,
    static_bool,
    static_int,
    static_number,
)
from ...values.fix_hints import WAYS_OUT
from ...values.memory_order import of_rest
from ...values.types import BOOL, WEAK_INT, Kind, cast
from ...values.values import Array, Group, Masked, Scalar, Static, Value
from ..library import definitions
from .elementwise import arithmetic, converted, converted_float, where
from .joining import stacked
from .partition import turns_of
from .python_reductions import as_number, shape_of
from .reductions import (
    Reduction,
    operand,
    reducer,
    require_elements,
    require_ordered,
    require_subtracted,
)
from .reshaping import reshaped
from .shaping import ravel, remap
from .sort_strategy import as_rows, fresh, in_order, inlined, partition_sorted
from .sorting import along, along_all
from .ufuncs import combine_of, strong_of

if TYPE_CHECKING:
    from . import powers
else:  # imported at the first use
    powers = LazyModule(".powers", __package__)


def median(site: Site, a: Value, axis: Value = NONE, *, keepdims: Value = NO) -> Value:
    """Return the middle of the values in order, the mean of the two where their number is even."""
    keep_dims = static_bool(site, keepdims, "keepdims")
    if isinstance(a, Masked):
        over = operand(site, a, axis, keepdims)
        if not over.stays:
            result = _reshape_results(site, _masked_median(site, a, axis, over), over.shape)
            return _in_order_of(site, result, over)
        return over.result(median(site, over.array, _axis_of(over), keepdims=keepdims))
    (result,) = _static_quantiles(site, a, (0.5,), axis, keep_dims, "median")
    if not isinstance(result, Array):
        return result
    values = array_of(site, a)
    axes = axes_of(site, axis, values.rank)
    rest = [n for n in range(values.rank) if keep_dims or n not in axes]
    order = of_rest(site.ctx, values, rest) if len(axes) == 1 else None
    return replace(result, order=order) if site.ctx.orders else result


def _in_order_of(site: Site, result: Value, over: Reduction) -> Value:
    """Return the median of a selection in NumPy's memory order, where orders are tracked."""
    if not isinstance(result, Array) or result.rank < 2 or not site.ctx.orders:
        return result
    rest = [n for n in range(over.array.rank) if over.keepdims or n not in over.axes]
    order = of_rest(site.ctx, over.array, rest) if len(over.axes) == 1 else None
    return replace(result, copied=True, order=order)


def quantile(site: Site, a: Value, q: Value, axis: Value = NONE, *, keepdims: Value = NO) -> Value:
    """Return the quantiles at shares `q` of the elements, by linear interpolation.

    A list of Python shares gives float64, as in NumPy, where it is a float64 array.
    """
    return _in_c_order(_quantiles(site, a, q, axis, static_bool(site, keepdims, "keepdims"), 1))


def _in_c_order(result: Value) -> Value:
    """Return an array in C order, which NumPy's has for operands of any layout."""
    return replace(result, order=()) if isinstance(result, Array) else result


def percentile(
    site: Site, a: Value, q: Value, axis: Value = NONE, *, keepdims: Value = NO
) -> Value:
    """Return the quantiles at shares `q` in percent."""
    return _in_c_order(_quantiles(site, a, q, axis, static_bool(site, keepdims, "keepdims"), 100))


def _quantiles(site: Site, a: Value, q: Value, axis: Value, keepdims: bool, unit: int) -> Value:
    """Return the quantiles for one `q` or several, as fractions (`unit` 1) or in percent (100)."""
    several = items_of(q)
    items = (q,) if several is None else several
    if any(items_of(item) is not None for item in items):
        raise _wrong_shares(site, q)
    if isinstance(a, Masked):
        over = operand(site, a, axis, Static(keepdims))
        if over.stays:
            result = _quantiles(site, over.array, q, _axis_of(over), keepdims, unit)
            return over.result(result, added=int(_is_several(q)))
    share_kind = _share_type(site, q)
    whole = unit == 1 and share_kind.dtype.kind in "biu"
    if not whole:
        require_subtracted(site, _values(site, a), _name(unit))
    is_vector = isinstance(q, Array) and q.rank == 1
    if isinstance(a, Masked) or is_vector or not all(_is_static(site, item) for item in items):
        return _dynamic_quantiles(site, a, q, axis, keepdims, unit, whole)
    shares = [_static_share(site, item, share_kind, unit) for item in items]
    if whole:  # 0 and 1 select elements: the minimum and the maximum
        results = [_select_extreme(site, a, share, axis, keepdims) for share in shares]
    elif share_kind.weak:
        results = _static_quantiles(site, a, shares, axis, keepdims, _name(unit))
    else:
        dtype = _result_type(array_of(site, a).kind.dtype, share_kind, unit)
        results = _static_quantiles(site, a, shares, axis, keepdims, _name(unit), dtype)
        results = [converted(site, result, dtype) for result in results]
    return results[0] if several is None else stacked(site, Group(tuple(results)))


def _axis_of(over: Reduction) -> Value:
    """Return the axes of a reduction as an argument: a number where it is one."""
    axes = tuple(map(Static, over.axes))
    return axes[0] if len(axes) == 1 else Group(axes)


def _is_several(q: Value) -> bool:
    """Whether there are several shares, along an axis of the result."""
    return isinstance(q, Array) and q.rank > 0 or items_of(q) is not None


def _values(site: Site, a: Value) -> Array:
    """Return the operand as an array; of a masked selection, the array that it selects from."""
    return a.array if isinstance(a, Masked) else array_of(site, a)


def _share_type(site: Site, q: Value) -> Kind:
    """Return the type of `q` as an array; weak for a Python number, which adapts to the values."""
    items = items_of(q)
    if items is None:
        kind = powers.kind_of(site, q)
        return kind if kind.weak and kind.dtype.kind in "if" else Kind(strong_of(kind))
    kinds = [strong_of(powers.kind_of(site, item)) for item in items]
    return Kind(fold_left(promote, kinds) if kinds else dtypes.float64)


def _fraction_dtype(given: DType, unit: int) -> DType:
    """Return the type of shares of type `given` after the division by `unit`."""
    whole = given.kind in "biu"
    return dtypes.float64 if whole and unit != 1 else given


def _result_type(dtype: DType, given: Kind, unit: int) -> DType:
    """Return the type of values interpolated at shares of a strong type."""
    return promote(dtype, _fraction_dtype(given.dtype, unit))


def _static_share(site: Site, item: Value, given: Kind, unit: int) -> Any:
    """Return a static share as a fraction in its type. CdValueError CD0442 outside of 0 to 1."""
    number: Any = static_number(site, item, "a share")
    if not given.weak:
        number = given.dtype.numpy.type(number)
    share = number if unit == 1 else number / unit
    if not 0 <= share <= 1:
        text = f"`{_name(unit)}` takes numbers from 0 to {unit}, and is given {number:g}"
        raise error("CD0442", CdValueError, text, site.span, helps=WAYS_OUT["CD0442"])
    return share


def _name(unit: int) -> str:
    """Return the function whose `q` has that unit."""
    return "quantile" if unit == 1 else "percentile"


def _select_extreme(site: Site, a: Value, share: int, axis: Value, keepdims: bool) -> Value:
    """Return the minimum for the share 0, the maximum for 1."""
    return reducer("max" if share else "min")(site, a, axis, keepdims=Static(keepdims))


def _is_static(site: Site, item: Value) -> bool:
    """Whether a share is static; an integer is while it came with few values."""
    if position_of(item) is None:
        return constant(item) is not NOT_CONSTANT
    return integer_of(site, item, "a share").constant is not None


def _dynamic_quantiles(
    site: Site, a: Value, q: Value, axis: Value, keepdims: bool, unit: int, whole: bool
) -> Value:
    """Return the quantiles for dynamic shares; integer ones (`whole`) select elements."""
    share_kind, value_dtype = _share_type(site, q), _values(site, a).kind.dtype
    shares = _dynamic_shares(site, q, share_kind.dtype, unit)
    if isinstance(a, Masked):
        values = a.array if whole else array_of(site, converted_float(site, a.array))
        over = operand(site, replace(a, array=values), axis, Static(keepdims))
        lines, size = _selection_lines(site, a, over, _name(unit))
        shape = over.shape
    else:
        lines, shape = _gather_lines(
            site, a if whole else converted_float(site, a), axis, keepdims, _name(unit)
        )
        size = as_number(lines.shape[-1])
    weak = whole or share_kind.weak
    dtype = lines.kind.dtype if weak else _result_type(value_dtype, share_kind, unit)
    positions = _share_positions(site, shares, size)
    rows = as_rows(site, in_order(site, lines))
    out = fresh(site, (positions.shape[0], rows.shape[0]), dtype, "quantiles")
    text = definitions.ELEMENTS if whole else definitions.QUANTILES
    inlined(site, text, rows, size, positions, out)
    return _reshape_results(site, out, (*(positions.shape if _is_several(q) else ()), *shape))


def _reshape_results(site: Site, out: Array, shape: tuple[Affine, ...]) -> Value:
    """Return results under a shape; with the empty shape, a scalar."""
    result = reshaped(site, out, shape)
    return result if result.rank else Scalar(result.body, result.kind)


def _share_positions(site: Site, shares: Array, size: Value) -> Array:
    """Return the positions share * (size - 1), rounded to the type of the shares."""
    last = array_of(site, arithmetic(site, "-", size, Static(1)))
    positions = arithmetic(site, "*", shares, Scalar(last.body, WEAK_INT))
    return site.ctx.materialize(array_of(site, positions), "places", site.span)


def _masked_median(site: Site, a: Masked, axis: Value, over: Reduction) -> Array:
    """Return the medians of a masked selection, partitioned in its element type."""
    dtype = a.array.kind.dtype
    lines, size = _selection_lines(site, a, over, "median")
    half = arithmetic(site, "//", size, Static(2))
    below = arithmetic(site, "//", arithmetic(site, "-", size, Static(1)), Static(2))
    partitioned = (
        in_order(site, lines)
        if dtype.bits <= 8
        else partition_sorted(site, lines, Group((below, half)))
    )
    last = array_of(site, reducer("max")(site, a, axis))
    if last.rank != 1:
        last = reshaped(site, last, (count(last.shape, range(last.rank)),))
    middle = dtypes.float64 if dtype.kind in "biu" else dtype
    rows = as_rows(site, partitioned)
    out = fresh(site, (rows.shape[0],), middle, "median")
    inlined(site, definitions.MIDDLE, rows, below, half, last, out)
    return out


def _selection_lines(site: Site, a: Masked, over: Reduction, name: str) -> tuple[Array, Value]:
    """Return lines whose selected elements come first in order, and the number of them in each.

    Elements that the mask excludes become a sentinel that orders last: NaN or the largest number.
    """
    array, axes = over.array, over.axes
    require_ordered(site, array, name)
    require_elements(site, array, axes, name, over.where)
    sizes = [as_number(array.shape[axis]) for axis in axes if axis not in a.spanned]
    size = fold_left(partial(arithmetic, site, "*"), sizes, shape_of(site, a)[a.start])
    dtype = array.kind.dtype
    sentinel = {"f": np.nan, "b": True}.get(dtype.kind) or 2 ** (
        dtype.bits - (dtype.kind == "i")
    ) - 1
    filled = array_of(site, where(site, a.wide_mask, array, Static(sentinel)))
    if len(axes) == array.rank:
        return array_of(site, ravel(site, filled)), size
    return along_all(site, filled, axes), size


def _dynamic_shares(site: Site, q: Value, dtype: DType, unit: int) -> Array:
    """Return dynamic shares as a rank-1 array of fractions, with a run-time check of their range.

    CdTypeError CD0443 for other ranks or types, CdValueError CD0442 at run time outside of 0 to 1.
    """
    items = items_of(q)
    if items is None and not (isinstance(q, Array) and q.rank):
        items = (q,)
    given = array_of(site, q) if items is None else stacked(site, Group(items))
    if not isinstance(given, Array) or given.rank != 1 or given.kind.dtype.kind not in "biuf":
        raise _wrong_shares(site, q)
    fractions = converted(site, given, dtypes.int64 if dtype.kind == "b" else dtype)
    if unit != 1:
        fractions = arithmetic(site, "/", fractions, Static(unit))
    shares = site.ctx.materialize(array_of(site, fractions), "shares", site.span)
    share = cast(shares.body, dtypes.float64)
    low, high = (Const(end, dtypes.float64) for end in (0.0, 1.0))
    inside = [Apply(OPS[op], (share, end), dtypes.bool_) for op, end in (("ge", low), ("le", high))]
    text = f"`{_name(unit)}` takes numbers from 0 to {unit}, and is given {{0}}"
    fault = Fault("CD0442", "CdValueError", text, WAYS_OUT["CD0442"])
    test = Apply(OPS["and"], tuple(inside), dtypes.bool_)
    scaled = Apply(OPS["mul"], (share, Const(float(unit), dtypes.float64)), dtypes.float64)
    shown = share if unit == 1 else scaled
    site.ctx.check(test, fault, (shown,), site.span, Domain(shares.ranges))
    return shares


def _wrong_shares(site: Site, q: Value) -> CdError:
    """Return CdTypeError CD0443: shares that are no numbers along one axis."""
    return error(
        "CD0443", CdTypeError,
        f"`q` has to be a number, or numbers along one axis, and is {describe(q)}", site.span,
        helps=("give a list of numbers: `[0.25, 0.75]`",),
    )  # fmt: skip


def _gather_lines(
    site: Site, a: Value, axis: Value, keepdims: bool, name: str
) -> tuple[Array, tuple[Affine, ...]]:
    """Return the elements of each result along a last axis, and the shape of the results."""
    source = array_of(site, a)
    dims: tuple[int, ...] = axes_of(site, axis, source.rank)
    if items_of(axis) is None:
        lines, _ = along(site, source, axis, name)
    else:
        require_ordered(site, source, name)
        lines = along_all(site, source, dims)
    require_elements(site, lines, (lines.rank - 1,), name)
    if not keepdims:
        return lines, lines.shape[:-1]
    rank = range(source.rank)
    return lines, tuple(const(1) if n in dims else source.shape[n] for n in rank)


def _static_quantiles(
    site: Site,
    a: Value,
    shares: Sequence[Any],
    axis: Value,
    keepdims: bool,
    name: str,
    wide: DType | None = None,
) -> list[Value]:
    """Return the quantiles at static shares, all from one selection, or one sort.

    `wide` is the type of the interpolation, None for that of the values.
    """
    source = array_of(site, a)
    floats = array_of(site, converted_float(site, source))
    dims: tuple[int, ...] = axes_of(site, axis, source.rank)
    if items_of(axis) is None:
        lines, _ = along(site, floats, axis, name)
    else:
        require_ordered(site, floats, name)
        lines = along_all(site, floats, dims)
    require_elements(site, lines, (lines.rank - 1,), name)
    size = lines.shape[-1]
    located = [_locate_share(site, size, share, wide, name) for share in shares]
    targets = turns_of(
        lines, tuple(position for pair, _ in located for position in pair), rising=True
    )
    ordered = in_order(site, lines) if targets is None else partition_sorted(site, lines, targets)
    last = _element_at(ordered, size - 1)
    if targets is not None:
        last = array_of(site, reducer("max")(site, ordered, Static(-1)))
    is_nan = elementwise(site.ctx, combine_of(np.isnan), [last], site.span)
    statistics = [
        weigh(_element_at(ordered, low), _element_at(ordered, high))
        for (low, high), weigh in located
    ]
    results = [array_of(site, where(site, is_nan, last, result)) for result in statistics]
    if keepdims:
        axes = site.ctx.axes(source.rank)
        remaining = [n for n in range(source.rank) if n not in dims]
        shape = [source.shape[n] if n in remaining else const(1) for n in range(source.rank)]
        return [remap(result, axes, shape, [var(axes[n]) for n in remaining]) for result in results]
    return [result if result.rank else Scalar(result.body, result.kind) for result in results]


def _element_at(lines: Array, position: Affine) -> Array:
    """Return the element at one position of each line."""
    return remap(
        lines, lines.axes[:-1], lines.shape[:-1], (*(var(x) for x in lines.axes[:-1]), position)
    )


Pair = tuple[Affine, Affine]
Weigh = Callable[[Array, Array], Value]
"""(the elements at two positions of each line) -> the order statistic between them."""


def _locate_share(
    site: Site, size: Affine, share: Any, wide: DType | None, name: str
) -> tuple[Pair, Weigh]:
    """Return the two positions that a share lies between, and how their elements are combined.

    A half needs no static size: the median is a mean of one element or two, other functions
    interpolate.
    """
    middle = floordiv(size - 1, const(2))
    if name == "median":
        return (middle, floordiv(size, const(2))), partial(_mean_of_middle, site, size)
    if share == 0.5 and wide is None and size.constant is None:
        above = index_min(middle + 1, size - 1)
        return (middle, above), partial(_interpolate_half, site, size)
    pair, fraction = _neighbours(site, size, share)
    return pair, lambda low, high: _interpolate(site, low, high, fraction, wide)


def _mean_of_middle(site: Site, size: Affine, low: Array, high: Array) -> Value:
    """Return the mean of the elements in the middle: one for an odd size, two for an even one.

    The sum begins with a zero, which makes -0.0 positive. That of two elements may overflow.
    """

    def one() -> Value:
        return arithmetic(site, "+", low, Static(0.0))

    def two() -> Value:
        total = arithmetic(site, "+", arithmetic(site, "+", low, high), Static(0.0))
        return arithmetic(site, "/", total, Static(2.0))

    return _by_parity(site, size, one, two)


def _interpolate_half(site: Site, size: Affine, low: Array, high: Array) -> Value:
    """Return the quantile at 0.5: for an odd size exactly at `low`, for an even one in between."""
    return _by_parity(
        site, size,
        lambda: where(  # of one element both are the last: see `_neighbours`
            site, Scalar(compare("eq", size, const(1)), BOOL),
            _interpolate(site, low, high, 1.0, None), _interpolate(site, low, high, 0.0, None),
        ),
        lambda: _interpolate(site, low, high, 0.5, None),
    )  # fmt: skip


def _by_parity(
    site: Site, size: Affine, odd: Callable[[], Value], even: Callable[[], Value]
) -> Value:
    """Return the value for an odd or an even size: a select where the size is dynamic."""
    if size.constant is not None:
        return odd() if size.constant % 2 else even()
    is_odd = Scalar(compare("eq", mod(size, const(2)), const(1)), BOOL)
    return where(site, is_odd, odd(), even())


def _neighbours(site: Site, size: Affine, share: Any) -> tuple[Pair, float]:
    """Return the positions around share * (size - 1), and its fraction of the gap between them.

    At the last element, both positions are that, and the fraction is the distance from -1: as in
    NumPy, to which the sign of a zero there is owed.
    """
    number = static_int(site, as_number(size), "the number of values")
    with np.errstate(over="ignore"):
        position = min(share * (number - 1), number - 1)  # in the type of the share
    if position >= number - 1:
        return (const(number - 1), const(number - 1)), float(number)
    below = int(np.floor(position))
    return (const(below), const(below + 1)), float(position - below)


def _interpolate(site: Site, low: Array, high: Array, fraction: float, wide: DType | None) -> Value:
    """Return the linear interpolation between two values, rounded as in NumPy.

    The gap, rounded to the type of the values, is scaled in the type `wide`. From the fraction 0.5
    on, the interpolation starts at `high`.
    """
    gap = arithmetic(site, "-", high, low)
    if wide is not None:
        gap = converted(site, converted(site, gap, high.kind.dtype), wide)
    if fraction >= 0.5:
        return arithmetic(site, "-", high, arithmetic(site, "*", gap, Static(1.0 - fraction)))
    return arithmetic(site, "+", low, arithmetic(site, "*", gap, Static(fraction)))
