"""Resolution of memory requests: the mode requested for each node against where it ended up.

A request is annotated on the node, the outcome is in the routine's placement; both are elements of
the lattice in `ir.memory_mode`, and the outcome is the request joined with the result of the
passes: a node that was inlined is virtual, one that has an array of the routine is local, an
argument or a result has an array outside of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce

from ..base.diagnostic import NOWHERE, CdTypeError, Diagnostic, Label, Span
from .ir.assignments import Permute, Print
from .ir.decision import Decision as Remark
from .ir.loops import Program, Stmt, Update
from .ir.memory_mode import (
    HOSTED_CHANGED,
    HOSTED_CONSTANT,
    LOCAL,
    MATERIALIZED,
    ON_DEVICE,
    VIRTUAL,
    Decision,
    Mode,
    Request,
    admits_virtual,
    join,
    join_modes,
)
from .ir.node import Node
from .ir.walk import reads, statements, writes
from .passes.inline import StoredReason


def resolve_requests(
    before: Program, after: Program, decisions: Iterable[Remark]
) -> dict[int, Decision]:
    """Return the memory mode, by node id, of each node with a request.

    Raises CdTypeError CD0572, with all requests that were not met, where the program cannot meet
    them.
    """
    outside = {p.node.id: (p.written, _GIVEN) for p in before.parameters}
    outside |= {node.id: (False, _RETURNED) for node in before.results}
    why = {
        decision.node.id: decision
        for decision in decisions
        if decision.node is not None and decision.outcome in _FATES
    }
    remaining = {node.id: node for node in after.locals}
    nodes = (*(p.node for p in before.parameters), *before.results, *before.locals)
    resolved: dict[int, Decision] = {}
    refused: list[Diagnostic] = []
    for node in nodes:
        if node.request is None:
            continue
        if node.id in outside:
            fates = _state_of_argument(node.request.mode, *outside[node.id])
        else:
            fates = _state_of_temporary(before, node, remaining.get(node.id), why.get(node.id))
        try:
            resolved[node.id] = reduce(join, fates, node.request)
        except CdTypeError:
            if node.request.mode == HOSTED_CONSTANT and fates[-1].mode == HOSTED_CHANGED:
                refused.append(_written_constant(before, node))
                continue
            conflict = _conflict_span(before, node, node.id in outside)
            refused.append(
                _refusal_diagnostic(node, node.request, fates[-1], conflict, node.id in outside)
            )
    if refused:
        raise CdTypeError(*refused)
    return resolved


_FATES = ("virtual", "stored", "shrunk")
_GIVEN = "it is an array of the caller"
_RETURNED = "it is handed to the caller"
_OWN = "only this function knows it, for as long as one call"


def _state_of_argument(asked: Mode, written: bool, because: str) -> tuple[Request, ...]:
    """Return the state of an array of the caller: it has memory, which a call may change."""
    materialized = Request(MATERIALIZED, because)
    if not written or asked.kind in ("on device", "hosted changed on devices"):
        return (materialized,)
    changed = HOSTED_CHANGED if asked.kind.startswith("hosted") else ON_DEVICE
    return materialized, Request(changed, f"{because}, and written")


def _state_of_temporary(
    before: Program, node: Node, now: Node | None, cause: Remark | None
) -> tuple[Request, ...]:
    """Return the state of a temporary; nothing where it was removed because nothing reads it."""
    is_stored = cause is not None and cause.outcome == "stored"
    if is_stored or (now is not None and bool(now.rank) == bool(node.rank)):
        because = _OWN
        if node.request is not None and admits_virtual(node.request.mode):
            because = str(cause) if is_stored else _reason_not_inlined(before, node)
        return (Request(LOCAL, because),)
    if cause is not None:
        return (Request(VIRTUAL, str(cause)),)
    asked = None if node.request is None else node.request.mode
    if asked is None or admits_virtual(asked) or join_modes(asked, LOCAL) in (LOCAL, "stays"):
        return ()
    return (Request(LOCAL, _OWN),)


def _reason_not_inlined(program: Program, node: Node) -> str:
    """Return why no pass tried to inline a node."""
    roles = [role for _, role in _access_roles(program, node) if role in ("update", "write")]
    if "update" in roles:
        return str(StoredReason.REDUCED)
    if len(roles) > 1:
        return str(StoredReason.SEVERAL)
    return "no statement of its own computes each element once"


def _refusal_diagnostic(
    node: Node, current: Decision, fate: Request, conflict: Span, is_outside: bool
) -> Diagnostic:
    """Return the diagnostic of requests that cannot be met, with all spans involved."""
    located = [request for request in current.requests if request.span is not NOWHERE]
    labels = [Label(request.span, f"asks for {request.mode}") for request in located]
    if conflict is not NOWHERE:
        labels.append(Label(conflict, fate.why))
    if current.mode == VIRTUAL and fate.mode == LOCAL:
        message = f"`{node.label}` was to be virtual, but needs an array: {fate.why}"
        help_ = "drop the request, or write it so that each element is computed by one statement"
    else:
        asked = " and ".join(str(request.mode) for request in current.requests)
        # what the caller holds is in its memory, wherever else a request would have it
        now = "hosted" if is_outside and fate.mode in (MATERIALIZED, ON_DEVICE) else fate.mode
        message = f"`{node.label}` was to be {asked}, but is {now}: {fate.why}"
        help_ = "drop the request, or ask for a mode that admits that"
    notes = [f"it was asked for: {request.why}" for request in current.requests]
    if len(notes) > 1:
        notes.append(f"together they ask for {current.mode}")
    return Diagnostic("CD0572", message, tuple(labels), tuple(notes), (help_,))


def _written_constant(program: Program, node: Node) -> Diagnostic:
    """Return the diagnostic of a constant array of the caller that is written."""
    span = _conflict_span(program, node, True)
    message = f"tensor `{node.label}` is constant, and the function writes it"
    labels = () if span is NOWHERE else (Label(span),)
    return Diagnostic("CD0804", message, labels, (), ("make it without `constant=True`",))


def _conflict_span(program: Program, node: Node, is_outside: bool) -> Span:
    """Return the span of the statement that conflicts with a request, as far as it is known."""
    uses = list(_access_roles(program, node))
    wanted = [stmt for stmt, role in uses if role == "special"]
    wanted += [stmt for stmt, role in uses if role == "update"]
    stores = [stmt for stmt, role in uses if role == "write"]
    readers = [stmt for stmt, role in uses if role == "read"]
    wanted += stores + readers if is_outside else stores[1:] + readers + stores[:1]
    spans = (getattr(stmt, "span", NOWHERE) for stmt in wanted)
    return next((span for span in spans if span is not NOWHERE), NOWHERE)


def _access_roles(program: Program, node: Node) -> Iterator[tuple[Stmt, str]]:
    """Yield the statements that access a node themselves, each with its role."""
    for stmt in (stmt for kernel in program.kernels for stmt in statements(kernel.body)):
        bare = (stmt,)
        match stmt:
            case Permute(nodes, sources) if node in (*nodes, *sources):
                yield stmt, "special"
            case Print() if node in reads(bare):
                yield stmt, "special"
            case Update(access) if access.node == node:
                yield stmt, "update"
            case _ if not hasattr(stmt, "body") and not hasattr(stmt, "then"):
                if node in writes(bare):
                    yield stmt, "write"
                elif node in reads(bare):
                    yield stmt, "read"
            case _:
                pass
