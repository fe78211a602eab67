"""Devices, streams and contexts: the placement of fields in physical arrays.

    Device > Stream > Context > Routine

A context inherits the arrays of its parents. Linking a routine creates a child context with the
missing arrays, by these rules, for a device and a field:

    read-only here                  the array shared by the device's streams, unless the field has
                                    one per stream; on a device that uses host memory, the host's
    written, already shared         this stream becomes the owner of the shared array, if no other
                                    stream is: CD0843 otherwise
    written, not shared             a private array per stream, on all streams from now on: of each
                                    context that inherits none

A tensor with `memory="on-device, per-stream"` has a private array on every stream from the start;
one with `"on-device, shared-across-streams"` has one shared array, even if it is first written.

The first CPU device uses host memory: fields that its streams only read are never copied.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import field
from typing import Any

from ...base import settings
from ...base.dataclass import dataclass
from ...base.diagnostic import CdBackendError, CdValueError, Diagnostic
from ..interface import Array
from . import hazards
from .argument_checks import device_name, expect_merge, field_of, wrong_argument
from .field import Field, read_snapshot, unseen
from .foreign_access import array_access
from .memory import Buffer, HostMemory, MemoryAccount, memory_of
from .queue import Event, Worker
from .state import RUNTIME
from .transfer import MergeQueue, decide, merge_copy, merge_in_place, queue_copy

MAX_CPU_DEVICES = 64
"""The number of devices of a CPU backend, created on demand."""


@dataclass(eq=False)
class SharedArray:
    """An array shared by the streams of a device, and its owner: the stream that may write it."""

    buffer: Buffer
    owner: weakref.ref[Stream] | None = None


class Stream(MergeQueue):
    """An in-order queue of work on a device, with one merge buffer."""

    def __init__(self, name: str, threaded: bool, device: Device) -> None:
        super().__init__(name, threaded, device.memory, device.account)
        self.device = device

    def context(self) -> Context:
        """Return a new context without arrays, to link routines into."""
        return Context(self)


class Context:
    """A scope of arrays on a stream, which inherits its parents'. `finalize` frees its own."""

    def __init__(self, stream: Stream, parent: Context | None = None) -> None:
        self.stream = stream
        self.parent = parent
        self.finalized = False
        self.live = True
        """Whether neither it nor a parent was finalized."""
        self.notes: dict[object, Any] = {}
        """Facts for routines linked later: the first writer of a field, versions that were read."""
        self._arrays: dict[Field, Buffer] = {}
        self._runs: list[Event] = []
        """The runs of plans that use it, but for some that have ended."""
        self.routines: weakref.WeakSet[Any] = weakref.WeakSet()
        """The routines that were linked into it, and let go of its arrays when it ends."""
        self._children: weakref.WeakSet[Context] = weakref.WeakSet()
        if parent is not None:
            parent._children.add(self)

    @property
    def device(self) -> Device:
        """The device of the stream."""
        return self.stream.device

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields that have an array here, the parents' first."""
        inherited = () if self.parent is None else self.parent.fields
        return (*inherited, *self._arrays)

    def find(self, field: Field) -> Buffer | None:
        """Return the array of a field here or in a parent, None where there is none."""
        buffer = self._arrays.get(field)
        if buffer is None and self.parent is not None:
            return self.parent.find(field)
        return buffer

    def find_note(self, about: object) -> Any:
        """Return the note with a key, of this context or a parent; None where there is none."""
        parent = None if self.parent is None else self.parent.find_note(about)
        return parent or self.notes.get(about)

    def array(self, field: Field) -> Buffer:
        """Return the array of a field; raises CdValueError CD0842 where there is none."""
        self.require_live()
        buffer = self.find(field)
        if buffer is None:
            labels = ", ".join(held_field.label for held_field in self.fields) or "none"
            message = f"`{field.label}` has no array on {self.stream.name}"
            notes = (f"fields with arrays there: {labels}",)
            helps = ("link a routine that uses it, or `context.from_host(field)`",)
            raise CdValueError(Diagnostic("CD0842", message, notes=notes, helps=helps))
        return buffer

    def adopt(self, field: Field, written: bool) -> Buffer:
        """Return the array of a field for a routine, allocated by the rules above if needed.

        Raises CdValueError CD0843 for a shared array that a second stream would write.
        """
        existing = self.find(field)
        shared = self.device.shared.get(field)
        if written:
            self.require_writable(field)
        if existing is not None:
            if written and shared is not None and shared.buffer is existing:
                shared.owner = weakref.ref(self.stream)
            return existing
        first_written = written and shared is None and field.sharing != "shared across streams"
        if self.device.is_private(field) or first_written:
            self.device.separate.add(field)
            buffer = self._allocate(field, shared=False)
        else:
            if shared is None:
                shared = self.device.shared[field] = SharedArray(self._allocate(field, shared=True))
            if written:
                shared.owner = weakref.ref(self.stream)
            buffer = shared.buffer
        self._arrays[field] = buffer
        return buffer

    def require_writable(self, field: Field) -> None:
        """Raise CdValueError CD0843 where another stream owns the shared array of a field."""
        shared, existing = self.device.shared.get(field), self.find(field)
        if shared is None or (existing is not None and existing is not shared.buffer):
            return
        owner = None if shared.owner is None else shared.owner()
        if owner is not None and owner is not self.stream:
            raise CdValueError(
                Diagnostic(
                    "CD0843",
                    f"`{field.label}` is shared by the streams of {self.device.name} and written "
                    f"by {owner.name}, and now {self.stream.name} would write it as well",
                    helps=(
                        "link what writes it before what only reads it, so that each stream has "
                        "an array of its own, or write it on one stream only",
                    ),
                )
            )

    def _is_shared(self, field: Field, buffer: Buffer) -> bool:
        return field in self.device.shared and self.device.shared[field].buffer is buffer

    def _allocate(self, field: Field, shared: bool) -> Buffer:
        """Return a new array with the newest version, or the host's array where that suffices."""
        newest = field.newest()
        if shared and self.device.uses_host_memory and newest is field.host:
            return field.host
        stream = self.stream
        buffer = field.host.allocate_like(
            self.device.account, f" on {stream.name}", make=stream.like
        )
        queue_copy(self.stream, newest, buffer)
        field.copies.add(buffer)
        return buffer

    def refresh(self, field: Field, buffer: Buffer) -> None:
        """Queue a copy of the host's version into an array where the host's is newer."""
        if field.host_tick > buffer.tick and settings.current().automatic_host_transfers:
            queue_copy(self.stream, field.host, buffer)

    def from_host(self, field: Any) -> None:
        """Copy the host's version into this context's array, allocated if needed."""
        field = _seen(field)
        self.require_live()

        def decision() -> None:
            buffer = self.find(field)
            if buffer is None:
                buffer = self.adopt(field, written=field not in self.device.shared)
            if recorder := RUNTIME.planned():
                recorder.copy(field, (field.host, buffer), None, self)
                return
            queue_copy(self.stream, field.host, buffer)
            field.keep_newest()

        decide(decision, self.stream)

    def to_host(self, field: Any) -> None:
        """Copy this context's version to the host, which routines with older arrays then load.

        Raises CdValueError CD0842 where the context has no array of the field.
        """
        field = _seen(field)

        def decision() -> None:
            buffer = self.array(field)
            if recorder := RUNTIME.planned():
                recorder.copy(field, (buffer, field.host), self, None)
                return
            self.refresh(field, buffer)
            queue_copy(self.stream, buffer, field.host)
            field.host_tick = field.host.tick

        decide(decision, self.stream)

    def numpy(self, field: Any) -> Array:
        """Return a read-only snapshot of this context's version; waits until it is computed."""
        field = _seen(field)

        def choose() -> Buffer:
            buffer = self.array(field)
            if field.host_tick > buffer.tick and settings.current().automatic_host_transfers:
                return held_field.host  # the version a routine would load; a read loads nothing
            return buffer

        held_field: Field = field
        if recorder := RUNTIME.planned():
            recorder.touch(held_field.label)
        return read_snapshot(choose)

    def device_pointer(self, field: Any, mode: str = "r") -> AbstractContextManager[Any]:
        """Return a context manager of this context's array of a field, for code of other packages.

        Inside of the `with` it is a NumPy array on a CPU device, and a `LentArray` on others, whose
        `stream` is the one to work on. `"r"` reads it, `"w"` writes all of it, so that what was
        there is not needed, and `"rw"` does both. It is one step of the order of all routines: it
        begins when what it depends on is done, and what depends on it waits for its end. A write is
        a new version, as that of a routine is, also where the code raises.

        Raises CdValueError CD0839 for another mode, CD0842 where there is no array here and CD0843
        where another stream writes what they share, CdTypeError CD0804 for a constant and CD0862
        while a plan is recorded, CdBackendError CD0845 after `finalize` and CD0877 where the thread
        would wait for itself; and the error of the step that was to compute it.
        """
        return array_access(self, _seen(field), mode)

    def copy_from(self, source: Context, field: Any) -> None:
        """Copy another context's version into this context's array, asynchronously.

        Raises CdValueError CD0842 where either has no array of the field.
        """
        field = _seen(field)
        if not isinstance(source, Context):
            raise wrong_argument(
                "context", source, "give the context of a routine: `routine.context`"
            )

        def decision() -> None:
            source_buffer, buffer = source.array(field), self.array(field)
            if recorder := RUNTIME.planned():
                recorder.copy(field, (source_buffer, buffer), source, self)
                return
            source.refresh(field, source_buffer)
            queue_copy(self.stream, source_buffer, buffer)
            field.keep_newest()

        decide(decision, source.stream, self.stream)

    def merge_into(self, consumer: Any, field: Any, mode: str = "copy") -> None:
        """Fill the merge buffer of a routine's stream with this context's version of a field.

        `copy` takes a copy, valid for any number of calls; `streaming` is valid for one call, which
        reads this array in place: a write before the call takes a copy first, a write after the
        call waits for its end. Where it cannot be read in place it is copied. Raises CdValueError
        CD0844 where the routine merges another field, or none.
        """
        field = field_of(field)
        if mode not in ("copy", "streaming"):
            helps = ('use "copy" or "streaming"',)
            raise CdValueError(Diagnostic("CD0846", f"a merge is no {mode!r}", helps=helps))
        expect_merge(consumer, field)
        consumer.context.require_live()
        if recorder := RUNTIME.planned():
            recorder.merge(consumer, field, self, once=mode == "streaming")
            return
        field = _seen(field)
        streaming = mode == "streaming"
        decide(lambda: self.fill(consumer, field, streaming), self.stream, consumer.context.stream)

    def fill(self, consumer: Any, field: Field, streaming: bool) -> None:
        """Queue the fill of `merge_into`. Precondition: the scheduling lock is held."""
        stream: Stream = consumer.context.stream
        source = self.array(field)
        self.refresh(field, source)
        if streaming and self._can_stream(consumer, source):
            merge_in_place(stream, field, source)
        else:
            merge_copy(stream, field, source, once=streaming)

    def _can_stream(self, consumer: Any, source: Buffer) -> bool:
        """Whether a routine may read an array in place: it is on its device, and not written."""
        return consumer.context.device is self.device and source not in consumer.written

    def finalize(self) -> None:
        """Wait for the stream and free the arrays of this context, not its parents'; idempotent.

        Runs of plans that use it are waited for. Routines that were linked into it let go of them,
        and are not called any more. Raises CdBackendError CD0877 where the thread would wait for
        itself.
        """
        runs: list[Event] = []
        if recorder := RUNTIME.planned():
            recorder.touch("a context")

        def decision() -> bool:
            if self.finalized:
                return False
            runs[:] = self._runs_in_flight()
            writers = hazards.dependences_of(self.stream, tuple(self._arrays.values()), ())
            hazards.require_progress(RUNTIME.holds, (*writers, *runs))
            self.finalized = True
            self._end()
            for held_field, buffer in self._arrays.items():
                if not self._is_shared(held_field, buffer):
                    held_field.preserve(self.stream, buffer)
            return True

        if not decide(decision, self.stream):
            return
        for run in runs:  # before anything is let go of, also where this is interrupted
            run.settle()  # a failure is raised where the run is waited for
        try:
            self.stream.synchronize()
        finally:
            self._arrays.clear()
            self._release()

    def note_run(self, run: Event) -> None:
        """Record a run of a plan that uses it. Precondition: the scheduling lock is held."""
        self._runs = [*(event for event in self._runs if not event.done), run]

    def _runs_in_flight(self) -> Iterator[Event]:
        yield from (run for run in self._runs if not run.done)
        for child in list(self._children):
            yield from child._runs_in_flight()

    def _end(self) -> None:
        self.live = False
        for child in list(self._children):
            child._end()

    def _release(self) -> None:
        """Let routines of this context, and of those in it, let go of their arrays."""
        for routine in list(self.routines):
            routine.release()
        for child in list(self._children):
            child._release()

    def require_live(self, routine: str = "") -> None:
        """Raise CdBackendError CD0845 where the context, or a parent, was finalized.

        The message names the routine, if one is called.
        """
        if not self.live:
            what = f"`{routine}` was linked into a" if routine else "this"
            that = " that" if routine else ""
            message = f"{what} context of {self.stream.name}{that} was finalized"
            helps = ("link the routine again, in a context that is alive",)
            raise CdBackendError(Diagnostic("CD0845", message, helps=helps))

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *_: object) -> None:
        self.finalize()

    def __repr__(self) -> str:
        labels = ", ".join(field.label for field in self.fields)
        return f"<context of {self.stream.name}: {labels}>"


