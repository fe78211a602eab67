"""Device arrays: results of calls, and arrays of other packages in device memory.

    Placed                  an array of any package: its address and layout
    DeviceArray             ours: other packages use it without a copy, NumPy copies it

A use of another package's array waits for that package's stream, and makes that stream wait in
turn. Where the stream is unknown, the whole device is synchronized, before and after.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from ...base.dataclass import dataclass
from ...base.diagnostic import CdValueError, Diagnostic
from ...base.finalizers import call_when_unreachable
from ...base.lazy_import import LazyModule
from ...lowering.ir import dtypes
from .. import registry

if TYPE_CHECKING:
    from ..interface import Array
    from . import dlpack
else:
    dlpack = LazyModule(".dlpack", __package__)

Handle = Any
"""An opaque stream of a device's driver."""
CPU, CUDA, MANAGED = 1, 2, 13
"""Device types of DLPack: the host, a GPU, managed memory."""
LEGACY = 1
"""The handle of the legacy default stream, which synchronizes with all blocking streams."""

StreamOrder = int | Literal["done", "legacy", "unknown"]
"""The stream on which others may have queued work on an array: that of a handle, always; none; the
legacy stream, later any; any."""


@dataclass(frozen=True, slots=True, eq=False)
class PlacedArray:
    """An array of any package on a device. `strides` are in elements, None for C order."""

    address: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    ordinal: int | None
    """The ordinal of the device; None where the package does not say: the driver is asked."""
    strides: tuple[int, ...] | None
    writable: bool
    order: StreamOrder
    given: Any
    """The object of the caller."""
    holder: object = None
    """An owner that keeps the memory alive."""
    whole: bool = True
    """Whether strides are multiples of the element size; if not, it cannot be used in place."""

    @property
    def backend(self) -> str:
        """The name of the backend whose code uses it in place."""
        return registry.DEVICE_ARRAYS

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes."""
        return int(self.dtype.itemsize)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes."""
        return self.size * self.itemsize

    @property
    def reach(self) -> int:
        """The extent in bytes from the lowest element to the end of the highest one."""
        low, high = offset_range(self.shape, self.strides)
        return (high - low) * self.itemsize

    @property
    def overlap_proxy(self) -> Array:
        """A NumPy array of the same address and layout, for overlap tests; it must not be read."""
        if not self.size:
            return np.empty(self.shape, self.dtype)
        strides = c_strides(self.shape) if self.strides is None else self.strides
        interface = {
            "data": (self.address, True), "shape": self.shape, "version": 3,
            "strides": tuple(step * self.itemsize for step in strides),
            "typestr": self.dtype.str,
        }  # fmt: skip
        return np.asarray(_ArrayInterface(interface))


class _ArrayInterface:
    """An array interface for NumPy."""

    def __init__(self, interface: dict[str, Any]) -> None:
        self.__array_interface__ = interface


