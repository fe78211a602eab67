"""What a worker needs of a library: functions, arguments for them, answers as NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol

from ..cell import Array, Number, Regime, Result

Function = Callable[..., Any]
Arguments = tuple[Any, ...]


class LeftOut(Exception):
    """The library cannot do this, or nobody would do it with the library; says why."""


@dataclass(frozen=True, slots=True)
class Task:
    """One cell for one peer."""

    name: str
    regime: Regime
    inputs: tuple[Array, ...]
    results: tuple[Result, ...]
    numbers: tuple[Number, ...]
    constants: tuple[int, ...] = ()

    def empty(self) -> tuple[Array, ...]:
        """Return new arrays for the outputs."""
        return tuple(result.empty() for result in self.results)

    @property
    def differentiated(self) -> tuple[int, ...]:
        """The positions of the inputs in which a gradient is taken."""
        floats = (n for n, array in enumerate(self.inputs) if array.dtype.kind == "f")
        return tuple(n for n in floats if n not in self.constants)


class Library(Protocol):
    """A library, imported and told how many threads it may use."""

    def __init__(self, threads: int, kept: bool = False) -> None:
        """Import and set up. `kept`: compiled code is to be kept on disk."""

    def version(self) -> str:
        """Return what was imported, with its version."""

    def function(self, functions: ModuleType, task: Task) -> Function:
        """Return what to call; when a call returns, all of its work is done. Raises LeftOut."""

    def arguments(self, functions: ModuleType, task: Task) -> Arguments:
        """Return what to call it with: arrays of the library's own, then numbers."""

    def answer(self, returned: Any, arguments: Arguments, task: Task) -> tuple[Array, ...]:
        """Return what the outputs are after a call that returned this."""


class Writing:
    """The half of a library whose functions write NumPy arrays that they are given."""

    def arguments(self, functions: ModuleType, task: Task) -> Arguments:
        """Return outputs, inputs and numbers."""
        return (*task.empty(), *task.inputs, *task.numbers)

    def answer(self, returned: Any, arguments: Arguments, task: Task) -> tuple[Array, ...]:
        """Return the outputs."""
        return arguments[: len(task.results)]
