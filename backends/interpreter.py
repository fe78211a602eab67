"""Interpreter backend `numpy`: executes assignments without a compiler; slow, always available."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from ..base import float_modes
from ..base.dataclass import dataclass
from ..base.diagnostic import Span
from ..lowering.ir.assignments import Procedure
from ..lowering.ir.interpret import run_procedure
from ..lowering.ir.printer import print_procedure, procedure_lines
from ..lowering.lower import lower
from ..lowering.pipeline import optimize
from ..lowering.target import HOST
from .interface import API_VERSION, Array, Origin


@dataclass(frozen=True, slots=True)
class InterpretedCode:
    """An interpreted procedure."""

    procedure: Procedure
    origin: Origin = "interpreted"

    @property
    def text(self) -> str:
        """The assignments."""
        return print_procedure(self.procedure)

    @property
    def line_map(self) -> Mapping[int, Span]:
        """The source statement of each line of the assignments."""
        return {n: line.span for n, line in enumerate(procedure_lines(self.procedure), 1)}

    @float_modes.default()
    def run(self, arrays: Sequence[Array | None]) -> tuple[Array, ...]:
        """Interpret it point by point; return the results; raises the fault of a failed check."""
        return run_procedure(self.procedure, arrays, show)

    def bind(self, arrays: Sequence[Array | None]) -> Callable[[], tuple[Array, ...]]:
        """Return a function that runs on these arrays."""
        return partial(self.run, arrays)


class Interpreter:
    """The backend that interprets procedures."""

    name = "numpy"
    api_version = API_VERSION

    def unavailable(self) -> None:
        """Return None: it runs wherever Python does."""
        return None

    def compile(self, procedure: Procedure) -> InterpretedCode:
        """Return the procedure as code; memory requests are checked as by the other backends.

        Raises CdTypeError CD0572 where a request could not be met by compiled code.
        """
        nodes = (*(p.node for p in procedure.parameters), *procedure.results, *procedure.locals)
        if any(node.request is not None for node in nodes):
            optimize(lower(procedure), HOST)
        return InterpretedCode(procedure)

    def after_fork(self) -> None:
        """Do nothing: it has no locks."""


def show(text: str) -> None:
    """Print text to Python's current standard output, which may be redirected."""
    sys.stdout.write(text)
