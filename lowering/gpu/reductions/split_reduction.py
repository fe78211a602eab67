"""Split reductions over many blocks: partial results of chunks, combined by one block.

    for i in 0..n: total += f(i)
    becomes
    for g in 0..G: part = 0; for i in g*C..(g+1)*C: part += f(i); parts[g] = part      blocks
    for g in 0..G: total += parts[g]                                                   one block

G depends on the number of iterations only, so results are bit-identical on every device. As rfactor
of Suriana, Adams and Kamil, Parallel associative reductions in Halide, 2017.

>>> program = lowered("s[0] += x[i]", s="f32[1]", x="f32[100000]")
>>> loop, facts = program.kernels[0].body[-1], facts_of(program)
>>> from plusequals.lowering.analysis.accumulators import find_accumulators
>>> accumulators = find_accumulators(loop, frozenset(), facts)
>>> code = map_split_reduction(loop, accumulators, facts, fresh_for(program), {})
>>> [len(code.body), count_blocks(loop)]
[2, 25]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import ceil, prod

from ... import thresholds
from ...analysis.accumulators import Accumulator, neutral_element, zero_of
from ...analysis.parallel_band import (
    Facts,
    collapse,
    contiguity_score,
    has_checks,
    largest_trip_count,
    nest_loops,
    perfect_nest,
    producer_loops,
    static_trip_count,
    trip_count,
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
from ...transform.remap import Element, add_leading_axis, remap_accesses
from ...transform.strip_mine import chunk, with_static_end
from ..barriers import insert_barriers
from ..thread_block import build_block_code, fits_block
from ..thread_points import DeviceCode
from .block_reduction import find_parallel_loops


def count_blocks(loop: For, points: int = 1, bounds: Bounds | None = None) -> int:
    """Return the number of blocks for the iterations of a nest, which every one of `points` has.

    Where the number of iterations is dynamic, the `bounds` of variables may limit it.
    """
    limit = max(1, thresholds.MAX_REDUCTION_BLOCKS // points)
    loops, body = perfect_nest(loop)
    counts: list[int | None] = []
    inner_bounds = Bounds() if bounds is None else bounds
    for level in loops:
        counts.append(
            static_trip_count(level) if bounds is None else inner_bounds.most(trip_count(level))
        )
        inner_bounds = inner_bounds.inside(level)
    if None in counts:
        return limit
    iterations = prod(count or 0 for count in counts)
    return max(
        1,
        min(
            limit,
            iterations,
            ceil(
                iterations
                * largest_trip_count(producer_loops(body), inner_bounds)
                / thresholds.MIN_REDUCTION_BLOCK_TERMS
            ),
        ),
    )


def map_split_reduction(
    loop: For, accumulators: Sequence[Accumulator], facts: Facts, fresh: Fresh,
    nodes: Mapping[int, Node],
    point: For | None = None,
) -> DeviceCode | None:  # fmt: skip
    """Return the kernel of the partial results, followed by the loop that combines them; None where
    memory is too small.

    `point` is a loop around, each iteration of which has such a reduction.
    """
    loops, body = find_parallel_loops(loop, accumulators, facts)
    count = count_blocks(loop, 1 if point is None else static_trip_count(point) or 1)
    sizes = [_count_or_huge(level) for level in loops]
    in_order = any(accumulator.pair for accumulator in accumulators) or has_checks(body)
    at = 0 if in_order else sizes.index(max(sizes))
    if sizes[at] < count or _is_short(loops, body):
        collapsed = collapse(loops, body, fresh, in_order)
        if collapsed is not None:
            loops, body, at = (collapsed[0],), collapsed[1], 0
            sizes = [_count_or_huge(collapsed[0])]
        count = min(count, sizes[at])
    chunk_symbol = fresh.symbol("part")
    outer, inner = loops[:at], loops[at + 1 :]
    chunk_loop, chunk_body = chunk(loops[at], chunk_symbol, count, nest_loops(inner, body), fresh)
    chunk_loop = with_static_end(chunk_loop, loops[at], count)
    point_index = () if point is None else (var(point.symbol) - point.lo,)
    shape = (count,) if point is None else (static_trip_count(point) or 1, count)
    partials = [
        ChunkPartial(accumulator, fresh, shape, lambda number: (*point_index, number))
        for accumulator in accumulators
    ]
    summed = redirect_to_partials(nest_loops((*outer, chunk_loop), chunk_body), partials)
    facts.tell(summed, facts.temporaries_in(loop))
    starts = tuple(stmt for partial in partials for stmt in partial.start())
    ends = tuple(stmt for partial in partials for stmt in partial.end(chunk_symbol))
    scalars = [node for partial in partials for node in partial.scalars]
    private = facts.private(loop)
    large = [nodes[number] for number in sorted(private) if nodes[number].rank]
    if all(node.static_shape is not None for node in large) and not fits_block(large):
        is_large = count * sum(node.bytes for node in large) > thresholds.MAX_EXPANDED_BYTES
        if point is not None or is_large:
            return None
        private -= {node.id for node in large}
        summed = add_leading_axis(summed, large, count, var(chunk_symbol), fresh)
        facts.tell(summed, facts.temporaries_in(loop) - {node.id for node in large})
    private_ids = private | {node.id for node in scalars}
    all_nodes = {**nodes, **{node.id: node for node in scalars}}
    code = build_block_code((*starts, *summed, *ends), private_ids, facts, fresh, all_nodes)
    if code is None:
        return None
    chunk_body = insert_barriers(code.body, code.threads, loops=True)
    block = For(chunk_symbol, const(0), const(count), 1, chunk_body, "block")
    if point is None:
        last = tuple(stmt for partial in partials for stmt in partial.ends_of(fresh, count))
        return DeviceCode((block, *last), code.spaces)
    combinations = [partial.ends_of(fresh, count) for partial in partials]
    point_loop = replace(point, kind="block", body=(block,))
    return DeviceCode(
        (point_loop, *(replace(point, body=body) for body in combinations)), code.spaces
    )


def _is_short(loops: Sequence[For], body: tuple[Stmt, ...]) -> bool:
    """Whether few threads would execute the loop with contiguous accesses."""
    count = static_trip_count(max(loops, key=lambda loop: contiguity_score(body, loop.symbol)))
    return count is not None and count < thresholds.BLOCK_THREADS


def _count_or_huge(loop: For) -> int:
    count = static_trip_count(loop)
    return 2**40 if count is None else count


class ChunkPartial:
    """The partial result of each block or thread, and the array of all of them."""

    def __init__(
        self, accumulator: Accumulator, fresh: Fresh, shape: tuple[int, ...],
        locate: Callable[[Affine], tuple[Affine, ...]],
    ) -> None:  # fmt: skip
        """`locate` returns the location of a chunk's partial result in an array of that shape."""
        self.sum, self.locate = accumulator, locate
        label = accumulator.access.node.label
        self.value = fresh.scalar(f"{label}_chunk", accumulator.dtype)
        self.values = fresh.array(f"{label}_chunks", shape, accumulator.dtype)
        self.position: Node | None = None
        self.positions: Node | None = None
        if accumulator.pair is not None:
            label = accumulator.pair.access.node.label
            self.position = fresh.scalar(f"{label}_chunk", dtypes.int64)
            self.positions = fresh.array(f"{label}_chunks", shape, dtypes.int64)

    @property
    def scalars(self) -> list[Node]:
        """The scalars that are private to each thread."""
        return [self.value] if self.position is None else [self.value, self.position]

    def start(self) -> tuple[Stmt, ...]:
        """Return the initialization of a partial result."""
        if self.position is None:
            return (Store(Access(self.value, ()), neutral_element(self.sum.op, self.sum.dtype)),)
        zero = Const(zero_of(self.sum.dtype), self.sum.dtype)
        no_position = Const(-1, dtypes.int64)
        return Store(Access(self.value, ()), zero), Store(Access(self.position, ()), no_position)

    def end(self, chunk_symbol: Symbol) -> tuple[Stmt, ...]:
        """Return the stores of a partial result."""
        here = self.locate(var(chunk_symbol))
        out: tuple[Stmt, ...] = (Store(Access(self.values, here), Read(self.value, ())),)
        if self.position is not None and self.positions is not None:
            out += (Store(Access(self.positions, here), Read(self.position, ())),)
        return out

    def ends_of(self, fresh: Fresh, count: int) -> tuple[Stmt, ...]:
        """Return the combination by loops that threads may share: of extremes first the chunk that
        has the first one is found, then its position."""
        if self.position is None or self.positions is None or self.sum.pair is None:
            return (self.combine_serial(fresh, count),)
        chunk_symbol, which, at = (fresh.symbol(name) for name in ("part", "which", "at"))
        extreme = fresh.scalar(f"{self.value.label}_best", self.sum.dtype)
        first = fresh.scalar(f"{self.position.label}_part", dtypes.int64)
        begin = (
            Store(Access(extreme, ()), Const(zero_of(self.sum.dtype), self.sum.dtype)),
            Store(Access(first, ()), Const(-1, dtypes.int64)),
        )
        partial, position = (
            Read(node, self.locate(var(chunk_symbol))) for node in (self.values, self.positions)
        )
        pair = Pair(Access(first, ()), var(chunk_symbol))
        update = Update(Access(extreme, ()), self.sum.op, partial, pair)
        each = For(
            chunk_symbol, const(0), const(count), 1, (If(_is_valid_position(position), (update,)),)
        )
        best_position = Read(self.positions, self.locate(var(which)))
        end = Update(
            self.sum.access, self.sum.op, Read(extreme, ()), Pair(self.sum.pair.access, var(at))
        )
        last = If(
            _is_valid_position(Read(first, ())),
            (Let(which, Read(first, ())), Let(at, best_position), end),
        )
        return (*begin, each, last)

    def combine_serial(self, fresh: Fresh, count: int) -> Stmt:
        """Return the loop that combines the partial results, in their order."""
        chunk_symbol = fresh.symbol("part")
        here = self.locate(var(chunk_symbol))
        accumulator, value = self.sum, Read(self.values, here)
        if self.positions is None or accumulator.pair is None:
            body: tuple[Stmt, ...] = (
                Update(accumulator.access, accumulator.op, value, over=(var(chunk_symbol),)),
            )
            return For(chunk_symbol, const(0), const(count), 1, body)
        at, position = fresh.symbol("at"), Read(self.positions, here)
        pair = Pair(accumulator.pair.access, var(at))
        updates = (Let(at, position), Update(accumulator.access, accumulator.op, value, pair))
        return For(
            chunk_symbol, const(0), const(count), 1, (If(_is_valid_position(position), updates),)
        )


def _is_valid_position(position: Expr) -> Expr:
    """Return the test whether a position was found: it is negative otherwise."""
    return Apply(OPS["ge"], (position, Const(0, dtypes.int64)), dtypes.bool_)


def redirect_to_partials(
    body: tuple[Stmt, ...], partials: Sequence[ChunkPartial]
) -> tuple[Stmt, ...]:
    """Return statements that accumulate into partial results."""
    return remap_accesses(body, _RedirectToPartials(partials))


class _RedirectToPartials:
    """Redirects accesses of accumulators to partial results."""

    def __init__(self, partials: Sequence[ChunkPartial]) -> None:
        self.nodes: dict[int, Node] = {}
        for partial in partials:
            self.nodes[partial.sum.access.node.id] = partial.value
            if partial.sum.pair is not None and partial.position is not None:
                self.nodes[partial.sum.pair.access.node.id] = partial.position

    def __call__(self, node: Node, index: tuple[Index, ...]) -> Element:
        target = self.nodes.get(node.id)
        return (node, index) if target is None else (target, ())
