"""Mapping of independent points to threads: one thread executes one point, or a few.

    for i in 0..n, j in 0..m: body    becomes    for i in 0..n:                        blocks
                                                     for tile in 0..ceil(m/256):       blocks
                                                         for t in 0..min(256, ...):    threads
                                                             body of tile*256 + t

The loop with the most contiguous accesses is distributed over threads, each of which executes
several points where there are very many. Short loops are collapsed, and their variables become
quotients and remainders. Precondition: a band, whose points compute the same in any order.
Temporaries that are too large for registers are expanded by an axis for each loop.

>>> program = lowered("y[i, j] = x[i, j] * 2", y="f32[8, 600]", x="f32[8, 600]")
>>> nest = find_band(program.kernels[0].body[1], facts_of(program))
>>> code = map_to_threads(nest, fresh_for(program), {})
>>> print_loops(code.body)
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
from .. import thresholds
from ..analysis.dependence import has_early_exit
from ..analysis.parallel_band import (
    Band,
    collapse_static,
    contiguity_score,
    has_checks,
    nest_loops,
    normalize,
    static_trip_count,
    substitute_symbol,
    trip_count,
)
from ..ir import dtypes
from ..ir.assignments import Let
from ..ir.expressions import Apply, Index, Position
from ..ir.fresh import Fresh
from ..ir.indexing import Affine, const, floordiv, minimum, substitute, var
from ..ir.loops import Check, For, If, Stmt, Update, While
from ..ir.node import Node
from ..ir.ops import OPS
from ..ir.walk import reads, statements, writes
from ..transform.remap import Element, remap_accesses
from ..transform.skew import is_linear, skew_loops
from .load_hoisting import hoist_loads

Space = Literal["device", "shared", "private", "rows", "registers"]
"""The memory space of an array: device, shared by a block, private to a thread. Rows are private to
each thread: in `rows` the first two axes are the threads, in `registers` the first one is."""
MOST_OUTER = 2
"""Most loops around the tile loop that become block loops: a grid has three axes."""


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """Kernels or block code, and the memory spaces of temporaries: by default the device's."""

    body: tuple[Stmt, ...]
    spaces: dict[int, Space] = field(default_factory=dict)

    @property
    def threads(self) -> frozenset[int]:
        """The nodes of which each thread has its own copy: their accesses need no barriers."""
        private_spaces = ("private", "registers")
        return frozenset(number for number, space in self.spaces.items() if space in private_spaces)


def map_to_threads(nest: Band, fresh: Fresh, nodes: Mapping[int, Node]) -> DeviceCode | None:
    """Return the kernel of a band, None where the temporaries of its points are too large."""
    free, body = normalize_band(nest, fresh)
    spaces: dict[int, Space] = {}
    large: list[Node] = []
    for number in nest.private:
        node = nodes[number]
        if node.static_shape is not None and (
            not node.rank or node.bytes <= thresholds.MAX_THREAD_PRIVATE_BYTES
        ):
            spaces[number] = "private"
        else:
            large.append(node)
    if large:
        expansion = expand_temporaries(body, large, free, fresh)
        if expansion is None:
            return None
        body = expansion
    per_thread = points_per_thread(free, body)
    if not large and per_thread:
        return map_several_points(free, body, per_thread, fresh, spaces)
    return DeviceCode((tile_over_threads(free, body, fresh),), spaces)


def is_loop_free(body: tuple[Stmt, ...]) -> bool:
    """Whether statements are assignments and branches only: no loop, jump, check, symbol or atomic
    update."""
    stmts = statements(body)
    return not has_early_exit(body) and not any(
        isinstance(stmt, For | While | Check | Let) or (isinstance(stmt, Update) and stmt.atomic)
        for stmt in stmts
    )


