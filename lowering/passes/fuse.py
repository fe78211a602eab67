"""Bring neighbouring nests together over their outer loops.

Changes: two nests with only comments between them, whose loops run through the same values, become
one loop around both bodies; so again with the loops inside. Branches with the same test become one.
Statements between them that the first nest has nothing to do with are moved in front of it. A nest
also joins an earlier one that computes a local array for it alone, past what it does not depend on.

Needs: symbols are unique in their scope. Guarantees: every cell gets its values in the same order,
so not a bit of a result changes. A round of the second nest then runs before the later rounds of
the first. That is refused wherever one of these may touch a cell that the other writes, for a
difference of their indices that may be zero; and wherever a check or a print would change places
with a write that can be seen.

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
from ...base.lazy_import import Later
from ..analysis.effects import both, bound_in, summary
from ..analysis.guarded_reads import nodes_of
from ..analysis.subscripts import ranges
from ..ir.assignments import Alloc, Break, Continue, Let, Permute, Print
from ..ir.decision import Decided, Decision, Reason
from ..ir.fresh import Fresh, fresh_for
from ..ir.indexing import Range, var
from ..ir.loops import Check, Comment, Fill, For, If, Program, Stmt, Store, Update, While
from ..ir.rewrite import map_bodies, rename, with_bodies
from ..ir.rewrite import substitute as substituted
from ..ir.walk import BODIES, own_reads, statements

if TYPE_CHECKING:
    from ..analysis import fusion as pairs
else:  # what few programs need
    pairs = Later("..analysis.fusion", __package__)

BACK = 64
"""How many statements back a nest looks for one that computes an array for it alone."""


class Together(Reason):
    """Why nests were fused."""

    SHARED = "they share arrays, and no round of one needs a later round of the other"


def fuse(program: Program) -> Program:
    """Return the program with nests fused."""
    return fused(program).program


def fused(program: Program) -> Decided:
    """Return the program with nests fused, and which were and were not."""
    own = frozenset(node.id for node in program.locals)
    body = [stmt for kernel in program.kernels for stmt in statements(kernel.body)]
    reads = Counter(node.id for stmt in body for node in own_reads(stmt))
    work = _Fusion(own, reads, fresh_for(program))
    kernels = tuple(replace(k, body=work.body(k.body, ())) for k in program.kernels)
    return Decided(replace(program, kernels=kernels), tuple(work.decisions))


@dataclass(slots=True)
class _Fusion:
    """The work on one program; keeps the decisions."""

    own: frozenset[int]
    """The ids of nodes that nobody outside sees."""
    reads: Counter[int]
    """How often each node is read in the whole program."""
    fresh: Fresh
    decisions: list[Decision] = field(default_factory=list)
    nests: dict[int, pairs.Nest] = field(default_factory=dict)
    """What was found out about loops, by their `id`; it keeps them alive."""

    def body(self, body: tuple[Stmt, ...], outer: tuple[Range, ...]) -> tuple[Stmt, ...]:
        """Return a list of statements with neighbours fused, then the lists inside of them."""
        out: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, For):
                self.nest(out, stmt, outer)
            elif isinstance(stmt, If):
                self.branch(out, stmt)
            else:
                out.append(stmt)
        return tuple(self.inside(stmt, outer) for stmt in out)

    def inside(self, stmt: Stmt, outer: tuple[Range, ...]) -> Stmt:
        if type(stmt) not in BODIES:
            return stmt
        known = (*outer, *ranges((stmt,)))
        return map_bodies(stmt, lambda inner: self.body(inner, known))

    def nest(self, out: list[Stmt], second: For, outer: tuple[Range, ...]) -> None:
        """Put a nest behind the statements in `out`, or into a nest there."""
        last = len(out) - 1
        while last >= 0 and not isinstance(out[last], For):
            last -= 1
        refused = self.joined(out, last, second, outer) if last >= 0 else None
        if last >= 0 and (refused is None or self.joined_before(out, last, second, outer)):
            return
        self.decisions += () if refused is None else (refused,)
        out.append(second)

    def joined(
        self, out: list[Stmt], at: int, second: For, outer: tuple[Range, ...]
    ) -> Decision | None:
        """Put a nest into the last one in `out`; or return why that was not done."""
        first = out[at]
        assert isinstance(first, For)
        between = out[at + 1 :]
        moved = [stmt for stmt in between if not isinstance(stmt, Comment)]
        where = second.span, first.span, second.symbol.name
        if any(isinstance(stmt, If | While | Check | Permute | Print) for stmt in moved):
            return Decision("apart", pairs.Apart.BETWEEN, None, "", *where)
        if not pairs.match(first, second):
            return Decision("apart", pairs.Apart.RANGES, None, "", *where)
        if pairs.are_strangers(first, second):
            return Decision("apart", pairs.Apart.NOTHING, None, "", *where)
        pair = pairs.Pair(self.known(first), self.known(second), self.own, outer)
        refused, detail = pair.refusal(moved)
        if refused is not None:
            return Decision("apart", refused, None, detail, *where)
        comments = tuple(stmt for stmt in between if isinstance(stmt, Comment))
        out[at:] = [*moved, self.merged(first, comments, second)]
        return None

    def joined_before(
        self, out: list[Stmt], last: int, second: For, outer: tuple[Range, ...]
    ) -> bool:
        """Put a nest into one before the last, past what is between them; or return False.

        That saves an array: nothing else reads what the earlier one writes for it.
        """
        for at in range(last - 1, max(-1, len(out) - BACK - 1), -1):
            first = out[at]
            if not isinstance(first, For) or not pairs.match(first, second):
                continue
            if summary(first).writes.isdisjoint(summary(second).reads):
                continue
            shared = self.known(first).written_for(self.known(second))
            if not any(n in self.own and self.reads[n] == times for n, times in shared.items()):
                continue
            pair = pairs.Pair(self.known(first), self.known(second), self.own, outer)
            parted = _parted(out[at + 1 :], second)
            if parted is None:
                return self.joined_later(out, at, pair)
            if pair.refusal(parted.needed)[0] is None:
                made = self.merged(first, parted.comments, second)
                out[at:] = [*parted.needed, made, *parted.others]
                return True
        return False

    def joined_later(self, out: list[Stmt], at: int, pair: pairs.Pair) -> bool:
        """Put both nests where the second is, the first past what is between them; or return False.

        What is between may start what the second writes: only the first can pass that.
        """
        first, second = pair.first.loop, pair.second.loop
        start = at
        while start and isinstance(out[start - 1], Comment):
            start -= 1
        between = out[at + 1 :]
        if not all(_may_pass(first, stmt) for stmt in between) or pair.refusal([])[0] is not None:
            return False
        heads = [stmt for stmt in out[start:at] if isinstance(stmt, Comment)]
        last = next((n for n, s in enumerate(reversed(between)) if not isinstance(s, Comment)), 0)
        comments = [s for s in between[len(between) - last :] if isinstance(s, Comment)]
        made = self.merged(first, tuple(comments), second)
        out[start:] = [*between[: len(between) - last], *heads, made]
        return True

    def merged(self, first: For, between: tuple[Comment, ...], second: For) -> For:
        """Return one nest for two."""
        where = second.span, first.span, second.symbol.name
        self.decisions.append(Decision("fused", Together.SHARED, None, "", *where))
        alone = with_bodies(first, (self.renamed(first, second),))
        made = with_bodies(first, ((*first.body, *between, *alone.body),))
        if made is not first:
            headed = alone if not between else replace(alone, body=between + alone.body)
            both(made, first, headed)
            known = self.known(first), pairs.nest_of(headed)
            self.nests[id(made)] = pairs.grown(*known, made)
            for one in (first, second):
                self.nests.pop(id(one), None)  # nobody asks again
        return made

    def known(self, loop: For) -> pairs.Nest:
        """Return what is asked of a loop more than once, found once."""
        if id(loop) not in self.nests:
            self.nests[id(loop)] = pairs.nest_of(loop)
        return self.nests[id(loop)]

    def renamed(self, first: For, second: For) -> tuple[Stmt, ...]:
        """Return the body of the second nest with the first one's symbol in place of its own."""
        body = second.body
        clashing = (bound_in(body) & summary(first).bound) - {first.symbol}
        if clashing:
            clashing &= {s.symbol for s in statements(first.body) if isinstance(s, Let)}
        if first.symbol in bound_in(body):
            clashing |= {first.symbol}
        if clashing:
            body = rename(body, {old: self.fresh.symbol(old.name) for old in clashing}, {})
        return substituted(body, {second.symbol: var(first.symbol)})

    def branch(self, out: list[Stmt], second: If) -> None:
        """Put a branch behind the statements in `out`, or together with one of the same test."""
        at = len(out) - 1
        while at >= 0 and isinstance(out[at], Comment):
            at -= 1
        first = out[at] if at >= 0 else None
        if not isinstance(first, If) or first.test != second.test:
            out.append(second)
            return
        written = summary(first).writes
        if any(node.id in written for node in nodes_of(first.test)):
            out.append(second)
            return
        comments = tuple(out[at + 1 :])
        then, other = (*first.then, *comments, *second.then), (*first.other, *second.other)
        made = replace(first, then=then, other=other)
        both(made, first, replace(second, then=comments + second.then))
        out[at:] = [made]


