"""Optimization remarks: what a pass decided and why, as values for `explain`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from enum import Enum
from typing import Literal, NamedTuple, assert_never

from ...base.dataclass import dataclass
from ...base.diagnostic import NOWHERE, Span
from ..target import Target
from .loops import Program
from .node import Node

Outcome = Literal[
    "virtual", "stored", "shrunk", "whole", "register", "fused", "not fused", "removed", "skipped",
    "reused", "shared", "hoisted", "looked up", "parallel", "lanes", "tiles", "vectorized",
    "deferred", "checked", "skewed", "masked", "staged", "answered", "of reals",
    "mirrored", "split", "mapped",
]  # fmt: skip


def is_thorough(target: Target) -> bool:
    """Whether all passes run, not only those that decide bits or shorten the program at once."""
    return not target.short


def always(_: Target) -> bool:
    """Whether a pass of the short pipeline, too, does something: for every target."""
    return True


def is_any(program: Program) -> bool:
    """Whether a pass may do something for a program: for any."""
    return True


class Reason(Enum):
    """Base of the reasons of a pass: the value of a member is its sentence."""

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision: about a node, about a loop, or (`fused`, `not fused`) about two loops."""

    outcome: Outcome
    reason: Reason
    node: Node | None = None
    detail: str = ""
    """Names and numbers that the sentence leaves open."""
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    """The statement or loop that it is about; of two loops, the second. Where a pass leaves it out,
    the pipeline puts the first statement that writes the node."""
    first_span: Span = field(default=NOWHERE, compare=False, repr=False)
    """Of two loops, the first; NOWHERE otherwise."""
    variable: str = field(default="", compare=False)
    """The name of the variable of the loop that it is about; of two loops, of the second."""
    scalar: Node | None = field(default=None, compare=False, repr=False)
    """The scalar that holds an element of the node."""

    def __str__(self) -> str:
        return f"{self.reason}{': ' if self.detail else ''}{self.detail}"

    def sentence(self, name: Callable[[Node], str] = lambda node: node.label) -> str:
        """Return the decision as a sentence for the author of the statement; `name` names nodes."""
        return f"{self._claim(name)}: {self._because()}"

    def _claim(self, name: Callable[[Node], str]) -> str:
        array = "" if self.node is None else f"`{name(self.node)}`"
        loop = f"the loop over `{self.variable}`"
        match self.outcome:
            case "virtual":
                return f"{array} is never stored"
            case "stored":
                return f"{array} is computed once and stored"
            case "shrunk":
                return f"of {array} only {_extent_text(self.node)} is kept at a time"
            case "whole":
                return f"{array} is kept whole"
            case "register":
                return f"a loop keeps an element of {array} in a register"
            case "fused":
                return f"{loop} is joined with {self._first_loop()}"
            case "not fused":
                return f"{loop} is kept apart from {self._first_loop()}"
            case "removed":
                return f"{array} is not computed"
            case "reused":
                return f"{array} is computed in the memory of another array"
            case "skipped":
                return f"this value of {array} is not stored"
            case "shared":
                return f"`{self.detail}` is computed once, as {array}"
            case "hoisted":
                return f"`{self.detail}` is computed before the loop, as {array}"
            case "looked up":
                return "the loop is replaced by a lookup"
            case "tiles":
                return f"the nest of {loop} is computed in tiles"
            case "parallel":
                return f"the iterations of {loop} run on several threads"
            case "lanes":
                return f"the terms of {array} are combined in SIMD lanes"
            case "deferred":
                return f"what iterations over `{self.variable}` add to {array} is added after them"
            case "checked":
                return f"the indices in {array or 'it'} are checked for many iterations at once"
            case "answered":
                return f"the loops that compute {array} end once its value is certain"
            case "skewed":
                return f"{loop} does several iterations for a block of rows"
            case "staged":
                return f"{loop} has a separate loop for each of its functions"
            case "masked":
                return f"the iterations of {loop} run in SIMD lanes"
            case "of reals":
                return f"the nest of {loop} computes with real numbers"
            case "mirrored":
                return f"half of {array} is copied from its other half"
            case "mapped":
                return f"{loop} runs on the device"
            case "split":
                return f"{loop} is split in two"
            case "vectorized":
                return f"neighbouring elements of {array} are computed together"
            case _:
                assert_never(self.outcome)

    def _because(self) -> str:
        if self.outcome in ("shared", "hoisted") or not self.detail:
            return str(self.reason)
        return f"{self.reason}: {self.detail if '`' in self.detail else f'`{self.detail}`'}"

    def _first_loop(self) -> str:
        """Return the text for the first of two loops."""
        if self.first_span.line == self.span.line and self.first_span.source == self.span.source:
            return "another one of the same line"
        return f"the one of {line_of(self.first_span, self.span)}"


class Decided(NamedTuple):
    """A program after a pass, and the decisions of the pass."""

    program: Program
    decisions: tuple[Decision, ...] = ()


Run = Callable[[Program, Target], Decided]


class Pass(NamedTuple):
    """A step of a pipeline, named as its function; a number tells runs of one function apart."""

    name: str
    run: Run
    when: Callable[[Target], bool] = is_thorough
    """Whether it does anything for a target; otherwise it is the identity."""
    needs: Callable[[Program], bool] = is_any
    """Its precondition, cheaper than the pass: otherwise it is the identity, without decisions."""

    def applies(self, program: Program, target: Target) -> bool:
        """Return whether it may do anything for a program and a target."""
        return self.when(target) and self.needs(program)


def for_any(decide: Callable[[Program], Decided]) -> Run:
    """Return the run of a pass that asks for no target."""
    return lambda program, _: decide(program)


def line_of(span: Span, near: Span) -> str:
    """Return the text of a span: `line 3`, or `file.py:3` if `near` is not in the same source."""
    if span is NOWHERE:
        return "another statement"
    if span.source == near.source:
        return f"line {span.line}"
    return f"{span.source.short_name}:{span.line}"


def _extent_text(node: Node | None) -> str:
    if node is None or not node.rank:
        return "one element"
    return f"{node.dtype.short}[{', '.join(map(str, node.shape))}]"
