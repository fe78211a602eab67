"""What a pass did that gives no reasons of its own: told from the program before and after it.

Locals that are gone were not needed, scalars that are new name a value, stores that are gone were
overwritten: that is all there is to be seen, and each of those passes has one reason for it.

>>> from plusequals.lowering.passes.dce import dead
>>> program = lowered("t[i] = x[i] * 2; y[i] = x[i] + 1", y="f32[8]", x="f32[8]")
>>> for made in noticed("dead", program, dead(program)):
...     print(made.told())
`t` is not computed: nothing that can be seen depends on it
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from ...base.diagnostic import NOWHERE, Span
from ..ir.decision import Decision, Outcome, Reason
from ..ir.loops import Fill, For, Program, Stmt, Store, Update
from ..ir.node import Node
from ..ir.printer import print_expr
from ..ir.walk import own_writes, statements


class Gone(Reason):
    """Why something is not computed, or not stored."""

    UNUSED = "nothing that can be seen depends on it"
    REPEATED = "another array holds the same values already"
    PARTS = "its real and its imaginary part are variables of their own"
    OVERWRITTEN = "it is replaced before anything reads it"
    ZERO = "the array starts as zeros"
    SEARCH = "it looks for one index, and the work is done at that index at once"


class Named(Reason):
    """Why a value got a name of its own."""

    SHARED = "it is needed more than once"
    HOISTED = "it is the same in every round"


class Shared(Reason):
    """Why a loop is parallel."""

    INDEPENDENT = "none uses an element that another one writes"


_REMOVED = {"repeated": Gone.REPEATED, "pairs": Gone.PARTS}
"""Why locals vanish in a pass, where it is not for lack of use."""
_SKIPPED = {"overwritten": Gone.OVERWRITTEN, "zeros": Gone.ZERO}
_NAMED: dict[str, tuple[Outcome, Named]] = {
    "cse": ("shared", Named.SHARED),
    "hoist": ("hoisted", Named.HOISTED),
}


def noticed(name: str, before: Program, after: Program) -> tuple[Decision, ...]:
    """Return what the pass of that name did to a program, as far as it shows."""
    if before is after:
        return ()
    name = name.removesuffix(" again")
    return (
        *_removed(_REMOVED.get(name, Gone.UNUSED), before, after),
        *(_skipped(_SKIPPED[name], before, after) if name in _SKIPPED else ()),
        *(_named(*_NAMED[name], before, after) if name in _NAMED else ()),
        *(_looked_up(before, after) if name == "gather" else ()),
        *(_parallel(after) if name == "parallel" else ()),
    )


def origins(program: Program) -> dict[int, Span]:
    """Return the span of the statement that writes each node first, by node id."""
    found: dict[int, Span] = {}
    for stmt in _all(program):
        if isinstance(stmt, Store | Update | Fill):
            for node in own_writes(stmt):
                found.setdefault(node.id, stmt.span)
    return found


def located(decision: Decision, spans: dict[int, Span]) -> Decision:
    """Return the decision with the place of its node, unless it has one."""
    if decision.span is not NOWHERE or decision.node is None:
        return decision
    span = spans.get(decision.node.id, NOWHERE)
    return decision if span is NOWHERE else replace(decision, span=span)


def _removed(reason: Gone, before: Program, after: Program) -> Iterator[Decision]:
    kept = {node.id for node in after.locals}
    for node in before.locals:
        if node.id not in kept:
            yield Decision("removed", reason, node)


def _skipped(reason: Gone, before: Program, after: Program) -> Iterator[Decision]:
    """Yield the stores that are gone, of nodes that are still there."""
    there = {node.id for node in (*after.locals, *after.results)}
    there |= {parameter.node.id for parameter in after.parameters}
    gone = Counter(_stores(before)) - Counter(_stores(after))
    for node, span in gone:
        if node.id in there:
            yield Decision("skipped", reason, node, span=span)


def _named(outcome: Outcome, reason: Named, before: Program, after: Program) -> Iterator[Decision]:
    known = {node.id for node in before.locals}
    new = {node.id for node in after.locals} - known
    for stmt in _all(after):
        if isinstance(stmt, Store) and stmt.access.node.id in new:
            text = print_expr(stmt.value)
            yield Decision(outcome, reason, stmt.access.node, text, stmt.span)


def _looked_up(before: Program, after: Program) -> Iterator[Decision]:
    gone = Counter(_loops(before)) - Counter(_loops(after))
    for span in gone:
        yield Decision("looked up", Gone.SEARCH, span=span)


def _parallel(after: Program) -> Iterator[Decision]:
    for stmt in _all(after):
        if isinstance(stmt, For) and stmt.kind == "parallel":
            name = stmt.symbol.name
            yield Decision("parallel", Shared.INDEPENDENT, span=stmt.span, variable=name)


def _all(program: Program) -> Iterator[Stmt]:
    for kernel in program.kernels:
        yield from statements(kernel.body)


def _stores(program: Program) -> Iterator[tuple[Node, Span]]:
    for stmt in _all(program):
        if isinstance(stmt, Store | Update | Fill):
            for node in own_writes(stmt):
                yield node, stmt.span


def _loops(program: Program) -> Iterator[Span]:
    return (stmt.span for stmt in _all(program) if isinstance(stmt, For))
