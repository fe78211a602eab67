"""Shared memory of a block: static, or dynamic where it exceeds the static limit.

A kernel may declare 48 KB statically. A larger one places all of its arrays in dynamic shared
memory, in order, each aligned to 1,024 bytes, the greatest alignment of hardware that reads tiles.

>>> from ...lowering.ir import dtypes
>>> from ...lowering.ir.indexing import const
>>> first = Node(1, "first", (const(50),), dtypes.float32)
>>> second = Node(2, "second", (const(128), const(64)), dtypes.float64)
>>> layout_shared((first,)), layout_shared((first, second))
(({}, 0), ({1: 0, 2: 1024}, 66560))
"""

from __future__ import annotations

from collections.abc import Sequence

from ...lowering.ir.node import Node

MAX_STATIC_BYTES = 48 * 1024
"""The limit of static shared memory in bytes."""
RESERVED_BYTES = 16
"""Bytes of it that are reserved for the fault flag."""
ALIGNMENT = 1024
"""The alignment of arrays in dynamic shared memory."""


def layout_shared(nodes: Sequence[Node]) -> tuple[dict[int, int], int]:
    """Return the offsets of arrays in dynamic shared memory by node id, and its size in bytes.

    ({}, 0) where all fit into static shared memory.
    """
    if (
        sum(-(-array_size(node) // RESERVED_BYTES) * RESERVED_BYTES for node in nodes)
        <= MAX_STATIC_BYTES - RESERVED_BYTES
    ):
        return {}, 0
    offsets, end = {}, 0
    for node in nodes:
        offsets[node.id] = -(-end // ALIGNMENT) * ALIGNMENT
        end = offsets[node.id] + array_size(node)
    return offsets, end


def array_size(node: Node) -> int:
    """Return the size of an array in bytes, at least that of one element."""
    return max(node.bytes, node.dtype.itemsize)
