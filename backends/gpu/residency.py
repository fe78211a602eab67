"""Arrays that stay where they are used: of the host, or of a device, copied from one to another.

Who copies waits until it is done: what comes behind it in another stream may begin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..interface import Array
from .device_array import DeviceArray
from .driver_protocol import Handle

Lying = Array | DeviceArray


class Memory:
    """The memory of a device, for arrays that stay there."""

    def __init__(self, opened: Any) -> None:
        self.opened = opened

    def lane(self) -> Handle:
        """Return a new stream of the device."""
        with self.opened.working("a new stream"):
            return self.opened.stream()

    def spare(self, lane: Handle) -> None:
        """Let a stream be that of somebody else; takes no lock, so a finalizer may call it."""
        self.opened.spare.append(lane)

    def trim(self) -> int:
        """Give the memory that is kept for later back; return how many bytes that were."""
        with self.opened.working("giving memory back"):
            return int(self.opened.pool.trim())

    @property
    def kept(self) -> int:
        """Bytes that nobody uses, and that are kept for later."""
        with self.opened.working("a look at its memory"):
            return int(self.opened.pool.kept)

    def empty(self, shape: Sequence[int], dtype: Any, what: str, lane: Handle) -> DeviceArray:
        """Return a new array of any elements; raises CdMemoryError CD0880."""
        with self.opened.working(what):
            size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
            address = self.opened.pool.take(size, what, self.opened.name, lane)
            return DeviceArray(self.opened, address, shape, dtype, lane)

    @property
    def properties(self) -> dict[str, object]:
        """What is known of the device, for people."""
        known = self.opened.properties
        return {
            "name": self.opened.name,
            "model": known.name,
            "architecture": known.target,
            "multiprocessors": known.multiprocessors,
            "memory": known.memory,
            "copy engines": known.copy_engines,
            "uses host memory": False,
        }

    @property
    def suggested_streams(self) -> int:
        """How many streams are likely to be of use: one that computes, and one for each copier."""
        return 1 + int(self.opened.properties.copy_engines)


def copy(target: Lying, source: Lying, what: str = "a copy") -> None:
    """Copy an array to another one of its shape and type; both may be anywhere.

    Raises CdBackendError CD0884 where a device fails, of what that copy is.
    """
    if isinstance(target, np.ndarray) and isinstance(source, np.ndarray):
        np.copyto(target, source)
    elif isinstance(target, np.ndarray):
        _transferred(source, lambda copies, one: copies.download(target, one.address), what)
    elif isinstance(source, np.ndarray):
        _transferred(target, lambda copies, one: copies.upload(one.address, source), what)
    elif target.nbytes:
        target.take_from(source, what)


def _transferred(one: Any, do: Callable[[Any, Any], None], what: str) -> None:
    opened, stream = one.home
    copies = opened.transfers(stream)
    with opened.working(what):
        try:
            do(copies, one)
            copies.finish()
        finally:
            copies.drop()


def snapshot(array: Lying) -> Array:
    """Return a copy on the host."""
    return array.copy() if isinstance(array, np.ndarray) else array.numpy()


def first_part(memory: Lying, like: Array) -> Lying:
    """Return the beginning of memory, an array of bytes, as an array like another one."""
    if isinstance(memory, np.ndarray):
        return memory[: like.nbytes].view(like.dtype).reshape(like.shape)
    opened, stream = memory.home
    return DeviceArray(opened, memory.address, like.shape, like.dtype, stream, memory)