def points_per_thread(free: list[For], body: tuple[Stmt, ...]) -> int:
    """Return the number of points of a thread, 0 where that is one: so many that 16 bytes of its
    loads, or of its stores where it loads nothing, are in flight at once."""
    if not is_loop_free(body):
        return 0
    sizes = [node.dtype.itemsize for node in (reads(body) or writes(body)) if node.rank]
    least = thresholds.POINTS_PER_THREAD
    per_thread = max(least, 4 * least // max(sizes, default=least))
    per_thread = min(thresholds.MAX_POINTS_PER_THREAD, per_thread)
    while per_thread >= least:
        if has_enough_points(free, per_thread):
            return per_thread
        per_thread //= 2
    return 0


def has_enough_points(free: list[For], per_thread: int) -> bool:
    """Whether there are enough points for threads that execute several, with few threads idle."""
    counts = [static_trip_count(loop) for loop in free]
    last = counts[-1]
    if last is None or None in counts or len(free) > MOST_OUTER + 1:
        return False
    block = per_thread * thresholds.BLOCK_THREADS
    fits = last % block == 0 or last >= 8 * block
    points = prod(count or 0 for count in counts)
    return last > 0 and fits and points >= thresholds.MIN_SEVERAL_POINTS


def map_several_points(
    free: list[For], body: tuple[Stmt, ...], per_thread: int, fresh: Fresh, spaces: dict[int, Space]
) -> DeviceCode:
    """Return the kernel whose threads execute several points each, a block's width apart.

    All loads of a thread are in flight at once, and neighbouring threads still access neighbouring
    elements. The last block may be partial.
    """
    *outer, last = free
    tile, thread, point = (fresh.symbol(name) for name in ("tile", "thread", "n"))
    start = last.lo + var(tile) * (per_thread * thresholds.BLOCK_THREADS)
    position = start + var(point) * thresholds.BLOCK_THREADS + var(thread)
    loads, inner, copies = hoist_loads(
        substitute_symbol(body, last.symbol, position), point, per_thread, fresh
    )
    stages = (loads, inner) if loads else (inner,)
    unrolled = tuple(
        For(point, const(0), const(per_thread), 1, stage, "unrolled") for stage in stages
    )
    threads: tuple[Stmt, ...] = (
        For(thread, const(0), const(thresholds.BLOCK_THREADS), 1, unrolled, "thread"),
    )
    if (static_trip_count(last) or 0) % (per_thread * thresholds.BLOCK_THREADS):
        end = start + per_thread * thresholds.BLOCK_THREADS
        is_full = Apply(OPS["le"], (Position(end), Position(last.hi)), dtypes.bool_)
        partial = replace(last, lo=start, hi=minimum(last.hi, end), kind="thread", body=body)
        threads = (If(is_full, threads, (partial,)),)
    tiles = floordiv(
        trip_count(last) + (per_thread * thresholds.BLOCK_THREADS - 1),
        const(per_thread * thresholds.BLOCK_THREADS),
    )
    block = For(tile, const(0), tiles, 1, (), "block", last.span)
    kernel = nest_loops((*(replace(loop, kind="block") for loop in outer), block), threads)
    return DeviceCode(kernel, spaces | {node.id: "private" for node in copies})


def normalize_band(nest: Band, fresh: Fresh) -> tuple[list[For], tuple[Stmt, ...]]:
    """Return the parallel loops with unit steps, short ones collapsed, and the body."""
    free, body = list(nest.free), nest.inner
    for at, loop in enumerate(free):
        if loop.step != 1:
            free[at], value = normalize(loop, fresh.symbol(loop.symbol.name))
            body, values = substitute_symbol(body, loop.symbol, value), {loop.symbol: value}
            free[at + 1 :] = [
                replace(level, lo=substitute(level.lo, values), hi=substitute(level.hi, values))
                for level in free[at + 1 :]
            ]
    score = [contiguity_score(body, loop.symbol) for loop in free]
    best = max(range(len(free)), key=lambda at: (score[at], at))
    is_static = [
        static_trip_count(loop) is not None and loop.lo.constant is not None for loop in free
    ]
    if has_checks(body):
        best = len(free) - 1
        is_static = [all(is_static)] * len(free)
    is_rectangular = not any(find_dependents(free, at) for at in range(len(free)))
    count = static_trip_count(free[best])
    if (
        is_rectangular
        and count is not None
        and count < thresholds.MIN_UNCOLLAPSED_ITERATIONS
        and len(free) > 1
        and sum(is_static) > 1
    ):
        return collapse_static(free, body, fresh)
    dependents = find_dependents(free, best)
    if dependents == [len(free) - 1] == [best + 1] and is_linear(free[best], free[-1]):
        across = skew_loops(free[best], replace(free[-1], body=body), 0, fresh.symbol("across"))
        (inner,) = across.body
        assert isinstance(inner, For), "two loops stay two"
        return [*free[:best], replace(across, body=()), replace(inner, body=())], inner.body
    if not dependents:
        free.append(free.pop(best))
    return free, body


def find_dependents(free: Sequence[For], at: int) -> list[int]:
    """Return the positions of the loops whose bounds depend on the variable of one of them."""
    symbol = free[at].symbol
    return [n for n, loop in enumerate(free) if symbol in loop.lo.symbols() | loop.hi.symbols()]


def tile_over_threads(free: list[For], body: tuple[Stmt, ...], fresh: Fresh) -> For:
    """Return loops as block and thread loops, the last distributed over threads.

    Threads count from 0 in each block: compilers then see that each executes one iteration.
    """
    *outer, last = free
    count = static_trip_count(last)
    size = thresholds.BLOCK_THREADS if count is None else block_width(count)
    tile = fresh.symbol("tile")
    thread = replace(last, kind="thread", body=())
    if count is None or count > size:
        symbol, start = fresh.symbol("thread"), last.lo + var(tile) * size
        end = const(size) if count and count % size == 0 else minimum(const(size), last.hi - start)
        thread = replace(thread, symbol=symbol, lo=const(0), hi=end)
        body = substitute_symbol(body, last.symbol, start + var(symbol))
    tiles = floordiv(trip_count(last) + (size - 1), const(size))
    block = For(tile, const(0), tiles, 1, (), "block", last.span)
    blocks = [replace(loop, kind="block") for loop in outer[:MOST_OUTER]]
    (kernel,) = nest_loops((*blocks, block, thread, *outer[MOST_OUTER:]), body)
    assert isinstance(kernel, For)
    return kernel


def block_width(count: int) -> int:
    """Return the number of threads of a block for `count` iterations: as few as possible are idle.

    >>> block_width(600), block_width(256), block_width(300), block_width(1000), block_width(5)
    (224, 256, 160, 256, 32)
    """
    blocks = max(1, ceil(count / thresholds.BLOCK_THREADS))
    return max(32, ceil(count / blocks / 32) * 32)


def expand_temporaries(
    body: tuple[Stmt, ...], large: list[Node], free: list[For], fresh: Fresh
) -> tuple[Stmt, ...] | None:
    """Return the body with expanded temporaries: an axis for each loop, that of the last one
    trailing, so that neighbouring threads access neighbouring elements.

    None where that takes too much memory, or where sizes are dynamic.
    """
    counts = [static_trip_count(loop) for loop in free]
    if any(count is None for count in counts) or any(n.static_shape is None for n in large):
        return None
    sizes = [count or 0 for count in counts]
    if prod(sizes) * sum(node.bytes for node in large) > thresholds.MAX_EXPANDED_BYTES:
        return None
    positions = [var(loop.symbol) - loop.lo for loop in free]
    for node in large:
        shape = (*sizes[:-1], *(node.static_shape or ()), sizes[-1])
        expansion = fresh.array(node.label, shape, node.dtype)
        body = remap_accesses(body, _ExpandedAccesses(node, expansion, tuple(positions)))
    return body


@dataclass(frozen=True, slots=True)
class _ExpandedAccesses:
    """Redirects accesses of a node to its expansion, which has more axes."""

    node: Node
    expansion: Node
    positions: tuple[Affine, ...]

    def __call__(self, node: Node, index: tuple[Index, ...]) -> Element:
        if node != self.node:
            return node, index
        return self.expansion, (*self.positions[:-1], *index, self.positions[-1])
