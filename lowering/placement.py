"""Where each node of a program ends up living, and why: what the pipeline hands to backends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from .dataclass import dataclass
from .ir import memory_mode
from .ir.node import Node
from .passes.buffers import Memory
from .passes.decision import Decision

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
