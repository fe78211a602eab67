"""Index-set splitting at conflicting iterations, and distribution of a loop's statements.

    for i in 0..n: s[i] = s[i-1] + x[i]; t[i] = s[i] * 2
    becomes
    for i in 0..n: s[i] = s[i-1] + x[i]
    for i in 0..n: t[i] = s[i] * 2

where no iteration depends on a later statement of an earlier iteration, see
`distribute_statements`; and

    for i in 0..n: d[i] = min(d[i], d[k] + x[i])          0 <= k < n
    becomes
    for i in 0..k: ...
    for i in k..k+1: ...
    for i in k+1..n: ...

where the only dependences are from and to one iteration, whose element all others read, see
`split_index_sets`. Either is bit-identical: each element is computed by the same operations in the
same order.

>>> program = lowered('''
... for k in range(9):
...     for i in range(9):
...         d[i] = d[k] * x[k, i]
... ''', d="f32[9]", x="f32[9, 9]")
>>> made = split_index_sets(program, facts_of(program))
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
from .. import thresholds
from ..analysis.accesses import collect_accesses
from ..analysis.accumulators import find_accumulators
from ..analysis.conflicting_iterations import conflicting_iterations
from ..analysis.cost import is_large
from ..analysis.dependence import has_carried_dependence
from ..analysis.parallel_band import Facts, facts_of, has_checks, static_trip_count
from ..analysis.subscripts import ranges
from ..ir.assignments import Alloc, Break, Continue, Let, Permute, Print
from ..ir.bounds import Bounds, bounds_of
from ..ir.indexing import Symbol
from ..ir.loops import Check, Comment, For, Program, Stmt
from ..ir.rewrite import map_kernels, with_bodies
from ..ir.walk import bodies, reads, statements, uses, writes
from .renaming import rename_temporaries


def split_and_rename(program: Program) -> Program:
    """Return the program with such loops split, each part but the first with its temporaries
    renamed."""
    split = split_index_sets(program, facts_of(program))
    copied = _loop_counts(split) - _loop_counts(program)
    while split is not program:  # outermost first: renamed loops are not looked into
        program, split = split, rename_temporaries(split, lambda loop: loop.symbol in copied, True)
    return split


def _loop_counts(program: Program) -> Counter[Symbol]:
    """Return how many loops there are over each index variable."""
    loops = [s for kernel in program.kernels for s in statements(kernel.body) if isinstance(s, For)]
    return Counter(loop.symbol for loop in loops)


def split_index_sets(program: Program, facts: Facts) -> Program:
    """Return the program with loops split before, at and after their conflicting iteration."""
    bounds = bounds_of(parameter.node for parameter in program.parameters)
    splitter = _IndexSetSplitter(facts)
    return map_kernels(program, lambda body: splitter.body(body, bounds, ()))


@dataclass(frozen=True, slots=True)
class _IndexSetSplitter:
    """The state of splitting the loops of one program."""

    facts: Facts

    def body(
        self, body: Sequence[Stmt], bounds: Bounds, outer: tuple[For, ...]
    ) -> tuple[Stmt, ...]:
        """Return statements with the loops among and inside them split."""
        return tuple(new for stmt in body for new in self.statement(stmt, bounds, outer))

    def statement(self, stmt: Stmt, bounds: Bounds, outer: tuple[For, ...]) -> tuple[Stmt, ...]:
        """Return the statements that replace a statement."""
        if not isinstance(stmt, For):
            lists = tuple(self.body(nested, bounds, outer) for nested in bodies(stmt))
            return (with_bodies(stmt, lists),)
        inner = self.body(stmt.body, bounds.inside(stmt), (*outer, stmt))
        rewritten = with_bodies(stmt, (inner,))
        private = self.facts.private(stmt)
        if rewritten is not stmt:
            self.facts.tell((rewritten,), self.facts.temporaries_in(stmt))
        if has_checks((rewritten,)) or self.facts.is_free(rewritten, private, ranges(outer)):
            return (rewritten,)
        if (
            find_accumulators(rewritten, private, self.facts)
            or (static_trip_count(rewritten) or thresholds.MIN_DISTRIBUTED_ITERATIONS)
            < thresholds.MIN_DISTRIBUTED_ITERATIONS
            or is_large(rewritten)
        ):
            return (rewritten,)
        for point in conflicting_iterations(rewritten, bounds):
            before, at_point, after = (
                replace(rewritten, lo=lo, hi=hi)
                for lo, hi in ((rewritten.lo, point), (point, point + 1), (point + 1, rewritten.hi))
            )
            sides = (before, after)
            if all(self.facts.is_free(part, private, ranges(outer)) for part in sides):
                self.facts.tell((before, at_point, after), self.facts.temporaries_in(stmt))
                return before, at_point, after
        return (rewritten,)


# ------------------------------------------------------------------------- statement by statement


def distribute_statements(loop: For, facts: Facts) -> tuple[For, ...] | None:
    """Return the loops that a loop's statements are distributed into, None where they stay
    together."""
    blocking = Print, Permute, Alloc, Break, Continue, Check
    if loop.kind != "serial" or any(isinstance(s, blocking) for s in statements(loop.body)):
        return None
    starts = [
        0,
        *(at for at in range(1, len(loop.body)) if _can_distribute_at(loop, at)),
        len(loop.body),
    ]
    parts = [loop.body[lo:hi] for lo, hi in zip(starts, starts[1:], strict=False)]
    if len(parts) < 2:
        return None
    loops = tuple(replace(loop, body=part) for part in parts)
    facts.tell(loops, facts.temporaries_in(loop))
    return loops


def distribute_inner_loop(loop: For, facts: Facts) -> tuple[For, ...] | None:
    """Return a nest for each loop that the only inner loop of a loop is distributed into, None
    where that stays together."""
    inside = [stmt for stmt in loop.body if not isinstance(stmt, Comment)]
    if len(inside) != 1 or not isinstance(inside[0], For):
        return None
    parts = distribute_statements(inside[0], facts)
    if parts is None:
        return None
    distributed = replace(loop, body=parts)
    facts.tell((distributed,), facts.temporaries_in(loop))
    return distribute_statements(distributed, facts)


def _can_distribute_at(loop: For, position: int) -> bool:
    """Whether a loop may be distributed at a position: all iterations of what is before it run
    first."""
    first, second = loop.body[:position], loop.body[position:]
    if isinstance(first[-1], Comment):
        return False
    bound = {stmt.symbol for stmt in first if isinstance(stmt, Let)}
    if bound & {symbol for stmt in statements(second) for symbol in uses(stmt)}:
        return False
    changed = {node for part in (first, second) for node in writes(part)}
    shared = {*reads(first), *writes(first)} & {*reads(second), *writes(second)} & changed
    if any(not node.rank for node in shared):
        return False
    touched = collect_accesses((loop,))
    for node in shared:
        sites = touched.of(node)
        early = [site for site in sites if site.route[1][0] < position]
        late = [site for site in sites if site.route[1][0] >= position]
        for late_site in late:
            for early_site in early:
                if (late_site.writes or early_site.writes) and has_carried_dependence(
                    loop, late_site, early_site
                ):
                    return False
    return True
