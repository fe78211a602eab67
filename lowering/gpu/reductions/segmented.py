"""Segmented reductions: points with a long sum each, too few of them for a device, in many blocks.

    for j in 0..m: before; for i in 0..n: total += f(i, j); after; for i in 0..n: y[j, i] = ...
    becomes
    for j in 0..m: before
    for j in 0..m: for i in 0..n: total[j] += f(i, j)      many blocks for each j
    for j in 0..m: after
    for j in 0..m: for i in 0..n: y[j, i] = ...

The blocks of a sum: see `split_reduction`. Temporaries that are live from one of these nests to
another are expanded by an axis for the points. Whether it is done, and the number of blocks,
depends on the sizes only. Statements between the sums may be executed later, together with the
combination of partial sums, as long as nothing before needs them.

>>> program = lowered("y[j] = sum[i](x[i, j]) * 2", y="f32[3]", x="f32[90000, 3]")
>>> program = optimize(program, Target("cuda"))[0]
>>> facts = facts_of(program)
>>> [len(part.sums) for part in split_segments(find_band(program.kernels[0].body[1], facts), facts,
...     fresh_for(program), {node.id: node for node in program.locals})]
[0, 1, 0]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from ....base.dataclass import dataclass
from ... import thresholds
from ...analysis.accumulators import Accumulator, find_accumulators
from ...analysis.dependence import has_early_exit
from ...analysis.parallel_band import (
    Band,
    Facts,
    contiguity_score,
    count_uses,
    find_band,
    has_checks,
    perfect_nest,
    static_trip_count,
)
from ...ir.assignments import Let
from ...ir.fresh import Fresh
from ...ir.indexing import var
from ...ir.loops import For, Stmt, Update
from ...ir.node import Node
from ...ir.walk import statements, uses
from ...transform.remap import add_leading_axis
from ..thread_points import normalize_band
from .split_reduction import count_blocks


@dataclass(frozen=True, slots=True)
class Segment:
    """Part of the body of a band's points, as a nest of its own."""

    point: For
    """The loop over the points, with the part as its body."""
    sums: tuple[Accumulator, ...]
    """The accumulators of its only statement, if that is a reduction for many blocks."""
    wide: bool = False
    """Whether its only statement is a loop that is distributed together with the points."""

    @property
    def loop(self) -> For:
        """The loop of the reduction."""
        (loop,) = self.point.body
        assert isinstance(loop, For)
        return loop


def split_segments(
    nest: Band, facts: Facts, fresh: Fresh, nodes: Mapping[int, Node]
) -> tuple[Segment, ...] | None:
    """Return the segments of a band in order, None where nothing is gained by that.

    A band that contains checks stays whole: of several failures the first is reported. So does one
    whose points a `continue` may end early, as no later segment would know.
    """
    many = thresholds.MIN_OCCUPYING_SEGMENTS
    count = prod(many if (size := static_trip_count(loop)) is None else size for loop in nest.free)
    if nest.serial or not 0 < count < many or has_checks(nest.inner) or has_early_exit(nest.inner):
        return None
    if not any(_find_long_sums(stmt, facts, count) or is_wide(stmt, facts) for stmt in nest.inner):
        return None
    if count >= thresholds.MIN_UNCOLLAPSED_ITERATIONS and any(
        is_contiguous_in_points(stmt, nest.free) for stmt in nest.inner
    ):
        return None
    free, body = normalize_band(nest, fresh)
    if len(free) > 1:
        return None
    facts.tell(body, nest.private)
    wide = [is_wide(stmt, facts) for stmt in body]
    parts = group_ranges(
        [is_far or bool(_find_long_sums(stmt, facts, count)) for stmt, is_far in zip(body, wide)]
    )
    if shares_symbols([body[lo:hi] for lo, hi in parts]):
        return None
    crossing = find_carried([body[lo:hi] for lo, hi in parts], nest.private)
    crossing |= find_paired_values(body, crossing) & nest.private
    large = [nodes[number] for number in sorted(crossing)]
    expanded = expand_over_points(body, large, free[0], fresh) if large else body
    if expanded is None:
        return None
    facts.tell(expanded, nest.private - crossing)
    out = []
    for lo, hi in parts:
        point = replace(free[0], body=expanded[lo:hi])
        facts.tell((point,), nest.private - crossing)
        is_single = hi == lo + 1
        out.append(
            Segment(
                point,
                _find_long_sums(expanded[lo], facts, count) if is_single else (),
                is_single and wide[lo],
            )
        )
    return tuple(out)


