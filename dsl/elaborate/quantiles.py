"""Order statistics of sorted values: median, quantiles, percentiles."""

from __future__ import annotations

import numpy as np

from ...lowering.diagnostic import CdTypeError, CdValueError
from ...lowering.ir import dtypes
from ...lowering.ir.indexing import Affine, const, floordiv, var
from .arrays import describe, elementwise
from .context import error
from .elementwise import arithmetic, converted, converted_float, where
from .joining import stacked
from .ordering import in_order, parted
from .python_reductions import as_number
from .reductions import reducer, require_elements, require_ordered
from .selection import turns_of
from .shaping import remap
from .site import (
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
from .sorting import along, along_all
from .ufuncs import combine_of
from .values import Array, Group, Scalar, Static, Value


def median(site: Site, a: Value, axis: Value = NONE, *, keepdims: Value = NO) -> Value:
    """Return the middle of the sorted values, the mean of two where their number is even."""
    return _quantile(site, a, 0.5, axis, static_bool(site, keepdims, "keepdims"), "median")


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
    several = items_of(q)
    items = (q,) if several is None else several
    shares = [_share(site, q, item) / unit for item in items]
    fractions = unit != 1 or any(isinstance(constant(item), float) for item in items)
    wide = fractions and (several is not None or isinstance(constant(q), np.float64))
    found = [_quantile(site, a, s, axis, keepdims, "quantile", wide) for s in shares]
    return found[0] if several is None else stacked(site, Group(tuple(found)))


def _share(site: Site, q: Value, item: Value) -> float:
    """Return a share that is known now; CdTypeError CD0443 where it is not."""
    if constant(item) is NOT_CONSTANT and position_of(item) is None:
        raise error(
            "CD0443", CdTypeError,
            "`q` has to be a Python number or a list of numbers, known while compiling, and is "
            f"{describe(q if isinstance(q, Array) else item)}", site.span,
            helps=("write it in the source, or outside the function: `Q = [0.25, 0.75]`; "
                   "an array there becomes a list by `.tolist()`",),
        )  # fmt: skip
    return static_number(site, item, "a share")


def _quantile(
    site: Site, a: Value, share: float, axis: Value, keepdims: bool, name: str, wide: bool = False
) -> Value:
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
    part: float | None = None
    wanted = floordiv(size - 1, const(2)), floordiv(size, const(2))
    if share != 0.5 or wide:
        wanted, part = _neighbours(site, size, share)
    turns = turns_of(lines, wanted, rising=True)
    made = in_order(site, lines) if turns is None else parted(site, lines, turns)

    def element(at: Affine) -> Array:
        return remap(made, made.axes[:-1], made.shape[:-1], (*(var(x) for x in made.axes[:-1]), at))

    low, high = element(wanted[0]), element(wanted[1])
    if part is None:
        middle = arithmetic(site, "/", arithmetic(site, "+", low, high), Static(2.0))
    else:
        middle = _between(site, low, high, part, wide)
    last = element(size - 1)
    if turns is not None:
        last = array_of(site, reducer("max")(site, made, Static(-1)))
    missing = elementwise(site.ctx, combine_of(np.isnan), [last], site.span)
    result = array_of(site, where(site, missing, last, middle))
    if keepdims:
        rank = source.rank
        axes = site.ctx.axes(rank)
        kept = [n for n in range(rank) if n not in places]
        shape = [source.shape[n] if n in kept else const(1) for n in range(rank)]
        return remap(result, axes, shape, [var(axes[n]) for n in kept])
    return Scalar(result.body, result.kind) if not result.rank else result


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
