"""Last-block detection: counters of arriving blocks, the last of which does the remaining work.

The technique is that of the CUDA C++ Programming Guide, memory fence functions. The blocks are
those of the loops before a `LastBlock`; there is a counter for each iteration of the loops
around it, see `csrc/arrivals.h`. Counters are zero whenever no such kernel runs, so all kernels of
a stream share them.
"""

from __future__ import annotations

from ...base.dataclass import dataclass
from ...lowering.analysis.parallel_band import static_trip_count
from ...lowering.ir.indexing import Affine, const, var
from ...lowering.ir.loops import For, LastBlock, Update
from ...lowering.ir.walk import reads, statements, writes
from ..codegen.c_expression import Scope

COUNTERS_NAME = "arrived"
"""The name of the counters in a kernel."""

MAX_LIGHT_ARRAYS = 12
"""Up to so many arrays, shared ones included, a thread needs few registers for addresses."""


@dataclass(frozen=True, slots=True)
class BlockCounters:
    """The counters of a kernel."""

    count: int
    """The number of counters."""
    position: Affine
    """The subscript of a block's counter."""
    axes: str
    """The grid axes of the blocks that share a counter."""
    is_light: bool
    """Whether a thread needs few registers."""

    def test(self, scope: Scope) -> str:
        """Return the test whether a block is the last to arrive."""
        subscript = "" if self.position == const(0) else f"[{scope.affine(self.position).text}]"
        blocks = "*".join(f"gridDim.{axis}" for axis in self.axes)
        return f"if (comes_last({'&' * bool(subscript)}{COUNTERS_NAME}{subscript}, {blocks}))"


def find_block_counters(loop: For) -> BlockCounters | None:
    """Return the counters of a kernel, None where it has no `LastBlock`."""
    outer, inner = [loop], _inner_block_loop(loop)
    while inner is not None and not any(isinstance(stmt, LastBlock) for stmt in outer[-1].body):
        outer, inner = [*outer, inner], _inner_block_loop(inner)
    if inner is None:
        return None
    count, subscript = 1, const(0)
    for outer_loop in outer:
        trip_count = static_trip_count(outer_loop)
        assert trip_count is not None, "one number is stored for each iteration"
        count *= max(trip_count, 1)
        if trip_count > 1:
            subscript = subscript * trip_count + (var(outer_loop.symbol) - outer_loop.lo)
    has_pairs = any(isinstance(s, Update) and s.pair is not None for s in statements(loop.body))
    arrays = {node.id for node in (*reads((loop,)), *writes((loop,))) if node.rank}
    is_light = not has_pairs and len(arrays) <= MAX_LIGHT_ARRAYS
    return BlockCounters(count, subscript, "xyz"[: _block_depth(inner)], is_light)


def _inner_block_loop(loop: For) -> For | None:
    """Return the loop over blocks directly inside one."""
    loops = (stmt for stmt in loop.body if isinstance(stmt, For))
    return next((inner for inner in loops if inner.kind == "block"), None)


def _block_depth(loop: For) -> int:
    """Return the nesting depth of loops over blocks."""
    inner = _inner_block_loop(loop)
    return 1 if inner is None else 1 + _block_depth(inner)
