"""Array creation: constants, ranges, identities, copies, and conversions of nested sequences."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from ....base.diagnostic import CdTypeError, CdValueError
from ....lowering.ir import dtypes
from ....lowering.ir.assignments import Fault
from ....lowering.ir.dtypes import DType
from ....lowering.ir.expressions import Apply, Const, Domain, Expr, Position, Read, Select
from ....lowering.ir.indexing import Affine, Symbol, const, floordiv, maximum, multiply, var
from ....lowering.ir.ops import OPS
from ...values.adapting import require_held
from ...values.arrays import as_scalar, describe, stack
from ...values.broadcasting import broadcast_to
from ...values.builder import compare, error
from ...values.byte_order import in_byte_order, is_swapped_dtype
from ...values.call_site import (
    NONE,
    ONE,
    YES,
    ZERO,
    Handler,
    Site,
    array_of,
    constant,
    dtype_of,
    extent_of,
    index_in,
    integer_of,
    is_none,
    is_numpy_scalar,
    items_of,
    needs,
    static_bool,
    static_int,
    static_shape,
    takes,
    text_of,
)
from ...values.constant_tables import array_table
from ...values.fix_hints import WAYS_OUT
from ...values.memory_order import based, binds, if_fortran, of_operands
from ...values.positions import negated_step
from ...values.stores import assign
from ...values.types import (
    WEAK_BOOL,
    WEAK_COMPLEX,
    WEAK_FLOAT,
    WEAK_INT,
    Kind,
    cast,
    join,
)
from ...values.values import Array, Listed, Masked, Scalar, Static, Value
from .averages import stored_once
from .casts import require_cast, require_int64
from .elementwise import arithmetic, converted
from .joining import assigned, fitting, with_strong_type
from .reshaping import is_in_order
from .shaping import at_least, elements
from .ufuncs import strong_of
from .views import subscript

_PYTHON_KINDS = {"b": WEAK_BOOL, "i": WEAK_INT, "u": WEAK_INT, "f": WEAK_FLOAT, "c": WEAK_COMPLEX}
"""The kind of the Python number that a NumPy scalar of each dtype kind converts to."""


def require_c_order(site: Site, order: Value) -> None:
    """Reject (CdValueError CD0448) a memory order that is not supported for new arrays."""
    if not is_none(order):
        text_of(site, order, "the order of a new array", ("C", "K", "A"))


def _set_model_order(site: Site, array: Array, model: Array, order: Value) -> Array:
    """Return a new array with the memory order that NumPy derives from a model and `order`."""
    require_c_order(site, order)
    if constant(order) == "C" or not site.ctx.orders:
        return array
    model_order = of_operands(site.ctx, [model], model.shape)
    if constant(order) == "A":
        model_order = if_fortran(site.ctx, model)
    return replace(array, order=model_order) if array.rank == model.rank else array


def filled(site: Site, shape: tuple[Affine, ...], number: float, dtype: DType) -> Array:
    """Return a virtual array of a shape and dtype, every element `number`."""
    body = cast(Const(number, dtypes.int64), dtype.compute)
    return Array(site.ctx.axes(len(shape)), shape, body, Kind(dtype), copied=True)


def filler(number: int) -> Callable[..., Value]:
    """Return the body of `np.zeros`, `np.ones` or `np.empty` (which is zeros here)."""

    def body(site: Site, shape: Value, dtype: Value = NONE, order: Value = NONE) -> Value:
        require_c_order(site, order)
        sizes = static_shape(site, shape)
        return filled(site, sizes, number, dtype_of(site, dtype) or dtypes.float64)

    return body


def filler_like(number: int) -> Callable[..., Value]:
    """Return the body of `np.zeros_like`, `np.ones_like` or `np.empty_like`."""

    def body(
        site: Site,
        a: Value,
        dtype: Value = NONE,
        order: Value = NONE,
        subok: Value = NONE,  # ignored: there are no subclasses of arrays
        shape: Value = NONE,
    ) -> Value:
        model = with_strong_type(array_of(site, a))
        sizes = model.shape if is_none(shape) else static_shape(site, shape)
        result = filled(site, sizes, number, dtype_of(site, dtype) or model.kind.dtype)
        return _set_model_order(site, result, model, order)

    return body


def full(
    site: Site, shape: Value, fill_value: Value, dtype: Value = NONE, order: Value = NONE
) -> Value:
    """Return `np.full`: an array of one value, of the value's dtype unless `dtype` is given."""
    require_c_order(site, order)
    element = dtype_of(site, dtype)
    if element is not None:
        fill_value = fitting(site, fill_value, element)
    return _broadcast_new(
        site, with_strong_type(array_of(site, fill_value)), static_shape(site, shape)
    )


