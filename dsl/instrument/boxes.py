"""Ranges as boxes: as wide as each of them ever gets, whatever the others are."""

from __future__ import annotations

from collections.abc import Iterator

from ...lowering.ir.indexing import Range, const, maximum
from ..values.range_analysis import extreme
from .sites import Axis


def axes_of(ranges: tuple[Range, ...]) -> Iterator[Axis]:
    """Yield the ranges as wide as they get, each for itself."""
    for at, r in enumerate(ranges):
        low = extreme(r.lo, ranges[:at], False)
        high = extreme(r.hi, ranges[:at], True)
        yield Axis(r.symbol, low, maximum(high - low, const(0)))


def is_uneven(ranges: tuple[Range, ...]) -> bool:
    """Whether a range depends on another one, so that some points of the box are none of them."""
    own = {r.symbol for r in ranges}
    return any((r.lo.symbols() | r.hi.symbols()) & own for r in ranges)
