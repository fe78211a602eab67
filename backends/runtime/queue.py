"""Queues of work in order, run by the threads that wait for it or one after another by a thread.

    Event := a point of a queue's work; done when everything queued before it is done
    Queue := submit(step, waits) -> Event | record | wait | query | synchronize

An inline queue has no thread: whoever waits for one of its events runs its steps up to there, so
that no lock is held while work runs and its order is that of the submissions.

What a step raises is raised once, by the next wait: for its queue, for its event, or for an array
that it should have written. What was queued behind it until then, and what waited for it in other
queues, is dropped.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from ...base.finalizers import when_gone
from .failure import Failure

_MOMENT = 0.005
"""Seconds after which who waits for a thread that is at work looks again whether it is done."""
CAPACITY = 4096
"""Steps that may wait in a queue; who submits more waits."""


class Event:
    """A point of a queue's work. Any thread may ask for it or wait for it."""

    worker: Worker | None = None
    """Who does the work; None for what is done from the start."""
    done = False
    failure: Failure | None = None
    kept = False
    """Whether anybody may ask for it later on, so that it stands for no other work than this."""

    @classmethod
    def of(cls, worker: Worker | None) -> Event:
        """Return a point of a queue's work; without a queue, what is done already."""
        event = cls()  # without an `__init__`, which takes as long as all the rest
        event.worker = worker
        event.done = worker is None
        return event

    def keep(self) -> Event:
        """Return it, kept."""
        self.kept = True
        return self

    def fail(self, failure: Failure) -> None:
        """Note why its step failed."""
        self.failure, self.kept = failure, True

    def query(self) -> bool:
        """Whether everything queued before the event is done."""
        return self.done

    def settle(self) -> Failure | None:
        """Return, when everything before it is done, what the step of the event failed of."""
        if not self.done:
            assert self.worker is not None
            self.worker.reach(self)
        return self.failure

    def wait(self) -> None:
        """Return when everything before it is done; raises what its step raised, once."""
        failure = self.settle()
        if failure is not None and not failure.told:
            raise failure.tell()


DONE = Event.of(None).keep()
"""What is done already."""


def is_over(event: Event) -> bool:
    """Whether an event is done, and somebody was told where that failed."""
    return event.done and (event.failure is None or event.failure.told)


_Task = tuple[Callable[[], object], Sequence[Event], Event, int]
"""What to run, the events to wait for before that, the event of its end, and since when."""


