"""Parts that many blocks find, put together by the last of these blocks: one kernel, not two.

    for part in 0..G: parts[part] = ...              blocks
    for block in 0..1: total = ... parts ...         one block
    becomes
    for block in 0..1:                               blocks
        for part in 0..G: parts[part] = ...          blocks
        for last in 0..1: total = ... parts ...      that of them which comes last

Where parts are found for several points, or tiles of them, and a block puts those of each together,
the loop over these is the outer one, and the last block of each does it:

    for part in 0..G: for tile in 0..T: ...    becomes    for tile in 0..T:           blocks
    for tile in 0..T: ...                                     for part in 0..G: ...   blocks
                                                              for last in 0..1: ...

The last block does what a block did before, in the same order and with as many threads: not a bit
depends on which one it is, and it takes no longer. So columns stay with two kernels where each of
them has a block of its own that adds its parts: one for a tile of them would have more to do.

Needs: nothing that may fail; of each array that both kernels use and one of them writes, elements
that no other point uses. Guarantees: every element is what it was.

>>> from plusequals.lowering.gpu.mapping import grid
>>> program = optimize(lowered("s[0] += x[i]", s="f32[1]", x="f32[100000]"), Target("cuda"))[0]
>>> (kernel,) = grid(program, Target("cuda")).program.kernels[0].body
>>> kernel.kind, [stmt.kind for stmt in kernel.body]
('block', ['block', 'last'])
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import NamedTuple

from ...analysis.parallel_band import around, is_known, trips, with_value
from ...ir.assignments import Alloc, Permute, Print
from ...ir.bounds import Bounds
from ...ir.expressions import Index
from ...ir.expressions import reads as reads_of
from ...ir.fresh import Fresh
from ...ir.indexing import Affine, Symbol, const, var
from ...ir.intervals import UNKNOWN, Interval
from ...ir.loops import Barrier, Check, Comment, Fill, For, Stmt, While
from ...ir.node import Node
from ...ir.rewrite import map_statements, with_bodies
from ...ir.walk import bodies, expressions_of, parts, reads, statements, writes
from ..thread_points import THREADS, Space

BLOCKS = 2048
"""Up to so many blocks each wait until the others see what they have written: a large device has
most of them at once. Where more come one after the other, each of them would wait."""
SHARED_BYTES = 16 * 1024
"""So much memory a block may share for both: a multiprocessor has room for eight of them."""
LONG = 32
"""A loop with fewer rounds may be written out."""
AXES = 3
"""A grid has so many."""
MOST_NODES = 64
"""A kernel is given up to so many arrays where it does what others could do, too."""
_UNITS = frozenset(("packed", "tensor", "warpgroup", "settled", "paired", "atomic", "last"))
"""Kinds of loops whose kernels stay as they are: they are made for other ends."""


def by_the_last(
    body: Iterable[Stmt], spaces: Mapping[int, Space], fresh: Fresh
) -> tuple[Stmt, ...]:
    """Return kernels, and what the host does around them, with each that puts together what the one
    before it has found as part of that."""
    out: list[Stmt] = []
    for stmt in body:
        if not isinstance(stmt, For) or stmt.kind != "block":
            inner = tuple(by_the_last(part, spaces, fresh) for part in bodies(stmt))
            out.append(with_bodies(stmt, inner) if inner else stmt)
            continue
        told = len(out)
        while told and isinstance(out[told - 1], Comment):
            told -= 1
        before = out[told - 1] if told else None
        made = None
        if isinstance(before, For) and before.kind == "block":
            made = joined(before, stmt, out[told:], spaces, fresh)
        out = [*out, stmt] if made is None else [*out[: told - 1], made]
    return tuple(out)


def joined(
    first: For, second: For, between: Sequence[Stmt], spaces: Mapping[int, Space], fresh: Fresh
) -> For | None:
    """Return two kernels as one, None where they stay two; `between` are comments."""
    if not _may(first, second, spaces, {node.id for node in fresh.nodes}):
        return None
    one, two = _Blocks.of(first), _Blocks.of(second)
    found = _of_each(one, two, spaces) or _of_one(one, two)
    if found is None:
        return None
    outer, blocks, inner = found
    *_, end = two.body
    rest = inner[:-1] if isinstance(end, Barrier) else inner
    rest = map_statements(rest, _rolled)
    last = For(fresh.symbol("last"), const(0), const(1), 1, (*between, *rest), "last")
    (made,) = around(outer, (*around(blocks, one.body), last))
    assert isinstance(made, For)
    return made


def _rolled(stmt: Stmt) -> tuple[Stmt, ...]:
    """Return a long loop as one that compilers do not write out: registers that one block uses for
    parts that it reads ahead are taken from all."""
    if not isinstance(stmt, For) or stmt.kind != "serial" or trips(stmt) in range(LONG):
        return (stmt,)
    if any(isinstance(inner, For | While | Barrier) for inner in statements(stmt.body)):
        return (stmt,)
    return (replace(stmt, kind="rolled"),)


class _Blocks(NamedTuple):
    """The loops over the blocks of a kernel, and what a block does."""

    loops: tuple[For, ...]
    body: tuple[Stmt, ...]

    @classmethod
    def of(cls, kernel: For) -> _Blocks:
        loops, told = [kernel], list[Stmt]()
        while True:
            comments = [stmt for stmt in loops[-1].body if isinstance(stmt, Comment)]
            inside = [stmt for stmt in loops[-1].body if not isinstance(stmt, Comment)]
            inner = inside[0] if len(inside) == 1 else None
            if not isinstance(inner, For) or inner.kind != "block":
                return cls(tuple(loops), (*told, *loops[-1].body))
            loops.append(inner)
            told += comments


class _Found(NamedTuple):
    """Loops over points, loops over the blocks of each, and what the last of them does."""

    outer: tuple[For, ...]
    blocks: tuple[For, ...]
    last: tuple[Stmt, ...]


def _may(first: For, second: For, spaces: Mapping[int, Space], new: set[int]) -> bool:
    """Whether two kernels can be one that is as fast: the first finds parts for the second."""
    both = (first, second)
    inside = statements(both)
    if any(isinstance(stmt, Check | Print | Fill | Alloc | Permute) for stmt in inside):
        return False
    if any(isinstance(stmt, For) and stmt.kind in _UNITS for stmt in inside):
        return False
    if not {node.id for node in writes((first,))} & {n.id for n in reads((second,))} & new:
        return False
    count = prod(trips(loop) or BLOCKS + 1 for loop in _Blocks.of(first).loops)
    if count not in range(2, BLOCKS + 1):
        return False
    sizes = [_width(kernel) for kernel in both]
    if 0 in sizes or sizes[0] < sizes[1]:
        return False
    used = {node.id: node for node in (*reads(both), *writes(both))}
    kept = {n.id for n in (*reads((second,)), *writes((second,)))}
    if any(spaces.get(number) in ("rows", "registers") for number in kept):
        return False
    shared = [n.bytes for n in used.values() if spaces.get(n.id) == "shared"]
    return sum(shared) <= SHARED_BYTES and len(used) <= MOST_NODES


def _width(kernel: For) -> int:
    """Return how many threads a block has, 0 where these have more axes than one."""
    loops = [s for s in statements((kernel,)) if isinstance(s, For) and s.kind == "thread"]
    inside = (inner for loop in loops for inner in statements(loop.body))
    if any(isinstance(inner, For) and inner.kind == "thread" for inner in inside):
        return 0
    counts = [trips(loop) for loop in loops]
    return max((THREADS if n is None else min(n, THREADS) for n in counts), default=0)


def _of_one(one: _Blocks, two: _Blocks) -> _Found | None:
    """Return what becomes of two kernels of which the second is a block's; None of others."""
    if len(one.loops) == AXES or any(trips(loop) != 1 for loop in two.loops):
        return None
    last = two.body
    for loop in two.loops:
        last = with_value(last, loop.symbol, loop.lo)
    return _Found((replace(two.loops[0], body=()),), one.loops, last)


