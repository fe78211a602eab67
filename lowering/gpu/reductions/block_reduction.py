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

>>> from plusequals.lowering.analysis.accumulators import sums
>>> program = lowered("s[0] += x[i]", s="f32[1]", x="f32[100]")
>>> loop, facts, fresh = program.kernels[0].body[-1], facts_of(program), fresh_for(program)
>>> made = reduced(loop, sums(loop, frozenset(), facts), facts, fresh, {})
>>> print_loops(made.threads[:1])
for thread in 0..128 thread:
    s_part = -0.0
    for i in thread..100 step 128:
        s_part += x[i]
    s_parts[thread] = s_part
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

from ....base.dataclass import dataclass
from ...analysis.accumulators import Sum, neutral, zero_of
from ...analysis.parallel_band import Facts, around, as_one, favours, nest_of, trips
from ...analysis.subscripts import ranges
from ...ir import dtypes
from ...ir.assignments import Access, Let, Pair
from ...ir.expressions import Apply, Const, Expr, Index, Read
from ...ir.fresh import Fresh
from ...ir.indexing import Symbol, const, var
from ...ir.loops import For, If, Stmt, Store, Update
from ...ir.node import Node
from ...ir.ops import OPS, Op
from ...transform.remap import Place, elsewhere
from ..thread_points import THREADS, Space

WARP = 32
"""So many threads first add the shares of all others to theirs."""
LAST = 8
"""So many shares are summed by all threads alike, after the others were added to them."""


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
