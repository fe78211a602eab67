"""Steps of a stream without a thread that need not be queued: everything they need is ready.

A routine whose arrays nobody uses, and whose stream has nothing to do, is run at once. It still
takes its place in the order: what other threads schedule while it runs waits for its event, and is
dropped where it fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    writes = tuple(buffer for _, buffer in ticks)

    def step() -> bool:
        if not acquire(blocking=False):
            return False
        event = None
        try:
            with runtime.scheduling:
                if worker.tasks or not worker.direct.done or runtime.timeline or not context.live:
                    return False
                if any(field.host_tick > buffer.tick for field, buffer in loads):
                    return False
                if any(buffer.lent for buffer in writes) or order.waits_of(queue, reads, writes):
                    return False
                event = worker.direct = worker.latest = Event(worker)
                order.note(event, reads, writes)
                for field, buffer in ticks:
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
            release()
        return True

    return step
