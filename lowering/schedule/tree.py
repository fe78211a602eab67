"""Reductions by the threads of a block: each sums its share, then the shares are summed.

    for j in 0..n: total += f(j)
    becomes
    for t in 0..256:                              threads
        part = 0; for j in t..n step 256: part += f(j); parts[t] = part
    for t in 0..32:                               threads
        for m in t+32..256 step 32: parts[t] += parts[m]
    for t in 0..8:                                threads
        for m in t+8..32 step 8: parts[t] += parts[m]
    whole = 0; for m in 0..8: whole += parts[m]
    total += whole

The order of the sum depends on the number of rounds only where that is known before the run, so
every device and every launch gives the same bits. Needs rounds that are independent but for the
accumulators; a loop that was written adds in its order, and so do all where sums keep the order of
the program: then only exact operations are taken apart.
Between these loops have to be barriers.

>>> neutral(OPS["add"], dtypes.float32), neutral(OPS["max"], dtypes.int8)
(Const(value=-0.0, dtype=float32), Const(value=-128, dtype=int8))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

from ..dataclass import dataclass
from ..ir import dtypes
from ..ir.assignments import Access, Let, Pair
from ..ir.bounds import Bounds
from ..ir.dtypes import DType
from ..ir.expressions import Apply, Const, Dynamic, Expr, Index, Read
from ..ir.fresh import Fresh
from ..ir.indexing import Affine, Symbol, const, var
from ..ir.loops import For, If, Stmt, Store, Update
from ..ir.node import Node
from ..ir.ops import OPS, Op, neutral_of
from ..ir.walk import binds, statements
from ..passes.access import Accesses, accesses
from ..passes.cells import ranges
from .elsewhere import Place, elsewhere
from .nests import Facts, around, as_one, favours, nest_of, rounds_of, trips
from .points import THREADS, Space

WARP = 32
"""So many threads first add the shares of all others to theirs."""
LAST = 8
"""So many shares are summed by all threads alike, after the others were added to them."""


@dataclass(frozen=True, slots=True)
class Sum:
    """Where a loop accumulates: always this element, by this operation."""

    access: Access
    op: Op
    pair: Pair | None

    @property
    def dtype(self) -> DType:
        """The type of what is accumulated."""
        return self.access.node.dtype

    @property
    def accesses(self) -> tuple[Access, ...]:
        """The places that it writes."""
        return (self.access,) if self.pair is None else (self.access, self.pair.access)


def sums(loop: For, own: frozenset[int], facts: Facts) -> tuple[Sum, ...]:
    """Return the accumulators of a loop whose rounds are independent but for those; none else.

    `own` are the temporaries of which each round has its own.
    """
    inside = statements(_tuple(loop))
    bound = {symbol for stmt in inside for symbol in binds(stmt)}
    updates = [stmt for stmt in inside if isinstance(stmt, Update)]
    found: dict[int, Sum] = {}
    for stmt in updates:
        one = Sum(stmt.access, stmt.op, stmt.pair)
        places = [i for access in one.accesses for i in access.index]
        if stmt.access.node.id not in own and all(_is_fixed(i, bound) for i in places):
            found.setdefault(stmt.access.node.id, one)
    sites = accesses((loop,))
    letters = frozenset(one.symbol for one in nest_of(loop)[0])
    for one in found.values():
        counted = all(is_counted(s, letters) for s in updates if s.access.node == one.access.node)
        apart = is_apart(one.op, one.dtype, facts.exact or not counted)
        if not apart or not _is_only_updated(one, updates, sites):
            return ()
        if one.pair is not None and not _ascends(loop, updates):
            return ()
    taken = frozenset(access.node.id for one in found.values() for access in one.accesses)
    return tuple(found.values()) if found and facts.is_free(loop, own | taken) else ()


def is_apart(op: Op, dtype: DType, exact: bool) -> bool:
    """Whether a sum may be taken apart: floats only where its order is left open."""
    if op.name in ("argmin", "argmax"):
        return True
    rounds = dtype.kind in "fc" and op.name not in ("max", "min")
    return op.side == "both" and op.neutral is not None and not (exact and rounds)


def is_counted(update: Update, letters: frozenset[Symbol]) -> bool:
    """Whether rounds over these only count the terms of a sum; those that were written do more."""
    return letters <= {symbol for at in update.over for symbol in at.symbols()}


def _is_fixed(index: Index, bound: set[Symbol]) -> bool:
    return not isinstance(index, Dynamic) and not index.symbols() & bound


def _is_only_updated(one: Sum, updates: Sequence[Update], sites: Accesses) -> bool:
    """Whether a loop uses an accumulator in no other way than that."""
    for access in one.accesses:
        for site in sites.of(access.node):
            if site.kind != "update" or site.index != access.index:
                return False
    theirs = [stmt for stmt in updates if stmt.access.node == one.access.node]
    return all(
        stmt.op == one.op
        and (stmt.pair is None) == (one.pair is None)
        and (stmt.pair is None or one.pair is None or stmt.pair.access == one.pair.access)
        for stmt in theirs
    )


def _ascends(loop: For, updates: Sequence[Update]) -> bool:
    """Whether positions grow in the order of the program, so that the least is the first found."""
    loops, body = nest_of(loop)
    pairs = [(stmt, stmt.pair) for stmt in updates if stmt.pair is not None]
    once = {id(stmt) for stmt in _straight(body)}
    if len({pair.access for _, pair in pairs}) < len(pairs) or any(
        id(stmt) not in once for stmt, _ in pairs
    ):
        return False
    known, counts = Bounds(), list[int | None]()
    for one in loops:
        counts.append(known.most(rounds_of(one)))
        known = known.inside(one)
    bound = {symbol for stmt in statements(body) for symbol in binds(stmt)}
    sized = list(zip(loops, counts, strict=True))
    return all(_grows(pair.position, sized, bound) for _, pair in pairs)


def _grows(position: Affine, loops: Sequence[tuple[For, int | None]], bound: set[Symbol]) -> bool:
    """Whether a position grows from round to round of loops, of which each has at most so many;
    nothing that is `bound` in them counts."""
    below = 0
    for one, count in reversed(loops):
        step = position.coefficient(one.symbol) * one.step
        if step <= below or (count is None and one is not loops[0][0]):
            return False
        below += step * max((count or 1) - 1, 0)
    return not (position.symbols() - {one.symbol for one, _ in loops}) & bound


def _straight(body: tuple[Stmt, ...]) -> list[Stmt]:
    """Return the statements that run at most once in each round."""
    out = [*body]
    for stmt in body:
        if isinstance(stmt, If):
            out += _straight(stmt.then) + _straight(stmt.other)
    return out


def neutral(op: Op, dtype: DType) -> Const:
    """Return what changes nothing that it is added to, not even the sign of a zero."""
    if op.name == "add" and dtype.kind == "f":
        return Const(-0.0, dtype)
    if op.name == "add" and dtype.kind == "c":
        return Const(complex(-0.0, -0.0), dtype)
    return Const(neutral_of(op, dtype.kind, dtype.bits), dtype)


@dataclass(frozen=True, slots=True)
class Share:
    """What each thread accumulates into, and where all threads put it."""

    sum: Sum
    best: Node
    found: Node | None
    bests: Node
    founds: Node | None


def to_share(
    loop: For, found: Sequence[Sum], facts: Facts
) -> tuple[tuple[For, ...], tuple[Stmt, ...]]:
    """Return the loops of a nest whose points are independent but for accumulators, and the body.

    Rounds of the loop are; those of loops in it need not be: these stay part of the body.
    """
    loops, body = nest_of(loop)
    taken = frozenset(access.node.id for one in found for access in one.accesses)
    for at in range(1, len(loops)):
        known = loops[at] if id(loops[at]) in facts.only else loop
        if not facts.is_free(loops[at], facts.private(known) | taken, ranges(loops[:at])):
            return loops[:at], loops[at - 1].body
    return loops, body


def reduced(
    loop: For, found: Sequence[Sum], facts: Facts, fresh: Fresh, spaces: dict[int, Space]
) -> Parts:
    """Return a loop as loops of threads, and what adds their result to the accumulators.

    The loop of its nest whose neighbours are neighbours in memory is shared out; where it has few
    rounds, all of the nest as one.
    """
    loops, body = to_share(loop, found, facts)
    at = max(range(len(loops)), key=lambda k: (favours(body, loops[k].symbol), k))
    count = trips(loops[at])
    is_short = count is not None and count < THREADS
    whole = as_one(loops, body, fresh, any(one.pair for one in found)) if is_short else None
    if whole is not None:
        loops, body, at = (whole[0],), whole[1], 0
        count = trips(loops[at])
    elif count is not None and count < WARP:
        at = max(range(len(loops)), key=lambda k: _size(loops[k]))
        count = trips(loops[at])
    size = THREADS if count is None else min(THREADS, ceil(max(count, 1) / WARP) * WARP)
    shares = [_share(one, size, fresh, spaces) for one in found]
    thread = fresh.symbol("thread")
    shared = replace(
        loops[at], lo=loops[at].lo + var(thread) * loops[at].step, step=loops[at].step * size
    )
    own = elsewhere(body, _Moved(shares))
    inner = around((*loops[:at], shared, *loops[at + 1 :]), own)
    starts = tuple(stmt for share in shares for stmt in _start(share))
    ends = tuple(stmt for share in shares for stmt in _put(share, thread))
    each = For(thread, const(0), const(size), 1, (*starts, *inner, *ends), "thread", loop.span)
    joined = tuple(
        _joined(shares, few, many, fresh)
        for few, many in ((WARP, size), (LAST, WARP)) if many > few
    )  # fmt: skip
    last = tuple(stmt for share in shares for stmt in _whole(share, LAST, fresh, spaces))
    return Parts((each, *joined), last)


@dataclass(frozen=True, slots=True)
class Parts:
    """Loops of threads, then what all threads do alike."""

    threads: tuple[Stmt, ...]
    all: tuple[Stmt, ...]


def _size(loop: For) -> int:
    count = trips(loop)
    return 2**40 if count is None else count


def _share(one: Sum, size: int, fresh: Fresh, spaces: dict[int, Space]) -> Share:
    label = one.access.node.label
    best = fresh.scalar(f"{label}_part", one.dtype)
    bests = fresh.array(f"{label}_parts", (size,), one.dtype)
    spaces |= {best.id: "private", bests.id: "shared"}
    if one.pair is None:
        return Share(one, best, None, bests, None)
    label = one.pair.access.node.label
    found = fresh.scalar(f"{label}_part", dtypes.int64)
    founds = fresh.array(f"{label}_parts", (size,), dtypes.int64)
    spaces |= {found.id: "private", founds.id: "shared"}
    return Share(one, best, found, bests, founds)


class _Moved:
    """Accesses of accumulators become those of a thread's share."""

    def __init__(self, shares: Sequence[Share]) -> None:
        self.nodes: dict[int, Node] = {}
        for share in shares:
            self.nodes[share.sum.access.node.id] = share.best
            if share.sum.pair is not None and share.found is not None:
                self.nodes[share.sum.pair.access.node.id] = share.found

    def __call__(self, node: Node, index: tuple[Index, ...]) -> Place:
        moved = self.nodes.get(node.id)
        return (node, index) if moved is None else (moved, ())


