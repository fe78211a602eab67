"""Devices, their streams, and the contexts of a stream: which array holds which field there.

    Device > Stream > Context > Routine

A context sees the arrays of its parents. Linking a routine makes a child with the arrays that are
missing, by these rules, for a device and a field:

    only read here                  the device's shared array, made for it unless each stream has
                                    its own; on a device that uses host memory, the host's array
    written, shared already         this stream becomes the owner of the shared array, if no other
                                    stream is: CD0843 otherwise
    written, not shared             an array of its own, as every stream has from now on

A tensor made with `memory="on-device, per-stream"` has an array on every stream from the start; one
with `"on-device, shared-across-streams"` has one for all of them, also where it is written first.

The first device of the processor uses host memory: what its streams only read is never copied.
"""

from __future__ import annotations

import weakref
from dataclasses import field
from typing import Any

from ...base import settings
from ...base.dataclass import dataclass
from ...base.diagnostic import CdBackendError, CdValueError, Diagnostic
from ..interface import Array
from .argument_checks import expect_merge, field_of, named, other
from .field import Field, look
from .memory import Account, Buffer, HostMemory, memory_of
from .state import RUNTIME
from .transfer import Merging, load, merge_copy, merge_in_place, scheduling

MOST = 64
"""Devices of one CPU backend: they are as many as are asked for, up to this."""


@dataclass(eq=False)
class Shared:
    """An array that the streams of a device share, and the only stream that may write it."""

    buffer: Buffer
    owner: weakref.ref[Stream] | None = None


class Stream(Merging):
    """A queue of work on a device, in order, with one merge buffer."""

    def __init__(self, name: str, threaded: bool, device: Device) -> None:
        super().__init__(name, threaded, device.memory, device.account)
        self.device = device

    def context(self) -> Context:
        """Return a new context without arrays, to link routines into."""
        return Context(self)


