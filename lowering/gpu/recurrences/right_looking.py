"""Rounds that need something of every earlier one: each hands it on instead, to all that come.

    for i in a..b: before(i); for j in a..i: adds(i, j); behind(i)
    becomes
    for i in a..b: before(i)
    for j in a..b: behind(j); for i in j+1..b: adds(i, j)

What is handed on goes to independent rounds, whereas none of the loops were independent. Needs no
element that something else has in between: what a round adds to one comes from the same rounds as
before, in their order, so that no bit changes. Scalars that a round keeps meanwhile get an element
for each round.

>>> program = lowered('''
... for i in range(900):
...     s = b[i]
...     for j in range(i):
...         s -= m[i, j] * x[j]
...     x[i] = s / m[i, i]
... ''', x="f32[900]", b="f32[900]", m="f32[900, 900]")
>>> made = onward(program, facts_of(program), fresh_for(program))
>>> print_loops(made.kernels[0].body)
for i in 0..900:
    # s = b[i]
    s = b[i]
    # for j in range(i)
    s_rounds[i] = s
for j in 0..900:
    # x[i] = s / m[i, i]
    x[j] = s_rounds[j] / m[j, j]
    for i in j + 1..900:
        # s -= m[i, j] * x[j]
        s_rounds[i] = s_rounds[i] - m[i, j] * x[j]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from ....base.dataclass import dataclass
from ...analysis.accesses import Site, accesses
from ...analysis.dependence import Ranks, overtakes
from ...analysis.parallel_band import Facts, trips, with_loops, with_value
from ...analysis.subscripts import ranges
from ...ir.assignments import Let
from ...ir.expressions import Index
from ...ir.fresh import Fresh
from ...ir.indexing import Range, Symbol, const, var
from ...ir.loops import Comment, For, Program, Stmt
from ...ir.node import Node
from ...ir.rewrite import over_kernels
from ...ir.walk import reads, statements, writes
from ...transform.remap import Place, elsewhere
from ..thread_block import is_shared
from .wavefront import FEWEST, may_turn

Body = tuple[Stmt, ...]


def onward(program: Program, facts: Facts, fresh: Fresh) -> Program:
    """Return the program whose rounds hand on what later ones need of them, where that is more to
    share."""
    work = _Work(facts, fresh)
    return over_kernels(program, lambda body: with_loops(body, facts, work.turned))


@dataclass(frozen=True, slots=True)
class _Work:
    """The work on one program."""

    facts: Facts
    fresh: Fresh

    def turned(self, loop: For, around: tuple[For, ...]) -> Body:
        """Return the loops in the place of one, none where it stays."""
        outer = ranges(around)
        at = place_of(loop)
        if at is None or is_shared(loop, self.facts) or not may_turn(loop):
            return ()
        inner = loop.body[at]
        assert isinstance(inner, For), "that is what was looked for"
        if is_shared(inner, self.facts):
            return ()
        own, theirs = self.facts.private(loop), self.facts.private(inner)
        before, behind = loop.body[:at], loop.body[at + 1 :]
        kept = _kept(before, inner, behind, own - theirs)
        if kept is None or not _is_in_order(loop, at, own | theirs, outer):
            return ()
        rooms = self.rooms(loop, kept)
        if rooms is None:
            return ()
        return self.made(loop, inner, (before, behind), rooms, theirs)

    def rooms(self, loop: For, kept: Sequence[Node]) -> dict[int, Node] | None:
        """Return arrays with an element for each round, None where there is no number of them."""
        count = trips(loop)
        if count is None:
            return None if kept else {}
        return {
            node.id: self.fresh.array(f"{node.label}_rounds", (count,), node.dtype) for node in kept
        }

    def made(
        self, loop: For, inner: For, parts: tuple[Body, Body], rooms: dict[int, Node],
        theirs: frozenset[int],
    ) -> Body:  # fmt: skip
        """Return the loops, none where what is handed on goes to rounds that are not independent.

        `rooms` are the arrays of what a round keeps, `theirs` what a round inside has for itself.
        """

        def moved(node: Node, index: tuple[Index, ...]) -> Place:
            room = rooms.get(node.id)
            return (node, index) if room is None else (room, (var(loop.symbol) - loop.lo,))

        before, behind, adds = (elsewhere(part, moved) for part in (*parts, inner.body))
        first = self.fresh.symbol(loop.symbol.name)
        start = replace(loop, symbol=first, body=with_value(before, loop.symbol, var(first)))
        later = replace(loop, lo=var(inner.symbol) + 1, body=adds)
        there = with_value(behind, loop.symbol, var(inner.symbol))
        rounds = replace(inner, hi=loop.hi, body=(*there, later), span=loop.span)
        starts = all(isinstance(stmt, Comment) for stmt in before)
        made: Body = (*before, rounds) if starts else (start, rounds)
        self.facts.tell(made, self.facts.only_in(loop) - rooms.keys())
        return made if self.facts.is_free(later, theirs, ranges((rounds,))) else ()


def place_of(loop: For) -> int | None:
    """Return where in a loop the one over all earlier rounds is; None where there is none."""
    if loop.step != 1 or trips(loop) in range(FEWEST):
        return None
    for at, stmt in enumerate(loop.body):
        if isinstance(stmt, For) and (stmt.lo, stmt.hi) == (loop.lo, var(loop.symbol)):
            return at if stmt.step == 1 else None
    return None


def _kept(before: Body, inner: For, behind: Body, own: frozenset[int]) -> list[Node] | None:
    """Return the scalars that a round keeps while others hand on to it, of those that it has for
    itself; None where it keeps more than scalars."""
    used = [{*reads(part), *writes(part)} for part in (before, inner.body, behind)]
    named = {stmt.symbol for stmt in statements(before) if isinstance(stmt, Let)}
    kept = [n for n in used[1] | used[0] & used[2] if n.id in own]
    if named or any(node.rank for node in kept):
        return None
    return sorted(kept, key=lambda node: node.id)


def _is_in_order(loop: For, at: int, own: frozenset[int], outer: tuple[Range, ...]) -> bool:
    """Whether no two rounds use an element in another order, which one of them writes."""
    inner = loop.body[at]
    assert isinstance(inner, For), "that is what was looked for"
    for number, sites in accesses((loop,)).sites.items():
        if number in own or not any(site.writes for site in sites):
            continue
        if not sites[0].node.rank:
            return False
        for one, other in product(sites, repeat=2):
            if not (one.writes or other.writes):
                continue
            ranks = _ranks(one, other, at, loop.symbol, inner.symbol)
            if ranks is not None and overtakes(loop, one, other, outer, ranks):
                return False
    return True


def _ranks(one: Site, other: Site, at: int, whole: Symbol, inner: Symbol) -> Ranks | None:
    """Return numbers that say which comes first now, of a place and one of a later round: the
    second where its number is not greater. None where that does not change."""
    here, there = one.route[1][0], other.route[1][0]
    if here < at or there > at:
        return None
    if there < at:
        return const(0), const(0)
    rounds = inner if here == at else whole
    return var(rounds) - 1, var(inner)
