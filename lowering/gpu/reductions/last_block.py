"""Last-block reductions: the block that finishes last combines the partial results, in one kernel.

    for part in 0..G: parts[part] = ...              blocks
    for block in 0..1: total = ... parts ...         one block
    becomes
    for block in 0..1:                               blocks
        for part in 0..G: parts[part] = ...          blocks
        last block: total = ... parts ...            that of them which comes last

Where partial results belong to several points, or tiles of them, and one block combines those of
each, the loop over these is the outer one, and the last block of each combines:

    for part in 0..G: for tile in 0..T: ...    becomes    for tile in 0..T:           blocks
    for tile in 0..T: ...                                     for part in 0..G: ...   blocks
                                                              last block: ...

The last block executes what a block of the second kernel did, in the same order and with as many
threads: results are bit-identical whichever block it is, and it takes no longer. So columns keep
two kernels where each of them has a block of its own for the combination: one block for a tile of
them would have more to do.

Precondition: no checks; of each array that both kernels use and one of them writes, only elements
that no other point uses. Postcondition: all elements are bit-identical.

Source: CUDA C++ Programming Guide, memory fence functions.

>>> from plusequals.lowering.gpu.mapping import map_program
>>> program = optimize(lowered("s[0] += x[i]", s="f32[1]", x="f32[100000]"), Target("cuda"))[0]
>>> (kernel,) = map_program(program, Target("cuda")).program.kernels[0].body
>>> kernel.kind, [getattr(stmt, "kind", type(stmt).__name__) for stmt in kernel.body]
('block', ['block', 'LastBlock'])
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import NamedTuple

from ... import thresholds
from ...analysis.parallel_band import is_static, nest_loops, static_trip_count, substitute_symbol
from ...ir.assignments import Alloc, Permute, Print
from ...ir.bounds import Bounds
from ...ir.expressions import Index
from ...ir.expressions import reads as reads_of
from ...ir.fresh import Fresh
from ...ir.indexing import Affine, Symbol, var
from ...ir.instructions import AwaitProducts, CopyVector, MatMul, StoreVector
from ...ir.intervals import UNKNOWN, Interval
from ...ir.loops import Barrier, Check, Comment, Fill, For, LastBlock, Stmt, Update, While
from ...ir.node import Node
from ...ir.rewrite import map_statements, with_bodies
from ...ir.walk import bodies, expressions_of, parts, reads, statements, writes
from ..thread_points import Space

AXES = 3
"""Axes of a grid."""


def merge_last_blocks(
    body: Iterable[Stmt], spaces: Mapping[int, Space], fresh: Fresh
) -> tuple[Stmt, ...]:
    """Return kernels, and the host code around them, with each kernel that combines partial results
    of the one before it merged into that."""
    out: list[Stmt] = []
    for stmt in body:
        if not isinstance(stmt, For) or stmt.kind != "block":
            inner = tuple(merge_last_blocks(part, spaces, fresh) for part in bodies(stmt))
            out.append(with_bodies(stmt, inner) if inner else stmt)
            continue
        end = len(out)
        while end and isinstance(out[end - 1], Comment):
            end -= 1
        previous = out[end - 1] if end else None
        merged = None
        if isinstance(previous, For) and previous.kind == "block":
            merged = merge_kernels(previous, stmt, out[end:], spaces, fresh)
        out = [*out, stmt] if merged is None else [*out[: end - 1], merged]
    return tuple(out)


def merge_kernels(
    first: For, second: For, between: Sequence[Stmt], spaces: Mapping[int, Space], fresh: Fresh
) -> For | None:
    """Return two kernels merged into one, None where they stay two; `between` are comments."""
    if not _can_merge(first, second, spaces, {node.id for node in fresh.nodes}):
        return None
    producer, consumer = _Blocks.of(first), _Blocks.of(second)
    merged = _merge_pointwise(producer, consumer, spaces) or _merge_single(producer, consumer)
    if merged is None:
        return None
    outer, blocks, inner = merged
    *_, final = consumer.body
    stmts = inner[:-1] if isinstance(final, Barrier) else inner
    stmts = map_statements(stmts, _keep_rolled)
    last = LastBlock((*between, *stmts))
    (kernel,) = nest_loops(outer, (*nest_loops(blocks, producer.body), last))
    assert isinstance(kernel, For)
    return kernel


def _keep_rolled(stmt: Stmt) -> tuple[Stmt, ...]:
    """Return a long loop as one that compilers do not unroll: registers that one block uses for
    prefetched partial results are taken from all blocks."""
    if (
        not isinstance(stmt, For)
        or stmt.kind != "serial"
        or static_trip_count(stmt) in range(thresholds.LONG_SERIAL_ITERATIONS)
    ):
        return (stmt,)
    if any(isinstance(inner, For | While | Barrier) for inner in statements(stmt.body)):
        return (stmt,)
    return (replace(stmt, kind="rolled"),)


class _Blocks(NamedTuple):
    """The block loops of a kernel, and the body of a block."""

    loops: tuple[For, ...]
    body: tuple[Stmt, ...]

    @classmethod
    def of(cls, kernel: For) -> _Blocks:
        loops, leading = [kernel], list[Stmt]()
        while True:
            comments = [stmt for stmt in loops[-1].body if isinstance(stmt, Comment)]
            inside = [stmt for stmt in loops[-1].body if not isinstance(stmt, Comment)]
            inner = inside[0] if len(inside) == 1 else None
            if not isinstance(inner, For) or inner.kind != "block":
                return cls(tuple(loops), (*leading, *loops[-1].body))
            loops.append(inner)
            leading += comments


class _Merged(NamedTuple):
    """Loops over points, loops over the blocks of each, and the code of the last block."""

    outer: tuple[For, ...]
    blocks: tuple[For, ...]
    last: tuple[Stmt, ...]


def _has_fixed_mapping(stmt: Stmt) -> bool:
    """Whether the kernel of a statement was built for another mapping, and stays as it is."""
    match stmt:
        case Update():
            return stmt.atomic
        case CopyVector() | StoreVector() | MatMul() | AwaitProducts() | LastBlock():
            return True
        case _:
            return False


def _can_merge(first: For, second: For, spaces: Mapping[int, Space], new: set[int]) -> bool:
    """Whether two kernels may be merged without loss: the second combines the first's results."""
    kernels = (first, second)
    stmts = statements(kernels)
    if any(isinstance(stmt, Check | Print | Fill | Alloc | Permute) for stmt in stmts):
        return False
    if any(map(_has_fixed_mapping, stmts)):
        return False
    if not {node.id for node in writes((first,))} & {n.id for n in reads((second,))} & new:
        return False
    most = thresholds.MAX_LAST_BLOCK_GRID
    count = prod(static_trip_count(loop) or most + 1 for loop in _Blocks.of(first).loops)
    if count not in range(2, most + 1):
        return False
    sizes = [_block_width(kernel) for kernel in kernels]
    if 0 in sizes or sizes[0] < sizes[1]:
        return False
    used = {node.id: node for node in (*reads(kernels), *writes(kernels))}
    consumed = {n.id for n in (*reads((second,)), *writes((second,)))}
    if any(spaces.get(number) in ("rows", "registers") for number in consumed):
        return False
    shared = [n.bytes for n in used.values() if spaces.get(n.id) == "shared"]
    return (
        sum(shared) <= thresholds.MAX_LAST_BLOCK_SHARED_BYTES
        and len(used) <= thresholds.MAX_SPLIT_KERNEL_ARRAYS
    )