class Context:
    """The arrays of a stream, those of the parents included. `finalize` frees its own, once."""

    def __init__(self, stream: Stream, parent: Context | None = None) -> None:
        self.stream = stream
        self.parent = parent
        self.finalized = False
        self.live = True
        """Whether neither it nor a parent was finalized."""
        self.notes: dict[object, Any] = {}
        """What routines leave for later ones: who writes a field first, how a function ran."""
        self._own: dict[Field, Buffer] = {}
        self._children: weakref.WeakSet[Context] = weakref.WeakSet()
        if parent is not None:
            parent._children.add(self)

    @property
    def device(self) -> Device:
        """The device of the stream."""
        return self.stream.device

    @property
    def fields(self) -> tuple[Field, ...]:
        """Every field that has an array here, the parents' first."""
        before = () if self.parent is None else self.parent.fields
        return (*before, *self._own)

    def find(self, field: Field) -> Buffer | None:
        """Return the array of a field here or in a parent, None where there is none."""
        found = self._own.get(field)
        if found is None and self.parent is not None:
            return self.parent.find(field)
        return found

    def note_of(self, about: object) -> Any:
        """Return what was noted of something, by what was linked here or before; None for none."""
        parent = None if self.parent is None else self.parent.note_of(about)
        return parent or self.notes.get(about)

    def array(self, field: Field) -> Buffer:
        """Return the array of a field; raises CdValueError CD0842 where there is none."""
        self.require_live()
        found = self.find(field)
        if found is None:
            known = ", ".join(one.label for one in self.fields) or "none"
            message = f"`{field.label}` has no array on {self.stream.name}"
            notes = (f"fields with arrays there: {known}",)
            helps = ("link a routine that uses it, or `context.from_host(field)`",)
            raise CdValueError(Diagnostic("CD0842", message, notes=notes, helps=helps))
        return found

    def adopt(self, field: Field, written: bool) -> Buffer:
        """Return the array of a field for a routine, made by the rules above where there is none.

        Raises CdValueError CD0843 for a shared array that a second stream would write.
        """
        found = self.find(field)
        shared = self.device.shared.get(field)
        if written:
            self.require_writable(field)
        if found is not None:
            if written and shared is not None and shared.buffer is found:
                shared.owner = weakref.ref(self.stream)
            return found
        first_written = written and shared is None and field.sharing != "shared across streams"
        if self.device.has_separate(field) or first_written:
            self.device.separate.add(field)
            buffer = self._made(field, shared=False)
        else:
            if shared is None:
                shared = self.device.shared[field] = Shared(self._made(field, shared=True))
            if written:
                shared.owner = weakref.ref(self.stream)
            buffer = shared.buffer
        self._own[field] = buffer
        return buffer

    def require_writable(self, field: Field) -> None:
        """Raise CdValueError CD0843 where a routine would be the second to write a shared array."""
        shared, found = self.device.shared.get(field), self.find(field)
        if shared is None or (found is not None and found is not shared.buffer):
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

    def _made(self, field: Field, shared: bool) -> Buffer:
        """Return a new array with the newest version; the host's own where it can be that."""
        newest = field.newest()
        if shared and self.device.uses_host_memory and newest is field.host:
            return field.host
        stream = self.stream
        buffer = field.host.another(self.device.account, f" on {stream.name}", make=stream.like)
        load(self.stream, newest, buffer)
        field.copies.add(buffer)
        return buffer

    def refresh(self, field: Field, buffer: Buffer) -> None:
        """Queue a copy of the host's version into an array where the host wrote after it."""
        if field.host_tick > buffer.tick and settings.current().automatic_host_transfers:
            load(self.stream, field.host, buffer)

    def from_host(self, field: Any) -> None:
        """Copy the host's version into this context's array, made where there is none."""
        field = field_of(field)
        self.require_live()
        with scheduling(self.stream):
            buffer = self.find(field)
            if buffer is None:
                buffer = self.adopt(field, written=field not in self.device.shared)
            load(self.stream, field.host, buffer)
            field.keep_newest()

    def to_host(self, field: Any) -> None:
        """Copy this context's version to the host, and so to routines whose arrays are older.

        Raises CdValueError CD0842 where the context has no array of the field.
        """
        field = field_of(field)
        with scheduling(self.stream):
            buffer = self.array(field)
            self.refresh(field, buffer)
            load(self.stream, buffer, field.host)
            field.host_tick = field.host.tick

    def numpy(self, field: Any) -> Array:
        """Return a read-only snapshot of this context's version, when it has been computed."""
        field = field_of(field)

        def chosen() -> Buffer:
            buffer = self.array(field)
            if field.host_tick > buffer.tick and settings.current().automatic_host_transfers:
                return held.host  # what a routine would read; loading it is not for a look
            return buffer

        held: Field = field
        return look(chosen)

    def copy_from(self, source: Context, field: Any) -> None:
        """Copy another context's version into this context's array; the host does not wait.

        Raises CdValueError CD0842 where either has no array of the field.
        """
        field = field_of(field)
        if not isinstance(source, Context):
            raise other("context", source, "give the context of a routine: `routine.context`")
        with scheduling(source.stream, self.stream):
            there, here = source.array(field), self.array(field)
            source.refresh(field, there)
            load(self.stream, there, here)
            field.keep_newest()

    def merge_into(self, consumer: Any, field: Any, mode: str = "copy") -> None:
        """Fill the merge buffer of a routine's stream with this context's version of a field.

        `copy` takes a copy, for any number of calls; `streaming` is for one call, which reads
        this array in place: what writes it before the call has a copy taken first, what writes
        it after the call waits for its end. Where it cannot be read in place it is copied.
        Raises CdValueError CD0844 where the routine merges another field, or none.
        """
        field = field_of(field)
        if mode not in ("copy", "streaming"):
            helps = ('use "copy" or "streaming"',)
            raise CdValueError(Diagnostic("CD0846", f"a merge is no {mode!r}", helps=helps))
        expect_merge(consumer, field)
        consumer.context.require_live()
        with scheduling(self.stream, consumer.context.stream):
            self.fill(consumer, field, mode == "streaming")

    def fill(self, consumer: Any, field: Field, streaming: bool) -> None:
        """Queue what `merge_into` does; who calls this holds the lock of scheduling."""
        stream: Stream = consumer.context.stream
        there = self.array(field)
        self.refresh(field, there)
        if streaming and self._can_stream(consumer, there):
            merge_in_place(stream, field, there)
        else:
            merge_copy(stream, field, there, once=streaming)

    def _can_stream(self, consumer: Any, there: Buffer) -> bool:
        """Whether a routine may read an array in place: on its device, and not writing it."""
        return consumer.context.device is self.device and there not in consumer.written

    def finalize(self) -> None:
        """Free the arrays that the parents do not have, when the stream is done; once."""
        with scheduling(self.stream):
            if self.finalized:
                return
            self.finalized = True
            self._end()
            for field, buffer in self._own.items():
                if not self._is_shared(field, buffer):
                    field.rescue(self.stream, buffer)
        try:
            self.stream.synchronize()
        finally:
            self._own.clear()

    def _end(self) -> None:
        self.live = False
        for child in list(self._children):
            child._end()

    def require_live(self) -> None:
        """Raise CdBackendError CD0845 where the context, or a parent, was finalized."""
        if not self.live:
            message = f"this context of {self.stream.name} was finalized"
            helps = ("link the routine again, in a context that is alive",)
            raise CdBackendError(Diagnostic("CD0845", message, helps=helps))

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *_: object) -> None:
        self.finalize()

    def __repr__(self) -> str:
        held = ", ".join(field.label for field in self.fields)
        return f"<context of {self.stream.name}: {held}>"


