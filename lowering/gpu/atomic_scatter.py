"""Scatter updates by atomic operations, one iteration a thread, where the target asks for them.

    for i in 0..n: h[k[i]] += w[i]    becomes    for tile in 0..ceil(n/256):        blocks
                                                     for t in 0..256:               threads
                                                         h[k[tile*256 + t]] += ...  atomic

Updates of one element happen in the order in which the device executes them, so floating-point sums
may differ from run to run in their last bits; order-preserving sums are left to `owner_computes`.
Precondition: the loop only updates arrays that it does not read otherwise, each by an operation
that the device has as an atomic one.

>>> program = lowered("h[k[i]] += x[i]", h="f32[9]", x="f32[800]", k="i64[800]")
>>> loop, facts = program.kernels[0].body[-1], facts_of(program)
>>> kernel = map_atomic_scatter(loop, facts, fresh_for(program), {})
>>> print_loops(kernel.body)
for tile in 0..4 block:
    for thread in 0..min(-224*tile + 800, 224) thread:
        atomic h[k[224*tile + thread]] += x[224*tile + thread]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..analysis.accumulators import write_only_arrays
from ..analysis.parallel_band import Band, Facts, perfect_nest
from ..analysis.subscripts import ranges
from ..ir.fresh import Fresh
from ..ir.loops import For, Stmt, Store, Update
from ..ir.node import Node
from ..ir.rewrite import map_statements
from ..ir.walk import statements
from .thread_points import DeviceCode, map_to_threads

WHOLE = frozenset(("i32", "i64", "u32", "u64"))
"""Integer types, by their short names, for which the device has all atomic operations below."""
REAL = frozenset(("f32", "f64"))
"""Floating-point types that can be added atomically."""
OPERATIONS = frozenset(("add", "max", "min", "bitand", "bitor", "bitxor"))


def map_atomic_scatter(
    loop: For, facts: Facts, fresh: Fresh, nodes: Mapping[int, Node]
) -> DeviceCode | None:
    """Return the kernel of a loop that only accumulates at data-dependent locations, else None."""
    arrays = write_only_arrays(loop, facts.private(loop))
    targets = frozenset(node.id for node in arrays)
    loops, _ = perfect_nest(loop)
    if not arrays or not _has_atomic_writes(loop, targets, facts.exact):
        return None
    parallel: list[For] = []
    for inner_loop in loops:
        outer_symbols = {outer.symbol for outer in parallel}
        is_rectangular = outer_symbols.isdisjoint(inner_loop.lo.symbols() | inner_loop.hi.symbols())
        if not is_rectangular or not facts.is_free(
            inner_loop, facts.private(inner_loop) | targets, ranges(parallel)
        ):
            break
        parallel.append(inner_loop)
    if not parallel:
        return None

    def make_atomic(stmt: Stmt) -> tuple[Stmt, ...]:
        if isinstance(stmt, Update) and stmt.access.node.id in targets:
            return (replace(stmt, atomic=True),)
        return (stmt,)

    last = parallel[-1]
    inner = map_statements(last.body, make_atomic)
    nest = Band(tuple(parallel), (), last.body, facts.private(last), inner)
    return map_to_threads(nest, fresh, nodes)


def _has_atomic_writes(loop: For, targets: frozenset[int], exact: bool) -> bool:
    """Whether the device has every write of these arrays as an atomic operation, in any order."""
    for stmt in statements(loop.body):
        if isinstance(stmt, Store) and stmt.access.node.id in targets:
            return False
        if isinstance(stmt, Update) and stmt.access.node.id in targets:
            kind, op = stmt.access.node.dtype.short, stmt.op.name
            is_integer_update = kind in WHOLE and op in OPERATIONS
            is_float_sum = kind in REAL and op == "add" and not exact
            if not is_integer_update and not is_float_sum:
                return False
    return True
