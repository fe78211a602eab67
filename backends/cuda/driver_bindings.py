"""The driver through `cuda.bindings`: every call is made in the context of its device.

Where there is one device its context stays current; with several, that of the caller does.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..gpu.driver_protocol import (
    Context,
    DriverError,
    Handle,
    OutOfMemory,
    Properties,
    Shape,
    bytes_of,
)
from ..interface import Array


class NotReady(DriverError):
    """What is asked for is not done."""


class Bindings:
    """The driver through `cuda.bindings`."""

    def __init__(self) -> None:
        from cuda.bindings import __version__
        from cuda.bindings import driver as api

        self.api = api
        self.name = f"cuda.bindings {__version__}"
        self._ask("cuInit", 0)

    def _ask(self, verb: str, *given: Any) -> Any:
        return _asked(self.api, verb, *given)

    def version(self) -> tuple[int, int]:
        """Return the newest CUDA that the installed driver knows."""
        number = self._ask("cuDriverGetVersion")
        return number // 1000, number % 1000 // 10

    def count(self) -> int:
        """Return how many devices there are."""
        return int(self._ask("cuDeviceGetCount"))

    def properties(self, device: int) -> Properties:
        """Return what is known of a device."""
        found, known = self._ask("cuDeviceGet", device), self.api.CUdevice_attribute

        def number(name: str) -> int:
            attribute = getattr(known, f"CU_DEVICE_ATTRIBUTE_{name}")
            return int(self._ask("cuDeviceGetAttribute", attribute, found))

        return Properties(
            self._ask("cuDeviceGetName", 256, found).split(b"\0")[0].decode(),
            (number("COMPUTE_CAPABILITY_MAJOR"), number("COMPUTE_CAPABILITY_MINOR")),
            number("MULTIPROCESSOR_COUNT"),
            int(self._ask("cuDeviceTotalMem", found)),
            number("MAX_SHARED_MEMORY_PER_BLOCK"),
            number("ASYNC_ENGINE_COUNT"),
            number("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
        )

    def open(self, device: int) -> Context:
        """Return the device, in use from now on."""
        found = self._ask("cuDeviceGet", device)
        pools = self.api.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED
        has_pools = bool(self._ask("cuDeviceGetAttribute", pools, found))
        context = self._ask("cuDevicePrimaryCtxRetain", found)
        return BindingsContext(self.api, context, has_pools, self.count() > 1)


class BindingsContext:
    """A device through `cuda.bindings`."""

    def __init__(
        self, api: Any, context: Any, pools: bool = False, has_others: bool = False
    ) -> None:
        self.api = api
        self.context = context
        self.has_pools = pools
        """Whether memory can be taken and given back in the order of a stream."""
        self.has_others = has_others
        """Whether the thread may be using another device, whose context has to stay current."""

    def _ask(self, verb: str, *given: Any) -> Any:
        if not self.has_others:
            _asked(self.api, "cuCtxSetCurrent", self.context)
            return _asked(self.api, verb, *given)
        _asked(self.api, "cuCtxPushCurrent", self.context)
        try:
            return _asked(self.api, verb, *given)
        finally:
            _asked(self.api, "cuCtxPopCurrent")

    def allocate(self, size: int, stream: Handle) -> int:
        """Return the address of new memory, of use in a stream's order; raises OutOfMemory."""
        if self.has_pools:
            return int(self._ask("cuMemAllocAsync", max(size, 1), stream))
        return int(self._ask("cuMemAlloc", max(size, 1)))

    def free(self, address: int, stream: Handle) -> None:
        """Give memory back when what is queued on a stream so far is done."""
        if self.has_pools:
            self._ask("cuMemFreeAsync", address, stream)
        else:
            self._ask("cuMemFree", address)  # which waits for the device

    def free_memory(self) -> int:
        """Return how many bytes of the device nobody has."""
        return int(self._ask("cuMemGetInfo")[0])

    def where(self, address: int) -> int:
        """Return the number of the device that has the memory at an address."""
        ordinal = self.api.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        return int(self._ask("cuPointerGetAttribute", ordinal, address))

    def pinned(self, size: int) -> Array:
        """Return bytes of the host that copies reach directly; raises OutOfMemory."""
        address = int(self._ask("cuMemAllocHost", max(size, 1)))
        return np.ctypeslib.as_array((ctypes.c_uint8 * max(size, 1)).from_address(address))

    def upload(self, address: int, array: Array, stream: Handle) -> None:
        """Queue a copy of an array in C order to the device."""
        data = bytes_of(array)
        self._ask("cuMemcpyHtoDAsync", address, data.ctypes.data, data.nbytes, stream)

    def download(self, array: Array, address: int, stream: Handle) -> None:
        """Queue a copy from the device into an array in C order."""
        data = bytes_of(array)
        self._ask("cuMemcpyDtoHAsync", data.ctypes.data, address, data.nbytes, stream)

    def copy(self, address: int, source: int, size: int, stream: Handle) -> None:
        """Queue a copy within the device."""
        self._ask("cuMemcpyDtoDAsync", address, source, size, stream)

    def copy_from(self, other: Any, address: int, source: int, size: int, stream: Handle) -> None:
        """Queue a copy from another device."""
        ends = address, self.context, source, other.context
        self._ask("cuMemcpyPeerAsync", *ends, size, stream)

    def clear(self, address: int, size: int, stream: Handle) -> None:
        """Queue the filling of memory with zeros."""
        if size:
            self._ask("cuMemsetD8Async", address, 0, size, stream)

    def stream(self) -> Handle:
        """Return a new stream."""
        flags = self.api.CUstream_flags.CU_STREAM_NON_BLOCKING
        return self._ask("cuStreamCreate", flags.value)

    def number(self, stream: Handle) -> int:
        """Return what other packages call a stream."""
        return int(stream)

    def follow(self, stream: Handle, other: int) -> None:
        """Let a stream wait for what is queued so far on one that another package has."""
        self._chain(self.api.CUstream(other), stream)

    def lead(self, other: int, stream: Handle) -> None:
        """Let a stream that another package has wait for what is queued so far on one of ours."""
        self._chain(stream, self.api.CUstream(other))

    def _chain(self, first: Handle, then: Handle) -> None:
        event = self.event()
        try:
            self.record(event, first)
            self.wait(then, event)
        finally:
            self._ask("cuEventDestroy", event)  # the driver keeps it until it is reached

    def finish(self) -> None:
        """Return when all that anybody has queued on the device is done."""
        self._ask("cuCtxSynchronize")

    def event(self) -> Handle:
        """Return a new event."""
        flags = self.api.CUevent_flags.CU_EVENT_DISABLE_TIMING
        return self._ask("cuEventCreate", flags.value)

    def record(self, event: Handle, stream: Handle) -> None:
        """Let an event stand for everything queued on a stream so far."""
        self._ask("cuEventRecord", event, stream)

    def wait(self, stream: Handle, event: Handle) -> None:
        """Let what is queued on a stream from now on start when an event is reached."""
        self._ask("cuStreamWaitEvent", stream, event, 0)

    def query(self, event: Handle) -> bool:
        """Whether an event is reached."""
        try:
            self._ask("cuEventQuery", event)
        except NotReady:
            return False
        return True

    def synchronize(self, event: Handle) -> None:
        """Return when an event is reached."""
        self._ask("cuEventSynchronize", event)

    def load(self, code: bytes) -> Handle:
        """Return compiled code, loaded."""
        return self._ask("cuModuleLoadData", code)

    def function(self, code: Handle, name: str, count: int, given: int = 0) -> Handle:
        """Return a kernel of loaded code, which takes that many arguments; see `Context`."""
        found = self._ask("cuModuleGetFunction", code, name.encode())
        if given:
            known = self.api.CUfunction_attribute
            most = known.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._ask("cuFuncSetAttribute", found, most, given)
        return found

    def launch(
        self, function: Handle, grid: Shape, block: Shape, arguments: Sequence[int],
        stream: Handle, given: int = 0,
    ) -> None:  # fmt: skip
        """Queue a kernel, given its arguments as 64-bit integers, and to each block some bytes."""
        packed = tuple(arguments), (ctypes.c_int64,) * len(arguments)
        self._ask("cuLaunchKernel", function, *grid, *block, given, stream, packed, 0)

    def prepared(
        self, function: Handle, grid: Shape, block: Shape, arguments: Sequence[int],
        stream: Handle, given: int = 0,
    ) -> Callable[[], None]:  # fmt: skip
        """Return what queues a kernel as `launch` does, each time that it is called."""
        api, context = self.api, self.context
        values = (ctypes.c_int64 * max(len(arguments), 1))(*arguments)
        places = range(ctypes.addressof(values), ctypes.addressof(values) + len(arguments) * 8, 8)
        pointers = (ctypes.c_void_p * max(len(arguments), 1))(*places)
        enter, launch, fine = api.cuCtxSetCurrent, api.cuLaunchKernel, api.CUresult.CUDA_SUCCESS
        all_given = (function, *grid, *block, given, stream, ctypes.addressof(pointers), 0)

        def start_there(held: object = (values, pointers)) -> None:
            self._ask("cuLaunchKernel", *all_given)

        def start(held: object = (values, pointers)) -> None:
            status = enter(context)[0]
            if status == fine:
                status = launch(*all_given)[0]
            if status != fine:
                _require(api, status, "cuLaunchKernel")

        return start_there if self.has_others else start


def _asked(api: Any, verb: str, *given: Any) -> Any:
    """Return what a call of the driver gives; raises DriverError with its words."""
    status, *found = getattr(api, verb)(*given)
    _require(api, status, verb)
    return found[0] if len(found) == 1 else found


def _require(api: Any, status: Any, verb: str) -> None:
    if status == api.CUresult.CUDA_SUCCESS:
        return
    _, said = api.cuGetErrorString(status)
    text = f"{verb}: {said.decode() if said else status}"
    if status == api.CUresult.CUDA_ERROR_NOT_READY:
        raise NotReady(text)
    out_of_memory = status == api.CUresult.CUDA_ERROR_OUT_OF_MEMORY
    raise OutOfMemory(text) if out_of_memory else DriverError(text)
