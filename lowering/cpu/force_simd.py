"""Loops over neighbours in rows that data picks are lanes: compilers cannot know the rows apart.

    for b in 0..16:                             for b in 0..16 vector:
        t[i, b] = min(t[i, b], t[p, b])             t[i, b] = min(t[i, b], t[p, b])

Changes: such a loop of a few rounds that stores, and does nothing else, says that its rounds may
run together. Left alone, a compiler tests before each whether rows overlap, or gives up.

Needs: finished loops. Guarantees: not a bit changes, for no round uses what another one writes.

>>> show(lambda program: picked(program, Target(schedule=True)),
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
from ..analysis.cost import rounds_of
from ..analysis.dependence import confined, independent, private
from ..ir.assignments import Let
from ..ir.expressions import Dynamic, Index
from ..ir.indexing import var
from ..ir.loops import Comment, For, Program, Stmt, Store
from ..ir.rewrite import map_bodies, over_kernels
from ..ir.walk import own
from ..target import Target

MOST = 64
"""Loops of more rounds are long enough for a test before them."""


def picked(program: Program, target: Target) -> Program:
    """Return the program with short loops over rows that data picks as lanes."""
    work = _Work(confined(program), target.vector_bits)
    return over_kernels(program, work.body)


@dataclass(frozen=True, slots=True)
class _Work:
    """What is known of the program and the processor."""

    only: Mapping[int, frozenset[int]]
    """The temporaries that each loop alone uses, by its `id`."""
    bits: int

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return statements with such loops as lanes."""
        return tuple(self.statement(stmt) for stmt in body)

    def statement(self, stmt: Stmt) -> Stmt:
        """Return a statement, or what is inside of it, with such loops as lanes."""
        if not isinstance(stmt, For) or stmt.kind != "serial" or not self.suits(stmt):
            return map_bodies(stmt, self.body)
        mine = private(stmt, self.only[id(stmt)])
        return stmt if independent(stmt, mine) is not None else replace(stmt, kind="vector")

    def suits(self, loop: For) -> bool:
        """Whether a loop is short, stores to full vectors of neighbours, and data picks a row."""
        rounds = rounds_of(loop).constant
        stores = [stmt for stmt in loop.body if isinstance(stmt, Store)]
        if rounds is None or rounds > MOST or loop.step != 1 or not stores:
            return False
        if any(not isinstance(stmt, Store | Let | Comment) for stmt in loop.body):
            return False
        rows = dict.fromkeys(stmt.access for stmt in stores if stmt.access.node.rank)
        written = {access.node.id for access in rows}
        found: dict[int, dict[tuple[Index, ...], None]] = {}
        for access in rows:
            found.setdefault(access.node.id, {})[access.index] = None
        for stmt in stores:
            for read in own(stmt).found:
                if read.node.id in written:
                    found[read.node.id][read.index] = None
        beside = all(at[-1] == var(loop.symbol) for some in found.values() for at in some)
        whole = all(rounds * at.node.dtype.bits % self.bits == 0 for at in rows)
        return (
            beside and whole
            and any(_may_meet(at.index, other) for at in rows for other in found[at.node.id])
        )  # fmt: skip


def _may_meet(one: tuple[Index, ...], other: tuple[Index, ...]) -> bool:
    """Whether two uses of an array are of rows of which no constant says how far apart."""
    return any(
        isinstance(a, Dynamic) or isinstance(b, Dynamic) or (a - b).constant is None
        for a, b in zip(one, other, strict=True)
    )
