"""Column reductions: long sums of few contiguous points, as partial sums of more threads.

    for j in 0..m: before; for i in 0..n: total += f(i, j); after
    becomes
    for g in 0..G, j in 0..m: part = 0; for i in g*C..(g+1)*C: part += f(i, j); parts[g, j] = part
    for j in 0..m: before; for g in 0..G: total += parts[g, j]; after

so that a device that reads along `j`, a column for each thread, has enough threads. A sum that
depends on earlier results of the points begins a nest of its own, and temporaries that are live
from one to another are expanded by axes for the points. G depends on the sizes only, so results are
bit-identical on every device.

>>> program = lowered("y[j] = sum[i](x[i, j]) * 2", y="f32[700]", x="f32[9000, 700]")
>>> program = optimize(program, Target("cuda"))[0]
>>> facts = facts_of(program)
>>> nests = split_columns(find_band(program.kernels[0].body[1], facts), facts, fresh_for(program),
...     {node.id: node for node in program.locals})
>>> [isinstance(nest, DeviceCode) for nest in nests]
[True, False]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from math import prod

from ....base.dataclass import dataclass
from ... import thresholds
from ...analysis.accumulators import find_accumulators
from ...analysis.dependence import has_early_exit
from ...analysis.parallel_band import (
    Band,
    Facts,
    has_checks,
    nest_loops,
    perfect_nest,
    static_trip_count,
)
from ...ir.fresh import Fresh
from ...ir.indexing import Affine, const, var
from ...ir.loops import For, Stmt
from ...ir.node import Node
from ...ir.walk import reads, writes
from ...transform.strip_mine import chunk, with_static_end
from ..thread_points import DeviceCode, expand_temporaries, normalize_band, tile_over_threads
from .segmented import find_carried, is_contiguous_in_points, shares_symbols
from .split_reduction import ChunkPartial, redirect_to_partials


def split_columns(
    nest: Band, facts: Facts, fresh: Fresh, nodes: Mapping[int, Node]
) -> tuple[DeviceCode | For, ...] | None:
    """Return kernels of partial sums, and nests, in order; None where nothing is gained by that.

    A band that contains checks stays whole: of several failures the first is reported. So does one
    whose points a `continue` may end early, as no later part would know.
    """
    counts = [static_trip_count(loop) for loop in nest.free]
    if (
        None in counts
        or not thresholds.MIN_UNCOLLAPSED_ITERATIONS
        <= prod(map(_count_or_zero, counts))
        < thresholds.COLUMN_REDUCTION_THREADS
        or has_checks(nest.inner)
        or has_early_exit(nest.inner)
    ):
        return None
    free, body = normalize_band(nest, fresh)
    facts.tell(body, nest.private)
    splitter = _Splitter(free, facts, fresh, nodes)
    for stmt, original in zip(body, nest.inner, strict=True):
        splitter.add(stmt, is_contiguous_in_points(original, nest.free))
    splitter.close()
    if not any(part.is_partial_sums for part in splitter.parts):
        return None
    bodies = [part.body for part in splitter.parts]
    if shares_symbols(bodies):
        return None
    carried_ids = find_carried(bodies, nest.private)
    if carried_ids:
        stmts = tuple(stmt for stmt_list in bodies for stmt in stmt_list)
        large = [nodes[number] for number in sorted(carried_ids)]
        expansion = expand_temporaries(stmts, large, free, fresh)
        if expansion is None:
            return None
        rewritten = iter(expansion)
        bodies = [tuple(next(rewritten) for _ in stmt_list) for stmt_list in bodies]
    return tuple(
        splitter.build_nest(part, stmt_list, nest.private - carried_ids)
        for part, stmt_list in zip(splitter.parts, bodies, strict=True)
    )


def _count_or_zero(count: int | None) -> int:
    return count or 0


@dataclass(frozen=True, slots=True)
class _Nest:
    """The body of one nest over the points."""

    body: tuple[Stmt, ...]
    group: For | None = None
    """The loop over chunks around the points, if it computes partial sums."""
    private: frozenset[int] = frozenset()
    """The temporaries of a thread that computes a partial sum."""

    @property
    def is_partial_sums(self) -> bool:
        return self.group is not None


@dataclass(slots=True)
class _Splitter:
    """Splits the body of points, statement by statement, into nests of their own."""

    free: Sequence[For]
    facts: Facts
    fresh: Fresh
    nodes: Mapping[int, Node]
    parts: list[_Nest] = field(default_factory=list)
    open_body: list[Stmt] = field(default_factory=list)
    """The statements of the open nest: all that may be executed after the last sums."""
    combined_scalars: set[int] = field(default_factory=set)
    """The scalars of the combinations of partial sums, for each point."""

    def add(self, stmt: Stmt, is_columnwise: bool) -> None:
        """Add a statement; a long sum whose accesses are contiguous in the points is replaced by
        the combination of its partial sums."""
        split = self.split_sum(stmt) if is_columnwise and isinstance(stmt, For) else None
        if split is None:
            self.open_body.append(stmt)
            return
        nest, combination, accumulators = split
        used = _accessed_ids((stmt,)) - accumulators
        written = _written_ids((stmt,)) - accumulators
        if used & _written_ids(self.open_body) or written & _accessed_ids(self.open_body):
            self.close()
        self.parts.append(nest)
        self.open_body += combination

    def close(self) -> None:
        """Close the open nest, which is after the sums that it uses."""
        if self.open_body:
            self.parts.append(_Nest(tuple(self.open_body)))
            self.open_body = []

    def split_sum(self, loop: For) -> tuple[_Nest, list[Stmt], frozenset[int]] | None:
        """Return the nest of the partial sums of a loop, their combination, and the ids of the
        accumulators; None where it is no long sum, or not worth it."""
        loops, body = perfect_nest(loop)
        sizes = [static_trip_count(level) for level in loops]
        points = prod(_count_or_zero(static_trip_count(level)) for level in self.free)
        terms = prod(2**30 if size is None else size for size in sizes)
        count = min(
            thresholds.COLUMN_REDUCTION_THREADS // points,
            terms // thresholds.MIN_COLUMN_TERMS_PER_THREAD,
        )
        private = self.facts.private(loop)
        if points * terms < thresholds.MIN_COLUMN_TERMS or count < 2:
            return None
        accumulators = find_accumulators(loop, private, self.facts)
        if not accumulators or not all(self.fits_thread(number) for number in private):
            return None
        at = 0 if any(accumulator.pair for accumulator in accumulators) else _largest(sizes)
        if (size := sizes[at]) is not None:
            count = min(count, size)
        chunk_symbol = self.fresh.symbol("part")
        chunk_body = nest_loops(loops[at + 1 :], body)
        chunk_loop, chunk_body = chunk(loops[at], chunk_symbol, count, chunk_body, self.fresh)
        chunk_loop = with_static_end(chunk_loop, loops[at], count)
        position = [var(level.symbol) - level.lo for level in self.free]
        shape = (count, *(_count_or_zero(static_trip_count(level)) for level in self.free))

        def locate(number: Affine) -> tuple[Affine, ...]:
            return (number, *position)

        partials = [
            ChunkPartial(accumulator, self.fresh, shape, locate) for accumulator in accumulators
        ]
        inner = redirect_to_partials(nest_loops((*loops[:at], chunk_loop), chunk_body), partials)
        starts = tuple(stmt for partial in partials for stmt in partial.start())
        ends = tuple(stmt for partial in partials for stmt in partial.end(chunk_symbol))
        private_ids = private | {node.id for partial in partials for node in partial.scalars}
        outer = For(chunk_symbol, const(0), const(count), 1, ())
        targets = frozenset(
            access.node.id for accumulator in accumulators for access in accumulator.accesses
        )
        first_new = len(self.fresh.nodes)
        combinations = [stmt for partial in partials for stmt in partial.ends_of(self.fresh, count)]
        self.combined_scalars |= {node.id for node in self.fresh.nodes[first_new:]}
        return _Nest((*starts, *inner, *ends), outer, private_ids), combinations, targets

    def fits_thread(self, number: int) -> bool:
        """Whether a temporary may be private to a thread."""
        node = self.nodes[number]
        return node.static_shape is not None and (
            not node.rank or node.bytes <= thresholds.MAX_THREAD_PRIVATE_BYTES
        )

    def build_nest(
        self, nest: _Nest, body: tuple[Stmt, ...], private: frozenset[int]
    ) -> DeviceCode | For:
        """Return the kernel of partial sums, or a nest over all points, recorded in the facts."""
        if nest.group is not None:
            kernel = tile_over_threads([nest.group, *self.free], body, self.fresh)
            return DeviceCode((kernel,), dict.fromkeys(nest.private, "private"))
        (loop,) = nest_loops(self.free, body)
        assert isinstance(loop, For)
        self.facts.tell((loop,), private | self.combined_scalars)
        return loop


def _largest(sizes: Sequence[int | None]) -> int:
    return max(range(len(sizes)), key=lambda at: 2**40 if (n := sizes[at]) is None else n)


def _accessed_ids(body: Sequence[Stmt]) -> frozenset[int]:
    """Return the ids of the nodes that statements read or write."""
    return frozenset(node.id for node in (*reads(body), *writes(body)))


def _written_ids(body: Sequence[Stmt]) -> frozenset[int]:
    return frozenset(node.id for node in writes(body))
