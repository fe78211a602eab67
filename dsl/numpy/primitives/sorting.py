"""Sorting, binary search, histograms, and piecewise linear interpolation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....base.diagnostic import CdTypeError, CdValueError
from ....lowering.ir import dtypes
from ....lowering.ir.assignments import Access, Assign, Fault
from ....lowering.ir.dtypes import DType
from ....lowering.ir.expressions import Apply, Const, Domain, Dynamic, Expr, Position, Reduce
from ....lowering.ir.indexing import Affine, const, var
from ....lowering.ir.ops import OPS
from ...values.arrays import (
    as_scalar,
    cheap_or_stored,
    count,
    describe,
    elementwise,
    operate,
    permuted,
)
from ...values.builder import compare, error
from ...values.call_site import (
    NO,
    NONE,
    NOT_CONSTANT,
    ZERO,
    Site,
    array_of,
    axis_of,
    constant,
    extent_of,
    index_in,
    is_none,
    items_of,
    static_bool,
    text_of,
)
from ...values.fix_hints import WAYS_OUT
from ...values.masks import aligned
from ...values.memory_order import in_k_order
from ...values.stores import assign
from ...values.types import Kind, apply, cast, join_all, truth
from ...values.values import Array, Group, Masked, Scalar, Static, Value
from ..library import definitions, device_sorting
from ..library.device_sorting import either, merge_iterations
from .averages import stored_once
from .elementwise import arithmetic, converted, imag, real, where
from .grids import linspace
from .joining import rows_of, with_strong_type
from .python_reductions import as_number
from .reductions import reducer, require_elements, require_ordered
from .reshaping import reshaped
from .shaping import moveaxis, ravel, remap
from .sort_strategy import as_rows, by_digits, fresh, inlined, sort_axis
from .ufuncs import combine_of, strong_of


def flat(site: Site, value: Value, label: str) -> Array:
    """Return all elements along one axis, stored where recomputing them would cost."""
    return cheap_or_stored(site.ctx, array_of(site, ravel(site, value)), label, site.span)


def along(site: Site, a: Value, axis: Value, name: str) -> tuple[Array, int]:
    """Return the array with the axis last, and the former position of the axis."""
    array = array_of(site, a)
    require_ordered(site, array, name)
    if is_none(axis):
        array, axis = array_of(site, ravel(site, array)), ZERO
    if not array.rank:
        raise error("CD0452", CdTypeError, f"`{name}` needs an axis", site.span)
    dim = axis_of(site, axis, array.rank)
    return array_of(site, moveaxis(site, array, Static(dim), Static(-1))), dim


def along_all(site: Site, array: Array, axes: tuple[int, ...]) -> Array:
    """Return the array with some axes merged into a last one."""
    other_dims = [n for n in range(array.rank) if n not in axes]
    permuted_array = permuted(array, (*other_dims, *axes))
    return reshaped(
        site, permuted_array, (*permuted_array.shape[: len(other_dims)], count(array.shape, axes))
    )


def sort(site: Site, a: Value, axis: Value = Static(-1), kind: Value = NONE) -> Value:
    """Return a copy sorted in ascending order along an axis, NaN last.

    Of floats -0 comes before 0, unless `kind` is a stable sort.
    """
    array = array_of(site, a)
    if is_none(axis):
        array, axis = array_of(site, ravel(site, array)), Static(-1)
    stable = _is_stable(site, kind)
    _, dim = along(site, array, axis, "sort")
    result = site.ctx.materialize(array, "sorted", site.span)
    sort_axis(site, result, dim, stable)
    return in_k_order(site.ctx, result, array)


def _is_stable(site: Site, kind: Value) -> bool:
    """Whether `kind` asks for a stable sort. CdValueError CD0448 for an unknown name."""
    if is_none(kind):
        return False
    name = constant(kind)
    if not isinstance(name, str) or name[:1].lower() not in tuple("qhms"):  # as NumPy reads it
        text = f"a sort is 'quicksort', 'heapsort', 'mergesort' or 'stable', and is given {name!r}"
        raised = CdValueError if isinstance(name, str) else CdTypeError
        raise error("CD0448", raised, text, site.span)
    return name[0].lower() in "ms"


def sort_in_place(site: Site, a: Value, axis: Value = Static(-1), kind: Value = NONE) -> Value:
    """Sort an array in place along an axis; returns None."""
    array = array_of(site, a)
    lines, dim = along(site, array, axis, "sort")
    if lines.view is not None and not is_none(axis):
        sort_axis(site, array, dim, _is_stable(site, kind))
    else:
        assign(site.ctx, array, sort(site, array, axis, kind), site.span)
    return NONE


def argsort(
    site: Site,
    a: Value,
    axis: Value = Static(-1),
    kind: Value = NONE,
    *,
    stable: Value = NONE,
) -> Value:
    """Return the positions (int64) that sort an axis; the sort is stable, as any `kind` allows.

    CdValueError CD0440 where both `kind` and `stable` are given.
    """
    _is_stable(site, kind)
    if not (is_none(kind) or is_none(stable)):
        text = "`argsort` takes `kind=` or `stable=`, and is given both"
        raise error("CD0440", CdValueError, text, site.span, helps=("leave one of them out",))
    lines, dim = along(site, a, axis, "argsort")
    keys, order = keys_and_order(site, lines)
    rows = as_rows(site, order)
    scratch = fresh(site, keys.shape, keys.kind.dtype, "others")
    places = fresh(site, keys.shape, dtypes.int64, "places")
    either(
        site,
        lambda: inlined(
            site, device_sorting.ARGSORT_ROWS, keys, scratch, rows, places, merge_iterations(keys)
        ),
        lambda: by_digits(site, keys, rows, scratch, places),
    )
    return moveaxis(site, order, Static(-1), Static(dim))


def keys_and_order(site: Site, lines: Array) -> tuple[Array, Array]:
    """Return integer keys in the order of the values, as rows, and the position of each element."""
    body, kind = apply("ordinal", (lines.body, lines.kind))
    ordinals = Array(lines.axes, lines.shape, body, kind, copied=True)
    keys = as_rows(site, site.ctx.materialize(ordinals, "keys", site.span))
    positions = Array(
        lines.axes, lines.shape, Position(var(lines.axes[-1])), Kind(dtypes.int64), True
    )
    return keys, site.ctx.materialize(positions, "order", site.span)


def order_by_merging(site: Site, keys: Array, order: Array) -> None:
    """Sort rows of keys, and `order` with them, by parallel merging, the algorithm for GPUs."""
    rows, scratch = as_rows(site, order), fresh(site, keys.shape, keys.kind.dtype, "others")
    places = fresh(site, keys.shape, dtypes.int64, "places")
    inlined(site, device_sorting.ARGSORT_ROWS, keys, scratch, rows, places, merge_iterations(keys))


def searchsorted(site: Site, a: Value, v: Value, side: Value = Static("left")) -> Value:
    """Return the insertion positions (int64) of values in a sorted array, by binary search."""
    is_right = text_of(site, side, "side", ("left", "right")) == "right"
    if array_of(site, a).rank != 1:
        raise error("CD0452", CdTypeError, "`searchsorted` looks along one axis", site.span)
    line, values = flat(site, a, "line"), array_of(site, v)
    common = dtypes.promote(strong_of(line.kind), strong_of(values.kind))
    if common.kind == "f" and line.kind.dtype.kind in "iu" and values.kind.dtype.kind in "iu":
        line, values = (
            array_of(site, converted(site, operand, common)) for operand in (line, values)
        )
    positions = fresh(site, values.shape, dtypes.int64, "places")
    wanted = flat(site, _with_axis(site, values), "values")
    inlined(site, definitions.SEARCH, line, wanted, _flat_view(site, positions), Static(is_right))
    return Scalar(positions.body, positions.kind) if not values.rank else positions


def _with_axis(site: Site, value: Array) -> Array:
    if value.rank:
        return value
    return Array(site.ctx.axes(1), (const(1),), value.body, value.kind, value.copied)


def _flat_view(site: Site, value: Array) -> Array:
    """Return a stored array as a writable view of rank 1."""
    if value.rank == 1:
        return value
    if value.rank == 0:
        return _with_axis(site, value)
    return reshaped(site, value, (None,))


def digitize(site: Site, x: Value, bins: Value, right: Value = NO) -> Value:
    """Return the bin (int64) of each value, between ascending or descending edges."""
    side = "left" if static_bool(site, right, "right") else "right"
    edges = array_of(site, bins)
    if edges.rank != 1:
        text = f"`digitize` takes edges along one axis, and is given {describe(edges)}"
        raise error("CD0452", CdTypeError, text, site.span)
    for value in (edges, array_of(site, x)):
        require_ordered(site, value, "digitize")
    rising = fresh(site, edges.shape, strong_of(edges.kind), "rising")
    falls = inlined(site, definitions.RISING, flat(site, edges, "edges"), rising)
    positions = stored_once(site, searchsorted(site, rising, x, Static(side)), "found")
    mirrored = arithmetic(site, "-", as_number(edges.shape[0]), positions)
    return where(site, falls, mirrored, positions)


def histogram(
    site: Site,
    a: Value,
    bins: Value = Static(10),
    range: Value = NONE,
    density: Value = NONE,
    weights: Value = NONE,
) -> Value:
    """Return the counts, or sums of weights, of values in bins, and the edges of the bins."""
    values = array_of(site, ravel(site, a))
    require_ordered(site, values, "histogram")
    is_uniform = items_of(bins) is None and not (isinstance(bins, Array) and bins.rank)
    bounds = _bounds(site, range)
    if is_uniform:
        number = _number_of_bins(site, bins)
        values = _compared(site, values, _edge_type(site, values, bounds))
        edges = limits = _equal_edges(site, values, number, bounds)
        text = definitions.HISTOGRAM_EQUAL
    else:
        edges = array_of(site, bins)
        if edges.rank != 1:
            text = f"`histogram` takes edges along one axis, and is given {describe(edges)}"
            raise error("CD0452", CdValueError, text, site.span)
        require_ordered(site, edges, "histogram")
        edges = cheap_or_stored(site.ctx, with_strong_type(edges), "edges", site.span)
        common = dtypes.promote(strong_of(values.kind), edges.kind.dtype)
        values, limits = (_compared(site, given, common) for given in (values, edges))
        number = site.ctx.assumptions.maximum(edges.shape[0] - 1, const(0))
        text = definitions.HISTOGRAM_EDGES
    factors, sums, result = _weights(site, values, array_of(site, a).shape, weights)
    counts = fresh(site, (number,), sums, "counts")
    if number.constant != 0:
        inlined(site, text, values, factors, limits, counts)
    heights: Value = counts if sums is result else _convert_sums(site, counts, result)
    if not is_none(density) and static_bool(site, density, "density"):
        line = array_of(site, edges)
        upper, lower = (
            remap(line, line.axes, (number,), (var(line.axes[0]) + step,)) for step in (1, 0)
        )
        width = converted(site, arithmetic(site, "-", upper, lower), dtypes.float64)
        total = stored_once(site, reducer("sum")(site, heights), "total")
        heights = arithmetic(site, "/", arithmetic(site, "/", heights, width), total)
    return Group((heights, edges))


def _number_of_bins(site: Site, bins: Value) -> Affine:
    """Return a number of bins, at least 1. CdValueError CD0457 for others."""
    if isinstance(constant(bins), str):
        text = f"`histogram` takes a number of bins, or their edges, and is given {describe(bins)}"
        raise error("CD0457", CdValueError, text, site.span, helps=("give a number: `bins=10`",))
    number = extent_of(site, bins, "the number of bins")
    text, helps = "`bins` of a histogram is at least 1, and is {0}", ("count in one bin or more",)
    if number.constant == 0:
        raise error("CD0457", CdValueError, text.format(0), site.span, helps=helps)
    if not site.ctx.assumptions.less(const(0), number):
        fault = Fault("CD0457", "CdValueError", text, helps)
        test = compare("lt", const(0), number)
        site.ctx.check(test, fault, (Position(number),), site.span, Domain())
    return number


def _convert_sums(site: Site, counts: Array, dtype: DType) -> Value:
    """Return sums of weights in the type of the weights; those of integers wrap around."""
    whole = dtype.kind in "iu" and dtype.bits < 64
    return converted(site, converted(site, counts, dtypes.int64) if whole else counts, dtype)


def _compared(site: Site, values: Array, dtype: DType) -> Array:
    """Return values in the type in which they are compared with the edges."""
    return cheap_or_stored(site.ctx, array_of(site, converted(site, values, dtype)), "a", site.span)


def _bounds(site: Site, ends: Value) -> tuple[Value, ...] | None:
    """Return the two ends of the range of a histogram; None for None.

    CdTypeError, CdValueError CD0457 for what is not two numbers.
    """
    if is_none(ends):
        return None
    items = rows_of(site, ends)
    if items is not None and len(items) == 2 and not any(array_of(site, x).rank for x in items):
        for item in items:
            require_ordered(site, array_of(site, item), "histogram")
        return items
    text = f"the range of a histogram is two numbers, and is {describe(ends)}"
    raised = CdTypeError if items is None else CdValueError
    raise error("CD0457", raised, text, site.span, helps=WAYS_OUT["CD0457"])


def _edge_type(site: Site, values: Array, bounds: Sequence[Value] | None) -> DType:
    """Return the type of edges of equal width: that of values and ends together, float64 of
    integers."""
    kinds = [Kind(dtypes.uint8) if values.kind.dtype.kind == "b" else values.kind]
    joined = strong_of(join_all([*kinds, *(array_of(site, end).kind for end in bounds or ())]))
    return joined if joined.kind == "f" else dtypes.promote(joined, dtypes.float64)


def _equal_edges(
    site: Site, values: Array, number: Affine, bounds: tuple[Value, ...] | None
) -> Array:
    """Return the edges of bins of equal width between given ends, or between the extreme values.

    They are of the type of the values.
    """
    static_bounds: list[Any] = [constant(end) for end in bounds or ()]
    if bounds is None and values.shape[0].constant == 0:
        bounds, static_bounds = (Static(0.0), Static(1.0)), [0.0, 1.0]  # as in NumPy
    if bounds is None:
        require_elements(site, values, (0,), "the range of a histogram", helps=WAYS_OUT["CD0457"])
        low, high = (
            stored_once(site, reducer(name)(site, values), name) for name in ("min", "max")
        )
    else:
        low, high = bounds
    if bounds is None or NOT_CONSTANT in static_bounds:
        _require_finite(site, low, high)
        is_degenerate = arithmetic(site, "==", low, high)
        low, high = (
            stored_once(
                site, where(site, is_degenerate, arithmetic(site, "+", end, Static(d)), end), "end"
            )
            for end, d in ((low, -0.5), (high, 0.5))
        )
    elif not static_bounds[0] <= static_bounds[1] or not all(map(math.isfinite, static_bounds)):
        raise error("CD0457", CdValueError, _INVALID_RANGE, site.span, helps=WAYS_OUT["CD0457"])
    elif static_bounds[0] == static_bounds[1]:
        low, high = (arithmetic(site, s, end, Static(0.5)) for s, end in zip("-+", bounds))
    dtype = Static(values.kind.dtype)
    line = linspace(site, low, high, as_number(number + 1), dtype=dtype)
    return site.ctx.materialize(array_of(site, line), "edges", site.span)


_INVALID_RANGE = "the range of a histogram is not finite, or ends before it begins"


def _require_finite(site: Site, low: Value, high: Value) -> None:
    tests = [
        elementwise(site.ctx, combine_of(np.isfinite), [value], site.span) for value in (low, high)
    ]
    tests.append(arithmetic(site, "<=", low, high))
    fault = Fault("CD0457", "CdValueError", _INVALID_RANGE, WAYS_OUT["CD0457"])
    for test in tests:
        site.ctx.check(truth(as_scalar(test, site.span).expr), fault, (), site.span, Domain())


def _weights(
    site: Site, values: Array, shape: tuple[Affine, ...], weights: Value
) -> tuple[Array, DType, DType]:
    """Return the weight of each value, the type of the accumulator, and that of the result.

    The weights have the `shape` that the values had (CdShapeError CD0301, CdValueError CD0452).
    """
    if is_none(weights):
        one = cast(Const(1, dtypes.int64), dtypes.int64)
        ones = Array(values.axes, values.shape, one, Kind(dtypes.int64), copied=True)
        return ones, dtypes.int64, dtypes.int64
    given = array_of(site, weights)
    if given.rank != len(shape):
        text = f"`weights` of a histogram have the shape of the values, and are {describe(given)}"
        raise error("CD0452", CdValueError, text, site.span)
    for extent, other in zip(shape, given.shape, strict=True):
        site.ctx.equal_extents(extent, other, "values and weights", site.span)
    factor = flat(site, weights, "weights")
    dtype = factor.kind.dtype
    return factor, (dtype if dtype.kind == "c" else dtypes.float64), dtype


def bincount(site: Site, x: Value, weights: Value = NONE, minlength: Value = ZERO) -> Value:
    """Return the number of occurrences of each integer; a given `minlength` is the exact length.

    CdValueError CD0458 for negative values, or values beyond a given `minlength`.
    """
    if isinstance(x, Masked) and index_in(site, minlength, "minlength").constant != 0:
        return _masked_bincount(site, x, weights, minlength)
    values = array_of(site, x)
    _require_countable(site, values, weights)
    values = cheap_or_stored(site.ctx, values, "values", site.span)
    element = cast(values.body, dtypes.int64)
    least = index_in(site, minlength, "minlength")
    size = (
        _bins_needed(site, values, least)
        if least.constant == 0
        else extent_of(site, minlength, "minlength")
    )
    low = Apply(OPS["le"], (Position(const(0)), element), dtypes.bool_)
    fault = Fault(
        "CD0458", "CdValueError", "`bincount` is given {0}, and counts no negative numbers",
        ("to count these as zeros: `np.bincount(np.maximum(x, 0))`",),
    )  # fmt: skip
    site.ctx.check(low, fault, (element,), site.span, Domain(values.ranges))
    high = Apply(OPS["lt"], (element, Position(size)), dtypes.bool_)
    fault = Fault(
        "CD0458", "CdValueError", "`bincount` is given {0}, and counts 0 to {1} here",
        ("`minlength` is the length here: give one above the largest value",
         "or leave it out: the result is as long as the largest value needs"),
    )  # fmt: skip
    if least.constant != 0:
        site.ctx.check(high, fault, (element, Position(size - 1)), site.span, Domain(values.ranges))
    if is_none(weights):
        dtype, amount = dtypes.int64, cast(Const(1, dtypes.int64), dtypes.int64)
    else:
        factor = cheap_or_stored(site.ctx, array_of(site, weights), "weights", site.span)
        site.ctx.equal_extents(values.shape[0], factor.shape[0], "values and weights", site.span)
        # NumPy counts where there is nothing to weigh
        dtype = dtypes.int64 if values.shape[0].constant == 0 else dtypes.float64
        amount = cast(factor.at((var(values.axes[0]),)), dtype)
    counts = fresh(site, (size,), dtype, "counts")
    view = counts.view
    assert view is not None
    access = Access(view.node, (Dynamic(element),))
    site.ctx.emit(Assign(access, OPS["add"], False, amount, Domain(values.ranges), span=site.span))
    return counts


def _require_countable(site: Site, values: Array, weights: Value) -> None:
    """Refuse (CdTypeError CD0458) values that are no rank-1 integers, and complex weights."""
    if values.rank != 1 or values.kind.dtype.kind not in "biu":
        raise error(
            "CD0458", CdTypeError, "`bincount` takes integers along one axis", site.span,
            label=f"this is {describe(values)}",
        )  # fmt: skip
    if is_none(weights):
        return
    added = array_of(site, weights)
    if added.rank != 1:
        text = "`bincount` takes one weight for each integer, along one axis"
        label = f"this is {describe(added)}"
        raise error("CD0452", CdValueError, text, site.span, label=label)
    if added.kind.dtype.kind == "c":
        raise error(
            "CD0458", CdTypeError, "`bincount` adds up real weights", site.span,
            label=f"this is {describe(added)}",
            helps=("take the parts one by one: `np.bincount(x, w.real)`",),
        )  # fmt: skip


def _masked_bincount(site: Site, x: Masked, weights: Value, minlength: Value) -> Value:
    """Return the `bincount` of a masked selection: excluded elements have the weight 0."""
    amount: Value = Static(1)
    if x.rank != 1:
        _require_countable(site, x.array, NONE)
    if isinstance(weights, Masked):
        same = aligned(site.ctx, weights, x, site.span) if weights.rank == 1 else None
        amount = array_of(site, x) if same is None else same
    elif not is_none(weights):
        array_of(site, x)  # refuses: the number of selected elements is dynamic
    mask = x.wide_mask
    values = ravel(site, where(site, mask, x.array, ZERO))
    counts = bincount(site, values, ravel(site, where(site, mask, amount, ZERO)), minlength)
    return converted(site, counts, dtypes.int64) if is_none(weights) else counts


def _bins_needed(site: Site, values: Array, least: Affine) -> Affine:
    """Return the largest value plus one, a dynamic extent that is evaluated at this statement."""
    top: Expr = Reduce(
        OPS["max"], Domain(values.ranges), cast(values.body, dtypes.int64), dtypes.int64,
        span=site.span,
    )  # fmt: skip
    one_more = Apply(OPS["add"], (top, Position(const(1))), dtypes.int64)
    most = Apply(OPS["max"], (one_more, Position(const(0))), dtypes.int64)
    if count(values.shape, (0,)).constant == 0:
        return const(0)
    symbol = site.ctx.let("bins", most, site.span)
    site.ctx.assumptions = site.ctx.assumptions.with_bounds(symbol, const(0), None)
    return var(symbol)


def interp(
    site: Site, x: Value, xp: Value, fp: Value, left: Value = NONE, right: Value = NONE
) -> Value:
    """Return piecewise linear interpolation (float64 or complex128), constant outside of `xp`."""
    for value in (x, xp):
        require_ordered(site, array_of(site, value), "interp")
    if array_of(site, xp).rank != 1 or array_of(site, fp).rank != 1:
        text = "`interp` takes points along one axis"
        raise error("CD0452", CdTypeError, text, site.span)
    points = array_of(site, x)
    knots = flat(site, converted(site, xp, dtypes.float64), "xp")
    if array_of(site, fp).kind.dtype.kind == "c":
        ends = [[NONE if is_none(end) else part(site, end) for end in (left, right)]
                for part in (real, imag)]  # fmt: skip
        parts = [
            _interpolate_real(site, points, knots, part(site, fp), given, has_nan)
            for part, given, has_nan in ((real, ends[0], True), (imag, ends[1], False))
        ]
        return operate(site.ctx, "complex", parts, site.span)
    return _interpolate_real(site, points, knots, fp, [left, right], True)


def _interpolate_real(
    site: Site, points: Array, knots: Array, fp: Value, outside: Sequence[Value], has_nan: bool
) -> Value:
    """Return real interpolation. Its value at a NaN is NaN, or zero without `has_nan`."""
    values = flat(site, converted(site, fp, dtypes.float64), "fp")
    site.ctx.equal_extents(knots.shape[0], values.shape[0], "`xp` and `fp`", site.span)
    require_elements(site, knots, (0,), "interp")
    ends: list[Value] = []
    for given, position in zip(outside, (const(0), values.shape[0] - 1), strict=True):
        default = Scalar(values.at((position,)), values.kind)
        end = default if is_none(given) else given
        require_ordered(site, array_of(site, end), "interp")
        ends.append(converted(site, end, dtypes.float64))
    out = fresh(site, points.shape, dtypes.float64, "between")
    line = flat(site, converted(site, _with_axis(site, points), dtypes.float64), "x")
    inlined(site, definitions.INTERPOLATE, line, knots, values, _flat_view(site, out), *ends,
            Static(has_nan))  # fmt: skip
    return Scalar(out.body, out.kind) if not points.rank else out


def _complex_interp(site: Site, x: Value, xp: Value, fp: Value, left: Value, right: Value) -> Value:
    """Return the interpolation of complex numbers, of each part by itself as in NumPy."""
    values = array_of(site, fp)
    require_elements(site, values, (0,), "interp")
    last = Scalar(values.at((values.shape[0] - 1,)), values.kind)
    ends = (
        Scalar(values.at((const(0),)), values.kind) if is_none(left) else left,
        last if is_none(right) else right,
    )
    parts = [
        interp(site, x, xp, part(site, values), *(part(site, end) for end in ends))
        for part in (real, imag)
    ]
    return operate(site.ctx, "complex", parts, site.span)
