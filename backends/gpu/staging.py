"""Staging: transfers between host and device through pinned buffers.

Transfers of pageable host memory are synchronous. Here data goes through pooled pinned buffers:
uploads are packed into one and queued, downloads are queued and unpacked when the stream is done.
So a call waits once, for all of its transfers.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator

import numpy as np

from ..interface import Array
from .driver_protocol import Context, DriverError, Handle

MAX_BUFFER_BYTES = 4 << 20
"""The size of the largest buffer in bytes."""
MIN_BUFFER_BYTES = 4 << 10
"""The size of the smallest buffer."""
POOL_LIMIT = 64 << 20
"""The limit of all buffers together; beyond it, transfers use pageable memory."""
MAX_DIRECT_UPLOAD = 64 << 10
"""Uploads up to this size are copied by the driver before it returns."""


class StagingPool:
    """The pool of pinned buffers of one device; thread-safe."""

    def __init__(self, context: Context, limit: int = POOL_LIMIT) -> None:
        self.context, self._limit = context, limit
        self._lock = threading.RLock()
        self._free: dict[int, list[Array]] = {}
        self.pinned_bytes = 0
        """The size of all buffers in bytes."""
        self._lost: list[Array] = []

    def take(self, size: int) -> Array | None:
        """Return a buffer of at least `size` bytes, None where the limit is reached."""
        rounded = MIN_BUFFER_BYTES
        while rounded < size:
            rounded *= 2
        with self._lock:
            buffers = self._free.get(rounded)
            if buffers:
                return buffers.pop()
            if self.pinned_bytes + rounded > self._limit:
                return None
            try:
                buffer = self.context.pinned(rounded)
            except DriverError:
                self._limit = self.pinned_bytes  # no more pinned memory: use pageable memory
                return None
            self.pinned_bytes += rounded
            return buffer

    def give_back(self, buffer: Array) -> None:
        """Return an unused buffer to the pool."""
        with self._lock:
            self._free.setdefault(buffer.nbytes, []).append(buffer)

    def leak(self, buffer: Array) -> None:
        """Leak a buffer that the device may still access."""
        self._lost.append(buffer)


class Transfers:
    """The transfers of one run, in the order of its stream."""

    def __init__(self, staging: StagingPool, stream: Handle, wait: Callable[[], None]) -> None:
        self._staging, self._stream, self._wait = staging, stream, wait
        self._queued: deque[tuple[Array, Callable[[], None] | None]] = deque()
        """Buffers in use, with the callbacks that unpack them."""
        self._lent = False
        """Whether transfers access arrays of the caller directly, which may be pinned."""

    @property
    def busy(self) -> bool:
        """Whether buffers, or arrays of the caller, are in use."""
        return self._lent or bool(self._queued)

    def upload(self, address: int, array: Array) -> None:
        """Queue an upload of an array of any layout, in C order on the device."""
        context = self._staging.context
        if array.nbytes <= MAX_DIRECT_UPLOAD:
            if array.nbytes:  # a copy: the driver reads pinned memory asynchronously
                context.upload(address, np.array(array, order="C"), self._stream)
            return
        for offset, block in _blocks(np.ascontiguousarray(array)):
            buffer = self._take_buffer(block.nbytes)
            source = block
            if buffer is not None:
                source = buffer[: block.nbytes]
                np.copyto(source, block)
                self._queued.append((buffer, None))
            self._lent = self._lent or buffer is None
            context.upload(address + offset, source, self._stream)

    def download(self, array: Array, address: int) -> None:
        """Queue a download from memory in C order into an array, complete after `finish`."""
        if not array.nbytes:
            return
        packed = array if array.flags.c_contiguous else np.empty(array.shape, array.dtype)
        for offset, block in _blocks(packed):
            self._download_block(block, address + offset)
        if packed is not array:
            self._unpack_last(lambda: np.copyto(array, packed))

    def _download_block(self, block: Array, address: int) -> None:
        context, buffer = self._staging.context, self._take_buffer(block.nbytes)
        if buffer is None:
            self._lent = True
            context.download(block, address, self._stream)
            return
        view = buffer[: block.nbytes]
        context.download(view, address, self._stream)
        self._queued.append((buffer, lambda: np.copyto(block, view)))

    def _unpack_last(self, unpack: Callable[[], None]) -> None:
        """Call `unpack` after all queued buffers have been unpacked."""
        if not self._queued:
            self._wait()
            unpack()
            return
        buffer, unpack_first = self._queued.pop()

        def unpack_both() -> None:
            if unpack_first is not None:
                unpack_first()
            unpack()

        self._queued.append((buffer, unpack_both))

    def _take_buffer(self, size: int) -> Array | None:
        """Return a buffer; where there is none, wait for this run's queued transfers first."""
        buffer = self._staging.take(size)
        if buffer is None and self._queued:
            self.finish()
            buffer = self._staging.take(size)
        return buffer

    def finish(self) -> None:
        """Wait for all queued transfers, and unpack downloads."""
        self._wait()
        self._lent = False
        while self._queued:
            buffer, unpack = self._queued.popleft()
            if unpack is not None:
                unpack()
            self._staging.give_back(buffer)

    def drop(self) -> None:
        """Wait for the stream and return the buffers to the pool, without unpacking."""
        if not self._queued:
            return
        release = self._staging.leak
        try:
            self._wait()
            release = self._staging.give_back
        except DriverError:  # the failure is reported elsewhere
            pass
        finally:
            while self._queued:
                release(self._queued.popleft()[0])


def _blocks(array: Array) -> Iterator[tuple[int, Array]]:
    """Yield the bytes of an array in C order in blocks, each with its offset."""
    data = array.reshape(-1).view(np.uint8)
    for at in range(0, data.nbytes, MAX_BUFFER_BYTES):
        yield at, data[at : at + MAX_BUFFER_BYTES]
