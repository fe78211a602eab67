"""Cancellation: where generated code polls for interruption, about every 0.1 ms.

A loop that may run long either counts the work of its iterations and polls when a limit is reached,
or, where its body is straight-line code, is strip-mined and polls between the strips. A loop with a
`break` is never strip-mined, as that would leave the inner loop only.
"""

from __future__ import annotations

from ...base.dataclass import dataclass
from ...lowering.analysis.cost import going_on, total_of, work_of
from ...lowering.analysis.dependence import is_left
from ...lowering.ir.indexing import Affine, Symbol
from ...lowering.ir.loops import For, Stmt, While
from ...lowering.ir.walk import statements

LONG = 1 << 24
"""A loop with less work need not poll: it takes some milliseconds, or 0.1 s where its accesses are
random."""
PIECE = 1 << 21
"""The work between two polls; `is_over` of the prelude has the same number."""
FAR = 1 << 62
"""A loop with longer strips than this has few of them, and does not poll."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Each iteration adds its work to a counter, and polls when that reaches `PIECE`."""

    work: Affine


@dataclass(frozen=True, slots=True)
class Cut:
    """The loop is strip-mined with strips of so many iterations, and polls before each."""

    rounds: int


Poll = Counted | Cut | None


def poll_of(loop: For | While, is_outermost: bool, sizes: frozenset[Symbol]) -> Poll:
    """Return how a loop polls; None where it is short, or where an enclosing loop's polls suffice.

    Within a loop that polls, a loop over axes, with `sizes` of arrays in memory as bounds, is
    short enough; other bounds are unlimited.
    """
    if isinstance(loop, For) and loop.kind == "vector":
        return None  # a few lanes, and no exit from them
    if isinstance(loop, While):
        return Counted(work_of(loop, sizes) + 1)  # an empty iteration counts, too
    total = total_of(loop).constant
    if total is not None and total < LONG:
        return None
    work = work_of(loop, sizes)
    nested = any(_is_loop(stmt) for stmt in statements(going_on(loop.body)))
    if nested or is_left(loop.body) or work.constant is None:
        return Counted(work + 1)
    if is_outermost or not total_of(loop, sizes).symbols() <= sizes or total is not None:
        strip = max(1, PIECE // max(1, work.constant))
        return Cut(strip) if strip * abs(loop.step) < FAR else None
    return None


def _is_loop(stmt: Stmt) -> bool:
    """Whether a statement is a loop of many iterations: neither over lanes nor unrolled."""
    is_short = isinstance(stmt, For) and stmt.kind in ("vector", "unrolled")
    return isinstance(stmt, For | While) and not is_short
