"""Scans along an axis (ufunc.accumulate), and covariances, polynomials, integrals, norms.

A scan is a sequential loop: out[n] = op(out[n - 1], x[n]), a loop-carried dependence of distance 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ....base.diagnostic import CdTypeError, CdValueError
from ....lowering.ir import dtypes
from ....lowering.ir.assignments import For
from ....lowering.ir.dtypes import DType
from ....lowering.ir.expressions import Const, Read
from ....lowering.ir.indexing import const, var
from ....lowering.ir.indexing import minimum as index_min
from ....lowering.ir.ops import OPS
from ...values.arrays import cheap_or_stored, describe, elementwise, operate, with_sums_stored
from ...values.builder import error
from ...values.call_site import (
    NO,
    NONE,
    NOT_CONSTANT,
    ONE,
    YES,
    ZERO,
    Body,
    Site,
    array_of,
    axes_in_order,
    axes_of,
    axis_of,
    constant,
    dtype_of,
    is_none,
    real_of,
    static_bool,
    static_int,
    static_number,
)
from ...values.memory_order import in_k_order
from ...values.types import Kind, cast
from ...values.values import Array, Group, Scalar, Static, Value
from .averages import at_least_zero, mean, stored_once
from .contraction import matmul
from .differences import diff, shifted
from .elementwise import arithmetic, clip, converted, converted_float, imag, real
from .joining import concatenate
from .python_reductions import as_number
from .reductions import accumulate, count_nonzero, number_axis, reducer, truth_reducer
from .shaping import at_least, expand_dims, ravel, remap, squeeze, transpose
from .ufunc_reduction import combined, folded_dtype
from .ufuncs import combine_of, strong_of

REDUCERS: dict[np.ufunc, str] = {
    np.add: "sum", np.multiply: "prod", np.maximum: "max", np.minimum: "min",
    np.logical_and: "all", np.logical_or: "any", np.bitwise_and: "bitand",
    np.bitwise_or: "bitor", np.bitwise_xor: "bitxor",
}  # fmt: skip
"""The ufuncs with a neutral element -> the name of the reduction by them."""


def ufunc_reduce(ufunc: np.ufunc, name: str) -> Body:
    """Return the handler of `ufunc.reduce`, which reduces the first axis by default."""

    def body(
        site: Site, array: Value, axis: Value = ZERO, dtype: Value = NONE, *, keepdims: Value = NO
    ) -> Value:
        if name in ("sum", "prod"):
            return reducer(name)(site, array, axis, dtype, keepdims=keepdims)
        element = dtype_of(site, dtype)
        if name in ("any", "all"):
            if element not in (None, dtypes.bool_):
                text = f"`{ufunc.__name__}.reduce` gives bools, and is asked for {element}"
                helps = ("convert its result: `.astype(...)`",)
                raise error("CD0404", CdTypeError, text, site.span, helps=helps)
            return truth_reducer(name)(site, array, axis, keepdims=keepdims)
        if element is not None:
            array = converted(site, array, element)
        if name in ("max", "min"):
            return reducer(name)(site, array, axis, keepdims=keepdims)
        values = array_of(site, array)
        if values.kind.dtype.kind not in "biu":
            text = f"`{ufunc.__name__}` is not defined for {describe(values)}"
            hint = "convert to integers first: `x.astype(np.int64)`, or compare: `x > 0`"
            raise error("CD0404", CdTypeError, text, site.span, helps=(hint,))
        keep_dims = static_bool(site, keepdims, "keepdims")
        axes = axes_of(site, axis, values.rank)
        return accumulate(site, OPS[name], values, axes, Kind(values.kind.dtype), keep_dims)

    return body


def cumulative(name: str, one_axis: bool = False) -> Body:
    """Return the handler of `np.cumsum` or `np.cumprod`.

    With `one_axis` a value of another rank than 1 needs an axis (CdTypeError CD0452): it is not
    flattened.
    """
    ufunc = np.add if name == "sum" else np.multiply

    def body(site: Site, a: Value, axis: Value = NONE, dtype: Value = NONE) -> Value:
        values = array_of(site, a)
        if is_none(axis) and one_axis and values.rank != 1:
            text = f"`cumulative_sum` of {describe(values)} needs an axis"
            raise error("CD0452", CdTypeError, text, site.span, helps=("name it: `axis=0`",))
        if is_none(axis if one_axis else number_axis(site, values, axis)):
            values, axis = array_of(site, ravel(site, at_least(1, site, values))), ZERO
        element = dtype_of(site, dtype) or values.kind.dtype.summed
        return _scan_axis(site, ufunc, values, axis_of(site, axis, values.rank), element)

    return body


def ufunc_accumulate(ufunc: np.ufunc) -> Body:
    """Return the handler of `ufunc.accumulate`, which scans the first axis by default."""

    def body(site: Site, array: Value, axis: Value = ZERO, dtype: Value = NONE) -> Value:
        values = array_of(site, array)
        operand_dtype = values.kind.dtype
        element = dtype_of(site, dtype)
        if element is None and ufunc in (np.add, np.multiply):
            element = operand_dtype.summed
        elif element is None or ufunc not in (np.add, np.multiply):
            if ufunc in REDUCERS:
                pair = [values if element is None else converted(site, values, element)] * 2
                elementwise(site.ctx, combine_of(ufunc), pair, site.span)  # raises CD0404
            element = folded_dtype(site, ufunc, operand_dtype, element)
            if element is not operand_dtype:
                values = array_of(site, converted(site, values, element))
        return _scan_axis(site, ufunc, values, axis_of(site, axis, values.rank), element)

    return body


def _scan_axis(site: Site, ufunc: np.ufunc, values: Array, axis: int, dtype: DType) -> Array:
    """Return the inclusive scan of an axis by `ufunc`, an array of the shape of `values`.

    The loop over the axis is sequential: an iteration reads the element of the previous one.
    """
    ctx = site.ctx
    values = with_sums_stored(ctx, values, "values", site.span)
    node = ctx.node("running", values.shape, dtype)
    size = values.shape[axis]
    first_shape = tuple(
        index_min(s, const(1)) if n == axis else s for n, s in enumerate(values.shape)
    )
    subscripts = tuple(map(var, values.axes))
    first_slice = Array(values.axes, first_shape, Read(node, subscripts, site.span), Kind(dtype))
    ctx.store(first_slice, cast(values.body, dtype), site.span)
    step = ctx.symbol(values.axes[axis].name)
    other_dims = [n for n in range(values.rank) if n != axis]
    names = ctx.axes(values.rank)
    current = tuple(var(step) if n == axis else var(names[n]) for n in range(values.rank))
    previous = tuple(var(step) - 1 if n == axis else at for n, at in enumerate(current))
    sides = (Read(node, previous, site.span), values.at(current))
    target = Array(
        tuple(names[n] for n in other_dims), tuple(values.shape[n] for n in other_dims),
        Read(node, current, site.span), Kind(dtype),
    )  # fmt: skip
    with ctx.block() as out:
        ctx.store(target, cast(combined(site, ufunc, target, *sides), dtype), site.span)
    counts = ufunc in REDUCERS
    ctx.emit(For(step, const(1), size, 1, tuple(out), site.span, counts=counts))
    return in_k_order(ctx, ctx.whole(node, site.span), values)


def cov(
    site: Site,
    m: Value,
    y: Value = NONE,
    rowvar: Value = YES,
    bias: Value = NO,
    ddof: Value = NONE,
) -> Value:
    """Return the covariance matrix of variables in rows; those of `y` follow those of `m`."""
    in_rows = static_bool(site, rowvar, "rowvar")
    table = _variables(site, m, in_rows)
    if table.shape[0].constant == 0:  # of no variables, whatever `y` has, as in NumPy
        none = site.ctx.node("covariance", (const(0), const(0)), dtypes.float64)
        return site.ctx.whole(none, site.span)
    if not is_none(y):
        one_row = array_of(site, y).shape[:1] == (const(1),)  # which NumPy leaves as it is
        others = _variables(site, y, in_rows or one_row)
        table = array_of(site, concatenate(site, Group((table, others))))
    table = cheap_or_stored(site.ctx, table, "values", site.span)
    if is_none(ddof):
        ddof = ZERO if static_bool(site, bias, "bias") else ONE
    freedom = _whole(site, ddof)
    centre = stored_once(site, mean(site, table, ONE, keepdims=YES), "mean")
    centred = stored_once(site, arithmetic(site, "-", table, centre), "centred")
    transposed = elementwise(
        site.ctx, combine_of(np.conjugate), [transpose(site, centred)], site.span
    )
    product = matmul(site, centred, transposed)
    number = arithmetic(site, "-", as_number(table.shape[1]), freedom)
    number = at_least_zero(site, number, isinstance(freedom, Static))
    factor = elementwise(site.ctx, combine_of(np.divide), [Static(1.0), number], site.span)
    if isinstance(factor, Scalar):
        site.ctx.guarded.add(factor.expr)  # NumPy divides by zero without an error
    return squeeze(site, arithmetic(site, "*", product, factor))


def _whole(site: Site, ddof: Value) -> Static | Scalar:
    """Return `ddof` of `cov`. CdValueError CD0444 where it is static and not whole."""
    freedom = real_of(site, ddof, "ddof")
    number = freedom.value if isinstance(freedom, Static) else 0.0
    if isinstance(number, float) and not number.is_integer():
        text = f"`ddof` of `cov` has to be an integer, and is {number}"
        helps = ("write a whole number: `1`",)
        raise error("CD0444", CdValueError, text, site.span, helps=helps)
    return freedom


def _variables(site: Site, value: Value, in_rows: bool) -> Array:
    """Return a matrix with a variable in each row; a value of rank 1 is one variable."""
    array = array_of(site, value)
    if array.rank > 2:
        text = f"`cov` takes one or two axes, and is given {describe(array)}"
        raise error("CD0452", CdTypeError, text, site.span)
    wide = dtypes.promote(strong_of(array.kind), dtypes.float64)
    table = array_of(site, at_least(2, site, converted(site, array, wide)))
    return table if in_rows or array.rank < 2 else array_of(site, transpose(site, table))


def corrcoef(site: Site, x: Value, y: Value = NONE, rowvar: Value = YES) -> Value:
    """Return the correlation matrix of variables in rows; those of `y` follow those of `x`."""
    table = array_of(site, stored_once(site, cov(site, x, y, rowvar), "covariance"))
    if not table.rank:
        return arithmetic(site, "/", table, table)
    axis = site.ctx.symbol("i")
    line = real(site, remap(table, (axis,), table.shape[:1], (var(axis), var(axis))))
    spread = stored_once(site, elementwise(site.ctx, combine_of(np.sqrt), [line], site.span), "std")
    column = array_of(site, spread)
    names = site.ctx.axes(2)
    rows = remap(column, names, (column.shape[0], const(1)), (var(names[0]),))
    ratio = arithmetic(site, "/", arithmetic(site, "/", table, rows), spread)
    if table.kind.dtype.kind != "c":
        return clip(site, ratio, Static(-1.0), Static(1.0))
    parts = [clip(site, part(site, ratio), Static(-1.0), Static(1.0)) for part in (real, imag)]
    return operate(site.ctx, "complex", parts, site.span)


def polyval(site: Site, p: Value, x: Value) -> Value:
    """Return a polynomial at many points, highest power first, by Horner's rule.

    Coefficients of rank above 1 have the powers along axis 0; each row is broadcast with `x`.
    """
    factors = array_of(site, p)
    if not factors.rank:
        text = "`polyval` takes an array of coefficients, and is given one number"
        raise error("CD0452", CdTypeError, text, site.span, helps=("put it into a list: `[c]`",))
    size = static_int(site, as_number(factors.shape[0]), "the number of coefficients")
    points = array_of(site, x)
    x = points if points.rank else Scalar(points.body, Kind(strong_of(points.kind)))
    result = _zeros_like(site, x)
    if not size and isinstance(result, Scalar):  # NumPy's `zeros_like`
        return Array((), (), result.expr, Kind(strong_of(result.kind)), copied=True)
    for n in range(size):
        names = site.ctx.axes(factors.rank - 1)
        factor = remap(factors, names, factors.shape[1:], (const(n), *map(var, names)))
        result = arithmetic(site, "+", arithmetic(site, "*", result, x), factor)
    return result


def _zeros_like(site: Site, x: Value) -> Value:
    """Return a zero for every element, whatever its value: a product with 0 may be -0.0 or NaN."""
    zero = Const(0, dtypes.int64)
    return elementwise(site.ctx, lambda pair: (cast(zero, pair[0].dtype), pair[1]), [x], site.span)


def trapezoid(
    site: Site,
    y: Value,
    x: Value = NONE,
    dx: Value = Static(1.0),
    axis: Value = Static(-1),
) -> Value:
    """Return the integral along an axis by the trapezoidal rule.

    CdShapeError CD0301 where `x` has another size than the axis of `y`.
    """
    values = cheap_or_stored(site.ctx, array_of(site, y), "values", site.span)
    dim = axis_of(site, axis, values.rank)
    size = site.ctx.assumptions.maximum(values.shape[dim] - 1, const(0))
    pair = arithmetic(site, "+", shifted(values, dim, 1, size), shifted(values, dim, 0, size))
    width = dx if is_none(x) else _widths(site, array_of(site, x), values, axis)
    area = arithmetic(site, "/", arithmetic(site, "*", pair, width), Static(2.0))
    return reducer("sum")(site, area, axis)


def _widths(site: Site, points: Array, values: Array, axis: Value) -> Value:
    """Return the distances of adjacent points, to be broadcast with the other axes of `values`."""
    if not points.rank:
        text = "`x` of `trapezoid` is an array of points, and is given one number"
        helps = ("of points at one distance give that: `dx=0.5`",)
        raise error("CD0452", CdValueError, text, site.span, helps=helps)
    if points.rank > 1:
        return diff(site, points, axis=axis)
    gaps = array_of(site, diff(site, points))
    dim = axis_of(site, axis, values.rank)
    number, other = points.shape[0], values.shape[dim]
    if number.constant != 2 and other.constant != 2:  # as in NumPy one gap is broadcast
        what = f"`x` and axis {dim} of `y` in `trapezoid`"
        site.ctx.equal_extents(number, other, what, site.span)
    names = site.ctx.axes(values.rank)
    shape = [gaps.shape[0] if n == dim else const(1) for n in range(values.rank)]
    return remap(gaps, names, shape, (var(names[dim]),))


_ORDERS_OF_VECTORS = "`np.inf`, `-np.inf`, or a number"
_ORDERS_OF_MATRICES = "`'fro'`, 1, -1, `np.inf` or `-np.inf`"


def norm(
    site: Site, x: Value, ord: Value = NONE, axis: Value = NONE, keepdims: Value = NO
) -> Value:
    """Return a vector or matrix norm. CdTypeError CD0456 for norms that need an SVD.

    CdValueError CD0456 for an order, or a number of axes, that has no norm.
    """
    values = array_of(site, converted_float(site, x))
    axes = axes_in_order(site, axis, values.rank)
    kind = constant(ord)
    _require_norm(site, values, kind, len(axes), is_none(axis))
    if len(axes) == 1:
        return _vector_norm(site, values, axes, ord, keepdims)
    if kind in (None, "fro", "f"):
        return _vector_norm(site, values, axes, NONE, keepdims)
    if len(axes) == 2 and kind in (1, -1, math.inf, -math.inf):
        assert isinstance(kind, int | float)
        result = _summed_norm(site, values, kind, axes)
        if not static_bool(site, keepdims, "keepdims"):
            return result
        return expand_dims(site, result, Group(tuple(map(Static, axes))))
    raise error(
        "CD0456", CdTypeError,
        f"the norm {kind!r} of {describe(values)} is not part of the language", site.span,
        helps=("compute it outside and pass it in",),
    )  # fmt: skip


def _summed_norm(site: Site, values: Array, kind: float, axes: tuple[int, ...]) -> Value:
    """Return the largest or least sum of the columns (1, -1) or rows (infinities) of matrices."""
    rows, columns = axes
    summed_dim, kept_dim = (rows, columns) if abs(kind) == 1 else (columns, rows)
    size = elementwise(site.ctx, combine_of(np.absolute), [values], site.span)
    sums = reducer("sum")(site, size, Static(summed_dim))
    remaining = Static(kept_dim - (kept_dim > summed_dim))
    if kind > 0:
        return reducer("max")(site, sums, remaining, initial=Static(0))
    return reducer("min")(site, sums, remaining)


def _require_norm(site: Site, values: Array, kind: object, rank: int, of_all: bool) -> None:
    """Refuse (CdValueError CD0456) an order of the norm that NumPy does not define for the rank."""
    if kind is None and (of_all or rank in (1, 2)):
        return
    if rank not in (1, 2):
        text = f"a norm is over one or two axes, and is asked over {rank} of {describe(values)}"
        hint = "name them: `axis=0`, `axis=(0, 1)`; of all elements: `np.linalg.norm(x.ravel())`"
        raise error("CD0456", CdValueError, text, site.span, helps=(hint,))
    if rank == 1:
        return
    orders = (1, -1, 2, -2, math.inf, -math.inf, "fro", "f", "nuc", NOT_CONSTANT)
    if rank == 2 and kind not in orders:
        text, ways = f"a matrix has no norm of order {kind!r}", _ORDERS_OF_MATRICES
        raise error("CD0456", CdValueError, text, site.span, helps=(f"write {ways}",))


def _vector_norm(
    site: Site, values: Array, axes: Sequence[int], ord: Value, keepdims: Value
) -> Value:
    """Return the norm of the vectors of the elements along axes.

    CdValueError CD0456 for the name of an order, which no norm of a vector has.
    """
    kind = constant(ord)
    if isinstance(kind, str):
        text, ways = f"a vector has no norm of order {kind!r}", _ORDERS_OF_VECTORS
        raise error("CD0456", CdValueError, text, site.span, helps=(f"write {ways}",))
    size = elementwise(site.ctx, combine_of(np.absolute), [values], site.span)
    over = Group(tuple(map(Static, axes)))
    if kind is None or kind == 2:
        squares = arithmetic(site, "**", size, Static(2))
        total = reducer("sum")(site, squares, over, keepdims=keepdims)
        return elementwise(site.ctx, combine_of(np.sqrt), [total], site.span)
    if kind == math.inf:
        return reducer("max")(site, size, over, keepdims=keepdims, initial=Static(0))
    if kind == -math.inf:
        return reducer("min")(site, size, over, keepdims=keepdims)
    if kind == 0:
        dtype = array_of(site, size).kind.dtype
        return converted(site, count_nonzero(site, size, over, keepdims=keepdims), dtype)
    power = static_number(site, ord, "the order of the norm")
    raised = arithmetic(site, "**", size, Static(power))
    power_sum = reducer("sum")(site, raised, over, keepdims=keepdims)
    return arithmetic(site, "**", power_sum, Static(1.0 / power))


def vector_norm(
    site: Site, x: Value, *, axis: Value = NONE, keepdims: Value = NO, ord: Value = NONE
) -> Value:
    """Return the vector norm of all elements, or of those along some axes."""
    values = array_of(site, converted_float(site, x))
    if not values.rank and is_none(axis):
        return _vector_norm(site, array_of(site, ravel(site, values)), (0,), ord, NO)
    return _vector_norm(site, values, axes_of(site, axis, values.rank), ord, keepdims)


def matrix_norm(site: Site, x: Value, *, keepdims: Value = NO, ord: Value = Static("fro")) -> Value:
    """Return the norms of a stack of matrices over the last two axes."""
    return norm(site, x, ord, Group((Static(-2), Static(-1))), keepdims)
