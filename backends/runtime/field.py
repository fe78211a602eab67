"""Tensor fields: versions on the host and on devices, ordered by a logical clock.

Every write increments the field's clock, and the written array holds that version:

    clock        the newest version
    host_tick    the version of the last host write
    buffer.tick  the version that a physical array holds

A routine copies the host's array into its array exactly when `host_tick > buffer.tick`. A read on
the host copies from the newest array and updates no array, so that it has no effect on what later
routines compute.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...base import settings
from ...base.diagnostic import CdTypeError, Diagnostic
from ...lowering.ir.dtypes import DType
from ...lowering.ir.memory_mode import Sharing
from ..device_arrays.copies import copy, snapshot
from ..device_arrays.device_array import CPU
from ..interface import Array
from . import hazards
from .host_writes import (
    NoInPlaceOperators,
    Snapshot,
    convert_for_store,
    copy_false_error,
    read_tensors_in_index,
    require_exportable,
)
from .memory import Buffer, memory_guard
from .queue import Queue, is_reported
from .state import RUNTIME


class Field(NoInPlaceOperators):
    """One array of a tensor, as the host sees it: `p.grad`.

    Read it by `numpy()`, `np.asarray` or an index: an immutable snapshot of the newest version.
    Write it by `p.grad[...] = v` or `with p.grad.edit() as a:`.
    """

    __slots__ = (
        "__weakref__", "clock", "constant", "copies", "dtype", "host", "host_tick", "is_given",
        "label", "latest", "name", "owner", "tensor",
    )  # fmt: skip

    _SHOWN = ("constant", "dtype", "edit", "label", "name", "numpy", "shape", "tensor")

    def __init__(self, label: str, name: str, value: Array, dtype: DType, constant: bool) -> None:
        self.label = label if name == "value" else f"{label}.{name}"
        self.name = name
        self.tensor: Any = None
        """Its tensor, which sets this."""
        self.owner: object = None
        """The plan that alone sees it, if any."""
        self.dtype = dtype
        self.constant = constant
        self.host = Buffer(self.label, value, None)
        self.clock = self.host_tick = 0
        self.is_given = False
        """Whether it has an initial value; zeros otherwise."""
        self.copies: weakref.WeakSet[Buffer] = weakref.WeakSet()
        self.latest = self.host
        """The array with the newest version, kept alive beyond its context."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of every version."""
        return self.host.array.shape

    @property
    def is_blank(self) -> bool:
        """Whether neither the host nor a routine has given it a value so far."""
        return self.clock == 0 and not self.is_given

    @property
    def sharing(self) -> Sharing:
        """The requested sharing: one array for all streams of a device, or one per stream."""
        request = None if self.tensor is None else self.tensor.request
        return "unset" if request is None else request.mode.sharing

    def newest(self) -> Buffer:
        """Return the physical array with the newest version, preferably the host's."""
        if self.latest.tick == self.host.tick:
            return self.host
        newest = self._other_than(self.latest)
        if settings.current().automatic_host_transfers and self.latest.tick > newest.tick:
            newest = self.latest  # in a reference cycle its finalizer may have left `copies`
        return newest

    def _other_than(self, excluded: Buffer) -> Buffer:
        """Return the array with the newest version except one, preferably the host's."""
        newest = self.host
        if settings.current().automatic_host_transfers:
            for buffer in self.copies:
                if buffer is not excluded and buffer.tick > newest.tick:
                    newest = buffer
        return newest

    def numpy(self) -> Array:
        """Return a read-only snapshot of the newest version; waits until it has been computed.

        Raises the error of the routine that was to compute it.
        """
        self._touch()
        return read_snapshot(self.newest)

    def record_write(self, buffer: Buffer) -> None:
        """Record a write of a physical array: it holds a new version."""
        self.clock += 1
        buffer.tick = self.clock
        self.latest = buffer

    def preserve(self, queue: Queue, buffer: Buffer) -> None:
        """Preserve the version in an array that is about to be freed, if it is the newest.

        It is copied to a separate host array, as routines may read the host's array in place: the
        end of a context has no effect on what another one computes.
        """
        newest = self.newest()
        self.copies.discard(buffer)
        if newest.tick == buffer.tick > self._other_than(buffer).tick:
            copied_buffer = self.host.allocate_like(None, tick=buffer.tick)
            source, target = buffer.array, copied_buffer.array
            name = f"copy {self.label}"
            run = RUNTIME.timed(name, "copy", queue.name, lambda: copy(target, source, name))
            hazards.enqueue(queue, run, (buffer,), (copied_buffer,))
            self.copies.add(copied_buffer)
        self.keep_newest()

    def keep_newest(self) -> None:
        """Keep a reference to the array with the newest version."""
        self.latest = max((self.host, *self.copies), key=lambda buffer: buffer.tick)

    def record_host_write(self) -> None:
        """Record a host write of the host's array."""
        with RUNTIME.scheduling.lock:
            RUNTIME.scheduling.decisions += 1
            self.record_write(self.host)
            self.host_tick = self.clock

    def _touch(self) -> None:
        """Say that the host reads or writes it now, where a plan takes what this thread does."""
        if recorder := RUNTIME.planned():
            recorder.touch(self.label)
        if self.owner is not None:
            raise unseen(self.label, self.owner)

    def ready(self, writing: bool) -> Array | None:
        """Return the host's array where it has the newest version and is not in use, else None.

        It never waits, and reports no failures.
        """
        self._touch()
        host = self.host
        with RUNTIME.scheduling.lock:  # no decision: it only reads
            return host.array if self.newest() is host and _is_idle(host, writing) else None

    def shown(self, writing: bool) -> Array:
        """Return an array with the newest version for synchronous use by the host.

        For writing it is the host's array, brought up to date; for reading it may be a copy.
        """
        ready = self.ready(writing)
        if ready is not None:
            return ready
        if not writing:
            return self.numpy()
        newest = host = self.host

        def step() -> None:
            if newest is not host:
                copy(host.array, newest.array)

        def touched() -> Accesses:
            nonlocal newest
            newest = self.newest()
            return (newest,), (host,)

        def record() -> None:
            host.tick = newest.tick

        run_on_host(step, touched, record)
        return host.array

    @contextmanager
    def edit(self) -> Iterator[Array]:
        """Yield the array to be written in place; raises CdTypeError CD0804 for a constant.

        It is read-only afterwards, as a later write would make no new version. This cannot be
        enforced for views of it, which must not be written after the `with`.
        """
        self.require_writable()
        array = self.shown(writing=True).view()
        try:
            yield array
        finally:
            array.flags.writeable = False
            self.record_host_write()

    def __setitem__(self, index: Any, value: Any) -> None:
        self.require_writable()
        self._touch()
        value, index = (
            convert_for_store(value, self.dtype, self.label),
            read_tensors_in_index(index),
        )
        newest = host = self.host

        def step() -> None:
            if newest is not host:
                copy(host.array, newest.array)
            host.array[index] = value

        def touched() -> Accesses:
            nonlocal newest
            newest = self.newest()
            return (newest,), (host,)

        run_on_host(step, touched, self.record_host_write)

    def __getitem__(self, index: Any) -> Any:
        selection = self.numpy()[index]
        is_shown = isinstance(selection, np.ndarray) and not selection.flags.writeable
        return selection.view(Snapshot) if is_shown else selection

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise copy_false_error(self.label)
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the device of what `__dlpack__` exports: host memory, `(1, 0)`."""
        return CPU, 0

    def __dlpack__(
        self, *, stream: Any = None, max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None, copy: bool | None = None,
    ) -> Any:  # fmt: skip
        """Return a DLPack capsule of the newest version, in host memory; waits for it.

        It is a read-only snapshot. A consumer from before DLPack 1.0, which knows no such flag, and
        one that asks for a copy, get a writable copy of their own. Raises BufferError for another
        device, for `copy=False` and for bfloat16; and what `numpy()` raises.
        """
        require_exportable(self.label, self.dtype, dl_device, copy)
        has_flags = max_version is not None and max_version[0] >= 1
        is_copied = True if copy or not has_flags else None
        return self.numpy().__dlpack__(stream=stream, max_version=max_version, copy=is_copied)

    def __len__(self) -> int:
        return len(self.host.array)

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (self.tensor, self.name)  # a copy is a field of a copy of its tensor

    def __repr__(self) -> str:
        sizes = ", ".join(map(str, self.shape))
        return f"field {self.label}: {self.dtype.short}[{sizes}]"

    def require_writable(self) -> None:
        """Raise CdTypeError CD0804 where the tensor is constant."""
        if self.constant:
            label = self.label.partition(".")[0]
            raise CdTypeError(
                Diagnostic(
                    "CD0804", f"tensor `{label}` is constant and cannot be written",
                    helps=("make it without `constant=True`",),
                )
            )  # fmt: skip


def unseen(what: str, plan: object) -> CdTypeError:
    """Return the error CD0876: what only a plan sees is used outside of it."""
    name = getattr(plan, "name", "plan")
    return CdTypeError(
        Diagnostic(
            "CD0876", f"`{what}` is used outside of `{name}`, the plan that alone sees it",
            helps=("make it with `pe.tensor`, or write what is wanted into a tensor of that kind",),
        )
    )  # fmt: skip


def _is_idle(buffer: Buffer, writing: bool) -> bool:
    """Whether the host may use an array without waiting."""
    if not is_reported(buffer.writer):
        return False
    return not writing or not buffer.lent and all(map(is_reported, buffer.readers.values()))


Accesses = tuple[Sequence[Buffer], Sequence[Buffer]]
"""The arrays that a step reads, and those that it writes."""


def run_on_host(
    run: Callable[[], object],
    touched: Callable[[], Accesses],
    record: Callable[[], object] = int,
) -> None:
    """Run a step of the host synchronously, in dependence order with all uses of the same arrays.

    `touched` is evaluated when the step is scheduled, and `record`, which notes versions, once it
    is. Raises, once, the errors of the steps that it waits for, and CdBackendError CD0877.
    """
    queue = Queue("the host", threaded=False)
    with RUNTIME.scheduling.lock:
        RUNTIME.scheduling.decisions += 1
        event = hazards.enqueue(queue, RUNTIME.timed("host", "host", queue.name, run), *touched())
        record()
    event.wait()


def read_snapshot(chosen: Callable[[], Buffer]) -> Array:
    """Return a read-only snapshot of an array that is chosen when the read is scheduled."""
    buffers: list[Buffer] = []
    snapshots: list[Array] = []

    def touched() -> Accesses:
        buffers[:] = [chosen()]
        return buffers, ()

    def step() -> None:
        buffer = buffers[0]
        with memory_guard(f"a snapshot of `{buffer.label}`", buffer.array.nbytes):
            snapshots.append(snapshot(buffer.array))

    while not snapshots:  # retried where another thread has raised a failure meanwhile
        run_on_host(step, touched)
    snapshots[0].flags.writeable = False
    return snapshots[0]
