"""Points with a long sum in each, but too few of them for a device: the sums by many blocks.

    for j in 0..m: before; for i in 0..n: total += f(i, j); after; for i in 0..n: y[j, i] = ...
    becomes
    for j in 0..m: before
    for j in 0..m: for i in 0..n: total[j] += f(i, j)      many blocks for each j, see `chunks`
    for j in 0..m: after
    for j in 0..m: for i in 0..n: y[j, i] = ...

Temporaries that are carried from one of these nests to another get an axis for the points. Whether
it is done, and into how many parts sums are taken, depends on the sizes only. What stands between
may be done later, together with what adds the parts, as long as nothing before needs it.

>>> program = lowered("y[j] = sum[i](x[i, j]) * 2", y="f32[3]", x="f32[90000, 3]")
>>> program = optimize(program, Target("cuda"))[0]
>>> facts = facts_of(program)
>>> [len(part.sums) for part in segments(band(program.kernels[0].body[1], facts), facts,
...     fresh_for(program), {node.id: node for node in program.locals})]
[0, 1, 0]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from ....base.dataclass import dataclass
from ...analysis.accumulators import Sum, sums
from ...analysis.parallel_band import Band, Facts, band, fails, favours, nest_of, trips, uses_of
from ...ir.assignments import Let
from ...ir.fresh import Fresh
from ...ir.indexing import var
from ...ir.loops import For, Stmt, Update
from ...ir.node import Node
from ...ir.walk import statements, uses
from ...thresholds import EXPANDED_BYTES
from ...transform.remap import with_front
from ..thread_points import FEW, normalised
from .split_reduction import ROUNDS, blocks_for

MANY = 256
"""So many points, of which each is a block's, are enough for a device."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Part of what the points of a band do, as a nest of its own."""

    point: For
    """The loop over the points, with the part as its body."""
    sums: tuple[Sum, ...]
    """What its only statement accumulates, if that is for many blocks."""
    wide: bool = False
    """Whether its only statement is a loop that is dealt out together with the points."""

    @property
    def loop(self) -> For:
        """The loop that sums."""
        (loop,) = self.point.body
        assert isinstance(loop, For)
        return loop


def segments(
    found: Band, facts: Facts, fresh: Fresh, nodes: Mapping[int, Node]
) -> tuple[Segment, ...] | None:
    """Return the parts of a band in order, None where nothing is gained by that.

    Where checks may fail it stays whole: of several the first is told.
    """
    count = prod(MANY if (one := trips(loop)) is None else one for loop in found.free)
    if found.serial or not 0 < count < MANY or fails(found.inner):
        return None
    if not any(_long(stmt, facts, count) or is_wide(stmt, facts) for stmt in found.inner):
        return None
    if count >= FEW and any(is_along(stmt, found.free) for stmt in found.inner):
        return None
    free, body = normalised(found, fresh)
    if len(free) > 1:
        return None
    facts.tell(body, found.private)
    wide = [is_wide(stmt, facts) for stmt in body]
    parts = cuts([far or bool(_long(stmt, facts, count)) for stmt, far in zip(body, wide)])
    if shares_symbols([body[lo:hi] for lo, hi in parts]):
        return None
    crossing = carried([body[lo:hi] for lo, hi in parts], found.private)
    crossing |= bests_of(body, crossing) & found.private
    large = [nodes[number] for number in sorted(crossing)]
    moved = with_axis(body, large, free[0], fresh) if large else body
    if moved is None:
        return None
    facts.tell(moved, found.private - crossing)
    out = []
    for lo, hi in parts:
        point = replace(free[0], body=moved[lo:hi])
        facts.tell((point,), found.private - crossing)
        one = hi == lo + 1
        out.append(Segment(point, _long(moved[lo], facts, count) if one else (), one and wide[lo]))
    return tuple(out)


def with_axis(
    body: tuple[Stmt, ...], large: Sequence[Node], point: For, fresh: Fresh
) -> tuple[Stmt, ...] | None:
    """Return statements with temporaries that have an axis in front for the points; None where
    that takes too much memory, or sizes are only known in the run."""
    count = trips(point)
    if count is None or any(node.static_shape is None for node in large):
        return None
    if count * sum(node.bytes for node in large) > EXPANDED_BYTES:
        return None
    return with_front(body, large, count, var(point.symbol) - point.lo, fresh)


def is_wide(stmt: Stmt, facts: Facts) -> bool:
    """Whether a statement has so many rounds, in any order, that each of a few points is worth
    several blocks."""
    found = band(stmt, facts) if isinstance(stmt, For) else None
    counts = [] if found is None or found.serial else [trips(loop) or 0 for loop in found.free]
    return bool(counts) and prod(counts) >= 2 * ROUNDS


def _long(stmt: Stmt, facts: Facts, points: int) -> tuple[Sum, ...]:
    """Return what a statement accumulates in a sum that is worth many blocks for each point."""
    if not isinstance(stmt, For) or blocks_for(stmt, points) < 2:
        return ()
    return sums(stmt, facts.private(stmt), facts)


def is_along(stmt: Stmt, free: Sequence[For]) -> bool:
    """Whether neighbours in memory are rather neighbouring points than neighbouring rounds."""
    if not isinstance(stmt, For):
        return False
    inside = max(favours((stmt,), loop.symbol) for loop in nest_of(stmt)[0])
    return max(favours((stmt,), loop.symbol) for loop in free) > inside


def cuts(alone: Sequence[bool]) -> list[tuple[int, int]]:
    """Return which statements stay together: those between others that are alone.

    >>> cuts([False, False, True, True, False])
    [(0, 2), (2, 3), (3, 4), (4, 5)]
    """
    out: list[tuple[int, int]] = []
    for at, one in enumerate(alone):
        if one or not out or alone[at - 1]:
            out.append((at, at + 1))
        else:
            out[-1] = (out[-1][0], at + 1)
    return out


def shares_symbols(parts: list[tuple[Stmt, ...]]) -> bool:
    """Whether a part uses a number that another one finds, as the bound of a loop that is data."""
    bound = [{stmt.symbol for stmt in part if isinstance(stmt, Let)} for part in parts]
    used = [{symbol for stmt in statements(part) for symbol in uses(stmt)} for part in parts]
    return any(
        found & symbols
        for at, found in enumerate(bound) for other, symbols in enumerate(used) if at != other
    )  # fmt: skip


def bests_of(body: tuple[Stmt, ...], positions: frozenset[int]) -> frozenset[int]:
    """Return where the best values are whose positions are in some temporaries."""
    updates = (stmt for stmt in statements(body) if isinstance(stmt, Update))
    pairs = ((one.access.node.id, one.pair) for one in updates if one.pair is not None)
    return frozenset(best for best, pair in pairs if pair.access.node.id in positions)


def carried(parts: Sequence[tuple[Stmt, ...]], private: frozenset[int]) -> frozenset[int]:
    """Return which temporaries of a point more than one part uses."""
    used = Counter(number for part in parts for number in uses_of(part).keys() & private)
    return frozenset(number for number, times in used.items() if times > 1)