def _of_each(one: _Blocks, two: _Blocks, spaces: Mapping[int, Space]) -> _Found | None:
    """Return what becomes of two kernels that have the same points, of which each is several
    blocks' in the first one; None of others."""
    for at, blocks in enumerate(one.loops):
        outer = (*one.loops[:at], *one.loops[at + 1 :])
        if _are_same(outer, two.loops) and is_known(blocks):
            last = two.body
            for mine, loop in zip(outer, two.loops, strict=True):
                last = with_value(last, loop.symbol, var(mine.symbol))
            known = Bounds()
            for loop in one.loops:
                known = known.inside(loop)
            if _are_apart(outer, one.body, last, known, spaces):
                return _Found(outer, (blocks,), last)
    return None


def _are_same(loops: Sequence[For], others: Sequence[For]) -> bool:
    """Whether two kernels have the same points, whatever their names."""
    return len(loops) == len(others) and all(
        is_known(one) and (one.lo, one.hi, one.step) == (other.lo, other.hi, other.step)
        for one, other in zip(loops, others, strict=True)
    )


def _are_apart(
    outer: Sequence[For], first: tuple[Stmt, ...], last: tuple[Stmt, ...], known: Bounds,
    spaces: Mapping[int, Space],
) -> bool:  # fmt: skip
    """Whether no two points use the same element of what one part writes and the other uses."""
    written = [{n.id for n in writes(body)} for body in (first, last)]
    used = [{n.id for n in reads(body)} | w for body, w in zip((first, last), written, strict=True)]
    clash = (written[0] & used[1]) | (used[0] & written[1])
    places: dict[int, list[_Place]] = {
        number: [] for number in clash if spaces.get(number, "device") == "device"
    }
    for node, place in _places((*first, *last), known):
        places.get(node.id, []).append(place)
    return all(
        (trips(loop) or 0) <= 1 or _tells(some, loop.symbol)
        for loop in outer for some in places.values()
    )  # fmt: skip