def _broadcast_new(site: Site, value: Array, shape: tuple[Affine, ...]) -> Array:
    """Return a new array: a value broadcast to a shape."""
    result = broadcast_to(site.ctx, value, shape, site.span)
    return Array(result.axes, result.shape, result.body, Kind(result.kind.dtype), copied=True)


def full_like(
    site: Site, a: Value, fill_value: Value, dtype: Value = NONE, shape: Value = NONE
) -> Value:
    """Return `np.full_like`: an array of one value, of the shape and dtype of the model `a`."""
    model = with_strong_type(array_of(site, a))
    sizes = model.shape if is_none(shape) else static_shape(site, shape)
    element = dtype_of(site, dtype) or model.kind.dtype
    result = _broadcast_new(site, array_of(site, fitting(site, fill_value, element)), sizes)
    return _set_model_order(site, result, model, NONE)


def array(
    site: Site,
    object: Value,
    dtype: Value = NONE,
    *,
    copy: Value = YES,
    order: Value = NONE,
    ndmin: Value = ZERO,
) -> Value:
    """Return `np.array` of an array, a number or nested sequences; a copy by default.

    CdValueError CD0453 for `copy=False` where a copy is needed.
    """
    if isinstance(object, Masked):
        return array_of(site, object)
    element = dtype_of(site, dtype)
    object = _unlisted(site, object, element)
    result = object if isinstance(object, Array) else _stack_nested(site, object, element)
    requested = None if is_none(copy) else static_bool(site, copy, "copy")
    is_copy = requested is True or result is not object
    if element is not None and result.kind.dtype is not element:
        result, is_copy = array_of(site, converted(site, result, element)), True
    elif element is not None and not is_copy:
        result = in_byte_order(site.ctx, result, is_swapped_dtype(dtype), site.span)
        is_copy = result is not object
    if is_copy and requested is False:
        raise error(
            "CD0453", CdValueError, f"{describe(object)} cannot be had without a copy", site.span,
            helps=("leave `copy=False` out", "or take what there is: `np.asarray(...)`"),
        )  # fmt: skip
    model = result = _prepend_axes(site, result, static_int(site, ndmin, "ndmin"))
    if not is_copy:
        return result if is_none(order) else asarray(site, result, order=order)
    result = Array(result.axes, result.shape, result.body, Kind(result.kind.dtype), copied=True)
    return _set_model_order(site, result, model, order)


def _unlisted(site: Site, value: Value, dtype: DType | None) -> Value:
    """Return an argument that may be a list of Python numbers as an array.

    The integers among them have to fit in `dtype` (CdOverflowError CD0464).
    """
    if not isinstance(value, Array) or not value.listed:
        return value
    if dtype is not None and value.kind.dtype is dtypes.int64:
        require_held(site.ctx, replace(value, kind=WEAK_INT), dtype, site.span)
    return replace(value, listed=Listed.NO)


def _prepend_axes(site: Site, array: Array, rank: int) -> Array:
    """Return the array with leading axes of size 1 up to a rank (`ndmin`)."""
    count = max(rank - array.rank, 0)
    axes = (*site.ctx.axes(count), *array.axes)
    return replace(array, axes=axes, shape=(*(const(1),) * count, *array.shape))


def _stack_nested(site: Site, value: Value, dtype: DType | None = None) -> Array:
    """Return nested sequences as an array; constant ones become a table in the program.

    Python numbers become 64-bit ones, or have to fit in `dtype`, to which all items are converted.
    """
    if dtype is None:
        return with_strong_type(array_of(site, value))
    items, table = items_of(value), array_table(site.ctx, value, site.span)
    if table is not None:
        _require_table_fits(site, table, dtype)
        value = table
    elif items:
        return stack(site.ctx, [_stack_nested(site, x, dtype) for x in items], 0, site.span)
    elif array_of(site, value).kind in (WEAK_INT, WEAK_FLOAT):
        value = assigned(site, value, dtype)
    return array_of(site, converted(site, value, dtype))


