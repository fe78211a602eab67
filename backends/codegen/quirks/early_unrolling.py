"""Early complete unrolling: short loops that compilers must not unroll before vectorization.

gcc unrolls a short loop of static trip count completely before its vectorizer runs. Then there is
no loop left, or only an outer one, which it vectorizes with shuffles: the outer product of 16
numbers takes ten times as long.
"""

from __future__ import annotations

from ....lowering.analysis.subscripts import stride
from ....lowering.ir.assignments import Access
from ....lowering.ir.expressions import Expr, Read, reads
from ....lowering.ir.loops import Comment, For, Store, Update
from ....lowering.ir.node import Node

MIN_TRIP_COUNT, MIN_BYTES = 4, 16
"""The least trip count, and the least number of bytes written, of a loop that may be vectorized."""


def is_elementwise(loop: For) -> bool:
    """Whether a loop maps over, or sums in any order, at least a vector of contiguous elements.

    At the least trip count all loads have to be contiguous or uniform, too: gathers would cost as
    much as the arithmetic saves.
    """
    trip_count = (loop.hi - loop.lo).constant
    if loop.kind != "serial" or loop.step != 1 or trip_count is None or trip_count < MIN_TRIP_COUNT:
        return False
    fills_vector = False
    for stmt in loop.body:
        match stmt:
            case Store(Access(_, ()), value):
                pass
            case Update(Access(node, ()), _, value, None):
                fills_vector = True
                if not _adds_up(node, value, loop):
                    return False
            case Store(Access(node, index), value) | Update(Access(node, index), _, value, None):
                fills_vector = trip_count * node.dtype.itemsize >= MIN_BYTES
                if not fills_vector or stride(node, index, loop.symbol) != 1:
                    return False
            case Comment():
                continue
            case _:
                return False
        is_contiguous = (
            stride(read.node, read.index, loop.symbol) in (0, 1) for read in reads(value)
        )
        if trip_count == MIN_TRIP_COUNT and not all(is_contiguous):
            return False
    return fills_vector


def _adds_up(node: Node, value: Expr, loop: For) -> bool:
    """Whether contiguous integers are summed in their own type. AVX2 has no 64-bit vector multiply,
    so sums of 64 bits are limited to plain loads."""
    size = node.dtype.itemsize
    is_integer_sum = node.dtype.kind in "iu" and (
        size == 4 or (size == 8 and isinstance(value, Read))
    )
    return is_integer_sum and all(
        read.dtype.itemsize == size and stride(read.node, read.index, loop.symbol) == 1
        for read in reads(value)
    )
