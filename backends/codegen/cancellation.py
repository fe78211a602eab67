"""Where generated code asks whether the call is to end: about every tenth of a millisecond.

A loop that may run long either counts the work of its rounds and asks when there was enough, or,
where nothing but arithmetic is inside, is cut into pieces and asks between them. A piece is a loop
itself, so a loop that can be left by a `break` is never cut.
"""

from __future__ import annotations

from ...base.dataclass import dataclass
from ...lowering.analysis.cost import going_on, total_of, work_of
from ...lowering.analysis.dependence import is_left
from ...lowering.ir.indexing import Affine, Symbol
from ...lowering.ir.loops import For, Stmt, While
from ...lowering.ir.walk import statements

LONG = 1 << 24
"""A loop with less work is over before anybody waits: some milliseconds, where it reads and writes
elements in no order a tenth of a second."""
PIECE = 1 << 21
"""The work between two questions; `is_over` of the prelude has the same number."""
FAR = 1 << 62
"""Of pieces that are as far apart there are few."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Each round adds its work, and asks when it is enough."""

    work: Affine


@dataclass(frozen=True, slots=True)
class Cut:
    """The loop runs in pieces of so many rounds, and asks before each."""

    rounds: int


Poll = Counted | Cut | None


def poll_of(loop: For | While, is_outermost: bool, sizes: frozenset[Symbol]) -> Poll:
    """Return how a loop asks; None where it is short, or where a loop around it is enough.

    Inside of a loop that asks, one that only runs over axes, whose `sizes` are those of arrays in
    memory, ends soon enough; another bound may be any number.
    """
    if isinstance(loop, For) and loop.kind == "vector":
        return None  # lanes are few, and nothing leaves them
    if isinstance(loop, While):
        return Counted(work_of(loop, sizes) + 1)  # a round with nothing in it is one, too
    total = total_of(loop).constant
    if total is not None and total < LONG:
        return None
    work = work_of(loop, sizes)
    nested = any(_is_loop(stmt) for stmt in statements(going_on(loop.body)))
    if nested or is_left(loop.body) or work.constant is None:
        return Counted(work + 1)
    if is_outermost or not total_of(loop, sizes).symbols() <= sizes or total is not None:
        rounds = max(1, PIECE // max(1, work.constant))
        return Cut(rounds) if rounds * abs(loop.step) < FAR else None
    return None


def _is_loop(stmt: Stmt) -> bool:
    """Whether a statement runs others many times: lanes and what is written out are few."""
    lanes = isinstance(stmt, For) and stmt.kind in ("vector", "unrolled")
    return isinstance(stmt, For | While) and not lanes
