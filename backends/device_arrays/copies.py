"""Copies between host and device memory, synchronous: dependent work of any stream may start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..captures import GraphPlace, NotCapturable
from ..interface import Array
from .device_array import DeviceArray

AnyArray = Array | DeviceArray


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


def prepare_copy(target: AnyArray, source: AnyArray, place: GraphPlace) -> Callable[[], None]:
    """Return a function that queues a copy within the device of a graph, as a step of it.

    Raises NotCapturable where an array is elsewhere.
    """
    if isinstance(target, np.ndarray) or isinstance(source, np.ndarray):
        raise NotCapturable("copies an array of the host")
    for array in (target, source):
        if array.home[0] is not place.device:
            raise NotCapturable(f"copies an array of {array.device}, not of {place.device.name}")
    addresses, size = (target.address, source.address), target.nbytes
    return lambda: place.device.copy(*addresses, size, place.stream)


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


def view_at(memory: AnyArray, like: AnyArray, offset: int = 0) -> AnyArray:
    """Return a part of an array of bytes, which begins at an offset, as an array like another."""
    if isinstance(memory, np.ndarray):
        return memory[offset : offset + like.nbytes].view(like.dtype).reshape(like.shape)
    opened, stream = memory.home
    return DeviceArray(opened, memory.address + offset, like.shape, like.dtype, stream, memory)
