"""Bounding boxes of iteration domains: the widest extent of each range."""

from __future__ import annotations

from collections.abc import Iterator

from ...lowering.ir.indexing import Range, const, maximum
from ..values.range_analysis import extreme
from .sites import Axis


def bounding_box(ranges: tuple[Range, ...]) -> Iterator[Axis]:
    """Yield the axes of the bounding box: each range at its widest."""
    for at, r in enumerate(ranges):
        low = extreme(r.lo, ranges[:at], False)
        high = extreme(r.hi, ranges[:at], True)
        yield Axis(r.symbol, low, maximum(high - low, const(0)))


def is_non_rectangular(ranges: tuple[Range, ...]) -> bool:
    """Whether a range depends on another one, so that the box has points outside the domain."""
    symbols = {r.symbol for r in ranges}
    return any((r.lo.symbols() | r.hi.symbols()) & symbols for r in ranges)
