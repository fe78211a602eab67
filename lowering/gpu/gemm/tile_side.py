"""One side of a contraction tile: loops collapsed into one, whose iterations are tiled.

>>> i, j = Symbol("i", 0), Symbol("j", 1)
>>> loops = For(i, const(0), const(3), 1, ()), For(j, const(0), const(4), 1, ())
>>> side = Side(loops, Fresh(0, 2), "row")
>>> at = side.values(const(6))
>>> side.size.constant, at[i].constant, at[j].constant
(12, 1, 2)
"""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.parallel_band import static_trip_count
from ...ir import dtypes
from ...ir.expressions import Apply, Expr, Position
from ...ir.fresh import Fresh
from ...ir.indexing import Affine, Symbol, const, floordiv, mod
from ...ir.loops import For
from ...ir.ops import OPS
from .contraction import iteration_count


class Side:
    """Collapsed loops: the symbol of their tiles, and their values at a collapsed position."""

    def __init__(self, loops: Sequence[For], fresh: Fresh, name: str) -> None:
        self.loops = loops
        self.size = _collapsed_size(loops)
        self.tile = fresh.symbol(name)

    def values(self, position: Affine) -> dict[Symbol, Affine]:
        """Return the variables of the loops at a collapsed position."""
        if len(self.loops) == 1:
            return {self.loops[0].symbol: self.loops[0].lo + position}
        out: dict[Symbol, Affine] = {}
        inner = 1
        for loop in reversed(self.loops):
            count = static_trip_count(loop) or 0
            digit = floordiv(position, const(inner))
            if loop is not self.loops[0]:
                digit = mod(digit, const(max(count, 1)))
            out[loop.symbol] = loop.lo + digit
            inner *= max(count, 1)
        return out

    def values_further(self, position: Affine, by: Affine) -> dict[Symbol, Affine]:
        """Return the same, some iterations of the innermost loop further, without a carry."""
        out, last = self.values(position), self.loops[-1].symbol
        out[last] = out[last] + by
        return out

    def tests(self, position: Affine, by: int) -> list[Expr]:
        """Return the tests that a position is in range; none where `by` divides the size."""
        size = self.size.constant
        if size is not None and size % by == 0:
            return []
        return [Apply(OPS["lt"], (Position(position), Position(self.size)), dtypes.bool_)]


def _collapsed_size(loops: Sequence[For]) -> Affine:
    count = iteration_count(loops)
    return const(count) if count is not None else loops[0].hi - loops[0].lo
