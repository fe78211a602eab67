"""Access of foreign code to the arrays of a context, in the order of all routines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from ...base.diagnostic import CdValueError, Diagnostic
from ..device_arrays.device_array import DeviceArray
from ..device_arrays.lent_array import LentArray
from ..interface import Array
from . import hazards
from .field import Field
from .memory import Buffer
from .state import RUNTIME
from .transfer import MergeQueue, decide

MODES = ("r", "w", "rw")


class ArrayContext(Protocol):
    """A context, as far as an access needs it."""

    stream: Any

    def array(self, field: Field) -> Buffer:
        """Return the array of a field."""

    def adopt(self, field: Field, written: bool) -> Buffer:
        """Return the array of a field for a use, whose rules it follows."""

    def refresh(self, field: Field, buffer: Buffer) -> None:
        """Queue a copy of the host's version into an array where the host's is newer."""


@contextmanager
def array_access(context: ArrayContext, field: Field, mode: str) -> Iterator[Array | LentArray]:
    """Yield a context's array of a field; see `Context.device_pointer`."""
    if mode not in MODES:
        helps = ('use "r", "w" or "rw"',)
        message = f"an array is not opened for {mode!r}"
        raise CdValueError(Diagnostic("CD0839", message, helps=helps))
    is_written = "w" in mode
    if recorder := RUNTIME.planned():
        recorder.touch(field.label)
    if is_written:
        field.require_writable()
    accesses: list[_Access] = []

    def decision() -> None:
        buffer = context.array(field)
        if is_written:
            context.adopt(field, written=True)
        if "r" in mode:
            context.refresh(field, buffer)
        accesses.append(_Access(field, buffer, is_written))  # first: it is left, whatever happens
        accesses[0].begin()

    try:
        decide(decision, context.stream)
        (access,) = accesses
        access.enter()
        yield access.show(context.stream)
    finally:
        for access in accesses:
            access.leave()


class _Access:
    """An access to an array."""

    def __init__(self, field: Field, buffer: Buffer, is_written: bool) -> None:
        self.field, self.buffer, self.is_written = field, buffer, is_written
        self.before = self.tick = buffer.tick
        self.hold = hazards.Hold(field.label, RUNTIME.holds)
        self.is_entered = False
        self._shown: Array | LentArray | None = None

    def begin(self) -> None:
        """Record it as a use and, if it writes, as a new version.

        Precondition: the scheduling lock is held.
        """
        uses = ((), (self.buffer,)) if self.is_written else ((self.buffer,), ())
        hazards.begin_hold(self.hold, *uses)
        if self.is_written:
            self.field.record_write(self.buffer)
        self.tick = self.buffer.tick

    def enter(self) -> None:
        """Wait for what it depends on; raises the error of a step among that."""
        self.hold.enter()
        self.is_entered = True

    def show(self, stream: MergeQueue) -> Array | LentArray:
        """Return a view of the array, read-only unless it is to be written."""
        self._shown = _view(self.buffer, stream, self.is_written)
        return self._shown

    def __del__(self) -> None:
        with suppress(Exception):  # an interrupt has ended the `with` before it was left
            self.leave()

    def leave(self) -> None:
        """End it: what was yielded is not written any more."""
        if self.hold.is_released:
            return
        work, shown = None, self._shown
        try:
            if isinstance(shown, LentArray):
                work = shown.end()
            elif shown is not None:
                shown.flags.writeable = False
            elif not self.is_entered:
                self._withdraw()
        finally:
            self.hold.release(work)

    def _withdraw(self) -> None:
        """Take back the new version, which nobody wrote."""
        with RUNTIME.scheduling.lock:
            RUNTIME.scheduling.decisions += 1
            if self.buffer.tick == self.tick != self.before:
                self.buffer.tick = self.before
                self.field.keep_newest()


def _view(buffer: Buffer, stream: MergeQueue, is_written: bool) -> Array | LentArray:
    """Return a view of an array, read-only unless it is to be written."""
    array: Any = buffer.array
    if isinstance(array, DeviceArray):
        return LentArray(array, stream.lane, is_written)
    view: Array = array.view()
    view.flags.writeable = is_written
    return view