@dataclass(eq=False)
class Device:
    """A place with memory of its own, where streams run. `pe.device("cc:1")` gives it."""

    backend: str
    ordinal: int
    memory: Any
    """Where its arrays stay; see `HostMemory`."""
    account: Account = field(default_factory=Account)
    shared: weakref.WeakKeyDictionary[Field, Shared] = field(
        default_factory=weakref.WeakKeyDictionary
    )
    separate: weakref.WeakSet[Field] = field(default_factory=weakref.WeakSet)
    """Fields of which each stream has an array of its own."""
    streams: weakref.WeakSet[Stream] = field(default_factory=weakref.WeakSet)
    made: int = 0

    @property
    def name(self) -> str:
        """The name it is asked for by: `cc:0`."""
        return f"{self.backend}:{self.ordinal}"

    @property
    def code(self) -> str:
        """The name of the backend that makes its code, with a number where devices differ."""
        return self.backend if isinstance(self.memory, HostMemory) else self.name

    def has_separate(self, field: Field) -> bool:
        """Whether each stream has an array of its own, because that was asked for or by now."""
        return field in self.separate or field.sharing == "per stream"

    @property
    def uses_host_memory(self) -> bool:
        """Whether arrays that are only read here are the host's own."""
        return isinstance(self.memory, HostMemory) and not self.memory.is_own

    @property
    def used_memory(self) -> int:
        """Bytes in arrays of this device that are alive."""
        return self.account.used

    @property
    def kept_memory(self) -> int:
        """Bytes of this device that no array has, and that are kept for later ones."""
        return int(self.memory.kept)

    def trim(self) -> int:
        """Give what is kept for later back, for other programs; return how many bytes it was."""
        return int(self.memory.trim())

    @property
    def suggested_streams(self) -> int:
        """How many streams are likely to be of use."""
        return int(self.memory.suggested_streams)

    @property
    def properties(self) -> dict[str, object]:
        """What is known of the device, for people."""
        return dict(self.memory.properties)

    def stream(self, threaded: bool = True) -> Stream:
        """Return a new stream: with a thread of its own, or run by the caller at once."""
        with RUNTIME.scheduling:
            stream = Stream(f"{self.name}/s{self.made}", threaded, self)
            self.made += 1
            self.streams.add(stream)
            RUNTIME.workers.add(stream.worker)
        return stream

    def synchronize(self) -> None:
        """Return when the work of all streams is done; raises what failed, the first of it."""
        failures = []
        for stream in list(self.streams):
            try:
                stream.synchronize()
            except BaseException as error:  # the others are waited for all the same
                failures.append(error)
        if failures:
            raise failures[0]

    def __repr__(self) -> str:
        return f"<device {self.name}>"


def device(name: str = "") -> Device:
    """Return the device of a name like `cc` or `cc:1`, the same every time.

    Without a name that of the settings. Raises CdBackendError CD0801 where the backend is none,
    what says why it cannot run here, CdValueError CD0840 for a number that no device has, and
    CdTypeError CD0852 for what is no name.
    """
    backend, _, number = (named(name) or settings.current().backend).partition(":")
    made_by = RUNTIME.backend(backend)
    if number and not (number.isascii() and number.isdecimal() and int(number) < MOST):
        raise CdValueError(
            Diagnostic(
                "CD0840", f"there is no device `{name}`: `{number}` is none of 0 to {MOST - 1}",
                helps=(f'the first one is `pe.device("{backend}:0")`',),
            )
        )  # fmt: skip
    ordinal = int(number or 0)
    memory = memory_of(made_by, backend, ordinal)
    with RUNTIME.scheduling:
        found = RUNTIME.devices.get((backend, ordinal))
        if found is None:
            found = RUNTIME.devices[backend, ordinal] = Device(backend, ordinal, memory)
        return found
