"""Code variants of a procedure: one per backend and settings, compiled lazily."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Any

from ...base import settings
from ...base.dataclass import dataclass
from ...base.settings import Settings
from ...lowering.analysis.accesses import Accesses, collect_accesses
from ...lowering.ir.assignments import Procedure
from ...lowering.lower import lower
from .state import RUNTIME

if TYPE_CHECKING:
    from ..interface import Code


@dataclass(eq=False)
class CodeVariants:
    """The code variants of a procedure, compiled on first use and kept per backend and settings."""

    procedure: Procedure
    record: Callable[[Any, str], Any]
    """Compiles a recording variant for a backend."""
    _recordings: dict[tuple[Any, str, Settings], Any] = field(default_factory=dict)
    _codes: dict[tuple[str, Settings], Code] = field(default_factory=dict)
    _derived: dict[object, CodeVariants] = field(default_factory=dict)

    def on(self, backend: str) -> Code:
        """Return the code for a backend; raises CdBackendError where it cannot be compiled."""
        if not self.has(backend):
            self.keep(backend, RUNTIME.compile(self.procedure, backend))
        return self._codes[backend, settings.current()]

    def has(self, backend: str) -> bool:
        """Whether there is code for a backend under the current settings."""
        return (backend, settings.current()) in self._codes

    def keep(self, backend: str, code: Code) -> None:
        """Keep code for a backend under the current settings, unless there is some."""
        self._codes.setdefault((backend, settings.current()), code)

    def derived(self, how: object, build: Callable[[], CodeVariants]) -> CodeVariants:
        """Return the variants of a procedure derived from this one, memoized by the key `how`."""
        if how not in self._derived:
            self._derived[how] = build()
        return self._derived[how]

    def recording(self, wanted: Any, backend: str) -> Any:
        """Return the code for a backend that records what is requested, compiled on first use.

        Raises as compiling does.
        """
        key = wanted, backend, settings.current()
        if key not in self._recordings:
            self._recordings[key] = self.record(wanted, backend)
        return self._recordings[key]

    @functools.cached_property
    def accesses(self) -> Accesses:
        """The reads and writes of the procedure, with their order."""
        return accesses_of(self.procedure)

    @functools.cached_property
    def read(self) -> frozenset[int]:
        """The positions of the parameters whose initial contents a call reads."""
        return inputs_of(self.procedure, self.accesses)

    @functools.cached_property
    def needed(self) -> frozenset[int]:
        """The positions of the parameters that need their initial contents: those read, and those
        not overwritten completely."""
        access_facts, parameters = self.accesses, enumerate(self.procedure.parameters)
        return self.read.union(
            at
            for at, parameter in parameters
            if parameter.written and not access_facts.is_overwritten(parameter.node)
        )


def accesses_of(procedure: Procedure) -> Accesses:
    """Return what a procedure reads and writes, and in which order."""
    kernels = lower(procedure).kernels
    return collect_accesses(tuple(stmt for kernel in kernels for stmt in kernel.body))


def inputs_of(procedure: Procedure, accesses: Accesses) -> frozenset[int]:
    """Return the positions of the parameters of which a call reads what they hold before it."""
    nodes = enumerate(parameter.node for parameter in procedure.parameters)
    return frozenset(at for at, node in nodes if accesses.is_upward_exposed(node))
