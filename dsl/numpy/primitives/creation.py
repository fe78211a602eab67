"""Arrays out of nothing: filled ones, ranges, grids, identities, and copies of what is given."""

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
from ....lowering.ir.indexing import Affine, Symbol, const, floordiv, var
from ....lowering.ir.ops import OPS
from ...values.arrays import as_scalar, describe, elementwise, stack
from ...values.broadcasting import broadcast_to
from ...values.builder import compare, error
from ...values.call_site import (
    NO,
    NONE,
    NOT_CONSTANT,
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
    is_none,
    items_of,
    needs,
    static_bool,
    static_int,
    static_shape,
    takes,
    text_of,
)
from ...values.constant_tables import array_table
from ...values.memory_order import based, binds, if_fortran, of_operands
from ...values.stores import assign
from ...values.types import (
    BOOL,
    WEAK_BOOL,
    WEAK_COMPLEX,
    WEAK_FLOAT,
    WEAK_INT,
    Kind,
    cast,
    join_all,
)
from ...values.values import Array, Group, Masked, Scalar, Static, Value
from .averages import stored_once
from .elementwise import arithmetic, converted, where
from .joining import assigned, fitting, own_type
from .reshaping import is_in_order
from .shaping import elements
from .ufuncs import combine_of, strong_of
from .views import subscript

_PYTHON = {"b": WEAK_BOOL, "i": WEAK_INT, "u": WEAK_INT, "f": WEAK_FLOAT, "c": WEAK_COMPLEX}
"""What a NumPy number of each kind is as a Python one."""


def require_c_order(site: Site, order: Value) -> None:
    """Refuse (CdValueError CD0448) an order that new arrays cannot be asked to have in memory."""
    if not is_none(order):
        text_of(site, order, "the order of a new array", ("C", "K", "A"))


def _as_model(site: Site, made: Array, model: Array, order: Value) -> Array:
    """Return a new array with the order in memory that NumPy gives what is made like another."""
    require_c_order(site, order)
    if constant(order) == "C" or not site.ctx.orders:
        return made
    kept = of_operands(site.ctx, [model], model.shape)
    if constant(order) == "A":
        kept = if_fortran(site.ctx, model)
    return replace(made, order=kept) if made.rank == model.rank else made


def filled(site: Site, shape: tuple[Affine, ...], number: float, dtype: DType) -> Array:
    """Return an array of one constant."""
    body = cast(Const(number, dtypes.int64), dtype.compute)
    return Array(site.ctx.axes(len(shape)), shape, body, Kind(dtype), copied=True)


def filler(number: int) -> Callable[..., Value]:
    """Return `np.zeros`, `np.ones` or `np.empty` (which is zeros here)."""

    def body(site: Site, shape: Value, dtype: Value = NONE, order: Value = NONE) -> Value:
        require_c_order(site, order)
        sizes = static_shape(site, shape)
        return filled(site, sizes, number, dtype_of(site, dtype) or dtypes.float64)

    return body


def filler_like(number: int) -> Callable[..., Value]:
    """Return `np.zeros_like` and its kind."""

    def body(
        site: Site,
        a: Value,
        dtype: Value = NONE,
        order: Value = NONE,
        subok: Value = NONE,  # without a meaning where there are no subclasses of arrays
        shape: Value = NONE,
    ) -> Value:
        model = own_type(array_of(site, a))
        sizes = model.shape if is_none(shape) else static_shape(site, shape)
        made = filled(site, sizes, number, dtype_of(site, dtype) or model.kind.dtype)
        return _as_model(site, made, model, order)

    return body


def full(
    site: Site, shape: Value, fill_value: Value, dtype: Value = NONE, order: Value = NONE
) -> Value:
    """Return an array of one value, of that value's type."""
    require_c_order(site, order)
    element = dtype_of(site, dtype)
    if element is not None:
        fill_value = fitting(site, fill_value, element)
    return _spread(site, own_type(array_of(site, fill_value)), static_shape(site, shape))


def _spread(site: Site, value: Array, shape: tuple[Affine, ...]) -> Array:
    """Return a new array of a shape that a value is broadcast to."""
    made = broadcast_to(site.ctx, value, shape, site.span)
    return Array(made.axes, made.shape, made.body, Kind(made.kind.dtype), copied=True)


