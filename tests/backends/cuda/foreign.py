"""Arrays of other packages, in the memory of devices that this processor plays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from plusequals.backends.device_arrays import dlpack
from plusequals.backends.device_arrays.device_array import CUDA, c_strides
from plusequals.backends.gpu.device import OpenedDevice

Array = np.ndarray[Any, Any]
NEVER = object()
"""For packages of the time before streams were part of the interface."""


class Theirs:
    """An array that says where it is by `__cuda_array_interface__`."""

    def __init__(
        self, device: OpenedDevice, array: Any, stream: Any = 77, read_only: bool = False,
        strides: tuple[int, ...] | None = None, see: Callable[[Array], Array] = np.asarray,
    ) -> None:  # fmt: skip
        """Give an array, or the part of it that `see` returns, which may lie in any way."""
        self.opened, self.like, self.see = device, np.array(array, order="C"), see
        self.stream, self.read_only, self.strides = stream, read_only, strides
        self.address = device.context.allocate(max(self.like.nbytes, 1), self.queue)
        if self.like.nbytes:
            device.context.upload(self.address, self.like, self.queue)

    @property
    def queue(self) -> str:
        """The stream of their work, as the driver calls it."""
        return f"theirs {self.stream if isinstance(self.stream, int) else 1}"

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        seen = self.see(self.like)
        strides = seen.strides if seen is not self.like else self.strides
        found: dict[str, Any] = {
            "version": 3, "shape": seen.shape, "typestr": seen.dtype.str,
            "data": (self.address + self.offset, self.read_only), "strides": strides,
        }  # fmt: skip
        return found if self.stream is NEVER else {**found, "stream": self.stream}

    @property
    def offset(self) -> int:
        """Where the first element is that is seen, in bytes."""
        seen = self.see(self.like)
        first, whole = (one.__array_interface__["data"][0] for one in (seen, self.like))
        return int(first - whole) if seen.size else 0

    def get(self) -> Array:
        """A copy of what the whole array holds now."""
        out = np.empty_like(self.like)
        if out.nbytes:
            self.opened.context.download(out, self.address, self.queue)
        return out


class Capsules(Theirs):
    """An array that is given by DLPack alone."""

    __cuda_array_interface__ = None  # type: ignore[assignment]

    def __init__(
        self, device: OpenedDevice, array: Any, kind: int = CUDA,
        see: Callable[[Array], Array] = np.asarray,
    ) -> None:  # fmt: skip
        super().__init__(device, array, stream=1, see=see)
        self.kind = kind
        self.asked: list[Any] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind, self.opened.ordinal

    def __dlpack__(self, stream: Any = None) -> Any:
        self.asked.append(stream)
        seen = self.see(self.like)
        steps = c_strides(seen.shape)
        if seen is not self.like:
            steps = tuple(step // seen.itemsize for step in seen.strides)
        return dlpack.export_array(
            self, self.address + self.offset, self.__dlpack_device__(), seen.shape, steps,
            seen.dtype,
        )  # fmt: skip
