"""Statements of random programs, one inside of the other: what generators of control flow share."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence


class StatementWriter(ABC):
    """A program while it is written."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.count = rng, 0
        self.loops: list[str] = []
        """The variables of the loops around, outermost first."""

    @abstractmethod
    def statement(self, depth: int, indent: int) -> list[str]:
        """Return the lines of a statement with all that is in it, at most so many deep."""

    def body(self, depth: int, indent: int, most: int) -> list[str]:
        """Return up to so many statements."""
        count = self.rng.randint(1, most)
        return [line for _ in range(count) for line in self.statement(depth, indent)]

    def branch(
        self, test: str, depth: int, indent: int, most: int, jumps: Sequence[str], share: float
    ) -> list[str]:
        """Return an `if`, in a loop with a jump at its end in such a share of them."""
        pad = "    " * indent
        lines = [f"{pad}if {test}:", *self.body(depth - 1, indent + 1, most)]
        if self.loops and self.rng.random() < share:
            lines.append(f"{pad}    {self.rng.choice(jumps)}")
        if self.rng.random() < 0.35:
            lines += [f"{pad}else:", *self.body(depth - 1, indent + 1, 2)]
        return lines

    def range_of(self, ranges: Sequence[str]) -> str:
        """Return a range, sometimes one that the loop around bounds."""
        outer = (f"{self.loops[-1]}, 5", f"1, {self.loops[-1]}") if self.loops else ()
        return f"range({self.rng.choice((*ranges, *outer))})"

    def loop_of(self, variable: str, head: list[str], depth: int, indent: int) -> list[str]:
        """Return a loop with such lines at its start."""
        self.loops.append(variable)
        lines = [*head, *self.body(depth - 1, indent + 1, 3)]
        self.loops.pop()
        return lines