def full_like(
    site: Site, a: Value, fill_value: Value, dtype: Value = NONE, shape: Value = NONE
) -> Value:
    """Return an array of one value with the shape and type of another array."""
    model = own_type(array_of(site, a))
    sizes = model.shape if is_none(shape) else static_shape(site, shape)
    element = dtype_of(site, dtype) or model.kind.dtype
    made = _spread(site, array_of(site, fitting(site, fill_value, element)), sizes)
    return _as_model(site, made, model, NONE)


def array(
    site: Site,
    object: Value,
    dtype: Value = NONE,
    *,
    copy: Value = YES,
    order: Value = NONE,
    ndmin: Value = ZERO,
) -> Value:
    """Return a new array of what is given: an array, numbers, or sequences of them."""
    if isinstance(object, Masked):
        return array_of(site, object)
    element = dtype_of(site, dtype)
    made = object if isinstance(object, Array) else _nested(site, object, element)
    forced = None if is_none(copy) else static_bool(site, copy, "copy")
    copied = forced is True or made is not object
    if element is not None and made.kind.dtype is not element:
        made, copied = array_of(site, converted(site, made, element)), True
    if copied and forced is False:
        raise error(
            "CD0453", CdValueError, f"{describe(object)} cannot be had without a copy", site.span,
            helps=("leave `copy=False` out", "or take what there is: `np.asarray(...)`"),
        )  # fmt: skip
    model = made = _leading(site, made, static_int(site, ndmin, "ndmin"))
    if not copied:
        return made if is_none(order) else asarray(site, made, order=order)
    made = Array(made.axes, made.shape, made.body, Kind(made.kind.dtype), copied=True)
    return _as_model(site, made, model, order)


def _leading(site: Site, array: Array, rank: int) -> Array:
    """Return the array with axes of size 1 before its own, up to so many."""
    more = max(rank - array.rank, 0)
    axes = (*site.ctx.axes(more), *array.axes)
    return replace(array, axes=axes, shape=(*(const(1),) * more, *array.shape))


def _nested(site: Site, value: Value, dtype: DType | None = None) -> Array:
    """Return sequences as an array; Python numbers have their full type here, or have to fit."""
    items = items_of(value)
    if items is None or not items:
        if dtype is not None and array_of(site, value).kind in (WEAK_INT, WEAK_FLOAT):
            value = assigned(site, value, dtype)
        return own_type(array_of(site, value))
    table = array_table(site.ctx, value, site.span)
    if table is not None:
        _require_table_fits(site, table, dtype)
        return table
    return stack(site.ctx, [_nested(site, item, dtype) for item in items], 0, site.span)


def _require_table_fits(site: Site, table: Array, dtype: DType | None) -> None:
    """Require that the numbers of a constant table fit into an element type."""
    if dtype is None or table.kind.dtype not in (dtypes.int64, dtypes.float64):
        return
    assert isinstance(table.body, Read), "a table is read"
    data = site.ctx.tables[table.body.node]
    for end in (data.min(), data.max()):
        assigned(site, Static(end.item()), dtype)


def asarray(site: Site, a: Value, dtype: Value = NONE, order: Value = NONE) -> Value:
    """Return the array itself where it is one of that type, else a new one."""
    require_c_order(site, order)
    element = dtype_of(site, dtype)
    if isinstance(a, Array) and element in (None, a.kind.dtype):
        return a if constant(order) != "C" else in_c_order(site, a)
    return array(site, a, dtype)


def in_c_order(site: Site, a: Value, dtype: Value = NONE) -> Value:
    """Return the array itself where it is one of that type that lies in C order, else a new one."""
    found = asarray(site, a, dtype)
    if isinstance(found, Array) and not found.rank:
        return array(site, found, ndmin=ONE)
    if not isinstance(found, Array):
        return found
    found = based(site.ctx, found, site.span)
    lies = is_in_order(site, found, range(found.rank))
    if lies is None:
        made = site.ctx.materialize(found, "copy", site.span)
        binds(site.ctx, made, found, site.span)  # refused where somebody could tell
        return made
    return found if lies else array(site, found, order=Static("C"))


def copy(site: Site, a: Value, order: Value = Static("K")) -> Value:
    """Return a new array with the same elements."""
    return array(site, a, order=order)


def copy_method(site: Site, a: Value, order: Value = Static("C")) -> Value:
    """Return `x.copy()`, whose elements are in C order."""
    return array(site, a, order=order)


