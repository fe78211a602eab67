"""Loop fusion: neighbouring nests merged over their outer loops, as far as dependences allow.

Changes: two nests with only comments between them, whose loops have the same iteration space,
become one loop around both bodies; so again the loops inside. Branches with the same test become
one. Statements between them that are independent of the first nest move in front of it. A nest is
also fused with an earlier one that computes a local array for it alone, past statements it does not
depend on.

Precondition: symbols are unique in their scope. Postcondition: every cell gets its values in the
same order, so results are bit-identical. An iteration of the second nest then runs before the later
iterations of the first. That is illegal, and refused, wherever one of these may access a cell that
the other writes (a difference of their subscripts may be zero); and wherever a check or a print
would change places with an observable write.

Kennedy and McKinley, Maximizing loop parallelism and improving data locality via loop fusion and
distribution, 1993.

>>> show(fuse, '''
... m[i] = max(x[i, j])
... e[i, j] = exp(x[i, j] - m[i])
... return e
... ''', x="f32[8, 9]")
for i in 0..8:
    m[i] = -inf
    for j in 0..9:
        m[i] max= x[i, j]
    for j in 0..9:
        e[i, j] = exp(x[i, j] - m[i])
"""

from __future__ import annotations

from collections import Counter
from dataclasses import field, replace
from typing import TYPE_CHECKING

from ...base.dataclass import dataclass
from ...base.lazy_import import LazyModule
from .. import thresholds
from ..analysis.effects import bound_symbols, merged_summary, summarize
from ..analysis.guarded_reads import nodes_of
from ..analysis.subscripts import ranges
from ..ir.assignments import Alloc, Break, Continue, Let, Permute, Print
from ..ir.decision import Decided, Decision, Reason
from ..ir.fresh import Fresh, fresh_for
from ..ir.indexing import Range, var
from ..ir.loops import Check, Comment, Fill, For, If, Program, Stmt, Store, Update, While
from ..ir.rewrite import map_bodies, rename, with_bodies
from ..ir.rewrite import substitute as substituted
from ..ir.walk import BODIES, direct_reads, statements
from ..target import HOST, Target

if TYPE_CHECKING:
    from ..analysis import fusion as pairs
else:  # what few programs need
    pairs = LazyModule("..analysis.fusion", __package__)


class FusionReason(Reason):
    """Why nests were fused."""

    SHARED = "they share arrays, and no iteration of one needs a later iteration of the other"


def fuse(program: Program, target: Target = HOST) -> Decided:
    """Return the program with nests fused, and the decisions."""
    locals_ = frozenset(node.id for node in program.locals)
    body = [stmt for kernel in program.kernels for stmt in statements(kernel.body)]
    reads = Counter(node.id for stmt in body for node in direct_reads(stmt))
    fusion = _Fusion(locals_, reads, fresh_for(program), target.name != "cuda")
    kernels = tuple(replace(k, body=fusion.body(k.body, ())) for k in program.kernels)
    return Decided(replace(program, kernels=kernels), tuple(fusion.decisions))


