"""Add up the terms of a sum in lanes: many independent partial sums, put together at the end.

Changes: of n terms, term p goes to lane p % L. Lanes are added up in blocks of 32 L terms, blocks
in blocks of 32, whose sums are added one after the other; of the lanes the upper half is added to
the lower one until one is left, and that is added to the target:

    lane[l] = x[l] + x[l + L] + x[l + 2 L] + ...           0 <= l < L, in every block
    lane[l] = lane[l] + lane[l + w]                        0 <= l < w, for w = L/2, ..., 2, 1
    y = y + lane[0]

What is left behind whole steps is added as vectors, whose lanes behind the last term get -0.0; a
row of any size takes the loops over blocks only where it has more terms than one.

Extremes of cheap terms that are found beside other things get a loop of their own first.

Needs: accumulations that know where their terms stand (`Update.over`), as `order` left them.
Guarantees: the order of a sum depends on the number of its terms alone, not on the shape of loops:
a short sum is written out, a loop that does more than adding up keeps its shape and finds the lane
of each term as it comes, and both have the bits of the loop in lanes.

>>> show(lanes, "y[i] = sum(x[i, j])", y="f32[8]", x="f32[8, 4]")
for i in 0..8:
    y[i] = 0.0
    y[i] += x[i, 0] + x[i, 2] + (x[i, 1] + x[i, 3])
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from functools import partial
from typing import cast

from ....base.dataclass import dataclass
from ...analysis.reductions import Sum, extremes_apart, is_extreme, sums, together, upper_half
from ...ir import dtypes
from ...ir.assignments import Access
from ...ir.bounds import Bounds, bounds_of
from ...ir.decision import Decided, Decision, Reason
from ...ir.expressions import Apply, Const, Expr, Position, Read, walk
from ...ir.fresh import Fresh, fresh_for
from ...ir.indexing import Affine, const, floordiv, maximum, minimum, mod, var
from ...ir.loops import Comment, For, If, Program, Stmt, Store, Update
from ...ir.node import Node
from ...ir.ops import OPS
from ...ir.rewrite import map_statements, over_kernels, substitute, substitute_expr, with_bodies
from ...ir.walk import bodies
from .lane_statements import (
    LARGEST,
    WIDEST,
    counts,
    is_light,
    is_padded,
    kept,
    kind,
    lanes_of,
    on_lanes,
)
from .min_max import extremes, foremost
from .partials import Partials

Body = tuple[Stmt, ...]
LANES = 32
"""How many partial sums there are: enough to fill the adders of a processor, whatever it has."""
BLOCK = 32 * LANES
"""So many terms are added up before their sums are added to those of other blocks."""
BLOCKS = 32 * BLOCK
"""So many terms are in blocks whose sums are added up together."""
SHORT = 8
"""Sums of up to so many terms are written out."""


class Spread(Reason):
    """Why a sum is added up in lanes."""

    APART = "its terms need nothing of each other, and their order is open"


def lanes(program: Program) -> Program:
    """Return the program with sums in lanes."""
    return in_lanes(program).program


def in_lanes(program: Program) -> Decided:
    """Return the program with sums in lanes, and which these are."""
    program = over_kernels(program, lambda body: map_statements(body, _apart))
    work = _Work(fresh_for(program))
    known = bounds_of(parameter.node for parameter in program.parameters)
    kernels = tuple(replace(k, body=work.body(k.body, (), known)) for k in program.kernels)
    return Decided(work.fresh.declared(replace(program, kernels=kernels)), tuple(work.decisions))


def _apart(stmt: Stmt) -> Body:
    return extremes_apart(stmt) if isinstance(stmt, For) else (stmt,)


@dataclass(slots=True)
class _Work:
    """The work on one program; keeps the decisions."""

    fresh: Fresh
    decisions: list[Decision] = field(default_factory=list)

    def body(self, body: Body, outer: tuple[For, ...], known: Bounds, around: _Sums = ()) -> Body:
        """Return statements with the sums of their loops, and those of `around`, in lanes."""
        return tuple(new for stmt in body for new in self.statement(stmt, outer, known, around))

    def statement(self, stmt: Stmt, outer: tuple[For, ...], known: Bounds, around: _Sums) -> Body:
        """Return what takes the place of a statement."""
        if not isinstance(stmt, For):
            lists = (self.body(one, outer, known, around) for one in bodies(stmt))
            return (with_bodies(stmt, tuple(lists)),)
        starting = tuple(_Open(one) for one in sums(stmt, outer))
        for one in starting:
            node, span = one.update.access.node, one.update.span
            self.decisions.append(Decision("lanes", Spread.APART, node, span=span))
        around = (*around, *starting)
        mine = [one for one in around if one.sum.innermost is stmt]
        if mine and all(one.sum.is_plain for one in mine):
            new = _Spread(Partials(self.fresh), stmt, mine).plain(known)
        else:
            body = self.body(stmt.body, (*outer, stmt), known.inside(stmt), around)
            stmt = with_bodies(stmt, (body,))
            new = (_Spread(Partials(self.fresh), stmt, mine).in_place() if mine else stmt,)
        before = (first for one in starting for first in one.before)
        return (*before, *new, *(last for one in starting for last in one.after))


@dataclass(frozen=True, slots=True, eq=False)
class _Open:
    """A sum on its way into lanes."""

    sum: Sum
    before: list[Stmt] = field(default_factory=list)
    """What starts its lanes before the loop that counts its first range."""
    after: list[Stmt] = field(default_factory=list)
    """What puts them together behind that loop."""

    @property
    def update(self) -> Update:
        """The accumulation."""
        return self.sum.update

    @property
    def is_alone(self) -> bool:
        """Whether one loop counts all terms."""
        return len(self.sum.letters) == 1


_Sums = tuple[_Open, ...]


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the rounds of a loop, and where what is left behind whole steps begins."""

    start: Affine
    first: Affine
    whole: Affine
    end: Affine
    size: int | None
    """None: all rounds."""

    def until(self, end: Affine) -> Affine:
        """Return where it stops, of rounds until there, in whole blocks where all are."""
        if self.size is None:
            return end
        stop, rounds = self.start + self.size, (self.end - self.first).constant
        return minimum(stop, end) if rounds is None or rounds % self.size else stop


