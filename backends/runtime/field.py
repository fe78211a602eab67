"""A field of a tensor: its versions on the host and on devices, and the clocks that order them.

Every write ticks the field's clock, and the array that was written holds that version:

    clock        the newest version anywhere
    host_tick    the version of the last write by the host
    buffer.tick  the version that a physical array holds

A routine loads the host's array into its own exactly when `host_tick > buffer.tick`. Reading on
the host copies from the newest array and leaves every array as it is, so that looking never
changes what a later routine computes.
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
from ..gpu.residency import copy, snapshot
from ..interface import Array
from . import hazards
from .host_writes import Refusing, Snapshot, always_copied, owned, storable
from .memory import Buffer, room
from .queue import Queue, is_over
from .state import RUNTIME


class Field(Refusing):
    """One array of a tensor, as the host sees it: `p.grad`.

    Read it by `numpy()`, `np.asarray` or an index: a snapshot of the newest version, which never
    changes. Write it by `p.grad[...] = v` or `with p.grad.edit() as a:`.
    """

    __slots__ = (
        "__weakref__", "clock", "constant", "copies", "dtype", "host", "host_tick", "is_given",
        "label", "latest", "name", "tensor",
    )  # fmt: skip

    _SHOWN = ("constant", "dtype", "edit", "label", "name", "numpy", "shape", "tensor")

    def __init__(self, label: str, name: str, value: Array, dtype: DType, constant: bool) -> None:
        self.label = label if name == "value" else f"{label}.{name}"
        self.name = name
        self.tensor: Any = None
        """The tensor whose field it is, which sets this."""
        self.dtype = dtype
        self.constant = constant
        self.host = Buffer(self.label, value, None)
        self.clock = self.host_tick = 0
        self.is_given = False
        """Whether it was made with a value; zeros otherwise."""
        self.copies: weakref.WeakSet[Buffer] = weakref.WeakSet()
        self.latest = self.host
        """The array with the newest version: kept, or that would go with its context."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of every version."""
        return self.host.array.shape

    @property
    def is_blank(self) -> bool:
        """Whether nobody has given it a value so far, neither the host nor a routine."""
        return self.clock == 0 and not self.is_given

    @property
    def sharing(self) -> Sharing:
        """What was asked for: one array for the streams of a device, or one for each of them."""
        asked = None if self.tensor is None else self.tensor.request
        return "unset" if asked is None else asked.mode.sharing

    def newest(self) -> Buffer:
        """Return the physical array with the newest version; the host's own where it has that."""
        if self.latest.tick == self.host.tick:
            return self.host
        newest = self._other_than(self.latest)
        if settings.current().automatic_host_transfers and self.latest.tick > newest.tick:
            newest = self.latest  # finalizers of a circle no longer find it among the copies
        return newest

    def _other_than(self, one: Buffer) -> Buffer:
        """Return the array with the newest version of all but one; the host's own where it can."""
        newest = self.host
        if settings.current().automatic_host_transfers:
            for buffer in self.copies:
                if buffer is not one and buffer.tick > newest.tick:
                    newest = buffer
        return newest

    def numpy(self) -> Array:
        """Return a read-only snapshot of the newest version, when it has been computed.

        Raises what the routine raised that should have computed it.
        """
        return look(self.newest)

    def ticked(self, buffer: Buffer) -> None:
        """Note that a physical array is written: it holds a new version."""
        self.clock += 1
        buffer.tick = self.clock
        self.latest = buffer

    def rescue(self, queue: Queue, buffer: Buffer) -> None:
        """Keep the version in an array that is about to be freed, if it is newest.

        It is kept beside the host's array, which routines may read in place: the end of a context
        changes nothing that another one computes.
        """
        newest = self.newest()
        self.copies.discard(buffer)
        if newest.tick == buffer.tick > self._other_than(buffer).tick:
            kept = self.host.another(None, tick=buffer.tick)
            one, other = buffer.array, kept.array
            name = f"copy {self.label}"
            run = RUNTIME.timed(name, "copy", queue.name, lambda: copy(other, one, name))
            hazards.enqueue(queue, run, (buffer,), (kept,))
            self.copies.add(kept)
        self.keep_newest()

    def keep_newest(self) -> None:
        """Keep the array with the newest version alive, whoever else lets go of it."""
        self.latest = max((self.host, *self.copies), key=lambda one: one.tick)

    def ticked_by_host(self) -> None:
        """Note that the host has written its array."""
        with RUNTIME.scheduling:
            self.ticked(self.host)
            self.host_tick = self.clock

    def ready(self, writing: bool) -> Array | None:
        """Return the host's array where it has the newest version and nothing uses it; else None.

        It waits for nothing, and tells nobody of what failed.
        """
        host, scheduling = self.host, RUNTIME.scheduling
        scheduling.acquire()  # not `with`: a look changes nothing that an order depends on
        try:
            return host.array if self.newest() is host and _is_idle(host, writing) else None
        finally:
            scheduling.release()

    def shown(self, writing: bool) -> Array:
        """Return an array with the newest version for the host's own work, here and now.

        To be written it is the host's array, brought up to date; to be read it may be a copy.
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

        def touched() -> Touched:
            nonlocal newest
            newest = self.newest()
            host.tick = newest.tick
            return (newest,), (host,)

        act(step, touched)
        return host.array

    @contextmanager
    def edit(self) -> Iterator[Array]:
        """Give the array to be written in place; raises CdTypeError CD0804 for a constant.

        What was given is read-only afterwards: a later write would make no new version. That is
        not known of views taken of it, which must not be written behind the `with`.
        """
        self.require_writable()
        array = self.shown(writing=True).view()
        try:
            yield array
        finally:
            array.flags.writeable = False
            self.ticked_by_host()

    def __setitem__(self, index: Any, value: Any) -> None:
        self.require_writable()
        value, index = storable(value, self.dtype, self.label), owned(index)
        newest = host = self.host

        def step() -> None:
            if newest is not host:
                copy(host.array, newest.array)
            host.array[index] = value

        def touched() -> Touched:
            nonlocal newest
            newest = self.newest()
            self.ticked(host)
            self.host_tick = self.clock
            return (newest,), (host,)

        act(step, touched)

    def __getitem__(self, index: Any) -> Any:
        found = self.numpy()[index]
        is_shown = isinstance(found, np.ndarray) and not found.flags.writeable
        return found.view(Snapshot) if is_shown else found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise always_copied(self.label)
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

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


def _is_idle(buffer: Buffer, writing: bool) -> bool:
    """Whether the host may use an array without waiting for anything."""
    if not is_over(buffer.writer):
        return False
    return not writing or not buffer.lent and all(map(is_over, buffer.readers.values()))


Touched = tuple[Sequence[Buffer], Sequence[Buffer]]
"""What a step reads, and what it writes."""


def act(run: Callable[[], object], touched: Callable[[], Touched]) -> None:
    """Do a step of the host, now, in order with everything that uses the same arrays.

    What it touches is asked for when it takes its place among the steps. Raises, once, what the
    steps raised that it waits for.
    """
    queue = Queue("the host", threaded=False)
    with RUNTIME.scheduling:
        event = hazards.enqueue(queue, RUNTIME.timed("host", "host", queue.name, run), *touched())
    event.wait()


def look(chosen: Callable[[], Buffer]) -> Array:
    """Return a read-only snapshot of an array that is chosen when the look takes its place."""
    buffers: list[Buffer] = []
    found: list[Array] = []

    def touched() -> Touched:
        buffers[:] = [chosen()]
        return buffers, ()

    def step() -> None:
        buffer = buffers[0]
        with room(f"a snapshot of `{buffer.label}`", buffer.array.nbytes):
            found.append(snapshot(buffer.array))

    while not found:  # again where a step failed of which another thread was told meanwhile
        act(step, touched)
    found[0].flags.writeable = False
    return found[0]
