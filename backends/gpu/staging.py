"""Copies between the host and a device by way of memory that the device reaches directly.

A copy from or to any other memory of the host is waited for by the driver, piece by piece. Here
what is copied goes through pieces of such memory, kept for later: packed into one and queued, or
queued and unpacked when the stream is done. So a call waits once, for all that it copies.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator

import numpy as np

from ..interface import Array
from .driver_protocol import Context, DriverError, Handle

PIECE = 4 << 20
"""Bytes of the largest piece."""
LEAST = 4 << 10
"""Bytes of the smallest."""
LIMIT = 64 << 20
"""Bytes of all pieces together; the driver copies what finds none."""
SMALL = 64 << 10
"""Arrays up to this the driver takes at once when they are copied to the device."""


class Staging:
    """The pieces of one device. Any number of threads may use them at once."""

    def __init__(self, context: Context, limit: int = LIMIT) -> None:
        self.context, self._limit = context, limit
        self._lock = threading.RLock()
        self._free: dict[int, list[Array]] = {}
        self.made = 0
        """Bytes of all pieces."""
        self._lost: list[Array] = []

    def take(self, size: int) -> Array | None:
        """Return a piece of at least a size, None where there are too many."""
        rounded = LEAST
        while rounded < size:
            rounded *= 2
        with self._lock:
            pieces = self._free.get(rounded)
            if pieces:
                return pieces.pop()
            if self.made + rounded > self._limit:
                return None
            try:
                piece = self.context.pinned(rounded)
            except DriverError:
                self._limit = self.made  # the host has no more: the driver copies what is left
                return None
            self.made += rounded
            return piece

    def give_back(self, piece: Array) -> None:
        """Keep a piece that nothing uses any more."""
        with self._lock:
            self._free.setdefault(piece.nbytes, []).append(piece)

    def lose(self, piece: Array) -> None:
        """Keep a piece for good that the device may still read or write: nobody can know."""
        self._lost.append(piece)


class Transfers:
    """The copies of one run, in the order of its stream."""

    def __init__(self, staging: Staging, stream: Handle, wait: Callable[[], None]) -> None:
        self._staging, self._stream, self._wait = staging, stream, wait
        self._queued: deque[tuple[Array, Callable[[], None] | None]] = deque()
        """Pieces in use, with what unpacks them."""
        self._lent = False
        """Whether arrays of the caller are copied from or to as they are, which may be pinned."""

    @property
    def busy(self) -> bool:
        """Whether pieces are in use, or arrays of the caller."""
        return self._lent or bool(self._queued)

    def upload(self, address: int, array: Array) -> None:
        """Queue a copy of an array, however it lies, to a place in C order."""
        context = self._staging.context
        if array.nbytes <= SMALL:
            if array.nbytes:  # a copy, since of pinned memory the driver reads later
                context.upload(address, np.array(array, order="C"), self._stream)
            return
        for at, part in _parts(np.ascontiguousarray(array)):
            piece = self._piece(part.nbytes)
            source = part
            if piece is not None:
                source = piece[: part.nbytes]
                np.copyto(source, part)
                self._queued.append((piece, None))
            self._lent = self._lent or piece is None
            context.upload(address + at, source, self._stream)

    def download(self, array: Array, address: int) -> None:
        """Queue a copy from a place in C order into an array, which has it after `finish`."""
        if not array.nbytes:
            return
        packed = array if array.flags.c_contiguous else np.empty(array.shape, array.dtype)
        for at, part in _parts(packed):
            self._fetch(part, address + at)
        if packed is not array:
            self._last(lambda: np.copyto(array, packed))

    def _fetch(self, part: Array, address: int) -> None:
        context, piece = self._staging.context, self._piece(part.nbytes)
        if piece is None:
            self._lent = True
            context.download(part, address, self._stream)
            return
        held = piece[: part.nbytes]
        context.download(held, address, self._stream)
        self._queued.append((piece, lambda: np.copyto(part, held)))

    def _last(self, unpack: Callable[[], None]) -> None:
        """Do something when all that is queued so far has been unpacked."""
        if not self._queued:
            self._wait()
            unpack()
            return
        piece, before = self._queued.pop()

        def both() -> None:
            if before is not None:
                before()
            unpack()

        self._queued.append((piece, both))

    def _piece(self, size: int) -> Array | None:
        """Return a piece; where there is none, when what this run has queued is done."""
        found = self._staging.take(size)
        if found is None and self._queued:
            self.finish()
            found = self._staging.take(size)
        return found

    def finish(self) -> None:
        """Return when all that is queued is done, and what was fetched is where it belongs."""
        self._wait()
        self._lent = False
        while self._queued:
            piece, unpack = self._queued.popleft()
            if unpack is not None:
                unpack()
            self._staging.give_back(piece)

    def drop(self) -> None:
        """Keep the pieces for later, when the stream is done; what was fetched goes nowhere."""
        if not self._queued:
            return
        keep = self._staging.lose
        try:
            self._wait()
            keep = self._staging.give_back
        except DriverError:  # who began it is told what failed
            pass
        finally:
            while self._queued:
                keep(self._queued.popleft()[0])


def _parts(array: Array) -> Iterator[tuple[int, Array]]:
    """Yield the bytes of an array in C order in pieces, each with where it begins."""
    data = array.reshape(-1).view(np.uint8)
    for at in range(0, data.nbytes, PIECE):
        yield at, data[at : at + PIECE]