def _require_table_fits(site: Site, table: Array, dtype: DType) -> None:
    """Require that the extremes of a constant table fit in an element type."""
    if table.kind.dtype not in (dtypes.int64, dtypes.float64):
        return
    assert isinstance(table.body, Read), "a table is read"
    data = site.ctx.tables[table.body.node]
    for end in (data.min(), data.max()):
        assigned(site, Static(end.item()), dtype)


def asarray(site: Site, a: Value, dtype: Value = NONE, order: Value = NONE) -> Value:
    """Return `np.asarray`: the argument itself if it is an array of the dtype, else a new array."""
    require_c_order(site, order)
    element = dtype_of(site, dtype)
    a = _unlisted(site, a, element)
    if isinstance(a, Array) and element in (None, a.kind.dtype):
        if element is not None:
            a = in_byte_order(site.ctx, a, is_swapped_dtype(dtype), site.span)
        return a if constant(order) != "C" else _in_c_order(site, a)
    return array(site, a, dtype, order=order)


def contiguous(site: Site, a: Value, dtype: Value = NONE) -> Value:
    """Return `np.ascontiguousarray`: the argument if it has the dtype and C order, else a copy.

    The result has rank 1 at least.
    """
    result = asarray(site, a, dtype)
    if isinstance(result, Array) and not result.rank:
        return at_least(1, site, result)
    return _in_c_order(site, result) if isinstance(result, Array) else result


def _in_c_order(site: Site, given: Array) -> Array:
    """Return an array if it has C order, else a copy that has."""
    result = based(site.ctx, given, site.span)
    is_contiguous = is_in_order(site, result, range(result.rank))
    if is_contiguous is None:
        copied = site.ctx.materialize(result, "copy", site.span)
        binds(site.ctx, copied, result, site.span)  # rejected where a view would be observable
        return copied
    return result if is_contiguous else array_of(site, array(site, result, order=Static("C")))


def copy(site: Site, a: Value, order: Value = Static("K")) -> Value:
    """Return `np.copy`: a new array of the same elements, in the memory order of `a` by default."""
    return array(site, a, order=order)


def copy_method(site: Site, a: Value, order: Value = Static("C")) -> Value:
    """Return `x.copy()`: a new array, in C order by default; of a scalar of NumPy itself."""
    return a if is_numpy_scalar(a) else array(site, a, order=order)


def new_array(
    site: Site, shape: Value, dtype: Value = NONE, buffer: Value = NONE, order: Value = NONE
) -> Value:
    """Return `np.ndarray(shape, dtype)`, zeros. CdTypeError CD0453 with a buffer."""
    require_c_order(site, order)
    if not is_none(buffer):
        raise error("CD0453", CdTypeError, "`np.ndarray` over a buffer is not supported", site.span)
    return filler(0)(site, shape, dtype)


def sized(site: Site, extent: Affine) -> Affine:
    """Return a computed extent clamped at 0; its integer parameters are made static if possible."""
    site.ctx.prefer_static(extent)
    return site.ctx.assumptions.maximum(extent, const(0))


def arange(
    site: Site, start: Value, stop: Value = NONE, step: Value = ONE, dtype: Value = NONE
) -> Value:
    """Return `np.arange`: `start + i * step` below `stop`, in `dtype` or the promoted dtype.

    CdTypeError CD0453 for bool and complex dtypes, CdValueError CD0453 for a zero step or a length
    that is not finite.
    """
    if is_none(stop):
        start, stop = ZERO, start
    element = dtype_of(site, dtype)
    scalars = [as_scalar(value, site.span, "an end of `arange`") for value in (start, stop, step)]
    promoted = reduce(dtypes.promote, (strong_of(scalar.kind) for scalar in scalars), dtypes.int64)
    result_dtype = element or promoted
    if promoted.kind == "c" or result_dtype.kind not in "iuf":
        text = (
            "`arange` counts in integers and floats, not in "
            f"{promoted if promoted.kind == 'c' else result_dtype}"
        )
        raise error("CD0453", CdTypeError, text, site.span, helps=("convert its result",))
    axis = site.ctx.symbol("i")
    if promoted.kind == "f":
        extent, first, second = _float_range(site, start, stop, step, result_dtype)
        body = _range_element(axis, first, second, result_dtype)
    else:
        stride = integer_of(site, step, "the step of `arange`")
        low = index_in(site, start, "the start")
        extent = _number_of_steps(site, _distance(site, start, stop, low), stride)
        if extent.constant != 0:
            fitting(site, Scalar(Position(low), WEAK_INT), result_dtype)
        body = Position(multiply(var(axis), stride) + low)
        if (
            result_dtype.kind == "f"
            and result_dtype.bits < 64
            and (stride.constant != 1 or low.constant != 0)
        ):
            body = _range_element(axis, Position(low), Position(low + stride), result_dtype)
    return Array(
        (axis,), (extent,), cast(body, result_dtype.compute), Kind(result_dtype), copied=True
    )


