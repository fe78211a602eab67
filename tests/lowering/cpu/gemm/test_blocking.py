"""Sizes of tiles and blocks: they fit, and they are whole tiles."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plusequals.lowering import thresholds
from plusequals.lowering.analysis.contraction import find_contraction
from plusequals.lowering.cpu.gemm.blocking import choose_sizes
from plusequals.lowering.cpu.gemm.packing import Sizes
from plusequals.lowering.ir.fresh import fresh_for
from plusequals.lowering.ir.loops import For
from plusequals.lowering.target import Target

from ...shown import lowered

WIDE = Target(vector_bits=512, vector_registers=32)
SHAPES = [(64, 64, 64), (257, 513, 129), (1024, 1024, 1024), (3, 9000, 700), (2000, 2, 2000)]


def chosen(rows: int, terms: int, columns: int, dtype: str, target: Target) -> Sizes | None:
    program = lowered(
        "c[i, j] = sum(a[i, k] * b[k, j])",
        c=f"{dtype}[{rows}, {columns}]", a=f"{dtype}[{rows}, {terms}]",
        b=f"{dtype}[{terms}, {columns}]",
    )  # fmt: skip
    (nest,) = [stmt for stmt in program.kernels[0].body if isinstance(stmt, For)]
    found = find_contraction(nest, fresh_for(program))
    assert found is not None
    return choose_sizes(found, target)


def windowed(side: int, channels: int, outputs: int, threads: int) -> Sizes:
    """Return the sizes for windows of three by three of planes, with vectors of 256 bits."""
    program = lowered(
        "y[o, h, v] = sum(x[c, h + r, v + q] * w[o, c, r, q])",
        y=f"f32[{outputs}, {side}, {side}]", x=f"f32[{channels}, {side + 2}, {side + 2}]",
        w=f"f32[{outputs}, {channels}, 3, 3]",
    )  # fmt: skip
    (nest,) = [stmt for stmt in program.kernels[0].body if isinstance(stmt, For)]
    found = find_contraction(nest, fresh_for(program))
    assert found is not None
    target = Target(vector_bits=256, l2_bytes=1 << 19, l3_bytes=8 << 20, threads=threads)
    fitting = choose_sizes(found, target)
    assert fitting is not None
    return fitting


def test_rows_whose_sums_are_more_than_may_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "MAX_PARTIAL_SUM_BYTES", 256)
    found = chosen(90, 3000, 600, "f64", Target(vector_bits=256, threads=2))
    assert found is not None and found.depth < 3000


@pytest.mark.parametrize("target", [WIDE, Target(vector_bits=256), Target(vector_bits=128)])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_blocks_are_whole_tiles_in_registers(
    shape: tuple[int, int, int], dtype: str, target: Target
) -> None:
    found = chosen(*shape, dtype, target)
    assert found is not None
    lanes = target.lanes(32 if dtype == "f32" else 64)
    assert found.column.lanes % lanes == 0
    vectors = found.column.lanes // lanes
    assert found.row.lanes * vectors + vectors + 1 <= target.vector_registers
    assert found.row.block_lanes % found.row.lanes == 0
    assert found.column.block_lanes % found.column.lanes == 0
    assert found.row.block_lanes < thresholds.MAX_PACKED_ROWS + found.row.lanes
    assert 1 <= found.depth <= shape[1]


def test_the_shape_is_the_one_that_covers_least_outside() -> None:
    square, odd = (chosen(*shape, "f32", WIDE) for shape in ((96, 64, 96), (257, 513, 129)))
    assert square is not None
    assert odd is not None
    assert (square.row.lanes, square.column.lanes) == (8, 48)
    assert (odd.row.lanes, odd.column.lanes) == (7, 48)


@pytest.mark.parametrize("shape", [(1024, 1024, 1024), (700, 300, 1000), (512, 512, 40)])
def test_columns_that_are_copied_together_are_equal_parts_of_a_block(
    shape: tuple[int, int, int],
) -> None:
    found = chosen(*shape, "f32", replace(WIDE, l2_bytes=2 << 20, threads=2))
    assert found is not None
    assert found.group is not None
    (block,), (part,) = found.column.block, found.group.block
    assert block % part == 0
    assert part % found.column.lanes == 0
    assert part == found.column.lanes or part * found.depth * 4 <= thresholds.MAX_COLUMN_GROUP_BYTES
    assert found.axis("column") is found.group
    assert found.axis("row") is found.row


@pytest.mark.parametrize(("columns", "threads"), [(512, 1), (512, 2), (2048, 1)])
def test_one_thread_copies_columns_once_where_the_last_cache_has_room(
    columns: int, threads: int
) -> None:
    target = Target(vector_bits=256, l3_bytes=32 << 20, threads=threads)
    found = chosen(512, 512, columns, "f32", target)
    assert found is not None
    assert (found.group is None) == (threads == 1 and columns == 512)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_what_a_tile_reads_stays_in_the_first_cache(dtype: str) -> None:
    target = Target(vector_bits=256)
    found = chosen(1024, 2048, 1024, dtype, target)
    assert found is not None
    size = 4 if dtype == "f32" else 8
    assert (found.row.lanes + found.column.lanes) * found.depth * size <= target.l1_bytes


def test_each_thread_has_rows() -> None:
    alone = chosen(64, 64, 64, "f32", WIDE)
    shared = chosen(64, 64, 64, "f32", Target(vector_bits=512, vector_registers=32, threads=4))
    assert alone is not None
    assert shared is not None
    assert alone.row.block_lanes >= 64
    assert shared.row.block_lanes < 32


@pytest.mark.parametrize("l2_bytes", [1 << 18, 1 << 19, 1 << 20, 2 << 20])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("bits", [256, 512])
@pytest.mark.parametrize(
    "shape",
    [(6000, 4000, 6000), (2304, 2048, 2048), (4096, 4096, 4096), (1024,) * 3, (1152, 900, 3000)],
)
def test_what_each_thread_has_of_its_own_is_no_more_than_it_may_have(
    shape: tuple[int, int, int], bits: int, dtype: str, l2_bytes: int
) -> None:
    registers = 32 if bits == 512 else 16
    target = Target(vector_bits=bits, vector_registers=registers, threads=2, l2_bytes=l2_bytes)
    found = chosen(*shape, dtype, target)
    assert found is not None
    assert found.group is not None
    panels = (found.row.block_lanes + found.group.block_lanes) * found.depth
    sums = found.row.block_lanes * found.column.block_lanes
    assert (panels + sums) * (4 if dtype == "f32" else 8) <= thresholds.MAX_PRIVATE_BYTES


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("rows", [300, 700, 1024, 4000])
def test_all_rows_of_a_thread_are_one_block_where_columns_are_then_copied_once(
    rows: int, threads: int
) -> None:
    target = Target(vector_bits=256, l2_bytes=1 << 19, l3_bytes=8 << 20, threads=threads)
    found = chosen(rows, 700, 900, "f64", target)
    assert found is not None
    own = -(-rows // threads)
    size = found.depth * 8
    assert (found.row.block_lanes >= own) == (
        own <= thresholds.MAX_PACKED_ROWS and own * size <= 1 << 20
    )
    assert found.row.block_lanes * size <= (1 << 20) + found.row.lanes * size


def test_rows_of_two_factors_have_two_panels() -> None:
    program = lowered(
        "c[i, j] = sum(a[i, k] * b[k, j] + d[i, k] * e[k, j])",
        **dict.fromkeys("cabde", "f64[1024, 1024]"),
    )
    (nest,) = [stmt for stmt in program.kernels[0].body if isinstance(stmt, For)]
    found = find_contraction(nest, fresh_for(program))
    assert found is not None
    fitting = choose_sizes(found, Target(vector_bits=256, l2_bytes=1 << 19, threads=2))
    assert fitting is not None
    assert 2 * fitting.row.block_lanes * fitting.depth * 8 <= 1 << 20


@pytest.mark.parametrize("threads", [1, 8])
def test_what_threads_share_is_filled_tile_by_tile(threads: int) -> None:
    found = chosen(40, 4096, 96, "f32", replace(WIDE, threads=threads, l3_bytes=32 << 20))
    assert found is not None
    assert found.group is None
    assert found.shared == (threads > 1)


@pytest.mark.parametrize(
    ("channels", "outputs", "first"), [(64, 64, True), (64, 512, False), (8, 64, False)]
)
def test_few_columns_all_meet_the_rows_of_windows_first(
    channels: int, outputs: int, first: bool
) -> None:
    found = windowed(40, channels, outputs, 2)
    assert found.rows_first == first
    if first:
        assert found.group is None
        assert found.column.block == (64,)


@pytest.mark.parametrize(
    ("side", "outputs", "threads", "box"),
    [(56, 64, 2, (2, 3)), (56, 512, 2, (1, 6)), (54, 64, 2, (1, 6)), (14, 64, 1, (2, 3)),
     (14, 64, 2, (1, 5))],
)  # fmt: skip
def test_a_tile_has_windows_of_two_lines_where_fewer_are_missing_and_they_are_not_copied(
    side: int, outputs: int, threads: int, box: tuple[int, int]
) -> None:
    assert windowed(side, 64, outputs, threads).row.box == box


def test_what_is_small_has_none() -> None:
    assert chosen(5, 5, 5, "f32", WIDE) is None
    assert chosen(64, 64, 64, "f32", Target(vector_bits=32)) is None
