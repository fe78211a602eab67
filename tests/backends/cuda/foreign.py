"""Arrays of other packages, in the memory of devices that this processor plays."""

from __future__ import annotations

from typing import Any

import numpy as np

from plusequals.backends.cuda import dlpack
from plusequals.backends.cuda.device import Opened
from plusequals.backends.cuda.shared import CUDA, c_strides

Array = np.ndarray[Any, Any]
NEVER = object()
"""For packages of the time before streams were part of the interface."""


class Theirs:
    """An array that says where it is by `__cuda_array_interface__`."""

    def __init__(
        self, device: Opened, array: Any, stream: Any = 77, read_only: bool = False,
        strides: tuple[int, ...] | None = None,
    ) -> None:  # fmt: skip
        self.opened, self.like = device, np.array(array, order="C")
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
        found: dict[str, Any] = {
            "version": 3, "shape": self.like.shape, "typestr": self.like.dtype.str,
            "data": (self.address, self.read_only), "strides": self.strides,
        }  # fmt: skip
        return found if self.stream is NEVER else {**found, "stream": self.stream}

    def get(self) -> Array:
        """A copy of what it holds now."""
        out = np.empty_like(self.like)
        if out.nbytes:
            self.opened.context.download(out, self.address, self.queue)
        return out


class Capsules(Theirs):
    """An array that is given by DLPack alone."""

    __cuda_array_interface__ = None  # type: ignore[assignment]

    def __init__(self, device: Opened, array: Any, kind: int = CUDA) -> None:
        super().__init__(device, array, stream=1)
        self.kind = kind
        self.asked: list[Any] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind, self.opened.ordinal

    def __dlpack__(self, stream: Any = None) -> Any:
        self.asked.append(stream)
        shape = self.like.shape
        return dlpack.capsule(
            self, self.address, self.__dlpack_device__(), shape, c_strides(shape), self.like.dtype
        )
