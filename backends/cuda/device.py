"""Devices in use: their memory, kept for the next run, their streams, and what goes wrong there."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ...lowering.diagnostic import CdBackendError, CdMemoryError, Diagnostic
from ..interface import Array
from .verbs import Context, DriverError, Handle, OutOfMemory, Properties

_STEP = 256
"""Sizes of memory are multiples of this, so that more of them are equal."""


class Opened:
    """A device in use. Any number of threads may use it at once."""

    def __init__(self, context: Context, properties: Properties, ordinal: int) -> None:
        self.context = context
        self.properties = properties
        self.ordinal = ordinal
        self._lock = threading.Lock()
        self._sizes: dict[int, int] = {}
        """The size of each piece of memory, by address."""
        self._free: dict[int, list[int]] = {}
        """Pieces that nobody uses, by size."""
        self._streams: list[tuple[Handle, Handle]] = []
        """Streams that nobody uses, each with an event."""
        self._events: dict[int, Handle] = {}

    @property
    def name(self) -> str:
        """The name it is asked for by: `cuda:0`."""
        return f"cuda:{self.ordinal}"

    @contextmanager
    def working(self, name: str) -> Iterator[Handle]:
        """Give a stream to run something of that name; raises CD0884 where the device fails."""
        with self._lock:
            held = self._streams.pop() if self._streams else None
        try:
            stream, event = held or (self.context.stream(), self.context.event())
            self._events[id(stream)] = event
            yield stream
        except DriverError as why:
            raise failed(name, self.name, why) from None
        with self._lock:
            self._streams.append((stream, event))

    def wait(self, stream: Handle) -> None:
        """Return when everything queued on a stream is done."""
        event = self._events[id(stream)]
        self.context.record(event, stream)
        self.context.synchronize(event)

    # ------------------------------------------------------------------------- memory

    def take(self, size: int, label: str, name: str) -> int:
        """Return the address of memory for an array of a function, whose contents are left open.

        Raises CdMemoryError CD0880; everything goes on to be of use.
        """
        rounded = max(1, -(-size // _STEP)) * _STEP
        with self._lock:
            pieces = self._free.get(rounded)
            if pieces:
                return pieces.pop()
        try:
            address = self._allocated(rounded)
        except OutOfMemory:
            raise self._too_large(size, label, name) from None
        with self._lock:
            self._sizes[address] = rounded
        return address

    def _allocated(self, size: int) -> int:
        """Return new memory; where there is none, that which is kept for later goes first."""
        try:
            return self.context.allocate(size)
        except OutOfMemory:
            self.trim()
            return self.context.allocate(size)

    def give_back(self, addresses: Sequence[int], stream: Handle) -> None:
        """Keep memory for the next run, when what a stream does with it is done."""
        try:
            self.wait(stream)
        finally:
            with self._lock:
                for address in addresses:
                    self._free.setdefault(self._sizes[address], []).append(address)

    def trim(self) -> None:
        """Give the memory that is kept for later back to the device."""
        with self._lock:
            kept = [address for pieces in self._free.values() for address in pieces]
            self._free.clear()
            for address in kept:
                del self._sizes[address]
        for address in kept:
            self.context.free(address)

    def _too_large(self, size: int, label: str, name: str) -> CdMemoryError:
        free = self.context.free_memory()
        message = (
            f"`{label}` of `{name}` takes {size:,} bytes of {self.name}, which has {free:,} left"
        )
        helps = ("work on smaller pieces, or let go of tensors and contexts on the device",)
        return CdMemoryError(Diagnostic("CD0880", message, helps=helps))

    # ------------------------------------------------------------------------- copies

    def upload(self, address: int, array: Array, stream: Handle) -> None:
        """Queue a copy of an array in C order to the device."""
        if array.nbytes:
            self.context.upload(address, array, stream)

    def download(self, array: Array, address: int, stream: Handle) -> None:
        """Queue a copy from the device into an array in C order."""
        if array.nbytes:
            self.context.download(array, address, stream)

    def show(self, text: str) -> None:
        """Print text where Python prints now."""
        sys.stdout.write(text)


def failed(name: str, device: str, why: DriverError) -> CdBackendError:
    """Return the error CD0884 of a device that failed."""
    message = f"`{name}` failed on {device}: {why}"
    helps = (
        'run it with `backend="cc"`: what is wrong with the function shows there, too',
        "a device that has failed once may refuse everything until the process starts again",
    )
    return CdBackendError(Diagnostic("CD0884", message, helps=helps))
