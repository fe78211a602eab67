"""Which blocks of a kernel wait for each other, so that the last of them does the rest.

They are those of the loops over blocks in front of a loop of the kind `last`, for each round of the
loops around it. Each has a number that counts how many have come, see `csrc/arrivals.h`: it is zero
whenever no such kernel runs, so those of a stream need the same numbers.
"""

from __future__ import annotations

from ...base.dataclass import dataclass
from ...lowering.analysis.parallel_band import trips
from ...lowering.ir.indexing import Affine, const, var
from ...lowering.ir.loops import For, Stmt, Update
from ...lowering.ir.walk import reads, statements, writes
from ..codegen.c_expression import Scope

ARRIVED = "arrived"
"""What a kernel calls those numbers."""

FEW = 12
"""Up to so many arrays, shared ones among them, a thread needs few registers for their places."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What a kernel counts."""

    count: int
    """How many numbers it needs."""
    place: Affine
    """Which of them the blocks at a place count with."""
    axes: str
    """Along which axes of the grid these blocks lie."""
    is_light: bool
    """Whether a thread needs few registers for all that it does."""

    def test(self, scope: Scope) -> str:
        """Return the test whether a block is the last of them."""
        at = "" if self.place == const(0) else f"[{scope.affine(self.place).text}]"
        blocks = "*".join(f"gridDim.{axis}" for axis in self.axes)
        return f"if (comes_last({'&' * bool(at)}{ARRIVED}{at}, {blocks}))"


def arrivals_of(loop: For) -> Arrivals | None:
    """Return what a kernel counts, None where no block waits for others."""
    outer, inner = [loop], _blocks_in(loop)
    while inner is not None and not any(_is_last(stmt) for stmt in outer[-1].body):
        outer, inner = [*outer, inner], _blocks_in(inner)
    if inner is None:
        return None
    count, place = 1, const(0)
    for one in outer:
        rounds = trips(one)
        assert rounds is not None, "as many numbers are kept as there are rounds"
        count *= max(rounds, 1)
        if rounds > 1:
            place = place * rounds + (var(one.symbol) - one.lo)
    pairs = any(isinstance(s, Update) and s.pair is not None for s in statements(loop.body))
    arrays = {node.id for node in (*reads((loop,)), *writes((loop,))) if node.rank}
    is_light = not pairs and len(arrays) <= FEW
    return Arrivals(count, place, "xyz"[: _depth(inner)], is_light)


def _is_last(stmt: Stmt) -> bool:
    return isinstance(stmt, For) and stmt.kind == "last"


def _blocks_in(loop: For) -> For | None:
    """Return the loop over blocks that is directly in one."""
    loops = (stmt for stmt in loop.body if isinstance(stmt, For))
    return next((inner for inner in loops if inner.kind == "block"), None)


def _depth(loop: For) -> int:
    """Return how many loops over blocks are in each other."""
    inner = _blocks_in(loop)
    return 1 if inner is None else 1 + _depth(inner)
