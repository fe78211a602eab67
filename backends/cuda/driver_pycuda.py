"""PyCUDA driver: implements `driver_protocol`; a context is current while its objects are used."""

from __future__ import annotations

import ctypes
import struct
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
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

_NON_BLOCKING = 1
"""The flag of a stream that does not synchronize with the default one; PyCUDA lacks it."""


class PyCuda:
    """The driver through PyCUDA."""

    def __init__(self) -> None:
        import pycuda
        import pycuda.driver as api

        api.init()
        self.api = api
        self.name = f"PyCUDA {pycuda.VERSION_TEXT}"

    def version(self) -> tuple[int, int]:
        """Return the newest CUDA version that the installed driver supports."""
        with translate_errors(self.api):
            number = self.api.get_driver_version()
        return number // 1000, number % 1000 // 10

    def count(self) -> int:
        """Return the number of devices."""
        with translate_errors(self.api):
            return int(self.api.Device.count())

    def properties(self, device: int) -> Properties:
        """Return the properties of a device."""
        with translate_errors(self.api):
            api_device, attributes = self.api.Device(device), self.api.device_attribute
            return Properties(
                api_device.name(),
                tuple(api_device.compute_capability()),
                api_device.get_attribute(attributes.MULTIPROCESSOR_COUNT),
                api_device.total_memory(),
                api_device.get_attribute(attributes.MAX_SHARED_MEMORY_PER_BLOCK),
                api_device.get_attribute(attributes.ASYNC_ENGINE_COUNT),
                api_device.get_attribute(attributes.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
            )

    def open(self, device: int) -> Context:
        """Return the primary context of a device, retained from now on."""
        with translate_errors(self.api):
            context = self.api.Device(device).retain_primary_context()
        return PyCudaContext(self.api, keep_alive(context))


@contextmanager
def translate_errors(api: Any) -> Iterator[None]:
    """Convert errors of PyCUDA in the `with` to DriverError or OutOfMemory."""
    try:
        yield
    except api.MemoryError as why:
        raise OutOfMemory(str(why)) from None
    except api.Error as why:
        raise DriverError(str(why)) from None


def library() -> Any:
    """Return the driver library, which PyCUDA has loaded."""
    return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")


def order_streams(library: Any, first: int, then: int) -> None:
    """Make stream `then` wait for stream `first`, by handles: PyCUDA cannot wrap foreign streams.

    Raises DriverError.
    """
    event, disable_timing = ctypes.c_void_p(), 2
    call_driver(library, "cuEventCreate", ctypes.byref(event), disable_timing)
    try:
        call_driver(library, "cuEventRecord", event, ctypes.c_void_p(first))
        call_driver(library, "cuStreamWaitEvent", ctypes.c_void_p(then), event, 0)
    finally:
        call_driver(library, "cuEventDestroy_v2", event)  # the driver frees it after its completion


def call_driver(library: Any, verb: str, *given: Any) -> None:
    """Call a function of the driver library; raises DriverError."""
    status = getattr(library, verb)(*given)
    if status:
        raise DriverError(f"{verb} failed with status {status}")


def pack_arguments(arguments: Sequence[int]) -> bytes:
    """Return 64-bit integers packed as kernel arguments."""
    return struct.pack(f"{len(arguments)}q", *arguments)


def keep_alive(context: Any) -> Any:
    """Return the context of a device, kept alive until the process ends.

    Its destructor asks the driver to destroy the primary context, which other packages share; the
    driver refuses, and a message would be printed at the end of each process, also of forked ones.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(context))
    return context


class NodeParams(ctypes.Structure):
    """The driver's `CUgraphNodeParams` of a conditional node, of 256 bytes."""

    _fields_ = (
        ("type", ctypes.c_int), ("reserved", ctypes.c_int * 3), ("handle", ctypes.c_uint64),
        ("kind", ctypes.c_int), ("size", ctypes.c_uint),
        ("bodies", ctypes.POINTER(ctypes.c_void_p)), ("context", ctypes.c_void_p),
        ("rest", ctypes.c_uint8 * 208),
    )  # fmt: skip


class PyCudaContext:
    """A device context of PyCUDA, made current for each operation."""

    def __init__(self, api: Any, context: Any, library: Callable[[], Any] = library) -> None:
        self.api = api
        self.context = context
        self.library = library
        self._memory: dict[int, Any] = {}
        """Allocations by address: PyCUDA frees unreferenced ones."""
        self.capturing = threading.RLock()

    @contextmanager
    def _current(self) -> Iterator[Any]:
        with translate_errors(self.api):
            self.context.push()
            try:
                yield self.api
            finally:
                self.api.Context.pop()

    def allocate(self, size: int, stream: Handle) -> int:
        """Return the address of new memory; raises OutOfMemory."""
        with self._current() as api:
            allocation = api.mem_alloc(max(size, 1))
            self._memory[int(allocation)] = allocation
            return int(allocation)

    def free(self, address: int, stream: Handle) -> None:
        """Free memory, which synchronizes the device: PyCUDA has no stream-ordered allocator."""
        with self._current():
            self._memory[address].free()
            del self._memory[address]  # last: it stays after a failure

    def free_memory(self) -> int:
        """Return the free bytes of the device."""
        with self._current() as api:
            return int(api.mem_get_info()[0])

    def where(self, address: int) -> int:
        """Return the ordinal of the device that owns the memory at an address."""
        ordinal, device_ordinal = ctypes.c_int(), 9
        with self._current():
            pointer = ctypes.c_void_p(address)
            call_driver(
                self.library(),
                "cuPointerGetAttribute",
                ctypes.byref(ordinal),
                device_ordinal,
                pointer,
            )
        return ordinal.value

    def pinned(self, size: int) -> Array:
        """Return pinned host memory as bytes; raises OutOfMemory."""
        with self._current() as api:
            memory: Array = api.pagelocked_empty(max(size, 1), np.uint8)
            return memory

    def upload(self, address: int, array: Array, stream: Handle) -> None:
        """Queue a copy of an array in C order to the device."""
        with self._current() as api:
            api.memcpy_htod_async(address, bytes_of(array), stream)

    def download(self, array: Array, address: int, stream: Handle) -> None:
        """Queue a copy from the device into an array in C order."""
        with self._current() as api:
            api.memcpy_dtoh_async(bytes_of(array), address, stream)

    def copy(self, address: int, source: int, size: int, stream: Handle) -> None:
        """Queue a copy within the device."""
        with self._current() as api:
            api.memcpy_dtod_async(address, source, size, stream)

    def copy_from(self, peer: Any, address: int, source: int, size: int, stream: Handle) -> None:
        """Queue a copy from another device by the driver library: PyCUDA assumes that both ends are
        on this device, and copies through the host would not be ordered with our streams."""
        endpoints = ((address, self.context.handle), (source, peer.context.handle))
        arguments = [
            argument for pointer, context in endpoints
            for argument in (ctypes.c_uint64(pointer), ctypes.c_void_p(context))
        ]  # fmt: skip
        queue = ctypes.c_void_p(int(stream.handle))
        with self._current():
            call_driver(
                self.library(), "cuMemcpyPeerAsync", *arguments, ctypes.c_size_t(size), queue
            )

    def clear(self, address: int, size: int, stream: Handle) -> None:
        """Queue a zero fill of memory."""
        if size:
            with self._current() as api:
                api.memset_d8_async(address, 0, size, stream)

    def stream(self) -> Handle:
        """Return a new stream."""
        with self._current() as api:
            return api.Stream(_NON_BLOCKING)

    def number(self, stream: Handle) -> int:
        """Return the handle of a stream, by which other packages identify it."""
        return int(stream.handle)

    def follow(self, stream: Handle, foreign: int) -> None:
        """Make a stream wait for the work queued so far on a stream of another package."""
        with self._current():
            order_streams(self.library(), foreign, int(stream.handle))

    def lead(self, foreign: int, stream: Handle) -> None:
        """Make a stream of another package wait for the work queued so far on one of ours."""
        with self._current():
            order_streams(self.library(), int(stream.handle), foreign)

    def finish(self) -> None:
        """Synchronize the device, with the work of all packages."""
        with self.capturing, self._current() as api:
            api.Context.synchronize()

    def event(self) -> Handle:
        """Return a new event."""
        with self._current() as api:
            return api.Event(api.event_flags.DISABLE_TIMING)

    def record(self, event: Handle, stream: Handle) -> None:
        """Record an event for everything queued on a stream so far."""
        with self._current():
            event.record(stream)

    def wait(self, stream: Handle, event: Handle) -> None:
        """Make later work of a stream wait for an event."""
        with self._current():
            stream.wait_for_event(event)

    def query(self, event: Handle) -> bool:
        """Whether an event is complete."""
        with self._current():
            return bool(event.query())

    def synchronize(self, event: Handle) -> None:
        """Wait until an event is complete."""
        with self._current():
            event.synchronize()

    def load(self, code: bytes) -> Handle:
        """Load compiled code; return its module."""
        with self._current() as api:
            return api.module_from_buffer(code)

    def function(self, code: Handle, name: str, count: int, given: int = 0) -> Handle:
        """Return a kernel of a module, with `count` arguments; see `Context`."""
        with self._current() as api:
            kernel_function = code.get_function(name)
            kernel_function.prepare("q" * count)
            if given:
                attribute = api.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
                kernel_function.set_attribute(attribute, given)
            return kernel_function

    def launch(
        self, function: Handle, grid: Shape, block: Shape, arguments: Sequence[int],
        stream: Handle, given: int = 0,
    ) -> None:  # fmt: skip
        """Queue a kernel with 64-bit arguments and `given` bytes of dynamic shared memory.

        By the final step of `prepared_async_call`, where available: before it, that one sets the
        block shape by a deprecated function of the driver.
        """
        launch_packed = getattr(function, "_launch_kernel", None)
        with self._current():
            if launch_packed is None:
                function.prepared_async_call(grid, block, stream, *arguments, shared_size=given)
            else:
                launch_packed(grid, block, pack_arguments(arguments), given, stream)

    def prepared(
        self, function: Handle, grid: Shape, block: Shape, arguments: Sequence[int],
        stream: Handle, given: int = 0,
    ) -> Callable[[], None]:  # fmt: skip
        """Return a function that queues a kernel as `launch` does, with arguments packed once."""
        launch_packed = getattr(function, "_launch_kernel", None)
        if launch_packed is None:
            return partial(self.launch, function, grid, block, tuple(arguments), stream, given)
        packed_arguments = pack_arguments(arguments)
        push, pop, error_class = self.context.push, self.api.Context.pop, self.api.Error

        def start() -> None:
            try:
                push()
                try:
                    launch_packed(grid, block, packed_arguments, given, stream)
                finally:
                    pop()
            except error_class:
                with translate_errors(self.api):
                    raise

        return start

    # PyCUDA knows no graphs: they are of the driver library itself.

    def begin_capture(self, stream: Handle) -> None:
        """Begin to record what is queued on a stream; see `Context`.

        Relaxed: what other packages free in this thread meanwhile, by the garbage collector, may
        not break it.
        """
        relaxed = 2
        if not hasattr(self.library(), "cuGraphInstantiateWithFlags"):
            raise NotSupported("the driver has no graphs: it is older than CUDA 11.4")
        self._ask_library("cuStreamBeginCapture_v2", _pointer(stream), relaxed)

    def end_capture(self, stream: Handle) -> Handle:
        """End the capture that began on a stream; return an executable graph of the work."""
        graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
        self._ask_library("cuStreamEndCapture", _pointer(stream), ctypes.byref(graph))
        try:
            verb, flags = "cuGraphInstantiateWithFlags", ctypes.c_uint64(0)
            self._ask_library(verb, ctypes.byref(executable), graph, flags)
        finally:
            self._ask_library("cuGraphDestroy", graph)
        return executable

    def condition(self, stream: Handle) -> int:
        """Return a new condition of the graph that is captured on a stream; see `Context`."""
        version, context = ctypes.c_int(), ctypes.c_void_p()
        self._ask_library("cuDriverGetVersion", ctypes.byref(version))
        if version.value < CONDITIONAL_VERSION:
            raise NotSupported("the driver has no conditional nodes: it is older than CUDA 12.4")
        self._ask_library("cuCtxGetCurrent", ctypes.byref(context))
        condition, (graph, *_) = ctypes.c_uint64(), self._captured(stream)
        given = ctypes.byref(condition), graph, context, 0, 0
        self._ask_library("cuGraphConditionalHandleCreate", *given)
        return condition.value

    def conditional(self, stream: Handle, condition: int, repeats: bool) -> Handle:
        """Add a node that runs a body where a condition is set; see `Context`."""
        conditional_type, replaced, context = 13, 1, ctypes.c_void_p()
        self._ask_library("cuCtxGetCurrent", ctypes.byref(context))
        params = NodeParams(conditional_type, handle=condition, kind=repeats, size=1)
        params.context = context
        node, (graph, edges, count) = ctypes.c_void_p(), self._captured(stream)
        given = ctypes.byref(node), graph, edges, count, ctypes.byref(params)
        self._ask_library("cuGraphAddNode", *given)
        ends = _pointer(stream), ctypes.byref(node), ctypes.c_size_t(1), replaced
        self._ask_library("cuStreamUpdateCaptureDependencies", *ends)
        return ctypes.c_void_p(params.bodies[0])

    def begin_body(self, stream: Handle, body: Handle) -> None:
        """Begin to record what is queued on a stream into a body; see `Context`."""
        relaxed, nothing = 2, (None, None, ctypes.c_size_t(0))
        self._ask_library("cuStreamBeginCaptureToGraph", _pointer(stream), body, *nothing, relaxed)

    def end_body(self, stream: Handle) -> None:
        """End the capture of a body, which its node owns."""
        self._ask_library("cuStreamEndCapture", _pointer(stream), ctypes.byref(ctypes.c_void_p()))

    def _captured(self, stream: Handle) -> tuple[Any, Any, Any]:
        """Return the graph that a stream is captured into, and what its next node depends on."""
        status, number = ctypes.c_int(), ctypes.c_uint64()
        graph, edges, count = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
        found = (status, number, graph, edges, count)
        self._ask_library("cuStreamGetCaptureInfo_v2", _pointer(stream), *map(ctypes.byref, found))
        return graph, edges, count

    def launch_graph(self, graph: Handle, stream: Handle) -> None:
        """Queue a graph."""
        self._ask_library("cuGraphLaunch", graph, _pointer(stream))

    def destroy_graph(self, graph: Handle) -> None:
        """Destroy a graph that does not run."""
        self._ask_library("cuGraphExecDestroy", graph)

    def _ask_library(self, verb: str, *given: Any) -> None:
        with self._current():
            call_driver(self.library(), verb, *given)


def _pointer(stream: Handle) -> ctypes.c_void_p:
    """Return a stream as the driver library takes it."""
    return ctypes.c_void_p(int(stream.handle))
