"""The backend `numpy`: the interpreter of assignments. Slow, and always there."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from ..lowering.ir.assignments import Procedure
from ..lowering.ir.interpret import run_procedure
from ..lowering.ir.printer import print_procedure
from .interface import API_VERSION, Array, Origin


@dataclass(frozen=True, slots=True)
class Interpreted:
    """A procedure as it stands."""

    procedure: Procedure
    origin: Origin = "interpreted"

    @property
    def text(self) -> str:
        """The assignments."""
        return print_procedure(self.procedure)

    def run(self, arrays: Sequence[Array | None]) -> tuple[Array, ...]:
        """Run it point by point and return the results; raises what a failed check names."""
        return run_procedure(self.procedure, arrays, show)


class Interpreter:
    """Runs procedures without compiling them."""

    name = "numpy"
    api_version = API_VERSION

    def unavailable(self) -> str | None:
        """Return None: it runs wherever Python does."""
        return None

    def compile(self, procedure: Procedure) -> Interpreted:
        """Return the procedure as code."""
        return Interpreted(procedure)

    def after_fork(self) -> None:
        """Do nothing: there is nothing to hold."""


def show(text: str) -> None:
    """Print text where Python prints now, which a notebook or a test may have redirected."""
    sys.stdout.write(text)
