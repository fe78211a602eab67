"""Calls of a routine for which everything is prepared: run at once, or queued in one go.

A routine whose arrays nobody uses, on a stream without a thread that has nothing to do, is run at
once. It still takes its place in the order: what other threads schedule while it runs waits for
its event, and is dropped where it fails. On a stream with a thread it is queued, without asking
again what was known when it was linked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from . import order
from .field import Field
from .memory import Buffer
from .queue import Event, Failure, Queue
from .state import RUNTIME

Pairs = Sequence[tuple[Field, Buffer]]


class Living(Protocol):
    """What has an end, after which its arrays are not to be used: a context."""

    live: bool


@dataclass(frozen=True, slots=True)
class Uses:
    """What a routine does with arrays: which follow the host's versions, which it writes."""

    reads: Sequence[Buffer]
    """All that it reads."""
    loads: Pairs
    """Those of them that are brought up to date where the host has written."""
    ticks: Pairs
    """All that it writes."""

    @property
    def only_read(self) -> tuple[Buffer, ...]:
        """What it reads and does not write."""
        written = [buffer for _, buffer in self.ticks]
        return tuple(b for b in dict.fromkeys(self.reads) if b not in written)


def direct(
    queue: Queue, run: Callable[[], object], context: Living, uses: Uses
) -> Callable[[], bool]:
    """Return what does a step of a queue without a thread now, and says whether it could.

    It could not, and did nothing, where it has to wait for something, or where an array has to be
    loaded first. It raises what `run` raises.
    """
    worker, runtime = queue.worker, RUNTIME
    reads, loads, ticks = uses.only_read, uses.loads, uses.ticks
    writes = tuple(buffer for _, buffer in ticks)
    used = (*reads, *writes)

    def step() -> bool:
        busy = worker.busy  # another one in a forked child
        if not busy.acquire(False):
            return False
        event = None
        try:
            with runtime.scheduling:
                if worker.tasks or not worker.direct.done or not context.live:
                    return False
                if runtime.is_recording or runtime.timeline:
                    return False
                for field, buffer in loads:
                    if field.host_tick > buffer.tick:
                        return False
                for buffer in used:
                    writer = buffer.writer
                    if not writer.done or (writer.failure is not None and not writer.failure.told):
                        return False
                for buffer in writes:
                    if buffer.lent or (buffer.readers and not _are_done(buffer)):
                        return False
                event = worker.direct = worker.latest = Event(worker)
                for buffer in reads:
                    buffer.readers[worker] = event
                for field, buffer in ticks:
                    buffer.writer = event
                    if buffer.readers:
                        buffer.readers = {}
                    field.ticked(buffer)
            run()
        except BaseException as error:
            if event is None:
                raise
            event.failure = Failure(error)
            raise event.failure.tell() from None
        finally:
            if event is not None:
                event.done = True
            busy.release()
        return True

    return step


def queued(
    queue: Queue, run: Callable[[], object], context: Living, uses: Uses
) -> Callable[[], bool]:
    """Return what queues a step on a thread, and says whether it could: as `direct`, for those.

    It could not, and did nothing, where something else has to be queued first. It raises what an
    earlier step of the queue raised, if nobody was told of that.
    """
    worker, runtime = queue.worker, RUNTIME
    reads, loads, ticks = uses.only_read, uses.loads, uses.ticks
    writes = tuple(buffer for _, buffer in ticks)

    def step() -> bool:
        worker.make_room()
        with runtime.scheduling:
            if runtime.is_recording or runtime.timeline or not context.live:
                return False
            for field, buffer in loads:
                if field.host_tick > buffer.tick:
                    return False
            for buffer in writes:
                if buffer.lent:
                    return False
            event = worker.submit(run, order.waits_of(queue, reads, writes))
            order.note(event, reads, writes)
            for field, buffer in ticks:
                field.ticked(buffer)
        return True

    return step


def _are_done(buffer: Buffer) -> bool:
    """Whether everybody who reads an array is done, and who asked was told where that failed."""
    readers = buffer.readers.values()
    return all(one.done and (one.failure is None or one.failure.told) for one in readers)
