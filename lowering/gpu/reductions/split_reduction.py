"""Reductions over many rounds by many blocks: each sums a part, one block sums the parts.

    for i in 0..n: total += f(i)
    becomes
    for g in 0..G: part = 0; for i in g*C..(g+1)*C: part += f(i); parts[g] = part      blocks
    for g in 0..G: total += parts[g]                                                   one block

G depends on the number of rounds only, so every device gives the same bits.

>>> program = lowered("s[0] += x[i]", s="f32[1]", x="f32[100000]")
>>> loop, facts = program.kernels[0].body[-1], facts_of(program)
>>> from plusequals.lowering.analysis.accumulators import sums
>>> made = apart(loop, sums(loop, frozenset(), facts), facts, fresh_for(program), {})
>>> [len(made.body), blocks_for(loop)]
[2, 25]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import ceil, prod

from ...analysis.accumulators import Sum, neutral, zero_of
from ...analysis.parallel_band import (
    Facts,
    around,
    as_one,
    fails,
    favours,
    found_in,
    nest_of,
    rounds_of,
    trips,
    within,
)
from ...ir import dtypes
from ...ir.assignments import Access, Let, Pair
from ...ir.bounds import Bounds
from ...ir.expressions import Apply, Const, Expr, Index, Read
from ...ir.fresh import Fresh
from ...ir.indexing import Affine, Symbol, const, var
from ...ir.loops import For, If, Stmt, Store, Update
from ...ir.node import Node
from ...ir.ops import OPS
from ...thresholds import EXPANDED_BYTES
from ...transform.remap import Place, elsewhere, with_front
from ...transform.strip_mine import chunk, evened
from ..barriers import met
from ..thread_block import fits_block, together
from ..thread_points import THREADS, Made
from .block_reduction import to_share

MOST = 1024
"""Blocks that sum parts: eight for each multiprocessor of a large device."""
ROUNDS = 4096
"""A block sums at least so many."""


def blocks_for(loop: For, points: int = 1, known: Bounds | None = None) -> int:
    """Return how many blocks share the rounds of a nest, of which there is one for each point.

    Where the number of rounds is not known, what is `known` of the numbers in it may say that it is
    never large.
    """
    most = max(1, MOST // points)
    loops, body = nest_of(loop)
    counts: list[int | None] = []
    inside = Bounds() if known is None else known
    for one in loops:
        counts.append(trips(one) if known is None else inside.most(rounds_of(one)))
        inside = inside.inside(one)
    if None in counts:
        return most
    rounds = prod(count or 0 for count in counts)
    return max(1, min(most, rounds, ceil(rounds * within(found_in(body), inside) / ROUNDS)))


def apart(
    loop: For, found: Sequence[Sum], facts: Facts, fresh: Fresh, nodes: Mapping[int, Node],
    point: For | None = None,
) -> Made | None:  # fmt: skip
    """Return the kernel of the parts, with the loop that sums them behind it; None without room.

    `point` is a loop around, each round of which has such a sum.
    """
    loops, body = to_share(loop, found, facts)
    count = blocks_for(loop, 1 if point is None else trips(point) or 1)
    sizes = [_size(one) for one in loops]
    in_order = any(one.pair for one in found) or fails(body)
    at = 0 if in_order else sizes.index(max(sizes))
    if sizes[at] < count or _is_short(loops, body):
        whole = as_one(loops, body, fresh, in_order)
        if whole is not None:
            loops, body, at = (whole[0],), whole[1], 0
            sizes = [_size(whole[0])]
        count = min(count, sizes[at])
    group = fresh.symbol("part")
    outer, inner = loops[:at], loops[at + 1 :]
    part, inside = chunk(loops[at], group, count, around(inner, body), fresh)
    part = evened(part, loops[at], count)
    at_point = () if point is None else (var(point.symbol) - point.lo,)
    shape = (count,) if point is None else (trips(point) or 1, count)
    own = [Own(one, fresh, shape, lambda number: (*at_point, number)) for one in found]
    summed = moved(around((*outer, part), inside), own)
    facts.tell(summed, facts.only_in(loop))
    starts = tuple(stmt for one in own for stmt in one.start())
    ends = tuple(stmt for one in own for stmt in one.end(group))
    scalars = [node for one in own for node in one.scalars]
    mine = facts.private(loop)
    large = [nodes[number] for number in sorted(mine) if nodes[number].rank]
    if all(node.static_shape is not None for node in large) and not fits_block(large):
        if point is not None or count * sum(node.bytes for node in large) > EXPANDED_BYTES:
            return None
        mine -= {node.id for node in large}
        summed = with_front(summed, large, count, var(group), fresh)
        facts.tell(summed, facts.only_in(loop) - {node.id for node in large})
    private = mine | {node.id for node in scalars}
    known = {**nodes, **{node.id: node for node in scalars}}
    made = together((*starts, *summed, *ends), private, facts, fresh, known)
    if made is None:
        return None
    inside = met(made.body, made.threads, loops=True)
    block = For(group, const(0), const(count), 1, inside, "block")
    if point is None:
        last = tuple(stmt for one in own for stmt in one.ends_of(fresh, count))
        return Made((block, *last), made.spaces)
    wholes = [one.ends_of(fresh, count) for one in own]
    around_it = replace(point, kind="block", body=(block,))
    return Made((around_it, *(replace(point, body=whole) for whole in wholes)), made.spaces)


def _is_short(loops: Sequence[For], body: tuple[Stmt, ...]) -> bool:
    """Whether few threads would share the loop whose neighbours are neighbours in memory."""
    count = trips(max(loops, key=lambda loop: favours(body, loop.symbol)))
    return count is not None and count < THREADS


def _size(loop: For) -> int:
    count = trips(loop)
    return 2**40 if count is None else count


class Own:
    """What each block or thread accumulates into, and where all of them put it."""

    def __init__(
        self, one: Sum, fresh: Fresh, shape: tuple[int, ...],
        place: Callable[[Affine], tuple[Affine, ...]],
    ) -> None:  # fmt: skip
        """`place` says where in an array of that shape the part of a number is."""
        self.sum, self.place = one, place
        label = one.access.node.label
        self.best = fresh.scalar(f"{label}_chunk", one.dtype)
        self.bests = fresh.array(f"{label}_chunks", shape, one.dtype)
        self.found: Node | None = None
        self.founds: Node | None = None
        if one.pair is not None:
            label = one.pair.access.node.label
            self.found = fresh.scalar(f"{label}_chunk", dtypes.int64)
            self.founds = fresh.array(f"{label}_chunks", shape, dtypes.int64)

    @property
    def scalars(self) -> list[Node]:
        """What is a register of each thread."""
        return [self.best] if self.found is None else [self.best, self.found]

    def start(self) -> tuple[Stmt, ...]:
        """Return the statements that begin a part."""
        if self.found is None:
            return (Store(Access(self.best, ()), neutral(self.sum.op, self.sum.dtype)),)
        zero = Const(zero_of(self.sum.dtype), self.sum.dtype)
        nothing = Const(-1, dtypes.int64)
        return Store(Access(self.best, ()), zero), Store(Access(self.found, ()), nothing)

    def end(self, group: Symbol) -> tuple[Stmt, ...]:
        """Return the statements that keep a part."""
        here = self.place(var(group))
        out: tuple[Stmt, ...] = (Store(Access(self.bests, here), Read(self.best, ())),)
        if self.found is not None and self.founds is not None:
            out += (Store(Access(self.founds, here), Read(self.found, ())),)
        return out

    def ends_of(self, fresh: Fresh, count: int) -> tuple[Stmt, ...]:
        """Return what sums the parts by loops that threads may share: of best values which part
        has the first is found, then what it has found."""
        if self.found is None or self.founds is None or self.sum.pair is None:
            return (self.whole(fresh, count),)
        group, which, at = (fresh.symbol(name) for name in ("part", "which", "at"))
        best = fresh.scalar(f"{self.best.label}_best", self.sum.dtype)
        first = fresh.scalar(f"{self.found.label}_part", dtypes.int64)
        begin = (
            Store(Access(best, ()), Const(zero_of(self.sum.dtype), self.sum.dtype)),
            Store(Access(first, ()), Const(-1, dtypes.int64)),
        )
        value, place = (Read(one, self.place(var(group))) for one in (self.bests, self.founds))
        pair = Pair(Access(first, ()), var(group))
        take = Update(Access(best, ()), self.sum.op, value, pair)
        each = For(group, const(0), const(count), 1, (If(_is_found(place), (take,)),))
        found = Read(self.founds, self.place(var(which)))
        end = Update(
            self.sum.access, self.sum.op, Read(best, ()), Pair(self.sum.pair.access, var(at))
        )
        last = If(_is_found(Read(first, ())), (Let(which, Read(first, ())), Let(at, found), end))
        return (*begin, each, last)

    def whole(self, fresh: Fresh, count: int) -> Stmt:
        """Return the loop that sums the parts, in their order."""
        group = fresh.symbol("part")
        here = self.place(var(group))
        one, best = self.sum, Read(self.bests, here)
        if self.founds is None or one.pair is None:
            body: tuple[Stmt, ...] = (Update(one.access, one.op, best, over=(var(group),)),)
            return For(group, const(0), const(count), 1, body)
        at, place = fresh.symbol("at"), Read(self.founds, here)
        pair = Pair(one.pair.access, var(at))
        taken = (Let(at, place), Update(one.access, one.op, best, pair))
        return For(group, const(0), const(count), 1, (If(_is_found(place), taken),))


def _is_found(place: Expr) -> Expr:
    """Whether a position is one: nothing was found where it is negative."""
    return Apply(OPS["ge"], (place, Const(0, dtypes.int64)), dtypes.bool_)


def moved(body: tuple[Stmt, ...], own: Sequence[Own]) -> tuple[Stmt, ...]:
    """Return statements that accumulate into what is a block's or a thread's own."""
    return elsewhere(body, _Moved(own))


class _Moved:
    """Accesses of accumulators become those of a block."""

    def __init__(self, own: Sequence[Own]) -> None:
        self.nodes: dict[int, Node] = {}
        for one in own:
            self.nodes[one.sum.access.node.id] = one.best
            if one.sum.pair is not None and one.found is not None:
                self.nodes[one.sum.pair.access.node.id] = one.found

    def __call__(self, node: Node, index: tuple[Index, ...]) -> Place:
        moved = self.nodes.get(node.id)
        return (node, index) if moved is None else (moved, ())