def _block_width(kernel: For) -> int:
    """Return the number of threads of a block, 0 where these have more axes than one."""
    loops = [s for s in statements((kernel,)) if isinstance(s, For) and s.kind == "thread"]
    inside = (inner for loop in loops for inner in statements(loop.body))
    if any(isinstance(inner, For) and inner.kind == "thread" for inner in inside):
        return 0
    counts = [static_trip_count(loop) for loop in loops]
    most = thresholds.BLOCK_THREADS
    return max((most if n is None else min(n, most) for n in counts), default=0)


def _merge_single(producer: _Blocks, consumer: _Blocks) -> _Merged | None:
    """Return the merge of two kernels of which the second has one block; None for others."""
    if len(producer.loops) == AXES or any(static_trip_count(loop) != 1 for loop in consumer.loops):
        return None
    last = consumer.body
    for loop in consumer.loops:
        last = substitute_symbol(last, loop.symbol, loop.lo)
    return _Merged((replace(consumer.loops[0], body=()),), producer.loops, last)


def _merge_pointwise(
    producer: _Blocks, consumer: _Blocks, spaces: Mapping[int, Space]
) -> _Merged | None:
    """Return the merge of two kernels with the same points, of which each has several blocks in the
    first one; None for others."""
    for at, blocks in enumerate(producer.loops):
        outer = (*producer.loops[:at], *producer.loops[at + 1 :])
        if _have_same_points(outer, consumer.loops) and is_static(blocks):
            last = consumer.body
            for point, loop in zip(outer, consumer.loops, strict=True):
                last = substitute_symbol(last, loop.symbol, var(point.symbol))
            bounds = Bounds()
            for loop in producer.loops:
                bounds = bounds.inside(loop)
            if _are_independent(outer, producer.body, last, bounds, spaces):
                return _Merged(outer, (blocks,), last)
    return None


