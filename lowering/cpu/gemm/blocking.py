"""Tile and block sizes of matrix products, from registers and caches (mc, nc, kc).

No result depends on them. Analysis only. The blocking is that of Goto and van de Geijn, Anatomy of
high-performance matrix multiplication (2008).

>>> from plusequals.lowering.ir.fresh import fresh_for
>>> from plusequals.lowering.analysis.contraction import find_contraction
>>> program = lowered("c[i, j] = sum(a[i, k] * b[k, j])", c="f32[99, 99]", a="f32[99, 99]",
...                   b="f32[99, 99]")
>>> (nest,) = [stmt for stmt in program.kernels[0].body if type(stmt).__name__ == "For"]
>>> found = choose_sizes(find_contraction(nest, fresh_for(program)), Target(vector_bits=256))
>>> found.row.box, found.column.box, found.row.block, found.column.block, found.depth
((5,), (16,), (100,), (112,), 99)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import prod

from ... import thresholds
from ...analysis.contraction import Contraction, Side, sliding_windows
from ...analysis.expression_cost import cost
from ...analysis.subscripts import stride
from ...ir.expressions import reads
from ...target import Target
from .axes import Axis, trip_count_of
from .packing import Sizes, can_read_columns_in_place, can_read_in_place, has_unit_lanes

Counts = Sequence[int | None]
"""Trip counts of loops, the outermost first; None where they are dynamic."""


def choose_sizes(product: Contraction, target: Target) -> Sizes | None:
    """Return the sizes for a contraction; None where tiles would not help."""
    nest = product.nest
    bits = max(nest.acc.dtype.bits, *(part.node.dtype.bits for part in product.parts))
    lanes = target.lanes(bits)
    outer = trip_count_of(nest.depth[0])
    rows, columns, inner = (
        [*map(trip_count_of, loops)] for loops in (product.rows, product.columns, nest.depth[1:])
    )
    terms = _terms(rows, columns, outer, inner) if lanes > 1 else None
    if terms is None:
        return None
    row_box, column_box = _boxes(product, rows, columns, lanes, target)
    height, width, size = prod(row_box), _round_up(prod(column_box), lanes), bits // 8
    row = Axis(product.rows, row_box, row_box, height)
    column = Axis(product.columns, column_box, column_box, width)
    term = (terms, size)
    few_rows = _sizes_in_place(product, row, column, term, target)
    return few_rows or _sizes_in_panels(product, row, column, term, target)


def _sizes_in_panels(
    product: Contraction, row: Axis, column: Axis, term: tuple[int, int], target: Target
) -> Sizes:
    """Return the sizes where columns are packed, and rows unless they are read in place.

    `term` is how many terms an iteration of the outer reduction loop has, and the bytes of one.
    """
    outer, (terms, size) = trip_count_of(product.nest.depth[0]), term
    rows, columns = ([*map(trip_count_of, axis.loops)] for axis in (row, column))
    height, width = row.lanes, column.lanes
    columns_fit = outer is not None and outer * terms * size * width * 8 <= target.l3_bytes
    is_short = columns_fit and outer is not None and outer * terms <= thresholds.MAX_IN_PLACE_TERMS
    in_place = is_short and can_read_in_place(product, row, column)
    budget = thresholds.MAX_PANEL_ROW_BYTES if in_place else target.l1_bytes // (height + width)
    panel_depth = _panel_depth(budget // (size * terms), size * terms)
    depth = _depth(outer, panel_depth)
    is_uneven = bool(product.tests) and target.threads > 1
    share_count = (thresholds.UNEVEN_BLOCKS_PER_THREAD if is_uneven else 1) * target.threads
    once = _are_packed_once(columns, (outer or 0) * terms * size, target)
    row_bytes = int(target.l2_bytes * thresholds.ROW_BLOCK_L2_FRACTION)
    most = _fit_lanes(row_bytes // (depth * terms * size), thresholds.MAX_PACKED_ROWS, height)
    if not once and not in_place and None not in rows:
        thread_rows = _round_up(-(-prod(n or 0 for n in rows) // share_count), height)
        panels = (thread_rows - height) * depth * terms * size * _count_row_panels(product)
        fits = _rows_fit(panels, thread_rows * size, depth == outer, columns, target)
        if most < thread_rows <= thresholds.MAX_PACKED_ROWS and fits:
            most = thread_rows
    stay_cached = False
    if in_place:
        repeated, resident_bytes = _common_rows(product), terms * depth * size
        columns_stay = depth == outer and _columns_fit(columns, resident_bytes, target)
        stay_cached = repeated > 1 and columns_stay
        if stay_cached and target.threads > 1:
            share_count = thresholds.CACHED_BLOCKS_PER_THREAD * target.threads
        most *= repeated
    row = replace(row, block=_block(rows, row.box, most // height, share_count))
    top_cost = max(cost(part.value) for part in product.parts if part.side == "column")
    is_packed_once = bool(product.tests) or stay_cached or once
    by_tile = row.block_lanes >= thresholds.MIN_REPACKED_ROWS * top_cost and not is_packed_once
    column_depth = outer if columns_fit and outer is not None and not by_tile else depth
    most = thresholds.MAX_PACKED_COLUMNS
    capacity = most if by_tile else target.l3_bytes // (2 * column_depth * terms * size)
    if depth != outer:
        capacity = min(capacity, thresholds.MAX_PARTIAL_SUM_BYTES // (row.block_lanes * size))
    blocks = _fit_lanes(capacity, most, width) // width
    column = replace(column, block=_block(columns, column.box, blocks, 1))
    if in_place and outer is not None:  # what has no panel of rows needs no parts of it
        depth = column_depth = outer
    sides: frozenset[Side] = frozenset({"row"} if in_place else ())
    if not by_tile:
        return Sizes(
            row, column, depth, column_depth, terms,
            rows_first=stay_cached, shared=target.threads > 1, in_place=sides,
        )  # fmt: skip
    group = _group(column, _group_columns(product, depth * terms * size, target))
    column = replace(column, block=tuple(map(_round_up, column.block, group.block)))
    return Sizes(row, column, depth, column_depth, terms, group, in_place=sides)


def _sizes_in_place(
    product: Contraction, row: Axis, column: Axis, term: tuple[int, int], target: Target
) -> Sizes | None:
    """Return the sizes where columns are read in place, all terms at once; None where they are
    packed. Rows are packed once, unless they are read in place, too.

    `term` is how many terms an iteration of the outer reduction loop has, and the bytes of one.
    """
    outer, (terms, size) = trip_count_of(product.nest.depth[0]), term
    if outer is None or not can_read_columns_in_place(product, row, column):
        return None
    rows, columns = ([trip_count_of(n) for n in axis.loops] for axis in (row, column))
    column_bytes = prod(n or 1 for n in columns) * outer * terms * size
    if outer * terms > thresholds.MAX_IN_PLACE_STEPS or 2 * column_bytes > target.l3_bytes:
        return None
    row = replace(row, block=_block(rows, row.box, 1 << 30, 1))
    column = replace(column, block=_block(columns, column.box, 1 << 30, 1))
    sides: set[Side] = {"column"}
    if outer * terms <= thresholds.MAX_IN_PLACE_TERMS and can_read_in_place(product, row, column):
        sides.add("row")
    return Sizes(row, column, outer, outer, terms, in_place=frozenset(sides))


def _terms(
    rows: Counts, columns: Counts, outer: int | None, inner: Sequence[int | None]
) -> int | None:
    """Return how many terms the inner reduction loops have for each of the outer one; None where
    tiles would not help."""
    static = [size for size in (*rows, *columns, outer) if size is not None]
    if None in inner or 0 in static or 0 in inner:
        return None
    terms = prod(n for n in inner if n is not None)
    if (
        len(static) == len(rows) + len(columns) + 1
        and prod(static) * terms < thresholds.MIN_GEMM_TERMS
    ):
        return None
    if all(size == 1 for size in rows) or all(size == 1 for size in columns):
        return None
    return terms


def _depth(outer: int | None, panel_depth: int) -> int:
    """Return how many iterations of the outer reduction loop a panel has, of so many at most."""
    if outer is None:
        return panel_depth
    return outer if 2 * outer <= 3 * panel_depth else _equal_part(outer, panel_depth)


def _boxes(
    product: Contraction, rows: Counts, columns: Counts, lanes: int, target: Target
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return how many iterations of the loops over rows, and over columns, a tile of a contraction
    has."""
    widest = thresholds.MAX_PREDICATED_TILE_VECTORS if product.tests else 4
    registers = target.vector_registers
    pairs = _pair_boxes(rows, _most_sums(registers), target.threads)
    row_box, column_box = _shape(rows, columns, lanes, registers, widest, pairs)
    if sum(size > 1 for size in row_box) > 1 and _share_lines(product):
        row, column = (
            Axis(loops, box, box, _round_up(prod(box), unit))
            for loops, box, unit in (
                (product.rows, row_box, 1),
                (product.columns, column_box, lanes),
            )
        )
        if not can_read_in_place(product, row, column):  # more lines are more to copy
            return _shape(rows, columns, lanes, registers, widest)
    return row_box, column_box


