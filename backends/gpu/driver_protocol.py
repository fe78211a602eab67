"""What devices are asked to do: a few verbs, so that it does not matter who calls the driver.

    Driver  := name, version, count, properties(device), open(device) -> Context
    Context := memory, copies, streams, events, code and launches of one device

A context is the device's primary one, which other packages share, and may be used by any thread.
Addresses, and all values that kernels are given, are 64-bit integers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ...base.dataclass import dataclass
from ..interface import Array

Handle = Any
"""Something of the driver's that is only handed back to it: a stream, an event, a function."""
Shape = tuple[int, int, int]


class DriverError(Exception):
    """The driver refused or failed; says what it said."""


class OutOfMemory(DriverError):
    """There is not enough memory on the device."""


class Missing(Exception):
    """There is no driver that can be used here; says why."""


@dataclass(frozen=True, slots=True)
class Properties:
    """What is known of a device."""

    name: str
    architecture: tuple[int, int]
    multiprocessors: int
    memory: int
    """Bytes in all."""
    shared_bytes: int = 48 * 1024
    """Bytes that a block of threads has without asking for more."""
    copy_engines: int = 1
    most_shared_bytes: int = 48 * 1024
    """Bytes that a launch may give to a block of threads."""

    @property
    def target(self) -> str:
        """What code is compiled for: `sm_90`."""
        return f"sm_{self.architecture[0]}{self.architecture[1]}"

    def target_of(self, specific: bool) -> str:
        """Return what code is compiled for: `sm_90a` where no other architecture has to run it."""
        return f"{self.target}a" if specific else self.target


class Context(Protocol):
    """A device in use. Every verb may be called by any thread; all raise DriverError."""

    def allocate(self, size: int, stream: Handle) -> int:
        """Return the address of new memory, of use in a stream's order; raises OutOfMemory."""

    def free(self, address: int, stream: Handle) -> None:
        """Give memory back when what is queued on a stream so far is done; others do not use it."""

    def free_memory(self) -> int:
        """Return how many bytes of the device nobody has."""

    def where(self, address: int) -> int:
        """Return the number of the device that has the memory at an address."""

    def pinned(self, size: int) -> Array:
        """Return bytes of the host that copies reach directly; raises OutOfMemory."""

    def upload(self, address: int, array: Array, stream: Handle) -> None:
        """Queue a copy of an array in C order to the device."""

    def download(self, array: Array, address: int, stream: Handle) -> None:
        """Queue a copy from the device into an array in C order."""

    def copy(self, address: int, source: int, size: int, stream: Handle) -> None:
        """Queue a copy within the device."""

    def copy_from(self, other: Any, address: int, source: int, size: int, stream: Handle) -> None:
        """Queue a copy from another device, a context of the same driver."""

    def clear(self, address: int, size: int, stream: Handle) -> None:
        """Queue the filling of memory with zeros."""

    def stream(self) -> Handle:
        """Return a new stream: what is queued on it is done in order."""

    def number(self, stream: Handle) -> int:
        """Return what other packages call a stream: the address of it."""

    def follow(self, stream: Handle, other: int) -> None:
        """Let a stream wait for what is queued so far on one that another package has."""

    def lead(self, other: int, stream: Handle) -> None:
        """Let a stream that another package has wait for what is queued so far on one of ours."""

    def finish(self) -> None:
        """Return when all that anybody has queued on the device is done."""

    def event(self) -> Handle:
        """Return a new event."""

    def record(self, event: Handle, stream: Handle) -> None:
        """Let an event stand for everything queued on a stream so far."""

    def wait(self, stream: Handle, event: Handle) -> None:
        """Let what is queued on a stream from now on start when an event is reached."""

    def query(self, event: Handle) -> bool:
        """Whether an event is reached."""

    def synchronize(self, event: Handle) -> None:
        """Return when an event is reached; raises what the device failed of."""

    def load(self, code: bytes) -> Handle:
        """Return compiled code, loaded."""

    def function(self, code: Handle, name: str, count: int, given: int = 0) -> Handle:
        """Return a kernel of loaded code, which takes that many arguments.

        `given` are the bytes that its launches give to each block.
        """

    def launch(
        self, function: Handle, grid: Shape, block: Shape, arguments: Sequence[int],
        stream: Handle, given: int = 0,
    ) -> None:  # fmt: skip
        """Queue a kernel, given its arguments as 64-bit integers, and to each block some bytes."""

    def prepared(
        self, function: Handle, grid: Shape, block: Shape, arguments: Sequence[int],
        stream: Handle, given: int = 0,
    ) -> Callable[[], None]:  # fmt: skip
        """Return what queues a kernel as `launch` does, each time that it is called."""


class Driver(Protocol):
    """A way to the devices of this machine."""

    name: str

    def version(self) -> tuple[int, int]:
        """Return the newest CUDA that the installed driver knows."""

    def count(self) -> int:
        """Return how many devices there are."""

    def properties(self, device: int) -> Properties:
        """Return what is known of a device."""

    def open(self, device: int) -> Context:
        """Return the device, in use from now on."""


def bytes_of(array: Array) -> Array:
    """Return the bytes of an array in C order, of any element type."""
    assert array.flags.c_contiguous, "copies are of whole arrays"
    return array.reshape(-1).view(np.uint8)
