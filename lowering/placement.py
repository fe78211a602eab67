"""Placement: where each node of a program lives, and why; the pipeline hands it to backends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Literal

from ..base.dataclass import dataclass
from ..base.lazy_import import LazyModule
from .ir import memory_mode
from .ir.assignments import Alloc
from .ir.decision import Decision, Outcome
from .ir.loops import Program
from .ir.node import Node, Purpose
from .ir.walk import bodies, parallel_loops, permuted_nodes, reads, statements, writes
from .passes.buffer_sharing import Layout, MemoryPlan, plan_memory
from .target import HOST

if TYPE_CHECKING:
    from .cpu import parallelize
else:  # for parallel loops alone
    parallelize = LazyModule(".cpu.parallelize", __package__)

Where = Literal[
    "parameter", "result", "register", "scratch", "runtime", "virtual", "removed", "reused",
    "private",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class StorageDecision:
    """The storage of a node, and the sentence that gives the reason."""

    where: Where
    why: str
    memory: str = ""
    """Of temporaries in memory: how many bytes, and which."""

    def __str__(self) -> str:
        return f"{self.why}; {self.memory}" if self.memory else self.why


@dataclass(frozen=True, slots=True)
class Placement:
    """The storage of every node of a program, by node id."""

    places: Mapping[int, StorageDecision]
    decisions: tuple[Decision, ...] = ()
    """What the passes decided, in order."""
    memory: MemoryPlan = field(default_factory=lambda: MemoryPlan((), (), (), ()))
    """The memory plan of the temporaries: offsets in bytes."""
    modes: Mapping[int, memory_mode.Decision] = field(default_factory=dict)
    """The memory mode of each node with a request, by id."""
    vector_bits: int = 0
    """The width of the vectors that lane loops become; 0: they stay loops."""
    polls: bool = False
    """Whether long loops poll for cancellation."""
    picks: bool = False
    """Whether selects are computed without branches, so that loops are vectorized."""

    def __getitem__(self, node: Node) -> StorageDecision:
        return self.places[node.id]


def place_nodes(
    program: Program, decisions: tuple[Decision, ...] = (), stack_bytes: int = HOST.stack_bytes
) -> Placement:
    """Return the storage of each node of a finished program, with reasons; nodes without array
    included."""
    moving = permuted_nodes(program)
    places = {
        p.node.id: StorageDecision("parameter", "the caller provides it")
        for p in program.parameters
    }
    places |= {
        n.id: StorageDecision("result", "it is handed to the caller") for n in program.results
    }
    reasons = _reasons(decisions)
    for decision in decisions:
        if decision.node is not None and decision.outcome in ("virtual", "removed", "reused"):
            places[decision.node.id] = StorageDecision(decision.outcome, str(decision))
    has_threads = any(parallel_loops(kernel.body) for kernel in program.kernels)
    privatized = parallelize.thread_privates(program) if has_threads else frozenset[int]()
    plan = plan_memory(program, stack_bytes, privatized)
    layout = plan.layout() if plan.is_static else Layout({}, 0)
    sharers = plan.overlapping(layout) if plan.is_static else {}
    filled, used = _written_ids(program), _used_ids(program)
    for node in program.locals:
        because = _text_of(reasons.get(node.id, ())) or _PURPOSE_TEXTS.get(node.purpose, "")
        if node.id not in used:
            because = UNUSED
        if node.id in privatized:
            because = because or "an iteration of its loop writes it before it reads it"
            places[node.id] = StorageDecision(
                "private", because, "each thread that runs the loop has a copy"
            )
            continue
        if not because and node.id not in filled:
            because = "nothing writes it: only its zeros are read"
        has_storage = node.rank and because != UNUSED
        storage_text = "" if not has_storage else plan.said(node, layout, sharers)
        places[node.id] = _local_place(node, node.id in moving, because, plan, storage_text)
    return Placement(places, decisions, plan)


def _written_ids(program: Program) -> frozenset[int]:
    """Return the ids of the nodes that are written, allocations not counted."""
    body = (stmt for kernel in program.kernels for stmt in statements(kernel.body))
    written = writes(s for s in body if not isinstance(s, Alloc) and not bodies(s))
    return frozenset(node.id for node in written)


def _used_ids(program: Program) -> frozenset[int]:
    """Return the ids of the nodes that a statement names."""
    body = tuple(stmt for kernel in program.kernels for stmt in kernel.body)
    return frozenset(node.id for node in (*reads(body), *writes(body)))


def _reasons(decisions: tuple[Decision, ...]) -> dict[int, list[Decision]]:
    """Return the decisions that say why a node has memory, and how much, by node id."""
    reasons: dict[int, list[Decision]] = {}
    for decision in decisions:
        node = decision.scalar or decision.node
        if node is not None and decision.outcome in _DECIDING:
            reasons.setdefault(node.id, []).append(decision)
    return reasons


def _text_of(decisions: Sequence[Decision]) -> str:
    """Return the reasons of a node, the one first that decided, and how far others went."""
    reasons: dict[str, str] = {}
    for decision in sorted(decisions, key=lambda candidate: _DECIDING.index(candidate.outcome)):
        reasons.setdefault(_reason_text(decision), _DENIED.get(decision.outcome, ""))
    texts, before = [], ""
    for text, denied in reasons.items():
        is_implied = denied == before or len(set(reasons.values())) == 1
        texts.append(text if is_implied else f"{denied}{text}")
        before = denied
    return "; ".join(texts)


def _reason_text(decision: Decision) -> str:
    if decision.scalar is not None and decision.node is not None:
        return f"it holds an element of `{decision.node.label}` during a loop"
    if decision.outcome in ("shared", "hoisted"):
        return f"it holds `{decision.detail}`: {decision.reason}"
    return str(decision)


_DECIDING: tuple[Outcome, ...] = (
    "virtual", "shrunk", "shared", "hoisted", "register", "stored", "whole",
)  # fmt: skip
"""The outcomes that say where a node lives; of two, the first decided."""
_DENIED: Mapping[Outcome, str] = {"stored": "not virtual: ", "whole": "kept whole: "}


def _local_place(
    node: Node, moving: bool, why: str, plan: MemoryPlan, storage_text: str
) -> StorageDecision:
    if node.static_shape is None and node not in (buffer.node for buffer in plan.arena):
        return StorageDecision("runtime", why or _READ_LATER, "its size is known only at run time")
    if node.rank == 0 and not moving:
        return StorageDecision("register", why or "it is a scalar that only this function uses")
    if node.rank == 0:
        return StorageDecision("scratch", "it is a scalar that trades places with another array")
    return StorageDecision("scratch", why or _READ_LATER, storage_text)


UNUSED = "later passes left nothing that uses it"
"""The reason of a local that is declared, and that no statement names."""
_READ_LATER = "it is read after its loops have ended"
_PURPOSE_TEXTS: Mapping[Purpose, str] = {
    "lanes": "it holds the partial results of a loop, one for each SIMD lane",
    "tile": "it holds the elements of a product that are computed at once",
    "panel": "it holds what tiles need, contiguously",
    "stage": "it holds what one part of a loop hands to the next, for some iterations at a time",
    "marks": "it tells which elements of another array iterations fill",
    "kept": "it holds what the iterations of a loop add, until all of them have run",
}
"""Descriptions of arrays that schedules create."""
