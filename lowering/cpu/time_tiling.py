r"""Some rounds of a stencil on a piece of its arrays before the next piece: tiles in time.

Changes: a loop whose rounds sweep over rows of arrays that are larger than the cache. Of so many
rounds as fit, each piece of the rows does first what needs no other piece: from round to round a
little less on both sides (trapezoids); then what is left between pieces is done, from round to
round a little more. Pieces, and the gaps between them, need nothing of each other. Inside a piece
blocks of rows follow one another, each a little further down in every later round, so that what a
round has written is still in the cache when the next one reads it.

    for t: for i: v[i] = f(u[i - 1], u[i], u[i + 1]);  u, v trade places
    for tile:
        for piece: for block: for round: for some i: v[i] = ...; for some i - 1: u[i] = ...
        for gap: for round: for i beside the gap: v[i] = ...; u[i] = ...

Needs: rounds of sweeps (`sweeps`), with as many rows in each round. Guarantees: not a bit changes:
every element is computed as often, from the same values, whatever the threads. After "Time
Skewing" (Wonnacott) and "Cache Oblivious Stencil Computations" (Frigo and Strumpen), with pieces of
a fixed size.

>>> from plusequals.lowering.ir.printer import print_program
>>> program = lowered('''
... for t in range(10):
...     y[1:-1] = x[:-2] + x[2:]
...     x[1:-1] = y[1:-1]
... ''', y="f32[10000]", x="f32[10000]")
>>> made = print_program(stencil(program, Target(schedule=True, l2_bytes=16384, threads=2)))
>>> print("\n".join(line[8:].split("..")[0] for line in made.split("\n") if "for " in line))
for tile in 0
    for piece in 0
        for block in 0
            for t in 0
                for i in max(0, max(1280*piece + 128*block - 2*t - 20, 1280*piece + 2*t -
                for i in max(0, max(1280*piece + 128*block - 2*t - 21, 1280*piece + 2*t -
    for gap in 1
        for t in 0
            for i in max(0, 1280*gap - 2*t - 20)
            for i in max(0, 1280*gap - 2*t - 21)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ...base.lazy_import import Later
from ..analysis.dependence import private
from ..analysis.subscripts import ranges
from ..ir import dtypes
from ..ir.assignments import Let, Permute
from ..ir.decision import Decided, Decision, Reason
from ..ir.expressions import Apply, Position
from ..ir.indexing import Affine, Symbol, const, floordiv, maximum, minimum, var
from ..ir.loops import For, If, LoopKind, Program, Stmt
from ..ir.ops import OPS
from ..ir.walk import own_reads, own_writes, statements
from ..target import Target
from ..transform.outermost import Outermost

if TYPE_CHECKING:
    from ..analysis import stencil as sweeps
else:  # what few programs need
    sweeps = Later("..analysis.stencil", __package__)

Body = tuple[Stmt, ...]
Rounds = Callable[[Callable[[Affine], tuple[Affine, Affine]]], Body]
"""Makes the rounds of a tile, of those rows that a sweep does when it is so much late."""
MOST_STAGES = 32
"""So many sweeps over a piece follow one another at most."""
MOST_TEXT = 12
"""A period of more sweeps than that stays: there would be much code."""
NEAR = 16 << 10
"""How many bytes a block has: little enough for the first cache, enough for long loops."""
FAR = 4 << 20
"""How many bytes of the last cache a thread may count on."""
PIECES = 4
"""So many pieces there are for each thread, where they are wide enough."""


class Tiled(Reason):
    """Why rounds are done together."""

    CACHE = "its arrays are larger than the cache, and a row needs only those near to it"
    ALONE = "no row needs another one, and a piece stays in the cache"


class _Sizes(NamedTuple):
    """How a loop is cut."""

    periods: int
    """So many periods are done together; 0: all of them."""
    block: int
    """Rows of a block."""
    width: int
    """Rows of a piece, a multiple of those of a block."""


def stencil(program: Program, target: Target) -> Program:
    """Return the program with stencils in tiles of several rounds."""
    return in_time(program, target).program


def in_time(program: Program, target: Target) -> Decided:
    """Return the program with stencils in tiles of several rounds, and which these are."""
    return _Work.on(program, target)


class _Work(Outermost):
    """The work on one program."""

    __slots__ = ()

    def nest(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        """Return a loop of sweeps in tiles, None where it has to stay."""
        rounds = (loop.hi - loop.lo).constant
        if loop.kind != "serial" or loop.step != 1 or (rounds is not None and rounds < 2):
            return None
        used, caches = _bytes(loop), 2 * self.target.threads * self.target.l2_bytes
        if not any(isinstance(s, For) for s in loop.body) or used <= min(NEAR, caches):
            return None
        found = sweeps.sweeps_of(loop, self.only(), self.own, ranges(outer))
        if found is None or (found.reach and used <= caches):
            return None
        own = self.only()[id(loop)]
        if not found.reach and any(node.id in own for node in found.nodes):
            return None  # each thread would have its own, of which it needs some rows
        sizes = _sizes(found, self.target, rounds)
        if sizes is None:
            return None
        node = next(
            n for s in found.stages for one in statements((s.loop,)) for n in own_writes(one)
        )
        why, name = Tiled.CACHE if found.reach else Tiled.ALONE, loop.symbol.name
        self.decisions.append(Decision("skewed", why, node, span=loop.span, variable=name))
        return _Tiles(self, found, sizes, self.end(loop, outer)).statements()


def _bytes(loop: For) -> int:
    """Return how many bytes of arrays a round uses, of those whose size is known."""
    nodes = {n.id: n for s in statements(loop.body) for n in (*own_reads(s), *own_writes(s))}
    known = (node for node in nodes.values() if node.rank and node.static_shape is not None)
    return sum(node.bytes for node in known)


def _rows(found: sweeps.Sweeps) -> tuple[int, int]:
    """Return the first row and the one behind the last."""
    los = [stage.loop.lo.constant or 0 for stage in found.stages]
    his = [stage.loop.hi.constant or 0 for stage in found.stages]
    return min(los), max(his)


def _sizes(found: sweeps.Sweeps, target: Target, rounds: int | None) -> _Sizes | None:
    """Return how a loop is cut so that what is in use stays in a cache; None if none is enough."""
    stages, period, reach = len(found.stages) * found.period, found.period, found.reach
    first, behind = _rows(found)
    shapes = [(node, node.static_shape) for node in found.nodes]
    if stages > MOST_TEXT or any(not shape or not shape[0] for _, shape in shapes):
        return None
    row = max(1, sum(node.bytes // shape[0] for node, shape in shapes if shape))
    rows = behind - first
    if not reach:
        block = max(1, NEAR // row)
        return _Sizes(0, block, block) if rows > block else None
    for budget in (target.l2_bytes // 2, min(target.l3_bytes // (2 * target.threads), FAR)):
        block = max(1, min(NEAR, budget // 8) // row)
        room = budget // row - block - 2 * reach
        most = min(MOST_STAGES, rows // (4 * target.threads * reach), room // reach)
        periods = most // stages
        if rounds is not None:
            periods = min(periods, -(-rounds // period))
        if periods * period >= 2:
            width = max(-(-rows // (PIECES * target.threads)), 4 * reach * stages * periods, 1)
            return _Sizes(periods, block, -(-width // block) * block)
    return None


class _Tiles(NamedTuple):
    """The tiles of one loop."""

    work: Outermost
    found: sweeps.Sweeps
    sizes: _Sizes
    end: Affine
    """Where the loop over rounds ends, not before it begins."""

    @property
    def late(self) -> int:
        """By how many rows the last sweep of a tile is behind."""
        found = self.found
        return found.reach * len(found.stages) * found.period * self.sizes.periods

    def statements(self) -> Body:
        """Return the tiles, and what leaves the arrays in their places."""
        loop, period = self.found.loop, self.found.period
        count = self.end - loop.lo
        whole = floordiv(count + (period - 1), const(period))
        named = self.work.fresh.symbol("periods")
        lets = () if whole.constant is not None else (Let(named, Position(whole), loop.span),)
        whole = var(named) if lets else whole
        tiles = self.tiles(whole) if self.sizes.periods else self.at_once(whole)
        if period == 1:
            return (*lets, tiles)
        moves = tuple(stmt for stmt in loop.body if isinstance(stmt, Permute))
        left = loop.lo + floordiv(count, const(period)) * period
        return (*lets, tiles, replace(loop, lo=left, hi=self.end, body=moves))

    def at_once(self, whole: Affine) -> For:
        """Return the pieces with all their rounds: they need nothing of each other."""
        first, behind = _rows(self.found)
        pieces = -(-(behind - first) // self.sizes.width)
        return self.pieces(partial(self.rounds, const(0), whole), first, pieces)

    def tiles(self, whole: Affine) -> For:
        """Return the loop over the tiles of so many periods."""
        found = self.found
        tile = self.work.fresh.symbol("tile")
        first, behind = _rows(found)
        start = first - self.late
        pieces = -(-(behind + self.late - start) // self.sizes.width)
        left = whole - var(tile) * self.sizes.periods
        even = whole.constant is not None and not whole.constant % self.sizes.periods
        many = const(self.sizes.periods) if even else minimum(const(self.sizes.periods), left)
        rounds = partial(self.rounds, var(tile) * self.sizes.periods, many)
        body = [self.pieces(rounds, start, pieces)]
        if pieces > 1:
            body.append(self.gaps(rounds, start, pieces))
        tiles = floordiv(whole + (self.sizes.periods - 1), const(self.sizes.periods))
        return For(tile, const(0), tiles, 1, tuple(body), span=found.loop.span)

    def pieces(self, rounds: Rounds, start: int, pieces: int) -> For:
        """Return the loop over pieces: each does what needs no other one, block by block."""
        fresh, (_, block, width) = self.work.fresh, self.sizes
        piece, number = fresh.symbol("piece"), fresh.symbol("block")
        base = var(piece) * width + start
        begin = base + var(number) * block

        def span(skew: Affine) -> tuple[Affine, Affine]:
            late = begin - skew
            return (maximum(base + skew, late) if self.late else late), late + block

        if width == block:
            begin = base
            return self.shared(piece, 0, pieces, rounds(span))
        inner = For(number, const(0), const(width // block), 1, rounds(span))
        return self.shared(piece, 0, pieces, (inner,))

    def gaps(self, rounds: Rounds, start: int, pieces: int) -> For:
        """Return the loop over the gaps between pieces: what these left, when both are done."""
        gap = self.work.fresh.symbol("gap")
        between = var(gap) * self.sizes.width + start

        def span(skew: Affine) -> tuple[Affine, Affine]:
            return between - skew, between + skew

        return self.shared(gap, 1, pieces, rounds(span))

    def rounds(
        self, done: Affine, many: Affine, span: Callable[[Affine], tuple[Affine, Affine]]
    ) -> tuple[For]:  # fmt: skip
        """Return the rounds of a tile, in each of them the rows of `span`, given how late it is."""
        found, fresh, loop = self.found, self.work.fresh, self.found.loop
        at = fresh.symbol(loop.symbol.name)
        number, stages = len(found.stages), len(found.stages) * found.period
        body: list[Stmt] = []
        for sweep in range(stages):
            skew = (var(at) * stages + sweep) * found.reach
            time = loop.lo + (done + var(at)) * found.period + sweep // number
            made = found.stage(fresh, sweep, time)
            first, behind = span(skew)
            first, behind = maximum(made.lo, first), minimum(made.hi, behind)
            body += found.stages[sweep % number].comments
            body.append(self.guarded(replace(made, lo=first, hi=behind), time, sweep // number))
        return (For(at, const(0), many, 1, tuple(body), span=loop.span),)

    def guarded(self, sweep: For, time: Affine, place: int) -> Stmt:
        """Return a sweep, with a test where it may be of a round behind the last one."""
        count = (self.end - self.found.loop.lo).constant
        if not place or (count is not None and not count % self.found.period):
            return sweep
        test = Apply(OPS["lt"], (Position(time), Position(self.end)), dtypes.bool_)
        return If(test, (sweep,), span=sweep.span)

    def shared(self, symbol: Symbol, first: int, behind: int, body: Body) -> For:
        """Return a loop whose rounds threads share, where they can have what rows have."""
        made = For(symbol, const(first), const(behind), 1, body, span=self.found.loop.span)
        used = {n.id for s in statements(body) for n in (*own_reads(s), *own_writes(s))}
        own = frozenset(node.id for node in self.work.fresh.nodes if node.id in used)
        several = self.work.target.threads > 1 and behind - first > 1
        kind: LoopKind = "parallel" if several and private(made, own) == own else "serial"
        return replace(made, kind=kind)
