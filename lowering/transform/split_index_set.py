"""Loops whose rounds need each other by few of them, or by some of their statements, in parts.

    for i in 0..n: s[i] = s[i-1] + x[i]; t[i] = s[i] * 2
    becomes
    for i in 0..n: s[i] = s[i-1] + x[i]
    for i in 0..n: t[i] = s[i] * 2

where no round reads or writes what an earlier statement of a later round uses, see `separated`; and

    for i in 0..n: d[i] = min(d[i], d[k] + x[i])          0 <= k < n
    becomes
    for i in 0..k: ...
    for i in k..k+1: ...
    for i in k+1..n: ...

where no rounds but those of one place, whose element all others use, need others, see `sections`.
Either leaves every element as it is: what is done to it is done in the same order.

>>> program = lowered('''
... for k in range(9):
...     for i in range(9):
...         d[i] = d[k] * x[k, i]
... ''', d="f32[9]", x="f32[9, 9]")
>>> made = sections(program, facts_of(program))
>>> for stmt in made.kernels[0].body[0].body:
...     print(stmt.lo, stmt.hi)
0 k
k k + 1
k + 1 9
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ...base.dataclass import dataclass
from ..analysis.accesses import accesses
from ..analysis.accumulators import sums
from ..analysis.conflicting_iterations import shared_places
from ..analysis.cost import is_large
from ..analysis.dependence import overtakes
from ..analysis.parallel_band import Facts, facts_of, fails, trips
from ..analysis.subscripts import ranges
from ..ir.assignments import Alloc, Break, Continue, Let, Permute, Print
from ..ir.bounds import Bounds, bounds_of
from ..ir.loops import Check, Comment, For, Program, Stmt
from ..ir.rewrite import over_kernels, with_bodies
from ..ir.walk import bodies, reads, statements, uses, writes
from ..thresholds import WORTH
from .renaming import with_own


def in_sections(program: Program) -> Program:
    """Return the program with such loops, each of which has temporaries of its own."""
    made = sections(program, facts_of(program))
    loops = [s for kernel in made.kernels for s in statements(kernel.body) if isinstance(s, For)]
    times = Counter(loop.symbol for loop in loops)
    while made is not program:  # from the outside in: what has its own is not looked into
        program, made = made, with_own(made, lambda loop: times[loop.symbol] > 1)
    return made


def sections(program: Program, facts: Facts) -> Program:
    """Return the program with loops in sections before, at and behind the place that others use."""
    known = bounds_of(parameter.node for parameter in program.parameters)
    work = _Sections(facts)
    return over_kernels(program, lambda body: work.body(body, known, ()))


@dataclass(frozen=True, slots=True)
class _Sections:
    """The work on one program."""

    facts: Facts

    def body(self, body: Sequence[Stmt], known: Bounds, outer: tuple[For, ...]) -> tuple[Stmt, ...]:
        """Return statements with the loops among and inside them in sections."""
        return tuple(made for stmt in body for made in self.statement(stmt, known, outer))

    def statement(self, stmt: Stmt, known: Bounds, outer: tuple[For, ...]) -> tuple[Stmt, ...]:
        """Return what takes the place of a statement."""
        if not isinstance(stmt, For):
            lists = tuple(self.body(one, known, outer) for one in bodies(stmt))
            return (with_bodies(stmt, lists),)
        inner = self.body(stmt.body, known.inside(stmt), (*outer, stmt))
        made = with_bodies(stmt, (inner,))
        own = self.facts.private(stmt)
        if made is not stmt:
            self.facts.tell((made,), self.facts.only_in(stmt))
        if fails((made,)) or self.facts.is_free(made, own, ranges(outer)):
            return (made,)
        if sums(made, own, self.facts) or (trips(made) or WORTH) < WORTH or is_large(made):
            return (made,)
        for place in shared_places(made, known):
            before, there, behind = (
                replace(made, lo=lo, hi=hi)
                for lo, hi in ((made.lo, place), (place, place + 1), (place + 1, made.hi))
            )
            parts = (before, behind)
            if all(self.facts.is_free(part, own, ranges(outer)) for part in parts):
                self.facts.tell((before, there, behind), self.facts.only_in(stmt))
                return before, there, behind
        return (made,)


# ------------------------------------------------------------------------- statement by statement


def separated(loop: For, facts: Facts) -> tuple[For, ...] | None:
    """Return a loop for each part of a loop's statements, None where they stay together."""
    halts = Print, Permute, Alloc, Break, Continue, Check
    if loop.kind != "serial" or any(isinstance(s, halts) for s in statements(loop.body)):
        return None
    starts = [0, *(at for at in range(1, len(loop.body)) if _is_cut(loop, at)), len(loop.body)]
    parts = [loop.body[lo:hi] for lo, hi in zip(starts, starts[1:], strict=False)]
    if len(parts) < 2:
        return None
    made = tuple(replace(loop, body=part) for part in parts)
    facts.tell(made, facts.only_in(loop))
    return made


def separated_within(loop: For, facts: Facts) -> tuple[For, ...] | None:
    """Return a nest for each part of what the only loop inside of a loop does, None where that
    stays together."""
    inside = [stmt for stmt in loop.body if not isinstance(stmt, Comment)]
    if len(inside) != 1 or not isinstance(inside[0], For):
        return None
    parts = separated(inside[0], facts)
    if parts is None:
        return None
    made = replace(loop, body=parts)
    facts.tell((made,), facts.only_in(loop))
    return separated(made, facts)


def _is_cut(loop: For, at: int) -> bool:
    """Whether all rounds may do what stands before a place before any does what stands behind."""
    first, second = loop.body[:at], loop.body[at:]
    if isinstance(first[-1], Comment):
        return False
    named = {stmt.symbol for stmt in first if isinstance(stmt, Let)}
    if named & {symbol for stmt in statements(second) for symbol in uses(stmt)}:
        return False
    changed = {node for part in (first, second) for node in writes(part)}
    both = {*reads(first), *writes(first)} & {*reads(second), *writes(second)} & changed
    if any(not node.rank for node in both):
        return False
    found = accesses((loop,))
    for node in both:
        sites = found.of(node)
        early = [site for site in sites if site.route[1][0] < at]
        late = [site for site in sites if site.route[1][0] >= at]
        for one in late:
            for other in early:
                if (one.writes or other.writes) and overtakes(loop, one, other):
                    return False
    return True
