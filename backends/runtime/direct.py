"""Steps of a stream without a thread that need not be queued: everything they need is ready.

A routine whose arrays nobody uses, and whose stream has nothing to do, is run at once. It still
takes its place in the order: while it runs, what other threads schedule waits for its event. One
event serves all of these steps of a stream: it is done between them, and who waits for one of them
may wait for the next as well, which never waits for anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from .field import Field
from .memory import Buffer
from .queue import Event, Queue
from .state import RUNTIME

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
    worker, event, runtime = queue.worker, queue.worker.direct, RUNTIME
    acquire, release = worker.busy.acquire, worker.busy.release

    def step() -> bool:
        if not acquire(blocking=False):
            return False
        is_ours = False
        try:
            with runtime.scheduling:
                if worker.tasks or not event.done or runtime.timeline or not context.live:
                    return False
                if not _is_calm(reads, loads, ticks):
                    return False
                is_ours = True
                event.done = False
                worker.latest = event
                _take(event, reads, ticks)
            run()
        except BaseException as error:
            raise error.with_traceback(None) from None
        finally:
            if is_ours:
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
        writer = buffer.writer
        if not writer.done or writer.failure is not None:
            return False
    for _, buffer in ticks:
        writer = buffer.writer
        if not writer.done or writer.failure is not None or buffer.lent:
            return False
        for reader in buffer.readers:
            if not reader.done or reader.failure is not None:
                return False
    return True


def _take(event: Event, reads: Sequence[Buffer], ticks: Pairs) -> None:
    """Note that a step reads and writes arrays; as `order.note` does, with little to do."""
    for buffer in reads:
        if event not in buffer.readers:
            buffer.readers.append(event)
    for field, buffer in ticks:
        buffer.writer = event
        if buffer.readers:
            buffer.readers = []
        field.ticked(buffer)
