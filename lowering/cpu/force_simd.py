"""SIMD annotation of short loops over rows that data selects, which compilers cannot tell apart.

    for b in 0..16:                             for b in 0..16 vector:
        t[i, b] = min(t[i, b], t[p, b])             t[i, b] = min(t[i, b], t[p, b])

Changes: such a loop of a few iterations, which only stores, becomes a vector loop: it asserts that
its iterations are independent. Left alone, a compiler tests for overlapping rows before each such
loop, or does not vectorize it.

Precondition: finished loops. Postcondition: bit-identical, for no iteration uses what another one
writes.

>>> show(lambda program: force_simd(program, Target(schedule=True)),
...      "for b in range(16): t[0, b] = min(t[0, b], t[clamp(p[0]), b])",
...      t="f32[9, 16]", p="i64[1]")
for b in 0..16 vector:
    let at = p[0]
    t_new = min(t[0, b], t[max(0, min(8, at)), b])
    t[0, b] = t_new
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...base.dataclass import dataclass
from .. import thresholds
from ..analysis.cost import iteration_count
from ..analysis.dependence import find_dependence, find_privatizable, loop_local_nodes
from ..ir.assignments import Let
from ..ir.expressions import Dynamic, Index
from ..ir.indexing import var
from ..ir.loops import Comment, For, Program, Stmt, Store
from ..ir.rewrite import map_bodies, map_kernels
from ..ir.walk import direct_effects
from ..target import Target


def force_simd(program: Program, target: Target) -> Program:
    """Return the program with short loops over rows that data selects as vector loops."""
    vectorizer = _Vectorizer(loop_local_nodes(program), target.vector_bits)
    return map_kernels(program, vectorizer.body)


@dataclass(frozen=True, slots=True)
class _Vectorizer:
    """The vectorization of one program."""

    exclusive: Mapping[int, frozenset[int]]
    """The temporaries that only the loop uses, by the loop's `id`."""
    bits: int

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return statements with such loops as vector loops."""
        return tuple(self.statement(stmt) for stmt in body)

    def statement(self, stmt: Stmt) -> Stmt:
        """Return a statement with such loops, itself or inside of it, as vector loops."""
        if not isinstance(stmt, For) or stmt.kind != "serial" or not self.is_candidate(stmt):
            return map_bodies(stmt, self.body)
        privates = find_privatizable(stmt, self.exclusive[id(stmt)])
        return stmt if find_dependence(stmt, privates) is not None else replace(stmt, kind="vector")

    def is_candidate(self, loop: For) -> bool:
        """Whether a loop is short, stores full vectors of adjacent elements, and data selects a
        row."""
        trip_count = iteration_count(loop).constant
        stores = [stmt for stmt in loop.body if isinstance(stmt, Store)]
        if (
            trip_count is None
            or trip_count > thresholds.MAX_FORCED_SIMD_ITERATIONS
            or loop.step != 1
            or not stores
        ):
            return False
        if any(not isinstance(stmt, Store | Let | Comment) for stmt in loop.body):
            return False
        targets = dict.fromkeys(stmt.access for stmt in stores if stmt.access.node.rank)
        written = {access.node.id for access in targets}
        subscripts: dict[int, dict[tuple[Index, ...], None]] = {}
        for access in targets:
            subscripts.setdefault(access.node.id, {})[access.index] = None
        for stmt in stores:
            for read in direct_effects(stmt).all_reads:
                if read.node.id in written:
                    subscripts[read.node.id][read.index] = None
        is_contiguous = all(
            to[-1] == var(loop.symbol) for indices in subscripts.values() for to in indices
        )
        fills_vectors = all(trip_count * to.node.dtype.bits % self.bits == 0 for to in targets)
        return (
            is_contiguous and fills_vectors
            and any(
                _may_overlap(to.index, subscript)
                for to in targets for subscript in subscripts[to.node.id]
            )
        )  # fmt: skip


def _may_overlap(left: tuple[Index, ...], right: tuple[Index, ...]) -> bool:
    """Whether two subscripts select rows whose distance is not constant."""
    return any(
        isinstance(a, Dynamic) or isinstance(b, Dynamic) or (a - b).constant is None
        for a, b in zip(left, right, strict=True)
    )
