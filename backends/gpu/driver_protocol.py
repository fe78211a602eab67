"""Driver protocol: the operations of a device, independent of the package that calls the driver.

    Driver  := name, version, count, properties(device), open(device) -> Context
    Context := memory, copies, streams, events, code and launches of one device

A context is the device's primary one, which other packages share; it is thread-safe. Addresses and
all arguments of kernels are 64-bit integers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from ...base.dataclass import dataclass
from ..interface import Array

Handle = Any
"""An opaque object of the driver: a stream, an event, a function."""
Shape = tuple[int, int, int]
CONDITIONAL_VERSION = 12040
"""The first version of CUDA with conditional nodes of graphs, as the driver gives it."""


class DriverError(Exception):
    """An error of the driver, with its message."""


class OutOfMemory(DriverError):
    """The device has not enough memory."""


class NotSupported(DriverError):
    """The driver, or the package that calls it, lacks an operation."""


class DriverMissing(Exception):
    """No usable driver was found, with the reasons."""


@dataclass(frozen=True, slots=True)
class Properties:
    """The properties of a device."""

    name: str
    architecture: tuple[int, int]
    multiprocessors: int
    memory: int
    """The total memory in bytes."""
    shared_bytes: int = 48 * 1024
    """The static shared memory of a block in bytes."""
    copy_engines: int = 1
    most_shared_bytes: int = 48 * 1024
    """The maximum of dynamic shared memory of a block in bytes."""

    @property
    def target(self) -> str:
        """The target architecture: `sm_90`."""
        return f"sm_{self.architecture[0]}{self.architecture[1]}"

    def target_of(self, specific: bool) -> str:
        """Return the target architecture: `sm_90a` for architecture-specific code."""
        return f"{self.target}a" if specific else self.target


class Context(Protocol):
    """A device in use. All operations are thread-safe and raise DriverError."""

    @property
    def capturing(self) -> AbstractContextManager[object]:
        """A lock to be held during a capture, when the device must not be synchronized."""

    def allocate(self, size: int, stream: Handle) -> int:
        """Return the address of new memory, allocated in stream order; raises OutOfMemory."""

    def free(self, address: int, stream: Handle) -> None:
        """Free memory after the work queued on a stream so far; no other stream may use it."""

    def free_memory(self) -> int:
        """Return the free bytes of the device."""

    def where(self, address: int) -> int:
        """Return the ordinal of the device that owns the memory at an address."""

    def pinned(self, size: int) -> Array:
        """Return pinned host memory as bytes; raises OutOfMemory."""

    def upload(self, address: int, array: Array, stream: Handle) -> None:
        """Queue a copy of an array in C order to the device."""

    def download(self, array: Array, address: int, stream: Handle) -> None:
        """Queue a copy from the device into an array in C order."""

    def copy(self, address: int, source: int, size: int, stream: Handle) -> None:
        """Queue a copy within the device."""

    def copy_from(self, peer: Any, address: int, source: int, size: int, stream: Handle) -> None:
        """Queue a copy from another device, a context of the same driver."""

    def clear(self, address: int, size: int, stream: Handle) -> None:
        """Queue a zero fill of memory."""

    def stream(self) -> Handle:
        """Return a new stream, an in-order queue."""

    def number(self, stream: Handle) -> int:
        """Return the handle of a stream as an integer, by which other packages identify it."""

    def follow(self, stream: Handle, foreign: int) -> None:
        """Make a stream wait for the work queued so far on a stream of another package."""

    def lead(self, foreign: int, stream: Handle) -> None:
        """Make a stream of another package wait for the work queued so far on one of ours."""

    def finish(self) -> None:
        """Synchronize the device, with the work of all packages."""

    def event(self) -> Handle:
        """Return a new event."""

    def record(self, event: Handle, stream: Handle) -> None:
        """Record an event for everything queued on a stream so far."""

    def wait(self, stream: Handle, event: Handle) -> None:
        """Make later work of a stream wait for an event."""

    def query(self, event: Handle) -> bool:
        """Whether an event is complete."""

    def synchronize(self, event: Handle) -> None:
        """Wait until an event is complete; raises errors of the device."""

    def load(self, code: bytes) -> Handle:
        """Load compiled code; return its module."""

    def function(self, code: Handle, name: str, count: int, given: int = 0) -> Handle:
        """Return a kernel of a module, with `count` arguments.

        `given` are the bytes of dynamic shared memory of its launches.
        """

    def launch(
        self, function: Handle, grid: Shape, block: Shape, arguments: Sequence[int],
        stream: Handle, given: int = 0,
    ) -> None:  # fmt: skip
        """Queue a kernel with 64-bit arguments and `given` bytes of dynamic shared memory."""

    def prepared(
        self, function: Handle, grid: Shape, block: Shape, arguments: Sequence[int],
        stream: Handle, given: int = 0,
    ) -> Callable[[], None]:  # fmt: skip
        """Return a function that queues a kernel as `launch` does, with arguments packed once."""

    def begin_capture(self, stream: Handle) -> None:
        """Begin to record what is queued on a stream, and on those that wait for an event of it.

        Nothing of it runs. No event of these streams may be queried or waited for by the host
        meanwhile. Raises NotSupported.
        """

    def end_capture(self, stream: Handle) -> Handle:
        """End the capture that began on a stream; return an executable graph of the work.

        The stream must have waited for all others. After an error no stream is captured, either.
        """

    def condition(self, stream: Handle) -> int:
        """Return a new condition of the graph that is captured on a stream, a number for kernels.

        Raises NotSupported where the driver has no conditional nodes.
        """

    def conditional(self, stream: Handle, condition: int, repeats: bool) -> Handle:
        """Add a node, after what a captured stream has so far, that runs a body where a condition
        is set, once, or as long as it is; return the body, a graph to be captured.

        A kernel before the node, and in a body that is repeated, has to set the condition. A body
        holds kernels, copies and fills of one device, and such nodes.
        """

    def begin_body(self, stream: Handle, body: Handle) -> None:
        """Begin to record what is queued on a stream into a body; see `begin_capture`."""

    def end_body(self, stream: Handle) -> None:
        """End the capture of a body that began on a stream."""

    def launch_graph(self, graph: Handle, stream: Handle) -> None:
        """Queue a graph; its work is ordered by the dependences that were captured alone."""

    def destroy_graph(self, graph: Handle) -> None:
        """Destroy a graph that does not run."""


class Driver(Protocol):
    """An API of the driver."""

    name: str

    def version(self) -> tuple[int, int]:
        """Return the newest CUDA version that the installed driver supports."""

    def count(self) -> int:
        """Return the number of devices."""

    def properties(self, device: int) -> Properties:
        """Return the properties of a device."""

    def open(self, device: int) -> Context:
        """Return the primary context of a device, retained from now on."""


def bytes_of(array: Array) -> Array:
    """Return the bytes of an array in C order, of any element type."""
    assert array.flags.c_contiguous, "copies are of whole arrays"
    return array.reshape(-1).view(np.uint8)