def new_array(
    site: Site, shape: Value, dtype: Value = NONE, buffer: Value = NONE, order: Value = NONE
) -> Value:
    """Return `np.ndarray(shape, dtype)`."""
    require_c_order(site, order)
    if not is_none(buffer):
        raise error("CD0453", CdTypeError, "`np.ndarray` over a buffer is not supported", site.span)
    return filler(0)(site, shape, dtype)


def sized(site: Site, extent: Affine) -> Affine:
    """Return a computed size: not negative, without run-time parameters."""
    site.ctx.prefer_static(extent)
    return site.ctx.known.maximum(extent, const(0))


def arange(
    site: Site, start: Value, stop: Value = NONE, step: Value = ONE, dtype: Value = NONE
) -> Value:
    """Return evenly spaced numbers below `stop`."""
    if is_none(stop):
        start, stop = ZERO, start
    element = dtype_of(site, dtype)
    scalars = [as_scalar(value, site.span, "an end of `arange`") for value in (start, stop, step)]
    own = reduce(dtypes.promote, (strong_of(one.kind) for one in scalars), dtypes.int64)
    made = element or own
    if own.kind == "c" or made.kind not in "iuf":
        text = f"`arange` counts in integers and floats, not in {own if own.kind == 'c' else made}"
        raise error("CD0453", CdTypeError, text, site.span, helps=("convert its result",))
    axis = site.ctx.symbol("i")
    if own.kind == "f":
        extent, first, second = _float_range(site, start, stop, step, made)
        body = _element(axis, first, second, made)
    else:
        by = static_int(site, step, "the step of `arange`")
        if by == 0:
            raise error("CD0453", CdValueError, "the step of `arange` is zero", site.span)
        low, last = index_in(site, start, "the start"), index_in(site, stop, "the stop")
        gap = last - low + (by - 1) if by > 0 else low - last - (by + 1)
        extent = sized(site, floordiv(gap, const(abs(by))))
        if extent.constant != 0:
            fitting(site, Scalar(Position(low), WEAK_INT), made)
        body = Position(var(axis) * by + low)
        if made.kind == "f" and made.bits < 64 and (by != 1 or low.constant != 0):
            body = _element(axis, Position(low), Position(low + by), made)
    return Array((axis,), (extent,), cast(body, made.compute), Kind(made), copied=True)


def _float_range(
    site: Site, start: Value, stop: Value, step: Value, dtype: DType
) -> tuple[Affine, Expr, Expr]:
    """Return the length of a range of floats, and its first two numbers, as float64.

    Python's numbers have to fit the type that the range is made in. A step towards the end leaves
    the first number however long it is, so that an infinite one does.
    """
    plain: list[Any] = [constant(value) for value in (start, stop, step)]
    if all(isinstance(number, int | float | np.number) for number in plain):
        first, last, by = map(float, plain)
        if not by or not math.isfinite((last - first) / by):
            shown = f"{first:g}, {last:g}, {by:g}"
            raise error("CD0453", CdValueError, f"`arange` has no length for {shown}", site.span)
        length = max(math.ceil((last - first) / by), last > first if by > 0 else last < first)
        for number in (plain[0], plain[0] + plain[2])[:length]:
            if not isinstance(number, np.generic):
                assigned(site, Static(number), dtype)
        low, high = (
            Const(number, dtypes.float64) for number in (first, first + by if length > 1 else first)
        )
        return const(length), low, high
    first_value = stored_once(site, converted(site, start, dtypes.float64), "start")
    by_value = stored_once(site, converted(site, step, dtypes.float64), "step")
    first_expr, by_expr = (as_scalar(v, site.span).expr for v in (first_value, by_value))
    stop_expr = as_scalar(converted(site, stop, dtypes.float64), site.span).expr
    gap = Apply(OPS["sub"], (stop_expr, first_expr), dtypes.float64)
    ratio = Apply(OPS["div"], (gap, by_expr), dtypes.float64)
    finite = Apply(OPS["isfinite"], (ratio,), dtypes.bool_)
    text, helps = "`arange` has no length for {0}, {1}, {2}", ("give other ends, or another step",)
    fault = Fault("CD0453", "CdValueError", text, helps)
    site.ctx.check(finite, fault, (first_expr, stop_expr, by_expr), site.span, Domain())
    rising, behind, before = (
        Apply(OPS["lt"], pair, dtypes.bool_)
        for pair in (
            (Const(0.0, dtypes.float64), by_expr), (first_expr, stop_expr), (stop_expr, first_expr)
        )
    )  # fmt: skip
    ahead = Select(rising, behind, before)
    whole = cast(Apply(OPS["ceil"], (ratio,), dtypes.float64), dtypes.int64)
    many = Apply(OPS["max"], (whole, cast(ahead, dtypes.int64)), dtypes.int64)
    extent = site.ctx.known.maximum(var(site.ctx.let("n", many, site.span)), const(0))
    following = Apply(OPS["add"], (first_expr, by_expr), dtypes.float64)
    second = Select(compare("lt", const(1), extent), following, first_expr)
    stored = stored_once(site, Scalar(second, Kind(dtypes.float64)), "second")
    return extent, first_expr, as_scalar(stored, site.span).expr


