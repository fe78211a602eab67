"""What is better for a band: points for threads, points for blocks, or steps of the host.

It changes nothing.

>>> program = lowered("y[i] = sum[j](x[i, j])", y="f32[64]", x="f32[64, 900]")
>>> program = optimize(program, Target("cuda"))[0]
>>> facts, nodes = facts_of(program), {node.id: node for node in program.locals}
>>> prefers_rows(band(program.kernels[0].body[1], facts), facts, nodes)
True
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from ..analysis.parallel_band import Band, Facts, favours, trips
from ..ir.loops import For
from ..ir.node import Node
from ..ir.walk import statements
from .host_code import SMALL
from .reductions.segmented import MANY, is_wide
from .thread_block import LONG, is_shared
from .thread_points import PRIVATE_BYTES

POINTS = 2048
"""With fewer points the loops inside of them are dealt out, too."""


def is_by_steps(found: Band, loop: For, facts: Facts) -> bool:
    """Whether a loop in the order of the program has few points, but much to do for each of them
    that could be dealt out, too: the host does it then."""
    if not found.serial or loop.symbol != found.serial[0].symbol:
        return False
    count = prod(MANY if (one := trips(free)) is None else one for free in found.free)
    return count < MANY and any(is_wide(stmt, facts) for stmt in statements(found.inner))


def prefers_rows(found: Band, facts: Facts, nodes: Mapping[int, Node]) -> bool:
    """Whether the loops inside of points are worth being dealt out, too."""
    inner = [
        stmt for stmt in statements(found.inner)
        if isinstance(stmt, For) and trips(stmt) not in range(LONG) and is_shared(stmt, facts)
    ]  # fmt: skip
    own = [nodes[number] for number in found.private]
    if any(n.static_shape is None or (n.rank and n.bytes > PRIVATE_BYTES) for n in own):
        return True
    if not inner:
        return False
    total = 1
    for loop in found.free:
        total *= SMALL if (count := trips(loop)) is None else count
    if total < POINTS:
        return True
    known = all(trips(loop) is not None for loop in inner)
    outside = max(favours(inner if known else found.inner, loop.symbol) for loop in found.free)
    return max(_best(loop) for loop in inner) > outside


def _best(loop: For) -> int:
    """Return how much it is worth that a loop, or one directly in it, is dealt out."""
    inside = [stmt for stmt in statements((loop,)) if isinstance(stmt, For)]
    return max(favours(one.body, one.symbol) for one in inside)
