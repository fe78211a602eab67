"""Packing: copies of the operands of some rows or columns, in the order of a product's tiles.

A panel has room for the lanes of one tile (so many rows, or columns) and `sizes.panel` terms (Goto
and van de Geijn, Anatomy of high-performance matrix multiplication, 2008):

    panel[(at - block) * terms + step * lanes + lane] = part(at + lane, step)

for the lanes of `at`, the first row or column of a tile, and `block`, the first one whose panels
are there. Lanes after the last row or column are zeros. The operands are read once for each row
(or column) and step, in the order of memory.

>>> from plusequals.lowering.ir.fresh import fresh_for
>>> from plusequals.lowering.ir.printer import print_statement
>>> from plusequals.lowering.analysis.contraction import find_contraction
>>> program = lowered("c[i, j] = sum(-a[i, k] * b[k, j])", c="f32[6, 9]", a="f32[6, 9]",
...                   b="f32[9, 9]")
>>> (nest,) = [stmt for stmt in program.kernels[0].body if isinstance(stmt, For)]
>>> fresh = fresh_for(program)
>>> found = find_contraction(nest, fresh)
>>> axes = Axis(found.rows, (4,), (8,), 4), Axis(found.columns, (8,), (16,), 8)
>>> panels = Panels.of(fresh, found, Sizes(*axes, 9, 9, 1))
>>> for stmt in panels.fill_panels("row", (const(0),), const(0), const(9)):
...     print(print_statement(stmt))
for k in 0..8 step 8:
    for row in 0..4:
        for k_2 in k..k + 8:
            rows[4*k_2 + row] = -a[row, k_2]
for k in 8..9:
    for row in 0..4 unrolled:
        rows[4*k + row] = -a[row, k]
for k in 0..8 step 8:
    for row in 0..2:
        for k_2 in k..k + 8:
            rows[4*k_2 + row + 36] = -a[row + 4, k_2]
for k in 8..9:
    for row in 0..2 unrolled:
        rows[4*k + row + 36] = -a[row + 4, k]
for k in 0..9:
    for row in 2..4:
        rows[row + 4*k + 36] = 0.0
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod

from ....base.dataclass import dataclass
from ....base.diagnostic import Span
from ... import thresholds
from ...analysis.contraction import Contraction, Operand, Side
from ...analysis.subscripts import stride
from ...ir import dtypes
from ...ir.assignments import Access
from ...ir.expressions import Apply, Const, Expr, Position, Read, reads, rebuild
from ...ir.fresh import Fresh
from ...ir.indexing import Affine, Symbol, const, floordiv, maximum, minimum, var
from ...ir.loops import For, If, LoopKind, Stmt, Store
from ...ir.node import Node
from ...ir.ops import OPS
from ...ir.rewrite import substitute, substitute_expr
from .axes import Axis, Point, trip_count_of

Body = tuple[Stmt, ...]
Lanes = Callable[[Callable[[Point], Body], LoopKind], Body]
"""Builds the loops over the lanes of a tile."""
Tiles = Callable[[Callable[[Point], Body]], Body]
"""Builds the loops over tiles."""
Loops = Sequence[tuple[Symbol, Affine, Affine, Span]]
"""Index variables, bounds and spans of loops, the innermost first."""
Steps = tuple[dict[Symbol, Affine], Affine, Loops]
"""The values of the reduction loops' variables in a panel, the number of a step there, and the
loops over steps."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of tiles, and of the blocks whose panels are in the caches."""

    row: Axis
    column: Axis
    depth: int
    """How many iterations of the outermost reduction loop a panel of rows has (kc), and a tile adds
    at a time."""
    column_depth: int
    """How many of them a panel of columns has."""
    inner: int
    """How many terms each of these iterations has."""
    group: Axis | None = None
    """The columns that are packed at a time, just before their use; None: those of a block."""
    rows_first: bool = False
    """Whether all columns meet the rows of a tile before the next rows do."""
    shared: bool = False
    """Whether threads share the panels of columns, and the packing of these."""
    in_place: frozenset[Side] = frozenset()
    """The sides that are read in place, without packing."""

    def panel(self, side: Side) -> int:
        """Return how many terms a panel has room for."""
        return (self.depth if side == "row" else self.column_depth) * self.inner

    def axis(self, side: Side) -> Axis:
        """Return the rows, or the columns, in blocks of those that are packed at a time."""
        return self.row if side == "row" else self.group or self.column


