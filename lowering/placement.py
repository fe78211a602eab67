"""Where each node of a program ends up living, and why: what the pipeline hands to backends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from ..base.dataclass import dataclass
from .cpu.parallelize import privates
from .ir import memory_mode
from .ir.assignments import Alloc
from .ir.decision import Decision
from .ir.loops import Program
from .ir.node import Node, Purpose
from .ir.walk import bodies, exchanged, statements, writes
from .passes.buffer_sharing import Layout, Memory, memory
from .target import HOST

Where = Literal[
    "parameter", "result", "register", "scratch", "runtime", "virtual", "removed", "reused",
    "private",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node lives, and the sentence that says why."""

    where: Where
    why: str
    room: str = ""
    """Of temporaries in memory: how many bytes, and which."""

    def __str__(self) -> str:
        return f"{self.why}; {self.room}" if self.room else self.why


@dataclass(frozen=True, slots=True)
class Placement:
    """The place of every node of a program, by node id."""

    places: Mapping[int, Place]
    decisions: tuple[Decision, ...] = ()
    """What the passes decided, in order."""
    memory: Memory = field(default_factory=lambda: Memory((), (), (), ()))
    """Where the temporaries are, byte by byte."""
    modes: Mapping[int, memory_mode.Decision] = field(default_factory=dict)
    """The memory mode of each node that something was asked of, by id."""
    vector_bits: int = 0
    """How wide the vectors are that loops over lanes become; 0: they stay loops."""
    polls: bool = False
    """Whether long loops ask now and then if the call is to end."""
    picks: bool = False
    """Whether choices are computed without branches, so that loops become vectors."""

    def __getitem__(self, node: Node) -> Place:
        return self.places[node.id]


def place(
    program: Program, decisions: tuple[Decision, ...] = (), stack_bytes: int = HOST.stack_bytes
) -> Placement:
    """Return where each node of a finished program lives, and why; those without array too."""
    moving = exchanged(program)
    places = {p.node.id: Place("parameter", "the caller provides it") for p in program.parameters}
    places |= {n.id: Place("result", "it is handed to the caller") for n in program.results}
    why: dict[int, list[str]] = {}
    for made in decisions:
        if made.node is not None and made.outcome in ("virtual", "stored", "shrunk", "whole"):
            why.setdefault(made.node.id, []).append(str(made))
        if made.node is not None and made.outcome in ("virtual", "removed", "reused"):
            places[made.node.id] = Place(made.outcome, str(made))
    apart = privates(program)
    plan = memory(program, stack_bytes, apart)
    layout = plan.layout() if plan.is_static else Layout({}, 0)
    others = plan.overlapping(layout) if plan.is_static else {}
    filled = {node.id for node in _filled(program)}
    for node in program.locals:
        if node.id in apart:
            places[node.id] = Place("private", "each thread that runs its loop has its own")
            continue
        because = "; ".join(dict.fromkeys(why.get(node.id, ())))
        if not because and node.id not in filled:
            because = "nothing writes it: only its zeros are read"
        said = "" if node.rank == 0 else plan.said(node, layout, others)
        places[node.id] = _local(node, node.id in moving, because, plan, said)
    return Placement(places, decisions, plan)


def _filled(program: Program) -> tuple[Node, ...]:
    """Return the nodes that get values, which their storage is not."""
    body = (stmt for kernel in program.kernels for stmt in statements(kernel.body))
    return writes(stmt for stmt in body if not isinstance(stmt, Alloc) and not bodies(stmt))


def _local(node: Node, moving: bool, why: str, plan: Memory, said: str) -> Place:
    if node.static_shape is None and node not in (buffer.node for buffer in plan.arena):
        return Place("runtime", "its size is known only during the run")
    if node.rank == 0 and not moving:
        return Place("register", why or "it is a scalar that only this function uses")
    if node.rank == 0:
        return Place("scratch", "it is a scalar that trades places with another array")
    known = why or _MADE.get(node.purpose, "it is read after its loops have ended")
    return Place("scratch", known, said)


_MADE: Mapping[Purpose, str] = {
    "lanes": "it has the partial results of a loop, lane by lane",
    "tile": "it has the elements of a product that are computed at once",
    "panel": "it has what tiles need, side by side",
    "stage": "it has what a part of a loop hands to the next one, for some rounds at a time",
    "marks": "it says which elements of another array rounds fill",
    "kept": "it has what rounds of a loop add, until all of them have run",
}
"""What schedules make arrays for."""
