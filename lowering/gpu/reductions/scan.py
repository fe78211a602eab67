"""Running totals of what may be added in any order: pieces are totalled, then run through again.

    for r in 0..n: y[r] = y[r - 1] + f(r)
    becomes
    for g in 0..G: parts[g] = f(g*C) + ... + f(g*C + C - 1)           threads
    for g in 0..G: own = y[-1]; for p in 0..g: own += parts[p]        threads
                   for r in g*C..: own += f(r); y[r] = own

With more than 1,024 pieces the parts become running totals in the same way, in place, and a piece
starts from the one before it. Rows that have such a total each have pieces of their own.

Needs a loop of one statement, whose operation is exact: whole numbers, maxima, minima, truths; or
sums of real numbers where their order is left open, of a loop that only counts terms. How many
pieces there are depends on the number of rounds only. Every thread adds up by itself what stands
before its piece, in the same order: all read the same few numbers. Other real numbers add in the
order of the program, by one thread.

>>> program = lowered("y[:] = np.cumsum(x)", y="i64[9000]", x="i64[9000]")
>>> loop = program.kernels[0].body[2]
>>> print_loops(scan(loop, fresh_for(program), True)[1:])
for piece in 0..282:
    running_own = running[0]
    for before in 0..piece:
        running_own = running_own + running_parts[before]
    for i in 32*piece..min(32*piece + 32, 8999):
        running_own = running_own + x[i + 1]
        running[i + 1] = running_own
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil, prod

from ....base.dataclass import dataclass
from ...analysis.accumulators import is_apart, neutral
from ...analysis.parallel_band import Band, around, fails, favours, normal, rounds_of, trips
from ...ir.assignments import Access
from ...ir.expressions import Apply, Const, Dynamic, Expr, Index, Read, reads
from ...ir.fresh import Fresh
from ...ir.indexing import (
    Affine,
    Symbol,
    const,
    floordiv,
    maximum,
    minimum,
    multiply,
    substitute,
    var,
)
from ...ir.loops import Comment, For, Stmt, Store, Update
from ...ir.node import Node
from ...ir.ops import Op
from ...ir.rewrite import substitute_expr

MOST = 1024
"""Pieces at most: so many threads run through them, and one goes from piece to piece."""
ROUNDS = 32
"""A piece has at least so many rounds."""
ENOUGH = 1 << 16
"""So many rows, of which each is a thread's, are enough for a device."""


@dataclass(frozen=True, slots=True)
class Running:
    """What a loop totals: `node[here] = op(node[before], value)`."""

    node: Node
    here: tuple[Affine, ...]
    before: tuple[Affine, ...]
    op: Op
    value: Expr


def scan(
    loop: For, fresh: Fresh, exact: bool, points: tuple[For, ...] = ()
) -> tuple[For, ...] | None:
    """Return the nests in the place of a loop that runs a total, None where it does not.

    With `exact` sums keep the order of the program. `points` are loops around it, whose rounds, of
    which there are known numbers, are independent.
    """
    count = trips(loop)
    found = running(loop, exact)
    if found is None or (count is not None and count < 2 * ROUNDS) or (points and count is None):
        return None
    plain, at = normal(loop, fresh.symbol(loop.symbol.name))
    pieces = MOST if count is None else ceil(count / ROUNDS)
    return _Scan(found, loop, plain, at, pieces, fresh, points).nests()


def rows_of(found: Band, fresh: Fresh, exact: bool) -> tuple[For, ...] | None:
    """Return the nests of points that each run a total, None where there are enough of them."""
    inner = [stmt for stmt in found.inner if not isinstance(stmt, Comment)]
    counts = [trips(loop) for loop in found.free]
    if len(inner) != 1 or not isinstance(inner[0], For) or found.private or None in counts:
        return None
    if prod(count or 0 for count in counts) >= ENOUGH or fails(inner):
        return None
    return scan(inner[0], fresh, exact, found.free)


def totalled(parts: Node, op: Op, fresh: Fresh) -> tuple[For, ...]:
    """Return the nests that make running totals, which are exact, of an array in its place."""
    (size,) = parts.static_shape or ()
    loop = _through(parts, op, size, lambda piece: (piece,), fresh)
    return scan(loop, fresh, True) or (loop,)


def _through(
    parts: Node, op: Op, count: int, place: Callable[[Affine], tuple[Affine, ...]], fresh: Fresh
) -> For:
    """Return the loop that makes running totals of parts."""
    piece = fresh.symbol("piece")
    here, before = place(var(piece)), place(var(piece) - 1)
    both = (Read(parts, before), Read(parts, here))
    add = Store(Access(parts, here), Apply(op, both, parts.dtype))
    return For(piece, const(1), const(count), 1, (add,))


def running(loop: For, exact: bool) -> Running | None:
    """Return what a loop totals, None where it does more or less than that."""
    body = [stmt for stmt in loop.body if not isinstance(stmt, Comment)]
    if len(body) != 1 or not isinstance(body[0], Store | Update) or not body[0].access.node.rank:
        return None
    access, value = body[0].access, _new_value(body[0])
    here = _affine(access.index)
    if here is None or not isinstance(value, Apply) or len(value.args) != 2:
        return None
    if not all(_is_linear(one, loop.symbol) for one in here):
        return None
    before = tuple(substitute(i, {loop.symbol: var(loop.symbol) - loop.step}) for i in here)
    old = [arg for arg in value.args if _is_at(arg, access.node, before)]
    rest = [arg for arg in value.args if arg not in old]
    if len(old) != 1 or len(rest) != 1 or before == here:
        return None
    is_open = loop.counts and not exact and value.op.name == "add"
    fits = is_open or is_apart(value.op, access.node.dtype, exact=True)
    if (
        not fits
        or value.dtype is not access.node.dtype
        or any(read.node == access.node and read.index != here for read in reads(rest[0]))
    ):
        return None
    return Running(access.node, here, before, value.op, rest[0])


