"""In-order work queues, run by a thread or, inline, by the threads that wait for them.

    Event := a point in a queue's work; done when everything queued before it is done
    Queue := submit(step, waits) -> Event | record | wait | query | synchronize

An inline queue has no thread: a thread that waits for one of its events runs its steps up to there,
so that no lock is held while work runs, in the order of submission.

The error of a step is raised once, by the next wait: for its queue, for its event, or for an array
that it was to write. Work queued after it until then, and work that depends on it in other queues,
is dropped: it ends without being run, but no sooner than what it waits for.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from ...base.finalizers import call_when_unreachable
from .failure import Failure

_POLL_SECONDS = 0.005
"""The polling interval in seconds of a wait for a busy thread."""
MAX_PENDING = 4096
"""The most pending steps of a queue; a further submission blocks."""


class Event:
    """A point in a queue's work; any thread may query it or wait for it."""

    worker: Worker | None = None
    """The worker of the queue; None for an event that is done from the start."""
    done = False
    failure: Failure | None = None
    is_retained = False
    """Whether it may be queried later, so that it must not be reused for other work."""

    @classmethod
    def of(cls, worker: Worker | None) -> Event:
        """Return an event of a worker; without one, an event that is done."""
        event = cls()  # no `__init__`, which would double the time
        event.worker = worker
        event.done = worker is None
        return event

    def keep(self) -> Event:
        """Mark it as kept; return it."""
        self.is_retained = True
        return self

    def fail(self, failure: Failure) -> None:
        """Record the failure of its step."""
        self.failure, self.is_retained = failure, True

    def query(self) -> bool:
        """Whether everything queued before the event is done."""
        return self.done

    def settle(self) -> Failure | None:
        """Wait until everything before it is done; return the failure of its step, if any."""
        if not self.done:
            assert self.worker is not None
            self.worker.reach(self)
        return self.failure

    def wait(self) -> None:
        """Wait until everything before it is done; raises the error of its step, once."""
        failure = self.settle()
        if failure is not None and not failure.reported:
            raise failure.tell()


DONE = Event.of(None).keep()
"""An event that is done."""


def is_reported(event: Event) -> bool:
    """Whether an event is done and its failure, if any, has been reported."""
    return event.done and (event.failure is None or event.failure.reported)


class WakeUps:
    """What threads sleep on until something has changed.

    It has no lock: a condition variable that an interrupt leaves may be broken.
    """

    __slots__ = ("_sleepers",)

    def __init__(self) -> None:
        self._sleepers: list[SimpleQueue[None]] = []

    def note(self) -> None:
        """Wake up whoever waits: something has changed."""
        for sleeper in tuple(self._sleepers):
            sleeper.put(None)

    def wait_for(self, reached: Callable[[], bool], most: float | None = None) -> None:
        """Wait until a condition holds that changes before a `note` only, or for `most` seconds."""
        if reached():
            return
        until = None if most is None else time.monotonic() + most
        sleeper = SimpleQueue[None]()
        try:
            self._sleepers.append(sleeper)  # first: what changes from now on wakes it up
            while not reached():
                rest = None if until is None else until - time.monotonic()
                if rest is not None and rest <= 0:
                    return
                with suppress(Empty):
                    sleeper.get(timeout=rest)
        finally:
            with suppress(ValueError):
                self._sleepers.remove(sleeper)


class Holder(Protocol):
    """A use of arrays by the code of one thread, which has to end it; see `hazards.Hold`."""

    @property
    def is_of_thread(self) -> bool:
        """Whether the calling thread has to end it."""

    @property
    def is_released(self) -> bool:
        """Whether it has ended."""

    def begin_wait(self, event: Event) -> None:
        """Record what its thread waits for; raises CdBackendError where that waits for its end."""

    def end_wait(self) -> None:
        """Record that its thread does not wait any more."""


@contextmanager
def waiting(holds: Sequence[Holder], event: Event) -> Iterator[None]:
    """Refuse a wait for an event, in the `with`, that waits for what the thread itself holds."""
    own = [hold for hold in tuple(holds) if hold.is_of_thread]
    try:
        for hold in own:
            hold.begin_wait(event)
        yield
    finally:
        for hold in own:
            hold.end_wait()


