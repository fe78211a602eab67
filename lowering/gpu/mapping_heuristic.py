"""Heuristics of the mapping of a band: a thread or a block for each point, or steps of the host.

Analysis only.

>>> program = lowered("y[i] = sum[j](x[i, j])", y="f32[64]", x="f32[64, 900]")
>>> program = optimize(program, Target("cuda"))[0]
>>> facts, nodes = facts_of(program), {node.id: node for node in program.locals}
>>> prefers_blocks(find_band(program.kernels[0].body[1], facts), facts, nodes)
True
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from .. import thresholds
from ..analysis.parallel_band import Band, Facts, contiguity_score, static_trip_count
from ..ir.loops import For
from ..ir.node import Node
from ..ir.walk import statements
from .reductions.segmented import is_wide
from .thread_block import is_thread_loop


def prefers_host(nest: Band, loop: For, facts: Facts) -> bool:
    """Whether the host should run a sequential loop: few points, each with long parallel loops."""
    if not nest.serial or loop.symbol != nest.serial[0].symbol:
        return False
    many = thresholds.MIN_OCCUPYING_SEGMENTS
    count = prod(many if (one := static_trip_count(free)) is None else one for free in nest.free)
    return count < many and any(is_wide(stmt, facts) for stmt in statements(nest.inner))


def prefers_blocks(nest: Band, facts: Facts, nodes: Mapping[int, Node]) -> bool:
    """Whether the loops inside the points are worth distributing over the threads of a block."""
    inner = [
        stmt for stmt in statements(nest.inner)
        if isinstance(stmt, For)
        and static_trip_count(stmt) not in range(thresholds.MIN_BLOCK_LOOP_ITERATIONS)
        and is_thread_loop(stmt, facts)
    ]  # fmt: skip
    private = [nodes[number] for number in nest.private]
    if any(
        n.static_shape is None or (n.rank and n.bytes > thresholds.MAX_THREAD_PRIVATE_BYTES)
        for n in private
    ):
        return True
    if not inner:
        return False
    points = 1
    for loop in nest.free:
        count = static_trip_count(loop)
        points *= thresholds.MAX_SEQUENTIAL_POINTS if count is None else count
    if points < thresholds.MIN_OCCUPYING_POINTS:
        return True
    is_static = all(static_trip_count(loop) is not None for loop in inner)
    outer_score = max(
        contiguity_score(inner if is_static else nest.inner, loop.symbol) for loop in nest.free
    )
    return max(_locality_score(loop) for loop in inner) > outer_score


def _locality_score(loop: For) -> int:
    """Return how contiguous the accesses are if a loop, or one directly in it, is distributed."""
    loops = [stmt for stmt in statements((loop,)) if isinstance(stmt, For)]
    return max(contiguity_score(one.body, one.symbol) for one in loops)
