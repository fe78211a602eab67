"""A program while it grows: its lines, its arguments, and what they make of each other so far.

Whatever is added is run by plain Python at once, on the arguments themselves, so that shapes and
types need no model here: what NumPy refuses is taken back.
"""

from __future__ import annotations

import ast
import random
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .model import ArgSpec, Program
from .plain_index import translated

LIMIT = 400
"""Largest number of elements of an array."""
_STEPS = 3000
"""How many lines a run may take before it is given up."""


class Refused(Exception):
    """What was to be added does not work in plain Python."""


@dataclass
class Writer:
    """The text so far. `rng` is random.Random, or Hypothesis's."""

    rng: random.Random
    tier: str = "E"
    notation: str = "array"
    args: list[ArgSpec] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    indent: int = 1
    env: dict[str, Any] = field(default_factory=dict)
    serial: int = 0
    reorders: bool = False
    rounds: bool = False
    features: set[str] = field(default_factory=set)
    names: dict[str, Any] = field(default_factory=lambda: {"np": np})
    limit: int = LIMIT
    """How many elements an array has at most."""
    dynamic: bool = False
    """Whether sizes and integers of a call stand in the text, in place of some of its numbers."""
    runs: int = 0
    """How often lines were run, whether or not they could."""

    def fresh(self, prefix: str) -> str:
        """Return a name that nothing has."""
        self.serial += 1
        return f"{prefix}{self.serial}"

    @property
    def is_even(self) -> bool:
        """Whether the arguments are arrays of one element type."""
        return len({spec.dtype for spec in self.args}) == 1

    def chance(self, probability: float) -> bool:
        """Return True that often."""
        return self.rng.random() < probability

    def start(self, args: list[ArgSpec]) -> None:
        """Take the arguments."""
        self.args = args
        self.env = Program("", tuple(args)).make()

    def evaluate(self, text: str) -> Any:
        """Return the value of an expression here. Raises Refused."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                value = eval(text, self.names | self.env)
            except Exception as why:
                raise Refused(f"{text}: {why}") from None
        if isinstance(value, np.ndarray) and (value.size > self.limit or value.dtype == object):
            raise Refused("too large")
        if type(value) is int and abs(value) > 2**40:
            raise Refused("too large")
        return value

    def add(self, *lines: str) -> None:
        """Add lines at this depth after running them. Raises Refused, and leaves no trace of it."""
        self.run(lines)
        self.lines += ["    " * self.indent + line for line in lines]

    def run(self, lines: tuple[str, ...] | list[str]) -> None:
        """Run lines in the environment."""
        self.runs += 1
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                made = translated("\n".join(lines))
                exec(compile(made.text, "<lines>", "exec"), self.names | made.names(), self.env)
            except Exception as why:
                raise Refused(f"{lines}: {why}") from None
        for value in self.env.values():
            if isinstance(value, np.ndarray) and (value.size > self.limit or value.dtype == object):
                raise Refused("too large")

    def replay(self) -> None:
        """Run the program anew from its arguments. Raises Refused."""
        self.env = Program("", tuple(self.args)).make()
        body = [line[4:] for line in self.lines]
        self.run(_counted(body))
        outer = _outer_names(body) | {spec.name for spec in self.args}
        self.env = {name: value for name, value in self.env.items() if name in outer}

    def replay_body(self) -> None:
        """Run the whole program, `return` included. Raises Refused."""
        self.env = Program("", tuple(self.args)).make()
        names = ", ".join(spec.name for spec in self.args)
        body = ["    " + line for line in _counted([line[4:] for line in self.lines])]
        self.run([f"def f({names}):", *body, f"f({names})"])

    def extent(self, size: int) -> str:
        """Return a size in the text: a number, or where an array among the arguments has it."""
        found = [
            f"{spec.name}.shape[{axis}]" for spec in self.args if spec.is_array
            for axis, extent in enumerate(spec.shape) if extent == size
        ]  # fmt: skip
        return self.rng.choice(found) if self.dynamic and found and self.chance(0.8) else str(size)

    def integer(self) -> str:
        """Return an integer that only a call knows: an argument, or what a size makes."""
        names = [s.name for s in self.args if s.dtype == "int"]
        arrays = [s for s in self.args if s.is_array and s.shape]
        if names and (not arrays or self.chance(0.6)):
            return self.rng.choice(("{}", "{}", "{}", "{} + 1", "-{}", "2 * {}", "{} // 2")).format(
                self.rng.choice(names)
            )
        if not arrays:
            raise Refused
        spec = self.rng.choice(arrays)
        size = f"{spec.name}.shape[{self.rng.randrange(len(spec.shape))}]"
        return size + self.rng.choice(("", "", " - 1", " // 2", " - 2", " % 3"))

    def arrays(self) -> list[str]:
        """Return the names of arrays."""
        return [n for n, v in self.env.items() if isinstance(v, np.ndarray)]

    def scalars(self) -> list[str]:
        """Return the names of numbers."""
        return [
            n for n, v in self.env.items()
            if isinstance(v, int | float | np.number) and not isinstance(v, bool)
        ]  # fmt: skip


def _outer_names(body: list[str]) -> set[str]:
    """Return the names that are assigned outside of every block."""
    found: set[str] = set()
    for statement in ast.parse("\n".join(body)).body:
        match statement:
            case ast.Assign(targets=targets):
                found |= {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
            case ast.FunctionDef(name=name):
                found.add(name)
    return found


def _counted(body: list[str]) -> list[str]:
    """Return the lines with a limit on the rounds of every loop."""
    out = ["_steps = 0"]
    for line in body:
        out.append(line)
        if line.lstrip().startswith("while "):
            pad = line[: len(line) - len(line.lstrip())] + "    "
            out += [f"{pad}_steps += 1", f"{pad}assert _steps < {_STEPS}"]
    return out
