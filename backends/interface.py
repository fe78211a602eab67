"""Backend protocol: the interfaces that backends and their compiled code implement.

    Backend := name, unavailable() -> error or None, compile(procedure) -> Code
    Code    := text, line_map, origin, run(arrays) -> results

All other protocols are optional, here, in `direct_calls` and `captures`: they make calls faster, or
add devices and views, and a backend that implements them gets that. No caller asks for its class or
its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy.typing as npt

from ..base.diagnostic import CdBackendError, Span
from ..lowering.ir.assignments import Procedure
from ..lowering.ir.decision import Decision
from ..lowering.ir.loops import Program

if TYPE_CHECKING:
    from ..lowering.target import Target

API_VERSION = 1
"""The version of these protocols, incremented by incompatible changes."""

Array = npt.NDArray[Any]
Origin = Literal["compiled", "disk", "memory", "interpreted"]
"""The origin of code: compiled now, read from the disk cache, already loaded, or interpreted."""


class Code(Protocol):
    """A compiled procedure; thread-safe."""

    @property
    def text(self) -> str:
        """The source text, for display: C, CUDA or printed assignments."""

    @property
    def line_map(self) -> Mapping[int, Span]:
        """The source statement of each line of the text, by line number from 1."""

    @property
    def origin(self) -> Origin:
        """The origin of the code."""

    def run(self, arrays: Sequence[Array | None]) -> tuple[Array, ...]:
        """Run synchronously on parameters in call order, then results; return the results.

        Precondition: every array has its node's dtype, shape and strides, and results are zeros. A
        result given as None is allocated by the code. Raises the `CdError` of a failed check.
        """

    def bind(self, arrays: Sequence[Array | None]) -> Callable[[], tuple[Array, ...]]:
        """Return a function that runs on these arrays, repeatedly, by one thread at a time."""


class KernelRow(NamedTuple):
    """The resource usage of a kernel, as reported by its compiler."""

    name: str
    span: Span
    """The location of its first statement."""
    threads: int
    """Per block, at most."""
    registers: int
    """Per thread."""
    spilled: int
    """Bytes of register spills."""
    shared: int
    """Bytes of shared memory of a block."""
    stack: int


@runtime_checkable
class HasKernels(Protocol):
    """Code for a device of many threads."""

    @property
    def program(self) -> Program:
        """The compiled loops, mapped to blocks and threads."""

    @property
    def whole(self) -> Program:
        """The loops before their mapping to blocks and threads."""

    @property
    def decisions(self) -> Sequence[Decision]:
        """What became of each nest on the device, and of arrays, and why."""

    @property
    def computed(self) -> Set[int]:
        """The arrays, by node id, whose elements matrix products recompute when they fill tiles."""

    @property
    def kernels(self) -> Sequence[KernelRow]:
        """The resource usage of the kernels in order, empty where the compiler reports none."""


class Prepares(Protocol):
    """A backend that can begin what compiling will need, while loops are made."""

    def prepare(self) -> None:
        """Begin; raises CdBackendError."""


@runtime_checkable
class HasTarget(Protocol):
    """A backend that optimizes loops for a target of its own."""

    def target(self) -> Target:
        """Return the target of `lowering.pipeline.optimize`, under the current settings."""


@runtime_checkable
class HasPrelude(Protocol):
    """Code whose text begins with what its functions need of the language."""

    @property
    def above(self) -> int:
        """The number of lines before the functions."""


@runtime_checkable
class CompilesTogether(Protocol):
    """A backend that compiles several procedures together."""

    def compile_all(self, procedures: Sequence[Procedure]) -> Sequence[Code]:
        """Return code for each procedure, in order; raises CdBackendError."""


@runtime_checkable
class HasDevices(Protocol):
    """A backend whose code is specific to one device, such as `cuda:1`."""

    def on(self, device: int) -> Backend:
        """Return the backend for a device; raises CdBackendError for a wrong ordinal."""

    def memory(self, device: int) -> Any:
        """Return the memory of a device, with `lane`, `empty`, `properties`."""


@runtime_checkable
class HasMemory(Protocol):
    """A backend with a separate memory, which limits the size of recordings."""

    def memory_left(self) -> int:
        """Return the free bytes; raises CdBackendError without a device."""


@runtime_checkable
class Begins(Protocol):
    """A backend with slow initialization that can run asynchronously."""

    def begin(self) -> None:
        """Start the initialization, unless it is done."""


@runtime_checkable
class HasLanes(Protocol):
    """Code that runs on a given stream of a device."""

    def in_lane(self, lane: Any) -> Code:
        """Return the same code on a stream of the device."""


@runtime_checkable
class BorrowsMemory(Protocol):
    """Code that allocates memory for its temporaries, unless the caller lends it some."""

    def arena_bytes(self, arrays: Sequence[Array | None]) -> int:
        """Return the bytes that it takes for all of them; 0 for none, or where that depends on
        arrays that are None."""

    def temporary_bytes(self, arrays: Sequence[Array | None]) -> int | None:
        """Return the bytes of all temporaries, also where no memory can be lent; None where it
        depends on data, or on arrays that are None."""

    def bind_in(
        self, arrays: Sequence[Array | None], arena: Array
    ) -> Callable[[], tuple[Array, ...]]:
        """Return what `bind` does, with the temporaries in an array of bytes, aligned to 64, of
        which nobody else has need while it runs."""


@runtime_checkable
class LaunchesAsync(Protocol):
    """Code that can be launched asynchronously on a stream of a device."""

    def prepare_launch(self, arrays: Sequence[Any]) -> Callable[[], None] | None:
        """Return a function that queues the run on these arrays, None where it has to wait."""

    def finish(self) -> None:
        """Wait for all work queued on the stream; raises CdBackendError."""

    def is_finished(self) -> bool:
        """Whether all work queued on the stream is done; raises CdBackendError."""


@runtime_checkable
class PrintsLog(Protocol):
    """A backend whose devices cannot record to memory: their code prints logs."""

    def run_printing(
        self, code: Code, arrays: Sequence[Array | None], mark: str
    ) -> tuple[Array, ...]:
        """Run code as `Code.run`, synchronously; each line of its log has the prefix `mark`."""


@runtime_checkable
class CanPrint(Protocol):
    """A backend whose devices can print what they record, on request."""

    def printing(self, code: Any, run_number: int) -> Code:
        """Return code for one run, with log lines of `!@#`, the number, `: ` and a record."""


class Backend(Protocol):
    """A backend that compiles and runs procedures."""

    name: str
    api_version: int

    def unavailable(self) -> CdBackendError | None:
        """Return the error that says why it cannot run here, None where it can."""

    def compile(self, procedure: Procedure) -> Code:
        """Return code for the procedure under the current settings; raises CdBackendError."""

    def after_fork(self) -> None:
        """Reset, in a forked child, locks that threads of the parent may hold."""
