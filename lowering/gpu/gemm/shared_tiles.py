"""Tiled contractions in shared memory, with register blocking in each thread.

    for i, j: total = 0; for k: total += a[i, k] * b[k, j]; rest
    becomes
    for im, jn:                                           blocks, each a tile of 64 by 64
        acc[y, x, r, s] = 0                               threads, each 4 by 4 of them
        a_ahead, b_ahead = a[...], b[...]                 or 128 and 8 where it is large enough
        for kt in 0..K/16:
            a_tile[k, i] = a_ahead; b_tile[k, j] = b_ahead   threads, and a barrier
            a_ahead, b_ahead = a[...], b[...]                threads, for the next iteration
            acc[y, x, r, s] += a_tile[k, r] * b_tile[k, s]
        rest, where i and j are in range                  threads

Any number of loops may stand for each of `i`, `j` and `k`, as in a convolution, and for the batch
loops on which both factors depend. Every element is summed in the order of `k`, so with `exact`
results are bit-identical to the program's; otherwise products and sums are contracted to FMAs, if
no loop was written for the terms.

Precondition: a band whose points initialize a scalar, from zero or from what they read, sum
products of a factor of each side, and have an epilogue without loops. Products may be accumulated
in a wider type than their own, as those of int32 are.

The elements that a thread reads of a tile at once are contiguous, and rows of tiles are padded to a
multiple of them: a device loads four 32-bit numbers by one instruction, without bank conflicts. A
factor may be an expression: the element that it needs is prefetched, what is invariant in the terms
is kept in shared memory, and the rest is computed when the tile is stored.

>>> program = lowered("c[i, j] = sum[k](a[i, k] * b[k, j])",
...     c="f32[64, 64]", a="f32[64, 64]", b="f32[64, 64]")
>>> program = optimize(program, Target("cuda"))[0]
>>> facts = facts_of(program)
>>> code = map_shared_tiles(find_band(program.kernels[0].body[1], facts), facts, fresh_for(program))
>>> [space for space in code.spaces.values()]
['rows', 'rows', 'rows', 'shared', 'shared']
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import ceil

from ....base.dataclass import dataclass
from ... import thresholds
from ...analysis.accumulators import zero_of
from ...analysis.parallel_band import Band, Facts, contiguity_score, nest_loops
from ...ir import dtypes
from ...ir.assignments import Access
from ...ir.expressions import Apply, Cast, Const, Expr, Position, Read, Select, children, rebuild
from ...ir.fresh import Fresh
from ...ir.indexing import Affine, Symbol, const, floordiv, mod, var
from ...ir.loops import Barrier, For, If, Stmt, Store, Update
from ...ir.node import Node
from ...ir.ops import OPS
from ...ir.rewrite import substitute, substitute_expr
from ...ir.walk import free_symbols, reads, writes
from ..barriers import insert_barriers
from ..thread_points import DeviceCode, Space
from .contraction import Contraction, initial_value, iteration_count, match_contraction
from .tile_side import Side
from .vector_stores import ColumnGroups, build_result_epilogue, can_vectorize_stores


def tile_extents(gemm: Contraction) -> tuple[int, int]:
    """Return the rows and columns of a tile: the larger ones where these occupy a device, too."""
    rows, columns = (iteration_count(group) for group in (gemm.rows, gemm.columns))
    side = thresholds.TILE_SIDE
    if rows is None or columns is None or gemm.total.dtype.bits > 32:
        return side, side
    sides = [2 * side if size > side else side for size in (rows, columns)]
    tile_rows, tile_columns = sides
    others = iteration_count(gemm.both) or 1
    if min(sides) > thresholds.TILE_SIDE:
        is_enough = rows * columns * others >= thresholds.MIN_LARGE_TILE_ELEMENTS
    else:
        tiles = ceil(rows / tile_rows) * ceil(columns / tile_columns) * others
        is_enough = tiles >= thresholds.MIN_OCCUPYING_TILES
    return (tile_rows, tile_columns) if is_enough else (side, side)


def map_shared_tiles(nest: Band, facts: Facts, fresh: Fresh) -> DeviceCode | None:
    """Return the kernel of a contraction, None for other bands."""
    gemm = match_contraction(nest)
    return None if gemm is None else _KernelBuilder(gemm, facts.exact, fresh).build()


def wrap_in_blocks(
    gemm: Contraction, sides: Iterable[tuple[Side, int]], body: tuple[Stmt, ...], fresh: Fresh
) -> tuple[Stmt, ...]:
    """Return the code of a block in block loops over tiles of `sides`, each with its extent, behind
    the comments of the contraction.

    The batch loops are collapsed into one: a grid has three axes.
    """
    blocks = [replace(loop, kind="block", body=()) for loop in gemm.both]
    if len(blocks) > 1:
        batch = Side(gemm.both, fresh, "both")
        blocks = [For(batch.tile, const(0), batch.size, 1, (), "block")]
        body = substitute(body, batch.values(var(batch.tile)))
    for side, extent in sides:
        count = floordiv(side.size + (extent - 1), const(extent))
        blocks.append(For(side.tile, const(0), count, 1, (), "block"))
    return nest_loops(blocks, (*gemm.comments, *body))


def zero_of_node(node: Node) -> Const:
    """Return the zero of a node's type."""
    return Const(zero_of(node.dtype), node.dtype)


