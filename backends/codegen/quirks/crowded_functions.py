"""Crowded functions: many short strided loops, whose vectors take gcc too long to compile.

A vectorized loop of a static trip count of few vectors has no loop left: its gathers and single
stores are straight-line code. Where many of them follow one another they are one basic block, and
the pass `combine` of gcc 12 takes time that grows faster than its square: 24 such loops over int16
take 3 s, 60 take 100 s. Such loops run for microseconds: their vectorization is prevented.
"""

from __future__ import annotations

from ....lowering.analysis.subscripts import stride
from ....lowering.ir.loops import For, Program, Store, Update
from ....lowering.ir.walk import statements

MAX_LOOPS = 10
"""More strided loops than this make a function crowded; 8 take 0.3 s."""
MAX_TRIP_COUNT = 256
"""The largest trip count of a loop that may become straight-line code: four vectors of bytes."""


def crowded_loops(program: Program) -> frozenset[int]:
    """Return the ids of the strided loops of a crowded function, none where there are few."""
    found = [
        id(stmt)
        for kernel in program.kernels
        for stmt in statements(kernel.body)
        if isinstance(stmt, For) and _is_strided(stmt)
    ]
    return frozenset(found) if len(found) > MAX_LOOPS else frozenset()


def _is_strided(loop: For) -> bool:
    """Whether an innermost loop of a small static trip count writes elements that lie apart."""
    trip_count = (loop.hi - loop.lo).constant
    if trip_count is None or trip_count > MAX_TRIP_COUNT:
        return False
    strided = False
    for stmt in loop.body:
        if isinstance(stmt, Store | Update):
            access = stmt.access
            strided |= bool(access.index) and (
                stride(access.node, access.index, loop.symbol) not in (0, 1, -1)
            )
        elif isinstance(stmt, For):
            return False
    return strided
