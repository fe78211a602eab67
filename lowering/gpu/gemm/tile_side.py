"""Loops of a contraction that are counted as one, so that tiles can be cut from what they count.

>>> i, j = Symbol("i", 0), Symbol("j", 1)
>>> loops = For(i, const(0), const(3), 1, ()), For(j, const(0), const(4), 1, ())
>>> side = Side(loops, Fresh(0, 2), "row")
>>> at = side.values(const(6))
>>> side.size.constant, at[i].constant, at[j].constant
(12, 1, 2)
"""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.parallel_band import trips
from ...ir import dtypes
from ...ir.expressions import Apply, Expr, Position
from ...ir.fresh import Fresh
from ...ir.indexing import Affine, Symbol, const, floordiv, mod
from ...ir.loops import For
from ...ir.ops import OPS
from .contraction import points_of


class Side:
    """Loops counted as one: its variable, and what theirs are for a value of it."""

    def __init__(self, loops: Sequence[For], fresh: Fresh, name: str) -> None:
        self.loops = loops
        self.size = _size(loops)
        self.tile = fresh.symbol(name)

    def values(self, at: Affine) -> dict[Symbol, Affine]:
        """Return the variables of the loops where the count is an index expression."""
        if len(self.loops) == 1:
            return {self.loops[0].symbol: self.loops[0].lo + at}
        out: dict[Symbol, Affine] = {}
        inner = 1
        for loop in reversed(self.loops):
            count = trips(loop) or 0
            part = floordiv(at, const(inner))
            if loop is not self.loops[0]:
                part = mod(part, const(max(count, 1)))
            out[loop.symbol] = loop.lo + part
            inner *= max(count, 1)
        return out

    def further(self, at: Affine, by: Affine) -> dict[Symbol, Affine]:
        """Return the same, some rounds of the innermost loop further on, of which there are any."""
        out, last = self.values(at), self.loops[-1].symbol
        out[last] = out[last] + by
        return out

    def tests(self, at: Affine, by: int) -> list[Expr]:
        """Return what says that a count is in range; nothing where tiles fit."""
        size = self.size.constant
        if size is not None and size % by == 0:
            return []
        return [Apply(OPS["lt"], (Position(at), Position(self.size)), dtypes.bool_)]


def _size(loops: Sequence[For]) -> Affine:
    count = points_of(loops)
    return const(count) if count is not None else loops[0].hi - loops[0].lo