def _number_of_steps(site: Site, distance: Affine, stride: Affine) -> Affine:
    """Return the number of steps within a distance, which is 0 for those of the other sign.

    CdValueError CD0453 for a step of zero.
    """
    text, step, ctx = "the step of `arange` is zero", stride.constant, site.ctx
    if step == 0:
        raise error("CD0453", CdValueError, text, site.span)
    if step is not None:
        gap = distance + (step - 1) if step > 0 else -distance - (step + 1)
        return sized(site, floordiv(gap, const(abs(step))))
    ctx.prefer_static(distance)
    if ctx.assumptions.nonnegative(stride - 1):
        return ctx.assumptions.maximum(floordiv(distance - 1, stride) + 1, const(0))
    fault = Fault("CD0453", "CdValueError", text, WAYS_OUT.get("CD0453", ()))
    ctx.check(compare("ne", stride, const(0)), fault, (), site.span, Domain())
    sides = ((distance, stride), (-distance, negated_step(stride)))
    up, down = (floordiv(gap - 1, maximum(by, const(1))) + 1 for gap, by in sides)
    most = (Position(maximum(number, const(0))) for number in (up, down))
    number = ctx.let("count", Select(compare("ge", stride, const(1)), *most), site.span)
    ctx.assumptions = ctx.assumptions.with_facts(var(number))
    return var(number)


def _distance(site: Site, start: Value, stop: Value, low: Affine) -> Affine:
    """Return `stop - start`, which wraps in the type that two small integers of NumPy have."""
    kinds = [as_scalar(value, site.span).kind for value in (start, stop)]
    common = join(*kinds)
    if common.weak or common.dtype.bits == 64 or constant(start) == 0:
        return index_in(site, stop, "the stop") - low
    return index_in(site, arithmetic(site, "-", stop, start), "the stop")


def _float_range(
    site: Site, start: Value, stop: Value, step: Value, dtype: DType
) -> tuple[Affine, Expr, Expr]:
    """Return the length of a range of floats and its first two elements, as float64.

    As in NumPy what is computed of the three numbers has their type, and is rounded to it. Python
    numbers have to fit in `dtype`. A step towards `stop` gives at least the first element, however
    long it is, even an infinite step, for which the quotient of the length is 0.
    """
    constants: list[Any] = [constant(value) for value in (start, stop, step)]
    if all(isinstance(number, int | float | np.number) for number in constants):
        first, last, stride = constants
        return _constant_range(site, first, last, stride, dtype)
    kinds = [as_scalar(value, site.span).kind for value in (start, stop, step)]
    if all(kind.weak or kind.dtype is dtypes.float64 for kind in kinds):
        start, stop, step = (converted(site, x, dtypes.float64) for x in (start, stop, step))
    start, step = stored_once(site, start, "start"), stored_once(site, step, "step")
    first_expr, stop_expr, by_expr = (_rounded(site, value) for value in (start, stop, step))
    gap = arithmetic(site, "-", stop, start)
    ratio = _rounded(site, arithmetic(site, "/", _as_rounded(site, gap), step))
    finite = Apply(OPS["isfinite"], (ratio,), dtypes.bool_)
    text, helps = "`arange` has no length for {0}, {1}, {2}", ("give other ends, or another step",)
    fault = Fault("CD0453", "CdValueError", text, helps)
    site.ctx.check(finite, fault, (first_expr, stop_expr, by_expr), site.span, Domain())
    zero, gap_expr = Const(0.0, dtypes.float64), _rounded(site, gap)
    rising, is_above, is_below = (
        Apply(OPS["lt"], pair, dtypes.bool_)
        for pair in ((zero, by_expr), (zero, gap_expr), (gap_expr, zero))
    )
    is_nonempty = Select(rising, is_above, is_below)
    ceiling = cast(Apply(OPS["ceil"], (ratio,), dtypes.float64), dtypes.int64)
    count = Apply(OPS["max"], (ceiling, cast(is_nonempty, dtypes.int64)), dtypes.int64)
    extent = site.ctx.assumptions.maximum(var(site.ctx.let("n", count, site.span)), const(0))
    next_expr = _rounded(site, arithmetic(site, "+", start, step))
    second = Select(compare("lt", const(1), extent), next_expr, first_expr)
    stored = stored_once(site, Scalar(second, Kind(dtypes.float64)), "second")
    return extent, first_expr, as_scalar(stored, site.span).expr


