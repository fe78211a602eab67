"""Loops that are left in the first round in which something happens: which round that is, and it.

    for i: if t(i): b = f(i); break
    becomes
    at = the greatest number
    for i: if t(i): at min= i
    if at is less: i = at; if t(i): b = f(i)

What happens is that the loop is left, or that a check fails: the round is done again, and fails
there. Needs rounds that do nothing but find numbers for themselves before; all of them are done, so
there have to be no more than an array that they read has elements, or not very many. Loops in each
other that are left together, by a flag, are one. Where each of many points looks for a first round,
it stops there.

>>> program, _ = optimize(lowered('''
... b = -1
... for i in range(len(k)):
...     if x[k[i]] > 3:
...         b = i
...         break
... y[0] = b
... ''', y="i64[1]", x="f32[90]", k="i64[900]"), Target("cuda"))
>>> made = searches(program, facts_of(program), fresh_for(program))
>>> print_loops(made.kernels[0].body[2:-2])
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
from ...analysis.accesses import accesses
from ...analysis.dependence import is_left
from ...analysis.linear_iteration import Numbered, numbered
from ...analysis.parallel_band import Facts, accesses_of, around, fails, rounds_of, within
from ...ir import dtypes
from ...ir.assignments import Access, Alloc, Break, Continue, Permute, Print
from ...ir.bounds import Bounds
from ...ir.expressions import Apply, Const, Dynamic, Expr, Position, Read
from ...ir.fresh import Fresh
from ...ir.indexing import Symbol
from ...ir.loops import Check, Comment, For, If, Program, Stmt, Store, Update, While
from ...ir.node import Node
from ...ir.ops import OPS
from ...ir.rewrite import over_kernels, rename, substitute, with_bodies
from ...ir.walk import binds, bodies, statements, writes
from .exit_flags import Nest, nest_that_is_left

Body = tuple[Stmt, ...]
LAST = 2**63 - 1
"""No round has that number."""
MANY = 1 << 26
"""So many rounds are soon done by a device, whatever they read."""


def searches(program: Program, facts: Facts, fresh: Fresh) -> Program:
    """Return the program in which loops that are left look for the round that leaves them."""

    def body(stmts: Body, outer: tuple[For, ...], before: Body) -> Body:
        made: list[Stmt] = []
        for at, stmt in enumerate(stmts):
            made += statement(stmt, outer, (*before, *stmts[:at]))
        return tuple(made)

    def statement(stmt: Stmt, outer: tuple[For, ...], before: Body) -> Body:
        if isinstance(stmt, For):
            found = nest_that_is_left(stmt, before, facts.only_in(stmt))
            if found is not None and not _are_points(outer, facts):
                made = _Search(found, facts.only_in(stmt), fresh).made()
                if made:
                    return made
            outer, before = (*outer, stmt), ()
        if isinstance(stmt, While):
            before = ()
        return (with_bodies(stmt, tuple(body(part, outer, before) for part in bodies(stmt))),)

    return over_kernels(program, lambda stmts: body(stmts, (), ()))


def _are_points(outer: Sequence[For], facts: Facts) -> bool:
    """Whether the rounds of some loop are done at once, of which each looks for itself."""
    return any(facts.is_free(loop, facts.private(loop)) for loop in outer)


@dataclass(frozen=True, slots=True)
class _Search:
    """A nest that is left, and the temporaries that nothing but it uses."""

    nest: Nest
    only: frozenset[int]
    fresh: Fresh

    def made(self) -> Body:
        """Return what looks for the round, and does it again; nothing where the nest stays."""
        loops, body = self.nest.loops, self.nest.body
        order = numbered(loops)
        halts = While, Print, Alloc, Permute, Continue
        if order is None or any(isinstance(stmt, halts) for stmt in statements(body)):
            return ()
        if not may_go_on(loops, body):
            return ()
        label = next((n.label for n in writes(body)), loops[0].symbol.name)
        at = self.fresh.scalar(f"{label}_at", dtypes.int64)
        found = Update(Access(at, ()), OPS["min"], Position(order.number))
        looks, does = looking(body, (found,)), again(body)
        if looks is None or does is None:
            return ()
        last = self.last(looks)
        if last is None:
            return ()
        looks = self.copied(looks, at)
        ends = self.ends(order, does, at, keeps=bool(last))
        start: Expr = Const(LAST, dtypes.int64)
        if last:
            start = Position((rounds_of(loops[0]) - 1) * abs(loops[0].step))
        first = Store(Access(at, ()), start)
        return (*self.nest.before, first, *around(order.loops, looks), ends)

    def last(self, looks: Body) -> frozenset[int] | None:
        """Return the scalars whose last values are used behind, each of which every round finds;
        None where rounds do more than to find what they need."""
        sure: set[int] = set()
        for stmt in self.nest.body:
            if isinstance(stmt, If | Check) or not self.is_known(stmt):
                break
            if isinstance(stmt, Store) and not stmt.access.index:
                sure.add(stmt.access.node.id)
        out: set[int] = set()
        found = accesses(looks)
        for node in self.changed(looks):
            if node.id not in self.only:
                if node.id not in sure or len(self.nest.loops) > 1:
                    return None
                out.add(node.id)
            if found.read_before_written(node):
                return None
        return frozenset(out)

    def is_known(self, stmt: Stmt) -> bool:
        """Whether a statement is done in every round."""
        return not any(isinstance(one, Check | Break) for one in statements((stmt,)))

    def changed(self, looks: Body) -> list[Node]:
        """Return what rounds write that look for something, but for the number of the first."""
        known = {node.id for node in writes(self.nest.body)}
        return [node for node in writes(looks) if node.id in known]

    def copied(self, looks: Body, at: Node) -> Body:
        """Return what rounds look for with names and temporaries of its own."""
        copies = {node.id: self.fresh.like(node) for node in self.changed(looks)}
        names = {s: self.fresh.symbol(s.name) for one in statements(looks) for s in binds(one)}
        return rename(looks, names, copies)

    def ends(self, order: Numbered, does: Body, at: Node, keeps: bool) -> Stmt:
        """Return what does the round that was found; the last one, where it `keeps` something."""
        name, limit = ("ge", 0) if keeps else ("lt", LAST)
        is_one = Apply(OPS[name], (Read(at, ()), Const(limit, dtypes.int64)), dtypes.bool_)
        lets, names = order.named(Read(at, ()), self.fresh)
        return If(is_one, (*lets, *substitute(does, names)))


def may_go_on(loops: Sequence[For], body: Body) -> bool:
    """Whether a nest that is left may do its other rounds, too: an array that it reads has as many
    elements, or they are not very many."""
    letters = {loop.symbol for loop in loops}
    for _, index in accesses_of(body):
        axes = [
            {letter for letter in letters if at.coefficient(letter)}
            for at in index if not isinstance(at, Dynamic)
        ]  # fmt: skip
        if sum(map(bool, axes)) >= len(letters) and letters == set[Symbol]().union(*axes):
            return True
    known, counts = Bounds(), list[int | None]()
    for loop in loops:
        counts.append(known.most(rounds_of(loop)))
        known = known.inside(loop)
    if None in counts:
        return False
    return prod(max(count or 0, 0) for count in counts) * within(body, known) <= MANY


# ---------------------------------------------------------------- one round


def looking(body: Body, found: Body) -> Body | None:
    """Return what of a round says whether anything happens in it, which is `found` then; None
    where it cannot be told apart."""
    plain = _plain(body)
    if plain and isinstance(plain[-1], Break):
        return found
    for at, stmt in enumerate(body):
        before, rest = body[:at], body[at + 1 :]
        if isinstance(stmt, Check):
            inner = looking(rest, found)
            return None if inner is None else (*before, If(stmt.test, inner, found))
        if isinstance(stmt, If) and (is_left((stmt,)) or fails((stmt,))):
            return _within(before, stmt, rest, lambda part: looking(part, found))
        if fails((stmt,)):
            return None
    return body


def again(body: Body) -> Body | None:
    """Return a round of a loop that is left, as one that goes on behind the loop."""
    for at, stmt in enumerate(body):
        if isinstance(stmt, Break):
            return body[:at]
        if isinstance(stmt, If) and is_left((stmt,)):
            return _within(body[:at], stmt, body[at + 1 :], again)
    return body


def _within(
    before: Body, stmt: If, rest: Body, change: Callable[[Body], Body | None]
) -> Body | None:
    """Return statements of which a branch is changed on both sides, together with what follows on
    the side that goes on; None where both do."""
    then, other = stmt.then, stmt.other
    if _plain(rest):
        if ends(then):
            other = (*other, *rest)
        elif ends(other):
            then = (*then, *rest)
        else:
            return None
    yes, no = change(then), change(other)
    return None if yes is None or no is None else (*before, replace(stmt, then=yes, other=no))


def ends(body: Body) -> bool:
    """Whether a list of statements is surely left."""
    last = _plain(body)[-1:]
    return any(
        isinstance(one, Break) or (isinstance(one, If) and ends(one.then) and ends(one.other))
        for one in last
    )


def _plain(body: Body) -> Body:
    return tuple(stmt for stmt in body if not isinstance(stmt, Comment))
