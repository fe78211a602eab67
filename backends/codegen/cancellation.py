"""Cancellation: where generated code polls for interruption, about every 0.1 ms.

A loop that may run long either counts the work of its iterations and polls when a limit is reached,
or, where its body is straight-line code, is strip-mined and polls between the strips. A loop with a
`break` is never strip-mined, as that would leave the inner loop only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...base.dataclass import dataclass
from ...base.lazy_import import lazy_functions
from ...lowering.analysis.cost import total_work, without_failures, work_per_iteration
from ...lowering.ir.indexing import Affine, Symbol
from ...lowering.ir.loops import For, Stmt, While
from ...lowering.ir.walk import statements

if TYPE_CHECKING:
    from ...lowering.analysis.dependence import has_break
else:  # for long loops alone
    (has_break,) = lazy_functions(__package__, "...lowering.analysis.dependence:has_break")

LONG_LOOP_WORK = 1 << 24
"""A loop with less work need not poll: it takes some milliseconds, or 0.1 s where its accesses are
random."""
WORK_PER_POLL = 1 << 21
"""The work between two polls; `is_over` of the prelude has the same number."""
MAX_STRIP_LENGTH = 1 << 62
"""A loop with longer strips than this has few of them, and does not poll."""


@dataclass(frozen=True, slots=True)
class WorkCounter:
    """Each iteration adds its work to a counter, and polls when that reaches `WORK_PER_POLL`."""

    work: Affine


@dataclass(frozen=True, slots=True)
class StripMining:
    """The loop is strip-mined with strips of so many iterations, and polls before each."""

    iterations: int


Poll = WorkCounter | StripMining | None


def choose_poll(loop: For | While, is_outermost: bool, sizes: frozenset[Symbol]) -> Poll:
    """Return how a loop polls; None where it is short, or where an enclosing loop's polls suffice.

    Within a loop that polls, a loop over axes, with `sizes` of arrays in memory as bounds, is
    short enough; other bounds are unlimited.
    """
    if isinstance(loop, For) and loop.kind == "vector":
        return None  # a few lanes, and no exit from them
    if isinstance(loop, While):
        return WorkCounter(work_per_iteration(loop, sizes) + 1)  # an empty iteration counts, too
    total = total_work(loop).constant
    if total is not None and total < LONG_LOOP_WORK:
        return None
    work = work_per_iteration(loop, sizes)
    nested = any(_is_loop(stmt) for stmt in statements(without_failures(loop.body)))
    if nested or has_break(loop.body) or work.constant is None:
        return WorkCounter(work + 1)
    if is_outermost or not total_work(loop, sizes).symbols() <= sizes or total is not None:
        strip = max(1, WORK_PER_POLL // max(1, work.constant))
        return StripMining(strip) if strip * abs(loop.step) < MAX_STRIP_LENGTH else None
    return None


def _is_loop(stmt: Stmt) -> bool:
    """Whether a statement is a loop of many iterations: neither over lanes nor unrolled."""
    is_short = isinstance(stmt, For) and stmt.kind in ("vector", "unrolled")
    return isinstance(stmt, For | While) and not is_short