def _constant_range(
    site: Site, start: Any, stop: Any, step: Any, dtype: DType
) -> tuple[Affine, Expr, Expr]:
    """Return the length and the first two elements of a range of numbers that are known."""
    with np.errstate(all="ignore"):
        gap = stop - start
        ratio = float(gap / step) if step else math.nan
        second = start + step
    if not math.isfinite(ratio):
        shown = ", ".join(f"{float(number):g}" for number in (start, stop, step))
        raise error("CD0453", CdValueError, f"`arange` has no length for {shown}", site.span)
    length = max(math.ceil(ratio), bool(gap > 0 if step > 0 else gap < 0))
    for number in (start, second)[:length]:
        if not isinstance(number, np.generic):
            assigned(site, Static(number), dtype)
    low, high = (
        Const(float(number), dtypes.float64) for number in (start, second if length > 1 else start)
    )
    return const(length), low, high


def _as_rounded(site: Site, value: Value) -> Scalar:
    """Return a number rounded to its type, in which it may be computed with more digits."""
    scalar = as_scalar(value, site.span)
    dtype = scalar.kind.dtype
    return Scalar(cast(cast(scalar.expr, dtype), dtype.compute), scalar.kind)


def _rounded(site: Site, value: Value) -> Expr:
    """Return a number rounded to its type, as float64."""
    return cast(_as_rounded(site, value).expr, dtypes.float64)


def _range_element(axis: Symbol, first: Expr, second: Expr, dtype: DType) -> Expr:
    """Return element `i` of a range, computed in its dtype from the first two as NumPy does.

    The first two are selected, not computed: `first + i * (second - first)` is not bit-identical to
    them in general, because the difference is rounded, or infinite.
    """
    compute = dtype.compute
    low, high = (cast(cast(end, dtype), compute) for end in (first, second))
    position = cast(Position(var(axis)), compute)
    step = Apply(OPS["sub"], (high, low), compute)
    element = Apply(OPS["add"], (low, Apply(OPS["mul"], (position, step), compute)), compute)
    if isinstance(low, Const) and isinstance(high, Const) and _is_bit_identical(low, high):
        return element
    first_two = Select(compare("eq", var(axis), const(0)), low, high)
    return Select(compare("lt", var(axis), const(2)), first_two, element)


def _is_bit_identical(low: Const, high: Const) -> bool:
    """Whether `low + i * (high - low)` is bit-identical to `low` and `high` for `i` of 0 and 1."""
    with np.errstate(all="ignore"):
        expected = np.array([low.value, high.value], low.dtype.numpy)
        computed = expected[0] + np.arange(2) * (expected[1] - expected[0])
        return bool(computed.astype(expected.dtype).tobytes() == expected.tobytes())


def eye(site: Site, N: Value, M: Value = NONE, k: Value = ZERO, dtype: Value = NONE) -> Value:
    """Return `np.eye`: an N x M matrix of ones on diagonal `k`, zeros elsewhere."""
    rows = extent_of(site, N, "a size")
    columns = rows if is_none(M) else extent_of(site, M, "a size")
    return _banded(site, rows, columns, k, dtype, "eq")


def identity(site: Site, n: Value, dtype: Value = NONE) -> Value:
    """Return `np.identity`: the identity matrix of order `n`."""
    return eye(site, n, NONE, ZERO, dtype)