@dataclass(slots=True)
class _Fusion:
    """Loop fusion in one program; collects the decisions."""

    locals_: frozenset[int]
    """The ids of the program's temporaries, which are unobservable: nobody sees their values after
    an error."""
    reads: Counter[int]
    """How often each node is read in the whole program."""
    fresh: Fresh
    splits_sums: bool
    """Whether short sums of what long nests compute stay out of these. A kernel of their own on a
    device takes longer than to carry them."""
    decisions: list[Decision] = field(default_factory=list)
    nests: dict[int, pairs.Nest] = field(default_factory=dict)
    """Facts about loops, by the `id` of the loop, which the entry keeps alive."""

    def body(self, body: tuple[Stmt, ...], outer: tuple[Range, ...]) -> tuple[Stmt, ...]:
        """Return a list of statements with neighbours fused, then the lists inside of them."""
        out: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, For):
                self.add_nest(out, stmt, outer)
            elif isinstance(stmt, If):
                self.add_branch(out, stmt)
            else:
                out.append(stmt)
        return tuple(self.inside(stmt, outer) for stmt in out)

    def pair(self, first: For, second: For, outer: tuple[Range, ...]) -> pairs.NestPair:
        nests = self.facts(first), self.facts(second)
        return pairs.NestPair(*nests, self.locals_, outer, self.splits_sums)

    def inside(self, stmt: Stmt, outer: tuple[Range, ...]) -> Stmt:
        if type(stmt) not in BODIES:
            return stmt
        domain = (*outer, *ranges((stmt,)))
        return map_bodies(stmt, lambda inner: self.body(inner, domain))

    def add_nest(self, out: list[Stmt], second: For, outer: tuple[Range, ...]) -> None:
        """Append a nest to the statements in `out`, or fuse it with a nest there."""
        last = len(out) - 1
        while last >= 0 and not isinstance(out[last], For):
            last -= 1
        refusal = self.try_fuse_last(out, last, second, outer) if last >= 0 else None
        if last >= 0 and (refusal is None or self.try_fuse_earlier(out, last, second, outer)):
            return
        self.decisions += () if refusal is None else (refusal,)
        out.append(second)

    def try_fuse_last(
        self, out: list[Stmt], at: int, second: For, outer: tuple[Range, ...]
    ) -> Decision | None:
        """Fuse a nest with the last one in `out`, or return why that is refused."""
        first = out[at]
        assert isinstance(first, For)
        between = out[at + 1 :]
        statements_between = [stmt for stmt in between if not isinstance(stmt, Comment)]
        location = second.span, first.span, second.symbol.name
        if any(
            isinstance(stmt, If | While | Check | Permute | Print) for stmt in statements_between
        ):
            return Decision("not fused", pairs.FusionRefusal.BETWEEN, None, "", *location)
        if not pairs.has_same_range(first, second):
            return Decision("not fused", pairs.FusionRefusal.RANGES, None, "", *location)
        if pairs.are_unrelated(first, second):
            return Decision("not fused", pairs.FusionRefusal.NOTHING, None, "", *location)
        pair = self.pair(first, second, outer)
        refused, detail = pair.refusal(statements_between)
        if refused is not None:
            return Decision("not fused", refused, None, detail, *location)
        comments = tuple(stmt for stmt in between if isinstance(stmt, Comment))
        out[at:] = [*statements_between, self.merge(first, comments, second)]
        return None

    def try_fuse_earlier(
        self, out: list[Stmt], last: int, second: For, outer: tuple[Range, ...]
    ) -> bool:
        """Fuse a nest with one before the last, past the statements between them; False where
        refused.

        That contracts an array: nothing else reads what the earlier one writes for it.
        """
        for at in range(last - 1, max(-1, len(out) - thresholds.MAX_FUSION_DISTANCE - 1), -1):
            first = out[at]
            if not isinstance(first, For) or not pairs.has_same_range(first, second):
                continue
            if summarize(first).writes.isdisjoint(summarize(second).reads):
                continue
            written = self.facts(first).reads_produced_for(self.facts(second))
            if not any(
                n in self.locals_ and self.reads[n] == times for n, times in written.items()
            ):
                continue
            pair = self.pair(first, second, outer)
            partition = _partition_between(out[at + 1 :], second)
            if partition is None:
                return self.try_fuse_at_second(out, at, pair)
            if pair.refusal(partition.needed)[0] is None:
                merged = self.merge(first, partition.comments, second)
                out[at:] = [*partition.needed, merged, *partition.others]
                return True
        return False

    def try_fuse_at_second(self, out: list[Stmt], at: int, pair: pairs.NestPair) -> bool:
        """Fuse at the position of the second nest, the first past the statements between; False
        where refused.

        What is between may initialize what the second writes: only the first can move past that.
        """
        first, second = pair.first.loop, pair.second.loop
        start = at
        while start and isinstance(out[start - 1], Comment):
            start -= 1
        between = out[at + 1 :]
        if (
            not all(_can_move_past(first, stmt) for stmt in between)
            or pair.refusal([])[0] is not None
        ):
            return False
        comments_before = [stmt for stmt in out[start:at] if isinstance(stmt, Comment)]
        last = next((n for n, s in enumerate(reversed(between)) if not isinstance(s, Comment)), 0)
        comments = [s for s in between[len(between) - last :] if isinstance(s, Comment)]
        merged = self.merge(first, tuple(comments), second)
        out[start:] = [*between[: len(between) - last], *comments_before, merged]
        return True

    def merge(self, first: For, between: tuple[Comment, ...], second: For) -> For:
        """Return the fused nest."""
        location = second.span, first.span, second.symbol.name
        self.decisions.append(Decision("fused", FusionReason.SHARED, None, "", *location))
        renamed = with_bodies(first, (self.rename_body(first, second),))
        result = with_bodies(first, ((*first.body, *between, *renamed.body),))
        if result is not first:
            headed = renamed if not between else replace(renamed, body=between + renamed.body)
            merged_summary(result, first, headed)
            facts = self.facts(first), pairs.analyze_nest(headed)
            self.nests[id(result)] = pairs.fuse_nests(*facts, result)
            for fused in (first, second):
                self.nests.pop(id(fused), None)  # dead from here on
        return result

    def facts(self, loop: For) -> pairs.Nest:
        """Return the facts about a loop that are asked for more than once; memoized."""
        if id(loop) not in self.nests:
            self.nests[id(loop)] = pairs.analyze_nest(loop)
        return self.nests[id(loop)]

    def rename_body(self, first: For, second: For) -> tuple[Stmt, ...]:
        """Return the body of the second nest with the index variable of the first."""
        body = second.body
        clashing = (bound_symbols(body) & summarize(first).bound) - {first.symbol}
        if clashing:
            clashing &= {s.symbol for s in statements(first.body) if isinstance(s, Let)}
        if first.symbol in bound_symbols(body):
            clashing |= {first.symbol}
        if clashing:
            body = rename(body, {old: self.fresh.symbol(old.name) for old in clashing}, {})
        return substituted(body, {second.symbol: var(first.symbol)})

    def add_branch(self, out: list[Stmt], second: If) -> None:
        """Append a branch to the statements in `out`, or merge it with one of the same test."""
        at = len(out) - 1
        while at >= 0 and isinstance(out[at], Comment):
            at -= 1
        first = out[at] if at >= 0 else None
        if not isinstance(first, If) or first.test != second.test:
            out.append(second)
            return
        written = summarize(first).writes
        if any(node.id in written for node in nodes_of(first.test)):
            out.append(second)
            return
        comments = tuple(out[at + 1 :])
        then, orelse = (*first.then, *comments, *second.then), (*first.orelse, *second.orelse)
        merged = replace(first, then=then, orelse=orelse)
        merged_summary(merged, first, replace(second, then=comments + second.then))
        out[at:] = [merged]


