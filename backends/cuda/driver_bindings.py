"""`cuda.bindings` driver: implements `driver_protocol`; each call is made in its device's context.

With one device its context stays current; with several, the caller's context is restored.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..gpu.driver_protocol import (
    CONDITIONAL_VERSION,
    Context,
    DriverError,
    Handle,
    NotSupported,
    OutOfMemory,
    Properties,
    Shape,
    bytes_of,
)
from ..interface import Array


class NotReady(DriverError):
    """The queried work is not complete."""


class Bindings:
    """The driver through `cuda.bindings`."""

    def __init__(self) -> None:
        from cuda.bindings import __version__
        from cuda.bindings import driver as api

        self.api = api
        self.name = f"cuda.bindings {__version__}"
        self._ask("cuInit", 0)

    def _ask(self, verb: str, *given: Any) -> Any:
        return _call_driver(self.api, verb, *given)

    def version(self) -> tuple[int, int]:
        """Return the newest CUDA version that the installed driver supports."""
        number = self._ask("cuDriverGetVersion")
        return number // 1000, number % 1000 // 10

    def count(self) -> int:
        """Return the number of devices."""
        return int(self._ask("cuDeviceGetCount"))

    def properties(self, device: int) -> Properties:
        """Return the properties of a device."""
        api_device, attributes = self._ask("cuDeviceGet", device), self.api.CUdevice_attribute

        def number(name: str) -> int:
            attribute = getattr(attributes, f"CU_DEVICE_ATTRIBUTE_{name}")
            return int(self._ask("cuDeviceGetAttribute", attribute, api_device))

        return Properties(
            self._ask("cuDeviceGetName", 256, api_device).split(b"\0")[0].decode(),
            (number("COMPUTE_CAPABILITY_MAJOR"), number("COMPUTE_CAPABILITY_MINOR")),
            number("MULTIPROCESSOR_COUNT"),
            int(self._ask("cuDeviceTotalMem", api_device)),
            number("MAX_SHARED_MEMORY_PER_BLOCK"),
            number("ASYNC_ENGINE_COUNT"),
            number("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
        )

    def open(self, device: int) -> Context:
        """Return the primary context of a device, retained from now on."""
        api_device = self._ask("cuDeviceGet", device)
        pools = self.api.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED
        has_pools = bool(self._ask("cuDeviceGetAttribute", pools, api_device))
        context = self._ask("cuDevicePrimaryCtxRetain", api_device)
        return BindingsContext(self.api, context, has_pools, self.count() > 1)


class BindingsContext:
    """A device context of `cuda.bindings`."""

    def __init__(
        self, api: Any, context: Any, pools: bool = False, has_others: bool = False
    ) -> None:
        self.api = api
        self.context = context
        self.has_pools = pools
        """Whether the device has a stream-ordered allocator."""
        self.has_others = has_others
        """Whether the thread may use another device, whose context has to stay current."""
        self.capturing = threading.RLock()

    def _ask(self, verb: str, *given: Any) -> Any:
        if not self.has_others:
            _call_driver(self.api, "cuCtxSetCurrent", self.context)
            return _call_driver(self.api, verb, *given)
        _call_driver(self.api, "cuCtxPushCurrent", self.context)
        try:
            return _call_driver(self.api, verb, *given)
        finally:
            _call_driver(self.api, "cuCtxPopCurrent")

    def allocate(self, size: int, stream: Handle) -> int:
        """Return the address of new memory, allocated in stream order; raises OutOfMemory."""
        if self.has_pools:
            return int(self._ask("cuMemAllocAsync", max(size, 1), stream))
        return int(self._ask("cuMemAlloc", max(size, 1)))

    def free(self, address: int, stream: Handle) -> None:
        """Free memory after the work queued on a stream so far."""
        if self.has_pools:
            self._ask("cuMemFreeAsync", address, stream)
        else:
            self._ask("cuMemFree", address)  # which synchronizes the device

    def free_memory(self) -> int:
        """Return the free bytes of the device."""
        return int(self._ask("cuMemGetInfo")[0])

    def where(self, address: int) -> int:
        """Return the ordinal of the device that owns the memory at an address."""
        ordinal = self.api.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        return int(self._ask("cuPointerGetAttribute", ordinal, address))

    def pinned(self, size: int) -> Array:
        """Return pinned host memory as bytes; raises OutOfMemory."""
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

    def copy_from(self, peer: Any, address: int, source: int, size: int, stream: Handle) -> None:
        """Queue a copy from another device."""
        endpoints = address, self.context, source, peer.context
        self._ask("cuMemcpyPeerAsync", *endpoints, size, stream)

    def clear(self, address: int, size: int, stream: Handle) -> None:
        """Queue a zero fill of memory."""
        if size:
            self._ask("cuMemsetD8Async", address, 0, size, stream)

    def stream(self) -> Handle:
        """Return a new stream."""
        flags = self.api.CUstream_flags.CU_STREAM_NON_BLOCKING
        return self._ask("cuStreamCreate", flags.value)

    def number(self, stream: Handle) -> int:
        """Return the handle of a stream, by which other packages identify it."""
        return int(stream)

    def follow(self, stream: Handle, foreign: int) -> None:
        """Make a stream wait for the work queued so far on a stream of another package."""
        self._chain(self.api.CUstream(foreign), stream)

    def lead(self, foreign: int, stream: Handle) -> None:
        """Make a stream of another package wait for the work queued so far on one of ours."""
        self._chain(stream, self.api.CUstream(foreign))

    def _chain(self, first: Handle, then: Handle) -> None:
        event = self.event()
        try:
            self.record(event, first)
            self.wait(then, event)
        finally:
            self._ask("cuEventDestroy", event)  # the driver frees it after its completion

    def finish(self) -> None:
        """Synchronize the device, with the work of all packages."""
        with self.capturing:
            self._ask("cuCtxSynchronize")

    def event(self) -> Handle:
        """Return a new event."""
        flags = self.api.CUevent_flags.CU_EVENT_DISABLE_TIMING
        return self._ask("cuEventCreate", flags.value)

    def record(self, event: Handle, stream: Handle) -> None:
        """Record an event for everything queued on a stream so far."""
        self._ask("cuEventRecord", event, stream)

    def wait(self, stream: Handle, event: Handle) -> None:
        """Make later work of a stream wait for an event."""
        self._ask("cuStreamWaitEvent", stream, event, 0)

    def query(self, event: Handle) -> bool:
        """Whether an event is complete."""
        try:
            self._ask("cuEventQuery", event)
        except NotReady:
            return False
        return True

    def synchronize(self, event: Handle) -> None:
        """Wait until an event is complete."""
        self._ask("cuEventSynchronize", event)

    def load(self, code: bytes) -> Handle:
        """Load compiled code; return its module."""
        return self._ask("cuModuleLoadData", code)

    def function(self, code: Handle, name: str, count: int, given: int = 0) -> Handle:
        """Return a kernel of a module, with `count` arguments; see `Context`."""
        kernel_function = self._ask("cuModuleGetFunction", code, name.encode())
        if given:
            attributes = self.api.CUfunction_attribute
            attribute = attributes.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._ask("cuFuncSetAttribute", kernel_function, attribute, given)
        return kernel_function

    def launch(
        self, function: Handle, grid: Shape, block: Shape, arguments: Sequence[int],
        stream: Handle, given: int = 0,
    ) -> None:  # fmt: skip
        """Queue a kernel with 64-bit arguments and `given` bytes of dynamic shared memory."""
        packed = tuple(arguments), (ctypes.c_int64,) * len(arguments)
        self._ask("cuLaunchKernel", function, *grid, *block, given, stream, packed, 0)

    def prepared(
        self, function: Handle, grid: Shape, block: Shape, arguments: Sequence[int],
        stream: Handle, given: int = 0,
    ) -> Callable[[], None]:  # fmt: skip
        """Return a function that queues a kernel as `launch` does, with arguments packed once."""
        api, context = self.api, self.context
        values = (ctypes.c_int64 * max(len(arguments), 1))(*arguments)
        addresses = range(
            ctypes.addressof(values), ctypes.addressof(values) + len(arguments) * 8, 8
        )
        pointers = (ctypes.c_void_p * max(len(arguments), 1))(*addresses)
        set_current, launch, success = (
            api.cuCtxSetCurrent,
            api.cuLaunchKernel,
            api.CUresult.CUDA_SUCCESS,
        )
        launch_arguments = (function, *grid, *block, given, stream, ctypes.addressof(pointers), 0)

        def start_in_context(held: object = (values, pointers)) -> None:
            self._ask("cuLaunchKernel", *launch_arguments)

        def start(held: object = (values, pointers)) -> None:
            status = set_current(context)[0]
            if status == success:
                status = launch(*launch_arguments)[0]
            if status != success:
                _require_success(api, status, "cuLaunchKernel")

        return start_in_context if self.has_others else start

    def begin_capture(self, stream: Handle) -> None:
        """Begin to record what is queued on a stream; see `Context`.

        Relaxed: what other packages free in this thread meanwhile, by the garbage collector, may
        not break it.
        """
        modes = getattr(self.api, "CUstreamCaptureMode", None)
        if modes is None:
            raise NotSupported("this version of cuda.bindings has no capture of streams")
        self._ask("cuStreamBeginCapture", stream, modes.CU_STREAM_CAPTURE_MODE_RELAXED)

    def end_capture(self, stream: Handle) -> Handle:
        """End the capture that began on a stream; return an executable graph of the work."""
        graph = self._ask("cuStreamEndCapture", stream)
        with_flags = "cuGraphInstantiateWithFlags"  # the name before CUDA 12
        try:
            return self._ask(
                with_flags if hasattr(self.api, with_flags) else "cuGraphInstantiate", graph, 0
            )
        finally:
            self._ask("cuGraphDestroy", graph)

    def condition(self, stream: Handle) -> int:
        """Return a new condition of the graph that is captured on a stream; see `Context`."""
        if not hasattr(self.api, "cuGraphConditionalHandleCreate"):
            raise NotSupported("this version of cuda.bindings has no conditional nodes")
        if self._ask("cuDriverGetVersion") < CONDITIONAL_VERSION:
            raise NotSupported("the driver has no conditional nodes: it is older than CUDA 12.4")
        _, _, graph, *_ = self._ask("cuStreamGetCaptureInfo", stream)
        return int(self._ask("cuGraphConditionalHandleCreate", graph, self.context, 0, 0))

    def conditional(self, stream: Handle, condition: int, repeats: bool) -> Handle:
        """Add a node that runs a body where a condition is set; see `Context`."""
        api, kinds = self.api, self.api.CUgraphConditionalNodeType
        node = api.CUgraphNodeParams()
        node.type = api.CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL
        node.conditional.handle = condition
        node.conditional.type = (
            kinds.CU_GRAPH_COND_TYPE_WHILE if repeats else kinds.CU_GRAPH_COND_TYPE_IF
        )
        node.conditional.size, node.conditional.ctx = 1, self.context
        # What nodes depend on is followed by data of these edges from CUDA 13 on.
        _, _, graph, *edges, count = self._ask("cuStreamGetCaptureInfo", stream)
        added = self._ask("cuGraphAddNode", graph, *edges, count, node)
        last = [[added], *[None] * (len(edges) - 1)]
        replaced = api.CUstreamUpdateCaptureDependencies_flags.CU_STREAM_SET_CAPTURE_DEPENDENCIES
        self._ask("cuStreamUpdateCaptureDependencies", stream, *last, 1, replaced)
        return node.conditional.phGraph_out[0]

    def begin_body(self, stream: Handle, body: Handle) -> None:
        """Begin to record what is queued on a stream into a body; see `Context`."""
        relaxed = self.api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        self._ask("cuStreamBeginCaptureToGraph", stream, body, None, None, 0, relaxed)

    def end_body(self, stream: Handle) -> None:
        """End the capture of a body, which its node owns."""
        self._ask("cuStreamEndCapture", stream)

    def launch_graph(self, graph: Handle, stream: Handle) -> None:
        """Queue a graph."""
        self._ask("cuGraphLaunch", graph, stream)

    def destroy_graph(self, graph: Handle) -> None:
        """Destroy a graph that does not run."""
        self._ask("cuGraphExecDestroy", graph)


def _call_driver(api: Any, verb: str, *given: Any) -> Any:
    """Return the results of a driver call; raises DriverError with the driver's message."""
    status, *results = getattr(api, verb)(*given)
    _require_success(api, status, verb)
    return results[0] if len(results) == 1 else results


def _require_success(api: Any, status: Any, verb: str) -> None:
    if status == api.CUresult.CUDA_SUCCESS:
        return
    _, description = api.cuGetErrorString(status)
    text = f"{verb}: {description.decode() if description else status}"
    if status == api.CUresult.CUDA_ERROR_NOT_READY:
        raise NotReady(text)
    out_of_memory = status == api.CUresult.CUDA_ERROR_OUT_OF_MEMORY
    raise OutOfMemory(text) if out_of_memory else DriverError(text)
