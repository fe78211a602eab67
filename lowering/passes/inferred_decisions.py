"""Decisions inferred from the program before and after a pass that reports none of its own.

Locals that are gone were dead, scalars that are new name a value, stores that are gone were
overwritten: nothing else is observable, and each of those passes has one reason for it.

>>> from plusequals.lowering.passes.dce import eliminate_dead_code
>>> program = lowered("t[i] = x[i] * 2; y[i] = x[i] + 1", y="f32[8]", x="f32[8]")
>>> for made in infer_decisions("dead", program, eliminate_dead_code(program)):
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


class RemovalReason(Reason):
    """Why something is not computed, or not stored."""

    UNUSED = "nothing that can be seen depends on it"
    REPEATED = "another array holds the same values already"
    PARTS = "its real and its imaginary part are variables of their own"
    OVERWRITTEN = "it is replaced before anything reads it"
    ZERO = "the array starts as zeros"
    SEARCH = "it looks for one index, and the work is done at that index at once"


class NamingReason(Reason):
    """Why a value got a name of its own."""

    SHARED = "it is needed more than once"
    HOISTED = "it is the same in every round"


class ParallelReason(Reason):
    """Why a loop is parallel."""

    INDEPENDENT = "none uses an element that another one writes"


_REMOVED = {"repeated": RemovalReason.REPEATED, "pairs": RemovalReason.PARTS}
"""Why locals are removed by a pass, where it is not that they are dead."""
_SKIPPED = {"overwritten": RemovalReason.OVERWRITTEN, "zeros": RemovalReason.ZERO}
_NAMED: dict[str, tuple[Outcome, NamingReason]] = {
    "cse": ("shared", NamingReason.SHARED),
    "hoist": ("hoisted", NamingReason.HOISTED),
}


def infer_decisions(pass_name: str, before: Program, after: Program) -> tuple[Decision, ...]:
    """Return the decisions of the pass of that name, as far as its result shows them."""
    if before is after:
        return ()
    pass_name = pass_name.removesuffix(" again")
    return (
        *_removed_locals(_REMOVED.get(pass_name, RemovalReason.UNUSED), before, after),
        *(_removed_stores(_SKIPPED[pass_name], before, after) if pass_name in _SKIPPED else ()),
        *(_new_scalars(*_NAMED[pass_name], before, after) if pass_name in _NAMED else ()),
        *(_removed_loops(before, after) if pass_name == "gather" else ()),
        *(_parallel_loops(after) if pass_name == "parallel" else ()),
    )


def first_writes(program: Program) -> dict[int, Span]:
    """Return the span of the statement that writes each node first, by node id."""
    spans: dict[int, Span] = {}
    for stmt in _all_statements(program):
        if isinstance(stmt, Store | Update | Fill):
            for node in own_writes(stmt):
                spans.setdefault(node.id, stmt.span)
    return spans


def with_span(decision: Decision, spans_by_id: dict[int, Span]) -> Decision:
    """Return the decision with the span of its node, unless it has one."""
    if decision.span is not NOWHERE or decision.node is None:
        return decision
    span = spans_by_id.get(decision.node.id, NOWHERE)
    return decision if span is NOWHERE else replace(decision, span=span)


def _removed_locals(reason: RemovalReason, before: Program, after: Program) -> Iterator[Decision]:
    remaining = {node.id for node in after.locals}
    for node in before.locals:
        if node.id not in remaining:
            yield Decision("removed", reason, node)


def _removed_stores(reason: RemovalReason, before: Program, after: Program) -> Iterator[Decision]:
    """Yield the removed stores of nodes that remain."""
    remaining = {node.id for node in (*after.locals, *after.results)}
    remaining |= {parameter.node.id for parameter in after.parameters}
    gone = Counter(_stored_nodes(before)) - Counter(_stored_nodes(after))
    for node, span in gone:
        if node.id in remaining:
            yield Decision("skipped", reason, node, span=span)


def _new_scalars(
    outcome: Outcome, reason: NamingReason, before: Program, after: Program
) -> Iterator[Decision]:
    old = {node.id for node in before.locals}
    new = {node.id for node in after.locals} - old
    for stmt in _all_statements(after):
        if isinstance(stmt, Store) and stmt.access.node.id in new:
            text = print_expr(stmt.value)
            yield Decision(outcome, reason, stmt.access.node, text, stmt.span)


def _removed_loops(before: Program, after: Program) -> Iterator[Decision]:
    gone = Counter(_loop_spans(before)) - Counter(_loop_spans(after))
    for span in gone:
        yield Decision("looked up", RemovalReason.SEARCH, span=span)


def _parallel_loops(after: Program) -> Iterator[Decision]:
    for stmt in _all_statements(after):
        if isinstance(stmt, For) and stmt.kind == "parallel":
            name = stmt.symbol.name
            yield Decision("parallel", ParallelReason.INDEPENDENT, span=stmt.span, variable=name)


def _all_statements(program: Program) -> Iterator[Stmt]:
    for kernel in program.kernels:
        yield from statements(kernel.body)


def _stored_nodes(program: Program) -> Iterator[tuple[Node, Span]]:
    for stmt in _all_statements(program):
        if isinstance(stmt, Store | Update | Fill):
            for node in own_writes(stmt):
                yield node, stmt.span


def _loop_spans(program: Program) -> Iterator[Span]:
    return (stmt.span for stmt in _all_statements(program) if isinstance(stmt, For))