def _start(share: Share) -> tuple[Stmt, ...]:
    best = Access(share.best, ())
    if share.found is None:
        return (Store(best, neutral(share.sum.op, share.sum.dtype)),)
    nothing = Store(Access(share.found, ()), Const(-1, dtypes.int64))
    return Store(best, Const(zero_of(share.sum.dtype), share.sum.dtype)), nothing


def zero_of(dtype: DType) -> bool | int | float:
    """Return the zero of a type."""
    return False if dtype.kind == "b" else 0 if dtype.kind in "iu" else 0.0


def _put(share: Share, thread: Symbol) -> tuple[Stmt, ...]:
    out: tuple[Stmt, ...] = (Store(Access(share.bests, (var(thread),)), Read(share.best, ())),)
    if share.found is not None and share.founds is not None:
        out += (Store(Access(share.founds, (var(thread),)), Read(share.found, ())),)
    return out


def _joined(shares: Sequence[Share], few: int, size: int, fresh: Fresh) -> Stmt:
    """Return the loop in which few threads add the shares of all others to theirs."""
    thread, other = fresh.symbol("thread"), fresh.symbol("other")
    adding: tuple[Stmt, ...] = ()
    for share in shares:
        here, there = (var(thread),), (var(other),)
        if share.founds is None:
            place = Access(share.bests, here)
            adding += (Update(place, share.sum.op, Read(share.bests, there)),)
        else:
            mine = Access(share.bests, here), Access(share.founds, here)
            theirs = Read(share.bests, there), Read(share.founds, there)
            adding += (_better(share.sum.op, mine, theirs),)
    loop = For(other, var(thread) + few, const(size), few, adding)
    return For(thread, const(0), const(few), 1, (loop,), "thread")


