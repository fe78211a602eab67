"""The driver through PyCUDA. Its objects belong to a context, which is current while they work."""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
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

_NON_BLOCKING = 1
"""A stream that does not wait for the default one; PyCUDA has no name for it."""


class PyCuda:
    """The driver through PyCUDA."""

    def __init__(self) -> None:
        import pycuda
        import pycuda.driver as api

        api.init()
        self.api = api
        self.name = f"PyCUDA {pycuda.VERSION_TEXT}"

    def version(self) -> tuple[int, int]:
        """Return the newest CUDA that the installed driver knows."""
        with translated(self.api):
            number = self.api.get_driver_version()
        return number // 1000, number % 1000 // 10

    def count(self) -> int:
        """Return how many devices there are."""
        with translated(self.api):
            return int(self.api.Device.count())

    def properties(self, device: int) -> Properties:
        """Return what is known of a device."""
        with translated(self.api):
            found, known = self.api.Device(device), self.api.device_attribute
            return Properties(
                found.name(),
                tuple(found.compute_capability()),
                found.get_attribute(known.MULTIPROCESSOR_COUNT),
                found.total_memory(),
                found.get_attribute(known.MAX_SHARED_MEMORY_PER_BLOCK),
                found.get_attribute(known.ASYNC_ENGINE_COUNT),
                found.get_attribute(known.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
            )

    def open(self, device: int) -> Context:
        """Return the device, in use from now on."""
        with translated(self.api):
            context = self.api.Device(device).retain_primary_context()
        return PyCudaContext(self.api, never_destroyed(context))


@contextmanager
def translated(api: Any) -> Iterator[None]:
    """Raise DriverError, or OutOfMemory, for what PyCUDA raises inside."""
    try:
        yield
    except api.MemoryError as why:
        raise OutOfMemory(str(why)) from None
    except api.Error as why:
        raise DriverError(str(why)) from None


def library() -> Any:
    """Return the library of the driver, which PyCUDA has loaded."""
    return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")


def chain(library: Any, first: int, then: int) -> None:
    """Let one stream wait for another, both by number: PyCUDA has none for those of others.

    Raises DriverError.
    """
    event, disable_timing = ctypes.c_void_p(), 2
    ask(library, "cuEventCreate", ctypes.byref(event), disable_timing)
    try:
        ask(library, "cuEventRecord", event, ctypes.c_void_p(first))
        ask(library, "cuStreamWaitEvent", ctypes.c_void_p(then), event, 0)
    finally:
        ask(library, "cuEventDestroy_v2", event)  # the driver keeps it until it is reached


def ask(library: Any, verb: str, *given: Any) -> None:
    """Call the driver's library itself; raises DriverError."""
    status = getattr(library, verb)(*given)
    if status:
        raise DriverError(f"{verb} failed with status {status}")


def packed(arguments: Sequence[int]) -> bytes:
    """Return 64-bit integers as a kernel takes them."""
    return struct.pack(f"{len(arguments)}q", *arguments)


def never_destroyed(context: Any) -> Any:
    """Return the context of a device, which is there until the process ends, as the device is.

    Its destructor asks the driver to destroy what other packages share; the driver refuses, and
    the user is told at the end of each process, forked ones among them.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(context))
    return context


class PyCudaContext:
    """A device through PyCUDA, whose objects belong to the context that is current."""

    def __init__(self, api: Any, context: Any, library: Callable[[], Any] = library) -> None:
        self.api = api
        self.context = context
        self.library = library
        self._memory: dict[int, Any] = {}
        """Allocations by address: PyCUDA frees what nobody holds."""

    @contextmanager
    def _current(self) -> Iterator[Any]:
        with translated(self.api):
            self.context.push()
            try:
                yield self.api
            finally:
                self.api.Context.pop()

    def allocate(self, size: int, stream: Handle) -> int:
        """Return the address of new memory; raises OutOfMemory."""
        with self._current() as api:
            made = api.mem_alloc(max(size, 1))
            self._memory[int(made)] = made
            return int(made)

    def free(self, address: int, stream: Handle) -> None:
        """Give memory back, which waits for the device: PyCUDA has no pools of the driver's."""
        with self._current():
            self._memory[address].free()
            del self._memory[address]  # last: it stays where that failed

    def free_memory(self) -> int:
        """Return how many bytes of the device nobody has."""
        with self._current() as api:
            return int(api.mem_get_info()[0])

    def where(self, address: int) -> int:
        """Return the number of the device that has the memory at an address."""
        found, device_ordinal = ctypes.c_int(), 9
        with self._current():
            place = ctypes.c_void_p(address)
            ask(self.library(), "cuPointerGetAttribute", ctypes.byref(found), device_ordinal, place)
        return found.value

    def pinned(self, size: int) -> Array:
        """Return bytes of the host that copies reach directly; raises OutOfMemory."""
        with self._current() as api:
            made: Array = api.pagelocked_empty(max(size, 1), np.uint8)
            return made

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

    def copy_from(self, other: Any, address: int, source: int, size: int, stream: Handle) -> None:
        """Queue a copy from another device by the library itself: PyCUDA takes both ends for this
        device, and its copies by way of the host are in the order of no stream of ours."""
        ends = ((address, self.context.handle), (source, other.context.handle))
        places = [
            one for place, context in ends
            for one in (ctypes.c_uint64(place), ctypes.c_void_p(context))
        ]  # fmt: skip
        queue = ctypes.c_void_p(int(stream.handle))
        with self._current():
            ask(self.library(), "cuMemcpyPeerAsync", *places, ctypes.c_size_t(size), queue)

    def clear(self, address: int, size: int, stream: Handle) -> None:
        """Queue the filling of memory with zeros."""
        if size:
            with self._current() as api:
                api.memset_d8_async(address, 0, size, stream)

    def stream(self) -> Handle:
        """Return a new stream."""
        with self._current() as api:
            return api.Stream(_NON_BLOCKING)

    def number(self, stream: Handle) -> int:
        """Return what other packages call a stream."""
        return int(stream.handle)

    def follow(self, stream: Handle, other: int) -> None:
        """Let a stream wait for what is queued so far on one that another package has."""
        with self._current():
            chain(self.library(), other, int(stream.handle))

    def lead(self, other: int, stream: Handle) -> None:
        """Let a stream that another package has wait for what is queued so far on one of ours."""
        with self._current():
            chain(self.library(), int(stream.handle), other)

    def finish(self) -> None:
        """Return when all that anybody has queued on the device is done."""
        with self._current() as api:
            api.Context.synchronize()

    def event(self) -> Handle:
        """Return a new event."""
        with self._current() as api:
            return api.Event(api.event_flags.DISABLE_TIMING)

    def record(self, event: Handle, stream: Handle) -> None:
        """Let an event stand for everything queued on a stream so far."""
        with self._current():
            event.record(stream)

    def wait(self, stream: Handle, event: Handle) -> None:
        """Let what is queued on a stream from now on start when an event is reached."""
        with self._current():
            stream.wait_for_event(event)

    def query(self, event: Handle) -> bool:
        """Whether an event is reached."""
        with self._current():
            return bool(event.query())

    def synchronize(self, event: Handle) -> None:
        """Return when an event is reached."""
        with self._current():
            event.synchronize()

    def load(self, code: bytes) -> Handle:
        """Return compiled code, loaded."""
        with self._current() as api:
            return api.module_from_buffer(code)

    def function(self, code: Handle, name: str, count: int, given: int = 0) -> Handle:
        """Return a kernel of loaded code, which takes that many arguments; see `Context`."""
        with self._current() as api:
            found = code.get_function(name)
            found.prepare("q" * count)
            if given:
                most = api.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
                found.set_attribute(most, given)
            return found

    def launch(
        self, function: Handle, grid: Shape, block: Shape, arguments: Sequence[int],
        stream: Handle, given: int = 0,
    ) -> None:  # fmt: skip
        """Queue a kernel, given its arguments as 64-bit integers, and to each block some bytes.

        By what `prepared_async_call` ends with, where there is that: before, it sets the shape of
        blocks of the function, by a verb that newer drivers keep for old programs only.
        """
        begin = getattr(function, "_launch_kernel", None)
        with self._current():
            if begin is None:
                function.prepared_async_call(grid, block, stream, *arguments, shared_size=given)
            else:
                begin(grid, block, packed(arguments), given, stream)

    def prepared(
        self, function: Handle, grid: Shape, block: Shape, arguments: Sequence[int],
        stream: Handle, given: int = 0,
    ) -> Callable[[], None]:  # fmt: skip
        """Return what queues a kernel as `launch` does, each time that it is called.

        The arguments are packed once.
        """
        begin = getattr(function, "_launch_kernel", None)
        if begin is None:
            return partial(self.launch, function, grid, block, tuple(arguments), stream, given)
        held = packed(arguments)
        push, pop, failed = self.context.push, self.api.Context.pop, self.api.Error

        def start() -> None:
            try:
                push()
                try:
                    begin(grid, block, held, given, stream)
                finally:
                    pop()
            except failed:
                with translated(self.api):
                    raise

        return start
