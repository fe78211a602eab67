"""Steps of a stream without a thread that need not be queued: everything they need is ready.

A routine whose arrays nobody uses, and whose stream has nothing to do, is run at once. It still
takes its place in the order: what other threads schedule while it runs waits for its event, and is
dropped where it fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from .field import Field
from .memory import Buffer
from .queue import Event, Failure, Queue
from .state import RUNTIME

FEW = 8
"""How many events of readers may be kept that are done."""
Pairs = Sequence[tuple[Field, Buffer]]


class Living(Protocol):
    """What has an end, after which its arrays are not to be used: a context."""

    live: bool


def direct(
    queue: Queue,
    run: Callable[[], object],
    context: Living,
    reads: Sequence[Buffer],
    loads: Pairs,
    ticks: Pairs,
) -> Callable[[], bool]:
    """Return what does a step of a queue without a thread now, and says whether it could.

    `reads` are the arrays that it reads, `loads` those of them that follow the host's versions,
    `ticks` those that it writes. It could not, and did nothing, where it has to wait for something,
    or where an array has to be loaded first. It raises what `run` raises.
    """
    worker, runtime = queue.worker, RUNTIME
    acquire, release = worker.busy.acquire, worker.busy.release

    def step() -> bool:
        if not acquire(blocking=False):
            return False
        event = None
        try:
            with runtime.scheduling:
                if worker.tasks or not worker.direct.done or runtime.timeline or not context.live:
                    return False
                if not _is_calm(reads, loads, ticks):
                    return False
                event = worker.direct = worker.latest = Event(worker)
                _take(event, reads, ticks)
            run()
        except BaseException as error:
            if event is None:
                raise
            event.failure = Failure(error)
            raise event.failure.tell() from None
        finally:
            if event is not None:
                event.done = True
            release()
        return True

    return step


def _is_calm(reads: Sequence[Buffer], loads: Pairs, ticks: Pairs) -> bool:
    """Whether nobody uses the arrays in another way, and none has to be loaded."""
    for field, buffer in loads:
        if field.host_tick > buffer.tick:
            return False
    for buffer in reads:
        if not _is_settled(buffer.writer):
            return False
    for _, buffer in ticks:
        if buffer.lent or not _is_settled(buffer.writer):
            return False
        for reader in buffer.readers:
            if not _is_settled(reader):
                return False
    return True


def _is_settled(event: Event) -> bool:
    """Whether nothing has to wait for an event, or to be dropped because of it."""
    return event.done and (event.failure is None or event.failure.told)


def _take(event: Event, reads: Sequence[Buffer], ticks: Pairs) -> None:
    """Note that a step reads and writes arrays; as `order.note` does, with little to do."""
    for buffer in reads:
        if len(buffer.readers) > FEW:
            buffer.readers = [one for one in buffer.readers if not one.done]
        buffer.readers.append(event)
    for field, buffer in ticks:
        buffer.writer = event
        if buffer.readers:
            buffer.readers = []
        field.ticked(buffer)
