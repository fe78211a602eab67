"""Physical arrays: memory of a device that holds one version of a field, and who uses it."""

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
def room(what: str, size: int) -> Iterator[None]:
    """Raise CdMemoryError CD0705 where memory runs out inside: how many bytes, and for what."""
    try:
        yield
    except CdError:
        raise
    except MemoryError:
        message = f"there is not enough memory for {what}, which takes {size:,} bytes"
        helps = ("work on smaller pieces, or let go of tensors and contexts",)
        raise CdMemoryError(Diagnostic("CD0705", message, helps=helps)) from None


class Account:
    """How much memory of a device is taken by arrays. Any number of threads may use it.

    There is no lock: an array may be collected, and given back, at any point of any thread.
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


@dataclass(frozen=True, slots=True)
class HostMemory:
    """The memory of the host, as that of a device: of the processor."""

    name: str
    is_own: bool
    """Whether it is apart from the arrays of the host all the same."""

    def lane(self) -> None:
        """Return None: a queue has a thread and nothing else."""

    def empty(self, shape: tuple[int, ...], dtype: Any, what: str, lane: None) -> Array:
        """Return a new array of any elements; raises MemoryError."""
        return np.empty(shape, dtype)

    def trim(self) -> int:
        """Return 0: what goes is the system's at once."""
        return 0

    @property
    def kept(self) -> int:
        """Bytes that are kept for later: none."""
        return 0

    @property
    def suggested_streams(self) -> int:
        """How many streams are likely to be of use: the processors that this process may use."""
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1

    @property
    def properties(self) -> dict[str, object]:
        """What is known of the device, for people."""
        return {
            "name": self.name,
            "processors": os.cpu_count(),
            "usable processors": self.suggested_streams,
            "uses host memory": not self.is_own,
        }


def memory_of(made_by: Backend, name: str, ordinal: int) -> Any:
    """Return where arrays of a backend's device stay; raises CD0883 where there is none."""
    if isinstance(made_by, HasDevices):
        return made_by.memory(ordinal)
    return HostMemory(f"{name}:{ordinal}", is_own=ordinal > 0)


def _on_host(label: str, array: Array) -> Array:
    return np.empty_like(array)


class Buffer:
    """An array in a device's memory: its elements, the tick of its content, and who uses it.

    `tick` says which version of the field it holds: the field's clock when it was written.
    """

    __slots__ = ("__weakref__", "array", "label", "lent", "readers", "tick", "writer")

    def __init__(self, label: str, array: Array, account: Account | None, tick: int = 0) -> None:
        self.label = label
        self.array = array
        self.tick = tick
        self.writer: Event = DONE
        self.readers: dict[Worker | Event, Event] = {}
        """The latest read of each worker since the last write; one queue is in order by itself."""
        self.lent: dict[Worker | None, Callable[[], None]] = {}
        """What is to be done before it is written: whose queue reads it in place takes a copy."""
        if account is not None and array.nbytes:
            account.add(self)

    def another(
        self,
        account: Account | None,
        where: str = "",
        tick: int = 0,
        make: Callable[[str, Array], Array] = _on_host,
    ) -> Buffer:
        """Return a new array like this one, of any elements; CdMemoryError CD0705 for no room."""
        with room(f"`{self.label}`{where}", self.array.nbytes):
            array = make(self.label, self.array)
        return Buffer(self.label, array, account, tick)

    def __repr__(self) -> str:
        return f"<array of {self.label}, version {self.tick}>"
