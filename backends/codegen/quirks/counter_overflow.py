"""Loop counter overflow: loops whose index variable may overflow 64 bits after the last iteration.

An index variable with step two and an upper bound of `INT64_MAX` never reaches the bound: it wraps
around. Such loops count their iterations. Where the bounds are provably far from the limits, as
with sizes of arrays and values computed from these, the variable is compared as usual.

>>> from plusequals.base.diagnostic import NOWHERE
>>> from plusequals.lowering.ir.indexing import const, var
>>> n, i = Symbol("n", 0), Symbol("i", 1)
>>> loop = For(i, const(0), var(n), 2, (), "serial", NOWHERE)
>>> may_overflow(loop, 2, {}, Bounds(), {n}), may_overflow(loop, 2, {}, Bounds(), set())
(False, True)
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from ....lowering.ir.assignments import Let
from ....lowering.ir.bounds import Bounds
from ....lowering.ir.indexing import Symbol
from ....lowering.ir.loops import For

LEAST, MOST = -(2**63), 2**63 - 1
MAX_EXTENT = 2**48
"""No axis is longer: neither memory nor run time would suffice."""
Binding = For | Let


def may_overflow(
    loop: For, by: int, bound: Mapping[Symbol, Binding], facts: Bounds, sizes: Set[Symbol]
) -> bool:
    """Whether a step of `by` from a value within the bounds of a loop may overflow 64 bits.

    `bound` are the bindings of the symbols in scope, outermost first, `facts` the facts about them,
    `sizes` the run-time extents. A step of 1 never overflows.
    """
    if abs(by) == 1:
        return False
    if loop.hi.constant is None:
        facts = facts_in_scope(bound, facts, sizes)
    low, high = facts.interval(loop.hi)
    if by > 0:
        return high is None or high - 1 + by > MOST
    return low is None or low + 1 + by < LEAST


def facts_in_scope(bound: Mapping[Symbol, Binding], facts: Bounds, sizes: Set[Symbol]) -> Bounds:
    """Return the facts about all symbols in scope; those about sizes are that arrays fit in
    memory."""
    size_ranges = {
        size: (0, facts.intervals.get(size, (0, None))[1] or MAX_EXTENT) for size in sizes
    }
    facts = Bounds({**facts.intervals, **size_ranges})
    for symbol, binding in bound.items():
        match binding:
            case For():
                facts = facts.inside(binding)
            case Let():
                facts = facts.with_interval(symbol, facts.value(binding.value))
    return facts