def _panel_depth(near: int, size: int) -> int:
    """Return how many iterations of so many bytes a panel has: those for which a tile's rows and
    columns stay in the L1 cache, `near`, or where these are few, or far less, as many as may be.

    >>> _panel_depth(372, 4), _panel_depth(292, 8), _panel_depth(175, 4), _panel_depth(11, 128)
    (372, 256, 512, 16)
    """
    most = max(1, thresholds.MAX_PANEL_ROW_BYTES // size)
    return near if thresholds.MIN_PANEL_DEPTH <= near <= most and 2 * most <= 3 * near else most


def _count_row_panels(product: Contraction) -> int:
    """Return how many panels rows have."""
    return sum(part.side == "row" for part in product.parts)


def _rows_fit(panels: int, sums: int, is_once: bool, columns: Counts, target: Target) -> bool:
    """Whether all rows of a thread may be in a block: so many bytes in panels, and `sums` for each
    column that wait for further terms unless all terms are added at once. Threads share blocks of
    columns where there are several.

    >>> one, two = Target(l2_bytes=1 << 19, threads=1), Target(l2_bytes=1 << 19, threads=2)
    >>> [_rows_fit(1 << 20, 4096, False, [n], two) for n in (600, 1200, 1800, 2400)]
    [True, True, False, True]
    >>> _rows_fit(1 << 20, 4096, False, [1800], one), _rows_fit(1 << 21, 4096, True, [9], two)
    (True, False)
    """
    l2_bytes = thresholds.MAX_WHOLE_ROWS_L2 * target.l2_bytes
    if panels > min(l2_bytes, thresholds.MAX_WHOLE_ROWS_BYTES) or None in columns:
        return False
    most = thresholds.MAX_PACKED_COLUMNS
    capacity = most if is_once else min(most, thresholds.MAX_PARTIAL_SUM_BYTES // sums)
    if not capacity:
        return False
    blocks = -(-prod(n or 0 for n in columns) // capacity)
    return blocks == 1 or blocks % target.threads == 0


def _columns_fit(columns: Counts, size: int, target: Target) -> bool:
    """Whether all columns, of so many bytes each, are few and stay in the L2 cache."""
    count = prod(n or thresholds.MAX_PACKED_COLUMNS for n in columns)
    return (
        count <= thresholds.MAX_PACKED_COLUMNS
        and count * size * thresholds.CACHED_COLUMNS_L2_FACTOR <= target.l2_bytes
    )


def _are_packed_once(columns: Counts, size: int, target: Target) -> bool:
    """Whether a single thread packs all columns, of so many bytes each, once."""
    total = prod(n or thresholds.MAX_PACKED_COLUMNS for n in columns) * size
    return target.threads == 1 and 0 < total * thresholds.PACK_ONCE_L3_FACTOR <= target.l3_bytes


def _group_columns(product: Contraction, size: int, target: Target) -> int:
    """Return how many columns, of so many bytes each, are packed just before their use at most."""
    across = any(has_unit_lanes(part, product) for part in product.parts if part.side == "column")
    return min(thresholds.MAX_COLUMN_GROUP_BYTES, target.l2_bytes // 2) // size if across else 1


def _common_rows(product: Contraction) -> int:
    """Return how many rows have terms in common, as windows do.

    Their block may have so many times the rows where these are read in place.
    """
    row = {loop.symbol for loop in product.rows}
    counting = {loop.symbol: loop for loop in product.nest.depth}
    parts = [part.value for part in product.parts if part.side == "row"]
    common = sliding_windows((read for part in parts for read in reads(part)), row, counting.keys())
    return prod(trip_count_of(counting[symbol]) or 1 for symbol in common)


def _group(axis: Axis, most: int) -> Axis:
    """Return columns in blocks of so many lanes at most, equal parts of their own blocks."""
    tiles = max(1, most // axis.lanes)
    counts = [
        min(size, trip_count_of(loop) or size)
        for loop, size in zip(axis.loops, axis.block, strict=True)
    ]
    return replace(axis, block=_block(counts, axis.box, tiles, 1))


def _shape(
    rows: Counts,
    columns: Counts,
    lanes: int,
    registers: int,
    widest: int = 4,
    pairs: Iterable[tuple[int, ...]] = (),
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return how many iterations of the loops over rows, and over columns, a tile has: of tiles
    that fill the registers those with the least total time. `pairs` are further boxes of rows.

    >>> _shape([1024], [1024], 16, 32), _shape([257], [129], 16, 32), _shape([64], [None], 8, 16)
    (((6,), (64,)), ((7,), (48,)), ((6,), (16,)))
    >>> _shape([7], [96], 16, 32), _shape([16, 16], [16, 16], 16, 32)
    (((7,), (48,)), ((1, 8), (2, 16)))
    """
    sums, most = _most_sums(registers), widest if registers >= 32 else min(3, widest)
    heights = dict.fromkeys(_box(rows, height, 1) for height in range(min(sums, 16), 0, -1))
    heights |= dict.fromkeys(pairs)
    widths = {vectors: _box(columns, vectors * lanes, lanes) for vectors in range(1, most + 1)}

    def effort(row: tuple[int, ...], column: tuple[int, ...]) -> float:
        height, vectors = prod(row), -(-prod(column) // lanes)
        tiles = _tile_count(rows, row) * _tile_count(columns, column)
        loads = 0.3 * height + 0.75 * vectors  # what waits for the caches now and then
        sums = height * vectors
        is_full = sums + vectors + 1 >= registers  # compilers then reload columns for each row
        waits = sums + thresholds.FULL_TILE_PENALTY if is_full else height + vectors
        return tiles * (max(sums, waits, thresholds.MIN_TILE_SUMS) + loads)

    shapes = (
        (row, column)
        for row in heights
        for vectors, column in widths.items()
        if vectors <= sums // prod(row)
    )
    return min(shapes, key=lambda shape: effort(*shape))


def _box(counts: Counts, most: int, unit: int) -> tuple[int, ...]:
    """Return a box of loops with so many iterations at most: inner loops whole, one in equal parts.

    >>> _box([5, 16], 12, 1), _box([5, 3], 12, 1), _box([100], 48, 16), _box([9, 7], 32, 16)
    ((1, 8), (3, 3), (48,), (3, 7))
    """
    box: list[int] = []
    inside, whole = 1, True
    for count in reversed(counts):
        capacity = most // inside if whole else 1
        whole = whole and count is not None and count <= capacity
        size = capacity if count is None else count if whole else _equal_part(count, capacity)
        box.insert(0, size if inside > 1 or len(counts) > 1 and whole else _round_up(size, unit))
        inside *= size
    return tuple(box)


def _most_sums(registers: int) -> int:
    """Return the most vectors of sums that a tile has."""
    return 24 if registers >= 32 else 12


def _share_lines(product: Contraction) -> bool:
    """Whether consecutive rows are windows of one line: more lines in a tile are more to load."""
    row, counting = product.rows[-1].symbol, {loop.symbol for loop in product.nest.depth}
    parts = [read for part in product.parts if part.side == "row" for read in reads(part.value)]
    common = sliding_windows(parts, {row}, counting)
    return bool(common) and any(stride(read.node, read.index, row) == 1 for read in parts)


def _pair_boxes(counts: Counts, most: int, threads: int = 1) -> Iterator[tuple[int, ...]]:
    """Yield boxes of the two innermost loops, even along the outer one and for all threads: fewer
    iterations are missing in the last ones along the inner one.

    >>> list(_pair_boxes([8, 32, 56], 6)), list(_pair_boxes([1, 14, 14], 6, 2))
    ([(1, 2, 1), (1, 2, 2), (1, 2, 3), (1, 4, 1)], [])
    """
    outer, inner = counts[-2:] if len(counts) > 1 else (None, None)
    if outer is None or inner is None:
        return
    outer_count = prod(count or threads for count in counts[:-2])
    for outer_size in range(2, most + 1):
        for inner_size in range(1, most // outer_size + 1):
            even = outer % outer_size == 0 and _is_balanced(
                outer_count * outer // outer_size, threads
            )
            if even and inner_size <= inner:
                yield (*(1 for _ in counts[:-2]), outer_size, inner_size)


def _is_balanced(count: int, threads: int) -> bool:
    """Whether no thread has a tenth more to do than the others where each does whole iterations.

    >>> _is_balanced(7, 2), _is_balanced(224, 2), _is_balanced(224, 64), _is_balanced(1000, 64)
    (False, True, False, True)
    """
    return 10 * -(-count // threads) * threads <= 11 * count


def _tile_count(counts: Counts, box: Sequence[int]) -> int:
    """Return how many boxes a number of iterations has; a dynamic number is taken for a large
    one."""
    return prod(-(-(count or 840) // size) for count, size in zip(counts, box, strict=True))


def _block(counts: Counts, box: Sequence[int], most: int, threads: int) -> tuple[int, ...]:
    """Return how many iterations of loops a block of at most `most` tiles has: equal blocks, some
    for each thread.

    >>> _block([1024], [12], 42, 2), _block([16, 16], [1, 8], 42, 2), _block([None], [12], 42, 2)
    ((264,), (8, 16), (252,))
    >>> _block([5, 7], (5, 2), 1, 1)
    (5, 2)
    """
    tiles = [-(-(840 if n is None else n) // size) for n, size in zip(counts, box, strict=True)]
    target_count = max(1, min(most, -(-prod(tiles) // threads)))
    block: list[int] = []
    inside = 1
    for number in reversed(range(len(counts))):
        count, size, outside = counts[number], box[number], prod(tiles[:number])
        if not inside:
            block.insert(0, size)
        elif count is not None and inside * tiles[number] <= target_count:
            block.insert(0, count if len(counts) > 1 else tiles[number] * size)
            inside *= tiles[number]
        else:
            capacity = max(1, (most if number == 0 else target_count) // inside) * size
            block.insert(0, _even_share(count, capacity, size, -(-threads // outside)))
            inside = 0
    return tuple(block)


def _round_up(count: int, unit: int) -> int:
    """Return a count rounded up to whole units."""
    return -(-count // unit) * unit


def _fit_lanes(capacity: int, most: int, unit: int) -> int:
    """Return how many rows or columns a block has that fit in so much room."""
    return max(unit, min(most, capacity) // unit * unit)


def _even_share(count: int | None, most: int, unit: int, threads: int) -> int:
    """Return the size of equal blocks of a count, in whole units: some for each thread.

    >>> _even_share(1024, 504, 12, 1), _even_share(1024, 504, 12, 2), _even_share(None, 504, 12, 2)
    (348, 264, 252)
    """
    if count is None:
        return max(unit, most // threads // unit * unit)
    return _round_up(-(-count // _round_up(-(-count // most), threads)), unit)


def _equal_part(count: int, most: int) -> int:
    """Return the size of equal parts of a count that are at most so large, but for the last."""
    return -(-count // -(-count // most))
