"""Points whose neighbours are neighbours in memory, with long sums: parts of them by more threads.

    for j in 0..m: before; for i in 0..n: total += f(i, j); after
    becomes
    for g in 0..G, j in 0..m: part = 0; for i in g*C..(g+1)*C: part += f(i, j); parts[g, j] = part
    for j in 0..m: before; for g in 0..G: total += parts[g, j]; after

so that a device that reads along `j`, each thread a column, has enough threads. A sum that needs
what the points have found before begins nests of its own, and temporaries that are carried from one
to another get an axis for the points. G depends on the sizes only, so every device gives the same
bits.

>>> program = lowered("y[j] = sum[i](x[i, j]) * 2", y="f32[700]", x="f32[9000, 700]")
>>> program = optimize(program, Target("cuda"))[0]
>>> facts = facts_of(program)
>>> nests = columns(band(program.kernels[0].body[1], facts), facts, fresh_for(program),
...     {node.id: node for node in program.locals})
>>> [isinstance(nest, Made) for nest in nests]
[True, False]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from math import prod

from ....base.dataclass import dataclass
from ...analysis.accumulators import sums
from ...analysis.parallel_band import Band, Facts, around, fails, nest_of, trips
from ...ir.fresh import Fresh
from ...ir.indexing import Affine, const, var
from ...ir.loops import For, Stmt
from ...ir.node import Node
from ...ir.walk import reads, writes
from ...transform.strip_mine import chunk, evened
from ..thread_points import FEW, PRIVATE_BYTES, Made, dealt, expanded, normalised
from .segmented import carried, is_along, shares_symbols
from .split_reduction import Own, moved

THREADS = 1 << 18
"""So many threads are enough for a device; with more points nothing is cut."""
TERMS = 32
"""A thread sums at least so many terms."""
WORTH = 1 << 20
"""So many terms in all are worth a kernel more."""


def columns(
    found: Band, facts: Facts, fresh: Fresh, nodes: Mapping[int, Node]
) -> tuple[Made | For, ...] | None:
    """Return kernels of parts of sums, and nests, in order; None where nothing is gained by that.

    Where checks may fail a band stays whole: of several the first is told.
    """
    counts = [trips(loop) for loop in found.free]
    if None in counts or not FEW <= prod(map(_known, counts)) < THREADS or fails(found.inner):
        return None
    free, body = normalised(found, fresh)
    facts.tell(body, found.private)
    work = _Cut(free, facts, fresh, nodes)
    for stmt, before in zip(body, found.inner, strict=True):
        work.add(stmt, is_along(before, found.free))
    work.close()
    if not any(part.is_of_sums for part in work.parts):
        return None
    bodies = [part.body for part in work.parts]
    if shares_symbols(bodies):
        return None
    shared = carried(bodies, found.private)
    if shared:
        whole = tuple(stmt for one in bodies for stmt in one)
        large = [nodes[number] for number in sorted(shared)]
        expansion = expanded(whole, large, free, fresh)
        if expansion is None:
            return None
        rest = iter(expansion)
        bodies = [tuple(next(rest) for _ in one) for one in bodies]
    return tuple(
        work.nest(part, one, found.private - shared)
        for part, one in zip(work.parts, bodies, strict=True)
    )


def _known(count: int | None) -> int:
    return count or 0


@dataclass(frozen=True, slots=True)
class _Part:
    """What becomes a nest over the points."""

    body: tuple[Stmt, ...]
    group: For | None = None
    """The loop around the points where it is parts of sums."""
    private: frozenset[int] = frozenset()
    """The temporaries of each thread that sums a part."""

    @property
    def is_of_sums(self) -> bool:
        return self.group is not None


@dataclass(slots=True)
class _Cut:
    """What points do, statement by statement, as parts of nests of their own."""

    free: Sequence[For]
    facts: Facts
    fresh: Fresh
    nodes: Mapping[int, Node]
    parts: list[_Part] = field(default_factory=list)
    together: list[Stmt] = field(default_factory=list)
    """The statements of the nest that is not closed: all that may be done after the last sums."""
    found: set[int] = field(default_factory=set)
    """The scalars of what puts parts together, for each point."""

    def add(self, stmt: Stmt, along: bool) -> None:
        """Add a statement; in the place of a long sum `along` points stands then that of parts."""
        made = self.summed(stmt) if along and isinstance(stmt, For) else None
        if made is None:
            self.together.append(stmt)
            return
        part, whole, accumulators = made
        used = _nodes((stmt,)) - accumulators
        written = _written((stmt,)) - accumulators
        if used & _written(self.together) or written & _nodes(self.together):
            self.close()
        self.parts.append(part)
        self.together += whole

    def close(self) -> None:
        """End the nest that is not closed, which comes after the sums that it uses."""
        if self.together:
            self.parts.append(_Part(tuple(self.together)))
            self.together = []

    def summed(self, loop: For) -> tuple[_Part, list[Stmt], frozenset[int]] | None:
        """Return the parts of the sums of a loop, the loops that sum these, and to what they add;
        None where it is no long sum, or not worth it."""
        loops, body = nest_of(loop)
        sizes = [trips(one) for one in loops]
        points = prod(_known(trips(one)) for one in self.free)
        terms = prod(2**30 if size is None else size for size in sizes)
        count = min(THREADS // points, terms // TERMS)
        own = self.facts.private(loop)
        if points * terms < WORTH or count < 2:
            return None
        found = sums(loop, own, self.facts)
        if not found or not all(self.is_small(number) for number in own):
            return None
        at = 0 if any(one.pair for one in found) else _largest(sizes)
        if (size := sizes[at]) is not None:
            count = min(count, size)
        group = self.fresh.symbol("part")
        inside = around(loops[at + 1 :], body)
        part, inside = chunk(loops[at], group, count, inside, self.fresh)
        part = evened(part, loops[at], count)
        places = [var(one.symbol) - one.lo for one in self.free]
        shape = (count, *(_known(trips(one)) for one in self.free))

        def place(number: Affine) -> tuple[Affine, ...]:
            return (number, *places)

        mine = [Own(one, self.fresh, shape, place) for one in found]
        inner = moved(around((*loops[:at], part), inside), mine)
        starts = tuple(stmt for one in mine for stmt in one.start())
        ends = tuple(stmt for one in mine for stmt in one.end(group))
        private = own | {node.id for one in mine for node in one.scalars}
        around_it = For(group, const(0), const(count), 1, ())
        accumulators = frozenset(access.node.id for one in found for access in one.accesses)
        known = len(self.fresh.nodes)
        wholes = [stmt for one in mine for stmt in one.ends_of(self.fresh, count)]
        self.found |= {node.id for node in self.fresh.nodes[known:]}
        return _Part((*starts, *inner, *ends), around_it, private), wholes, accumulators

    def is_small(self, number: int) -> bool:
        """Whether each thread may have a temporary."""
        node = self.nodes[number]
        return node.static_shape is not None and (not node.rank or node.bytes <= PRIVATE_BYTES)

    def nest(self, part: _Part, body: tuple[Stmt, ...], private: frozenset[int]) -> Made | For:
        """Return the kernel of parts of sums, or a nest over all points, known to the facts."""
        if part.group is not None:
            kernel = dealt([part.group, *self.free], body, self.fresh)
            return Made((kernel,), dict.fromkeys(part.private, "private"))
        (loop,) = around(self.free, body)
        assert isinstance(loop, For)
        self.facts.tell((loop,), private | self.found)
        return loop


def _largest(sizes: Sequence[int | None]) -> int:
    return max(range(len(sizes)), key=lambda at: 2**40 if (n := sizes[at]) is None else n)


def _nodes(body: Sequence[Stmt]) -> frozenset[int]:
    """Return the ids of what statements read or write."""
    return frozenset(node.id for node in (*reads(body), *writes(body)))


def _written(body: Sequence[Stmt]) -> frozenset[int]:
    return frozenset(node.id for node in writes(body))
