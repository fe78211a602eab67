"""Who waits for whom: for each physical array its last writer and all readers since.

A read waits for the last writer; a write waits for the last writer and for every reader since.
Work of one queue is in order by itself. Everything that executes - a routine, a transfer, the
filling of a merge buffer, a look of the host - is a step that states what it reads and writes, so
that no order is left to luck.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .memory import Buffer
from .queue import DONE, Event, Queue, Worker

_FEW = 8
"""Readers that are kept until it is looked which of them are done."""


def enqueue(
    queue: Queue, run: Callable[[], object], reads: Sequence[Buffer], writes: Sequence[Buffer]
) -> Event:
    """Queue a step behind everything that uses the same arrays; return the event of its end.

    Whoever calls this holds the lock of scheduling, and flushes an inline queue without it. Raises
    what an earlier step of a threaded queue raised, if nobody was told of that.
    """
    reclaim(writes)
    event = queue.worker.submit(run, waits_of(queue, reads, writes))
    note(event, reads, writes)
    return event


def reclaim(buffers: Sequence[Buffer]) -> None:
    """Let who reads arrays in place take copies, since they are about to be written."""
    for buffer in buffers:
        while buffer.lent:
            buffer.lent.popitem()[1]()


def waits_of(queue: Queue, reads: Sequence[Buffer], writes: Sequence[Buffer]) -> list[Event]:
    """Return the events that a step of a queue has to wait for."""
    found: list[Event] = []
    worker = queue.worker
    for buffer in reads:
        if buffer.writer is not DONE and _concerns(buffer.writer, worker):
            found.append(buffer.writer.keep())
    for buffer in writes:
        if buffer.writer is not DONE and _concerns(buffer.writer, worker):
            found.append(buffer.writer.keep())
        if buffer.readers:
            found += [one.keep() for one in buffer.readers.values() if _concerns(one, worker)]
    return found


def note(event: Event, reads: Sequence[Buffer], writes: Sequence[Buffer]) -> None:
    """Remember that the step of an event reads and writes arrays."""
    worker = event.worker
    assert worker is not None, "a step is somebody's work"
    for buffer in reads:
        readers = buffer.readers
        if len(readers) > _FEW:
            readers = {key: one for key, one in readers.items() if not one.done}
            buffer.readers = readers
        before = readers.get(worker)
        # A step that is queued while another of the same caller runs is done before that one.
        inside = before is not None and not before.done and not worker.threaded
        readers[event if inside else worker] = event
    for buffer in writes:
        buffer.writer = event
        if buffer.readers:
            buffer.readers = {}


def _concerns(event: Event, worker: Worker) -> bool:
    """Whether a step of a queue has to wait for an event, or is to be dropped because of it."""
    if event.done:
        return event.failure is not None and not event.failure.told
    return event.worker is not worker
