r"""Rounds side by side that branch, or leave a loop inside, each at a time of its own.

Changes: a loop whose rounds need nothing of each other. Branches in it that data decides become
choices (`predicate`), so that it can become vectors; so do branches of a loop that only counts.
Where a round has a loop inside that it may leave early, neighbouring rounds become lanes: each
statement of the round is one loop over lanes; the loop inside runs while one lane is on, and what a
lane has left stays as it was when it left.

    for c:                               for c step 32:
        u = x[c]                             for l: u[l] = x[c + l]; on[l] = 1
        while u < 9: u = f(u)                while any of on:
        y[c] = u                                 for l: go = on[l] and u[l] < 9
                                                        u[l] = f(u[l]) if go else u[l]; on[l] = go
                                             for l: y[c + l] = u[l]

Needs: rounds that may run in any order; in what a test guards nothing that may not be done without
it, as reading outside of an array; inner loops that write nothing but what a round has for itself.
Guarantees: not a bit changes: each round does what it did, in its order.

>>> show(lambda program: masks(program, Target(schedule=True)),
...      "for i in range(9):\n    if x[i] > 0.5:\n        y[i] = x[i] * 2", y="f32[9]", x="f32[9]")
for i in 0..9:
    y[i] = x[i] * 2.0 if x[i] > 0.5 else y[i]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial, reduce
from typing import TYPE_CHECKING

from ...base.lazy_import import later
from ..analysis.dependence import independent, private
from ..analysis.effects import summary
from ..analysis.expression_cost import cost
from ..analysis.guarded_reads import negated
from ..analysis.subscripts import ranges, stride
from ..ir.assignments import Continue
from ..ir.decision import Decided, Decision, Reason
from ..ir.expressions import Apply, Cast, Const, Expr, Position, Read, Select, reads, walk
from ..ir.indexing import Range, Symbol
from ..ir.loops import Comment, For, If, Program, Stmt, Store, Update, While
from ..ir.node import Node
from ..ir.ops import OPS
from ..ir.rewrite import Rewrite, rewrite
from ..ir.walk import expressions_of, statements, writes
from ..target import Target
from ..transform.outermost import Outermost

if TYPE_CHECKING:
    from ..transform import if_convert
    from . import divergent_lanes
    from . import predicated_reduction as guarded
else:  # what few programs need
    guarded, divergent_lanes, if_convert = later(
        __package__, ".predicated_reduction", ".divergent_lanes", "..transform.if_convert"
    )

Body = tuple[Stmt, ...]
FEW = 4
"""Of so few rounds no vectors are made."""
DEAR = 128
"""What a test guards may cost so much at most, in additions, to be done where it does not hold."""


class Masked(Reason):
    """Why rounds are done side by side."""

    BRANCH = "what its branches guard is cheap, and can be done where they do not hold"
    COUNT = "it only counts, and 0 can be added where it does not"
    SUM = "it only adds up, and what changes no sum can be added where it does not"
    LEAVE = "each round may leave a loop inside by itself, and needs nothing of the others"


def masks(program: Program, target: Target) -> Program:
    """Return the program with rounds that branch or leave side by side."""
    return masked(program, target).program


def masked(program: Program, target: Target) -> Decided:
    """Return the program with rounds that branch or leave side by side, and which these are."""
    return _Work.on(program, target)


class _Work(Outermost):
    """The work on one program."""

    __slots__ = ()

    def nest(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        """Return a loop without branches, or of lanes; None where it stays as it is."""
        kinds = summary(loop).kinds
        if not kinds & {If, While} or loop.kind != "serial" or loop.step != 1:
            return None
        known = ranges((*outer, loop))
        if not all(map(if_convert.is_made_of_numbers, statements(loop.body))):
            return None
        if (counted := _counted(loop, known)) is not None:
            self.told(Masked.COUNT, writes(loop.body)[0], loop)
            return (counted,)
        if (summed := guarded.summed(loop, known)) is not None:
            self.told(Masked.SUM, writes(loop.body)[0], loop)
            return (summed,)
        early = any(divergent_lanes.may_leave(stmt) for stmt in loop.body)
        changed = writes(loop.body)
        can = divergent_lanes.can_be_lanes if early else _can_be_straight
        if not changed or not can(loop, known):
            return None
        mine = private(loop, self.only()[id(loop)])
        if (
            self.target.lanes(32) < 2
            or independent(loop, mine, self.own, ranges(outer)) is not None
        ):
            return None
        node = next((node for node in changed if node.id not in mine), changed[0])
        self.told(Masked.LEAVE if early else Masked.BRANCH, node, loop)
        if early:
            return (divergent_lanes.in_lockstep(loop, self.fresh, mine, known),)
        return (replace(loop, body=if_convert.straight(loop.body, self.fresh, {}, known).body),)

    def told(self, why: Masked, node: Node, loop: For) -> None:
        """Note what was decided of a loop."""
        name = loop.symbol.name
        self.decisions.append(Decision("masked", why, node, span=loop.span, variable=name))


def _counted(loop: For, known: tuple[Range, ...]) -> For | None:
    """Return a loop that does nothing but count where tests hold, counting 0 where they do not;
    None for others: zeros change no sum of whole numbers."""
    inside = [stmt for stmt in statements(loop.body) if not isinstance(stmt, Comment)]
    kept = all(isinstance(stmt, If) or _counts(stmt) is not None for stmt in inside)
    taken = {stmt.access.node.id for stmt in inside if isinstance(stmt, Store)}
    values = [stmt.test for stmt in inside if isinstance(stmt, If)]
    values += [value for stmt in inside if (value := _counts(stmt)) is not None]
    if (
        not kept
        or not taken
        or not _is_up_to_data(inside)
        or any(read.node.id in taken for value in values for read in reads(value))
        or not if_convert.fits(loop.body, (), known)
        or sum(map(cost, values)) > DEAR
    ):
        return None

    def body(stmts: Body, tests: tuple[Expr, ...]) -> Iterator[Stmt]:
        for stmt in stmts:
            if isinstance(stmt, If):
                yield from body(stmt.then, (*tests, stmt.test))
                yield from body(stmt.other, (*tests, negated(stmt.test)))
            elif isinstance(stmt, Store) and tests:
                yield replace(stmt, value=_where(stmt, tests))
            else:
                yield stmt

    made = tuple(body(loop.body, ()))
    return replace(loop, body=rewrite(made, Rewrite(expr=partial(if_convert.eager, known=known))))


def _counts(stmt: Stmt) -> Expr | None:
    """Return what a statement adds to a number; None where it does something else."""
    match stmt:
        case Store(access, Apply(op, (Read() as old, value))) if (
            not access.index
            and old.node == access.node
            and op.name in ("add", "sub")
            and access.node.dtype.kind in "iu"
        ):
            return value
        case _:
            return None


def _where(stmt: Store, tests: tuple[Expr, ...]) -> Expr:
    """Return the number with what is added to it where all tests hold.

    What is not the same in every round is multiplied: gcc 12 makes no vectors of such choices.
    """
    assert isinstance(stmt.value, Apply)
    old, value = stmt.value.args
    test = reduce(lambda one, two: Apply(OPS["bitand"], (one, two), two.dtype), tests)
    chosen: Expr = Select(test, value, Const(0, value.dtype))
    if not isinstance(value, Const):
        chosen = Apply(OPS["mul"], (value, Cast(test, value.dtype)), value.dtype)
    return replace(stmt.value, args=(old, chosen))


def _can_be_straight(loop: For, known: tuple[Range, ...]) -> bool:
    """Whether a loop has branches that are better choices."""
    inside, rounds = statements(loop.body), (loop.hi - loop.lo).constant
    guarded = (e for s in loop.body if isinstance(s, If) for e in _values((s,)))
    return (
        (rounds is None or rounds > FEW)
        and not any(isinstance(stmt, For | While) for stmt in inside)
        and _is_up_to_data(inside)
        and all(_is_near(stmt, loop.symbol) for stmt in inside)
        and if_convert.fits(loop.body, (Continue,), known)
        and sum(map(cost, guarded)) <= DEAR
    )


def _values(body: Body) -> Iterator[Expr]:
    return (value for stmt in statements(body) for value in expressions_of(stmt))


def _is_up_to_data(inside: Iterable[Stmt]) -> bool:
    """Whether tests ask for data, and not for where they stand, which loops can be cut by."""
    tests = [stmt.test for stmt in inside if isinstance(stmt, If)]
    return all(
        reads(test) and not any(isinstance(part, Position) for part in walk(test))
        for test in tests
    )  # fmt: skip


def _is_near(stmt: Stmt, symbol: Symbol) -> bool:
    """Whether rounds side by side use neighbours, or the same element."""
    places = [(r.node, r.index) for e in expressions_of(stmt) for r in reads(e)]
    places += [(s.access.node, s.access.index) for s in (stmt,) if isinstance(s, Store | Update)]
    return all(stride(node, index, symbol) in (0, 1) for node, index in places)