def expand_over_points(
    body: tuple[Stmt, ...], nodes: Sequence[Node], point: For, fresh: Fresh
) -> tuple[Stmt, ...] | None:
    """Return statements with temporaries expanded by a leading axis for the points; None where that
    takes too much memory, or sizes are dynamic."""
    count = static_trip_count(point)
    if count is None or any(node.static_shape is None for node in nodes):
        return None
    if count * sum(node.bytes for node in nodes) > thresholds.MAX_EXPANDED_BYTES:
        return None
    return add_leading_axis(body, nodes, count, var(point.symbol) - point.lo, fresh)


def is_wide(stmt: Stmt, facts: Facts) -> bool:
    """Whether a statement has enough independent iterations for several blocks for each point."""
    nest = find_band(stmt, facts) if isinstance(stmt, For) else None
    counts = (
        [] if nest is None or nest.serial else [static_trip_count(loop) or 0 for loop in nest.free]
    )
    return bool(counts) and prod(counts) >= 2 * thresholds.MIN_REDUCTION_BLOCK_TERMS


def _find_long_sums(stmt: Stmt, facts: Facts, points: int) -> tuple[Accumulator, ...]:
    """Return the accumulators of a statement whose sums are worth many blocks for each point."""
    if not isinstance(stmt, For) or count_blocks(stmt, points) < 2:
        return ()
    return find_accumulators(stmt, facts.private(stmt), facts)


def is_contiguous_in_points(stmt: Stmt, free: Sequence[For]) -> bool:
    """Whether accesses are contiguous in the points rather than in the loops of a statement."""
    if not isinstance(stmt, For):
        return False
    inside = max(contiguity_score((stmt,), loop.symbol) for loop in perfect_nest(stmt)[0])
    return max(contiguity_score((stmt,), loop.symbol) for loop in free) > inside


def group_ranges(separate: Sequence[bool]) -> list[tuple[int, int]]:
    """Return the ranges of statements that stay together: those between separate ones.

    >>> group_ranges([False, False, True, True, False])
    [(0, 2), (2, 3), (3, 4), (4, 5)]
    """
    out: list[tuple[int, int]] = []
    for at, is_separate in enumerate(separate):
        if is_separate or not out or separate[at - 1]:
            out.append((at, at + 1))
        else:
            out[-1] = (out[-1][0], at + 1)
    return out


def shares_symbols(parts: list[tuple[Stmt, ...]]) -> bool:
    """Whether a part uses a symbol that another one defines, such as a dynamic loop bound."""
    bound = [{stmt.symbol for stmt in part if isinstance(stmt, Let)} for part in parts]
    used = [{symbol for stmt in statements(part) for symbol in uses(stmt)} for part in parts]
    return any(
        defined & symbols
        for at, defined in enumerate(bound) for number, symbols in enumerate(used) if at != number
    )  # fmt: skip


def find_paired_values(body: tuple[Stmt, ...], positions: frozenset[int]) -> frozenset[int]:
    """Return the nodes of extreme values whose positions are in some temporaries."""
    updates = (stmt for stmt in statements(body) if isinstance(stmt, Update))
    pairs = ((update.access.node.id, update.pair) for update in updates if update.pair is not None)
    return frozenset(best for best, pair in pairs if pair.access.node.id in positions)


def find_carried(parts: Sequence[tuple[Stmt, ...]], private: frozenset[int]) -> frozenset[int]:
    """Return the temporaries of a point that more than one part uses."""
    used = Counter(number for part in parts for number in count_uses(part).keys() & private)
    return frozenset(number for number, times in used.items() if times > 1)
