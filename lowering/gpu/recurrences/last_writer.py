"""Output dependences of scatters: the last iteration that writes each element, as a maximum.

    for i in 0..n: y[k[i]] = f(i)
    becomes
    for e: y_last[e] = -1
    for i in 0..n: y_last[k[i]] max= i
    for e: if y_last[e] >= 0: i = y_last[e]; y[e] = f(i)

The last iteration that writes an element determines it, in any order of execution; it is replayed,
where its checks have held before. Precondition: iterations that do nothing but store elements of
arrays that they do not read, at one location of each; nests whose iterations have a linear
numbering are rewritten as one.

>>> program, _ = optimize(lowered("y[k[i]] = x[i] * 2", y="f32[90]", x="f32[9000]", k="i64[9000]"),
...     Target("cuda"))
>>> rewritten = rewrite_last_writers(program, facts_of(program), fresh_for(program))
>>> [type(stmt).__name__ for stmt in rewritten.kernels[0].body[-3:]]
['For', 'For', 'For']
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

from ....base.dataclass import dataclass
from ... import thresholds
from ...analysis.linear_iteration import LinearIterations, linearize
from ...analysis.parallel_band import Facts, nest_loops, perfect_nest, static_trip_count
from ...analysis.subscripts import ranges
from ...ir import dtypes
from ...ir.assignments import Access, Alloc, Break, Continue, Permute, Print
from ...ir.expressions import Apply, Const, Position, Read
from ...ir.fresh import Fresh
from ...ir.indexing import Symbol, const, var
from ...ir.loops import Check, Fill, For, If, Program, Stmt, Store, Update
from ...ir.node import Node
from ...ir.ops import OPS
from ...ir.rewrite import map_kernels, map_statements, rename, substitute, with_bodies
from ...ir.walk import binds, bodies, direct_reads, direct_writes, statements, writes

Body = tuple[Stmt, ...]


def rewrite_last_writers(program: Program, facts: Facts, fresh: Fresh) -> Program:
    """Return the program whose scatters compute the last iteration that writes each element."""

    def rewrite_body(stmts: Sequence[Stmt], outer: tuple[For, ...]) -> Body:
        return tuple(rewritten for stmt in stmts for rewritten in rewrite_statement(stmt, outer))

    def rewrite_statement(stmt: Stmt, outer: tuple[For, ...]) -> Body:
        if isinstance(stmt, For):
            scatter = _match_scatter(stmt, outer, facts, fresh)
            if scatter is not None:
                return scatter.rewrite(fresh)
            if facts.is_free(stmt, facts.private(stmt), ranges(outer), facts.bounds_outside(stmt)):
                return (stmt,)
            outer = (*outer, stmt)
        return (with_bodies(stmt, tuple(rewrite_body(part, outer) for part in bodies(stmt))),)

    return map_kernels(program, lambda stmts: rewrite_body(stmts, ()))


@dataclass(frozen=True, slots=True)
class _Scatter:
    """A nest that writes elements of arrays."""

    numbering: LinearIterations
    body: Body
    stores: Mapping[int, Store]
    """The stores of arrays, by the ids of these."""

    def rewrite(self, fresh: Fresh) -> Body:
        """Return the loops that compute the last iterations, and those that replay their stores."""
        last = {
            number: fresh.array(f"{store.access.node.label}_last", store.access.node.shape,
                                dtypes.int64, "marks")
            for number, store in self.stores.items()
        }  # fmt: skip
        here = Position(self.numbering.number)

        def record(stmt: Stmt) -> Body:
            if not isinstance(stmt, Store) or stmt.access.node.id not in last:
                return (stmt,)
            target = Access(last[stmt.access.node.id], stmt.access.index)
            return (Update(target, OPS["max"], here, span=stmt.span, atomic=True),)

        recording = nest_loops(self.numbering.loops, map_statements(self.body, record))
        starts = (start for node in last.values() for start in _initialize(node, fresh))
        fills = (
            fill for number in last for fill in self.replay_writes(number, last[number], fresh)
        )
        return (*starts, *recording, *fills)

    def replay_writes(self, number: int, last: Node, fresh: Fresh) -> Body:
        """Return the loops that store each element of an array as its last iteration does."""
        axes = [fresh.symbol("at") for _ in last.shape]
        index = tuple(map(var, axes))

        def redirect(stmt: Stmt) -> Body:
            if isinstance(stmt, Store) and stmt.access.node.id in self.stores:
                store = replace(stmt, access=Access(stmt.access.node, index))
                return (store,) if stmt.access.node.id == number else ()
            return () if isinstance(stmt, Check) else (stmt,)

        body = map_statements(self.body, redirect)
        copies = {n.id: fresh.like(n) for n in writes(body) if n.id != number}
        names = {s: fresh.symbol(s.name) for stmt in statements(body) for s in binds(stmt)}
        iteration = Read(last, index)
        lets, values = self.numbering.named(iteration, fresh)
        replayed = substitute(rename(body, names, copies), values)
        is_written = Apply(OPS["ge"], (iteration, Const(0, dtypes.int64)), dtypes.bool_)
        return _element_loops(axes, last, If(is_written, (*lets, *replayed)))


def _initialize(node: Node, fresh: Fresh) -> Body:
    """Return the loops that initialize the iteration numbers of all elements with -1."""
    axes = [fresh.symbol("at") for _ in node.shape]
    start = Store(Access(node, tuple(map(var, axes))), Const(-1, dtypes.int64))
    return _element_loops(axes, node, start)


def _element_loops(axes: Sequence[Symbol], node: Node, stmt: Stmt) -> Body:
    """Return the loops over all elements of an array."""
    loops = [For(s, const(0), size, 1, ()) for s, size in zip(axes, node.shape, strict=True)]
    return nest_loops(loops, (stmt,))


def _match_scatter(
    loop: For, outer: tuple[For, ...], facts: Facts, fresh: Fresh
) -> _Scatter | None:  # fmt: skip
    """Return the scatter of a nest, None where its iterations have other dependences, or none."""
    loops, body = perfect_nest(loop)
    stores = find_only_stores(loop, body, facts.private(loop))
    counts = [static_trip_count(level) for level in loops]
    is_short = (
        None not in counts
        and prod(count or 0 for count in counts) < thresholds.MIN_LAST_WRITER_ITERATIONS
    )
    if not stores or is_short or not all(fresh.fits(s.access.node.shape) for s in stores.values()):
        return None
    targets = frozenset(stores)
    if facts.is_free(loop, facts.private(loop), ranges(outer), facts.bounds_outside(loop)):
        return None
    for at, level in enumerate(loops):
        outer_ranges = ranges((*outer, *loops[:at]))
        if not facts.is_free(level, facts.private(level) | targets, outer_ranges):
            return None
    numbering = linearize(loops)
    return None if numbering is None else _Scatter(numbering, body, stores)


def find_only_stores(loop: For, body: Body, private: frozenset[int]) -> dict[int, Store]:
    """Return the stores of a nest's arrays, by the ids of these; none where it does more."""
    stmts = statements(loop.body)
    halts = Print, Permute, Alloc, Break, Continue, Fill
    effects = [
        effect for effect in stmts if any(node.id not in private for node in direct_writes(effect))
    ]
    stores = {s.access.node.id: s for s in effects if isinstance(s, Store) and s.access.node.rank}
    unrepeated = {id(stmt) for stmt in _unrepeated(body)}
    read = {node.id for stmt in stmts for node in direct_reads(stmt)}
    if (
        len(stores) < len(effects)
        or loop.kind != "serial"
        or any(isinstance(stmt, halts) for stmt in stmts)
        or any(isinstance(stmt, For) and stmt.kind != "serial" for stmt in stmts)
        or any(id(store) not in unrepeated or number in read for number, store in stores.items())
    ):
        return {}
    return stores


def _unrepeated(body: Body) -> Iterator[Stmt]:
    """Yield the statements that are executed at most once in each iteration."""
    for stmt in body:
        yield stmt
        if isinstance(stmt, If):
            yield from _unrepeated((*stmt.then, *stmt.orelse))
