"""Tensor-core contractions: tiles whose products a device's matrix units accumulate.

    for i, j: total = 0; for k: total += a[i, k] * b[k, j]; rest
    becomes
    for im, jn:                                            blocks, each a tile of 64 by 64
        acc[y, x, r, s] = 0                                threads, of 4 warps, or 128 by 128
        a_tile[0..3], b_tile[0..3] = a[...], b[...]        threads, 16 bytes at once
        for kt in 0..K/16:
            a_tile[(kt + 3) % 4], ... = a[...], b[...]     threads, while others are used
            acc[y, x, r, s] += a_tile[kt % 4, r, k] * b_tile[kt % 4, k, s]        a matrix unit
        rest, where i and j are in range                   threads

Precondition: that of `shared_tiles`, factors of a type that the device has units for, and terms
whose rounding and order are unspecified. A warp has a part of a tile; its threads have the elements
that the unit gives them: of each 8 rows the one of number `lane / 4`, of each 8 columns those of
numbers `lane % 4 * 2` and one more. Tiles have the layout of their factor in memory, so that a
thread copies contiguous vectors, and rows of tiles are padded so that 8 of them are in different
banks. Warpgroups, where a device has them, read larger tiles themselves, whose layout is swizzled
instead; a tile is then filled while the one before is used. Results that are only stored are stored
as vectors of two.

>>> program = lowered("c[i, j] = sum[k](a[i, k] * b[k, j])",
...     c="f32[64, 64]", a="f16[64, 64]", b="f16[64, 64]")
>>> program = optimize(program, Target("cuda"))[0]
>>> facts = facts_of(program)
>>> nest = find_band(program.kernels[0].body[1], facts)
>>> code = map_tensor_tiles(nest, facts, fresh_for(program), Target("cuda", tensors=("f16",)))
>>> [space for space in code.spaces.values()]
['rows', 'shared', 'shared']
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from ....base.dataclass import dataclass
from ... import thresholds
from ...analysis.parallel_band import (
    Band,
    Facts,
    contiguity_score,
    contiguous_axis,
    static_trip_count,
)
from ...ir import dtypes
from ...ir.assignments import Access
from ...ir.dtypes import DType
from ...ir.expressions import Apply, Cast, Expr, Position, Read, Select
from ...ir.fresh import Fresh
from ...ir.indexing import Affine, Range, Symbol, const, floordiv, mod, var
from ...ir.instructions import VECTOR_BYTES, AwaitProducts, CopyVector, MatMul
from ...ir.loops import Barrier, For, If, Stmt, Store
from ...ir.node import Node
from ...ir.ops import OPS
from ...ir.rewrite import substitute_expr
from ...ir.walk import reads, writes
from ...target import Target
from ..barriers import insert_barriers
from ..thread_points import DeviceCode, Space
from .contraction import Contraction, initial_value, iteration_count, match_contraction
from .shared_tiles import wrap_in_blocks, zero_of_node
from .tensor_cores import select_unit
from .tile_side import Side
from .vector_stores import ColumnGroups, build_result_epilogue, can_vectorize_stores

UNIT = 8
"""Rows and columns of the accumulator blocks of a unit."""
ROW = 64
"""16-bit elements in a row of a swizzled tile."""
NOTHING = const(0)


def map_tensor_tiles(nest: Band, facts: Facts, fresh: Fresh, target: Target) -> DeviceCode | None:
    """Return the kernel of a contraction that the device's units support, else None."""
    types = target.tensors
    gemm = match_contraction(nest) if types and not facts.exact else None
    if gemm is None or not gemm.counted or gemm.total.dtype is not dtypes.float32:
        return None
    if gemm.product is not dtypes.float32:
        return None
    factors = [_unconverted(factor) for factor in (gemm.first, gemm.second)]
    dtype = factors[0].dtype
    if dtype is not factors[1].dtype or dtype.short not in types:
        return None
    sizes = [iteration_count(group) for group in (gemm.rows, gemm.columns, gemm.terms)]
    if any(size is not None and size < thresholds.MIN_TENSOR_CORE_SIZE for size in sizes):
        return None
    shared_bytes = target.shared_bytes if target.warpgroups else 0
    return _KernelBuilder(
        replace(gemm, first=factors[0], second=factors[1]), dtype, shared_bytes, fresh
    ).build()


def _unconverted(factor: Expr) -> Expr:
    """Return a factor without its conversion from a 16-bit type."""
    is_half = isinstance(factor, Cast) and factor.value.dtype in (dtypes.float16, dtypes.bfloat16)
    return factor.value if isinstance(factor, Cast) and is_half else factor


