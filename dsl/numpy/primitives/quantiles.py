"""Order statistics of sorted values: median, quantiles, percentiles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....base.diagnostic import CdTypeError, CdValueError
from ....lowering.ir import dtypes
from ....lowering.ir.assignments import Fault
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
from ...values.types import WEAK_INT
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
from .ufuncs import combine_of


def median(site: Site, a: Value, axis: Value = NONE, *, keepdims: Value = NO) -> Value:
    """Return the middle of the sorted values, the mean of two where their number is even."""
    kept = static_bool(site, keepdims, "keepdims")
    if isinstance(a, Masked):
        out = _middle_of_selection(site, a, axis)
        return _shaped(site, out, (const(1),) if kept else ())
    (middle,) = _each_quantile(site, a, (0.5,), axis, kept, "median")
    return middle


def quantile(site: Site, a: Value, q: Value, axis: Value = NONE, *, keepdims: Value = NO) -> Value:
    """Return values below which shares of the elements lie, between two elements on a line.

    Shares in a list give float64, as in NumPy, where it is a float64 array.
    """
    return _quantiles(site, a, q, axis, static_bool(site, keepdims, "keepdims"), 1)


def percentile(
    site: Site, a: Value, q: Value, axis: Value = NONE, *, keepdims: Value = NO
) -> Value:
    """Return `quantile` of shares in percent."""
    return _quantiles(site, a, q, axis, static_bool(site, keepdims, "keepdims"), 100)


def _quantiles(site: Site, a: Value, q: Value, axis: Value, keepdims: bool, unit: int) -> Value:
    """Return the quantiles for one `q` or several, which counts in parts of `unit`."""
    if isinstance(a, Masked):
        return _open_quantiles(site, a, q, axis, keepdims, unit)
    several = items_of(q)
    items = (q,) if several is None else several
    line = isinstance(q, Array) and q.rank == 1
    if line or not all(map(_is_known, items)):
        return _open_quantiles(site, a, q, axis, keepdims, unit)
    own = array_of(site, a).kind.dtype
    whole = unit == 1 and all(isinstance(constant(item), int) for item in items)
    if not whole:
        require_subtracted(site, array_of(site, a), "quantile" if unit == 1 else "percentile")
    shares = [static_number(site, item, "a share") / unit for item in items]
    fractions = unit != 1 or any(isinstance(constant(item), float) for item in items)
    wide = fractions and (several is not None or isinstance(constant(q), np.float64))
    found = _each_quantile(site, a, shares, axis, keepdims, "quantile", wide)
    if whole and own.kind in "biu":  # these are elements
        found = [converted(site, one, own) for one in found]
    return found[0] if several is None else stacked(site, Group(tuple(found)))


def _is_known(item: Value) -> bool:
    return constant(item) is not NOT_CONSTANT or position_of(item) is not None


def _open_quantiles(
    site: Site, a: Value, q: Value, axis: Value, keepdims: bool, unit: int
) -> Value:
    """Return the quantiles for shares that the run knows."""
    name = "quantile" if unit == 1 else "percentile"
    several = isinstance(q, Array) or items_of(q) is not None
    wide = several or isinstance(q, Scalar) and not q.kind.weak
    shape: tuple[Affine, ...] = (const(1),) if keepdims else ()
    if isinstance(a, Masked):
        require_subtracted(site, a.array, name)
        shares = _shares(site, q, unit)
        floats = Masked(array_of(site, converted_float(site, a.array)), a.mask, a.held)
        row, size = _selected(site, floats, axis, name)
        rows = as_rows(site, in_order(site, row))
    else:
        require_subtracted(site, array_of(site, a), name)
        lines, shape = _lines(site, a, axis, keepdims)
        shares = _shares(site, q, unit)
        rows = as_rows(site, in_order(site, lines))
        size = as_number(rows.shape[1])
    dtype = dtypes.float64 if wide else rows.kind.dtype
    out = fresh(site, (shares.shape[0], rows.shape[0]), dtype, "quantiles")
    inlined(site, definitions.QUANTILES, rows, size, shares, out)
    return _shaped(site, out, (*(shares.shape if several else ()), *shape))


def _shaped(site: Site, out: Array, shape: tuple[Affine, ...]) -> Value:
    """Return results in their shape; as a number where they have none."""
    found = reshaped(site, out, shape)
    return found if found.rank else Scalar(found.body, found.kind)


def _middle_of_selection(site: Site, a: Masked, axis: Value) -> Array:
    """Return the median of what a mask selects, which is parted in its own type."""
    dtype = a.array.kind.dtype
    row, size = _selected(site, a, axis, "median")
    half = arithmetic(site, "//", size, Static(2))
    below = arithmetic(site, "//", arithmetic(site, "-", size, Static(1)), Static(2))
    made = in_order(site, row) if dtype.bits <= 8 else parted(site, row, Group((below, half)))
    last = reducer("max")(site, a)
    out = fresh(
        site, (const(1),), array_of(site, converted_float(site, a.array)).kind.dtype, "median"
    )
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


def _shares(site: Site, q: Value, unit: int) -> Array:
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
    wide = converted(site, given, dtypes.float64)
    parts = array_of(site, arithmetic(site, "/", wide, Static(float(unit))))
    made = site.ctx.materialize(parts, "shares", site.span)
    low, high = (Const(end, dtypes.float64) for end in (0.0, 1.0))
    inside = [
        Apply(OPS[op], (made.body, end), dtypes.bool_) for op, end in (("ge", low), ("le", high))
    ]
    text = "a quantile takes shares between nothing and all, and is given {0} of all"
    fault = Fault("CD0442", "CdValueError", text, WAYS_OUT["CD0442"])
    test = Apply(OPS["and"], tuple(inside), dtypes.bool_)
    site.ctx.check(test, fault, (made.body,), site.span, Domain(made.ranges))
    return made


def _lines(site: Site, a: Value, axis: Value, keepdims: bool) -> tuple[Array, tuple[Affine, ...]]:
    """Return floats with the elements of each result as a line, and the shape of the results."""
    source = array_of(site, a)
    floats = array_of(site, converted_float(site, source))
    places: tuple[int, ...] = axes_of(site, axis, source.rank)
    if items_of(axis) is None:
        lines, _ = along(site, floats, axis, "quantile")
    else:
        require_ordered(site, floats, "quantile")
        lines = along_all(site, floats, places)
    require_elements(site, lines, (lines.rank - 1,), "quantile")
    if not keepdims:
        return lines, lines.shape[:-1]
    rank = range(source.rank)
    return lines, tuple(const(1) if n in places else source.shape[n] for n in rank)


def _each_quantile(
    site: Site, a: Value, shares: Sequence[float], axis: Value, keepdims: bool, name: str,
    wide: bool = False,
) -> list[Value]:  # fmt: skip
    """Return the quantiles for some shares: all are found by one partition, or one sort."""
    for share in shares:
        if not 0 <= share <= 1:
            text = f"`{name}` takes shares between nothing and all, and is given {share:g} of all"
            raise error("CD0442", CdValueError, text, site.span)
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


def _beside(site: Site, size: Affine, share: float, wide: bool) -> tuple[Pair, float | None]:
    """Return the places beside a share, and what part of the way between them it is; None for the
    middle of both."""
    if share == 0.5 and not wide:
        return (floordiv(size - 1, const(2)), floordiv(size, const(2))), None
    return _neighbours(site, size, share)


def _point(site: Site, made: Array, pair: Pair, part: float | None, wide: bool) -> Value:
    """Return the values at a part of the way between two elements of each line."""
    low, high = (_element(made, at) for at in pair)
    if part is None:
        return arithmetic(site, "/", arithmetic(site, "+", low, high), Static(2.0))
    return _between(site, low, high, part, wide)


def _neighbours(site: Site, size: Affine, share: float) -> tuple[tuple[Affine, Affine], float]:
    """Return the places beside a share of the way, and what part of the way between them it is."""
    number = static_int(site, as_number(size), "the number of values")
    position = share * (number - 1)
    below = min(int(np.floor(position)), number - 1)
    return (const(below), const(min(below + 1, number - 1))), position - below


def _between(site: Site, low: Array, high: Array, part: float, wide: bool) -> Value:
    """Return the point at a part of the way between two values, as NumPy rounds it.

    `wide` is that way taken in float64, rounded to their type before.
    """
    gap = arithmetic(site, "-", high, low)
    if wide:
        gap = converted(site, converted(site, gap, high.kind.dtype), dtypes.float64)
    if part >= 0.5:
        return arithmetic(site, "-", high, arithmetic(site, "*", gap, Static(1.0 - part)))
    return arithmetic(site, "+", low, arithmetic(site, "*", gap, Static(part)))
