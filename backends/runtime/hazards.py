"""Hazards between steps: the last writer of each physical array, and all readers since.

A read waits for the last writer (RAW); a write waits for the last writer (WAW) and for all readers
since (WAR). Work of one queue is in order anyway. Everything that executes, i.e. routines,
transfers, fills of merge buffers and reads by the host, is a step with declared reads and writes,
so that execution is deterministic.

What foreign code does with arrays is a step, too, which its thread begins and ends:

    Hold := recorded -> entered, when all that it waits for is done -> released -> done

Others wait for its end as for that of any step. A wait of the thread that has to release it is
refused if it could not end: what is waited for is followed through queued steps, and through what
other threads with holds wait for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from ...base.diagnostic import CdBackendError, Diagnostic
from .failure import Failure
from .memory import Buffer
from .queue import DONE, Event, Holder, Queue, WakeUps, Worker, waiting
from .state import RUNTIME

_FEW = 8
"""The number of recorded readers from which those that are done are removed."""


def enqueue(
    queue: Queue, run: Callable[[], object], reads: Sequence[Buffer], writes: Sequence[Buffer]
) -> Event:
    """Queue a step after all conflicting uses of its arrays; return the event of its end.

    Precondition: the scheduling lock is held; an inline queue is flushed after its release. Raises
    the unreported error of an earlier step of a threaded queue.
    """
    detach_readers(writes)
    event = queue.worker.submit(run, dependences_of(queue, reads, writes))
    record_accesses(event, reads, writes)
    return event


def detach_readers(buffers: Sequence[Buffer]) -> None:
    """Make in-place readers of arrays take copies, as the arrays are about to be written."""
    for buffer in buffers:
        while buffer.lent:
            buffer.lent.popitem()[1]()


def begin_hold(held: Hold, reads: Sequence[Buffer], writes: Sequence[Buffer]) -> None:
    """Record a use of arrays by the calling thread, which lasts until it is released.

    Precondition: the scheduling lock is held. Raises CdBackendError CD0877 where it would wait for
    another hold of the same thread.
    """
    detach_readers(writes)
    queue = Queue(f"foreign code with `{held.label}`", threaded=False)
    held.begin(queue.worker, dependences_of(queue, reads, writes))
    record_accesses(held, reads, writes)


def dependences_of(queue: Queue, reads: Sequence[Buffer], writes: Sequence[Buffer]) -> list[Event]:
    """Return the events that a step of a queue has to wait for.

    Raises CdBackendError CD0877 where the calling thread would run the step, and has to end what it
    waits for.
    """
    waits: list[Event] = []
    worker = queue.worker
    for buffer in reads:
        if buffer.writer is not DONE and _is_dependence(buffer.writer, worker):
            waits.append(buffer.writer.keep())
    for buffer in writes:
        if buffer.writer is not DONE and _is_dependence(buffer.writer, worker):
            waits.append(buffer.writer.keep())
        if buffer.readers:
            waits += [
                reader.keep()
                for reader in buffer.readers.values()
                if _is_dependence(reader, worker)
            ]
    if RUNTIME.holds and not worker.threaded:
        require_progress(RUNTIME.holds, waits)
    return waits


def record_accesses(event: Event, reads: Sequence[Buffer], writes: Sequence[Buffer]) -> None:
    """Record the step of an event as a reader and writer of arrays."""
    worker = event.worker
    assert worker is not None, "a step is somebody's work"
    for buffer in reads:
        readers = buffer.readers
        if len(readers) > _FEW:
            readers = {key: reader for key, reader in readers.items() if not reader.done}
            buffer.readers = readers
        previous = readers.get(worker)
        # A step that is queued from within another step of the same caller ends before that one.
        is_nested = previous is not None and not previous.done and not worker.threaded
        readers[event if is_nested else worker] = event
    for buffer in writes:
        buffer.writer = event
        if buffer.readers:
            buffer.readers = {}


def _is_dependence(event: Event, worker: Worker) -> bool:
    """Whether a step of a queue has to wait for an event, or is dropped because of it."""
    if event.done:
        return event.failure is not None and not event.failure.reported
    return event.worker is not worker


class Hold(Event):
    """The use of arrays by foreign code in the thread that made it."""

    def __init__(self, label: str, holds: list[Holder]) -> None:
        self.label = label
        self.is_retained = True
        self._waits: Sequence[Event] = ()
        self._thread = threading.get_ident()
        self._is_released = False
        self._releases = WakeUps()
        self._awaited: Event | None = None
        """What its thread waits for at the moment."""
        self._work: Any = None
        """What foreign code has queued on a device, which ends later than the hold."""
        self._holds = holds

    def begin(self, worker: Worker, waits: Sequence[Event]) -> None:
        """Record it as one of its thread, with what it waits for."""
        self.worker, self._waits = worker, waits
        self._holds[:] = [hold for hold in self._holds if not hold.is_released]
        self._holds.append(self)

    @property
    def is_released(self) -> bool:
        """Whether foreign code has ended."""
        return self._is_released

    @property
    def is_of_thread(self) -> bool:
        """Whether the calling thread has to release it."""
        return self._thread == threading.get_ident() and not self._is_released

    def enter(self) -> None:
        """Wait for everything that it depends on; raises the error of a step among that."""
        failures = [event.settle() for event in self._waits]
        for failure in failures:
            if failure is not None:
                raise failure.tell()
        self._waits = ()

    def release(self, work: Any = None) -> None:
        """End it. It is done with the work on a device: an object with `finish`, `is_finished`.

        A hold that was not entered is done no sooner than what it depends on.
        """
        if not self._is_released:
            self._work = work
            self.done = work is None and not self._waits
            self._is_released = True  # first: it is nobody's then, wherever an interrupt comes
            self._releases.note()
        with suppress(ValueError):
            self._holds.remove(self)

    def query(self) -> bool:
        """Whether it has been released and its work is done."""
        if not self.done and self._is_released:
            work = self._work
            if all(event.query() for event in self._waits) and (not work or work.is_finished()):
                self._complete()
        return self.done

    def settle(self) -> Failure | None:
        """Wait for its release and its work; return the failure of a device, if any.

        Raises CdBackendError CD0877 where the calling thread has to release it.
        """
        if not self.done:
            with waiting(self._holds, self):
                self._releases.wait_for(lambda: self._is_released)
            self._complete()
        return self.failure

    def _complete(self) -> None:
        for event in self._waits:
            event.settle()
        if not self.done:
            try:
                if self._work is not None:
                    self._work.finish()
            except Exception as error:  # any error is raised by the wait for it
                self.fail(Failure(error))
            self.done = True

    def begin_wait(self, event: Event) -> None:
        """Record what its thread waits for; raises CdBackendError CD0877 where that waits for it.

        It is recorded first, so that of two threads which wait for each other one notices.
        """
        self._awaited = event
        if self._is_awaited_by((event,)):
            raise self.refusal()

    def end_wait(self) -> None:
        """Record that its thread does not wait."""
        self._awaited = None

    def _is_awaited_by(self, events: Iterable[Event]) -> bool:
        """Whether events are done only after this one."""
        pending, seen = list(events), set[int]()
        while pending:
            event = pending.pop()
            if event is self:
                return True
            if event.done or id(event) in seen or event.worker is None:
                continue
            seen.add(id(event))
            if isinstance(event, Hold):
                awaited = event._awaited
                pending += event._waits if awaited is None else (*event._waits, awaited)
            else:
                pending += event.worker.awaited_before(event)
        return False

    def refusal(self) -> CdBackendError:
        """Return the error CD0877: its thread would wait for itself."""
        message = (
            f"this waits for the end of `with context.device_pointer({self.label})`, which this "
            "thread is inside of"
        )
        return CdBackendError(Diagnostic("CD0877", message, helps=("do it after the `with`",)))


def require_progress(holds: Sequence[Any], events: Sequence[Event]) -> None:
    """Raise CdBackendError CD0877 where events wait for a hold of the calling thread."""
    for hold in tuple(holds):
        if hold.is_of_thread and hold._is_awaited_by(events):
            raise hold.refusal()
