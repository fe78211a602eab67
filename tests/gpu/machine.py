"""A device of this machine, asked through the driver's own library, which every driver brings.

    Machine := memory, copies, code, launches, and times between events of the device

Everything is queued on the stream 0, where PyTorch and CuPy queue what they do, too.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

Array = np.ndarray[Any, Any]
LIBRARY = "libcuda.so.1"
_MAJOR, _MINOR = 75, 76
"""Numbers of the attributes that are the architecture."""
_MOST_SHARED = 97
"""Number of the attribute that is how many bytes a launch may give to a block."""
_GIVEN = 8
"""Number of the attribute of a kernel that says how many bytes its launches give to a block."""


class NoDevice(Exception):
    """Nothing can be run; says why."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a device."""

    name: str
    target: str
    driver: str
    most_shared_bytes: int = 48 * 1024

    @property
    def newest(self) -> int:
        """The newest version of CUDA whose code it takes."""
        return int(self.driver.split(".")[0])


class Machine(Protocol):
    """A device that runs kernels, one after the other."""

    facts: Facts

    def allocate(self, size: int) -> int:
        """Return the address of new memory."""

    def free(self, address: int) -> None:
        """Give memory back."""

    def upload(self, address: int, array: Array) -> None:
        """Copy an array to the device, and wait for it."""

    def download(self, array: Array, address: int) -> None:
        """Copy memory into an array when all that was queued is done."""

    def clear(self, address: int, size: int) -> None:
        """Queue the filling of memory with zeros."""

    def copy(self, address: int, source: int, size: int) -> None:
        """Queue a copy within the device."""

    def function(self, code: bytes, name: str, count: int, given: int = 0) -> Any:
        """Return a kernel of compiled code, which takes that many arguments, and whose launches
        give that many bytes to each block."""

    def launch(self, function: Any, grid: Sequence[int], block: Sequence[int],
               arguments: Sequence[int], given: int = 0) -> None:  # fmt: skip
        """Queue a kernel."""

    def seconds(self, call: Callable[[], object]) -> float:
        """Return how long the device is busy with what a call queues."""


class Cuda:
    """The first device, through the driver's library."""

    def __init__(self) -> None:
        """Raises NoDevice where there is no driver or no device."""
        try:
            self._library = ctypes.CDLL(LIBRARY)
        except OSError as why:
            raise NoDevice(f"there is no driver: {why}") from None
        if self._library.cuInit(0):
            raise NoDevice("the driver finds no device")
        count, version = ctypes.c_int(), ctypes.c_int()
        self._ask("cuDeviceGetCount", ctypes.byref(count))
        if not count.value:
            raise NoDevice("there is no device")
        self._ask("cuDriverGetVersion", ctypes.byref(version))
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self._ask("cuDeviceGet", ctypes.byref(device), 0)
        self._ask("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._ask("cuCtxSetCurrent", context)
        name = ctypes.create_string_buffer(256)
        self._ask("cuDeviceGetName", name, 256, device)
        known = [self._attribute(number, device) for number in (_MAJOR, _MINOR, _MOST_SHARED)]
        major, minor = version.value // 1000, version.value % 1000 // 10
        target, driver = f"sm_{known[0]}{known[1]}", f"{major}.{minor}"
        self.facts = Facts(name.value.decode(), target, driver, known[2])
        self._modules: dict[bytes, ctypes.c_void_p] = {}
        self._events = [ctypes.c_void_p(), ctypes.c_void_p()]
        for event in self._events:
            self._ask("cuEventCreate", ctypes.byref(event), 0)

    def _ask(self, verb: str, *given: Any) -> None:
        status = getattr(self._library, verb)(*given)
        if status:
            text = ctypes.c_char_p()
            self._library.cuGetErrorString(status, ctypes.byref(text))
            raise RuntimeError(f"{verb}: {(text.value or b'?').decode()}")

    def _attribute(self, number: int, device: ctypes.c_int) -> int:
        found = ctypes.c_int()
        self._ask("cuDeviceGetAttribute", ctypes.byref(found), number, device)
        return found.value

    def allocate(self, size: int) -> int:
        """Return the address of new memory."""
        address = ctypes.c_uint64()
        self._ask("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(size, 1)))
        return address.value

    def free(self, address: int) -> None:
        """Give memory back."""
        self._ask("cuMemFree_v2", ctypes.c_uint64(address))

    def upload(self, address: int, array: Array) -> None:
        """Copy an array to the device, and wait for it."""
        data = np.ascontiguousarray(array)
        place, size = ctypes.c_void_p(data.ctypes.data), ctypes.c_size_t(data.nbytes)
        self._ask("cuMemcpyHtoD_v2", ctypes.c_uint64(address), place, size)

    def download(self, array: Array, address: int) -> None:
        """Copy memory into an array when all that was queued is done."""
        place, size = ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes)
        self._ask("cuMemcpyDtoH_v2", place, ctypes.c_uint64(address), size)

    def clear(self, address: int, size: int) -> None:
        """Queue the filling of memory with zeros."""
        where, count = ctypes.c_uint64(address), ctypes.c_size_t(size)
        self._ask("cuMemsetD8Async", where, ctypes.c_ubyte(0), count, None)

    def copy(self, address: int, source: int, size: int) -> None:
        """Queue a copy within the device."""
        ends = ctypes.c_uint64(address), ctypes.c_uint64(source)
        self._ask("cuMemcpyDtoDAsync_v2", *ends, ctypes.c_size_t(size), None)

    def function(self, code: bytes, name: str, count: int, given: int = 0) -> Any:
        """Return a kernel of compiled code, as `Machine` does."""
        if code not in self._modules:
            module = ctypes.c_void_p()
            self._ask("cuModuleLoadData", ctypes.byref(module), code)
            self._modules[code] = module
        found = ctypes.c_void_p()
        self._ask("cuModuleGetFunction", ctypes.byref(found), self._modules[code], name.encode())
        if given:
            self._ask("cuFuncSetAttribute", found, _GIVEN, given)
        return found

    def launch(self, function: Any, grid: Sequence[int], block: Sequence[int],
               arguments: Sequence[int], given: int = 0) -> None:  # fmt: skip
        """Queue a kernel."""
        held = [ctypes.c_int64(value) for value in arguments]
        places = (ctypes.c_void_p * len(held))(*(ctypes.addressof(one) for one in held))
        self._ask("cuLaunchKernel", function, *grid, *block, given, None, places, None)

    def seconds(self, call: Callable[[], object]) -> float:
        """Return how long the device is busy with what a call queues."""
        start, end = self._events
        self._ask("cuEventRecord", start, None)
        call()
        self._ask("cuEventRecord", end, None)
        self._ask("cuEventSynchronize", end)
        took = ctypes.c_float()
        self._ask("cuEventElapsedTime", ctypes.byref(took), start, end)
        return took.value / 1000


def median(machine: Machine, call: Callable[[], object], budget: float = 0.5) -> float:
    """Return the median of what calls take, as many as a budget of seconds allows: 5 to 200."""
    for _ in range(2):
        machine.seconds(call)
    found, ends = [], time.monotonic() + budget
    while len(found) < 5 or (len(found) < 200 and time.monotonic() < ends):
        found.append(machine.seconds(call))
    return float(np.median(found))
