r"""Time tiling of stencils: several time steps on a tile of rows before the next tile.

Changes: a loop over time steps that sweep over rows of arrays larger than the cache. Of so many
steps as fit, each tile of rows first does what depends on no other tile: from step to step a little
less on both sides (trapezoids); then what is left between tiles is done, from step to step a little
more. Tiles are independent, and so are the gaps between them. In a tile blocks of rows follow one
another, each shifted down a little in every later step (skewing), so that what a step has written
is still in the cache when the next one reads it.

    for t: for i: v[i] = f(u[i - 1], u[i], u[i + 1]);  u, v trade places
    for tile:
        for piece: for block: for t: for some i: v[i] = ...; for some i - 1: u[i] = ...
        for gap: for t: for i beside the gap: v[i] = ...; u[i] = ...

Precondition: time steps of sweeps (`tile_stencils`), over as many rows in each step. Postcondition:
bit-identical: every element is computed as often, from the same values, whatever the number of
threads. After "Time Skewing" (Wonnacott) and "Cache Oblivious Stencil Computations" (Frigo and
Strumpen), with tiles of a fixed size.

>>> from plusequals.lowering.ir.printer import print_program
>>> program = lowered('''
... for t in range(10):
...     y[1:-1] = x[:-2] + x[2:]
...     x[1:-1] = y[1:-1]
... ''', y="f32[10000]", x="f32[10000]")
>>> target = Target(schedule=True, l2_bytes=16384, threads=2)
>>> text = print_program(tile_stencils(program, target).program)
>>> print("\n".join(line[8:].split("..")[0] for line in text.split("\n") if "for " in line))
for tile in 0
    for piece in 0
        for block in 0
            for t in 0
                for i in max(0, max(1280*piece + 128*block - 2*t - 20, 1280*piece + 2*t -
                for i in max(0, max(1280*piece + 128*block - 2*t - 21, 1280*piece + 2*t -
    for gap in 1
        for t in 0
            for i in max(0, 1280*gap - 2*t - 20)
            for i in max(0, 1280*gap - 2*t - 21)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ...base.lazy_import import LazyModule
from .. import thresholds
from ..analysis.dependence import find_privatizable
from ..analysis.subscripts import ranges
from ..ir import dtypes
from ..ir.assignments import Let, Permute
from ..ir.decision import Decided, Decision, Reason
from ..ir.expressions import Apply, Position
from ..ir.indexing import Affine, Symbol, const, floordiv, maximum, minimum, var
from ..ir.loops import For, If, LoopKind, Program, Stmt
from ..ir.ops import OPS
from ..ir.walk import direct_reads, direct_writes, statements
from ..target import Target
from ..transform.outermost import OutermostRewriter

if TYPE_CHECKING:
    from . import stencil as sweeps
else:  # what few programs need
    sweeps = LazyModule(".stencil", __package__)

Body = tuple[Stmt, ...]
StepsBuilder = Callable[[Callable[[Affine], tuple[Affine, Affine]]], Body]
"""Builds the time steps of a tile, given the rows of a sweep by its skew."""


class TimeTileReason(Reason):
    """Why time steps are tiled."""

    CACHE = "its arrays are larger than the cache, and a row needs only rows near it"
    ALONE = "no row needs another one, and a block of rows stays in the cache"


class _Sizes(NamedTuple):
    """The sizes of tiles."""

    periods: int
    """How many periods a tile does at a time; 0: all of them."""
    block: int
    """Rows of a block."""
    width: int
    """Rows of a tile, a multiple of those of a block."""


def tile_stencils(program: Program, target: Target) -> Decided:
    """Return the program with stencils in time tiles, and the decisions."""
    return _TimeTiling.on(program, target)


class _TimeTiling(OutermostRewriter):
    """The time tiling of one program."""

    __slots__ = ()

    def nest(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        """Return a loop over time steps in tiles; None where it stays as it is."""
        step_count = (loop.hi - loop.lo).constant
        if loop.kind != "serial" or loop.step != 1 or (step_count is not None and step_count < 2):
            return None
        footprint, caches = _bytes(loop), 2 * self.target.threads * self.target.l2_bytes
        if not any(isinstance(s, For) for s in loop.body) or footprint <= min(
            thresholds.SWEEP_BLOCK_BYTES, caches
        ):
            return None
        nest = sweeps.find_sweeps(loop, self.only(), self.temporaries, ranges(outer))
        if nest is None or (nest.reach and footprint <= caches):
            return None
        exclusive = self.only()[id(loop)]
        if not nest.reach and any(node.id in exclusive for node in nest.nodes):
            return None  # each thread would have its own, of which it needs some rows
        sizes = _sizes(nest, self.target, step_count)
        if sizes is None:
            return None
        node = next(
            n for s in nest.stages for stmt in statements((s.loop,)) for n in direct_writes(stmt)
        )
        why, name = TimeTileReason.CACHE if nest.reach else TimeTileReason.ALONE, loop.symbol.name
        self.decisions.append(Decision("skewed", why, node, span=loop.span, variable=name))
        return _Tiles(self, nest, sizes, self.end(loop, outer)).statements()


def _bytes(loop: For) -> int:
    """Return how many bytes of arrays of static sizes a time step uses."""
    nodes = {n.id: n for s in statements(loop.body) for n in (*direct_reads(s), *direct_writes(s))}
    static_nodes = (node for node in nodes.values() if node.rank and node.static_shape is not None)
    return sum(node.bytes for node in static_nodes)


def _rows(nest: sweeps.Sweeps) -> tuple[int, int]:
    """Return the first row, and one past the last."""
    los = [stage.loop.lo.constant or 0 for stage in nest.stages]
    his = [stage.loop.hi.constant or 0 for stage in nest.stages]
    return min(los), max(his)


def _sizes(nest: sweeps.Sweeps, target: Target, step_count: int | None) -> _Sizes | None:
    """Return tile sizes whose working set stays in a cache; None if no cache is large enough."""
    stages, period, reach = len(nest.stages) * nest.period, nest.period, nest.reach
    first, end = _rows(nest)
    shapes = [(node, node.static_shape) for node in nest.nodes]
    if stages > thresholds.MAX_PERIOD_SWEEPS or any(
        not shape or not shape[0] for _, shape in shapes
    ):
        return None
    row = max(1, sum(node.bytes // shape[0] for node, shape in shapes if shape))
    rows = end - first
    if not reach:
        block = max(1, thresholds.SWEEP_BLOCK_BYTES // row)
        return _Sizes(0, block, block) if rows > block else None
    far = min(target.l3_bytes // (2 * target.threads), thresholds.MAX_L3_BYTES_PER_THREAD)
    for budget in (target.l2_bytes // 2, far):
        block = max(1, min(thresholds.SWEEP_BLOCK_BYTES, budget // 8) // row)
        capacity = budget // row - block - 2 * reach
        most = min(
            thresholds.MAX_TILED_SWEEPS, rows // (4 * target.threads * reach), capacity // reach
        )
        periods = most // stages
        if step_count is not None:
            periods = min(periods, -(-step_count // period))
        if periods * period >= 2:
            tile_count = thresholds.TIME_TILES_PER_THREAD * target.threads
            width = max(-(-rows // tile_count), 4 * reach * stages * periods, 1)
            return _Sizes(periods, block, -(-width // block) * block)
    return None


class _Tiles(NamedTuple):
    """The tiles of one loop."""

    work: OutermostRewriter
    nest: sweeps.Sweeps
    sizes: _Sizes
    end: Affine
    """Where the loop over time steps ends, not before it begins."""

    @property
    def total_skew(self) -> int:
        """By how many rows the last sweep of a tile is skewed."""
        nest = self.nest
        return nest.reach * len(nest.stages) * nest.period * self.sizes.periods

    def statements(self) -> Body:
        """Return the tiles, and the exchange that leaves arrays in their final positions."""
        loop, period = self.nest.loop, self.nest.period
        count = self.end - loop.lo
        whole = floordiv(count + (period - 1), const(period))
        period_count = self.work.fresh.symbol("periods")
        lets = (
            () if whole.constant is not None else (Let(period_count, Position(whole), loop.span),)
        )
        whole = var(period_count) if lets else whole
        tiles = self.tiles(whole) if self.sizes.periods else self.all_steps(whole)
        if period == 1:
            return (*lets, tiles)
        moves = tuple(stmt for stmt in loop.body if isinstance(stmt, Permute))
        left = loop.lo + floordiv(count, const(period)) * period
        return (*lets, tiles, replace(loop, lo=left, hi=self.end, body=moves))

    def all_steps(self, whole: Affine) -> For:
        """Return the tiles with all time steps each, where they are independent."""
        first, end = _rows(self.nest)
        tile_count = -(-(end - first) // self.sizes.width)
        return self.tile_loop(partial(self.time_steps, const(0), whole), first, tile_count)

    def tiles(self, whole: Affine) -> For:
        """Return the loop over the time tiles of so many periods."""
        nest = self.nest
        tile = self.work.fresh.symbol("tile")
        first, end = _rows(nest)
        start = first - self.total_skew
        tile_count = -(-(end + self.total_skew - start) // self.sizes.width)
        left = whole - var(tile) * self.sizes.periods
        even = whole.constant is not None and not whole.constant % self.sizes.periods
        many = const(self.sizes.periods) if even else minimum(const(self.sizes.periods), left)
        steps = partial(self.time_steps, var(tile) * self.sizes.periods, many)
        body = [self.tile_loop(steps, start, tile_count)]
        if tile_count > 1:
            body.append(self.gaps(steps, start, tile_count))
        tiles = floordiv(whole + (self.sizes.periods - 1), const(self.sizes.periods))
        return For(tile, const(0), tiles, 1, tuple(body), span=nest.loop.span)

    def tile_loop(self, steps: StepsBuilder, start: int, tile_count: int) -> For:
        """Return the loop over tiles of rows: each does what depends on no other one, by blocks."""
        fresh, (_, block, width) = self.work.fresh, self.sizes
        tile, number = fresh.symbol("piece"), fresh.symbol("block")
        base = var(tile) * width + start
        begin = base + var(number) * block

        def span(skew: Affine) -> tuple[Affine, Affine]:
            shifted = begin - skew
            return (maximum(base + skew, shifted) if self.total_skew else shifted), shifted + block

        if width == block:
            begin = base
            return self.thread_loop(tile, 0, tile_count, steps(span))
        inner = For(number, const(0), const(width // block), 1, steps(span))
        return self.thread_loop(tile, 0, tile_count, (inner,))

    def gaps(self, steps: StepsBuilder, start: int, tile_count: int) -> For:
        """Return the loop over the gaps between tiles: what these left, when both are done."""
        gap = self.work.fresh.symbol("gap")
        between = var(gap) * self.sizes.width + start

        def span(skew: Affine) -> tuple[Affine, Affine]:
            return between - skew, between + skew

        return self.thread_loop(gap, 1, tile_count, steps(span))

    def time_steps(
        self, first_period: Affine, many: Affine, span: Callable[[Affine], tuple[Affine, Affine]]
    ) -> tuple[For]:  # fmt: skip
        """Return the loop over the time steps of a tile; `span` gives the rows of a sweep by its
        skew."""
        nest, fresh, loop = self.nest, self.work.fresh, self.nest.loop
        at = fresh.symbol(loop.symbol.name)
        number, stages = len(nest.stages), len(nest.stages) * nest.period
        body: list[Stmt] = []
        for sweep in range(stages):
            skew = (var(at) * stages + sweep) * nest.reach
            time = loop.lo + (first_period + var(at)) * nest.period + sweep // number
            stage = nest.stage(fresh, sweep, time)
            first, end = span(skew)
            first, end = maximum(stage.lo, first), minimum(stage.hi, end)
            body += nest.stages[sweep % number].comments
            body.append(self.guard(replace(stage, lo=first, hi=end), time, sweep // number))
        return (For(at, const(0), many, 1, tuple(body), span=loop.span),)

    def guard(self, sweep: For, time: Affine, step: int) -> Stmt:
        """Return a sweep, under a test where its time step may be past the last one."""
        count = (self.end - self.nest.loop.lo).constant
        if not step or (count is not None and not count % self.nest.period):
            return sweep
        test = Apply(OPS["lt"], (Position(time), Position(self.end)), dtypes.bool_)
        return If(test, (sweep,), span=sweep.span)

    def thread_loop(self, symbol: Symbol, first: int, end: int, body: Body) -> For:
        """Return a loop over threads, parallel where its temporaries are private."""
        loop = For(symbol, const(first), const(end), 1, body, span=self.nest.loop.span)
        used = {n.id for s in statements(body) for n in (*direct_reads(s), *direct_writes(s))}
        temporaries = frozenset(node.id for node in self.work.fresh.nodes if node.id in used)
        is_several = self.work.target.threads > 1 and end - first > 1
        kind: LoopKind = (
            "parallel"
            if is_several and find_privatizable(loop, temporaries) == temporaries
            else "serial"
        )
        return replace(loop, kind=kind)
