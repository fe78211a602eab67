"""Asynchronous dispatch: the calling thread launches routines directly on a device's stream.

A device's stream is an in-order queue itself. A launch whose arguments the host knows is put there
by the calling thread; only dependents wait for its end: another stream, the host, or steps of the
stream's thread, which let the device finish first. All launches on a stream share one event, which
represents the newest of them.

The check that nothing has to be waited for is memoized, as in `direct`: it is valid while no
scheduling decision has been made, the event is not done, and the event is not kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...base.diagnostic import CdError
from ..interface import LaunchesAsync
from . import hazards
from .failure import Failure
from .memory import Buffer
from .prepared_calls import ArrayOwner, RoutineAccesses
from .queue import Event, Queue, Worker, is_reported
from .state import RUNTIME


class LaunchEvent(Event):
    """A point in a device's stream."""

    lane: DeviceLane
    number = 0
    """The number of the newest launch that it represents."""
    names: dict[str, LaunchesAsync]
    """The routines that it represents, with their code."""

    def query(self) -> bool:
        """Whether everything queued before the event is done; queries the device."""
        if not self.done and self.lane.is_finished():
            self.lane.settle()
        return self.done

    def settle(self) -> Failure | None:
        """Wait until everything before it is done; return the failure of the device, if any."""
        if not self.done:
            self.lane.settle()
        return self.failure


class DeviceLane:
    """The launches on the device of a stream that have not been waited for."""

    def __init__(self, worker: Worker, code: LaunchesAsync) -> None:
        self.worker = worker
        self._finish, self._is_finished = code.finish, code.is_finished
        self._number = 0
        self._patient = True
        self._events: list[LaunchEvent] = []
        """The events that are not done; the last one is reused for the next launch."""

    @property
    def event(self) -> LaunchEvent:
        """The event of the next launch. Precondition: the scheduling lock is held."""
        if not self._events or self._events[-1].is_retained:
            event = LaunchEvent()
            event.worker, event.lane, event.names = self.worker, self, {}
            self._events.append(event)
        return self._events[-1]

    def record_launch(self, event: LaunchEvent) -> None:
        """Record one more launch."""
        self._number += 1
        event.number, self._patient = self._number, True

    def is_finished(self) -> bool:
        """Whether the device is done with all launches; a failure is left to `settle`."""
        try:
            return self._is_finished()
        except Exception:
            return True

    def settle(self) -> Failure | None:
        """Wait until all current launches are done; return the failure of the device, if any."""
        if not self._events:
            return None
        number, failure = self._number, None
        codes = {name: code for event in self._events for name, code in event.names.items()}
        names = ", ".join(f"`{name}`" for name in codes)
        finish = next((code.finish for code in codes.values()), self._finish)
        try:
            finish()  # of a launched code, so that a failure is attributed to it
        except Exception as error:  # any error is raised by the wait for it
            note = f"of {names}, not waited for on {self.worker.name}"
            failure = Failure(_with_note(error, note))
        self.reached(number, failure)
        return failure

    def before(self, when: int) -> Failure | None:
        """Wait for all launches before a task of the thread; return the failure that drops it.

        A task is dropped where it was queued, at time `when`, before the failure was reported.
        """
        failure = self.settle() or self.worker.failure
        dropped = failure is not None and (not failure.reported or when <= failure.when)
        return failure if dropped else None

    def is_thread_idle(self) -> bool:
        """Whether the thread of the stream is idle, now or in a moment.

        A step queued on the thread would delay later launches, so a short wait pays. After a wait
        in vain there is no other, until the next launch.
        """
        self._patient = self._patient and self.worker.is_idle_soon()
        return self._patient

    def reached(self, number: int, failure: Failure | None) -> None:
        """Record that all launches up to a number are done, or failed."""
        with RUNTIME.scheduling.lock:
            reached = [lane_event for lane_event in self._events if lane_event.number <= number]
            self._events = [lane_event for lane_event in self._events if lane_event.number > number]
            if failure is not None and reached:
                self.worker.failure = failure
            for event in reached:
                if failure is not None:
                    event.fail(failure)
                event.done = True

    def give_up(self, failure: Failure) -> None:
        """Fail the launches of the parent in a forked child."""
        self.reached(self._number, failure)


def launch_path(
    queue: Queue,
    name: str,
    code: LaunchesAsync,
    start: Callable[[], None],
    context: ArrayOwner,
    uses: RoutineAccesses,
) -> Callable[[], bool]:
    """Return the fast path that launches a run on the device by `start`; it returns whether it did.

    It does not, and has no effect, where it would have to wait for anything but its stream. An
    error of the launch is raised by the next wait, like a failure on the device.
    """
    worker, scheduling = queue.worker, RUNTIME.scheduling
    lane = worker.lane = worker.lane or DeviceLane(worker, code)
    is_free = _independence_test(worker, context, uses)
    reads, ticks = uses.only_read, uses.ticks
    writes = tuple(buffer for _, buffer in ticks)
    event, checked_at = LaunchEvent(), -1
    event.done = True

    def step() -> bool:
        return launch_now() or (lane.is_thread_idle() and launch_now())

    def launch_now() -> bool:
        nonlocal event, checked_at
        with scheduling.lock:
            if event.done or event.is_retained or checked_at != scheduling.decisions:
                if not is_free():
                    return False
                event = lane.event
                if not _is_recorded(event, reads, writes):
                    scheduling.decisions += 1
                    hazards.record_accesses(event, reads, writes)
                event.names[name] = code
                worker.latest = event
                checked_at = scheduling.decisions
            for field, buffer in ticks:
                field.clock = buffer.tick = field.clock + 1
                field.latest = buffer
            lane.record_launch(event)
            try:
                start()
            except Exception as error:
                note = f"in the routine `{name}` on {worker.name}"
                lane.reached(event.number, Failure(_with_note(error, note)))
        return True

    return step


def _with_note(error: Exception, note: str) -> Exception:
    """Return an error with an additional note of its location."""
    if not isinstance(error, CdError):
        return error
    first, *other_diagnostics = error.diagnostics
    return type(error)(replace(first, notes=(*first.notes, note)), *other_diagnostics)


def _independence_test(
    worker: Worker, context: ArrayOwner, uses: RoutineAccesses
) -> Callable[[], bool]:
    """Return the predicate that a launch depends on nothing but its stream."""
    runtime, loads = RUNTIME, uses.loads
    writes = tuple(buffer for _, buffer in uses.ticks)
    arrays = (*uses.only_read, *writes)

    def is_in_order(event: Event) -> bool:
        return is_reported(event) or (event.worker is worker and isinstance(event, LaunchEvent))

    def is_free() -> bool:
        failure, latest = worker.failure, worker.latest
        return (
            context.live
            and (failure is None or failure.reported)
            and not worker.tasks
            and (latest.done or isinstance(latest, LaunchEvent))
            and not (runtime.is_recording or runtime.timeline)
            and not any(field.host_tick > buffer.tick for field, buffer in loads)
            and all(is_in_order(buffer.writer) for buffer in arrays)
            and not any(buffer.lent for buffer in writes)
            and all(is_in_order(reader) for buffer in writes for reader in buffer.readers.values())
        )

    return is_free


def _is_recorded(event: Event, reads: tuple[Buffer, ...], writes: tuple[Buffer, ...]) -> bool:
    """Whether an event is recorded already as the user of arrays."""
    worker = event.worker
    return all(buffer.writer is event for buffer in writes) and all(
        buffer.writer is event or (worker is not None and buffer.readers.get(worker) is event)
        for buffer in reads
    )
