"""How many blocks of a kernel a multiprocessor is to hold at once: what its compiler is told.

It then gives each thread as many registers as that leaves, so that one block computes while another
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
"""Those of a multiprocessor."""
WORD = 4
"""Bytes of a register."""
MOST_KEEPING, KEEPING = 80, 32
"""Registers of a thread that keeps rows in them, at most, and those beside the largest row."""


def bounds(held: Mapping[Node, Space | None], threads: int, given: int, full: bool) -> str:
    """Return what a compiler is told of a kernel: its threads, and how many blocks are to be held.

    Where it is to be `full` a multiprocessor has as many threads as it can.

    >>> bounds({}, 256, 0, False), bounds({}, 160, 0, True)
    ('256', '160, HELD_THREADS/160')
    """
    blocks = at_once(held, threads, given)
    if full and blocks == 1:
        return f"{threads}, HELD_THREADS/{threads}"
    return f"{threads}, {blocks}" if blocks > 1 else f"{threads}"


def at_once(held: Mapping[Node, Space | None], threads: int, given: int) -> int:
    """Return how many blocks of so many threads are to be held, 1 where that is left open.

    `held` are the arrays of a kernel with where they are, `given` the bytes that a launch gives to
    each block.
    """
    rows = [node for node, space in held.items() if space == "registers"]
    if rows:
        words = (node.bytes // min(node.dtype.itemsize, WORD) for node in rows)
        each = min(MOST_KEEPING, KEEPING + max(words))
        return REGISTERS // (each * threads)
    return 2 if "rows" in held.values() and not given else 1
