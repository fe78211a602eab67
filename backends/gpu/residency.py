"""Resident arrays: allocation in device memory, and synchronous copies between memories.

A copy is complete when it returns, so that dependent work of any stream may start.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..interface import Array
from .device_array import DeviceArray
from .driver_protocol import Handle

AnyArray = Array | DeviceArray


class DeviceMemory:
    """The memory of a device, for resident arrays."""

    def __init__(self, opened: Any) -> None:
        self.opened = opened

    def lane(self) -> Handle:
        """Return a new stream of the device."""
        with self.opened.working("a new stream"):
            return self.opened.stream()

    def spare(self, lane: Handle) -> None:
        """Return a stream for reuse; lock-free, so that finalizers may call it."""
        self.opened.spare.append(lane)

    def trim(self) -> int:
        """Free the unused blocks of the pool; return how many bytes they had."""
        with self.opened.working("giving memory back"):
            return int(self.opened.pool.trim())

    @property
    def kept(self) -> int:
        """The bytes of unused blocks in the pool."""
        with self.opened.working("a look at its memory"):
            return int(self.opened.pool.kept)

    def empty(self, shape: Sequence[int], dtype: Any, what: str, lane: Handle) -> DeviceArray:
        """Return a new uninitialized array; raises CdMemoryError CD0880."""
        with self.opened.working(what):
            size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
            address = self.opened.pool.take(size, what, self.opened.name, lane)
            return DeviceArray(self.opened, address, shape, dtype, lane)

    @property
    def properties(self) -> dict[str, object]:
        """Properties of the device, for display."""
        device_properties = self.opened.properties
        return {
            "name": self.opened.name,
            "model": device_properties.name,
            "architecture": device_properties.target,
            "multiprocessors": device_properties.multiprocessors,
            "memory": device_properties.memory,
            "copy engines": device_properties.copy_engines,
            "uses host memory": False,
        }

    @property
    def suggested_streams(self) -> int:
        """The recommended number of streams: one for kernels, and one per copy engine."""
        return 1 + int(self.opened.properties.copy_engines)


def copy(target: AnyArray, source: AnyArray, what: str = "a copy") -> None:
    """Copy an array to another one of the same shape and type, in any memories.

    Raises CdBackendError CD0884, in the name of `what`, where a device fails.
    """
    if isinstance(target, np.ndarray) and isinstance(source, np.ndarray):
        np.copyto(target, source)
    elif isinstance(target, np.ndarray):
        _transfer(source, lambda copies, array: copies.download(target, array.address), what)
    elif isinstance(source, np.ndarray):
        _transfer(target, lambda copies, array: copies.upload(array.address, source), what)
    elif target.nbytes:
        target.take_from(source, what)


def _transfer(array: Any, queue_copy: Callable[[Any, Any], None], what: str) -> None:
    opened, stream = array.home
    copies = opened.transfers(stream)
    with opened.working(what):
        try:
            queue_copy(copies, array)
            copies.finish()
        finally:
            copies.drop()


def snapshot(array: AnyArray) -> Array:
    """Return a copy on the host."""
    return array.copy() if isinstance(array, np.ndarray) else array.numpy()


def view_prefix(memory: AnyArray, like: Array) -> AnyArray:
    """Return the beginning of an array of bytes as an array like another one."""
    if isinstance(memory, np.ndarray):
        return memory[: like.nbytes].view(like.dtype).reshape(like.shape)
    opened, stream = memory.home
    return DeviceArray(opened, memory.address, like.shape, like.dtype, stream, memory)
