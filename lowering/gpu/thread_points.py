"""Kernels in which each thread does one point of a nest.

    for i in 0..n, j in 0..m: body    becomes    for i in 0..n:                        blocks
                                                     for tile in 0..ceil(m/256):       blocks
                                                         for t in 0..min(256, ...):    threads
                                                             body of tile*256 + t

The loop whose neighbours are neighbours in memory goes to the threads, which do four points each
where there are very many. Loops with few rounds are
counted as one, and their variables are quotients and remainders of it. Needs a band; whatever the
order, every point computes the same. Temporaries that are larger than registers get an axis for
each loop.

>>> program = lowered("y[i, j] = x[i, j] * 2", y="f32[8, 600]", x="f32[8, 600]")
>>> found = band(program.kernels[0].body[1], facts_of(program))
>>> made = points(found, fresh_for(program), {})
>>> print_loops(made.body)
for i in 0..8 block:
    for tile in 0..3 block:
        for thread in 0..min(-224*tile + 600, 224) thread:
            y[i, 224*tile + thread] = x[i, 224*tile + thread] * 2.0
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from math import ceil, prod
from typing import Literal

from ...base.dataclass import dataclass
from ..analysis.dependence import ends_early
from ..analysis.parallel_band import (
    Band,
    around,
    counted,
    fails,
    favours,
    normal,
    rounds_of,
    trips,
    with_value,
)
from ..ir import dtypes
from ..ir.assignments import Let
from ..ir.expressions import Apply, Index, Position
from ..ir.fresh import Fresh
from ..ir.indexing import Affine, const, floordiv, minimum, substitute, var
from ..ir.loops import Check, For, If, Stmt, While
from ..ir.node import Node
from ..ir.ops import OPS
from ..ir.walk import reads, statements, writes
from ..thresholds import EXPANDED_BYTES
from ..transform.remap import Place, elsewhere
from ..transform.skew import is_linear, skewed
from .load_hoisting import early

Space = Literal["device", "shared", "private", "rows", "registers"]
"""Who has an array: the device, each block, each thread. Of rows each thread has its own: in
`rows` the first two axes are the threads, in `registers` the first one is."""
THREADS = 256
"""Threads of a block that does points."""
EACH = 4
"""Points of a thread where there are many, of elements of 32 bits or more."""
MOST_EACH = 16
"""Points of a thread at most: with smaller elements as many more as move 16 bytes of an array."""
MANY = 1 << 20
"""So many points are work for a device with several for each thread."""
MOST_OUTER = 2
"""Loops around that of the tiles that blocks are dealt out of: a grid has three axes."""
FEW = 64
"""A loop with fewer rounds is counted together with those around it."""
PRIVATE_BYTES = 256
"""Arrays up to this size may be each thread's own."""


@dataclass(frozen=True, slots=True)
class Made:
    """Kernels, and who has which temporary; the new ones are the device's if nothing is said."""

    body: tuple[Stmt, ...]
    spaces: dict[int, Space] = field(default_factory=dict)

    @property
    def threads(self) -> frozenset[int]:
        """What each thread has of its own: no other one waits for it."""
        mine = ("private", "registers")
        return frozenset(number for number, space in self.spaces.items() if space in mine)


def points(found: Band, fresh: Fresh, nodes: Mapping[int, Node]) -> Made | None:
    """Return the kernel of a band, None where the temporaries of its points are too large."""
    free, body = normalised(found, fresh)
    spaces: dict[int, Space] = {}
    large: list[Node] = []
    for number in found.private:
        node = nodes[number]
        if node.static_shape is not None and (not node.rank or node.bytes <= PRIVATE_BYTES):
            spaces[number] = "private"
        else:
            large.append(node)
    if large:
        moved = expanded(body, large, free, fresh)
        if moved is None:
            return None
        body = moved
    each = points_each(free, body)
    if not large and each:
        return several(free, body, each, fresh, spaces)
    return Made((dealt(free, body, fresh),), spaces)


def is_light(body: tuple[Stmt, ...]) -> bool:
    """Whether a point only moves and computes numbers, to its end, and none of that may fail."""
    inside = statements(body)
    return not ends_early(body) and not any(
        isinstance(stmt, For | While | Check | Let) for stmt in inside
    )


