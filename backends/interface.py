"""What a backend is to the rest of the project: a few small Protocols.

    Backend := name, unavailable() -> why not, compile(procedure) -> Code
    Code    := text, line_map, origin, run(arrays) -> results

Code is independent of where it runs; devices, streams and events join as Protocols of their own
beside these, and a concrete pointer never appears in any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy.typing as npt

from ..base.diagnostic import CdBackendError, Span
from ..lowering.ir.assignments import Procedure
from ..lowering.ir.decision import Decision
from ..lowering.ir.loops import Program

API_VERSION = 1
"""Raised when a Protocol of this file changes so that an older plug-in cannot go on."""

Array = npt.NDArray[Any]
Origin = Literal["compiled", "disk", "memory", "interpreted"]
"""How code came to be: built now, read from the cache, already loaded, or never compiled."""


class Code(Protocol):
    """A compiled procedure. Any number of threads may run it at once."""

    @property
    def text(self) -> str:
        """What was compiled, for people: C, CUDA or printed assignments."""

    @property
    def line_map(self) -> Mapping[int, Span]:
        """The user's statement behind a line of the text, by line number from 1."""

    @property
    def origin(self) -> Origin:
        """How it came to be."""

    def run(self, arrays: Sequence[Array | None]) -> tuple[Array, ...]:
        """Run on parameters in call order, then results; return the results when it is done.

        Every array has its node's dtype, shape and strides, a result is zeros; one that is given as
        None is made by the code. Raises the `CdError` of the check that failed.
        """

    def bind(self, arrays: Sequence[Array | None]) -> Callable[[], tuple[Array, ...]]:
        """Return the run on these arrays, which can be repeated, by one thread at a time."""


class KernelRow(NamedTuple):
    """What a kernel takes of a device, as its compiler says."""

    name: str
    span: Span
    """The first statement that it does."""
    threads: int
    """Of a block, at most."""
    registers: int
    """Of each thread."""
    spilled: int
    """Bytes of them that are kept in memory."""
    shared: int
    """Bytes of memory that the threads of a block share."""
    stack: int


@runtime_checkable
class HasKernels(Protocol):
    """Code for a device of many threads."""

    @property
    def program(self) -> Program:
        """The loops that were compiled, with those that are blocks and threads."""

    @property
    def whole(self) -> Program:
        """The same before they were shared out."""

    @property
    def decisions(self) -> Sequence[Decision]:
        """What became of each nest on the device, and of arrays, and why."""

    @property
    def computed(self) -> Set[int]:
        """The arrays, by node id, whose elements products compute where they fill tiles."""

    @property
    def kernels(self) -> Sequence[KernelRow]:
        """What each kernel takes, in their order; nothing where the compiler did not say."""


@runtime_checkable
class CompilesTogether(Protocol):
    """A backend that makes code for several procedures as one."""

    def compile_all(self, procedures: Sequence[Procedure]) -> Sequence[Code]:
        """Return code for each procedure, in order; raises CdBackendError."""


@runtime_checkable
class HasDevices(Protocol):
    """A backend whose code is made for one device: `cuda:1` is not `cuda:0`."""

    def on(self, device: int) -> Backend:
        """Return the backend for the device of a number; raises CdBackendError for no device."""

    def memory(self, device: int) -> Any:
        """Return the memory of a device, where arrays stay: `lane`, `empty`, `properties`."""


@runtime_checkable
class HasMemory(Protocol):
    """A backend with memory of its own, where what is recorded has to have room."""

    def memory_left(self) -> int:
        """Return how many bytes nobody uses; raises CdBackendError for no device."""


@runtime_checkable
class Begins(Protocol):
    """A backend that has to look at what it compiles with, and can do so beside other things."""

    def begin(self) -> None:
        """Begin to look, where that is still to do."""


@runtime_checkable
class HasLanes(Protocol):
    """Code whose device has streams of its own, on one of which it is run."""

    def in_lane(self, lane: Any) -> Code:
        """Return the same code on a stream of the device."""


@runtime_checkable
class RunsAhead(Protocol):
    """Code for a stream of a device, which does runs in order while the host goes on."""

    def ahead(self, arrays: Sequence[Any]) -> Callable[[], None] | None:
        """Return what queues the run on these arrays and does not wait; None where it has to."""

    def finish(self) -> None:
        """Return when all that is queued on the stream is done; raises CdBackendError."""

    def is_finished(self) -> bool:
        """Whether all that is queued on the stream is done; raises CdBackendError."""


@runtime_checkable
class PrintsLog(Protocol):
    """A backend whose devices cannot record: where a log is wanted their code prints it."""

    def run_printing(
        self, code: Code, arrays: Sequence[Array | None], mark: str
    ) -> tuple[Array, ...]:
        """Run code as `Code.run` does, to its end; before each line of its log stands the mark."""


@runtime_checkable
class CanPrint(Protocol):
    """A backend whose devices can print what they record, where that is asked for."""

    def printing(self, code: Any, run_number: int) -> Code:
        """Return code for one run; its lines are `!@#`, the number, `: ` and a print's record."""


class Backend(Protocol):
    """Something that runs procedures."""

    name: str
    api_version: int

    def unavailable(self) -> CdBackendError | None:
        """Return the error that says why it cannot run here, None where it can."""

    def compile(self, procedure: Procedure) -> Code:
        """Return code for the procedure under the current settings; raises CdBackendError."""

    def after_fork(self) -> None:
        """Make whole again, in a forked child, what threads of the parent may have held."""
