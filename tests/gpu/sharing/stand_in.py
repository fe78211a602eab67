"""A package whose arrays are in the memory of a device that this processor plays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from plusequals.backends.device_arrays import dlpack
from plusequals.backends.device_arrays.device_array import DeviceArray
from plusequals.backends.gpu.device import OpenedDevice
from tests.backends.cuda.foreign import Theirs

from .packages import SEEN, Array


class Sliced(Theirs):
    """An array whose parts are arrays, too."""

    def part(self, see: Callable[[Array], Array]) -> Sliced:
        before = self.see
        found = Sliced(self.opened, self.like, self.stream, see=lambda a: see(before(a)))
        found.address = self.address
        return found

    def __getitem__(self, key: Any) -> Sliced:
        return self.part(lambda a: a[key])


class Taken(Sliced):
    """An array of ours."""

    def __init__(self, device: OpenedDevice, owner: DeviceArray, address: int, stream: int) -> None:
        if owner.strides is not None:
            raise ValueError("it takes none but arrays in C order")
        super().__init__(device, np.zeros(owner.shape, owner.dtype), stream)
        self.address, self.owner = address, owner


class StandIn:
    """The package."""

    name, writable = "stand-in", True

    def __init__(self, device: OpenedDevice) -> None:
        self.device, self.stream = device, 77

    def array(self, data: Array) -> Sliced:
        if data.dtype.name == "bfloat16":
            raise ValueError("its interface has no bfloat16")
        return Sliced(self.device, data, self.stream)

    def host(self, one: Sliced) -> Array:
        return np.array(one.see(one.get()))

    def pointer(self, one: Sliced) -> int:
        return one.address + one.offset

    def copied(self, one: Sliced) -> Sliced:
        made = self.array(np.zeros_like(one.like))
        made.stream = one.stream
        self.device.context.copy(made.address, one.address, one.like.nbytes, one.queue)
        return made

    def takes(self) -> Mapping[str, Callable[[Any], Any]]:
        def asarray(one: DeviceArray) -> Taken:
            shown = one.__cuda_array_interface__
            self.device.context.follow(f"theirs {self.stream}", shown["stream"])
            return Taken(self.device, one, shown["data"][0], self.stream)

        def as_tensor(one: DeviceArray) -> Taken:  # looks at no stream
            return Taken(self.device, one, one.__cuda_array_interface__["data"][0], 1)

        def from_dlpack(one: DeviceArray) -> Taken:
            return Taken(
                self.device, one, dlpack.import_array(one, self.stream).address, self.stream
            )

        return {"asarray": asarray, "as_tensor": as_tensor, "from_dlpack": from_dlpack}

    def seen(self, one: Sliced, how: str) -> Sliced:
        return one.part(SEEN[how])

    @contextmanager
    def aside(self) -> Iterator[int]:
        self.stream = 78
        yield self.stream
        self.stream = 77

    def late(self, one: Sliced, value: float) -> None:
        self.device.context.upload(one.address, np.full_like(one.like, value), one.queue)

    def repeated(self, one: Sliced) -> Sliced:
        return one.part(lambda a: np.broadcast_to(a[:1], (4,)))

    def between(self) -> Sequence[Any]:
        odd = Theirs(self.device, np.ones(4, np.float32))
        odd.address += 2
        return [odd, Theirs(self.device, np.ones(4, np.float32), strides=(6,))]
