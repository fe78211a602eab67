"""Physical arrays: buffers in a device's memory with the version they hold and their users."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...base.dataclass import dataclass
from ...base.diagnostic import CdError, CdMemoryError, Diagnostic
from ..interface import Array, Backend, HasDevices
from .queue import DONE, Event, Worker


@contextmanager
def memory_guard(what: str, size: int) -> Iterator[None]:
    """Convert MemoryError in the `with` to CdMemoryError CD0705, which tells purpose and size."""
    try:
        yield
    except CdError:
        raise
    except MemoryError:
        message = f"there is not enough memory for {what}, which takes {size:,} bytes"
        helps = ("work on smaller pieces, or let go of tensors and contexts",)
        raise CdMemoryError(Diagnostic("CD0705", message, helps=helps)) from None


class MemoryAccount:
    """The accounting of a device's memory in arrays; thread-safe.

    It has no lock: an array may be collected, and subtracted, at any point of any thread.
    """

    def __init__(self) -> None:
        self._sizes: dict[int, int] = {}

    @property
    def used(self) -> int:
        """Bytes in arrays that are alive."""
        return sum(list(self._sizes.values()))

    def add(self, buffer: Buffer) -> None:
        """Count an array for as long as it is alive."""
        self._sizes[id(buffer)] = buffer.array.nbytes
        weakref.finalize(buffer, self._sizes.pop, id(buffer)).atexit = False

    def set(self, buffer: Buffer, size: int) -> None:
        """Count an array that has been added as another number of bytes."""
        if id(buffer) in self._sizes:
            self._sizes[id(buffer)] = size


@dataclass(frozen=True, slots=True)
class HostMemory:
    """Host memory as the memory of a CPU device."""

    name: str
    is_separate: bool
    """Whether it is separate from the arrays of the host nevertheless."""

    def lane(self) -> None:
        """Return None: a queue has no stream of the device."""

    def empty(self, shape: tuple[int, ...], dtype: Any, what: str, lane: None) -> Array:
        """Return a new uninitialized array; raises MemoryError."""
        return np.empty(shape, dtype)

    def trim(self) -> int:
        """Return 0: freed memory is returned to the system immediately."""
        return 0

    @property
    def pooled_bytes(self) -> int:
        """The bytes in a pool: none."""
        return 0

    @property
    def suggested_streams(self) -> int:
        """The recommended number of streams: the processors that this process may use."""
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1

    @property
    def properties(self) -> dict[str, object]:
        """Properties of the device, for display."""
        return {
            "name": self.name,
            "processors": os.cpu_count(),
            "usable processors": self.suggested_streams,
            "uses host memory": not self.is_separate,
        }


def memory_of(backend: Backend, name: str, ordinal: int) -> Any:
    """Return the memory of a backend's device; raises CD0883 where there is none."""
    if isinstance(backend, HasDevices):
        return backend.memory(ordinal)
    return HostMemory(f"{name}:{ordinal}", is_separate=ordinal > 0)


def _allocate_on_host(label: str, array: Array) -> Array:
    return np.empty_like(array)


class Buffer:
    """An array in a device's memory, with its version and the events of its users.

    `tick` is the version that it holds: the field's clock at its write.
    """

    __slots__ = (
        "__weakref__", "account", "array", "label", "lent", "readers", "tick", "writer",
    )  # fmt: skip

    def __init__(
        self, label: str, array: Array, account: MemoryAccount | None, tick: int = 0
    ) -> None:
        self.label = label
        self.array = array
        self.tick = tick
        self.writer: Event = DONE
        self.readers: dict[Worker | Event, Event] = {}
        """The latest read of each worker since the last write; one queue is in order anyway."""
        self.lent: dict[Worker | None, Callable[[], None]] = {}
        """Callbacks before a write: queues that read it in place take a copy."""
        self.account = account
        """The account of its device's memory, None for that of the host."""
        if account is not None and array.nbytes:
            account.add(self)

    def move(self, array: Array) -> None:
        """Let it be an array in memory that is counted elsewhere. Precondition: nothing uses it."""
        self.array = array
        if self.account is not None:
            self.account.set(self, 0)

    def allocate_like(
        self,
        account: MemoryAccount | None,
        where: str = "",
        tick: int = 0,
        make: Callable[[str, Array], Array] = _allocate_on_host,
    ) -> Buffer:
        """Return an uninitialized array like this one; raises CdMemoryError CD0705."""
        with memory_guard(f"`{self.label}`{where}", self.array.nbytes):
            array = make(self.label, self.array)
        return Buffer(self.label, array, account, tick)

    def __repr__(self) -> str:
        return f"<array of {self.label}, version {self.tick}>"
