"""Kernels in which each thread writes wherever data says, by atomic operations, where asked for.

    for i in 0..n: h[k[i]] += w[i]    becomes    for tile in 0..ceil(n/256):        blocks
                                                     for t in 0..256:               threads
                                                         h[k[tile*256 + t]] += ...  atomic

Rounds add in the order in which a device comes to them, so sums of real numbers may differ from run
to run in their last bits; where sums keep the order of the program these are left to `owners`.
Needs a loop that only writes what it does not read otherwise, all by operations that a device does
as one.

>>> program = lowered("h[k[i]] += x[i]", h="f32[9]", x="f32[800]", k="i64[800]")
>>> made = scattered(program.kernels[0].body[-1], facts_of(program), fresh_for(program), {})
>>> print_loops(made.body)
for tile in 0..4 block:
    for thread in 0..min(-224*tile + 800, 224) thread:
        for once in 0..1 atomic:
            h[k[224*tile + thread]] += x[224*tile + thread]
"""

from __future__ import annotations

from collections.abc import Mapping

from ..analysis.accumulators import only_written
from ..analysis.parallel_band import Band, Facts, nest_of
from ..analysis.subscripts import ranges
from ..ir.fresh import Fresh
from ..ir.indexing import const
from ..ir.loops import For, Stmt, Store, Update
from ..ir.node import Node
from ..ir.rewrite import map_statements
from ..ir.walk import statements
from .thread_points import Made, points

WHOLE = frozenset(("i32", "i64", "u32", "u64"))
"""Types of whole numbers that all of these operations take, by their short names."""
REAL = frozenset(("f32", "f64"))
"""Types of real numbers that are added."""
OPERATIONS = frozenset(("add", "max", "min", "bitand", "bitor", "bitxor"))


def scattered(loop: For, facts: Facts, fresh: Fresh, nodes: Mapping[int, Node]) -> Made | None:
    """Return the kernel of a loop that accumulates where data says, None where it does more."""
    written = only_written(loop, facts.private(loop))
    taken = frozenset(node.id for node in written)
    loops, _ = nest_of(loop)
    if not written or not _are_atomic(loop, taken, facts.exact):
        return None
    free: list[For] = []
    for one in loops:
        bound = {outer.symbol for outer in free}
        fixed = bound.isdisjoint(one.lo.symbols() | one.hi.symbols())
        if not fixed or not facts.is_free(one, facts.private(one) | taken, ranges(free)):
            break
        free.append(one)
    if not free:
        return None

    def atomic(stmt: Stmt) -> tuple[Stmt, ...]:
        if isinstance(stmt, Update) and stmt.access.node.id in taken:
            once = fresh.symbol("once")
            return (For(once, const(0), const(1), 1, (stmt,), "atomic", stmt.span),)
        return (stmt,)

    last = free[-1]
    inner = map_statements(last.body, atomic)
    found = Band(tuple(free), (), last.body, facts.private(last), inner)
    return points(found, fresh, nodes)


def _are_atomic(loop: For, taken: frozenset[int], exact: bool) -> bool:
    """Whether a device does all that writes these arrays as one, and in any order."""
    for stmt in statements(loop.body):
        if isinstance(stmt, Store) and stmt.access.node.id in taken:
            return False
        if isinstance(stmt, Update) and stmt.access.node.id in taken:
            kind, op = stmt.access.node.dtype.short, stmt.op.name
            whole = kind in WHOLE and op in OPERATIONS
            real = kind in REAL and op == "add" and not exact
            if not whole and not real:
                return False
    return True