class _Place(NamedTuple):
    """Where an array is used, and what the numbers there are between."""

    at: tuple[Index, ...]
    known: Bounds


def _places(body: Iterable[Stmt], known: Bounds) -> Iterator[tuple[Node, _Place]]:
    """Yield every use of an array."""
    for stmt in body:
        for access in parts(stmt).targets:
            yield access.node, _Place(access.index, known)
        for expr in expressions_of(stmt):
            for read in reads_of(expr):
                yield read.node, _Place(read.index, known)
        inside = known.inside(stmt) if isinstance(stmt, For) else known
        for part in bodies(stmt):
            yield from _places(part, inside)


def _tells(places: Sequence[_Place], symbol: Symbol) -> bool:
    """Whether an index tells everywhere the round of a loop: in another one it is another."""
    axes = zip(*(place.at for place in places), strict=True) if places else ()
    return any(
        _told([(one, place.known) for one, place in zip(axis, places, strict=True)], symbol)
        for axis in axes
    )


def _told(indices: Sequence[tuple[Index, Bounds]], symbol: Symbol) -> bool:
    """Whether indices are of the form `k*symbol + r` with the same k, and r of one range below it.

    >>> tile, thread = Symbol("tile", 0), Symbol("thread", 1)
    >>> known = Bounds().holding(thread, (0, 255))
    >>> [_told([(var(tile) * k + var(thread), known)], tile) for k in (256, 255)]
    [True, False]
    """
    factors, lows, highs = set[int](), list[int](), list[int]()
    for index, known in indices:
        if not isinstance(index, Affine):
            return False
        factor = index.coefficient(symbol)
        low, high = _rest(index - var(symbol) * factor, symbol, known)
        if low is None or high is None:
            return False
        factors.add(factor)
        lows.append(low)
        highs.append(high)
    return len(factors) == 1 and max(highs) - min(lows) < min(factors)


def _rest(rest: Affine, symbol: Symbol, known: Bounds) -> Interval:
    """Return what the rest of an index is between, where that says nothing of a loop."""
    return UNKNOWN if symbol in rest.symbols() else known.interval(rest)