_Task = tuple[Callable[[], object], Sequence[Event], Event, int]
"""The step, the events to wait for, the event of its end, and the time of submission."""


class Worker:
    """The tasks of a queue, and the thread that runs them, which starts with the first; inline
    queues have none.

    A queue may be collected while its worker is busy; the thread then ends when it has no tasks.
    """

    def __init__(self, name: str, threaded: bool) -> None:
        self.name = name
        self.threaded = threaded
        self.tasks: deque[_Task] = deque()
        self.running: list[Event] = []
        """The events of the tasks being run."""
        self.failure: Failure | None = None
        self.latest = DONE
        self.direct = DONE
        """The event of the last step that bypassed the queue; see `direct`."""
        self.lane: Any = None
        """The work on the device, ahead of all tasks; see `async_dispatch`."""
        self.holds: Sequence[Holder] = ()
        """The uses of arrays by foreign code in the process, for streams; see `hazards.Hold`."""
        self._awaited: Sequence[Event] = ()
        """What the task that the thread runs waits for, or did."""
        self.thread: threading.Thread | None = None
        self._started: threading.Thread | None = None
        """The thread that was started last, which an interrupt may have kept from running."""
        self.closed = False
        self.listeners: list[Callable[[], None]] = []
        """What is called, without locks, whenever steps of the thread have ended."""
        self._create_locks()

    def _create_locks(self) -> None:
        self.busy = threading.RLock()
        """Held by the thread that runs a task of an inline queue."""
        self._lock = threading.RLock()
        self._wakes: SimpleQueue[None] = SimpleQueue()
        """What the thread sleeps on: an interrupt of a submission cannot break it."""
        self._ends = WakeUps()
        """What waits for the end of a task sleeps on it."""
        self._idle = False
        """Whether the thread sleeps until a task is queued; reset by whoever wakes it."""

    def submit(self, run: Callable[[], object], waits: Sequence[Event]) -> Event:
        """Queue a step after those queued so far and after the events; return its event.

        Raises the unreported error of an earlier step of the thread.
        """
        event = Event.of(self)
        task = (run, waits, event, time.monotonic_ns())
        if not self.threaded:
            self.tasks.append(task)
            self.latest = event
            return event
        with self._lock:
            if self.failure is not None and not self.failure.reported:
                raise self.failure.tell()
            if self.thread is None:
                self._start_thread()
            self.tasks.append(task)
            self.latest = event
            if self._idle:
                self._wakes.put(None)  # first: an interrupt in between loses no wake-up
                self._idle = False
        return event

    def _start_thread(self) -> None:
        """Start the thread, unless one is on its way: the first one that runs is the thread."""
        if self._started is not None and self._started.is_alive():
            return
        self._started = threading.Thread(target=self._run_tasks, name=self.name, daemon=True)
        try:
            self._started.start()
        except (RuntimeError, KeyError) as problem:
            if problem.__context__ is None:
                raise
            # An interrupt, which broke its condition variable, or came when it had begun: then
            # `start` takes it out of a table that it has left by itself.
            raise problem.__context__ from None

    def wait_for_slot(self) -> None:
        """Wait until fewer than `MAX_PENDING` steps are pending."""
        if len(self.tasks) >= MAX_PENDING and self.threaded and not self._is_current_thread():
            with waiting(self.holds, self.latest):
                self._wait_for(lambda: len(self.tasks) < MAX_PENDING)

    def _is_current_thread(self) -> bool:
        """Whether the caller is a step that this thread runs."""
        return threading.current_thread() is self.thread

    def _wait_for(self, reached: Callable[[], bool], most: float | None = None) -> None:
        """Wait until a condition of the thread's progress holds, or for `most` seconds."""
        if self._idle and self.tasks:  # its submission was interrupted
            self._wakes.put(None)
        self._ends.wait_for(reached, most)

    def is_idle_soon(self) -> bool:
        """Whether the thread is idle, or becomes so within `_POLL_SECONDS`."""
        latest = self.latest  # asked without our lock: a device takes that of scheduling
        if not latest.query() and not self._is_current_thread():
            self._wait_for(lambda: latest.done, _POLL_SECONDS)
        return latest.query()

    def reach(self, event: Event) -> None:
        """Wait until an event of this worker is done; an inline queue runs its tasks up to it."""
        if self.threaded and self._is_current_thread():
            raise RuntimeError(f"a step of {self.name} waits for its own end")
        if self.threaded:
            with waiting(self.holds, event) if self.holds else nullcontext():
                self._wait_for(event.query)
            return
        try:
            while not event.done:
                if not self._is_running(event):  # a running step must not wait for its waiters
                    for dependence in self._first_dependences():
                        dependence.settle()  # without the lock: that work may wait for ours
                if self.busy.acquire(timeout=_POLL_SECONDS):
                    try:
                        self._run_first_ready(event)
                    finally:
                        self.busy.release()
        except BaseException:
            self.release_unused()
            raise

    def release_unused(self) -> None:
        """Release the lock of an inline queue that an interrupt has left between its acquisition
        and what follows, while nothing runs."""
        busy: Any = self.busy  # `_is_owned` is what `threading.Condition` asks, too
        if busy._is_owned() and not self.running and self.direct.done:
            self.busy.release()

    def awaited_before(self, event: Event) -> list[Event]:
        """Return the events that the tasks up to one's wait for, of those that have not ended."""
        with self._lock:
            awaited = list(self._awaited)
            if event in self.running:
                return awaited
            for _, waits, queued, _ in tuple(self.tasks):
                awaited += waits
                if queued is event:
                    return awaited
        return []  # it is done, or went past the queue

    def _is_running(self, event: Event) -> bool:
        """Whether the step of an event is being run, by any thread."""
        return event is self.direct or event in self.running

    def _first_dependences(self) -> Sequence[Event]:
        """Return the events that the first task waits for, () without tasks."""
        try:
            return self.tasks[0][1]
        except IndexError:
            return ()

    def _run_first_ready(self, event: Event) -> None:
        """Run the first task of an inline queue if it has nothing to wait for."""
        if event.done:
            return
        if not self.tasks or self._is_running(event):
            raise RuntimeError(f"a step of {self.name} waits for its own end")
        if all(dependence.done for dependence in self._first_dependences()):
            self._run_next()

    def _run_next(self) -> None:
        """Run the next task of an inline queue; a failure is recorded in its event only."""
        task = self.tasks[0]
        _, _, event, _ = task
        try:
            self.running.append(event)  # first: it is always either pending or running
            self.tasks.popleft()
            event.failure = _run_task(task)
        except BaseException as error:  # an interrupt between two lines
            event.fail(Failure(error, quiet=True))
            if self.tasks and self.tasks[0] is task:
                self.tasks.popleft()
            raise
        finally:
            event.done = True  # first, too: a waiter that finds it neither done nor running would
            with suppress(ValueError):  # wait for tasks that depend on it
                self.running.remove(event)

    def _run_tasks(self) -> None:
        """Run the tasks of a thread; a finished task is released before waiting for the next."""
        with self._lock:
            if self.thread is not None:
                return
            self.thread = threading.current_thread()
        while (task := self._take_task()) is not None:
            _, _, event, _ = task
            failure = (
                self._cause_to_drop(task[3]) if self.lane is None else self.lane.before(task[3])
            )
            if failure is None:
                failure = _run_task(task)
            else:
                _await_dependences(task)
            del task  # while no lock is held: it may hold the last reference to a queue
            self._finish_task(event, failure)

    def _take_task(self) -> _Task | None:
        """Wait for the next task and return it; None where the queue is closed."""
        while True:
            with self._lock:
                self._idle = False
                if self.tasks:
                    task = self.tasks.popleft()
                    self.running.append(task[2])
                    self._awaited = task[1]
                    return task
                if self.closed:
                    return None
                self._idle = True
            self._wakes.get()

    def _finish_task(self, event: Event, failure: Failure | None) -> None:
        """Record the end of a task, and notify waiting threads."""
        dropped: Sequence[_Task] = ()
        with self._lock:
            self.running.clear()
            self._awaited = ()
            if failure is not None:
                event.failure = failure
                dropped = self._drop(failure)
            event.done = True
        del dropped  # while no lock is held, see above
        self._ends.note()
        for listener in tuple(self.listeners):
            listener()

    def _cause_to_drop(self, when: int) -> Failure | None:
        """Return the failure that drops a task which was queued at a time, None where none does."""
        failure = self.failure
        is_dropped = failure is not None and (not failure.reported or when <= failure.when)
        return failure if is_dropped else None

    def _drop(self, failure: Failure) -> Sequence[_Task]:
        """Drop and return the tasks queued before the failure was reported: they depend on it.

        From the first one on that has to wait for something, the thread drops them in their turn.
        """
        self.failure = failure
        dropped = []
        while self.tasks and self._cause_to_drop(self.tasks[0][3]):
            if not all(event.done for event in self.tasks[0][1]):
                break
            dropped.append(self.tasks.popleft())
            _, _, event, _ = dropped[-1]
            event.failure = failure
            event.done = True
        return dropped

    def synchronize(self) -> None:
        """Wait until everything submitted so far is done; raises a failure, once."""
        failure = self.drain() if self.threaded else self.latest.keep().settle()
        if failure is not None and not failure.reported:
            raise failure.tell()

    def drain(self) -> Failure | None:
        """Wait until everything submitted so far is done; return the last failure, if any."""
        return self.latest.keep().settle() or self.failure

    def close(self) -> None:
        """Let the thread end when its queue is empty."""
        with self._lock:
            self.closed = True
            self._wakes.put(None)

    def after_fork(self, failure: Failure) -> None:
        """Reset in a forked child, which has no thread: queued work fails.

        The locks may be held by threads of the parent, so they are replaced, not acquired.
        """
        self._create_locks()
        if self.lane is not None:
            self.lane.give_up(failure)
        queued = (event for _, _, event, _ in self.tasks)
        given_up = [event for event in (*self.running, *queued, self.direct) if not event.done]
        self.running, self.tasks, self.thread, self._started = [], deque(), None, None
        for event in given_up:
            event.fail(failure)
            event.done = True
        if given_up:
            self.failure = failure