def _new_value(stmt: Store | Update) -> Expr | None:
    """Return what a statement puts into its element, None where it does more."""
    if isinstance(stmt, Store):
        return stmt.value
    if stmt.pair is not None:
        return None
    old = Read(stmt.access.node, stmt.access.index)
    return Apply(stmt.op, (old, stmt.value), stmt.access.node.dtype)


def _is_linear(index: Affine, symbol: Symbol) -> bool:
    """Whether an index moves by the same distance in every round."""
    return symbol not in (index - var(symbol) * index.coefficient(symbol)).symbols()


def _is_at(value: Expr, node: Node, index: tuple[Affine, ...]) -> bool:
    return isinstance(value, Read) and value.node == node and value.index == index


def _affine(index: tuple[Index, ...]) -> tuple[Affine, ...] | None:
    found = tuple(one for one in index if not isinstance(one, Dynamic))
    return found if len(found) == len(index) else None


@dataclass(frozen=True, slots=True)
class _Scan:
    """Makes the nests of a running total."""

    what: Running
    loop: For
    plain: For
    """The loop, counting from zero."""
    at: Affine
    """The variable of the loop in these rounds."""
    pieces: int
    fresh: Fresh
    points: tuple[For, ...]

    def nests(self) -> tuple[For, ...]:
        """Return the totals of pieces, what runs through these if they are many, and the run
        through all."""
        label, dtype = self.what.node.label, self.what.node.dtype
        sizes = [trips(one) or 0 for one in self.points]
        shape = (self.pieces, *sizes) if self.is_across() else (*sizes, self.pieces)
        parts = self.fresh.array(f"{label}_parts", shape, dtype)
        part, own = (
            Access(self.fresh.scalar(f"{label}_{name}", dtype), ()) for name in ("part", "own")
        )
        one, two, three = (self.fresh.symbol(name) for name in ("piece", "piece", "before"))
        totals = (
            Store(part, self.nothing()),
            self.rounds(one, (self.added(part, self.value()),)),
            Store(Access(parts, self.place(var(one))), Read(part.node, ())),
        )
        first = substitute_all(self.what.before, {self.loop.symbol: self.loop.lo})
        here = substitute_all(self.what.here, {self.loop.symbol: self.at})
        put = Store(Access(self.what.node, here), Read(own.node, ()))
        start = self.added(own, Read(parts, self.place(var(three))))
        middle, since = self.between(parts), const(0)
        if middle:
            since = maximum(var(two) - 1, const(0))
        through: tuple[Stmt, ...] = (
            Store(own, Read(self.what.node, first)),
            For(three, since, var(two), 1, (start,)),
            self.rounds(two, (self.added(own, self.value()), put)),
        )
        if trips(self.loop) is None:
            once = minimum(const(1), self.count())
            through = (For(self.fresh.symbol("first"), const(0), once, 1, through),)
        return self.each(one, totals), *middle, self.each(two, through)

    def between(self, parts: Node) -> tuple[For, ...]:
        """Return the nests that make running totals of parts, none where there are few."""
        if self.pieces <= MOST:
            return ()
        loop = _through(parts, self.what.op, self.pieces, self.place, self.fresh)
        loop = replace(loop, counts=self.loop.counts)
        made = scan(loop, self.fresh, not self.loop.counts, self.points)
        return (self.over_points(loop),) if made is None else made

    def over_points(self, loop: For) -> For:
        """Return a loop in those over the points."""
        (nest,) = around(self.points, (loop,))
        assert isinstance(nest, For)
        return nest

    def is_across(self) -> bool:
        """Whether neighbours in memory are neighbouring points rather than neighbouring rounds."""
        inside = favours(self.loop.body, self.loop.symbol)
        return any(favours(self.loop.body, one.symbol) > inside for one in self.points)

    def place(self, piece: Affine) -> tuple[Affine, ...]:
        """Return where the part of a piece is."""
        at = tuple(var(one.symbol) - one.lo for one in self.points)
        return (piece, *at) if self.is_across() else (*at, piece)

    def count(self) -> Affine:
        return rounds_of(self.loop)

    def nothing(self) -> Const:
        """Return what changes nothing."""
        return neutral(self.what.op, self.what.node.dtype)

    def value(self) -> Expr:
        """Return what a round adds."""
        return substitute_expr(self.what.value, {self.loop.symbol: self.at})

    def added(self, place: Access, value: Expr) -> Store:
        """Return what adds a value to a scalar."""
        total = Read(place.node, place.index)
        return Store(place, Apply(self.what.op, (total, value), self.what.node.dtype))

    def each(self, piece: Symbol, body: tuple[Stmt, ...]) -> For:
        """Return the loop over pieces."""
        loop = For(piece, const(0), const(self.pieces), 1, body, "serial", self.loop.span)
        return self.over_points(loop)

    def rounds(self, piece: Symbol, body: tuple[Stmt, ...]) -> For:
        """Return the loop over the rounds of a piece."""
        size = floordiv(self.plain.hi + (self.pieces - 1), const(self.pieces))
        lo = multiply(var(piece), size)
        return replace(self.plain, lo=lo, hi=minimum(self.plain.hi, lo + size), body=body)


def substitute_all(index: tuple[Affine, ...], values: dict[Symbol, Affine]) -> tuple[Affine, ...]:
    """Return index expressions with symbols replaced."""
    return tuple(substitute(one, values) for one in index)