def _element(axis: Symbol, first: Expr, second: Expr, dtype: DType) -> Expr:
    """Return a number of a range, worked out in its own type from the first two as NumPy does.

    These two are themselves, which the difference need not give again: nor the first, where it is
    infinite.
    """
    compute = dtype.compute
    low, high = (cast(cast(end, dtype), compute) for end in (first, second))
    place = cast(Position(var(axis)), compute)
    step = Apply(OPS["sub"], (high, low), compute)
    element = Apply(OPS["add"], (low, Apply(OPS["mul"], (place, step), compute)), compute)
    if isinstance(low, Const) and isinstance(high, Const) and _is_exact(low, high):
        return element
    given = Select(compare("eq", var(axis), const(0)), low, high)
    return Select(compare("lt", var(axis), const(2)), given, element)


def _is_exact(low: Const, high: Const) -> bool:
    """Whether the first number and the difference give both again, their signs too."""
    with np.errstate(all="ignore"):
        given = np.array([low.value, high.value], low.dtype.numpy)
        made = given[0] + np.arange(2) * (given[1] - given[0])
        return bool(made.astype(given.dtype).tobytes() == given.tobytes())


def linspace(
    site: Site,
    start: Value,
    stop: Value,
    num: Value = Static(50),
    endpoint: Value = YES,
    retstep: Value = NO,
    dtype: Value = NONE,
) -> Value:
    """Return `num` evenly spaced numbers between two ends, each step rounded to their type."""
    size = extent_of(site, num, "the number of points")
    closed = static_bool(site, endpoint, "endpoint")
    gaps = size - 1 if closed else size
    ends = [array_of(site, value) for value in (start, stop)]
    if any(end.rank for end in ends):
        raise error("CD0453", CdTypeError, "`linspace` takes numbers as its ends here", site.span)
    kind = strong_of(join_all([end.kind for end in ends]))
    kind = dtypes.float64 if kind.kind in "biu" else kind
    first, last = (converted(site, value, kind) for value in (start, stop))
    if all(constant(value) is NOT_CONSTANT for value in (start, stop)):
        first, last = stored_once(site, first, "start"), stored_once(site, last, "stop")
    single = gaps.constant is not None and gaps.constant <= 0
    number = Scalar(Position(site.ctx.known.maximum(gaps, const(1))), Kind(dtypes.int64, True))
    gap = converted(site, arithmetic(site, "-", last, first), kind)
    step = arithmetic(site, "/", gap, number)
    step = Static(float("nan")) if single else step
    step = stored_once(site, step, "step") if isinstance(step, Scalar) else step
    axis = site.ctx.symbol("i")
    at = Array((axis,), (size,), cast(Position(var(axis)), kind), Kind(kind), copied=True)
    way = converted(site, arithmetic(site, "*", at, step), kind)
    line = arithmetic(site, "+", way, first)
    if single:
        line = arithmetic(site, "+", arithmetic(site, "*", at, ZERO), first)
    elif closed:
        line = _ending(site, array_of(site, line), last)
    element = dtype_of(site, dtype)
    if element is not None:
        if element.kind in "iu":
            line = elementwise(site.ctx, combine_of(np.floor), [line], site.span)
        line = converted(site, line, element)
    if not static_bool(site, retstep, "retstep"):
        return line
    if gaps.constant is None and not site.ctx.known.nonnegative(gaps - 1):
        some = Scalar(compare("ge", gaps, const(1)), BOOL)
        step = where(site, some, step, Static(float("nan")))
    return Group((line, step))