def tri(site: Site, N: Value, M: Value = NONE, k: Value = ZERO, dtype: Value = NONE) -> Value:
    """Return `np.tri`: ones on and below diagonal `k`. A negative size is 0, as in NumPy."""
    rows = sized(site, index_in(site, N, "a size"))
    columns = rows if is_none(M) else sized(site, index_in(site, M, "a size"))
    return _banded(site, rows, columns, k, dtype, "le")


def _banded(site: Site, rows: Affine, columns: Affine, k: Value, dtype: Value, op: str) -> Array:
    element = dtype_of(site, dtype) or dtypes.float64
    axes = site.ctx.axes(2)
    test = compare(op, var(axes[1]) - var(axes[0]), index_in(site, k, "the offset"))
    one, zero = (cast(Const(n, dtypes.int64), element.compute) for n in (1, 0))
    body = Select(test, one, zero)
    return Array(axes, (rows, columns), body, Kind(element), copied=True)


def finfo(function: Callable[..., object]) -> Handler:
    """Return the handler of `np.finfo` or `np.iinfo`, whose result is static."""

    def body(site: Site, dtype: Value) -> Value:
        element = dtype_of(site, dtype) if not isinstance(dtype, Array) else dtype.kind.dtype
        if element is None:
            raise needs(site, "the type", dtype)
        return Static(function(element.numpy))

    return takes(getattr(function, "__name__", "finfo"), body)


def make_dtype(site: Site, dtype: Value) -> Value:
    """Return `np.dtype(...)`, static."""
    name = constant(dtype)
    if isinstance(name, str) and name[:1] in ("<", ">", "!"):
        dtype = Static(np.dtype(name))
    if is_swapped_dtype(dtype):
        return dtype  # to be compared; only one of an argument is the `dtype=` of a new array
    element = dtype_of(site, dtype)
    return dtype if element is None else Static(element.numpy)


def fill(site: Site, a: Value, value: Value) -> Value:
    """Store one value to every element of an array: `a.fill(value)`."""
    array, given = array_of(site, a), array_of(site, value)
    if given.rank:
        text = f"`fill` takes one number, and is given {describe(given)}"
        helps = ("assign: `a[...] = b`",)
        raise error("CD0452", CdValueError, text, site.span, helps=helps)
    if given.kind == WEAK_INT:
        value = fitting(site, value, array.kind.dtype)
    assign(site.ctx, array, value, site.span)
    return NONE


def astype(
    site: Site,
    a: Value,
    dtype: Value,
    order: Value = NONE,
    casting: Value = NONE,
    copy: Value = YES,
) -> Value:
    """Return `a.astype(dtype)`: the values converted, a copy unless `copy=False` allows none.

    CdTypeError CD0405 for a conversion that `casting` does not permit.
    """
    element = dtype_of(site, dtype) or dtypes.float64
    if not is_none(casting):
        require_cast(site, array_of(site, a), element, dtype, casting)
    if not static_bool(site, copy, "copy") and isinstance(a, Array) and a.kind == Kind(element):
        return asarray(site, a, dtype, order=order)
    result = converted(site, a, element)
    if isinstance(result, Array):
        copied = Array(result.axes, result.shape, result.body, result.kind, copied=True)
        return _set_model_order(site, copied, array_of(site, a), order)
    if isinstance(a, Array) and isinstance(result, Scalar):
        return Array((), (), result.expr, result.kind, copied=True)
    return result


def item(site: Site, a: Value, *args: Value) -> Value:
    """Return `a.item(...)`: one element as a Python number.

    CdValueError CD0453 without a position, unless the array has a single element.
    """
    array = array_of(site, a)
    subscripts = items_of(args[0]) if len(args) == 1 else args
    index = subscripts if subscripts is not None else args
    if not index:
        index = (ZERO,) * array.rank
        if any(size.constant != 1 for size in array.shape):
            raise error(
                "CD0453", CdValueError, f"`item` of {describe(array)} needs a position", site.span
            )
    if len(index) == 1 and array.rank > 1:
        array = elements(site, array)
    element = as_scalar(subscript(site.ctx, array, list(index), site.span, "the array"), site.span)
    weak = _PYTHON_KINDS[element.kind.dtype.kind]
    require_int64(site, element, weak)
    return Scalar(cast(element.expr, weak.dtype), weak)
