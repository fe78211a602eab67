"""Points that each do several nests: each nest for all points, where a block has no room for one.

    for b: for i, j: s[i, j] = ...; for i, d: y[b, i, d] = ... s[i, j] ...
    becomes
    for b: for i, j: s[b, i, j] = ...
    for b: for i, d: y[b, i, d] = ... s[b, i, j] ...

The points of a band are independent, so all of them may do one part before any does the next.
Temporaries that are carried from a part to another get an axis for each loop over points. It is
done where these are too large for the memory of a block, or where a part is a contraction that
fills tiles: then there is more to deal out than the points.

>>> program = lowered('''
... s[b, i, j] = sum[k](x[b, i, k] * x[b, j, k])
... m[b, i] = max(s[b, i, j])
... y[b, i] = sum[j](exp(s[b, i, j] - m[b, i]))
... ''', y="f32[4, 200]", x="f32[4, 200, 30]")
>>> program = optimize(program, Target("cuda"))[0]
>>> facts, nodes = facts_of(program), {node.id: node for node in program.locals}
>>> found = band(program.kernels[0].body[1], facts)
>>> [len(part.body) for part in distributed(found, facts, fresh_for(program), nodes) or ()]
[1, 2]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from ..analysis.parallel_band import Band, Facts, around, band, fails, trips
from ..ir.expressions import Index
from ..ir.fresh import Fresh
from ..ir.indexing import Affine, var
from ..ir.loops import Comment, For, Stmt
from ..ir.node import Node
from ..thresholds import EXPANDED_BYTES
from ..transform.remap import Place, elsewhere
from .gemm.contraction import SIDE, contraction, points_of
from .reductions.segmented import carried, cuts, shares_symbols
from .thread_block import SHARED_BYTES, is_shared


def distributed(
    found: Band, facts: Facts, fresh: Fresh, nodes: Mapping[int, Node]
) -> tuple[For, ...] | None:
    """Return a nest over all points for each part, None where nothing is gained, or no room is.

    Where checks may fail points stay whole: of several the first is told.
    """
    known = all(loop.step == 1 and trips(loop) for loop in found.free)
    if found.serial or not known or fails(found.inner):
        return None
    body = found.inner
    parts = _parts(body, facts)
    if len(parts) < 2 or shares_symbols(parts):
        return None
    if not is_large([nodes[number] for number in found.private]) and not any(
        fills_tiles(part, facts) for part in parts
    ):
        return None
    crossing = carried(parts, found.private)
    made = _with_axes([nodes[number] for number in sorted(crossing)], found.free, fresh)
    if made is None:
        return None
    out = []
    for part in parts:
        (loop,) = around(found.free, elsewhere(part, _Moved(made, found.free)))
        assert isinstance(loop, For)
        facts.tell((loop,), found.private - crossing)
        out.append(loop)
    return tuple(out)


def _parts(body: Sequence[Stmt], facts: Facts) -> list[tuple[Stmt, ...]]:
    """Return statements in parts: each nest alone, behind the comments in front of it."""
    out: list[tuple[Stmt, ...]] = []
    held: tuple[Stmt, ...] = ()
    for lo, hi in cuts([is_nest(stmt, facts) for stmt in body]):
        held = (*held, *body[lo:hi])
        if any(not isinstance(stmt, Comment) for stmt in held):
            out.append(held)
            held = ()
    return out


def is_nest(stmt: Stmt, facts: Facts) -> bool:
    """Whether a statement is a loop that threads would share."""
    return isinstance(stmt, For) and is_shared(stmt, facts)


def is_large(own: Sequence[Node]) -> bool:
    """Whether a block has no room for the arrays of a point."""
    arrays = [node for node in own if node.rank]
    if any(node.static_shape is None for node in arrays):
        return False
    return sum(node.bytes for node in arrays) > SHARED_BYTES


def fills_tiles(part: Sequence[Stmt], facts: Facts) -> bool:
    """Whether part of what a point does is a contraction with a tile of elements, or more."""
    loops = [stmt for stmt in part if not isinstance(stmt, Comment)]
    if len(loops) != 1 or not isinstance(loops[0], For):
        return False
    inner = band(loops[0], facts)
    made = None if inner is None else contraction(inner)
    sides = [] if made is None else [points_of(made.rows), points_of(made.columns)]
    return bool(sides) and all(size is not None and size >= SIDE for size in sides)


def _with_axes(own: Sequence[Node], free: Sequence[For], fresh: Fresh) -> dict[int, Node] | None:
    """Return arrays with an axis for each loop in front; None where they take too much memory."""
    counts = [trips(loop) or 0 for loop in free]
    if any(node.static_shape is None for node in own):
        return None
    if prod(counts) * sum(node.bytes for node in own) > EXPANDED_BYTES:
        return None
    return {
        node.id: fresh.array(node.label, (*counts, *(node.static_shape or ())), node.dtype)
        for node in own
    }


class _Moved:
    """Accesses of what a point has become those of what all points have."""

    def __init__(self, made: Mapping[int, Node], free: Sequence[For]) -> None:
        self.made = made
        self.places: tuple[Affine, ...] = tuple(var(loop.symbol) - loop.lo for loop in free)

    def __call__(self, node: Node, index: tuple[Index, ...]) -> Place:
        moved = self.made.get(node.id)
        return (node, index) if moved is None else (moved, (*self.places, *index))