class Worker:
    """The tasks of a queue and who does them: a thread that starts with the first, or the waiting.

    A queue may be collected while its worker is busy; a thread ends when nothing is left to do.
    """

    def __init__(self, name: str, threaded: bool) -> None:
        self.name = name
        self.threaded = threaded
        self.tasks: deque[_Task] = deque()
        self.running: list[Event] = []
        """Those of the tasks that are being done."""
        self.failure: Failure | None = None
        self.latest = DONE
        self.direct = DONE
        """Of the last step that was not queued; see `direct`."""
        self.lane: Any = None
        """What a device of its own has of its work, in front of all tasks; see `ahead`."""
        self.thread: threading.Thread | None = None
        self.closed = False
        self._renew()

    def _renew(self) -> None:
        self.busy = threading.RLock()
        """Held by who does a task of a queue without a thread."""
        self._lock = threading.RLock()
        self._queued = threading.Condition(self._lock)
        self._ended = threading.Condition(self._lock)
        self._idle = False
        """Whether the thread sleeps until something is queued; who wakes it takes this back."""
        self._waiting = 0
        """How many threads wait for the end of a task."""

    def submit(self, run: Callable[[], object], waits: Sequence[Event]) -> Event:
        """Queue a step behind those queued so far and behind the events; return its event.

        Raises what an earlier step of the thread raised, if nobody was told of that.
        """
        event = Event.of(self)
        task = (run, waits, event, time.monotonic_ns())
        if not self.threaded:
            self.tasks.append(task)
            self.latest = event
            return event
        with self._lock:
            if self.failure is not None and not self.failure.told:
                raise self.failure.tell()
            self.tasks.append(task)
            self.latest = event
            if self._idle:
                self._idle = False
                self._queued.notify()
            elif self.thread is None:
                self.thread = threading.Thread(target=self._work, name=self.name, daemon=True)
                self.thread.start()
        return event

    def make_room(self) -> None:
        """Return when fewer steps than the most are waiting."""
        if len(self.tasks) >= CAPACITY and self.threaded and not self._is_me():
            self._watch(lambda: len(self.tasks) < CAPACITY)

    def _is_me(self) -> bool:
        """Whether the caller is a step that this thread does."""
        return threading.current_thread() is self.thread

    def _watch(self, reached: Callable[[], bool], most: float | None = None) -> None:
        """Return when the thread has done enough, or so many seconds are over."""
        with self._lock:
            self._waiting += 1
            try:
                self._ended.wait_for(reached, most)
            finally:
                self._waiting -= 1

    def rests(self) -> bool:
        """Whether the thread has done all that is queued so far, or does it in a moment."""
        latest = self.latest
        if not latest.done and not self._is_me():
            self._watch(latest.query, _MOMENT)
        return latest.done

    def reach(self, event: Event) -> None:
        """Return when an event of this worker is done; without a thread, do what is before it."""
        if self.threaded and self._is_me():
            raise RuntimeError(f"a step of {self.name} waits for its own end")
        if self.threaded:
            self._watch(event.query)
            return
        while not event.done:
            if not self._is_at_work(event):  # what waits for it does not hold it up
                for other in self._first_waits():
                    other.settle()  # before the lock is held: who does that work may wait for ours
            if self.busy.acquire(timeout=_MOMENT):
                try:
                    self._proceed(event)
                finally:
                    self.busy.release()

    def _is_at_work(self, event: Event) -> bool:
        """Whether the work of an event is being done, by whatever thread."""
        return event is self.direct or event in self.running

    def _first_waits(self) -> Sequence[Event]:
        """Return what the first task has to wait for, as long as it is the first."""
        try:
            return self.tasks[0][1]
        except IndexError:
            return ()

    def _proceed(self, event: Event) -> None:
        """Do the first task of a queue without a thread if it has nothing to wait for."""
        if event.done:
            return
        if not self.tasks or self._is_at_work(event):
            raise RuntimeError(f"a step of {self.name} waits for its own end")
        if all(other.done for other in self._first_waits()):
            self._next()

    def _next(self) -> None:
        """Do the next task of a queue without a thread. What fails concerns who submitted it."""
        task = self.tasks[0]
        _, _, event, _ = task
        self.running.append(event)  # first: it is always among those to be done, or at work
        self.tasks.popleft()
        try:
            event.failure = _failure_of(task)
        finally:
            event.done = True  # first, too: who finds it neither done nor at work would wait for
            self.running.pop()  # what waits for it

    def _work(self) -> None:
        """Do the tasks of a thread; what is done is not kept until the next one comes."""
        while (task := self._taken()) is not None:
            _, _, event, _ = task
            failure = None if self.lane is None else self.lane.before(task[3])
            if failure is None:
                failure = _failure_of(task)
            del task  # while no lock is held: what it kept alive may be another queue
            self._end(event, failure)

    def _taken(self) -> _Task | None:
        """Return the next task when there is one; None where there will be none."""
        with self._lock:
            while not self.tasks:
                if self.closed:
                    return None
                self._idle = True
                self._queued.wait()
                self._idle = False
            task = self.tasks.popleft()
            self.running.append(task[2])
            return task

    def _end(self, event: Event, failure: Failure | None) -> None:
        """Let those who wait know that a task is done."""
        dropped: Sequence[_Task] = ()
        with self._lock:
            self.running.clear()
            if failure is not None:
                event.failure = failure
                dropped = self._drop(failure)
            event.done = True
            if self._waiting:
                self._ended.notify_all()
        del dropped  # without the lock, see above

    def _drop(self, failure: Failure) -> Sequence[_Task]:
        """Give up what was queued before anybody was told, and return it: it builds on that."""
        self.failure = failure
        dropped = []
        while self.tasks and (not failure.told or self.tasks[0][3] <= failure.when):
            dropped.append(self.tasks.popleft())
            _, _, event, _ = dropped[-1]
            event.failure = failure
            event.done = True
        return dropped

    def synchronize(self) -> None:
        """Return when everything submitted so far is done; raises what failed, once."""
        failure = self.drain() if self.threaded else self.latest.keep().settle()
        if failure is not None and not failure.told:
            raise failure.tell()

    def drain(self) -> Failure | None:
        """Return when everything submitted so far is done; what failed last, if anything did."""
        return self.latest.keep().settle() or self.failure

    def close(self) -> None:
        """Let the thread end when its queue is empty."""
        with self._lock:
            self.closed = True
            self._queued.notify()

    def after_fork(self, failure: Failure) -> None:
        """Make whole again in a forked child, which has no thread: what was queued is given up.

        The locks of the parent may be held by threads that are not here, so they are not asked.
        """
        self._renew()
        if self.lane is not None:
            self.lane.give_up(failure)
        queued = (event for _, _, event, _ in self.tasks)
        given_up = [event for event in (*self.running, *queued, self.direct) if not event.done]
        self.running, self.tasks, self.thread = [], deque(), None
        for event in given_up:
            event.fail(failure)
            event.done = True
        if given_up:
            self.failure = failure


def _failure_of(task: _Task) -> Failure | None:
    """Run a step unless something that it waits for failed; return the failure."""
    run, waits, _, _ = task
    for event in waits:
        failure = event.settle()
        if failure is not None:
            return failure
    try:
        run()
    except BaseException as error:  # whatever it is, it is raised where somebody waits
        return Failure(error)
    return None


class Queue:
    """Work in order. Raises at a wait what its work raised, once."""

    def __init__(self, name: str, threaded: bool) -> None:
        self.name = name
        self.worker = Worker(name, threaded)
        self._open = when_gone(self.worker.close) if threaded else None

    @property
    def threaded(self) -> bool:
        """Whether a thread of its own runs the work; otherwise it is done when it is submitted."""
        return self.worker.threaded

    def submit(self, run: Callable[[], object], waits: Sequence[Event] = ()) -> Event:
        """Queue a step, which starts when the events are done; return the event of its end.

        An inline queue runs it now. Raises what an earlier step raised that nobody was told of.
        """
        self.worker.make_room()
        event = self.worker.submit(run, waits)
        self.flush(event)
        return event

    def flush(self, event: Event) -> None:
        """Let an inline queue do its work up to an event, now; raises what that raises."""
        if not self.worker.threaded:
            event.wait()

    def record(self) -> Event:
        """Return an event for everything submitted so far."""
        return self.worker.latest.keep()

    def wait(self, event: Event) -> None:
        """Let everything submitted from now on start only when the event is done."""
        if event.worker is not self.worker and not (event.done and event.failure is None):
            self.submit(_nothing, (event,))

    def query(self) -> bool:
        """Whether everything submitted so far is done."""
        return self.worker.latest.query()

    def synchronize(self) -> None:
        """Return when everything submitted so far is done; raises what failed, once."""
        self.worker.synchronize()

    def __repr__(self) -> str:
        return f"<{type(self).__name__.lower()} {self.name}>"


def _nothing() -> None:
    """Do nothing: the step that only waits."""
