"""Calls of a routine for which everything is prepared: run at once, or queued in one go.

A routine whose arrays nobody uses, on a stream without a thread that has nothing to do, is run at
once. It still takes its place in the order: what other threads schedule while it runs waits for
its event, and is dropped where it fails. On a stream with a thread it is queued, without asking
again what was known when it was linked.

That nothing is in the way is found out once, and holds as long as nobody but such steps has taken
the lock of scheduling and each of them was done when the next began: of what was at work when it
was found out, nothing uses the same arrays. What was noted holds for the next run of the same step
if not even such a step has come between; its event stands for that run, too, unless somebody kept
it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ...base.dataclass import dataclass
from . import hazards
from .failure import Failure
from .field import Field
from .memory import Buffer
from .queue import DONE, Event, Queue, Worker, is_over
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
    worker, scheduling = queue.worker, RUNTIME.scheduling
    is_free = _freedom(worker, context, uses)
    reads, ticks = uses.only_read, uses.ticks
    writes = tuple(buffer for _, buffer in ticks)
    event, seen = DONE, -1

    def step() -> bool:
        nonlocal event, seen
        busy = worker.busy  # another one in a forked child
        if not busy.acquire(False):
            return False
        begun = False
        try:
            scheduling.acquire()
            try:
                last = scheduling.direct or DONE
                if worker.tasks:
                    return False
                if seen != scheduling.taken or not last.done:
                    if not is_free():
                        return False
                    if not last.done:
                        scheduling.taken += 1
                    seen, last = scheduling.taken, DONE
                begun = True
                if event.kept:
                    event = Event()
                    event.worker = worker
                event.done = False
                worker.latest = event
                if last is not event:  # otherwise all is as it was noted before
                    scheduling.direct = worker.direct = event
                    hazards.note(event, reads, writes)
                for field, buffer in ticks:
                    field.clock = buffer.tick = field.clock + 1
                    field.latest = buffer
            finally:
                scheduling.release()
            run()
        except BaseException as error:
            if not begun:
                raise
            failure = Failure(error)
            event.fail(failure)
            raise failure.tell() from None
        finally:
            if begun:
                event.done = True
            busy.release()
        return True

    return step


def _freedom(worker: Worker, context: Living, uses: Uses) -> Callable[[], bool]:
    """Return what says whether nothing is in the way of a step that is run at once."""
    runtime = RUNTIME
    loads, writes = uses.loads, tuple(buffer for _, buffer in uses.ticks)
    used = (*uses.only_read, *writes)

    def is_free() -> bool:
        return (
            context.live
            and worker.direct.done
            and not (runtime.is_recording or runtime.timeline)
            and not any(field.host_tick > buffer.tick for field, buffer in loads)
            and all(is_over(buffer.writer) for buffer in used)
            and not any(buffer.lent for buffer in writes)
            and all(is_over(one) for buffer in writes for one in buffer.readers.values())
        )

    return is_free


def queued(
    queue: Queue, run: Callable[[], object], context: Living, uses: Uses
) -> Callable[[], bool]:
    """Return what queues a step on a thread, and says whether it could: as `direct`, for those.

    It could not, and did nothing, where something else has to be queued first. It raises what an
    earlier step of the queue raised, if nobody was told of that.
    """
    worker, runtime, scheduling = queue.worker, RUNTIME, RUNTIME.scheduling
    reads, loads, ticks = uses.only_read, uses.loads, uses.ticks
    writes = tuple(buffer for _, buffer in ticks)

    def step() -> bool:
        worker.make_room()
        with scheduling:
            if runtime.is_recording or runtime.timeline or not context.live:
                return False
            for field, buffer in loads:
                if field.host_tick > buffer.tick:
                    return False
            for buffer in writes:
                if buffer.lent:
                    return False
            event = worker.submit(run, hazards.waits_of(queue, reads, writes))
            hazards.note(event, reads, writes)
            for field, buffer in ticks:
                field.ticked(buffer)
        return True

    return step
