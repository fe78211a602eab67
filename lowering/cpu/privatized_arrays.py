"""Loops whose rounds need each other, shared among threads in pieces.

Changes: where a loop inside needs nothing of its other rounds, whatever the rounds around it do,
each thread does all rounds around it for a piece of its own of that loop:

    for i: for j: t[k[i], j] += x[i, j]    becomes    for piece: for i: for j in the piece: ...

A loop that only accumulates into an array, by what is exact in any order as sums of whole numbers
are, is taken in as many pieces as there are threads. Each accumulates into a copy of the array that
starts from what changes nothing; behind them the copies are put together.

    for i: h[k[i]] += w[i]    becomes    for piece: parts[piece, :] = 0
                                             for i in the piece: parts[piece, k[i]] += w[i]
                                         for e: for piece: h[e] += parts[piece, e]

What just before is checked of such a loop is checked in its rounds: only copies are written before.

Needs: for copies an array of a known size that a loop neither reads nor writes otherwise, and that
is small beside what the loop does; rounds that need nothing else of each other, and check nothing:
where a check fails, what was written before is there. Guarantees: not a bit changes.

>>> from plusequals.lowering.passes.simplify import simplify
>>> target = Target(threads=2, parallel_from=10_000)
>>> show(lambda program: pieces(simplify(program), target),
...      "h[k[i]] += 1", h="i64[256]", k="u8[9000]")
for piece in 0..2:
    for at in 0..256:
        h_parts[piece, at] = 0
    for i in 4500*piece..min(4500*piece + 4500, 9000):
        h_parts[piece, i64(k[i])] += 1
for at in 0..256:
    for piece in 0..2:
        h[at] += h_parts[piece, at]
>>> show(lambda program: pieces(simplify(program), target),
...      "t[k[i], j] += x[i, j]", t="f32[256, 64]", k="u8[900]", x="f32[900, 64]")
for piece in 0..2:
    for i in 0..900:
        for j in 32*piece..min(32*piece + 32, 64):
            t[i64(k[i]), j] += x[i, j]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

from ...base.dataclass import dataclass
from ...base.lazy_import import later
from ..analysis.cost import MOST, SCALAR, total_of
from ..analysis.dependence import independent, is_left, private
from ..analysis.effects import bound_in
from ..analysis.parallel_band import around
from ..analysis.subscripts import ranges
from ..ir import dtypes
from ..ir.assignments import Access, Let
from ..ir.decision import Decided, Decision, Reason
from ..ir.expressions import Apply, Const, Index, Position, Read
from ..ir.fresh import Fresh
from ..ir.indexing import Range, Symbol, const, var
from ..ir.loops import Comment, For, If, Program, Stmt, Store, Update
from ..ir.node import Node
from ..ir.ops import OPS, Op
from ..ir.walk import reads, writes
from ..target import Target
from ..transform.outermost import Outermost
from .checks.fused import checked, round_of
from .parallelize import is_worth

if TYPE_CHECKING:
    from ..analysis import accumulators
    from ..transform import remap, strip_mine
else:  # what few programs need
    accumulators, remap, strip_mine = later(
        __package__, "..analysis.accumulators", "..transform.remap", "..transform.strip_mine"
    )

Body = tuple[Stmt, ...]
WIDE, LONG = 16, 4
"""A piece of a loop inside has so many rounds at least, and all have so many times the work that is
worth sharing: short loops take longer for each round."""
EVEN, EACH = 512, 4
"""So many pieces for each thread at most, of which one without loops inside has so many rounds."""
SHARE = 4
"""A loop has so many times the work of all copies, at least."""


class Apart(Reason):
    """Why threads have elements of their own."""

    EXACT = "nothing else keeps the rounds from being shared, and their order changes no bit"
    INSIDE = "its own rounds need each other, those inside do not"


def pieces(program: Program, target: Target) -> Program:
    """Return the program with loops in pieces whose rounds need each other."""
    return in_pieces(program, target).program


def in_pieces(program: Program, target: Target) -> Decided:
    """Return the program with loops in pieces whose rounds need each other, and which these are."""
    if target.threads < 2:
        return Decided(program, ())
    return _Work.on(program, target)


@dataclass(frozen=True, slots=True)
class _Work(Outermost):
    """The work on one program."""

    ahead: dict[int, For] = field(default_factory=dict)
    """The loops that check what others need just behind them, by the `id` of those."""
    moved: set[int] = field(default_factory=set)
    """The `id`s of those that are done in pieces by now."""

    def body(self, body: Body, outer: tuple[For, ...]) -> Body:
        """Return a list of statements with what threads share in pieces."""
        self.ahead.update((id(body[two]), check) for check, two in checked(body))
        made = Outermost.body(self, body, outer)
        return tuple(stmt for stmt in made if id(stmt) not in self.moved)

    def nest(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        """Return a loop in pieces; the loop itself where it may be shared as it is; None where
        loops inside of it may."""
        if any(loop is one for one in self.ahead.values()):
            return (loop,)
        if loop.kind != "serial" or not is_worth(loop, self.target.parallel_from):
            return None
        mine, known = private(loop, self.only()[id(loop)]), ranges(outer)
        if independent(loop, mine, self.own, known) is None:
            return (loop,)
        cut = self.cut_inside(loop, known)
        if cut is not None:
            return cut
        copied = self.copied(loop, mine)
        taken = frozenset(copy.node.id for copy in copied)
        if not copied or independent(loop, mine | taken, self.own, known) is not None:
            return None
        least = (
            SHARE * SCALAR * sum(copy.parts.bytes // copy.node.dtype.itemsize for copy in copied)
        )
        total = total_of(loop)
        if total.constant is not None and total.constant < least:
            return None
        for copy in copied:
            name = loop.symbol.name
            self.decisions.append(
                Decision("deferred", Apart.EXACT, copy.node, span=loop.span, variable=name)
            )
        ahead = self.checks_of(loop, taken)
        tests = [stmt for one in ahead for stmt in round_of(one, loop.symbol)]
        made = self.made(replace(loop, body=(*tests, *loop.body)), copied)
        if total.constant is not None:
            return made
        least = max(least, self.target.parallel_from)
        sides = Position(total), Const(least, dtypes.int64)
        return (If(Apply(OPS["ge"], sides, dtypes.bool_), made, (*ahead, loop), loop.span),)

    def checks_of(self, loop: For, taken: frozenset[int]) -> tuple[For, ...]:
        """Return the loop that checks what a loop needs, which is done with it from now on."""
        found = self.ahead.get(id(loop))
        if found is None or any(node.id in taken for node in reads((found,))):
            return ()
        self.moved.add(id(found))
        return (found,)

    def cut_inside(self, loop: For, known: tuple[Range, ...]) -> Body | None:
        """Return a loop for each piece of the outermost loop inside that needs nothing of its other
        iterations, whatever the loops around it do; None where there is none."""
        if not is_worth(loop, LONG * self.target.parallel_from):
            return None
        for inner in _chain(loop):
            count = self.pieces_of(inner)
            if not count or (inner.lo.symbols() | inner.hi.symbols()) & bound_in((loop,)):
                continue
            if self.is_large(loop):
                return None
            turned = replace(inner, body=_with(loop, inner, inner.body))
            mine = private(turned, self.only()[id(loop)])
            if independent(turned, mine, self.own, known) is not None:
                continue
            name, span = inner.symbol.name, inner.span
            self.decisions.append(Decision("parallel", Apart.INSIDE, span=span, variable=name))
            piece = self.fresh.symbol("piece")
            part, body = strip_mine.chunk(inner, piece, count, inner.body, self.fresh)
            each = _with(loop, inner, around((part,), body))
            return (For(piece, const(0), const(count), 1, each, span=loop.span),)
        return None

    def pieces_of(self, loop: For) -> int:
        """Return in how many pieces threads take a loop, 0 where it has too few iterations; where
        it has many they are several for each thread: one that is held up gets fewer."""
        rounds, threads = (loop.hi - loop.lo).constant, self.target.threads
        if loop.step != 1 or rounds is None or rounds < WIDE * threads or is_left(loop.body):
            return 0
        is_inner = not any(isinstance(stmt, For) for stmt in loop.body)
        return threads * min(EACH, max(1, rounds // ((EVEN if is_inner else WIDE) * threads)))

    def is_large(self, loop: For) -> bool:
        """Whether a loop writes more than caches hold, where other loops over its arrays pay."""
        nodes = (node for node in writes((loop,)) if node.rank)
        written = sum(MOST if node.static_shape is None else node.bytes for node in nodes)
        return written > 2 * self.target.threads * self.target.l2_bytes

    def copied(self, loop: For, mine: frozenset[int]) -> list[_Copy]:
        """Return the arrays that a loop accumulates into; none where one of them is too large."""
        written = accumulators.only_written(loop, mine)
        ops = [accumulators.accumulates(loop, node) for node in written]
        fits = all(
            node.static_shape is not None and 0 < node.bytes <= self.target.l2_bytes // 2
            for node in written
        )
        if not fits or None in ops:
            return []
        return [
            _Copy.of(node, op, self.target.threads, self.fresh)
            for node, op in zip(written, ops, strict=True) if op is not None
        ]  # fmt: skip

    def made(self, loop: For, copied: Sequence[_Copy]) -> Body:
        """Return the loop over pieces, and those that put their elements together."""
        piece, by_id = self.fresh.symbol("piece"), {copy.node.id: copy for copy in copied}

        def moved(node: Node, index: tuple[Index, ...]) -> remap.Place:
            copy = by_id.get(node.id)
            return (node, index) if copy is None else (copy.parts, (var(piece), *index))

        part, body = strip_mine.chunk(loop, piece, self.target.threads, loop.body, self.fresh)
        starts = (copy.start(piece) for copy in copied)
        each = (*starts, *remap.elsewhere(around((part,), body), moved))
        end = const(self.target.threads)
        whole = For(piece, const(0), end, 1, each, span=loop.span)
        return (whole, *(copy.whole() for copy in copied))


def _chain(loop: For) -> Iterator[For]:
    """Yield the loops inside of which each has nothing before it in the one around it but numbers
    that get names, and nothing behind it."""
    while True:
        *before, inner = [stmt for stmt in loop.body if not isinstance(stmt, Comment)] or [loop]
        if inner is loop or not isinstance(inner, For) or inner.kind != "serial":
            return
        if any(not isinstance(stmt, Let) and not _is_scalar(stmt) for stmt in before):
            return
        yield inner
        loop = inner


def _with(loop: For, inner: For, body: Body) -> Body:
    """Return a loop with statements in the place of one of its chain."""
    made = (
        stmt for one in loop.body for stmt in (
            body if one is inner else _with(one, inner, body) if isinstance(one, For) else (one,)
        )
    )  # fmt: skip
    return (replace(loop, body=tuple(made)),)


def _is_scalar(stmt: Stmt) -> bool:
    """Whether a statement does nothing but name a number."""
    return isinstance(stmt, Store) and not stmt.access.index


@dataclass(frozen=True, slots=True)
class _Copy:
    """An array, and what pieces accumulate in its place."""

    fresh: Fresh
    node: Node
    op: Op
    parts: Node

    @classmethod
    def of(cls, node: Node, op: Op, count: int, fresh: Fresh) -> _Copy:
        """Return the copies of an array for so many pieces."""
        shape = (count, *(node.static_shape or ()))
        return cls(fresh, node, op, fresh.array(f"{node.label}_parts", shape, node.dtype, "kept"))

    def axes(self) -> list[Symbol]:
        """Return new symbols for the axes of the array."""
        return [self.fresh.symbol("at") for _ in self.node.shape]

    def start(self, piece: Symbol) -> Stmt:
        """Return the loops that start the copy of a piece."""
        axes = self.axes()
        place = Access(self.parts, (var(piece), *map(var, axes)))
        return self.loops(axes, Store(place, accumulators.neutral(self.op, self.node.dtype)))

    def whole(self) -> Stmt:
        """Return the loops that put the elements of all pieces together."""
        axes, piece = self.axes(), self.fresh.symbol("piece")
        parts = Read(self.parts, (var(piece), *map(var, axes)))
        update = Update(Access(self.node, tuple(map(var, axes))), self.op, parts)
        count = self.parts.shape[0]
        return self.loops(axes, For(piece, const(0), count, 1, (update,)))

    def loops(self, axes: Sequence[Symbol], stmt: Stmt) -> Stmt:
        """Return a statement for all elements of the array."""
        shape = zip(axes, self.node.shape, strict=True)
        (made,) = around([For(at, const(0), extent, 1, ()) for at, extent in shape], (stmt,))
        return made