@dataclass(frozen=True, slots=True)
class _Stage:
    """How a tile is filled with a factor, which is computed when its loads have completed."""

    tile: Node
    prefetch: Node
    """The elements that each thread has prefetched for the next terms."""
    value: Expr
    loaded: Expr
    """The part of the value that is prefetched."""
    side: Side
    extent: int
    """Rows, or columns, of the tile."""
    counter: Symbol
    """The number of an element among those of a thread."""
    line: Affine
    term: Affine
    invariants: Mapping[Expr, Node]
    """The parts of the value that are invariant in the terms, and their arrays in shared memory."""


class _KernelBuilder:
    """Builds the kernel of a contraction."""

    def __init__(self, gemm: Contraction, exact: bool, fresh: Fresh) -> None:
        self.gemm, self.fresh = gemm, fresh
        dtype, product = gemm.total.dtype, gemm.product
        self.is_fused = gemm.counted and not exact and dtype.kind == "f" and product is dtype
        self.rows = Side(gemm.rows, fresh, "row")
        self.columns = Side(gemm.columns, fresh, "column")
        self.terms = Side(gemm.terms, fresh, "term")
        self.extents = tile_extents(gemm)
        self.blocks = tuple(extent // thresholds.TILE_SIDE_THREADS for extent in self.extents)
        self.y, self.x = fresh.symbol("y"), fresh.symbol("x")
        self.r, self.s = fresh.symbol("r"), fresh.symbol("s")
        shape = (thresholds.TILE_SIDE_THREADS, thresholds.TILE_SIDE_THREADS, *self.blocks)
        self.total = fresh.array(f"{gemm.total.label}_block", shape, dtype)
        self.first, self.second = (
            fresh.array(
                name, (thresholds.TILE_DEPTH, extent + thresholds.THREAD_TILE_SIDE), product
            )
            for name, extent in zip(("first_tile", "second_tile"), self.extents, strict=True)
        )

    def build(self) -> DeviceCode:
        """Return the kernel."""
        depth = floordiv(
            self.terms.size + (thresholds.TILE_DEPTH - 1), const(thresholds.TILE_DEPTH)
        )
        stages = (
            self.build_stage(self.first, self.gemm.first, self.rows, self.extents[0]),
            self.build_stage(self.second, self.gemm.second, self.columns, self.extents[1]),
        )
        next_tile = var(self.terms.tile) + 1
        has_next = Apply(OPS["lt"], (Position(next_tile), Position(depth)), dtypes.bool_)
        inner = (
            *(self.thread_loops(self.store_tile(stage)) for stage in stages),
            self.thread_loops(
                (
                    If(
                        has_next,
                        tuple(s for stage in stages for s in self.prefetch_tile(stage, next_tile)),
                    ),
                )
            ),
            self.multiply(),
        )
        loop = For(self.terms.tile, const(0), depth, 1, inner)
        used = {n.id for n in (*reads(self.gemm.rest), *writes(self.gemm.rest))}
        private = used & self.gemm.private - {self.total.id, self.gemm.total.id}
        rows = (self.total.id, *(stage.prefetch.id for stage in stages))
        prologue = self.thread_loops(
            tuple(
                s
                for stage in stages
                for s in (*self.load_invariants(stage), *self.prefetch_tile(stage, const(0)))
            )
        )
        barrier = (
            (Barrier(),) if any(stage.invariants for stage in stages) else ()
        )  # outside the loop
        stmts = (self.initialize(), prologue, *barrier, loop, self.build_epilogue())
        body = insert_barriers(stmts, frozenset((*rows, *private)), True)
        shared = (node for stage in stages for node in (stage.tile, *stage.invariants.values()))
        spaces: dict[int, Space] = dict.fromkeys(rows, "rows")
        spaces |= dict.fromkeys((node.id for node in shared), "shared")
        sides = zip((self.rows, self.columns), self.extents, strict=True)
        return DeviceCode(
            wrap_in_blocks(self.gemm, sides, body, self.fresh),
            spaces | dict.fromkeys(private, "private"),
        )

    def thread_loops(self, body: tuple[Stmt, ...]) -> Stmt:
        """Return thread loops around a body."""
        inner = For(self.x, const(0), const(thresholds.TILE_SIDE_THREADS), 1, body, "thread")
        return For(self.y, const(0), const(thresholds.TILE_SIDE_THREADS), 1, (inner,), "thread")

    def element_loops(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return unrolled loops over the rows and columns of a thread."""
        rows, columns = self.blocks
        inner = For(self.s, const(0), const(columns), 1, body, "unrolled")
        return (For(self.r, const(0), const(rows), 1, (inner,), "unrolled"),)

    @property
    def accumulator(self) -> Access:
        """A thread's accumulator of a row and a column."""
        return Access(self.total, (var(self.y), var(self.x), var(self.r), var(self.s)))

    def line_of(self, thread: Symbol, counter: Symbol) -> Affine:
        """Return the row or column of a tile that a thread has: groups of contiguous ones."""
        side = thresholds.THREAD_TILE_SIDE
        others = floordiv(var(counter), const(side)) * (side * thresholds.TILE_SIDE_THREADS)
        return var(thread) * side + others + mod(var(counter), const(side))

    def initialize(self) -> Stmt:
        """Return the initialization of all accumulators."""
        value = initial_value(
            self.gemm, self.loop_values, self.range_tests, zero_of_node(self.total)
        )
        return self.thread_loops(self.element_loops((Store(self.accumulator, value),)))

    @property
    def loop_values(self) -> dict[Symbol, Affine]:
        """The loop variables of the rows and columns at an element of a thread."""
        row, column = self.position
        return self.rows.values(row) | self.columns.values(column)

    @property
    def position(self) -> tuple[Affine, Affine]:
        """The row and column of an element of a thread."""
        row = var(self.rows.tile) * self.extents[0] + self.line_of(self.y, self.r)
        return row, var(self.columns.tile) * self.extents[1] + self.line_of(self.x, self.s)

    @property
    def range_tests(self) -> list[Expr]:
        """The tests that these are in range."""
        (row, column), (high, broad) = self.position, self.extents
        return [*self.rows.tests(row, high), *self.columns.tests(column, broad)]

    def build_stage(self, tile: Node, value: Expr, side: Side, extent: int) -> _Stage:
        """Return how a tile is filled: neighbouring threads load contiguous elements."""
        counter = self.fresh.symbol("m")
        offset = var(counter) * thresholds.TILE_SIDE_THREADS
        loaded = self.loaded_part(value)
        flat = (Store(Access(self.gemm.total, ()), loaded),)
        if contiguity_score(flat, self.gemm.terms[-1].symbol) > contiguity_score(
            flat, side.loops[-1].symbol
        ):
            line, term = var(self.y) + offset, var(self.x)
        else:
            line, term = var(self.x) + offset, var(self.y)
        threads = thresholds.TILE_SIDE_THREADS
        shape = (threads, threads, extent // threads)
        prefetch = self.fresh.array(f"{tile.label}_ahead", shape, loaded.dtype)
        invariants = (
            self.find_invariants(value, side, extent) if loaded != _unconverted(value) else {}
        )
        return _Stage(tile, prefetch, value, loaded, side, extent, counter, line, term, invariants)

    def loaded_part(self, value: Expr) -> Expr:
        """Return the part of a factor that is prefetched: a single element, else the computed value
        of several, which would take more registers."""
        parts = {part for part in _loaded_parts(value) if free_symbols(part) & self.term_symbols}
        return parts.pop() if len(parts) == 1 else _unconverted(value)

    @property
    def term_symbols(self) -> set[Symbol]:
        """The variables of the terms."""
        return {loop.symbol for loop in self.gemm.terms}

    def find_invariants(self, value: Expr, side: Side, extent: int) -> dict[Expr, Node]:
        """Return shared-memory arrays for the parts of a factor that are invariant in the terms:
        threads would load them for each term, or keep them in registers."""
        side_symbols = {loop.symbol for loop in side.loops}
        parts = dict.fromkeys(
            part for part in _loaded_parts(value) if free_symbols(part) & side_symbols
        )
        return {
            part: self.fresh.array(f"{side.tile.name}_value", (extent,), part.dtype)
            for part in parts if not free_symbols(part) & self.term_symbols
        }  # fmt: skip

    def load_invariants(self, stage: _Stage) -> tuple[Stmt, ...]:
        """Return a thread's loads of the parts that are invariant in the terms."""
        thread = var(self.y) * thresholds.TILE_SIDE_THREADS + var(self.x)
        line = var(stage.side.tile) * stage.extent + thread
        stores: list[Stmt] = []
        for value, node in stage.invariants.items():
            guarded = substitute_expr(value, stage.side.values(line))
            for test in stage.side.tests(line, stage.extent):
                guarded = Select(test, guarded, zero_of_node(node))
            stores.append(Store(Access(node, (thread,)), guarded))
        test = Apply(OPS["lt"], (Position(thread), Position(const(stage.extent))), dtypes.bool_)
        return (If(test, tuple(stores)),) if stores else ()

    def prefetch_tile(self, stage: _Stage, tile: Affine) -> tuple[Stmt, ...]:
        """Return a thread's loads of a factor for a tile of terms: zeros out of range."""
        return self.copy_loop(
            stage, Store(self.prefetched(stage), self.tile_value(stage, stage.loaded, tile))
        )

    def tile_value(self, stage: _Stage, value: Expr, tile: Affine) -> Expr:
        """Return a value for an element of a tile of terms: zero where it is out of range."""
        line, term = (
            var(stage.side.tile) * stage.extent + stage.line,
            tile * thresholds.TILE_DEPTH + stage.term,
        )
        guarded = substitute_expr(value, stage.side.values(line) | self.terms.values(term))
        for test in (
            *stage.side.tests(line, stage.extent),
            *self.terms.tests(term, thresholds.TILE_DEPTH),
        ):
            guarded = Select(test, guarded, Const(zero_of(value.dtype), value.dtype))
        return guarded

    def store_tile(self, stage: _Stage) -> tuple[Stmt, ...]:
        """Return a thread's stores into a tile."""
        loaded = Read(stage.prefetch, self.prefetched(stage).index)
        value = _unconverted(stage.value)
        stored = loaded if value == stage.loaded else self.computed_value(stage, value, loaded)
        if stored.dtype is not stage.tile.dtype:
            stored = Cast(stored, stage.tile.dtype)
        return self.copy_loop(stage, Store(Access(stage.tile, (stage.term, stage.line)), stored))

    def computed_value(self, stage: _Stage, value: Expr, loaded: Read) -> Expr:
        """Return the value of a factor, computed from a prefetched element."""

        def replace_loaded(expr: Expr) -> Expr:
            if expr in stage.invariants:
                return Read(stage.invariants[expr], (stage.line,))
            return (
                loaded
                if expr == stage.loaded
                else rebuild(expr, replace_loaded, lambda index: index)
            )

        return self.tile_value(stage, replace_loaded(value), var(self.terms.tile))

    def prefetched(self, stage: _Stage) -> Access:
        """Return a prefetched element of a thread."""
        return Access(stage.prefetch, (var(self.y), var(self.x), var(stage.counter)))

    def copy_loop(self, stage: _Stage, stmt: Stmt) -> tuple[Stmt, ...]:
        """Return the loop over the elements that a thread copies of a tile."""
        count = const(stage.extent // thresholds.TILE_SIDE_THREADS)
        return (For(stage.counter, const(0), count, 1, (stmt,), "unrolled"),)

    def multiply(self) -> Stmt:
        """Return the accumulation of the products of two tiles."""
        outer, inner = self.fresh.symbol("some"), self.fresh.symbol("k")
        term = var(outer) * thresholds.TERM_UNROLL_FACTOR + var(inner)
        row, column = self.line_of(self.y, self.r), self.line_of(self.x, self.s)
        first = Read(self.first, (term, row))
        second = Read(self.second, (term, column))
        dtype = self.total.dtype
        update: Stmt
        if self.is_fused:
            total = Read(self.total, self.accumulator.index)
            update = Store(self.accumulator, Apply(OPS["fma"], (first, second, total), dtype))
        else:
            product: Expr = Apply(OPS["mul"], (first, second), self.gemm.product)
            product = product if product.dtype is dtype else Cast(product, dtype)
            update = Update(self.accumulator, OPS["add"], product)
        unrolled = thresholds.TERM_UNROLL_FACTOR
        steps = For(inner, const(0), const(unrolled), 1, self.element_loops((update,)), "unrolled")
        count = const(thresholds.TILE_DEPTH // unrolled)
        return self.thread_loops((For(outer, const(0), count, 1, (steps,)),))

    def build_epilogue(self) -> Stmt:
        """Return the epilogue of all accumulators that are in range."""
        rows, columns = self.blocks
        row, column = self.position
        if not can_vectorize_stores(self.gemm, self.columns):
            body = self.element_epilogue(column, const(0), var(self.s))
            for test in self.range_tests:
                body = (If(test, body),)
            return self.thread_loops(self.element_loops(body))
        body = ColumnGroups(
            self.columns,
            self.extents[1],
            self.column_of,
            self.element_epilogue,
            columns // thresholds.VECTOR_STORE_COLUMNS,
        ).stored(self.fresh)
        for test in self.rows.tests(row, self.extents[0]):
            body = (If(test, body),)
        return self.thread_loops((For(self.r, const(0), const(rows), 1, body, "unrolled"),))

    def column_of(self, group: Affine, member: Affine) -> Affine:
        """Return the column of a member of a group of contiguous ones."""
        start = var(self.columns.tile) * self.extents[1] + var(self.x) * thresholds.THREAD_TILE_SIDE
        parts = const(thresholds.THREAD_TILE_SIDE // thresholds.VECTOR_STORE_COLUMNS)
        return (
            start
            + floordiv(group, parts) * (thresholds.THREAD_TILE_SIDE * thresholds.TILE_SIDE_THREADS)
            + mod(group, parts) * thresholds.VECTOR_STORE_COLUMNS
            + member
        )

    def element_epilogue(self, column: Affine, further: Affine, number: Affine) -> tuple[Stmt, ...]:
        """Return the epilogue of the accumulator of that number in the row `r`."""
        values = self.rows.values(self.position[0]) | self.columns.values_further(column, further)
        return build_result_epilogue(
            self.gemm, values, (self.total, (*self.accumulator.index[:3], number))
        )


def _unconverted(value: Expr) -> Expr:
    """Return the operand of a conversion, or the value itself."""
    return value.value if isinstance(value, Cast) else value


def _loaded_parts(value: Expr) -> list[Expr]:
    """Return the elements that a value needs; a read under a test as the whole select."""
    if isinstance(value, Read | Select):
        return [value]
    return [part for child in children(value) for part in _loaded_parts(child)]