def _seen(given: Any) -> Field:
    """Return the field of what was given; raises CdTypeError CD0876 where only a plan sees it."""
    field = field_of(given)
    if field.owner is not None:
        raise unseen(field.label, field.owner)
    return field


class HostContext(Context):
    """A context whose arrays are the host's: what is linked into it computes as plain calls do."""

    def find(self, field: Field) -> Buffer:
        """Return the host's array of a field."""
        return field.host

    def adopt(self, field: Field, written: bool) -> Buffer:
        """Return the host's array of a field."""
        return field.host

    def require_writable(self, field: Field) -> None:
        """Do nothing: the host may write what streams share."""


@dataclass(eq=False)
class Device:
    """A device with a memory, on which streams run. `pe.device("cc:1")` returns it."""

    backend: str
    ordinal: int
    memory: Any
    """The memory of its arrays; see `HostMemory`."""
    account: MemoryAccount = field(default_factory=MemoryAccount)
    shared: weakref.WeakKeyDictionary[Field, SharedArray] = field(
        default_factory=weakref.WeakKeyDictionary
    )
    separate: weakref.WeakSet[Field] = field(default_factory=weakref.WeakSet)
    """Fields with a private array per stream."""
    streams: weakref.WeakSet[Stream] = field(default_factory=weakref.WeakSet)
    workers: weakref.WeakSet[Worker] = field(default_factory=weakref.WeakSet)
    """Those of all streams, also of streams that were collected before their work ended."""
    stream_count: int = 0

    @property
    def name(self) -> str:
        """Its name: `cc:0`."""
        return f"{self.backend}:{self.ordinal}"

    @property
    def code(self) -> str:
        """The name of the backend for its code, with a number where devices differ."""
        return self.backend if isinstance(self.memory, HostMemory) else self.name

    def is_private(self, field: Field) -> bool:
        """Whether a field has a private array per stream, by request or by now."""
        return field in self.separate or field.sharing == "per stream"

    @property
    def uses_host_memory(self) -> bool:
        """Whether read-only arrays are the host's."""
        return isinstance(self.memory, HostMemory) and not self.memory.is_separate

    @property
    def used_memory(self) -> int:
        """The bytes of live arrays of this device."""
        return self.account.used

    @property
    def kept_memory(self) -> int:
        """The bytes of this device in the pool for later arrays."""
        return int(self.memory.pooled_bytes)

    def trim(self) -> int:
        """Release the pool to the system; return how many bytes it was."""
        return int(self.memory.trim())

    @property
    def suggested_streams(self) -> int:
        """The recommended number of streams."""
        return int(self.memory.suggested_streams)

    @property
    def properties(self) -> dict[str, object]:
        """Properties of the device, for display."""
        return dict(self.memory.properties)

    def stream(self, threaded: bool = True) -> Stream:
        """Return a new stream: with a thread of its own, or inline, run by the caller."""
        with RUNTIME.scheduling.lock:
            stream = Stream(f"{self.name}/s{self.stream_count}", threaded, self)
            self.stream_count += 1
            self.streams.add(stream)
            stream.worker.holds = RUNTIME.holds
            self.workers.add(stream.worker)
            RUNTIME.workers.add(stream.worker)
        return stream

    def synchronize(self) -> None:
        """Wait until the work of all streams is done; raises the first failure."""
        failures = []
        for worker in list(self.workers):  # also of streams that nobody refers to any more
            try:
                worker.synchronize()
            except BaseException as error:  # wait for the others nevertheless
                failures.append(error)
        if failures:
            raise failures[0]

    def __repr__(self) -> str:
        return f"<device {self.name}>"


def device(name: str = "") -> Device:
    """Return the device of a name like `cc` or `cc:1`, always the same instance.

    Without a name, the device of the settings. Raises CdBackendError CD0801 for an unknown backend,
    the backend's error where it cannot run here, CdValueError CD0840 for a number that no device
    has, and CdTypeError CD0852 where `name` is no string.
    """
    backend, _, number = (device_name(name) or settings.current().backend).partition(":")
    provider = RUNTIME.backend(backend)
    if number and not (number.isascii() and number.isdecimal() and int(number) < MAX_CPU_DEVICES):
        raise CdValueError(
            Diagnostic(
                "CD0840",
                f"there is no device `{name}`: `{number}` is none of 0 to {MAX_CPU_DEVICES - 1}",
                helps=(f'the first one is `pe.device("{backend}:0")`',),
            )
        )  # fmt: skip
    ordinal = int(number or 0)
    memory = memory_of(provider, backend, ordinal)
    with RUNTIME.scheduling.lock:
        instance = RUNTIME.devices.get((backend, ordinal))
        if instance is None:
            instance = RUNTIME.devices[backend, ordinal] = Device(backend, ordinal, memory)
        return instance