class DeviceArray:
    """An array on a device that a call returned.

    CuPy, PyTorch, Numba and JAX take it without a copy (`cupy.asarray`, `torch.as_tensor`,
    `torch.from_dlpack`, ...); `numpy()` and `np.asarray` copy it to the host.
    """

    def __init__(
        self, opened: Any, address: int, shape: Sequence[int], dtype: Any, stream: Handle,
        base: Any = None, strides: tuple[int, ...] | None = None, writable: bool = True,
    ) -> None:  # fmt: skip
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)
        self.address, self.strides, self.writable = address, strides, writable
        self._opened, self._stream, self._base = opened, stream, base
        self._loan = [False] if base is None else getattr(base, "_loan", [True])
        self._owned = None
        """The finalizer that returns its memory to the pool."""
        if base is None:
            self._owned = call_when_unreachable(_return_memory, opened, address, stream, self._loan)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes."""
        return self.size * int(self.dtype.itemsize)

    @property
    def device(self) -> str:
        """The name of its device: `cuda:0`."""
        return str(self._opened.name)

    @property
    def on_device(self) -> PlacedArray:
        """The array as an argument of calls. Once exported, other packages may write it."""
        order: StreamOrder = (
            "unknown" if self._loan[0] else self._opened.context.number(self._stream)
        )
        return PlacedArray(
            self.address, self.shape, self.dtype, self._opened.ordinal, self.strides,
            self.writable, order, self, self,
        )  # fmt: skip

    @property
    def home(self) -> tuple[Any, Handle]:
        """The opened device, and the stream of its work."""
        return self._opened, self._stream

    @property
    def unsynchronized(self) -> PlacedArray:
        """The array for users that synchronize with its work themselves, before and after."""
        return PlacedArray(
            self.address, self.shape, self.dtype, self._opened.ordinal, self.strides,
            self.writable, "done", self, self,
        )  # fmt: skip

    def take_from(self, source: DeviceArray, what: str = "a copy") -> None:
        """Copy the elements of another array of the same shape, in C order, synchronously."""
        source_device, stream = source._opened, self._stream
        with self._opened.working(what):
            if source_device is self._opened:
                source_device.copy(self.address, source.address, self.nbytes, stream)
            else:
                endpoints = self.address, source.address, self.nbytes
                self._opened.context.copy_from(source_device.context, *endpoints, stream)
            self._opened.wait(stream)

    def copy(self) -> DeviceArray:
        """Return a copy on the device of the same layout; waits for all work on this one."""
        low, high = offset_range(self.shape, self.strides)
        size, opened, stream = self.dtype.itemsize, self._opened, self._stream
        with opened.working("a copy"):
            opened.context.finish()
            address = opened.pool.take((high - low) * size, "a copy", opened.name, stream)
            storage = DeviceArray(opened, address, (high - low,), self.dtype, stream)
            opened.copy(address, self.address + low * size, storage.nbytes, stream)
            opened.wait(stream)
        return DeviceArray(
            opened, address - low * size, self.shape, self.dtype, stream, storage, self.strides,
        )  # fmt: skip

    def __copy__(self) -> DeviceArray:
        return self.copy()

    def __deepcopy__(self, memo: object) -> DeviceArray:
        return self.copy()

    def numpy(self) -> Array:
        """Return a copy on the host; waits until it is computed; CD0884 where that failed."""
        with self._opened.working("a copy to the host"):
            if self._loan[0]:
                self._opened.context.finish()
            return np.array(self._copy_to_host(), order="C")

    def _copy_to_host(self) -> Array:
        """Return a host array with the elements in the same layout."""
        if self.strides is None or not self.size:
            array = np.empty(self.shape, self.dtype)
            self._read(array, self.address)
            return array
        low, high = offset_range(self.shape, self.strides)
        storage, size = np.empty(high - low, self.dtype), self.dtype.itemsize
        self._read(storage, self.address + low * size)
        steps = tuple(step * size for step in self.strides)
        return np.lib.stride_tricks.as_strided(storage[-low:], self.shape, steps)

    def _read(self, target: Array, address: int) -> None:
        self._opened.download(target, address, self._stream)
        self._opened.wait(self._stream)

    def make_view(
        self, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]
    ) -> DeviceArray:
        """Return a view, given its offset, shape and strides, all in elements of this one."""
        steps = None if strides == c_strides(shape) or 0 in shape else strides
        return DeviceArray(
            self._opened, self.address + offset * self.dtype.itemsize, shape, self.dtype,
            self._stream, self, steps,
        )  # fmt: skip

    def part(self, name: str) -> DeviceArray:
        """Return the view `real` or `imag` of complex elements."""
        element_type = dtypes.from_numpy(self.dtype)
        assert element_type is not None and element_type.kind == "c", (
            "only complex numbers have parts"
        )
        steps = c_strides(self.shape) if self.strides is None else self.strides
        half = element_type.real.itemsize
        return DeviceArray(
            self._opened, self.address + half * (name == "imag"), self.shape,
            element_type.real.numpy, self._stream, self, tuple(2 * step for step in steps),
            self.writable,
        )  # fmt: skip

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            message = "an array of a device has to be copied to the host, and `copy=False` forbids"
            raise CdValueError(Diagnostic("CD0886", message, helps=("write `x.numpy()`",)))
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self.dtype.kind == "V" or self.dtype.name == "bfloat16":
            raise AttributeError("the interface has no bfloat16: DLPack has")
        self._loan[0] = True
        # PyTorch ignores the stream, and works on the default one, which waits for ours
        self._opened.context.lead(LEGACY, self._stream)
        size = self.dtype.itemsize
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address if self.size else 0, not self.writable),
            "strides": None if self.strides is None else tuple(n * size for n in self.strides),
            "stream": self._opened.context.number(self._stream),
            "version": 3,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self._opened.ordinal

    def __dlpack__(
        self, *, stream: int | None = None, max_version: Any = None, dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any:  # fmt: skip
        if dl_device is not None and tuple(dl_device) == (CPU, 0):
            return self.numpy().__dlpack__()
        device = self.__dlpack_device__()
        if copy or dl_device not in (None, device):
            raise BufferError("the array is given as it is, on its device, to be written, too")
        if not self.writable and (max_version is None or max_version[0] < 1):
            raise BufferError(
                "the array is read-only, and only a consumer of DLPack 1.0 knows that"
            )
        self._loan[0] = True
        if stream != -1:
            with self._opened.working("an array that another package takes"):
                self._opened.context.lead(LEGACY if stream is None else stream, self._stream)
        steps = c_strides(self.shape) if self.strides is None else self.strides
        return dlpack.export_array(
            self, self.address, device, self.shape, steps, self.dtype, not self.writable
        )

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a number has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"{self.numpy()!r} on {self.device}"


class UsesDeviceArrays(Protocol):
    """A backend whose code uses arrays in device memory in place; see `PlacedArray.backend`."""

    def device_array(self, array: PlacedArray) -> DeviceArray:
        """Return another package's array as one of ours, without a copy."""


def _return_memory(opened: Any, address: int, stream: Handle, loan: list[bool]) -> None:
    opened.pool.returned(address, stream, loan[0])


def offset_range(shape: Sequence[int], strides: Sequence[int] | None) -> tuple[int, int]:
    """Return the offsets of the lowest element and of the end of the highest one, from the first.

    >>> offset_range((3, 2), (-4, 1)), offset_range((3, 0), None)
    ((-8, 2), (0, 0))
    """
    if 0 in shape:
        return 0, 0
    steps = c_strides(shape) if strides is None else strides
    ends = [(n - 1) * step for n, step in zip(shape, steps, strict=True)]
    return sum(min(0, end) for end in ends), sum(max(0, end) for end in ends) + 1


def c_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides in elements of an array in C order."""
    steps, step = [], 1
    for extent in reversed(shape):
        steps.append(step)
        step *= max(extent, 1)
    return tuple(reversed(steps))