def points_each(free: list[For], body: tuple[Stmt, ...]) -> int:
    """Return how many points a thread does, 0 where that is one: so many that 16 bytes of what it
    reads, or of what it writes where it reads nothing, are under way at once."""
    if not is_light(body):
        return 0
    sizes = [node.dtype.itemsize for node in (reads(body) or writes(body)) if node.rank]
    each = min(MOST_EACH, max(EACH, 4 * EACH // max(sizes, default=EACH)))
    while each >= EACH:
        if is_many(free, each):
            return each
        each //= 2
    return 0


def is_many(free: list[For], each: int = EACH) -> bool:
    """Whether there are enough points for threads that do several, with few of them idle."""
    counts = [trips(loop) for loop in free]
    last = counts[-1]
    if last is None or None in counts or len(free) > MOST_OUTER + 1:
        return False
    fits = last % (each * THREADS) == 0 or last >= 8 * each * THREADS
    return last > 0 and fits and prod(count or 0 for count in counts) >= MANY


def several(
    free: list[For], body: tuple[Stmt, ...], each: int, fresh: Fresh, spaces: dict[int, Space]
) -> Made:
    """Return loops as blocks and threads that do several points each, a block apart.

    All reads of a thread are under way at once, and neighbouring threads still read neighbours.
    The last block may have fewer points.
    """
    *outer, last = free
    tile, thread, number = (fresh.symbol(name) for name in ("tile", "thread", "n"))
    start = last.lo + var(tile) * (each * THREADS)
    place = start + var(number) * THREADS + var(thread)
    loads, inner, held = early(with_value(body, last.symbol, place), number, each, fresh)
    parts = (loads, inner) if loads else (inner,)
    points = tuple(For(number, const(0), const(each), 1, part, "unrolled") for part in parts)
    made: tuple[Stmt, ...] = (For(thread, const(0), const(THREADS), 1, points, "thread"),)
    if (trips(last) or 0) % (each * THREADS):
        end = start + each * THREADS
        whole = Apply(OPS["le"], (Position(end), Position(last.hi)), dtypes.bool_)
        rest = replace(last, lo=start, hi=minimum(last.hi, end), kind="thread", body=body)
        made = (If(whole, made, (rest,)),)
    tiles = floordiv(rounds_of(last) + (each * THREADS - 1), const(each * THREADS))
    block = For(tile, const(0), tiles, 1, (), "block", last.span)
    whole_nest = around((*(replace(one, kind="block") for one in outer), block), made)
    return Made(whole_nest, spaces | {node.id: "private" for node in held})


def normalised(found: Band, fresh: Fresh) -> tuple[list[For], tuple[Stmt, ...]]:
    """Return the free loops in steps of one, those with few rounds counted as one, and the body."""
    free, body = list(found.free), found.inner
    for at, loop in enumerate(free):
        if loop.step != 1:
            free[at], value = normal(loop, fresh.symbol(loop.symbol.name))
            body, values = with_value(body, loop.symbol, value), {loop.symbol: value}
            free[at + 1 :] = [
                replace(one, lo=substitute(one.lo, values), hi=substitute(one.hi, values))
                for one in free[at + 1 :]
            ]
    score = [favours(body, loop.symbol) for loop in free]
    best = max(range(len(free)), key=lambda at: (score[at], at))
    known = [trips(loop) is not None and loop.lo.constant is not None for loop in free]
    if fails(body):
        best = len(free) - 1
        known = [all(known)] * len(free)
    plain = not any(following(free, at) for at in range(len(free)))
    count = trips(free[best])
    if plain and count is not None and count < FEW and len(free) > 1 and sum(known) > 1:
        return counted(free, body, fresh)
    follow = following(free, best)
    if follow == [len(free) - 1] == [best + 1] and is_linear(free[best], free[-1]):
        across = skewed(free[best], replace(free[-1], body=body), 0, fresh.symbol("across"))
        (inner,) = across.body
        assert isinstance(inner, For), "two loops stay two"
        return [*free[:best], replace(across, body=()), replace(inner, body=())], inner.body
    if not follow:
        free.append(free.pop(best))
    return free, body


def following(free: Sequence[For], at: int) -> list[int]:
    """Return which loops have bounds that follow one of them."""
    symbol = free[at].symbol
    return [n for n, one in enumerate(free) if symbol in one.lo.symbols() | one.hi.symbols()]


def dealt(free: list[For], body: tuple[Stmt, ...], fresh: Fresh) -> For:
    """Return loops as blocks and threads, the last dealt out to threads.

    Threads count from 0 in each block: compilers then see that each of them has one round.
    """
    *outer, last = free
    count = trips(last)
    size = THREADS if count is None else width(count)
    tile = fresh.symbol("tile")
    thread = replace(last, kind="thread", body=())
    if count is None or count > size:
        symbol, start = fresh.symbol("thread"), last.lo + var(tile) * size
        end = const(size) if count and count % size == 0 else minimum(const(size), last.hi - start)
        thread = replace(thread, symbol=symbol, lo=const(0), hi=end)
        body = with_value(body, last.symbol, start + var(symbol))
    tiles = floordiv(rounds_of(last) + (size - 1), const(size))
    block = For(tile, const(0), tiles, 1, (), "block", last.span)
    blocks = [replace(loop, kind="block") for loop in outer[:MOST_OUTER]]
    (made,) = around((*blocks, block, thread, *outer[MOST_OUTER:]), body)
    assert isinstance(made, For)
    return made


def width(count: int) -> int:
    """Return how many threads a block has for so many rounds: as few as possible are idle.

    >>> width(600), width(256), width(300), width(1000), width(5)
    (224, 256, 160, 256, 32)
    """
    blocks = max(1, ceil(count / THREADS))
    return max(32, ceil(count / blocks / 32) * 32)


def expanded(
    body: tuple[Stmt, ...], large: list[Node], free: list[For], fresh: Fresh
) -> tuple[Stmt, ...] | None:
    """Return the body with temporaries that have an axis for each loop, the last one behind.

    Neighbouring threads use neighbouring elements. None where that takes too much memory, or where
    sizes are only known in the run.
    """
    counts = [trips(loop) for loop in free]
    if any(count is None for count in counts) or any(n.static_shape is None for n in large):
        return None
    sizes = [count or 0 for count in counts]
    if prod(sizes) * sum(node.bytes for node in large) > EXPANDED_BYTES:
        return None
    places = [var(loop.symbol) - loop.lo for loop in free]
    for node in large:
        shape = (*sizes[:-1], *(node.static_shape or ()), sizes[-1])
        made = fresh.array(node.label, shape, node.dtype)
        body = elsewhere(body, _Axes(node, made, tuple(places)))
    return body


@dataclass(frozen=True, slots=True)
class _Axes:
    """A node as part of another one, which has more axes."""

    node: Node
    made: Node
    places: tuple[Affine, ...]

    def __call__(self, node: Node, index: tuple[Index, ...]) -> Place:
        if node != self.node:
            return node, index
        return self.made, (*self.places[:-1], *index, self.places[-1])