def _have_same_points(loops: Sequence[For], others: Sequence[For]) -> bool:
    """Whether two kernels have the same points, up to the names of variables."""
    return len(loops) == len(others) and all(
        is_static(left) and (left.lo, left.hi, left.step) == (right.lo, right.hi, right.step)
        for left, right in zip(loops, others, strict=True)
    )


def _are_independent(
    outer: Sequence[For], first: tuple[Stmt, ...], last: tuple[Stmt, ...], bounds: Bounds,
    spaces: Mapping[int, Space],
) -> bool:  # fmt: skip
    """Whether no two points use the same element of what one part writes and the other uses."""
    written = [{n.id for n in writes(body)} for body in (first, last)]
    used = [{n.id for n in reads(body)} | w for body, w in zip((first, last), written, strict=True)]
    conflicts = (written[0] & used[1]) | (used[0] & written[1])
    uses: dict[int, list[_Use]] = {
        number: [] for number in conflicts if spaces.get(number, "device") == "device"
    }
    for node, use in _uses_of((*first, *last), bounds):
        uses.get(node.id, []).append(use)
    return all(
        (static_trip_count(loop) or 0) <= 1 or _identifies_iteration(sites, loop.symbol)
        for loop in outer for sites in uses.values()
    )  # fmt: skip


class _Use(NamedTuple):
    """An access of an array, and the bounds of the variables there."""

    subscripts: tuple[Index, ...]
    bounds: Bounds


def _uses_of(body: Iterable[Stmt], bounds: Bounds) -> Iterator[tuple[Node, _Use]]:
    """Yield every access of an array."""
    for stmt in body:
        for access in parts(stmt).targets:
            yield access.node, _Use(access.index, bounds)
        for expr in expressions_of(stmt):
            for read in reads_of(expr):
                yield read.node, _Use(read.index, bounds)
        inner_bounds = bounds.inside(stmt) if isinstance(stmt, For) else bounds
        for part in bodies(stmt):
            yield from _uses_of(part, inner_bounds)


def _identifies_iteration(uses: Sequence[_Use], symbol: Symbol) -> bool:
    """Whether an axis of the subscripts is injective in a loop variable, at all accesses."""
    axes = zip(*(use.subscripts for use in uses), strict=True) if uses else ()
    return any(
        _is_injective(
            [(subscript, use.bounds) for subscript, use in zip(axis, uses, strict=True)], symbol
        )
        for axis in axes
    )


def _is_injective(indices: Sequence[tuple[Index, Bounds]], symbol: Symbol) -> bool:
    """Whether indices are of the form `k*symbol + r` with the same k, and r in one range below k.

    >>> tile, thread = Symbol("tile", 0), Symbol("thread", 1)
    >>> bounds = Bounds().with_interval(thread, (0, 255))
    >>> [_is_injective([(var(tile) * k + var(thread), bounds)], tile) for k in (256, 255)]
    [True, False]
    """
    factors, lows, highs = set[int](), list[int](), list[int]()
    for index, bounds in indices:
        if not isinstance(index, Affine):
            return False
        factor = index.coefficient(symbol)
        low, high = _remainder_bounds(index - var(symbol) * factor, symbol, bounds)
        if low is None or high is None:
            return False
        factors.add(factor)
        lows.append(low)
        highs.append(high)
    return len(factors) == 1 and max(highs) - min(lows) < min(factors)


def _remainder_bounds(rest: Affine, symbol: Symbol, bounds: Bounds) -> Interval:
    """Return the bounds of the remainder of an index, unknown where it depends on the symbol."""
    return UNKNOWN if symbol in rest.symbols() else bounds.interval(rest)
