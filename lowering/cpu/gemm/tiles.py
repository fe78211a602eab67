"""Register tiling of matrix products, with packed panels in the caches.

Changes: a nest over rows and columns that accumulates (`find_contraction`) becomes a nest over
tiles of R rows and C columns. The operands of a block of rows, and of a block of columns, are
packed into panels, in which those of a tile are adjacent:

    rows[(i - i0) K + k R + r] = a(i + r, k)          columns[(j - j0) K + k C + c] = b(k, j + c)
    tile[r, c] = tile[r, c] + rows[...] * columns[...]            for all r, c in registers, each k

Partial panels are padded with zeros; the results of padding are not stored. Where blocks have many
rows, the columns of some tiles are packed just before their use. Where all columns stay in a cache
and rows are read in place, all of them meet one tile's rows, then the next. Rows of which few tiles
use the consecutive steps are read in place: their last tile is shifted up, so that it is full. So
are adjacent columns that few tiles of rows use, whose last tile is shifted to the left.
Where not all elements exist, as in a triangle, tiles and blocks without any are skipped, and of
those that have some only these are stored.

Precondition: iterations that may run in any order. Postcondition: bit-identical. The terms of an
element are added in their order, and start from what they started from; everything else in the nest
is done as before, once.

>>> from plusequals.lowering.target import Target
>>> show(lambda program: tile_products(program, Target(schedule=True)),
...      "c[i, j] = sum(a[i, k] * b[k, j])", c="f32[6, 16]", a="f32[6, 99]", b="f32[99, 16]")
for row in 0..6 unrolled:
    for column in 0..16 vector:
        tile[row, column] = 0.0
for k in 0..99:
    for row in 0..6 unrolled:
        for column in 0..16 vector:
            tile[row, column] += a[row, k] * b[k, column]
for row in 0..6 unrolled:
    for column in 0..16 vector:
        tile_out[16*row + column] = tile[row, column]
for i in 0..6:
    for j in 0..16 vector:
        c_sum = tile_out[16*i + j]
        c[i, j] = c_sum
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

from ....base.dataclass import dataclass
from ...analysis.contraction import Contraction, Operand, Side, find_contraction
from ...analysis.subscripts import is_in_range, ranges
from ...ir import dtypes
from ...ir.assignments import Access
from ...ir.decision import Decided, Decision, Reason
from ...ir.expressions import Apply, Const, Expr, Position, Read
from ...ir.fresh import Fresh
from ...ir.indexing import Affine, const, maximum, minimum, var
from ...ir.loops import For, If, LoopKind, Program, Stmt, Store
from ...ir.node import Node, Purpose
from ...ir.ops import OPS
from ...ir.rewrite import substitute, substitute_expr
from ...target import Target
from ...transform.outermost import Annotations, OutermostRewriter
from .axes import Axis, Point, trip_count_of
from .blocking import choose_sizes as sizes
from .packing import PanelRange, Panels, Sizes, wrap_loops
from .partial_tiles import all_nonnegative, tile_bounds

Body = tuple[Stmt, ...]


class TileReason(Reason):
    """Why a nest is tiled."""

    REUSED = "each row meets each column, so what is loaded is used many times"


def tile_products(program: Program, target: Target) -> Decided:
    """Return the program with its matrix products in tiles, and the decisions."""
    return _TilingPass.on(program, target)


class _TilingPass(OutermostRewriter):
    """The tiling of the matrix products of one program."""

    __slots__ = ()

    def nest(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        """Return a nest in tiles; None where it is no product or stays as it is."""
        node_count = len(self.fresh.nodes)
        product = find_contraction(loop, self.fresh, self.target.reorders)
        chosen = None if product is None else sizes(product, self.target)
        if product is None or chosen is None or not self.is_legal(product, outer):
            del self.fresh.nodes[node_count:]
            return None
        detail = f"{chosen.row.lanes} rows by {chosen.column.lanes} columns"
        span, name = product.nest.update.span, product.rows[-1].symbol.name
        self.decisions.append(
            Decision("tiles", TileReason.REUSED, None, detail, span, variable=name)
        )
        tiler = _Tiler.of(self.fresh, product, chosen, self.annotations)
        self.annotations.extend((tiler.out.id, level.symbol) for level in (*outer, *product.others))
        return tiler.nest()

    def is_legal(self, product: Contraction, outer: tuple[For, ...]) -> bool:
        """Whether the iterations of all loops that are interchanged may run in any order."""
        if not self.is_free(product.nest.outer_loops, outer):
            return False
        domain = ranges((*outer, *product.nest.outer_loops))
        element = product.nest.element
        if element is not None and not is_in_range(element.node, element.index, domain):
            return False
        return not product.tests or product.is_read(ranges(outer))


@dataclass(frozen=True, slots=True)
class _Tiler:
    """The nest of one contraction."""

    fresh: Fresh
    product: Contraction
    sizes: Sizes
    panels: Panels
    tile: Node
    out: Node
    """The elements of tiles outside of the registers: of one, or of a block between its panels."""
    annotations: Annotations

    @classmethod
    def of(
        cls, fresh: Fresh, product: Contraction, sizes: Sizes, annotations: Annotations
    ) -> _Tiler:
        """Return the tiler of a contraction, with the arrays that it needs."""
        panels = Panels.of(fresh, product, sizes)
        shape, dtype = (sizes.row.lanes, sizes.column.lanes), product.nest.acc.dtype
        tile = fresh.array("tile", shape, dtype, "tile")
        is_whole = panels.holds("row")
        count = prod(shape) if is_whole else sizes.row.block_lanes * sizes.column.block_lanes
        purpose: Purpose = "tile" if is_whole else "kept"
        out = fresh.array("tile_out", (count,), dtype, purpose)
        return cls(fresh, product, sizes, panels, tile, out, annotations)

    def nest(self) -> Body:
        """Return the loops over blocks, in the loops that are neither row nor column."""
        row, column, fresh = self.sizes.row, self.sizes.column, self.fresh

        def columns(at: Point) -> Body:
            inner = row.blocks(fresh, lambda first: self.guard(first, at, self.block(first, at)))
            return (*self.columns(at), *inner)

        body = column.blocks(fresh, columns)
        for loop in reversed(self.product.others):
            body = (replace(loop, body=body),)
        return body

    def columns(self, column: Point) -> Body:
        """Return the loops that fill the panels of a block of columns, where these hold all
        terms."""
        k = self.product.nest.depth[0]
        if self.sizes.group or not self.panels.holds("column"):
            return ()
        body = self.panels.fill_panels("column", column, k.lo, k.hi)
        for row in self.product.rows:
            if trip_count_of(row) is None:
                has_rows = Apply(OPS["lt"], (Position(row.lo), Position(row.hi)), dtypes.bool_)
                body = (If(has_rows, body),)
        return body

    def block(self, row: Point, column: Point) -> Body:
        """Return the tiles of a block of rows and columns."""
        k, span = self.product.nest.depth[0], self.product.nest.update.span
        if self.panels.holds("row"):
            fill = self.panels.fill_panels("row", row, k.lo, k.hi)

            def whole_tile(at: _TilePosition) -> Body:
                accumulated = self.accumulate(at, k.lo, k.hi)
                return (*self.initialize(at), *accumulated, *self.store(at), *self.finish(at))

            return (
                *fill,
                *self.tile_loop_nest(row, column, PanelRange(row, k.lo, k.hi), whole_tile),
            )
        self.annotations.extend(
            (self.out.id, symbol) for at in (*row, *column) for symbol in at.symbols()
        )
        first = self.fresh.symbol(k.symbol.name)
        last = minimum(var(first) + self.sizes.depth, k.hi)
        is_first = Apply(OPS["eq"], (Position(var(first)), Position(k.lo)), dtypes.bool_)
        is_last = Apply(OPS["ge"], (Position(last), Position(k.hi)), dtypes.bool_)

        def part(at: _TilePosition) -> Body:
            started = If(is_first, self.initialize(at), self.load(at), span)
            finished = If(is_last, self.finish(at), span=span)
            return (started, *self.accumulate(at, var(first), last), *self.store(at), finished)

        columns = self.panels.fill_panels("column", column, var(first), last)
        body = (
            *(() if self.sizes.group or self.panels.holds("column") else columns),
            *self.panels.fill_panels("row", row, var(first), last),
            *self.tile_loop_nest(row, column, PanelRange(row, var(first), last), part),
        )
        end = k.hi if trip_count_of(k) else maximum(k.hi, k.lo + 1)  # no terms: it is only started
        return (For(first, k.lo, end, self.sizes.depth, body, span=k.span),)

    def tile_loop_nest(
        self, row: Point, column: Point, of: PanelRange, build: Callable[[_TilePosition], Body]
    ) -> Body:
        """Return the loops over the tiles of a block, with those of a column, or a row, in turn."""
        rows, columns, packed = self.sizes.row, self.sizes.column, self.sizes.axis("column")

        def tile(group: Point, first: Point, at: Point) -> Body:
            body = build(_TilePosition(row, column, group, first, at))
            return self.guard(first, at, body, of_block=False)

        def of_columns(group: Point) -> Body:
            return packed.tiles(self.fresh, group, lambda at: rows.tiles(
                self.fresh, row, lambda first: tile(group, first, at)
            ))  # fmt: skip

        def of_row(first: Point) -> Body:
            return packed.tiles(self.fresh, column, lambda at: tile(column, first, at))

        if packed is columns:
            first_rows = self.sizes.rows_first
            return rows.tiles(self.fresh, row, of_row) if first_rows else of_columns(column)

        def pack(group: Point) -> Body:
            return (
                *self.panels.fill_panels("column", group, of.first, of.last),
                *of_columns(group),
            )

        return columns.parts(self.fresh, column, packed.block, pack)

    def guard(self, row: Point, column: Point, body: Body, of_block: bool = True) -> Body:
        """Return the statements of a tile or a block, under a test that it may have elements."""
        tests = self.bound_tests(row, column, 1, of_block)
        return (
            (If(all_nonnegative(tests), body, span=self.product.nest.update.span),)
            if tests
            else body
        )

    def bound_tests(
        self, row: Point, column: Point, sign: int, of_block: bool = False
    ) -> list[Affine]:
        """Return the maxima (sign 1) or minima of the tests over a tile or a block."""
        both = (self.sizes.row, row), (self.sizes.column, column)
        return tile_bounds(self.product.tests, both, sign, of_block)

    # ------------------------------------------------------------------------------ one tile

    def tile_loops(self, build: Callable[[Affine, Affine], Stmt]) -> Stmt:
        """Return the loops over all elements of a tile."""
        row, column = self.fresh.symbol("row"), self.fresh.symbol("column")
        span = self.product.nest.update.span
        lanes = const(self.sizes.column.lanes)
        inner = For(column, const(0), lanes, 1, (build(var(row), var(column)),), "vector", span)
        return For(row, const(0), const(self.sizes.row.lanes), 1, (inner,), "unrolled", span)

    def memory_index(self, at: _TilePosition, row: Affine, column: Affine) -> tuple[Affine]:
        """Return the subscript of an element of a tile in memory."""
        size = self.sizes
        inside = row * size.column.lanes + column
        if self.panels.holds("row"):
            return (inside,)
        block = size.column.before(at.column, at.columns) * size.row.block_lanes
        return (block + size.row.before(at.row, at.rows) * size.column.lanes + inside,)

    def initialize(self, at: _TilePosition) -> Body:
        """Return the initialization of the elements of a tile."""
        nest = self.product.nest
        match nest.start:
            case (Store(_, Const() as value),):
                return (self.tile_loops(lambda r, c: Store(Access(self.tile, (r, c)), value)),)

        def start_element(row: Affine, column: Affine) -> Body:
            access = Access(self.out, self.memory_index(at, row, column))
            return (*nest.start, Store(access, Read(nest.acc, ()), nest.update.span))

        return (*self.elementwise(at, start_element), *self.load(at))

    def load(self, at: _TilePosition) -> Body:
        """Return the loads of a tile into registers."""

        def load(row: Affine, column: Affine) -> Stmt:
            index = self.memory_index(at, row, column)
            return Store(Access(self.tile, (row, column)), Read(self.out, index))

        return (self.tile_loops(load),)

    def accumulate(self, at: _TilePosition, first: Affine, last: Affine) -> Body:
        """Return the loop over the terms of a tile, for a range of the reduction."""
        update, size, panels = self.product.nest.update, self.sizes, self.panels
        before = (first - self.product.nest.depth[0].lo) * size.inner
        panel_start = before if panels.holds("column") else const(0)
        columns = size.axis("column").before(at.column, at.group)
        if size.in_place:
            values, step, loops = panels.reduction_loops(None, PanelRange(at.rows, first, last))
        else:
            name = self.fresh.symbol("step")
            steps = (last - first) * size.inner
            values, step, loops = {}, var(name), [(name, const(0), steps, update.span)]

        def add(row: Affine, column: Affine) -> Stmt:
            def of_row(part: Operand) -> Expr:
                if "row" not in size.in_place:
                    return panels.read(part, size.row.before(at.row, at.rows), step, row)
                lane = size.row.placed(size.row.inside(at.row), size.row.digits(row))
                return substitute_expr(part.value, {**lane, **values})

            def of_column(part: Operand) -> Expr:
                if "column" not in size.in_place:
                    return panels.read(part, columns, step + panel_start, column)
                lane = size.column.placed(size.column.inside(at.column), size.column.digits(column))
                return substitute_expr(part.value, {**lane, **values})

            value = panels.build_term({"row": of_row, "column": of_column})
            return replace(update, access=Access(self.tile, (row, column)), value=value)

        return wrap_loops(loops, (self.tile_loops(add),))

    def store(self, at: _TilePosition) -> Body:
        """Return the stores of the elements of a tile to memory."""

        def store(row: Affine, column: Affine) -> Stmt:
            index = self.memory_index(at, row, column)
            return Store(Access(self.out, index), Read(self.tile, (row, column)))

        return (self.tile_loops(store),)

    def finish(self, at: _TilePosition) -> Body:
        """Return the loops that finish the elements of a tile, as the nest does."""
        nest = self.product.nest

        def rest(row: Affine, column: Affine) -> Body:
            value = Read(self.out, self.memory_index(at, row, column))
            store = Store(Access(nest.acc, ()), value, nest.update.span)
            return (*nest.again, store, *nest.rest)

        return self.elementwise(at, rest)

    def elementwise(self, at: _TilePosition, build: Callable[[Affine, Affine], Body]) -> Body:
        """Return the loops over those elements of a tile that exist, with the names they need."""
        tests = self.bound_tests(at.row, at.column, -1)
        if not tests:
            return self.box_elements(at, build)

        def guarded(row: Affine, column: Affine) -> Body:
            return (If(all_nonnegative(self.product.tests), build(row, column)),)

        inside, span = self.box_elements(at, build), self.product.nest.update.span
        return (If(all_nonnegative(tests), inside, self.box_elements(at, guarded), span),)

    def box_elements(self, at: _TilePosition, build: Callable[[Affine, Affine], Body]) -> Body:
        """Return the loops over the elements of a tile that are in its box."""
        columns, axis = self.sizes.column.width(at.column), self.sizes.column
        if columns[-1].constant is not None:
            return self.elements(at, columns, build)
        lanes = tuple(map(const, axis.box))
        is_full = Apply(OPS["eq"], (Position(columns[-1]), Position(lanes[-1])), dtypes.bool_)
        both = self.elements(at, lanes, build), self.elements(at, columns, build)
        return (If(is_full, *both, self.product.nest.update.span),)

    def elements(
        self, at: _TilePosition, columns: Point, build: Callable[[Affine, Affine], Body]
    ) -> Body:
        """Return the loops over the elements of a tile of so many columns."""
        size, names = self.sizes, self.product.nest.named
        inside = frozenset(loop.symbol for loop in self.product.columns)
        kind: LoopKind = "vector" if columns[-1].constant is not None else "serial"

        def shifted(axis: Axis, side: Side, start: Point, lanes: Point) -> Affine:
            origin = axis.inside(start) if side in size.in_place else start
            gaps = zip(lanes, start, origin, strict=True)
            return axis.lane(tuple(lane + (at - base) for lane, at, base in gaps))

        def element(rows: Point, lanes: Point) -> tuple[Body, Body]:
            body = build(
                shifted(size.row, "row", at.row, rows),
                shifted(size.column, "column", at.column, lanes),
            )
            outer, inner = names(body, inside)
            row_values = size.row.placed(at.row, rows)
            whole = substitute((*inner, *body), row_values)
            return substitute(outer, row_values), substitute(
                whole, size.column.placed(at.column, lanes)
            )

        def row(rows: Point) -> Body:
            outer: list[Stmt] = []

            def inner(lanes: Point) -> Body:
                outer[:], body = element(rows, lanes)
                return body

            body = size.column.elements(self.fresh, "", columns, inner, kind)
            return (*outer, *body)

        def column(lanes: Point) -> Body:
            def inner(rows: Point) -> Body:
                outer, body = element(rows, lanes)
                return (*outer, *body)

            return size.row.elements(self.fresh, "", size.row.width(at.row), inner)

        if self.product.is_transposed:
            return size.column.elements(self.fresh, "", columns, column)
        return size.row.elements(self.fresh, "", size.row.width(at.row), row)


@dataclass(frozen=True, slots=True)
class _TilePosition:
    """The position of a tile: where its block, the packed columns, and the tile itself start."""

    rows: Point
    columns: Point
    group: Point
    row: Point
    column: Point
