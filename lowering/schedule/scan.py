"""Running totals of what may be added in any order: pieces are totalled, then run through again.

    for r in 0..n: y[r] = y[r - 1] + f(r)
    becomes
    for g in 0..G: parts[g] = f(g*C) + ... + f(g*C + C - 1)           threads
    for g in 0..G: own = y[-1]; for p in 0..g: own += parts[p]        threads
                   for r in g*C..: own += f(r); y[r] = own

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

from dataclasses import replace
from math import ceil

from ..dataclass import dataclass
from ..ir.assignments import Access
from ..ir.expressions import Apply, Const, Dynamic, Expr, Index, Read, reads
from ..ir.fresh import Fresh
from ..ir.indexing import Affine, Symbol, const, floordiv, minimum, multiply, substitute, var
from ..ir.loops import Comment, For, Stmt, Store, Update
from ..ir.node import Node
from ..ir.ops import Op
from ..ir.rewrite import substitute_expr
from .nests import normal, rounds_of, trips
from .tree import is_apart, neutral

MOST = 1024
"""Pieces at most: so many threads run through them, and one goes from piece to piece."""
ROUNDS = 32
"""A piece has at least so many rounds."""


@dataclass(frozen=True, slots=True)
class Running:
    """What a loop totals: `node[here] = op(node[before], value)`."""

    node: Node
    here: tuple[Affine, ...]
    before: tuple[Affine, ...]
    op: Op
    value: Expr


def scan(loop: For, fresh: Fresh, exact: bool) -> tuple[For, ...] | None:
    """Return the nests in the place of a loop that runs a total, None where it does not.

    With `exact` sums keep the order of the program.
    """
    count = trips(loop)
    found = running(loop, exact)
    if found is None or (count is not None and count < 2 * ROUNDS):
        return None
    plain, at = normal(loop, fresh.symbol(loop.symbol.name))
    pieces = MOST if count is None else min(MOST, ceil(count / ROUNDS))
    return _Scan(found, loop, plain, at, pieces, fresh).nests()


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

    def nests(self) -> tuple[For, ...]:
        """Return the totals of pieces, and the run through all."""
        label, dtype = self.what.node.label, self.what.node.dtype
        parts = self.fresh.array(f"{label}_parts", (self.pieces,), dtype)
        part, own = (
            Access(self.fresh.scalar(f"{label}_{name}", dtype), ()) for name in ("part", "own")
        )
        one, two, three = (self.fresh.symbol(name) for name in ("piece", "piece", "before"))
        totals = (
            Store(part, self.nothing()),
            self.rounds(one, (self.added(part, self.value()),)),
            Store(Access(parts, (var(one),)), Read(part.node, ())),
        )
        first = substitute_all(self.what.before, {self.loop.symbol: self.loop.lo})
        here = substitute_all(self.what.here, {self.loop.symbol: self.at})
        put = Store(Access(self.what.node, here), Read(own.node, ()))
        start = self.added(own, Read(parts, (var(three),)))
        through: tuple[Stmt, ...] = (
            Store(own, Read(self.what.node, first)),
            For(three, const(0), var(two), 1, (start,)),
            self.rounds(two, (self.added(own, self.value()), put)),
        )
        if trips(self.loop) is None:
            once = minimum(const(1), self.count())
            through = (For(self.fresh.symbol("first"), const(0), once, 1, through),)
        return self.each(one, totals), self.each(two, through)

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
        return For(piece, const(0), const(self.pieces), 1, body, "serial", self.loop.span)

    def rounds(self, piece: Symbol, body: tuple[Stmt, ...]) -> For:
        """Return the loop over the rounds of a piece."""
        size = floordiv(self.plain.hi + (self.pieces - 1), const(self.pieces))
        lo = multiply(var(piece), size)
        return replace(self.plain, lo=lo, hi=minimum(self.plain.hi, lo + size), body=body)


def substitute_all(index: tuple[Affine, ...], values: dict[Symbol, Affine]) -> tuple[Affine, ...]:
    """Return index expressions with symbols replaced."""
    return tuple(substitute(one, values) for one in index)
