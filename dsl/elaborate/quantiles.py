"""Order statistics of sorted values: median, quantiles, percentiles."""

from __future__ import annotations

import numpy as np

from ...lowering.diagnostic import CdValueError
from ...lowering.ir.indexing import Affine, const, floordiv, var
from .arrays import elementwise
from .context import error
from .elementwise import arithmetic, converted_float, where
from .joining import stacked
from .python_reductions import as_number
from .reductions import require_elements
from .shaping import remap
from .site import (
    NO,
    NONE,
    Site,
    array_of,
    is_none,
    items_of,
    static_bool,
    static_int,
    static_number,
)
from .sorting import along, sort_rows
from .ufuncs import combine_of
from .values import Array, Group, Scalar, Static, Value


def median(site: Site, a: Value, axis: Value = NONE, *, keepdims: Value = NO) -> Value:
    """Return the middle of the sorted values, the mean of two where their number is even."""
    return _quantile(site, a, 0.5, axis, static_bool(site, keepdims, "keepdims"), "median")


def quantile(site: Site, a: Value, q: Value, axis: Value = NONE, *, keepdims: Value = NO) -> Value:
    """Return values below which shares of the elements lie, between two elements on a line."""
    kept = static_bool(site, keepdims, "keepdims")
    items = items_of(q)
    if items is None:
        return _quantile(site, a, static_number(site, q, "the share"), axis, kept, "quantile")
    shares = [static_number(site, item, "a share") for item in items]
    return stacked(
        site, Group(tuple(_quantile(site, a, s, axis, kept, "quantile") for s in shares))
    )


def percentile(
    site: Site, a: Value, q: Value, axis: Value = NONE, *, keepdims: Value = NO
) -> Value:
    """Return `quantile` of shares in percent."""
    items = items_of(q)
    if items is None:
        return quantile(site, a, Static(static_number(site, q, "the share") / 100), axis,
                        keepdims=keepdims)  # fmt: skip
    shares = tuple(Static(static_number(site, item, "a share") / 100) for item in items)
    return quantile(site, a, Group(shares), axis, keepdims=keepdims)


def _quantile(site: Site, a: Value, share: float, axis: Value, keepdims: bool, name: str) -> Value:
    if not 0 <= share <= 1:
        text = f"`{name}` takes shares between nothing and all, and is given {share:g} of all"
        raise error("CD0442", CdValueError, text, site.span)
    source = array_of(site, a)
    lines, place = along(site, converted_float(site, source), axis, name)
    require_elements(site, lines, (lines.rank - 1,), name)
    made = site.ctx.materialize(lines, "sorted", site.span)
    sort_rows(site, made)
    size = made.shape[-1]

    def element(at: Affine) -> Array:
        return remap(made, made.axes[:-1], made.shape[:-1], (*(var(x) for x in made.axes[:-1]), at))

    if share == 0.5:
        low, high = element(floordiv(size - 1, const(2))), element(floordiv(size, const(2)))
        middle = arithmetic(site, "/", arithmetic(site, "+", low, high), Static(2.0))
    else:
        middle = _between(site, element, size, share)
    last = element(size - 1)
    missing = elementwise(site.ctx, combine_of(np.isnan), [last], site.span)
    result = array_of(site, where(site, missing, last, middle))
    if keepdims:
        rank = source.rank
        axes = site.ctx.axes(rank)
        kept = [n for n in range(rank) if not is_none(axis) and n != place]
        shape = [source.shape[n] if n in kept else const(1) for n in range(rank)]
        return remap(result, axes, shape, [var(axes[n]) for n in kept])
    return Scalar(result.body, result.kind) if not result.rank else result


def _between(site: Site, element: object, size: Affine, share: float) -> Value:
    """Return the point at a share of the way through the sorted values, as NumPy rounds it."""
    number = static_int(site, as_number(size), "the number of values")
    position = share * (number - 1)
    below = min(int(np.floor(position)), number - 1)
    above = min(below + 1, number - 1)
    part = position - below
    assert callable(element)
    low, high = element(const(below)), element(const(above))
    gap = arithmetic(site, "-", high, low)
    if part >= 0.5:
        return arithmetic(site, "-", high, arithmetic(site, "*", gap, Static(1.0 - part)))
    return arithmetic(site, "+", low, arithmetic(site, "*", gap, Static(part)))