def _whole(share: Share, few: int, fresh: Fresh, spaces: dict[int, Space]) -> tuple[Stmt, ...]:
    """Return what adds the few shares that are left to an accumulator, by all threads alike."""
    at = fresh.symbol("thread")
    one = share.sum
    whole = fresh.scalar(f"{one.access.node.label}_whole", one.dtype)
    spaces[whole.id] = "private"
    there = Read(share.bests, (var(at),))
    if share.founds is None or one.pair is None:
        start = Store(Access(whole, ()), neutral(one.op, one.dtype))
        loop = For(at, const(0), const(few), 1, (Update(Access(whole, ()), one.op, there),))
        return start, loop, Update(one.access, one.op, Read(whole, ()))
    place = fresh.scalar(f"{one.pair.access.node.label}_whole", dtypes.int64)
    spaces[place.id] = "private"
    mine = Access(whole, ()), Access(place, ())
    starts = (
        Store(mine[0], Const(zero_of(one.dtype), one.dtype)),
        Store(mine[1], Const(-1, dtypes.int64)),
    )
    better = _better(one.op, mine, (there, Read(share.founds, (var(at),))))
    symbol = fresh.symbol("at")
    taken = (
        Let(symbol, Read(place, ())),
        Update(one.access, one.op, Read(whole, ()), Pair(one.pair.access, var(symbol))),
    )
    some = If(_apply("ge", Read(place, ()), Const(0, dtypes.int64)), taken)
    return (*starts, For(at, const(0), const(few), 1, (better,)), some)


def _better(op: Op, mine: tuple[Access, Access], theirs: tuple[Read, Read]) -> Stmt:
    """Return what takes another share where it is better: the first in the program of the best."""
    here, at = (Read(access.node, access.index) for access in mine)
    value, other = theirs
    better = _apply("lt" if op.name == "argmin" else "gt", value, here)
    same = _apply("eq", value, here)
    if here.dtype.kind == "f":
        nan, old = _apply("isnan", value), _apply("isnan", here)
        better = _apply("or", better, _apply("and", nan, _apply("logical_not", old)))
        same = _apply("or", same, _apply("and", nan, old))
    first = _apply("or", better, _apply("and", same, _apply("lt", other, at)))
    nothing = _apply("lt", at, Const(0, dtypes.int64))
    there = _apply("ge", other, Const(0, dtypes.int64))
    test = _apply("and", there, _apply("or", nothing, first))
    return If(test, (Store(mine[0], value), Store(mine[1], other)))


def _apply(name: str, *args: Expr) -> Apply:
    """Return a test."""
    return Apply(OPS[name], args, dtypes.bool_)


def _tuple(loop: For) -> tuple[Stmt, ...]:
    return (loop,)
