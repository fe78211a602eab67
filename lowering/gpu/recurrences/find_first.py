"""Search loops: the first iteration that leaves a loop, as a minimum reduction.

    for i: if t(i): b = f(i); break
    becomes
    at = the greatest number
    for i: if t(i): at min= i
    if at is less: i = at; if t(i): b = f(i)

The event is an exit of the loop, or a failing check: the iteration is replayed, and fails there.
Precondition: iterations that only compute private values before it; all of them are executed, so
there may be no more than an array that they read has elements, or a bounded number. Nested loops
that are left together, by a flag, are one. Where each of many parallel points searches, it stops at
its exit.

>>> program, _ = optimize(lowered('''
... b = -1
... for i in range(len(k)):
...     if x[k[i]] > 3:
...         b = i
...         break
... y[0] = b
... ''', y="i64[1]", x="f32[90]", k="i64[900]"), Target("cuda"))
>>> rewritten = rewrite_find_first(program, facts_of(program), fresh_for(program))
>>> print_loops(rewritten.kernels[0].body[2:-2])
b_at = 9223372036854775807
for i in 0..900:
    let at = k[i]
    if 0 <= at and at < 90:
        if x[at] > 3.0:
            b_at min= i
    else:
        b_at min= i
if b_at < 9223372036854775807:
    let i = b_at
    let at = k[i]
    check 0 <= at and at < 90 else CdIndexError('CD0601',
            'index {0} is out of range for axis 0 of `x` with size {1}', at, 90)
    if x[at] > 3.0:
        # b = i
        b = i
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

from ....base.dataclass import dataclass
from ... import thresholds
from ...analysis.accesses import collect_accesses
from ...analysis.dependence import has_break
from ...analysis.linear_iteration import LinearIterations, linearize
from ...analysis.parallel_band import (
    Facts,
    array_accesses,
    has_checks,
    largest_trip_count,
    nest_loops,
    trip_count,
)
from ...ir import dtypes
from ...ir.assignments import Access, Alloc, Break, Continue, Permute, Print
from ...ir.bounds import Bounds
from ...ir.expressions import Apply, Const, Dynamic, Expr, Position, Read
from ...ir.fresh import Fresh
from ...ir.indexing import Symbol
from ...ir.loops import Check, Comment, For, If, Program, Stmt, Store, Update, While
from ...ir.node import Node
from ...ir.ops import OPS
from ...ir.rewrite import map_kernels, rename, substitute, with_bodies
from ...ir.walk import binds, bodies, statements, writes
from .exit_flags import ExitNest, find_exit_nest

Body = tuple[Stmt, ...]
LAST = 2**63 - 1
"""An iteration number that does not occur."""


def rewrite_find_first(program: Program, facts: Facts, fresh: Fresh) -> Program:
    """Return the program in which loops with exits search for the iteration that leaves them."""

    def rewrite_body(stmts: Body, outer: tuple[For, ...], before: Body) -> Body:
        rewritten: list[Stmt] = []
        for at, stmt in enumerate(stmts):
            rewritten += rewrite_statement(stmt, outer, (*before, *stmts[:at]))
        return tuple(rewritten)

    def rewrite_statement(stmt: Stmt, outer: tuple[For, ...], before: Body) -> Body:
        if isinstance(stmt, For):
            nest = find_exit_nest(stmt, before, facts.temporaries_in(stmt))
            if nest is not None and not _has_parallel_loop(outer, facts):
                rewritten = _Search(nest, facts.temporaries_in(stmt), fresh).rewrite()
                if rewritten:
                    return rewritten
            outer, before = (*outer, stmt), ()
        if isinstance(stmt, While):
            before = ()
        return (
            with_bodies(stmt, tuple(rewrite_body(part, outer, before) for part in bodies(stmt))),
        )

    return map_kernels(program, lambda stmts: rewrite_body(stmts, (), ()))


def _has_parallel_loop(outer: Sequence[For], facts: Facts) -> bool:
    """Whether the iterations of an outer loop are independent, each of which then searches
    alone."""
    return any(facts.is_free(loop, facts.private(loop)) for loop in outer)


@dataclass(frozen=True, slots=True)
class _Search:
    """A nest with exits, and the temporaries that nothing else uses."""

    nest: ExitNest
    only: frozenset[int]
    fresh: Fresh

    def rewrite(self) -> Body:
        """Return the search and the replay of its iteration; nothing where the nest stays."""
        loops, body = self.nest.loops, self.nest.body
        numbering = linearize(loops)
        halts = While, Print, Alloc, Permute, Continue
        if numbering is None or any(isinstance(stmt, halts) for stmt in statements(body)):
            return ()
        if not can_run_all(loops, body):
            return ()
        label = next((n.label for n in writes(body)), loops[0].symbol.name)
        at = self.fresh.scalar(f"{label}_at", dtypes.int64)
        update = Update(Access(at, ()), OPS["min"], Position(numbering.number))
        detection, replay = slice_detection(body, (update,)), replay_iteration(body)
        if detection is None or replay is None:
            return ()
        live_out = self.find_live_out(detection)
        if live_out is None:
            return ()
        detection = self.rename_private(detection, at)
        exit_ = self.build_exit(numbering, replay, at, keeps=bool(live_out))
        start_value: Expr = Const(LAST, dtypes.int64)
        if live_out:
            start_value = Position((trip_count(loops[0]) - 1) * abs(loops[0].step))
        first = Store(Access(at, ()), start_value)
        return (*self.nest.before, first, *nest_loops(numbering.loops, detection), exit_)

    def find_live_out(self, detection: Body) -> frozenset[int] | None:
        """Return the scalars that are live after the nest, each of which every iteration writes;
        None where iterations do more than compute private values."""
        unconditional: set[int] = set()
        for stmt in self.nest.body:
            if isinstance(stmt, If | Check) or not self.is_unconditional(stmt):
                break
            if isinstance(stmt, Store) and not stmt.access.index:
                unconditional.add(stmt.access.node.id)
        out: set[int] = set()
        sites = collect_accesses(detection)
        for node in self.written_nodes(detection):
            if node.id not in self.only:
                if node.id not in unconditional or len(self.nest.loops) > 1:
                    return None
                out.add(node.id)
            if sites.is_read_before_written(node):
                return None
        return frozenset(out)

    def is_unconditional(self, stmt: Stmt) -> bool:
        """Whether a statement is executed in every iteration."""
        return not any(isinstance(nested, Check | Break) for nested in statements((stmt,)))

    def written_nodes(self, detection: Body) -> list[Node]:
        """Return the nodes that the detection writes, but for the number of the iteration."""
        nest_ids = {node.id for node in writes(self.nest.body)}
        return [node for node in writes(detection) if node.id in nest_ids]

    def rename_private(self, detection: Body, at: Node) -> Body:
        """Return the detection with symbols and temporaries of its own."""
        copies = {node.id: self.fresh.like(node) for node in self.written_nodes(detection)}
        names = {
            s: self.fresh.symbol(s.name) for stmt in statements(detection) for s in binds(stmt)
        }
        return rename(detection, names, copies)

    def build_exit(self, numbering: LinearIterations, replay: Body, at: Node, keeps: bool) -> Stmt:
        """Return the replay of the iteration that was found; of the last one where it `keeps`
        values."""
        comparison, limit = ("ge", 0) if keeps else ("lt", LAST)
        has_match = Apply(OPS[comparison], (Read(at, ()), Const(limit, dtypes.int64)), dtypes.bool_)
        lets, names = numbering.named(Read(at, ()), self.fresh)
        return If(has_match, (*lets, *substitute(replay, names)))


def can_run_all(loops: Sequence[For], body: Body) -> bool:
    """Whether a nest with exits may execute its other iterations, too: an array that it reads has
    as many elements, or their number is bounded."""
    indices = {loop.symbol for loop in loops}
    for _, index in array_accesses(body):
        axes = [
            {symbol for symbol in indices if at.coefficient(symbol)}
            for at in index if not isinstance(at, Dynamic)
        ]  # fmt: skip
        if sum(map(bool, axes)) >= len(indices) and indices == set[Symbol]().union(*axes):
            return True
    bounds, counts = Bounds(), list[int | None]()
    for loop in loops:
        counts.append(bounds.most(trip_count(loop)))
        bounds = bounds.inside(loop)
    if None in counts:
        return False
    return (
        prod(max(count or 0, 0) for count in counts) * largest_trip_count(body, bounds)
        <= thresholds.MAX_EXTRA_ITERATIONS
    )


# ---------------------------------------------------------------- one iteration


def slice_detection(body: Body, update: Body) -> Body | None:
    """Return the slice of an iteration that detects its event, where it executes `update`; None
    where it cannot be separated."""
    stmts = _without_comments(body)
    if stmts and isinstance(stmts[-1], Break):
        return update
    for at, stmt in enumerate(body):
        before, rest = body[:at], body[at + 1 :]
        if isinstance(stmt, Check):
            inner = slice_detection(rest, update)
            return None if inner is None else (*before, If(stmt.test, inner, update))
        if isinstance(stmt, If) and (has_break((stmt,)) or has_checks((stmt,))):
            return _rewrite_branch(before, stmt, rest, lambda part: slice_detection(part, update))
        if has_checks((stmt,)):
            return None
    return body


def replay_iteration(body: Body) -> Body | None:
    """Return an iteration of a loop with exits, as straight code after the loop."""
    for at, stmt in enumerate(body):
        if isinstance(stmt, Break):
            return body[:at]
        if isinstance(stmt, If) and has_break((stmt,)):
            return _rewrite_branch(body[:at], stmt, body[at + 1 :], replay_iteration)
    return body


def _rewrite_branch(
    before: Body, stmt: If, rest: Body, change: Callable[[Body], Body | None]
) -> Body | None:
    """Return statements with a branch rewritten on both sides, its continuation moved into the side
    that continues; None where both do."""
    then, orelse = stmt.then, stmt.orelse
    if _without_comments(rest):
        if always_exits(then):
            orelse = (*orelse, *rest)
        elif always_exits(orelse):
            then = (*then, *rest)
        else:
            return None
    yes, no = change(then), change(orelse)
    return None if yes is None or no is None else (*before, replace(stmt, then=yes, orelse=no))


def always_exits(body: Body) -> bool:
    """Whether a list of statements always leaves the loop."""
    last = _without_comments(body)[-1:]
    return any(
        isinstance(stmt, Break)
        or (isinstance(stmt, If) and always_exits(stmt.then) and always_exits(stmt.orelse))
        for stmt in last
    )


def _without_comments(body: Body) -> Body:
    return tuple(stmt for stmt in body if not isinstance(stmt, Comment))
