"""Cancellation: where generated code polls for interruption, about every 0.1 ms.

A loop that may run long either counts the work of its iterations and polls when a limit is reached,
or, where its body is straight-line code, is strip-mined and polls between the strips. A loop with a
`break` is never strip-mined, as that would leave the inner loop only. Work is counted once: by the
innermost loop with a counter around it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...base.dataclass import dataclass
from ...base.lazy_import import lazy_functions
from ...lowering.analysis.cost import total_work, without_failures, work_per_iteration
from ...lowering.ir.indexing import Affine, Symbol, const
from ...lowering.ir.loops import For, Stmt, While
from ...lowering.ir.rewrite import with_bodies
from ...lowering.ir.walk import bodies, statements

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

_NO_COUNTER = Symbol("turn", -1)
"""Stands for the counter of a loop that has none."""


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
    if _has_counter(loop, sizes):
        return WorkCounter(_own_work(loop, sizes) + 1)  # an empty iteration counts, too
    if isinstance(loop, While) or _is_short(loop):
        return None
    is_axis = total_work(loop, sizes).symbols() <= sizes and total_work(loop).constant is None
    work = work_per_iteration(loop, sizes).constant
    if work is None or (is_axis and not is_outermost):
        return None
    strip = max(1, WORK_PER_POLL // max(1, work))
    return StripMining(strip) if strip * abs(loop.step) < MAX_STRIP_LENGTH else None


def _is_short(loop: For) -> bool:
    """Whether a loop need not poll; one over lanes is short, and has no exit."""
    total = total_work(loop).constant
    return loop.kind == "vector" or (total is not None and total < LONG_LOOP_WORK)


def _has_counter(loop: For | While, sizes: frozenset[Symbol]) -> bool:
    """Whether a loop counts the work of its iterations."""
    if isinstance(loop, While):
        return True
    if _is_short(loop):
        return False
    nested = any(_is_loop(stmt) for stmt in statements(without_failures(loop.body)))
    return nested or has_break(loop.body) or work_per_iteration(loop, sizes).constant is None


def _own_work(loop: For | While, sizes: frozenset[Symbol]) -> Affine:
    """Return about how much work an iteration is, without that of the loops that count theirs."""
    if isinstance(loop, While):
        prelude, body = (_without_counted(part, sizes) for part in (loop.prelude, loop.body))
        return work_per_iteration(replace(loop, prelude=prelude, body=body), sizes)
    return work_per_iteration(replace(loop, body=_without_counted(loop.body, sizes)), sizes)


def _without_counted(body: tuple[Stmt, ...], sizes: frozenset[Symbol]) -> tuple[Stmt, ...]:
    """Return the statements, in which loops that count their own work have no iterations."""
    return tuple(_without_iterations(stmt, sizes) for stmt in body)


def _without_iterations(stmt: Stmt, sizes: frozenset[Symbol]) -> Stmt:
    match stmt:
        case While():
            return For(_NO_COUNTER, const(0), const(0), 1, ())
        case For(kind="parallel"):
            return stmt  # threads have counters of their own, which begin at zero
        case For():
            has_counter = _has_counter(stmt, sizes)
            return replace(stmt, lo=const(0), hi=const(0), body=()) if has_counter else stmt
        case _ if lists := bodies(stmt):
            return with_bodies(stmt, tuple(_without_counted(part, sizes) for part in lists))
        case _:
            return stmt


def _is_loop(stmt: Stmt) -> bool:
    """Whether a statement is a loop of many iterations: neither over lanes nor unrolled."""
    is_short = isinstance(stmt, For) and stmt.kind in ("vector", "unrolled")
    return isinstance(stmt, For | While) and not is_short
