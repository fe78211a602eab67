"""Occupancy: launch bounds that tell the compiler how many blocks a multiprocessor is to hold.

The compiler then limits registers per thread accordingly, so that one block computes while another
waits for memory.

>>> from ...lowering.ir import dtypes
>>> from ...lowering.ir.indexing import const
>>> row = Node(1, "row", (const(16),), dtypes.float32)
>>> at_once({row: "registers"}, 256, 0), at_once({row: "rows"}, 256, 0)
(5, 2)
"""

from __future__ import annotations

from collections.abc import Mapping

from ...lowering.gpu.thread_points import Space
from ...lowering.ir.node import Node

REGISTERS = 1 << 16
"""The registers of a multiprocessor."""
WORD = 4
"""Bytes of a register."""
MOST_KEEPING, KEEPING = 80, 32
"""The most registers of a thread that keeps rows in them, and those in addition to the largest
row."""


def bounds(held: Mapping[Node, Space | None], threads: int, given: int, full: bool) -> str:
    """Return the launch bounds of a kernel: threads per block, and blocks per multiprocessor.

    With `full`, as many threads as a multiprocessor can hold.

    >>> bounds({}, 256, 0, False), bounds({}, 160, 0, True)
    ('256', '160, HELD_THREADS/160')
    """
    blocks = at_once(held, threads, given)
    if full and blocks == 1:
        return f"{threads}, HELD_THREADS/{threads}"
    return f"{threads}, {blocks}" if blocks > 1 else f"{threads}"


def at_once(held: Mapping[Node, Space | None], threads: int, given: int) -> int:
    """Return the blocks per multiprocessor for so many threads per block, 1 where left open.

    `held` are the nodes of a kernel with their spaces, `given` the bytes of dynamic shared memory.
    """
    rows = [node for node, space in held.items() if space == "registers"]
    if rows:
        words = (node.bytes // min(node.dtype.itemsize, WORD) for node in rows)
        registers = min(MOST_KEEPING, KEEPING + max(words))
        return REGISTERS // (registers * threads)
    return 2 if "rows" in held.values() and not given else 1
