"""The backend `numpy`: the interpreter of assignments. Slow, and always there."""

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
class Interpreted:
    """A procedure as it stands."""

    procedure: Procedure
    origin: Origin = "interpreted"

    @property
    def text(self) -> str:
        """The assignments."""
        return print_procedure(self.procedure)

    @property
    def line_map(self) -> Mapping[int, Span]:
        """The statement that each line of the assignments comes from."""
        return {n: line.span for n, line in enumerate(procedure_lines(self.procedure), 1)}

    @float_modes.default()
    def run(self, arrays: Sequence[Array | None]) -> tuple[Array, ...]:
        """Run it point by point and return the results; raises what a failed check names."""
        return run_procedure(self.procedure, arrays, show)

    def bind(self, arrays: Sequence[Array | None]) -> Callable[[], tuple[Array, ...]]:
        """Return the run on these arrays, which can be repeated."""
        return partial(self.run, arrays)


class Interpreter:
    """Runs procedures without compiling them."""

    name = "numpy"
    api_version = API_VERSION

    def unavailable(self) -> None:
        """Return None: it runs wherever Python does."""
        return None

    def compile(self, procedure: Procedure) -> Interpreted:
        """Return the procedure as code; what was asked of memory is refused as elsewhere.

        Raises CdTypeError CD0572 where a request could not be met by compiled code.
        """
        nodes = (*(p.node for p in procedure.parameters), *procedure.results, *procedure.locals)
        if any(node.request is not None for node in nodes):
            optimize(lower(procedure), HOST)
        return Interpreted(procedure)

    def after_fork(self) -> None:
        """Do nothing: there is nothing to hold."""


def show(text: str) -> None:
    """Print text where Python prints now, which a notebook or a test may have redirected."""
    sys.stdout.write(text)