@dataclass(frozen=True, slots=True)
class _Spread:
    """The sums that one loop counts the last range of."""

    lanes: Partials
    loop: For
    mine: list[_Open]

    # ------------------------------------------------------------------------------ in steps

    def plain(self, known: Bounds) -> Body:
        """Return a loop in steps of all lanes, and one for the terms that are left."""
        loop, mine = self.loop, self.mine
        rounds = loop.hi - loop.lo
        least, most = known.interval(rounds)
        if least is None or least < 0:
            rounds = maximum(rounds, const(0))
        count = rounds.constant
        is_of_extremes = is_extreme(mine[0].update)
        updates = [one.update for one in mine]
        if is_of_extremes and (found := extremes(self.lanes, loop, updates, LANES)):
            return found
        if count is not None and count <= SHORT and _is_short(loop, mine):
            return self.written_out(count)
        if is_of_extremes and count is not None:
            return (loop,)
        few = LANES if count is None else max(1, min(LANES, count))
        if is_padded(loop, updates):
            few = 1 << (few - 1).bit_length()
        levels = [size for size in (BLOCK, BLOCKS) if most is None or most > size]
        if is_of_extremes:
            levels = []
        number = len(levels) + 1
        nodes = {
            id(one.update): self.lanes.arrays(one.update, number, few if one.is_alone else LANES)
            for one in mine
        }
        if count is None and levels and is_padded(loop, updates) and all(o.is_alone for o in mine):
            return self.short_or_long(rounds, levels)
        out = list(self.blocks(rounds, levels, nodes))
        if is_of_extremes:
            ends = (foremost(self.lanes, loop, one, nodes[id(one)][0]) for one in updates)
            return (*out, *(stmt for body in ends for stmt in body))
        for one in mine:
            last = nodes[id(one.update)][-1]
            if not one.is_alone:
                (total,) = self.lanes.arrays(one.update, 1, LANES)
                one.before.append(self.lanes.cleared(one.update, total))
                out.append(self.lanes.joined(one.update, total, last))
                last = total
            one.after.extend(self.lanes.folded(one.update, last))
        return tuple(out)

    def short_or_long(self, rounds: Affine, levels: list[int]) -> Body:
        """Return a branch for what is one block, where that is not known: it takes no more steps
        than it has to, and has the same bits, for nothing is added to the lanes of blocks."""

        def side(levels: list[int]) -> Body:
            nodes: dict[int, list[Node]] = {}
            for one in self.mine:
                arrays = self.lanes.arrays(one.update, len(levels) + 1, LANES)
                nodes[id(one.update)] = arrays
            ends = (self.lanes.folded(o.update, nodes[id(o.update)][-1]) for o in self.mine)
            return (*self.blocks(rounds, levels, nodes), *(stmt for end in ends for stmt in end))

        block = Const(BLOCK, dtypes.int64)
        test = Apply(OPS["le"], (Position(rounds), block), dtypes.bool_)
        return (If(test, side([]), side(levels), self.loop.span),)

    def blocks(self, rounds: Affine, levels: list[int], nodes: dict[int, list[Node]]) -> Body:
        """Return the loops that leave the sum of all terms in the last of the lanes of each sum."""
        loop, mine = self.loop, self.mine
        whole = loop.lo + floordiv(rounds, const(LANES)) * LANES
        end = loop.lo + rounds

        def level(number: int, start: Affine, size: int | None) -> Body:
            """Return what leaves the sum of the terms from `start` in the lanes of a level."""
            own = {key: lanes[number] for key, lanes in nodes.items()}
            cleared = tuple(self.lanes.cleared(one.update, own[id(one.update)]) for one in mine)
            part = _Part(start, loop.lo, whole, end, size)
            if number == 0:
                return (*cleared, *self.steps_and_counts(own, part))
            block = self.lanes.fresh.symbol("block")
            body = level(number - 1, var(block), levels[number - 1])
            below = {key: lanes[number - 1] for key, lanes in nodes.items()}
            joined = (
                self.lanes.joined(o.update, own[id(o.update)], below[id(o.update)]) for o in mine
            )
            step = levels[number - 1]
            return (
                *cleared,
                For(block, start, part.until(end), step, (*body, *joined), span=loop.span),
            )

        return level(len(levels), loop.lo, None)

    def steps_and_counts(self, own: dict[int, Node], part: _Part) -> Body:
        """Return the loops over steps, in which counts have lanes of their own."""
        found = [_Open(Sum(update, (self.loop,), False)) for update in counts(self.loop)]
        few = lanes_of(next(iter(own.values())))
        nodes = [self.lanes.arrays(one.update, 2, few) for one in found]
        before: list[Stmt] = []
        after: list[Stmt] = []
        for one, (lanes, total) in zip(found, nodes, strict=True):
            before += (self.lanes.cleared(one.update, lanes), self.lanes.cleared(one.update, total))
            after += (
                self.lanes.joined(one.update, total, lanes),
                *self.lanes.folded(one.update, total),
            )
        counted = {id(one.update): node for one, (node, _) in zip(found, nodes, strict=True)}
        return (*before, *self.steps({**own, **counted}, part), *after)

    def steps(self, own: dict[int, Node], part: _Part) -> Body:
        """Return the loop over steps of all lanes, and the loop over what is left behind them."""
        loop = self.loop
        out: list[Stmt] = []
        lane, at, left = (
            self.lanes.fresh.symbol(name) for name in ("lane", loop.symbol.name, "rest")
        )
        steps, stop = part.until(part.whole), part.until(part.end)
        if (steps - part.start).constant != 0:
            body = on_lanes(loop.body, own, lambda _: var(lane))
            body = substitute(body, {loop.symbol: var(at) + var(lane)})
            inner = For(lane, const(0), const(LANES), 1, body, kind(body, own), loop.span)
            out.append(For(at, part.start, steps, LANES, (inner,), span=loop.span))
        count = (part.end - part.whole).constant
        if count is not None and part.size is None and is_light(loop, count):
            return (*out, *self.pieces(own, part.whole, count))
        if count is None and is_padded(loop, (one.update for one in self.mine)):
            return (*out, *self.rest(own, part.whole, stop - part.whole))
        if 0 not in (count, (stop - part.whole).constant):
            body = on_lanes(loop.body, own, lambda _: var(left) - part.whole)
            body = substitute(body, {loop.symbol: var(left)})
            out.append(For(left, part.whole, stop, 1, body, span=loop.span))
        return tuple(out)

    def pieces(self, own: dict[int, Node], whole: Affine, count: int) -> Iterator[Stmt]:
        """Yield loops over the first lanes, as many as there are terms behind whole steps: each of
        a power of two, as vectors are, or of a whole vector of which some lanes have none."""
        loop, first = self.loop, 0
        unit = _vector(own) if is_padded(loop, (one.update for one in self.mine)) else 1
        while first < count:
            left = count - first
            size = max(unit, upper_half(left + 1))
            lane = self.lanes.fresh.symbol("lane")
            body = on_lanes(loop.body, own, partial(_at, var(lane) + first))
            body = substitute(body, {loop.symbol: whole + var(lane) + first})
            if left < size:
                body = kept(body, var(lane), Const(left, dtypes.int64))
            if size == 1:
                yield from substitute(body, {lane: const(0)})
            else:
                yield For(lane, const(0), const(size), 1, body, kind(body, own), loop.span)
            first += size

    def rest(self, own: dict[int, Node], whole: Affine, count: Affine) -> Iterator[Stmt]:
        """Yield loops over the lanes of a vector, for as many terms behind whole steps as the run
        has: lanes behind the last one get what changes nothing."""
        loop, unit = self.loop, _vector(own)
        rest = self.lanes.fresh.scalar("rest", dtypes.int64)
        yield Store(Access(rest, ()), Position(count), loop.span)
        for first in range(0, LANES, unit):
            lane = self.lanes.fresh.symbol("lane")
            body = on_lanes(loop.body, own, partial(_at, var(lane) + first))
            body = substitute(body, {loop.symbol: whole + var(lane) + first})
            body = kept(body, var(lane) + first, Read(rest, ()))
            some = For(lane, const(0), const(unit), 1, body, kind(body, own), loop.span)
            test = Apply(OPS["gt"], (Read(rest, ()), Const(first, dtypes.int64)), dtypes.bool_)
            yield If(test, (some,), (), loop.span)

    # ------------------------------------------------------------------------------ otherwise

    def written_out(self, count: int) -> Body:
        """Return the terms one by one, and their sum."""
        loop, mine = self.loop, self.mine
        out: list[Stmt] = []
        terms: dict[int, list[Expr]] = {id(one.update): [] for one in mine}
        only = all(isinstance(stmt, Comment | Update) for stmt in loop.body)
        for number in range(count):
            values = {loop.symbol: loop.lo + number}
            for stmt in loop.body:
                if isinstance(stmt, Update):
                    term = substitute_expr(stmt.value, values)
                    if not only:
                        name = self.lanes.fresh.scalar(f"{stmt.access.node.label}_term", term.dtype)
                        out.append(Store(Access(name, ()), term, stmt.span))
                        term = Read(name, ())
                    terms[id(stmt)].append(term)
                elif isinstance(stmt, Store):
                    out += substitute((cast(Stmt, stmt),), values)
        for one in mine:
            if terms[id(one.update)]:
                value = together(one.update.op, terms[id(one.update)])
                out.append(replace(one.update, value=value, over=()))
        return tuple(out)

    def in_place(self) -> Stmt:
        """Return the loop as it is, in which each term finds its lane and starts its blocks."""
        loop, mine = self.loop, self.mine
        own: dict[int, Node] = {}
        heads: list[Stmt] = []
        for one in mine:
            made, update = self.lanes, one.update
            lanes, blocks, total = nodes = made.arrays(update, 3, LANES)
            own[id(update)] = lanes
            one.before.extend(made.cleared(update, node) for node in nodes)
            ended = made.joined(update, total, blocks), made.cleared(update, blocks)
            block = made.joined(update, blocks, lanes), made.cleared(update, lanes)
            heads.append(_if_starts(one, BLOCK, *block, _if_starts(one, BLOCKS, *ended)))
            joined = made.joined(update, blocks, lanes), made.joined(update, total, blocks)
            one.after.extend((*joined, *made.folded(update, total)))
        body = on_lanes(loop.body, own, lambda update: mod(update.over[-1], const(LANES)))
        return replace(loop, body=(*heads, *body))


def _vector(own: dict[int, Node]) -> int:
    """Return how many lanes the widest vectors have, and no more than there are."""
    widest = WIDEST // max(node.dtype.bits for node in own.values())
    return min(widest, *map(lanes_of, own.values()))


def _at(lane: Affine, _: Update) -> Affine:
    return lane


def _is_short(loop: For, mine: list[_Open]) -> bool:
    """Whether a loop of few rounds may as well be written out."""
    if not all(one.is_alone for one in mine):
        return False
    updates = [id(one.update) for one in mine]
    for stmt in loop.body:
        scalar = isinstance(stmt, Store) and not stmt.access.index
        if not (isinstance(stmt, Comment) or scalar or id(stmt) in updates):
            return False
    parts = sum(len(walk(s.value)) for s in loop.body if isinstance(s, Store | Update))
    return parts * SHORT <= LARGEST


def _if_starts(one: _Open, size: int, *body: Stmt) -> Stmt:
    """Return a branch for the rounds in which a block starts."""
    at = mod(one.update.over[-1], const(size))
    test = Apply(OPS["eq"], (Position(at), Const(0, dtypes.int64)), dtypes.bool_)
    return If(test, body, (), one.update.span)
