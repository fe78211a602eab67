"""Calls of a routine that a device does by itself, in order, while the host goes on.

A stream of a device is a queue already. What the host knows all of is put there by who calls the
routine; nobody waits for its end but who needs it: another stream, the host, or whatever goes by
the thread of the stream, which lets the device finish first. All that is on the device of a stream
has one event: it stands for the newest of it.

That nothing is in the way is found out once, as in `direct`, and holds as long as nobody has taken
the lock of scheduling, the event is not reached, and nobody has kept it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...base.diagnostic import CdError
from ..interface import RunsAhead
from . import hazards
from .failure import Failure
from .memory import Buffer
from .prepared_calls import Living, Uses
from .queue import Event, Queue, Worker, is_over
from .state import RUNTIME


class Ahead(Event):
    """A point of a device's stream."""

    lane: Lane
    number = 0
    """Of the newest run that it stands for."""
    names: dict[str, RunsAhead]
    """The routines that it stands for, with their code."""

    def query(self) -> bool:
        """Whether everything queued before the event is done; asks the device."""
        if not self.done and self.lane.is_finished():
            self.lane.settle()
        return self.done

    def settle(self) -> Failure | None:
        """Return, when everything before it is done, what the device failed of."""
        if not self.done:
            self.lane.settle()
        return self.failure


class Lane:
    """What is on the device of a stream that nobody has waited for."""

    def __init__(self, worker: Worker, code: RunsAhead) -> None:
        self.worker = worker
        self._finish, self._is_finished = code.finish, code.is_finished
        self._number = 0
        self._patient = True
        self._events: list[Ahead] = []
        """Those that are not reached; the last one stands for what comes next."""

    @property
    def event(self) -> Ahead:
        """The event of the next run; who calls this holds the lock of scheduling."""
        if not self._events or self._events[-1].kept:
            event = Ahead()
            event.worker, event.lane, event.names = self.worker, self, {}
            self._events.append(event)
        return self._events[-1]

    def begun(self, event: Ahead) -> None:
        """Note that one more run is on the device."""
        self._number += 1
        event.number, self._patient = self._number, True

    def is_finished(self) -> bool:
        """Whether the device has done all; what it failed of is for who waits."""
        try:
            return self._is_finished()
        except Exception:
            return True

    def settle(self) -> Failure | None:
        """Return, when all that is there now is done, what the device failed of."""
        if not self._events:
            return None
        number, failure = self._number, None
        codes = {name: code for event in self._events for name, code in event.names.items()}
        names = ", ".join(f"`{name}`" for name in codes)
        finish = next((code.finish for code in codes.values()), self._finish)
        try:
            finish()  # by who is queued there: what fails is told as of it
        except Exception as error:  # whatever it is, it is raised where somebody waits
            note = f"of {names}, not waited for on {self.worker.name}"
            failure = Failure(_noted(error, note))
        self.reached(number, failure)
        return failure

    def before(self, when: int) -> Failure | None:
        """Wait for all in front of a task of the thread; return why it is dropped, if it is.

        It was queued at that time: it is dropped where it builds on what failed.
        """
        failure = self.settle() or self.worker.failure
        dropped = failure is not None and (not failure.told or when <= failure.when)
        return failure if dropped else None

    def is_alone(self) -> bool:
        """Whether the thread of the stream has nothing to do, now or in a moment.

        What goes by the thread keeps it at work for what comes next, so it is worth a moment. Who
        waited for nothing does not wait again, until there was something to gain.
        """
        self._patient = self._patient and self.worker.rests()
        return self._patient

    def reached(self, number: int, failure: Failure | None) -> None:
        """Note that all runs up to a number are done, or failed."""
        scheduling = RUNTIME.scheduling
        scheduling.acquire()
        try:
            done = [one for one in self._events if one.number <= number]
            self._events = [one for one in self._events if one.number > number]
            if failure is not None and done:
                self.worker.failure = failure
            for event in done:
                if failure is not None:
                    event.fail(failure)
                event.done = True
        finally:
            scheduling.release()

    def give_up(self, failure: Failure) -> None:
        """Fail, in a forked child, what is on the device of the parent."""
        self.reached(self._number, failure)


def ahead(
    queue: Queue, name: str, code: RunsAhead, start: Callable[[], None], context: Living, uses: Uses
) -> Callable[[], bool]:
    """Return what puts a run on the device now, by `start`, and says whether it could.

    It could not, and did nothing, where it has to wait for something else than its stream. Where
    the device refuses it, the next wait is told, as of what fails there.
    """
    worker, scheduling = queue.worker, RUNTIME.scheduling
    lane = worker.lane = worker.lane or Lane(worker, code)
    is_free = _freedom(worker, context, uses)
    reads, ticks = uses.only_read, uses.ticks
    writes = tuple(buffer for _, buffer in ticks)
    event, seen = Ahead(), -1
    event.done = True

    def step() -> bool:
        return at_once() or (lane.is_alone() and at_once())

    def at_once() -> bool:
        nonlocal event, seen
        scheduling.acquire()
        try:
            if event.done or event.kept or seen != scheduling.taken:
                if not is_free():
                    return False
                event = lane.event
                if not _is_noted(event, reads, writes):
                    scheduling.taken += 1
                    hazards.note(event, reads, writes)
                event.names[name] = code
                worker.latest = event
                seen = scheduling.taken
            for field, buffer in ticks:
                field.clock = buffer.tick = field.clock + 1
                field.latest = buffer
            lane.begun(event)
            try:
                start()
            except Exception as error:
                note = f"in the routine `{name}` on {worker.name}"
                lane.reached(event.number, Failure(_noted(error, note)))
        finally:
            scheduling.release()
        return True

    return step


def _noted(error: Exception, note: str) -> Exception:
    """Return an error that also says where it happened."""
    if not isinstance(error, CdError):
        return error
    first, *others = error.diagnostics
    return type(error)(replace(first, notes=(*first.notes, note)), *others)


def _freedom(worker: Worker, context: Living, uses: Uses) -> Callable[[], bool]:
    """Return what says whether nothing but what is on the stream is in the way of a run."""
    runtime, loads = RUNTIME, uses.loads
    writes = tuple(buffer for _, buffer in uses.ticks)
    used = (*uses.only_read, *writes)

    def is_in_order(event: Event) -> bool:
        return is_over(event) or (event.worker is worker and isinstance(event, Ahead))

    def is_free() -> bool:
        failure, latest = worker.failure, worker.latest
        return (
            context.live
            and (failure is None or failure.told)
            and not worker.tasks
            and (latest.done or isinstance(latest, Ahead))
            and not (runtime.is_recording or runtime.timeline)
            and not any(field.host_tick > buffer.tick for field, buffer in loads)
            and all(is_in_order(buffer.writer) for buffer in used)
            and not any(buffer.lent for buffer in writes)
            and all(is_in_order(one) for buffer in writes for one in buffer.readers.values())
        )

    return is_free


def _is_noted(event: Event, reads: tuple[Buffer, ...], writes: tuple[Buffer, ...]) -> bool:
    """Whether it is known already that the work of an event uses arrays."""
    worker = event.worker
    return all(one.writer is event for one in writes) and all(
        one.writer is event or (worker is not None and one.readers.get(worker) is event)
        for one in reads
    )
