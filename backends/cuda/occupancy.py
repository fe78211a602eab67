"""Occupancy: launch bounds that tell the compiler how many blocks a multiprocessor is to hold.

The compiler then limits registers per thread accordingly, so that one block computes while another
waits for memory.

>>> from ...lowering.ir import dtypes
>>> from ...lowering.ir.indexing import const
>>> row = Node(1, "row", (const(16),), dtypes.float32)
>>> [blocks_per_multiprocessor({row: kept}, 256, 0) for kept in ("registers", "rows")]
(5, 2)
"""

from __future__ import annotations

from collections.abc import Mapping

from ...lowering.gpu.thread_points import Space
from ...lowering.ir.node import Node

REGISTERS = 1 << 16
"""The registers of a multiprocessor."""
REGISTER_BYTES = 4
"""Bytes of a register."""
MAX_ROW_REGISTERS, BASE_REGISTERS = 80, 32
"""The most registers of a thread that keeps rows in them, and those in addition to the largest
row."""


def launch_bounds(held: Mapping[Node, Space | None], threads: int, given: int, full: bool) -> str:
    """Return the launch bounds of a kernel: threads per block, and blocks per multiprocessor.

    With `full`, as many threads as a multiprocessor can hold.

    >>> launch_bounds({}, 256, 0, False), launch_bounds({}, 160, 0, True)
    ('256', '160, HELD_THREADS/160')
    """
    blocks = blocks_per_multiprocessor(held, threads, given)
    if full and blocks == 1:
        return f"{threads}, HELD_THREADS/{threads}"
    return f"{threads}, {blocks}" if blocks > 1 else f"{threads}"


def blocks_per_multiprocessor(held: Mapping[Node, Space | None], threads: int, given: int) -> int:
    """Return the blocks per multiprocessor for so many threads per block, 1 where left open.

    `held` are the nodes of a kernel with their spaces, `given` the bytes of dynamic shared memory.
    """
    rows = [node for node, space in held.items() if space == "registers"]
    if rows:
        words = (node.bytes // min(node.dtype.itemsize, REGISTER_BYTES) for node in rows)
        registers = min(MAX_ROW_REGISTERS, BASE_REGISTERS + max(words))
        return REGISTERS // (registers * threads)
    return 2 if "rows" in held.values() and not given else 1
