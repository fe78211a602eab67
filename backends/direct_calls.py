"""Optional protocols for calls without Python: direct calls, their library, stored code.

    HasDirectCalls     of code: the fast path, on which a call runs no Python
    HasCallerLibrary   of a backend: the library of the fast path
    StoresCode         of a backend: first calls in a new process find what earlier ones compiled

`capabilities` finds them by an attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, NoReturn, Protocol

from ..base.diagnostic import Span
from ..lowering.ir.assignments import Fault
from ..lowering.ir.node import Node
from .cache.cache import Cache
from .interface import Array


class DirectCall(Protocol):
    """Code for certain sizes, called by its address; what it refers to lives as long as it."""

    @property
    def addresses(self) -> tuple[int, int, int]:
        """Of the entry point, `int f(void **)`, of the sizes that are passed to it, and of a table
        that is passed as well; 0 for none. `backends/codegen/entry.py` has the order."""

    def fail(self, status: int, *fault: int) -> NoReturn:
        """Raise the error of a status other than 0, with the fault record of the run."""


class CompiledCall(DirectCall, Protocol):
    """A direct call of code that this process compiled or loaded."""

    @property
    def saved(self) -> Mapping[str, Any] | None:
        """What `StoresCode.restore` finds it by, as JSON; None where no other process can."""

    @property
    def faults(self) -> Sequence[tuple[Fault, Span]]:
        """The errors of its checks, in the order of their numbers."""


class HasDirectCalls(Protocol):
    """Code for the fast path, on which a call runs no Python."""

    @property
    def results(self) -> Sequence[Node]:
        """The results in order."""

    @property
    def allocated_results(self) -> Set[int]:
        """The results, by position, that the code allocates itself."""

    @property
    def written_results(self) -> Set[int]:
        """The results, by position, that need no zeros: every element is written."""

    def shape_of(self, number: int, arguments: Sequence[Array | None]) -> tuple[int, ...]:
        """Return the shape of a result that the code does not allocate, for such parameters."""

    def direct_call(self, arrays: Sequence[Array]) -> CompiledCall | None:
        """Return the code for the sizes of such arrays, None where it needs Python."""


class Allocator(Protocol):
    """The method `empty` of code that recycles the memory of results, called as `numpy.empty`."""

    def __call__(self, shape: tuple[int, ...], dtype: Any, /) -> Array:
        """Return an uninitialized array; raises MemoryError."""


class CallerLibrary(Protocol):
    """The library of the fast path, which runs direct calls of any backend's code."""

    caller: type | None
    """The class of callables whose calls it handles, None until it is loaded."""

    @property
    def is_compiling(self) -> bool:
        """Whether it is being compiled."""


class HasCallerLibrary(Protocol):
    """A backend that offers the library of the fast path; `registry.CALLER` names it."""

    @property
    def fast_path(self) -> CallerLibrary:
        """The library."""

    def load_caller(self, watching: list[object], wait: bool = True) -> type | None:
        """Load it, or start its compilation where `wait` is false; return `fast_path.caller`.

        It takes calls while the list `watching` is empty. Raises CdBackendError.
        """


class StoresCode(Protocol):
    """A backend whose code a later process can load without compiling or even parsing."""

    name: str
    cache: Cache
    """Where the entries of calls are kept."""

    def code_inputs(self) -> Sequence[object]:
        """Return what code depends on besides the procedure, settings and this package, as JSON:
        the compiler, its flags, the processor. Raises CdBackendError."""

    def restore(
        self, saved: Mapping[str, Any], faults: Callable[[], Sequence[tuple[Fault, Span]]]
    ) -> DirectCall | None:
        """Return the call that an earlier process saved, None where its code is gone.

        `faults` returns its faults, where a check fails. Raises CdBackendError.
        """
