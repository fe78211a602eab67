"""Hazards between steps: the last writer of each physical array, and all readers since.

A read waits for the last writer (RAW); a write waits for the last writer (WAW) and for all readers
since (WAR). Work of one queue is in order anyway. Everything that executes, i.e. routines,
transfers, fills of merge buffers and reads by the host, is a step with declared reads and writes,
so that execution is deterministic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .memory import Buffer
from .queue import DONE, Event, Queue, Worker

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


def dependences_of(queue: Queue, reads: Sequence[Buffer], writes: Sequence[Buffer]) -> list[Event]:
    """Return the events that a step of a queue has to wait for."""
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
