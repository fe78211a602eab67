"""Placement: where each node of a program lives, and why; the pipeline hands it to backends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from ..base.dataclass import dataclass
from .cpu.parallelize import thread_privates
from .ir import memory_mode
from .ir.assignments import Alloc
from .ir.decision import Decision
from .ir.loops import Program
from .ir.node import Node, Purpose
from .ir.walk import bodies, permuted_nodes, statements, writes
from .passes.buffer_sharing import Layout, MemoryPlan, plan_memory
from .target import HOST

Where = Literal[
    "parameter", "result", "register", "scratch", "runtime", "virtual", "removed", "reused",
    "private",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """The storage of a node, and the sentence that gives the reason."""

    where: Where
    why: str
    room: str = ""
    """Of temporaries in memory: how many bytes, and which."""

    def __str__(self) -> str:
        return f"{self.why}; {self.room}" if self.room else self.why


@dataclass(frozen=True, slots=True)
class Placement:
    """The storage of every node of a program, by node id."""

    places: Mapping[int, Place]
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

    def __getitem__(self, node: Node) -> Place:
        return self.places[node.id]


def place_nodes(
    program: Program, decisions: tuple[Decision, ...] = (), stack_bytes: int = HOST.stack_bytes
) -> Placement:
    """Return the storage of each node of a finished program, with reasons; nodes without array
    included."""
    moving = permuted_nodes(program)
    places = {p.node.id: Place("parameter", "the caller provides it") for p in program.parameters}
    places |= {n.id: Place("result", "it is handed to the caller") for n in program.results}
    why: dict[int, list[str]] = {}
    for decision in decisions:
        if decision.node is not None and decision.outcome in (
            "virtual",
            "stored",
            "shrunk",
            "whole",
        ):
            why.setdefault(decision.node.id, []).append(str(decision))
        if decision.node is not None and decision.outcome in ("virtual", "removed", "reused"):
            places[decision.node.id] = Place(decision.outcome, str(decision))
    privatized = thread_privates(program)
    plan = plan_memory(program, stack_bytes, privatized)
    layout = plan.layout() if plan.is_static else Layout({}, 0)
    sharers = plan.overlapping(layout) if plan.is_static else {}
    filled = {node.id for node in _written_nodes(program)}
    for node in program.locals:
        if node.id in privatized:
            places[node.id] = Place("private", "each thread that runs its loop has its own")
            continue
        because = "; ".join(dict.fromkeys(why.get(node.id, ())))
        if not because and node.id not in filled:
            because = "nothing writes it: only its zeros are read"
        storage_text = "" if node.rank == 0 else plan.said(node, layout, sharers)
        places[node.id] = _local_place(node, node.id in moving, because, plan, storage_text)
    return Placement(places, decisions, plan)


def _written_nodes(program: Program) -> tuple[Node, ...]:
    """Return the nodes that are written, allocations not counted."""
    body = (stmt for kernel in program.kernels for stmt in statements(kernel.body))
    return writes(stmt for stmt in body if not isinstance(stmt, Alloc) and not bodies(stmt))


def _local_place(node: Node, moving: bool, why: str, plan: MemoryPlan, storage_text: str) -> Place:
    if node.static_shape is None and node not in (buffer.node for buffer in plan.arena):
        return Place("runtime", "its size is known only during the run")
    if node.rank == 0 and not moving:
        return Place("register", why or "it is a scalar that only this function uses")
    if node.rank == 0:
        return Place("scratch", "it is a scalar that trades places with another array")
    known = why or _PURPOSE_TEXTS.get(node.purpose, "it is read after its loops have ended")
    return Place("scratch", known, storage_text)


_PURPOSE_TEXTS: Mapping[Purpose, str] = {
    "lanes": "it has the partial results of a loop, lane by lane",
    "tile": "it has the elements of a product that are computed at once",
    "panel": "it has what tiles need, side by side",
    "stage": "it has what a part of a loop hands to the next one, for some rounds at a time",
    "marks": "it says which elements of another array rounds fill",
    "kept": "it has what rounds of a loop add, until all of them have run",
}
"""Descriptions of arrays that schedules create."""