@dataclass(frozen=True, slots=True)
class _Factor:
    """A factor, and the circular buffer of tiles that it is staged in."""

    value: Expr
    side: Side
    extent: int
    """Rows, or columns, of a tile."""
    contiguous: Side
    """The side along which a tile is contiguous: the terms, or the rows or columns."""
    tiles: Node
    is_vectorized: bool
    """Whether the elements of a vector are contiguous in device memory, too."""

    @property
    def stages(self) -> int:
        """The number of tile buffers."""
        return self.tiles.shape[0].constant or 0

    def locate(
        self, tile: Affine, line: Affine, term: Affine, by: Affine = NOTHING
    ) -> tuple[Affine, ...]:
        """Return the index of a line and a term in a tile, `by` elements further in its vector."""
        buffer = mod(tile, const(self.stages))
        near, far = (line, term) if self.contiguous is self.side else (term, line)
        if self.tiles.rank == 3:
            return buffer, far, near + by
        if self.tiles.shape[1] == const(1):
            return buffer, NOTHING, far, near + by
        if any(k % UNIT for _, k in near.terms):
            return buffer, floordiv(near, const(ROW)), far, mod(near, const(ROW)) + by
        vector = Affine(tuple((atom, k // UNIT) for atom, k in near.terms))
        across = const(ROW // UNIT)
        return buffer, floordiv(vector, across), far, mod(vector, across) * UNIT + by


class _KernelBuilder:
    """Builds the kernel of a contraction."""

    def __init__(self, gemm: Contraction, dtype: DType, shared_bytes: int, fresh: Fresh) -> None:
        self.gemm, self.fresh, self.dtype = gemm, fresh, dtype
        self.vector = VECTOR_BYTES // dtype.itemsize
        self.rows = Side(gemm.rows, fresh, "row")
        self.columns = Side(gemm.columns, fresh, "column")
        self.terms = Side(gemm.terms, fresh, "term")
        self.y, self.x = fresh.symbol("y"), fresh.symbol("x")
        self.r, self.s = fresh.symbol("r"), fresh.symbol("s")
        sides = (gemm.first, self.rows), (gemm.second, self.columns)
        contiguous = [self.contiguous_side(value, side) for value, side in sides]
        is_vector_copied = all(
            self.is_contiguous(value, side)
            for (value, _), side in zip(sides, contiguous, strict=True)
        )
        self.unit, self.tile_rows, self.tile_columns = select_unit(
            gemm, is_vector_copied, dtype.itemsize, shared_bytes
        )
        self.depth = self.unit.vectors * self.vector
        warp = self.tile_rows // self.unit.down, self.tile_columns // self.unit.along
        self.counts = warp[0] // UNIT, 2 * (warp[1] // UNIT)
        self.shape = (self.unit.lines, thresholds.TILE_SIDE_THREADS, *self.counts)
        self.total = fresh.array(f"{gemm.total.label}_block", self.shape, gemm.total.dtype)
        self.first = self.build_factor(
            "first", gemm.first, self.rows, self.tile_rows, contiguous[0]
        )
        self.second = self.build_factor(
            "second", gemm.second, self.columns, self.tile_columns, contiguous[1]
        )

    def contiguous_side(self, value: Expr, side: Side) -> Side:
        """Return the side along which a tile of a factor is contiguous: that of memory, if any."""
        flat = (Store(Access(self.gemm.total, ()), value),)
        sides = sorted(
            (self.terms, side),
            key=lambda candidate: -contiguity_score(flat, candidate.loops[-1].symbol),
        )
        return next(
            (candidate for candidate in sides if self.is_contiguous(value, candidate)), sides[0]
        )

    def build_factor(
        self, name: str, value: Expr, side: Side, extent: int, contiguous: Side
    ) -> _Factor:
        """Return how a factor is staged."""
        stages, far = self.unit.stages, self.depth if contiguous is side else extent
        size = extent if contiguous is side else self.depth
        shape: tuple[int, ...] = (stages, far, size + (UNIT if contiguous is side else self.vector))
        if self.unit.exchanges:
            shape = (stages, size // ROW, far, ROW)
        tiles = self.fresh.array(f"{name}_tiles", shape, self.dtype)
        return _Factor(
            value, side, extent, contiguous, tiles, self.is_contiguous(value, contiguous)
        )

    def is_contiguous(self, value: Expr, side: Side) -> bool:
        """Whether the elements of a vector along a side are contiguous in memory."""
        last = side.loops[-1]
        trip_count = static_trip_count(last)
        is_aligned = len(side.loops) == 1 or (
            trip_count is not None and trip_count % self.vector == 0
        )
        return (
            is_aligned
            and isinstance(value, Read)
            and contiguous_axis(value.node, value.index, last.symbol) is not None
        )

    def build(self) -> DeviceCode:
        """Return the kernel. No more barriers: a buffer is filled after all have used it."""
        tile, distance = var(self.terms.tile), self.unit.ahead
        steps = self.fill_tiles(tile + distance), self.multiply(tile)
        inner = (Barrier(distance - 1), *(steps[::-1] if self.unit.exchanges else steps))
        loop = For(self.terms.tile, const(0), self.tile_count, 1, inner)
        prologue = [
            stmt for n in range(distance) for stmt in (self.fill_tiles(const(n)), Barrier(distance))
        ]  # fmt: skip
        used = {n.id for n in (*reads(self.gemm.rest), *writes(self.gemm.rest))}
        private = used & self.gemm.private - {self.total.id, self.gemm.total.id}
        tiles = (self.first.tiles.id, self.second.tiles.id)
        stmts = (
            self.initialize(),
            *prologue,
            loop,
            *self.wait_for_products(),
            self.build_epilogue(),
            Barrier(),
        )
        body = insert_barriers(stmts, frozenset((self.total.id, *tiles, *private)), True)
        sides = ((self.rows, self.tile_rows), (self.columns, self.tile_columns))
        spaces: dict[int, Space] = {self.total.id: "rows", **dict.fromkeys(tiles, "shared")}
        return DeviceCode(
            wrap_in_blocks(self.gemm, sides, body, self.fresh),
            spaces | dict.fromkeys(private, "private"),
        )

    @property
    def tile_count(self) -> Affine:
        """The number of tiles of the terms."""
        return floordiv(self.terms.size + (self.depth - 1), const(self.depth))

    def thread_loops(self, body: tuple[Stmt, ...]) -> Stmt:
        """Return thread loops around a body."""
        inner = For(self.x, const(0), const(thresholds.TILE_SIDE_THREADS), 1, body, "thread")
        return For(self.y, const(0), const(self.unit.lines), 1, (inner,), "thread")

    def element_loops(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return unrolled loops over the elements of a thread."""
        rows, columns = self.counts
        inner = For(self.s, const(0), const(columns), 1, body, "unrolled")
        return (For(self.r, const(0), const(rows), 1, (inner,), "unrolled"),)

    @property
    def accumulator(self) -> Access:
        """A thread's accumulator of a row and a column."""
        return Access(self.total, (var(self.y), var(self.x), var(self.r), var(self.s)))

    @property
    def row(self) -> Affine:
        """The row of a tile that a thread has."""
        down = self.unit.down
        warp = floordiv(var(self.y), const(self.unit.lines // down)) * (self.tile_rows // down)
        lane = mod(var(self.y), const(2)) * 4 + floordiv(var(self.x), const(4))
        return warp + var(self.r) * UNIT + lane

    @property
    def column(self) -> Affine:
        """The column of a tile that a thread has."""
        return self.column_of(floordiv(var(self.s), const(2)), mod(var(self.s), const(2)))

    def column_of(self, pair: Affine, member: Affine) -> Affine:
        """Return the column of a member of a pair, of which a thread has several."""
        along = self.unit.along
        warp = mod(floordiv(var(self.y), const(2)), const(along)) * (self.tile_columns // along)
        return warp + pair * UNIT + member + mod(var(self.x), const(4)) * 2

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
        row = var(self.rows.tile) * self.tile_rows + self.row
        return row, var(self.columns.tile) * self.tile_columns + self.column

    @property
    def range_tests(self) -> list[Expr]:
        """The tests that these are in range."""
        row, column = self.position
        return [
            *self.rows.tests(row, self.tile_rows),
            *self.columns.tests(column, self.tile_columns),
        ]

    def fill_tiles(self, tile: Affine) -> Stmt:
        """Return the code that fills the buffers of both factors with a tile, if there is one."""
        has_tile = Apply(OPS["lt"], (Position(tile), Position(self.tile_count)), dtypes.bool_)
        filling = (*self.fill_tile(self.first, tile), *self.fill_tile(self.second, tile))
        return self.thread_loops((If(has_tile, filling),))

    def fill_tile(self, factor: _Factor, tile: Affine) -> tuple[Stmt, ...]:
        """Return a thread's copies of a tile's vectors: neighbours have neighbouring ones."""
        counter = self.fresh.symbol("m")
        size = self.depth if factor.contiguous is self.terms else factor.extent
        across, threads = const(size // self.vector), self.unit.lines * thresholds.TILE_SIDE_THREADS
        flat = var(self.y) * thresholds.TILE_SIDE_THREADS + var(self.x) + var(counter) * threads
        near, far = mod(flat, across) * self.vector, floordiv(flat, across)
        line, term = (far, near) if factor.contiguous is self.terms else (near, far)
        copy: tuple[Stmt, ...]
        slow = self.copy_elements(factor, tile, line, term)
        if factor.is_vectorized:
            copy = self.copy_vector(factor, tile, line, term, (slow,))
        else:
            copy = (replace(slow, kind="unrolled"),)
        copy_count = factor.extent * self.depth // self.vector // threads
        return (For(counter, const(0), const(copy_count), 1, copy, "unrolled"),)

    def tests_of(self, factor: _Factor, line: Affine, term: Affine) -> list[Expr]:
        """Return the tests that a row or column, and a term, are in range."""
        return [*factor.side.tests(line, factor.extent), *self.terms.tests(term, self.depth)]

    def copy_elements(self, factor: _Factor, tile: Affine, line: Affine, offset: Affine) -> For:
        """Return the element-wise copy of a vector: zeros where it is out of range."""
        symbol = self.fresh.symbol("e")
        target = factor.locate(tile, line, offset, var(symbol))
        line, offset = _advance(factor, line, offset, var(symbol))
        position, term = var(factor.side.tile) * factor.extent + line, tile * self.depth + offset
        guarded = substitute_expr(
            factor.value, factor.side.values(position) | self.terms.values(term)
        )
        for test in self.tests_of(factor, position, term):
            guarded = Select(test, guarded, zero_of_node(factor.tiles))
        stmt = Store(Access(factor.tiles, target), guarded)
        return For(symbol, const(0), const(self.vector), 1, (stmt,))

    def copy_vector(
        self, factor: _Factor, tile: Affine, line: Affine, offset: Affine,
        fallback: tuple[Stmt, ...],
    ) -> tuple[Stmt, ...]:  # fmt: skip
        """Return the vector copy of elements that are all in range, else the fallback."""
        position, term = var(factor.side.tile) * factor.extent + line, tile * self.depth + offset
        value, last = factor.value, factor.contiguous.loops[-1].symbol
        assert isinstance(value, Read)
        axis = contiguous_axis(value.node, value.index, last)
        source = substitute_expr(value, factor.side.values(position) | self.terms.values(term))
        assert isinstance(source, Read) and axis is not None, "it is contiguous in memory"
        target = Access(factor.tiles, factor.locate(tile, line, offset))
        copy = CopyVector(target, source, self.vector, (-1, axis))
        tests = self.tests_of(factor, *_advance(factor, position, term, const(self.vector - 1)))
        if not tests:
            return (copy,)
        test = reduce(lambda a, b: Apply(OPS["and"], (a, b), dtypes.bool_), tests)
        return (If(test, (copy,), fallback),)

    def multiply(self, tile: Affine) -> Stmt:
        """Return the accumulation of the products of two tiles."""
        term = self.fresh.symbol("k")
        first, second = (
            self.widen(Read(one.tiles, one.locate(tile, at, var(term))))
            for one, at in ((self.first, self.row), (self.second, self.column))
        )
        rows, columns, terms = (
            Range(symbol, const(0), const(size))
            for symbol, size in zip((self.r, self.s, term), (*self.counts, self.depth), strict=True)
        )
        over = (rows, columns, terms)
        return self.thread_loops((MatMul(self.accumulator, first, second, over, self.unit.kind),))

    def wait_for_products(self) -> tuple[Stmt, ...]:
        """Return the wait for the last products, where the units are asynchronous."""
        if not self.unit.exchanges:
            return ()
        return (self.thread_loops((AwaitProducts(self.total),)),)

    def widen(self, value: Expr) -> Expr:
        """Return a factor converted to the type of the accumulators."""
        same = value.dtype is self.total.dtype
        return value if same else Cast(value, self.total.dtype)

    def build_epilogue(self) -> Stmt:
        """Return the epilogue of all accumulators that are in range."""
        rows, columns = self.counts
        if not can_vectorize_stores(self.gemm, self.columns):
            body = self.element_epilogue(self.position[1], NOTHING, var(self.s))
            for test in self.range_tests:
                body = (If(test, body),)
            return self.thread_loops(self.element_loops(body))
        start = var(self.columns.tile) * self.tile_columns
        body = ColumnGroups(
            self.columns, self.tile_columns, lambda group, col: start + self.column_of(group, col),
            self.element_epilogue, columns // thresholds.VECTOR_STORE_COLUMNS,
        ).stored(self.fresh)  # fmt: skip
        for test in self.rows.tests(self.position[0], self.tile_rows):
            body = (If(test, body),)
        return self.thread_loops((For(self.r, const(0), const(rows), 1, body, "unrolled"),))

    def element_epilogue(self, column: Affine, further: Affine, number: Affine) -> tuple[Stmt, ...]:
        """Return the epilogue of the accumulator of that number in the row `r`."""
        values = self.rows.values(self.position[0]) | self.columns.values_further(column, further)
        return build_result_epilogue(
            self.gemm, values, (self.total, (*self.accumulator.index[:3], number))
        )


def _advance(factor: _Factor, line: Affine, term: Affine, by: Affine) -> tuple[Affine, Affine]:
    """Return a line and a term, advanced along the contiguous side."""
    return (line + by, term) if factor.contiguous is factor.side else (line, term + by)
