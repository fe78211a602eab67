"""Runs every program before and after passes, and compares all that can be seen, bit by bit.

`checking(changes)` is a backend: whatever is called on it runs its loops as they were lowered and
after each change, on copies of the same arrays, and the results, the written arrays, the printed
text and the fault have to be the same. Finally it returns what the loops gave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from plusequals.backends.interface import API_VERSION, Origin
from plusequals.base.diagnostic import CdError
from plusequals.lowering.ir.assignments import Procedure
from plusequals.lowering.ir.decision import Decided
from plusequals.lowering.ir.interpret import run_program
from plusequals.lowering.ir.loops import Program
from plusequals.lowering.ir.printer import print_program
from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.lower import lower
from tests.offered import offered

Change = Callable[[Program], Program | Decided]
NAME = "before-and-after"


@dataclass(frozen=True, slots=True)
class Seen:
    """What a run shows: results, the arrays afterwards, printed text, and the fault if any."""

    results: tuple[bytes, ...]
    arrays: tuple[bytes, ...]
    text: str
    fault: str

    @classmethod
    def of(cls, program: Program, arrays: Sequence[Any]) -> tuple[Seen, tuple[Any, ...]]:
        """Run a program on copies; return what was seen, and the results."""
        mine = [None if array is None else np.array(array) for array in arrays]
        shown: list[str] = []
        results: tuple[Any, ...] = ()
        fault = ""
        try:
            results = run_program(program, mine, shown.append)
        except CdError as problem:
            fault = f"{problem.code} {problem.diagnostics[0].message}"
        after = tuple(b"" if array is None else array.tobytes() for array in mine)
        return cls(tuple(r.tobytes() for r in results), after, "".join(shown), fault), results


def program_of(made: Program | Decided) -> Program:
    """Return the program that a pass gives, without what it decided."""
    return made.program if isinstance(made, Decided) else made


def assert_agrees(before: Program, change: Change, arrays: Sequence[Any]) -> Program:
    """Return the changed program, which has to be sound and to do what it did before."""
    after = program_of(change(before))
    verify_program(after)
    one, _ = Seen.of(before, arrays)
    two, _ = Seen.of(after, arrays)
    texts = f"\n{print_program(before)}\nbecame\n{print_program(after)}"
    assert two.fault == one.fault, texts
    assert two.text == one.text, texts
    assert two.arrays == one.arrays, texts
    assert two.results == one.results, texts
    return after


@dataclass(slots=True)
class Checked:
    """Loops that run before and after every change."""

    before: Program
    changes: Mapping[str, Change]
    changed: dict[str, int]
    origin: Origin = "interpreted"
    text: str = ""

    def run(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """Compare, then run the loops as they were lowered."""
        for name, change in self.changes.items():
            after = assert_agrees(self.before, change, arrays)
            self.changed[name] = self.changed.get(name, 0) + (after != self.before)
        return run_program(self.before, arrays, lambda text: None)


@dataclass(slots=True)
class Checking:
    """A backend that compares; `changed` counts the programs that each change did something to."""

    changes: Mapping[str, Change]
    changed: dict[str, int] = field(default_factory=dict)
    name: str = NAME
    api_version: int = API_VERSION

    def unavailable(self) -> None:
        """Return None: it is always there."""
        return None

    def compile(self, procedure: Procedure) -> Checked:
        """Return the loops of a procedure."""
        program = lower(procedure)
        verify_program(program)
        return Checked(program, self.changes, self.changed)

    def after_fork(self) -> None:
        """Do nothing: there is nothing to hold."""


@contextmanager
def checking(changes: Mapping[str, Change]) -> Iterator[Checking]:
    """Offer the backend inside the `with`, under `NAME`."""
    backend = Checking(changes)
    with offered(NAME, backend):
        yield backend