@dataclass(frozen=True, slots=True)
class _Partition:
    """The statements between two nests: those that the second needs, its comments, and the
    others."""

    needed: tuple[Stmt, ...]
    comments: tuple[Comment, ...]
    others: tuple[Stmt, ...]


def _partition_between(between: list[Stmt], second: For) -> _Partition | None:
    """Return what moves with a nest past all other statements between; None if it cannot move.

    Nothing moves past a check or a print, and those do not move.
    """
    moving = summarize(second)
    reads, written = moving.reads, moving.writes
    if not moving.kinds.isdisjoint(_FIXED):
        return None
    needed: list[Stmt] = []
    comments: list[Comment] = []
    others: list[Stmt] = []
    for stmt in reversed(between):
        if isinstance(stmt, Comment):
            heads = not others and not comments and not stmt.text.startswith("end ")
            (comments if heads else others).append(stmt)
            continue
        effects = summarize(stmt)
        if isinstance(stmt, Alloc | Let) or not effects.kinds.isdisjoint(_FIXED):
            return None
        if written.isdisjoint(effects.touches) and reads.isdisjoint(effects.writes):
            others.append(stmt)
            continue
        if not isinstance(stmt, Store | Update | Fill):
            return None
        needed.append(stmt)
        reads, written = reads | effects.reads, written | effects.writes
    return _Partition(tuple(needed[::-1]), tuple(comments), tuple(others[::-1]))


def _can_move_past(stmt: Stmt, later: Stmt) -> bool:
    """Whether a statement may move after a later one."""
    first, second = summarize(stmt), summarize(later)
    if not (first.kinds | second.kinds).isdisjoint(_FIXED):
        return False
    return first.writes.isdisjoint(second.touches) and first.reads.isdisjoint(second.writes)


_FIXED = frozenset((Check, Print, Break, Continue, Permute))
"""Statements whose execution or position is observable: nests do not move past them."""
