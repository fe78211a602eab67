"""Decisions inferred from the program before and after a pass that reports none of its own.

Locals that are gone were dead, scalars that are new name a value, stores that are gone were
overwritten: nothing else is observable, and each of those passes has one reason for it.

>>> from plusequals.lowering.passes.dce import eliminate_dead_code
>>> program = lowered("t[i] = x[i] * 2; y[i] = x[i] + 1", y="f32[8]", x="f32[8]")
>>> for decision in UNUSED(program, eliminate_dead_code(program)):
...     print(decision.sentence())
`t` is not computed: nothing that can be seen depends on it
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ...base.diagnostic import NOWHERE, Span
from ...base.lazy_import import LazyModule
from ..ir.decision import Decided, Decision, Outcome, Reason, Run
from ..ir.loops import Fill, For, Program, Stmt, Store, Update
from ..ir.node import Node
from ..ir.walk import direct_writes, statements
from ..target import Target

if TYPE_CHECKING:
    from ..ir import printer
else:  # for the names of values alone
    printer = LazyModule("..ir.printer", __package__)


class RemovalReason(Reason):
    """Why something is not computed, or not stored."""

    UNUSED = "nothing that can be seen depends on it"
    REPEATED = "another array holds the same values already"
    PARTS = "its real and its imaginary part are separate variables"
    OVERWRITTEN = "it is replaced before anything reads it"
    ZERO = "the array starts as zeros"
    SEARCH = "it looks for one index, and the work is done at that index directly"


class NamingReason(Reason):
    """Why a value got a name of its own."""

    SHARED = "it is needed more than once"
    HOISTED = "it is the same in every iteration"


class ParallelReason(Reason):
    """Why a loop is parallel."""

    INDEPENDENT = "none uses an element that another one writes"


Inference = Callable[[Program, Program], Iterable[Decision]]
"""Returns decisions of a pass from the program before and after it."""


def rewriting(rewrite: Callable[[Program], Program], *inferences: Inference) -> Run:
    """Return the run of a rewriting that asks for no target, with inferred decisions.

    Without inferences, locals that it removes are decisions: nothing needs them.
    """
    return for_target(lambda program, _: rewrite(program), *inferences)


def for_target(rewrite: Callable[[Program, Target], Program], *inferences: Inference) -> Run:
    """Return the run of a rewriting for a target, with inferred decisions as in `rewriting`."""
    inferences = inferences or (UNUSED,)

    def run(program: Program, target: Target) -> Decided:
        after = rewrite(program, target)
        if after is program:
            return Decided(program)
        return Decided(
            after, tuple(decision for infer in inferences for decision in infer(program, after))
        )

    return run


def first_writes(program: Program) -> dict[int, Span]:
    """Return the span of the statement that writes each node first, by node id."""
    spans: dict[int, Span] = {}
    for stmt in _all_statements(program):
        if isinstance(stmt, Store | Update | Fill):
            for node in direct_writes(stmt):
                spans.setdefault(node.id, stmt.span)
    return spans


def with_span(decision: Decision, spans_by_id: dict[int, Span]) -> Decision:
    """Return the decision with the span of its node, unless it has one."""
    if decision.span is not NOWHERE or decision.node is None:
        return decision
    span = spans_by_id.get(decision.node.id, NOWHERE)
    return decision if span is NOWHERE else replace(decision, span=span)


def removed_locals(reason: RemovalReason) -> Inference:
    """Return the inference of a pass that removes locals for a reason."""

    def infer(before: Program, after: Program) -> Iterator[Decision]:
        remaining = {node.id for node in after.locals}
        for node in before.locals:
            if node.id not in remaining:
                yield Decision("removed", reason, node)

    return infer


def removed_stores(reason: RemovalReason) -> Inference:
    """Return the inference of a pass that removes stores of nodes that remain."""

    def infer(before: Program, after: Program) -> Iterator[Decision]:
        remaining = {node.id for node in (*after.locals, *after.results)}
        remaining |= {parameter.node.id for parameter in after.parameters}
        gone = Counter(_stored_nodes(before)) - Counter(_stored_nodes(after))
        for node, span in gone:
            if node.id in remaining:
                yield Decision("skipped", reason, node, span=span)

    return infer


def new_scalars(outcome: Outcome, reason: NamingReason) -> Inference:
    """Return the inference of a pass that gives values names."""

    def infer(before: Program, after: Program) -> Iterator[Decision]:
        old = {node.id for node in before.locals}
        new = {node.id for node in after.locals} - old
        for stmt in _all_statements(after):
            if isinstance(stmt, Store) and stmt.access.node.id in new:
                text = printer.print_expr(stmt.value)
                yield Decision(outcome, reason, stmt.access.node, text, stmt.span)

    return infer


def removed_loops(before: Program, after: Program) -> Iterator[Decision]:
    """Yield the decisions of a pass that replaces loops by lookups."""
    gone = Counter(_loop_spans(before)) - Counter(_loop_spans(after))
    for span in gone:
        yield Decision("looked up", RemovalReason.SEARCH, span=span)


def parallel_loops(_: Program, after: Program) -> Iterator[Decision]:
    """Yield the decisions of a pass that makes loops parallel."""
    for stmt in _all_statements(after):
        if isinstance(stmt, For) and stmt.kind == "parallel":
            name = stmt.symbol.name
            yield Decision("parallel", ParallelReason.INDEPENDENT, span=stmt.span, variable=name)


UNUSED = removed_locals(RemovalReason.UNUSED)
"""The inference of a pass that removes what nothing needs."""
REPEATED = (removed_locals(RemovalReason.REPEATED),)
OVERWRITTEN = (UNUSED, removed_stores(RemovalReason.OVERWRITTEN))
ZEROS = (UNUSED, removed_stores(RemovalReason.ZERO))
LOOKUPS = (UNUSED, removed_loops)
SHARED = (UNUSED, new_scalars("shared", NamingReason.SHARED))
HOISTED = (UNUSED, new_scalars("hoisted", NamingReason.HOISTED))
PARTS = (removed_locals(RemovalReason.PARTS),)
PARALLEL = (UNUSED, parallel_loops)


def _all_statements(program: Program) -> Iterator[Stmt]:
    for kernel in program.kernels:
        yield from statements(kernel.body)


def _stored_nodes(program: Program) -> Iterator[tuple[Node, Span]]:
    for stmt in _all_statements(program):
        if isinstance(stmt, Store | Update | Fill):
            for node in direct_writes(stmt):
                yield node, stmt.span


def _loop_spans(program: Program) -> Iterator[Span]:
    return (stmt.span for stmt in _all_statements(program) if isinstance(stmt, For))
