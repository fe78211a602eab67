"""What a pass decided and why: values that travel beside the program, for `explain`."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, NamedTuple

from ..diagnostic import NOWHERE, Span
from ..ir.loops import Program
from ..ir.node import Node

Outcome = Literal["virtual", "stored", "shrunk", "fused", "apart", "register", "reused"]


class Reason(Enum):
    """Base of the reasons of a pass: each member's value is its sentence."""

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision, about a node or (fused, apart) about two nests."""

    outcome: Outcome
    reason: Reason
    node: Node | None = None
    detail: str = ""
    """What the sentence leaves open: names and numbers."""
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.reason}{': ' if self.detail else ''}{self.detail}"


class Decided(NamedTuple):
    """A program after a pass, and what the pass decided on the way."""

    program: Program
    decisions: tuple[Decision, ...]
