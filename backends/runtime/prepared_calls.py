"""Fast paths of calls: a prepared step is run synchronously, or queued with few checks.

On an idle inline stream, a routine whose arrays are not in use is run synchronously. It still
takes part in the ordering: steps that other threads schedule meanwhile wait for its event, and are
dropped if it fails. On a stream with a thread it is queued, without the checks of linking.

The check that nothing has to be waited for is memoized. It is valid while only steps of this fast
path have changed the state, each done before the next began: none of the work in flight at the
check uses the same arrays. The records of hazards are reused by the next run of the same step if no
other such step came between; its event then represents that run, too, unless it is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ...base.dataclass import dataclass
from . import hazards
from .failure import Failure
from .field import Field
from .memory import Buffer
from .queue import DONE, Event, Queue, Worker, is_reported
from .state import RUNTIME

Pairs = Sequence[tuple[Field, Buffer]]


class ArrayOwner(Protocol):
    """An owner of arrays with an end of life: a context."""

    live: bool


@dataclass(frozen=True, slots=True)
class RoutineAccesses:
    """The array accesses of a routine."""

    reads: Sequence[Buffer]
    """The arrays that it reads."""
    loads: Pairs
    """Those among them that are updated to the host's versions."""
    ticks: Pairs
    """The arrays that it writes, whose ticks advance."""

    @property
    def only_read(self) -> tuple[Buffer, ...]:
        """The arrays that it reads and does not write."""
        written = [buffer for _, buffer in self.ticks]
        return tuple(b for b in dict.fromkeys(self.reads) if b not in written)


def run_path(
    queue: Queue, run: Callable[[], object], context: ArrayOwner, uses: RoutineAccesses
) -> Callable[[], bool]:
    """Return the fast path that runs a step of an inline queue; it returns whether it did.

    It does not, and has no effect, where it would have to wait, or to load an array first. Raises
    the error of `run`.
    """
    worker, scheduling = queue.worker, RUNTIME.scheduling
    is_free = _independence_test(worker, context, uses)
    reads, ticks = uses.only_read, uses.ticks
    writes = tuple(buffer for _, buffer in ticks)
    event, checked_at = DONE, -1

    def step() -> bool:
        nonlocal event, checked_at
        busy = worker.busy  # replaced in a forked child
        has_begun = has_busy = False
        try:
            if not (has_busy := busy.acquire(False)):
                return False
            with scheduling.lock:
                last = scheduling.direct or DONE
                if worker.tasks:
                    return False
                if checked_at != scheduling.decisions or not last.done:
                    if not is_free():
                        return False
                    if not last.done:
                        scheduling.decisions += 1
                    checked_at, last = scheduling.decisions, DONE
                has_begun = True
                if event.is_retained:
                    event = Event()
                    event.worker = worker
                event.done = False
                worker.latest = event
                if last is not event:  # otherwise the hazards are recorded already
                    scheduling.direct = worker.direct = event
                    hazards.record_accesses(event, reads, writes)
                for field, buffer in ticks:
                    field.clock = buffer.tick = field.clock + 1
                    field.latest = buffer
            run()
        except BaseException as error:
            if not has_begun:
                if not has_busy:
                    worker.release_unused()
                raise
            failure = Failure(error)
            event.fail(failure)
            raise failure.tell() from None
        finally:
            if has_begun:
                event.done = True
            if has_busy:
                busy.release()
        return True

    return step


def _independence_test(
    worker: Worker, context: ArrayOwner, uses: RoutineAccesses
) -> Callable[[], bool]:
    """Return the predicate that a step has nothing to wait for."""
    runtime = RUNTIME
    loads, writes = uses.loads, tuple(buffer for _, buffer in uses.ticks)
    arrays = (*uses.only_read, *writes)

    def is_free() -> bool:
        return (
            context.live
            and worker.direct.done
            and not (runtime.is_recording or runtime.timeline)
            and not any(field.host_tick > buffer.tick for field, buffer in loads)
            and all(is_reported(buffer.writer) for buffer in arrays)
            and not any(buffer.lent for buffer in writes)
            and all(is_reported(reader) for buffer in writes for reader in buffer.readers.values())
        )

    return is_free


def queue_path(
    queue: Queue, run: Callable[[], object], context: ArrayOwner, uses: RoutineAccesses
) -> Callable[[], bool]:
    """Return the fast path that queues a step on a thread; it returns whether it did.

    It does not, and has no effect, where something else has to be queued first. It raises the
    unreported error of an earlier step of the queue.
    """
    worker, runtime, scheduling = queue.worker, RUNTIME, RUNTIME.scheduling
    reads, loads, ticks = uses.only_read, uses.loads, uses.ticks
    writes = tuple(buffer for _, buffer in ticks)

    def step() -> bool:
        worker.wait_for_slot()
        with scheduling.lock:
            scheduling.decisions += 1
            if runtime.is_recording or runtime.timeline or not context.live:
                return False
            for field, buffer in loads:
                if field.host_tick > buffer.tick:
                    return False
            for buffer in writes:
                if buffer.lent:
                    return False
            event = worker.submit(run, hazards.dependences_of(queue, reads, writes))
            hazards.record_accesses(event, reads, writes)
            for field, buffer in ticks:
                field.record_write(buffer)
        return True

    return step