@dataclass(frozen=True, slots=True)
class PanelRange:
    """The block whose panels are filled, and the range of the outermost reduction loop."""

    block: Point
    first: Affine
    last: Affine


@dataclass(frozen=True, slots=True)
class Panels:
    """The panels of a contraction, and the loops that fill them."""

    fresh: Fresh
    product: Contraction
    sizes: Sizes
    nodes: Mapping[int, Node]
    """By the id of what stands for a part in the term; those that are read in place have none."""

    @classmethod
    def of(cls, fresh: Fresh, product: Contraction, sizes: Sizes) -> Panels:
        """Return the panels of a contraction, as new arrays."""
        nodes = {
            part.node.id: fresh.array(
                part.node.label,
                (sizes.axis(part.side).block_lanes * sizes.panel(part.side),),
                part.node.dtype,
                "panel",
            )
            for part in product.parts
            if part.side not in sizes.in_place
        }
        return cls(fresh, product, sizes, nodes)

    def holds(self, side: Side) -> bool:
        """Whether a panel has room for all terms."""
        depth = trip_count_of(self.product.nest.depth[0])
        return depth is not None and depth * self.sizes.inner <= self.sizes.panel(side)

    def element(self, part: Operand, before: Affine, step: Affine, lane: Affine) -> tuple[Affine]:
        """Return the subscript of a lane's part of a step, in a panel that so many lanes are
        before."""
        lanes = self.sizes.axis(part.side).lanes
        return (before * self.sizes.panel(part.side) + step * lanes + lane,)

    def fill_panels(self, side: Side, block: Point, first: Affine, last: Affine) -> Body:
        """Return the loops that fill the panels of a block for a range of the reduction."""
        return tuple(
            stmt
            for part in self.product.parts if part.side == side and part.node.id in self.nodes
            for stmt in self.fill_part(part, PanelRange(block, first, last))
        )  # fmt: skip

    def fill_part(self, part: Operand, extent: PanelRange) -> Body:
        """Return the loops over full tiles, and those that fill the last one where it is
        partial."""
        axis, block = self.sizes.axis(part.side), extent.block
        end, cut = axis.end(block), axis.partial_loop
        loop, size = axis.loops[cut], axis.box[cut]
        full = tuple(map(const, axis.box))
        if axis.is_even:
            return self.fill_full_tiles(part, extent, partial(axis.tiles, self.fresh, block))
        trip_count = trip_count_of(loop)
        if trip_count is None:
            full_end = block[cut] + floordiv(end[cut] - block[cut], const(size)) * size
            remainder, stop = end[cut] - full_end, full_end
        else:  # only the last block has a tile that is not full
            full_end, remainder = loop.lo + trip_count // size * size, const(trip_count % size)
            stop = (
                full_end
                if axis.block[cut] >= trip_count
                else minimum(block[cut] + axis.block[cut], full_end)
            )
        counts = (*full[:cut], remainder, *full[cut + 1 :])

        def partial_tile(at: Point) -> Body:
            return self.fill_tile(part, extent, at, counts)

        def loop_tiles(stop: Affine, first: Affine, build: Callable[[Point], Body]) -> Body:
            lows, highs = (
                (*some[:cut], bound, *some[cut + 1 :])
                for some, bound in ((block, first), (end, stop))
            )
            return axis.nest_loops(self.fresh, (lows, highs, axis.box), range(len(block)), build)

        out = self.fill_full_tiles(part, extent, partial(loop_tiles, stop, block[cut]))
        body = loop_tiles(full_end + size, full_end, partial_tile)
        last = block[cut] + axis.block[cut] if trip_count is not None else end[cut]
        if trip_count is not None and axis.block[cut] >= trip_count:
            return (*out, *body)
        test = Apply(OPS["lt"], (Position(full_end), Position(last)), dtypes.bool_)
        return (*out, If(test, body))

    def fill_full_tiles(self, part: Operand, extent: PanelRange, tiles: Tiles) -> Body:
        """Return the loops that fill full tiles: where lanes are adjacent in memory, some steps of
        all tiles at a time, which are long pieces of few pages; not where threads share the
        tiles."""
        axis = self.sizes.axis(part.side)
        counts, steps = tuple(map(const, axis.box)), self.reduction_loops(part, extent)
        outer: tuple[For, ...] = ()
        is_private = part.side == "row" or not self.sizes.shared
        if (
            is_private
            and has_unit_lanes(part, self.product)
            and axis.block_lanes > axis.lanes == axis.count
        ):
            inner, outer = _split_steps(self.fresh, steps[2])
            steps = (*steps[:2], inner)
        body = tiles(lambda at: self.fill_tile(part, extent, at, counts, steps))
        for loop in outer:
            body = (replace(loop, body=body),)
        return body

    def fill_tile(
        self,
        part: Operand,
        extent: PanelRange,
        at: Point,
        counts: Point,
        steps: Steps | None = None,
    ) -> Body:
        """Return the loops that fill the lanes of a tile, with zeros after so many iterations of
        its box."""
        axis = self.sizes.axis(part.side)
        body = self.copy_lanes(
            part, extent, at, counts, steps or self.reduction_loops(part, extent)
        )
        size = prod(axis.box[axis.partial_loop :])
        filled = counts[axis.partial_loop] * (size // axis.box[axis.partial_loop])
        parts = axis.count // size
        if filled.constant != size and parts > 1:  # lanes are missing in each part of the tile
            symbol = self.fresh.symbol(part.side)
            missing = self.clear_lanes(part, extent, at, (filled, const(size)), var(symbol) * size)
            body = (*body, For(symbol, const(0), const(parts), 1, missing))
        padding_start = const(axis.count) if parts > 1 else filled
        if padding_start.constant == axis.lanes:
            return body
        return (
            *body,
            *self.clear_lanes(part, extent, at, (padding_start, const(axis.lanes)), const(0)),
        )

    def copy_lanes(
        self, part: Operand, extent: PanelRange, at: Point, counts: Point, steps: Steps
    ) -> Body:
        """Return the loops that copy so many iterations of the box of a tile."""
        axis = self.sizes.axis(part.side)
        inside, step, loops = steps

        def store(lanes: Point) -> Store:
            values = axis.placed(at, lanes)
            node, lane = self.nodes[part.node.id], axis.lane(lanes)
            target = Access(node, self.element(part, axis.before(at, extent.block), step, lane))
            value = substitute_expr(part.value, {**values, **inside})
            return Store(target, value, self.product.nest.update.span)

        def lanes(build: Callable[[Point], Body], last: LoopKind = "serial") -> Body:
            return axis.elements(self.fresh, part.side, counts, build, last)

        if has_unit_lanes(part, self.product):
            kind: LoopKind = "serial" if counts[-1].constant is None else "vector"
            return wrap_loops(loops, lanes(lambda at: (store(at),), kind))
        if any(count.constant is None for count in counts):
            return lanes(lambda at: wrap_loops(loops, (store(at),)))
        return self.copy_transposed(loops, lanes, store)

    def copy_transposed(self, loops: Loops, lanes: Lanes, store: Callable[[Point], Store]) -> Body:
        """Return the loops that copy lanes whose steps are adjacent in memory: some steps of each
        lane at a time, a cache line."""
        (name, lo, hi, span), *outer = loops
        hi = hi if (hi - lo).constant is not None else maximum(hi, lo)
        first = self.fresh.symbol(name.name)
        size = thresholds.PACKED_STEPS
        chunks_end = lo + floordiv(hi - lo, const(size)) * size
        body: Body = ()

        def chunk(at: Point) -> Body:
            return (For(name, var(first), var(first) + size, 1, (store(at),), span=span),)

        if (chunks_end - lo).constant != 0:
            body = (For(first, lo, chunks_end, size, lanes(chunk, "serial"), span=span),)
        if (hi - chunks_end).constant != 0:
            step = self.fresh.symbol(name.name)

            def single(at: Point) -> Body:
                return substitute((store(at),), {name: var(step)})

            body = (*body, For(step, chunks_end, hi, 1, lanes(single, "unrolled"), span=span))
        return wrap_loops(outer, body)

    def clear_lanes(
        self,
        part: Operand,
        extent: PanelRange,
        at: Point,
        lanes: tuple[Affine, Affine],
        start: Affine,
    ) -> Body:
        """Return the loops that fill a range of the lanes of a tile, counted from `start`, with
        zeros."""
        axis, lane = self.sizes.axis(part.side), self.fresh.symbol(part.side)
        _, step, loops = self.reduction_loops(part, extent)
        node, before = self.nodes[part.node.id], axis.before(at, extent.block)
        target = Access(node, self.element(part, before, step, start + var(lane)))
        store = Store(target, Const(0.0, node.dtype), self.product.nest.update.span)
        loop = For(lane, *lanes, 1, (store,), "serial", axis.loops[-1].span)
        return wrap_loops(loops, (loop,))

    def reduction_loops(self, part: Operand | None, extent: PanelRange) -> Steps:
        """Return new index variables for the reduction loops, the number of the step, and the
        loops: innermost the one with unit stride in the part; all in their order where there is no
        part."""
        depth, outermost = self.product.nest.depth, self.product.nest.depth[0]
        names = [self.fresh.symbol(loop.symbol.name) for loop in depth]
        step, size = const(0), 1
        loops: list[tuple[Symbol, Affine, Affine, Span]] = []
        lasts = [] if part is None else _last_subscripts(part)
        contiguous = {symbol for at in lasts for symbol in at.symbols()}
        for loop, name in reversed(list(zip(depth, names, strict=True))):
            lo, hi = (extent.first, extent.last) if loop is outermost else (loop.lo, loop.hi)
            step += (var(name) - lo) * size
            size *= trip_count_of(loop) or 1
            loops.insert(0 if loop.symbol in contiguous else len(loops), (name, lo, hi, loop.span))
        symbols = {loop.symbol: var(name) for loop, name in zip(depth, names, strict=True)}
        return symbols, step, loops

    def build_term(self, build: Mapping[Side, Callable[[Operand], Expr]]) -> Expr:
        """Return the term, with each of its parts replaced by the read that `build` builds."""
        parts = {part.node.id: part for part in self.product.parts}

        def expr(value: Expr) -> Expr:
            if isinstance(value, Read) and value.node.id in parts:
                part = parts[value.node.id]
                return build[part.side](part)
            return rebuild(value, expr, lambda index: index)

        return expr(self.product.term)

    def read(self, part: Operand, before: Affine, step: Affine, lane: Affine) -> Expr:
        """Return the read of a part of a term from its panel, of which so many lanes are before."""
        return Read(self.nodes[part.node.id], self.element(part, before, step, lane))


def has_unit_lanes(part: Operand, product: Contraction) -> bool:
    """Whether consecutive lanes, rather than steps, are adjacent in memory."""
    symbols = {loop.symbol for loop in product.loops(part.side)}
    return all(symbols & at.symbols() for at in _last_subscripts(part))


def can_read_columns_in_place(product: Contraction, row: Axis, column: Axis) -> bool:
    """Whether columns are read in place: few tiles of rows use them, so that packing does not pay,
    and those of a tile are adjacent."""
    rows = [trip_count_of(loop) for loop in row.loops]
    counts = [trip_count_of(loop) for loop in column.loops]
    count, lanes = counts[-1], column.box[-1]
    if None in rows or None in counts or count is None or product.tests:
        return False
    tiles = prod(-(-(n or 1) // size) for n, size in zip(rows, row.box, strict=True))
    is_plain = column.lanes == column.count == lanes <= count
    return (
        is_plain
        and tiles <= thresholds.MAX_IN_PLACE_ROW_TILES
        and all(_is_adjacent(part, product) for part in product.parts if part.side == "column")
    )


def _is_adjacent(part: Operand, product: Contraction) -> bool:
    """Whether a part is an element whose consecutive columns are adjacent in memory."""
    value, lane = part.value, product.columns[-1].symbol
    return isinstance(value, Read) and stride(value.node, value.index, lane) == 1


def can_read_in_place(product: Contraction, axis: Axis, column: Axis) -> bool:
    """Whether rows are read in place: few tiles use them, so that packing does not pay, the steps
    of a row have unit stride, and rows do not conflict in the L1 cache."""
    columns = [trip_count_of(loop) for loop in column.loops]
    if None in columns:
        return False
    tiles = prod(-(-(n or 1) // size) for n, size in zip(columns, column.box, strict=True))
    count = trip_count_of(axis.loops[axis.partial_loop])
    if tiles > thresholds.MAX_IN_PLACE_TILES or (
        not axis.is_even and (count is None or count < axis.box[axis.partial_loop])
    ):
        return False
    return all(_has_unit_steps(part, axis, product) for part in product.parts if part.side == "row")


def _has_unit_steps(part: Operand, axis: Axis, product: Contraction) -> bool:
    """Whether a part is an element with unit stride along steps, whose lanes do not conflict in the
    cache."""
    value, counting = part.value, {loop.symbol for loop in product.nest.depth}
    if not isinstance(value, Read):
        return False
    last = value.index[-1] if value.index else None
    is_contiguous = isinstance(last, Affine) and bool(last.symbols() & counting)
    lanes = [loop for loop, size in zip(axis.loops, axis.box, strict=True) if size > 1]
    strides = [stride(value.node, value.index, loop.symbol) for loop in lanes]
    return is_contiguous and all(
        gap is not None
        and (gap == 0 or gap * value.dtype.itemsize % thresholds.CACHE_SET_PERIOD_BYTES)
        for gap in strides
    )


def _split_steps(fresh: Fresh, loops: Loops) -> tuple[Loops, tuple[For, ...]]:
    """Return loops over about `PACKED_STEPS` steps, and those around these; the innermost first."""
    count = 1
    for at, (name, lo, hi, span) in enumerate(loops):
        trip_count, inner = (hi - lo).constant, loops[:at]
        if trip_count is None or trip_count * count > thresholds.PACKED_STEPS:
            outer = [For(*loop[:3], 1, (), span=loop[3]) for loop in loops[at:]]
            size = thresholds.PACKED_STEPS // count
            if size > 1:
                first = fresh.symbol(name.name)
                last = var(first) + size
                last = (
                    last if trip_count is not None and trip_count % size == 0 else minimum(last, hi)
                )
                inner = (*inner, (name, var(first), last, span))
                outer[0] = replace(outer[0], symbol=first, step=size)
            return inner, tuple(outer)
        count *= trip_count
    return loops, ()


def wrap_loops(loops: Loops, body: Body) -> Body:
    """Return a body in loops, of which the first one is the innermost."""
    for name, lo, hi, span in loops:
        body = (For(name, lo, hi, 1, body, span=span),)
    return body


def _last_subscripts(part: Operand) -> list[Affine]:
    """Return the last subscripts of a part's reads."""
    subscripts = (read.index[-1] for read in reads(part.value) if read.index)
    return [at if isinstance(at, Affine) else const(0) for at in subscripts]