@dataclass(frozen=True, slots=True)
class _Parted:
    """What stands between two nests: what the second needs, what heads it, and all else."""

    needed: tuple[Stmt, ...]
    comments: tuple[Comment, ...]
    others: tuple[Stmt, ...]


def _parted(between: list[Stmt], second: For) -> _Parted | None:
    """Return what a nest takes along when it runs before all else between; None if it cannot.

    Nothing passes a check or a print, whatever relies on it, nor does any of those pass anything.
    """
    ours = summary(second)
    reads, written = ours.reads, ours.writes
    if not ours.kinds.isdisjoint(_FIXED):
        return None
    needed: list[Stmt] = []
    comments: list[Comment] = []
    others: list[Stmt] = []
    for stmt in reversed(between):
        if isinstance(stmt, Comment):
            heads = not others and not comments and not stmt.text.startswith("end ")
            (comments if heads else others).append(stmt)
            continue
        theirs = summary(stmt)
        if isinstance(stmt, Alloc | Let) or not theirs.kinds.isdisjoint(_FIXED):
            return None
        if written.isdisjoint(theirs.touches) and reads.isdisjoint(theirs.writes):
            others.append(stmt)
            continue
        if not isinstance(stmt, Store | Update | Fill):
            return None
        needed.append(stmt)
        reads, written = reads | theirs.reads, written | theirs.writes
    return _Parted(tuple(needed[::-1]), tuple(comments), tuple(others[::-1]))


def _may_pass(stmt: Stmt, other: Stmt) -> bool:
    """Whether a statement may as well happen after one that comes after it."""
    ours, theirs = summary(stmt), summary(other)
    if not (ours.kinds | theirs.kinds).isdisjoint(_FIXED):
        return False
    return ours.writes.isdisjoint(theirs.touches) and ours.reads.isdisjoint(theirs.writes)


_FIXED = frozenset((Check, Print, Break, Continue, Permute))
"""What is done, or where it stands, can be told from outside: nests do not pass it."""