def _run_task(task: _Task) -> Failure | None:
    """Run a step unless an event that it waits for failed; return the failure."""
    run, _, _, _ = task
    failure = _await_dependences(task)
    if failure is not None:
        return failure
    try:
        run()
    except BaseException as error:  # any error is raised by the wait for it
        return Failure(error)
    return None


def _await_dependences(task: _Task) -> Failure | None:
    """Wait for all events that a step waits for; return the first failure among them.

    All of them, as what comes after the step relies on its end alone.
    """
    _, waits, _, _ = task
    first = None
    for event in waits:
        failure = event.settle()
        first = first or failure
    return first


class Queue:
    """An in-order queue of work. The error of a step is raised by a wait, once."""

    def __init__(self, name: str, threaded: bool) -> None:
        self.name = name
        self.worker = Worker(name, threaded)
        self._open = call_when_unreachable(self.worker.close) if threaded else None

    @property
    def threaded(self) -> bool:
        """Whether a thread of the queue runs the work; otherwise it is run when it is submitted."""
        return self.worker.threaded

    def submit(self, run: Callable[[], object], waits: Sequence[Event] = ()) -> Event:
        """Queue a step, which starts when the events are done; return the event of its end.

        An inline queue runs it now. Raises the unreported error of an earlier step.
        """
        self.worker.wait_for_slot()
        event = self.worker.submit(run, waits)
        self.flush(event)
        return event

    def flush(self, event: Event) -> None:
        """Run the work of an inline queue up to an event; raises its error."""
        if not self.worker.threaded:
            event.wait()

    def record(self) -> Event:
        """Return an event for everything submitted so far."""
        return self.worker.latest.keep()

    def wait(self, event: Event) -> None:
        """Make everything submitted from now on wait for the event."""
        if event.worker is not self.worker and not (event.done and event.failure is None):
            self.submit(_do_nothing, (event,))

    def query(self) -> bool:
        """Whether everything submitted so far is done."""
        return self.worker.latest.query()

    def synchronize(self) -> None:
        """Wait until everything submitted so far is done; raises a failure, once."""
        self.worker.synchronize()

    def __repr__(self) -> str:
        return f"<{type(self).__name__.lower()} {self.name}>"


def _do_nothing() -> None:
    """Do nothing: the step of a pure wait."""
