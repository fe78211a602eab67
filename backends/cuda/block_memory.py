"""The memory that the threads of a block share: declared by a kernel, or given by its launch.

A kernel may declare 48 KB. One that needs more takes all of its arrays out of the bytes that a
launch gives it, in order, each at a multiple of 1,024 bytes: no unit that reads a tile wants more.

>>> from ...lowering.ir import dtypes
>>> from ...lowering.ir.indexing import const
>>> first = Node(1, "first", (const(50),), dtypes.float32)
>>> second = Node(2, "second", (const(128), const(64)), dtypes.float64)
>>> laid_out((first,)), laid_out((first, second))
(({}, 0), ({1: 0, 2: 1024}, 66560))
"""

from __future__ import annotations

from collections.abc import Sequence

from ...lowering.ir.node import Node

DECLARED = 48 * 1024
"""Bytes that a kernel may declare."""
FLAGS = 16
"""Bytes of them that are kept for what is declared in any case: whether a thread has failed."""
ALIGNMENT = 1024
"""Where arrays begin that a launch gives."""


def laid_out(nodes: Sequence[Node]) -> tuple[dict[int, int], int]:
    """Return where each array begins in the bytes that a launch gives, and how many these are.

    Nothing, and 0, where all can be declared.
    """
    if sum(-(-room(node) // FLAGS) * FLAGS for node in nodes) <= DECLARED - FLAGS:
        return {}, 0
    places, end = {}, 0
    for node in nodes:
        places[node.id] = -(-end // ALIGNMENT) * ALIGNMENT
        end = places[node.id] + room(node)
    return places, end


def room(node: Node) -> int:
    """Return the bytes that an array takes: there is no array of none."""
    return max(node.bytes, node.dtype.itemsize)
