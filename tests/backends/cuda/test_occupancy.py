"""How many blocks a multiprocessor is to hold."""

from __future__ import annotations

from plusequals.backends.cuda.occupancy import blocks_per_multiprocessor
from plusequals.lowering.ir import dtypes

from ..codegen.programs import node


def test_registers_decide_where_threads_keep_rows() -> None:
    small, large = node(1, "small", (4,), dtypes.float32), node(2, "large", (30,), dtypes.float64)
    assert blocks_per_multiprocessor({small: "registers"}, 256, 0) == 65536 // (36 * 256)
    assert blocks_per_multiprocessor({small: "registers", large: "registers"}, 256, 0) == 65536 // (
        80 * 256
    )


def test_two_blocks_of_tiles_unless_one_is_given_most_memory() -> None:
    sums = node(1, "sums", (64,), dtypes.float32)
    assert blocks_per_multiprocessor({sums: "rows"}, 256, 0) == 2
    assert blocks_per_multiprocessor({sums: "rows"}, 256, 196_608) == 1
    assert blocks_per_multiprocessor({sums: "shared"}, 256, 0) == 1
