"""Elements that data picks, and that rounds fill: which is the last round that fills each.

    for i in 0..n: y[k[i]] = f(i)
    becomes
    for e: y_last[e] = -1
    for i in 0..n: y_last[k[i]] max= i
    for e: if y_last[e] >= 0: i = y_last[e]; y[e] = f(i)

The last round that fills an element is the one that counts, in whichever order rounds are done; it
is done again, where its checks have held before.
Needs rounds that do nothing but to fill elements of arrays that they do not read, at one place of
each; loops in each other whose rounds can be numbered are done together.

>>> program, _ = optimize(lowered("y[k[i]] = x[i] * 2", y="f32[90]", x="f32[9000]", k="i64[9000]"),
...     Target("cuda"))
>>> made = lasts(program, facts_of(program), fresh_for(program))
>>> [type(stmt).__name__ for stmt in made.kernels[0].body[-3:]]
['For', 'For', 'For']
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

from ....base.dataclass import dataclass
from ...analysis.linear_iteration import Numbered, numbered
from ...analysis.parallel_band import Facts, around, nest_of, trips
from ...analysis.subscripts import ranges
from ...ir import dtypes
from ...ir.assignments import Access, Alloc, Break, Continue, Permute, Print
from ...ir.expressions import Apply, Const, Position, Read
from ...ir.fresh import Fresh
from ...ir.indexing import Symbol, const, var
from ...ir.loops import Check, Fill, For, If, Program, Stmt, Store, Update
from ...ir.node import Node
from ...ir.ops import OPS
from ...ir.rewrite import map_statements, over_kernels, rename, substitute, with_bodies
from ...ir.walk import binds, bodies, own_reads, own_writes, statements, writes

Body = tuple[Stmt, ...]
FEWEST = 1024
"""Fewer rounds are gone through by each of the threads that have the elements."""


def lasts(program: Program, facts: Facts, fresh: Fresh) -> Program:
    """Return the program whose rounds know which is the last that fills an element."""

    def body(stmts: Sequence[Stmt], outer: tuple[For, ...]) -> Body:
        return tuple(made for stmt in stmts for made in statement(stmt, outer))

    def statement(stmt: Stmt, outer: tuple[For, ...]) -> Body:
        if isinstance(stmt, For):
            found = _filling(stmt, outer, facts, fresh)
            if found is not None:
                return found.made(fresh)
            if facts.is_free(stmt, facts.private(stmt), ranges(outer), facts.around(stmt)):
                return (stmt,)
            outer = (*outer, stmt)
        return (with_bodies(stmt, tuple(body(part, outer) for part in bodies(stmt))),)

    return over_kernels(program, lambda stmts: body(stmts, ()))


@dataclass(frozen=True, slots=True)
class _Filling:
    """A nest that fills elements."""

    order: Numbered
    body: Body
    stores: Mapping[int, Store]
    """What it fills arrays with, by the ids of these."""

    def made(self, fresh: Fresh) -> Body:
        """Return what finds the last rounds, and what these fill."""
        last = {
            number: fresh.array(f"{one.access.node.label}_last", one.access.node.shape,
                                dtypes.int64, "marks")
            for number, one in self.stores.items()
        }  # fmt: skip
        here = Position(self.order.number)

        def noted(stmt: Stmt) -> Body:
            if not isinstance(stmt, Store) or stmt.access.node.id not in last:
                return (stmt,)
            place = Access(last[stmt.access.node.id], stmt.access.index)
            mark = Update(place, OPS["max"], here, span=stmt.span)
            return (For(fresh.symbol("once"), const(0), const(1), 1, (mark,), "atomic"),)

        looks = around(self.order.loops, map_statements(self.body, noted))
        starts = (start for node in last.values() for start in _nothing(node, fresh))
        fills = (fill for number in last for fill in self.fills(number, last[number], fresh))
        return (*starts, *looks, *fills)

    def fills(self, number: int, last: Node, fresh: Fresh) -> Body:
        """Return the loops that fill each element of an array as its last round does."""
        axes = [fresh.symbol("at") for _ in last.shape]
        place = tuple(map(var, axes))

        def part(stmt: Stmt) -> Body:
            if isinstance(stmt, Store) and stmt.access.node.id in self.stores:
                there = replace(stmt, access=Access(stmt.access.node, place))
                return (there,) if stmt.access.node.id == number else ()
            return () if isinstance(stmt, Check) else (stmt,)

        body = map_statements(self.body, part)
        copies = {n.id: fresh.like(n) for n in writes(body) if n.id != number}
        names = {s: fresh.symbol(s.name) for one in statements(body) for s in binds(one)}
        round_ = Read(last, place)
        lets, values = self.order.named(round_, fresh)
        again = substitute(rename(body, names, copies), values)
        some = Apply(OPS["ge"], (round_, Const(0, dtypes.int64)), dtypes.bool_)
        return _over(axes, last, If(some, (*lets, *again)))


def _nothing(node: Node, fresh: Fresh) -> Body:
    """Return the loops that begin with no round for any element."""
    axes = [fresh.symbol("at") for _ in node.shape]
    start = Store(Access(node, tuple(map(var, axes))), Const(-1, dtypes.int64))
    return _over(axes, node, start)


def _over(axes: Sequence[Symbol], node: Node, stmt: Stmt) -> Body:
    """Return the loops over all elements of an array."""
    loops = [For(s, const(0), size, 1, ()) for s, size in zip(axes, node.shape, strict=True)]
    return around(loops, (stmt,))


def _filling(
    loop: For, outer: tuple[For, ...], facts: Facts, fresh: Fresh
) -> _Filling | None:  # fmt: skip
    """Return what a nest fills, None where its rounds need each other otherwise, or do not."""
    loops, body = nest_of(loop)
    stores = filled_only(loop, body, facts.private(loop))
    counts = [trips(one) for one in loops]
    few = None not in counts and prod(count or 0 for count in counts) < FEWEST
    if not stores or few or not all(fresh.fits(s.access.node.shape) for s in stores.values()):
        return None
    taken = frozenset(stores)
    if facts.is_free(loop, facts.private(loop), ranges(outer), facts.around(loop)):
        return None
    for at, one in enumerate(loops):
        known = ranges((*outer, *loops[:at]))
        if not facts.is_free(one, facts.private(one) | taken, known):
            return None
    order = numbered(loops)
    return None if order is None else _Filling(order, body, stores)


def filled_only(loop: For, body: Body, own: frozenset[int]) -> dict[int, Store]:
    """Return what a nest fills arrays with, by the ids of these; nothing where it does more."""
    inside = statements(loop.body)
    halts = Print, Permute, Alloc, Break, Continue, Fill
    effects = [one for one in inside if any(node.id not in own for node in own_writes(one))]
    stores = {s.access.node.id: s for s in effects if isinstance(s, Store) and s.access.node.rank}
    once = {id(stmt) for stmt in _straight(body)}
    read = {node.id for stmt in inside for node in own_reads(stmt)}
    if (
        len(stores) < len(effects)
        or loop.kind != "serial"
        or any(isinstance(stmt, halts) for stmt in inside)
        or any(isinstance(stmt, For) and stmt.kind != "serial" for stmt in inside)
        or any(id(one) not in once or number in read for number, one in stores.items())
    ):
        return {}
    return stores


def _straight(body: Body) -> Iterator[Stmt]:
    """Yield the statements that are done at most once in each round."""
    for stmt in body:
        yield stmt
        if isinstance(stmt, If):
            yield from _straight((*stmt.then, *stmt.other))
