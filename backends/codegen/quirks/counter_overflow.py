"""Which loops may come so near to the end of 64 bits that a step behind the last round leaves them.

A variable that grows by two and ends at the greatest number never reaches its end: it wraps around
before. Such loops count their rounds. Those whose ends are surely far from there, of sizes of
arrays and what is computed from them, compare their variable alone.

>>> from plusequals.base.diagnostic import NOWHERE
>>> from plusequals.lowering.ir.indexing import const, var
>>> n, i = Symbol("n", 0), Symbol("i", 1)
>>> loop = For(i, const(0), var(n), 2, (), "serial", NOWHERE)
>>> may_wrap(loop, 2, {}, Bounds(), {n}), may_wrap(loop, 2, {}, Bounds(), set())
(False, True)
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from ....lowering.ir.assignments import Let
from ....lowering.ir.bounds import Bounds
from ....lowering.ir.indexing import Symbol
from ....lowering.ir.loops import For

LEAST, MOST = -(2**63), 2**63 - 1
SIZE = 2**48
"""No axis is longer: what is in memory is not, nor could anybody wait for what is repeated."""
Binding = For | Let


def may_wrap(
    loop: For, by: int, bound: Mapping[Symbol, Binding], known: Bounds, sizes: Set[Symbol]
) -> bool:
    """Whether a step of `by` from a number before the end of a loop may leave 64 bits: none of 1.

    `bound` are the symbols bound around, outermost first, `known` and `sizes` what the host knows.
    """
    if abs(by) == 1:
        return False
    if loop.hi.constant is None:
        near = {size: (0, known.intervals.get(size, (0, None))[1] or SIZE) for size in sizes}
        known = Bounds({**known.intervals, **near})
        for symbol, one in bound.items():
            match one:
                case For():
                    known = known.inside(one)
                case Let():
                    known = known.holding(symbol, known.value(one.value))
    least, most = known.interval(loop.hi)
    if by > 0:
        return most is None or most - 1 + by > MOST
    return least is None or least + 1 + by < LEAST