def _ending(site: Site, line: Array, last: Value) -> Array:
    """Return the line with its last element exactly the given end."""
    dtype = line.kind.dtype.compute
    end = cast(as_scalar(last, site.span).expr, dtype)
    place, size = var(line.axes[0]), line.shape[0]
    test = compare("eq", place, size - 1)
    if not site.ctx.known.nonnegative(size - 2):  # one alone is the start
        several = compare("ge", place, const(1))
        test = Apply(OPS["and"], (test, several), dtypes.bool_)
    return Array(line.axes, line.shape, Select(test, end, line.body), line.kind, copied=True)


def logspace(
    site: Site,
    start: Value,
    stop: Value,
    num: Value = Static(50),
    endpoint: Value = YES,
    base: Value = Static(10.0),
    dtype: Value = NONE,
) -> Value:
    """Return numbers evenly spaced on a logarithmic scale."""
    line = arithmetic(site, "**", base, linspace(site, start, stop, num, endpoint))
    element = dtype_of(site, dtype)
    return line if element is None else converted(site, line, element)


def eye(site: Site, N: Value, M: Value = NONE, k: Value = ZERO, dtype: Value = NONE) -> Value:
    """Return ones on a diagonal, zeros elsewhere."""
    rows = extent_of(site, N, "a size")
    columns = rows if is_none(M) else extent_of(site, M, "a size")
    return _banded(site, rows, columns, k, dtype, "eq")


def identity(site: Site, n: Value, dtype: Value = NONE) -> Value:
    """Return the identity matrix."""
    return eye(site, n, NONE, ZERO, dtype)


def tri(site: Site, N: Value, M: Value = NONE, k: Value = ZERO, dtype: Value = NONE) -> Value:
    """Return ones on and below a diagonal. A size below 0 is 0, as NumPy has it."""
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
    """Return `np.finfo` or `np.iinfo`, known now."""

    def body(site: Site, dtype: Value) -> Value:
        element = dtype_of(site, dtype) if not isinstance(dtype, Array) else dtype.kind.dtype
        if element is None:
            raise needs(site, "the type", dtype)
        return Static(function(element.numpy))

    return takes(getattr(function, "__name__", "finfo"), body)


def make_dtype(site: Site, dtype: Value) -> Value:
    """Return `np.dtype(...)`."""
    found = dtype_of(site, dtype)
    return dtype if found is None else Static(found.numpy)


def fill(site: Site, a: Value, value: Value) -> Value:
    """Write one value everywhere, in place."""
    array = array_of(site, a)
    if array_of(site, value).kind == WEAK_INT:
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
    """Return the values in another element type."""
    element = dtype_of(site, dtype)
    if element is None:
        element = dtypes.float64
    if not is_none(casting):
        _require_cast(site, strong_of(array_of(site, a).kind), element, casting)
    if constant(copy) is False and isinstance(a, Array) and a.kind == Kind(element):
        return a
    result = converted(site, a, element)
    if isinstance(result, Array):
        made = Array(result.axes, result.shape, result.body, result.kind, copied=True)
        return _as_model(site, made, array_of(site, a), order)
    if isinstance(a, Array) and isinstance(result, Scalar):
        return Array((), (), result.expr, result.kind, copied=True)
    return result


_CASTING = ("no", "equiv", "safe", "same_kind", "unsafe", "same_value")


def _require_cast(site: Site, source: DType, dtype: DType, casting: Value) -> None:
    """Refuse (CdTypeError CD0405) a cast that a rule of NumPy does not permit."""
    rule: Any = text_of(site, casting, "casting", _CASTING)
    if rule == "same_value":
        text = "the rule 'same_value' is not part of the language"
    elif np.can_cast(source.numpy, dtype.numpy, rule):
        return
    else:
        text = f"{source} values are not cast to {dtype} under the rule {rule!r}"
    helps = ("leave `casting=` out to convert all values",)
    raise error("CD0405", CdTypeError, text, site.span, helps=helps)


def item(site: Site, a: Value, *args: Value) -> Value:
    """Return one element of an array as a Python number."""
    made = array_of(site, a)
    position = items_of(args[0]) if len(args) == 1 else args
    chosen = position if position is not None else args
    if not chosen:
        chosen = (ZERO,) * made.rank
        if any(size.constant != 1 for size in made.shape):
            raise error(
                "CD0453", CdValueError, f"`item` of {describe(made)} needs a position", site.span
            )
    if len(chosen) == 1 and made.rank > 1:
        made = elements(site, made)
    found = as_scalar(subscript(site.ctx, made, list(chosen), site.span, "the array"), site.span)
    weak = _PYTHON[found.kind.dtype.kind]
    return Scalar(cast(found.expr, weak.dtype), weak)
