"""Loop distribution of points with several nests, where a block has no room for their temporaries.

    for b: for i, j: s[i, j] = ...; for i, d: y[b, i, d] = ... s[i, j] ...
    becomes
    for b: for i, j: s[b, i, j] = ...
    for b: for i, d: y[b, i, d] = ... s[b, i, j] ...

The points of a band are independent, so all of them may execute one part before any executes the
next. Temporaries that are live from one part to another are expanded by an axis for each loop over
points. It is done where these exceed the shared memory of a block, or where a part is a contraction
that fills tiles: it has more parallelism than the points.

>>> program = lowered('''
... s[b, i, j] = sum[k](x[b, i, k] * x[b, j, k])
... m[b, i] = max(s[b, i, j])
... y[b, i] = sum[j](exp(s[b, i, j] - m[b, i]))
... ''', y="f32[4, 200]", x="f32[4, 200, 30]")
>>> program = optimize(program, Target("cuda"))[0]
>>> facts, nodes = facts_of(program), {node.id: node for node in program.locals}
>>> nest = find_band(program.kernels[0].body[1], facts)
>>> [len(part.body) for part in distribute_nests(nest, facts, fresh_for(program), nodes) or ()]
[1, 2]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from .. import thresholds
from ..analysis.dependence import has_early_exit
from ..analysis.parallel_band import (
    Band,
    Facts,
    find_band,
    has_checks,
    nest_loops,
    static_trip_count,
)
from ..ir.expressions import Index
from ..ir.fresh import Fresh
from ..ir.indexing import Affine, var
from ..ir.loops import Comment, For, Stmt
from ..ir.node import Node
from ..transform.remap import Element, remap_accesses
from .gemm.contraction import iteration_count, match_contraction
from .reductions.segmented import find_carried, group_ranges, shares_symbols
from .thread_block import is_thread_loop


def distribute_nests(
    nest: Band, facts: Facts, fresh: Fresh, nodes: Mapping[int, Node]
) -> tuple[For, ...] | None:
    """Return a nest over all points for each part, None without a gain or without memory.

    Points that contain checks stay whole: of several failures the first is reported. So do points
    that a `continue` may end early, as no later part would know.
    """
    is_static = all(loop.step == 1 and static_trip_count(loop) for loop in nest.free)
    if nest.serial or not is_static or has_checks(nest.inner) or has_early_exit(nest.inner):
        return None
    body = nest.inner
    parts = _split_at_nests(body, facts)
    if len(parts) < 2 or shares_symbols(parts):
        return None
    if not exceeds_shared_memory([nodes[number] for number in nest.private]) and not any(
        fills_tiles(part, facts) for part in parts
    ):
        return None
    crossing = find_carried(parts, nest.private)
    expanded = _expand_nodes([nodes[number] for number in sorted(crossing)], nest.free, fresh)
    if expanded is None:
        return None
    out = []
    for part in parts:
        (loop,) = nest_loops(
            nest.free, remap_accesses(part, _ExpandedAccesses(expanded, nest.free))
        )
        assert isinstance(loop, For)
        facts.tell((loop,), nest.private - crossing)
        out.append(loop)
    return tuple(out)


def _split_at_nests(body: Sequence[Stmt], facts: Facts) -> list[tuple[Stmt, ...]]:
    """Return statements as parts: each distributable nest alone, after its comments."""
    out: list[tuple[Stmt, ...]] = []
    pending: tuple[Stmt, ...] = ()
    for lo, hi in group_ranges([is_distributable_nest(stmt, facts) for stmt in body]):
        pending = (*pending, *body[lo:hi])
        if any(not isinstance(stmt, Comment) for stmt in pending):
            out.append(pending)
            pending = ()
    return out


def is_distributable_nest(stmt: Stmt, facts: Facts) -> bool:
    """Whether a statement is a loop that is distributed over threads."""
    return isinstance(stmt, For) and is_thread_loop(stmt, facts)


def exceeds_shared_memory(nodes: Sequence[Node]) -> bool:
    """Whether the arrays of a point exceed the shared memory of a block."""
    arrays = [node for node in nodes if node.rank]
    if any(node.static_shape is None for node in arrays):
        return False
    return sum(node.bytes for node in arrays) > thresholds.MAX_BLOCK_SHARED_BYTES


def fills_tiles(part: Sequence[Stmt], facts: Facts) -> bool:
    """Whether part of a point is a contraction with at least one tile of elements."""
    loops = [stmt for stmt in part if not isinstance(stmt, Comment)]
    if len(loops) != 1 or not isinstance(loops[0], For):
        return False
    inner = find_band(loops[0], facts)
    gemm = None if inner is None else match_contraction(inner)
    sides = [] if gemm is None else [iteration_count(gemm.rows), iteration_count(gemm.columns)]
    return bool(sides) and all(size is not None and size >= thresholds.TILE_SIDE for size in sides)


def _expand_nodes(
    nodes: Sequence[Node], free: Sequence[For], fresh: Fresh
) -> dict[int, Node] | None:
    """Return arrays expanded by leading axes for loops, by id; None where memory is too small."""
    counts = [static_trip_count(loop) or 0 for loop in free]
    if any(node.static_shape is None for node in nodes):
        return None
    if prod(counts) * sum(node.bytes for node in nodes) > thresholds.MAX_EXPANDED_BYTES:
        return None
    return {
        node.id: fresh.array(node.label, (*counts, *(node.static_shape or ())), node.dtype)
        for node in nodes
    }


class _ExpandedAccesses:
    """Redirects accesses of a point's temporaries to the expanded arrays of all points."""

    def __init__(self, expanded: Mapping[int, Node], free: Sequence[For]) -> None:
        self.expanded = expanded
        self.positions: tuple[Affine, ...] = tuple(var(loop.symbol) - loop.lo for loop in free)

    def __call__(self, node: Node, index: tuple[Index, ...]) -> Element:
        target = self.expanded.get(node.id)
        return (node, index) if target is None else (target, (*self.positions, *index))
