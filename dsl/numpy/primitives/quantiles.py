"""Order statistics of sorted values: median, quantiles, percentiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce as fold_left
from typing import TYPE_CHECKING, Any

import numpy as np

from ....base.diagnostic import CdTypeError, CdValueError
from ....base.lazy_import import LazyModule
from ....lowering.ir import dtypes
from ....lowering.ir.assignments import Fault
from ....lowering.ir.dtypes import DType, promote
from ....lowering.ir.expressions import Apply, Const, Domain
from ....lowering.ir.indexing import Affine, const, floordiv, var
from ....lowering.ir.ops import OPS
from ...values.arrays import describe, elementwise
from ...values.builder import error
from ...values.call_site import (
    NO,
    NONE,
    NOT_CONSTANT,
    Site,
    array_of,
    axes_of,
    constant,
    items_of,
    position_of,
    static_bool,
    static_int,
    static_number,
)
from ...values.fix_hints import WAYS_OUT
from ...values.memory_order import of_rest
from ...values.types import WEAK_INT, Kind, cast
from ...values.values import Array, Group, Masked, Scalar, Static, Value
from ..library import definitions
from .elementwise import arithmetic, converted, converted_float, where
from .joining import stacked
from .partition import turns_of
from .python_reductions import as_number
from .reductions import (
    accumulate,
    operand,
    reducer,
    require_elements,
    require_ordered,
    require_subtracted,
)
from .reshaping import reshaped
from .shaping import ravel, remap
from .sort_strategy import as_rows, fresh, in_order, inlined, parted
from .sorting import along, along_all
from .ufuncs import combine_of, strong_of

if TYPE_CHECKING:
    from . import powers
else:  # what few programs need
    powers = LazyModule(".powers", __package__)


def median(site: Site, a: Value, axis: Value = NONE, *, keepdims: Value = NO) -> Value:
    """Return the middle of the sorted values, the mean of two where their number is even."""
    kept = static_bool(site, keepdims, "keepdims")
    if isinstance(a, Masked):
        out = _middle_of_selection(site, a, axis)
        return _shaped(site, out, (const(1),) if kept else ())
    (made,) = _each_quantile(site, a, (0.5,), axis, kept, "median")
    if not isinstance(made, Array):
        return made
    values = array_of(site, a)
    axes = axes_of(site, axis, values.rank)
    rest = [n for n in range(values.rank) if kept or n not in axes]
    order = of_rest(site.ctx, values, rest) if len(axes) == 1 else None
    return replace(made, order=order) if site.ctx.orders else made


def quantile(site: Site, a: Value, q: Value, axis: Value = NONE, *, keepdims: Value = NO) -> Value:
    """Return values below which shares of the elements lie, between two elements on a line.

    Shares in a list give float64, as in NumPy, where it is a float64 array.
    """
    return _in_c_order(_quantiles(site, a, q, axis, static_bool(site, keepdims, "keepdims"), 1))


def _in_c_order(made: Value) -> Value:
    """Return a new array, which NumPy has in C order however it was computed."""
    return replace(made, order=()) if isinstance(made, Array) else made


def percentile(
    site: Site, a: Value, q: Value, axis: Value = NONE, *, keepdims: Value = NO
) -> Value:
    """Return `quantile` of shares in percent."""
    return _in_c_order(_quantiles(site, a, q, axis, static_bool(site, keepdims, "keepdims"), 100))


def _quantiles(site: Site, a: Value, q: Value, axis: Value, keepdims: bool, unit: int) -> Value:
    """Return the quantiles for one `q` or several, which counts in parts of `unit`."""
    several = items_of(q)
    items = (q,) if several is None else several
    given = _share_type(site, q)
    whole = unit == 1 and given.dtype.kind in "biu"
    if not whole:
        require_subtracted(site, _values(site, a), "quantile" if unit == 1 else "percentile")
    line = isinstance(q, Array) and q.rank == 1
    if isinstance(a, Masked) or line or not all(map(_is_known, items)):
        return _open_quantiles(site, a, q, axis, keepdims, unit, whole)
    shares = [_known_share(site, item, given, unit) for item in items]
    if whole:  # these are elements
        found = [_end(site, a, share, axis, keepdims) for share in shares]
    elif given.weak:
        found = _each_quantile(site, a, shares, axis, keepdims, "quantile")
    else:
        dtype = _result_type(array_of(site, a).kind.dtype, given, unit)
        found = _each_quantile(site, a, shares, axis, keepdims, "quantile", dtype)
        found = [converted(site, one, dtype) for one in found]
    return found[0] if several is None else stacked(site, Group(tuple(found)))


def _values(site: Site, a: Value) -> Array:
    """Return the array of some values, also of those that a mask selects from it."""
    return a.array if isinstance(a, Masked) else array_of(site, a)


def _share_type(site: Site, q: Value) -> Kind:
    """Return the type that NumPy makes an array of `q` with; weak for a number of Python, which
    adapts to the values."""
    items = items_of(q)
    if items is None:
        kind = powers.kind_of(site, q)
        return kind if kind.weak and kind.dtype.kind in "if" else Kind(strong_of(kind))
    kinds = [strong_of(powers.kind_of(site, item)) for item in items]
    return Kind(fold_left(promote, kinds) if kinds else dtypes.float64)


def _in_parts(given: DType, unit: int) -> DType:
    """Return the type of shares in parts of `unit`."""
    whole = given.kind in "biu"
    return dtypes.float64 if whole and unit != 1 else given


def _result_type(own: DType, given: Kind, unit: int) -> DType:
    """Return the type of points between values, at shares that do not adapt to them."""
    return promote(own, _in_parts(given.dtype, unit))


def _known_share(site: Site, item: Value, given: Kind, unit: int) -> Any:
    """Return a share, in parts of all, as a number of its own type."""
    share: Any = static_number(site, item, "a share")
    if not given.weak:
        share = given.dtype.numpy.type(share)
    if unit != 1:
        share = share / unit
    if not 0 <= share <= 1:
        text = f"`quantile` takes shares between nothing and all, and is given {share:g} of all"
        raise error("CD0442", CdValueError, text, site.span, helps=WAYS_OUT["CD0442"])
    return share


def _end(site: Site, a: Value, share: int, axis: Value, keepdims: bool) -> Value:
    """Return the least element, or the largest one."""
    return reducer("max" if share else "min")(site, a, axis, keepdims=Static(keepdims))


def _is_known(item: Value) -> bool:
    return constant(item) is not NOT_CONSTANT or position_of(item) is not None


def _open_quantiles(
    site: Site, a: Value, q: Value, axis: Value, keepdims: bool, unit: int, whole: bool
) -> Value:
    """Return the quantiles for shares that the run knows; where they are `whole`, elements."""
    several = isinstance(q, Array) or items_of(q) is not None
    given, own = _share_type(site, q), _values(site, a).kind.dtype
    shares = _shares(site, q, given.dtype, unit)
    shape: tuple[Affine, ...] = (const(1),) if keepdims else ()
    if isinstance(a, Masked):
        values = a.array if whole else array_of(site, converted_float(site, a.array))
        lines, size = _selected(site, Masked(values, a.mask, a.held), axis, "quantile")
    else:
        lines, shape = _lines(site, a if whole else converted_float(site, a), axis, keepdims)
        size = as_number(lines.shape[-1])
    weak = whole or given.weak
    dtype = lines.kind.dtype if weak else _result_type(own, given, unit)
    places = _places(site, shares, size)
    rows = as_rows(site, in_order(site, lines))
    out = fresh(site, (places.shape[0], rows.shape[0]), dtype, "quantiles")
    text = definitions.ELEMENTS if whole else definitions.QUANTILES
    inlined(site, text, rows, size, places, out)
    return _shaped(site, out, (*(places.shape if several else ()), *shape))


def _shaped(site: Site, out: Array, shape: tuple[Affine, ...]) -> Value:
    """Return results in their shape; as a number where they have none."""
    found = reshaped(site, out, shape)
    return found if found.rank else Scalar(found.body, found.kind)


def _places(site: Site, shares: Array, size: Value) -> Array:
    """Return how far along so many values each share is, rounded to the type of the shares."""
    last = array_of(site, arithmetic(site, "-", size, Static(1)))
    ends = arithmetic(site, "*", shares, Scalar(last.body, WEAK_INT))
    return site.ctx.materialize(array_of(site, ends), "places", site.span)


def _middle_of_selection(site: Site, a: Masked, axis: Value) -> Array:
    """Return the median of what a mask selects, which is parted in its own type."""
    dtype = a.array.kind.dtype
    row, size = _selected(site, a, axis, "median")
    half = arithmetic(site, "//", size, Static(2))
    below = arithmetic(site, "//", arithmetic(site, "-", size, Static(1)), Static(2))
    made = in_order(site, row) if dtype.bits <= 8 else parted(site, row, Group((below, half)))
    last = reducer("max")(site, a)
    middle = dtypes.float64 if dtype.kind in "biu" else dtype
    out = fresh(site, (const(1),), middle, "median")
    inlined(site, definitions.MIDDLE, as_rows(site, made), below, half, last, out)
    return out


def _selected(site: Site, a: Masked, axis: Value, name: str) -> tuple[Array, Value]:
    """Return a row of which what a mask selects comes first in order, and how many that are: all
    others are what comes last, NaN or the largest number."""
    axes_of(site, axis, 1)
    array, test = operand(site, a)
    axes = tuple(range(array.rank))
    require_ordered(site, array, name)
    require_elements(site, array, axes, name, test)
    ones = Array(array.axes, array.shape, Const(1, dtypes.int64), WEAK_INT)
    size = accumulate(site, OPS["add"], ones, axes, WEAK_INT, where=test)
    own = array.kind.dtype
    top = {"f": np.nan, "b": True}.get(own.kind) or 2 ** (own.bits - (own.kind == "i")) - 1
    return array_of(site, ravel(site, where(site, a.mask, array, Static(top)))), size


def _shares(site: Site, q: Value, dtype: DType, unit: int) -> Array:
    """Return shares of the run as an array along one axis, in parts of all: they are checked."""
    items = items_of(q)
    if items is None and not (isinstance(q, Array) and q.rank):
        items = (q,)
    given = array_of(site, q) if items is None else stacked(site, Group(items))
    if not isinstance(given, Array) or given.rank != 1 or given.kind.dtype.kind not in "biuf":
        raise error(
            "CD0443", CdTypeError,
            f"`q` has to be a number, or numbers along one axis, and is {describe(q)}", site.span,
            helps=("give a list of numbers: `[0.25, 0.75]`",),
        )  # fmt: skip
    parts = converted(site, given, dtypes.int64 if dtype.kind == "b" else dtype)
    if unit != 1:
        parts = arithmetic(site, "/", parts, Static(unit))
    made = site.ctx.materialize(array_of(site, parts), "shares", site.span)
    share = cast(made.body, dtypes.float64)
    low, high = (Const(end, dtypes.float64) for end in (0.0, 1.0))
    inside = [Apply(OPS[op], (share, end), dtypes.bool_) for op, end in (("ge", low), ("le", high))]
    text = "a quantile takes shares between nothing and all, and is given {0} of all"
    fault = Fault("CD0442", "CdValueError", text, WAYS_OUT["CD0442"])
    test = Apply(OPS["and"], tuple(inside), dtypes.bool_)
    site.ctx.check(test, fault, (share,), site.span, Domain(made.ranges))
    return made


def _lines(site: Site, a: Value, axis: Value, keepdims: bool) -> tuple[Array, tuple[Affine, ...]]:
    """Return the elements of each result as a line, and the shape of the results."""
    source = array_of(site, a)
    places: tuple[int, ...] = axes_of(site, axis, source.rank)
    if items_of(axis) is None:
        lines, _ = along(site, source, axis, "quantile")
    else:
        require_ordered(site, source, "quantile")
        lines = along_all(site, source, places)
    require_elements(site, lines, (lines.rank - 1,), "quantile")
    if not keepdims:
        return lines, lines.shape[:-1]
    rank = range(source.rank)
    return lines, tuple(const(1) if n in places else source.shape[n] for n in rank)


def _each_quantile(
    site: Site,
    a: Value,
    shares: Sequence[Any],
    axis: Value,
    keepdims: bool,
    name: str,
    wide: DType | None = None,
) -> list[Value]:
    """Return the points at some shares of the values in order, all by one partition, or one sort.

    `wide` is the type that they are found in, None for that of the values.
    """
    source = array_of(site, a)
    floats = array_of(site, converted_float(site, source))
    places: tuple[int, ...] = axes_of(site, axis, source.rank)
    if items_of(axis) is None:
        lines, _ = along(site, floats, axis, name)
    else:
        require_ordered(site, floats, name)
        lines = along_all(site, floats, places)
    require_elements(site, lines, (lines.rank - 1,), name)
    size = lines.shape[-1]
    beside = [_beside(site, size, share, wide) for share in shares]
    turns = turns_of(lines, tuple(at for pair, _ in beside for at in pair), rising=True)
    made = in_order(site, lines) if turns is None else parted(site, lines, turns)
    last = _element(made, size - 1)
    if turns is not None:
        last = array_of(site, reducer("max")(site, made, Static(-1)))
    missing = elementwise(site.ctx, combine_of(np.isnan), [last], site.span)
    found = [_point(site, made, pair, part, wide) for pair, part in beside]
    results = [array_of(site, where(site, missing, last, one)) for one in found]
    if keepdims:
        axes = site.ctx.axes(source.rank)
        kept = [n for n in range(source.rank) if n not in places]
        shape = [source.shape[n] if n in kept else const(1) for n in range(source.rank)]
        return [remap(one, axes, shape, [var(axes[n]) for n in kept]) for one in results]
    return [one if one.rank else Scalar(one.body, one.kind) for one in results]


def _element(made: Array, at: Affine) -> Array:
    """Return one element of each line."""
    return remap(made, made.axes[:-1], made.shape[:-1], (*(var(x) for x in made.axes[:-1]), at))


Pair = tuple[Affine, Affine]


def _beside(site: Site, size: Affine, share: Any, wide: DType | None) -> tuple[Pair, float | None]:
    """Return the places beside a share, and what part of the way between them it is; None for the
    middle of both."""
    if share == 0.5 and wide is None:
        return (floordiv(size - 1, const(2)), floordiv(size, const(2))), None
    return _neighbours(site, size, share)


def _point(site: Site, made: Array, pair: Pair, part: float | None, wide: DType | None) -> Value:
    """Return the values at a part of the way between two elements of each line."""
    low, high = (_element(made, at) for at in pair)
    if part is None:
        return arithmetic(site, "/", arithmetic(site, "+", low, high), Static(2.0))
    return _between(site, low, high, part, wide)


def _neighbours(site: Site, size: Affine, share: Any) -> tuple[Pair, float]:
    """Return the places beside a share of the way, and what part of the way between them it is."""
    number = static_int(site, as_number(size), "the number of values")
    with np.errstate(over="ignore"):
        position = min(share * (number - 1), number - 1)  # in the type of the share
    below = int(np.floor(position))
    return (const(below), const(min(below + 1, number - 1))), float(position - below)


def _between(site: Site, low: Array, high: Array, part: float, wide: DType | None) -> Value:
    """Return the point at a part of the way between two values, as NumPy rounds it.

    `wide` is the type that the way is taken in, rounded to theirs before.
    """
    gap = arithmetic(site, "-", high, low)
    if wide is not None:
        gap = converted(site, converted(site, gap, high.kind.dtype), wide)
    if part >= 0.5:
        return arithmetic(site, "-", high, arithmetic(site, "*", gap, Static(1.0 - part)))
    return arithmetic(site, "+", low, arithmetic(site, "*", gap, Static(part)))
