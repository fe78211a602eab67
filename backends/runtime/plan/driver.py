"""Runs of plans: the steps of a body are issued to its streams, loops and branches in between.

The driver is the thread that runs a plan. It issues nodes in the order of the schedule, each as
soon as what it waits for has been issued, and runs the steps of stream 0 itself; other streams have
threads. A loop or a branch is a generator that yields the events that it waits for: while it waits,
only the nodes that depend on it, or come after it on its stream, are held back.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Container, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, assert_never

import numpy as np

from ....base.diagnostic import CdError, CdIndexError, CdTypeError, CdValueError, Diagnostic
from ...device_arrays.copies import copy
from ..failure import Failure
from ..queue import DONE, Event, WakeUps
from ..state import RUNTIME
from .carrying import Carrying
from .run_record import RunRecord
from .steps import Body, Branch, Frame, Loop, Run, Step

RUN_AHEAD = 4
"""How many iterations of a loop are issued before the first of them has ended."""
Waiting = Generator[Sequence[Event], None, None]
"""Yields the events that it waits for; resumed when one of them is done."""


class _OwnEvent(Event):
    """The end of a step that the driver runs itself."""

    progress: WakeUps

    def settle(self) -> Failure | None:
        """Wait until the driver has run the step; return its failure, if any."""
        if not self.done:
            self.progress.wait_for(lambda: self.done)
        return self.failure


class Lane(ABC):
    """Where the steps of one stream are issued to."""

    stream: Any
    """The stream whose memory and name it has."""
    tail: Event
    """The end of what was issued last."""

    @abstractmethod
    def issue(self, run: Run, waits: Sequence[Event]) -> Event:
        """Issue work after what was issued before and after events; return its end."""


class OwnLane(Lane):
    """The lane whose steps the driver runs itself."""

    def __init__(self, stream: Any, progress: WakeUps) -> None:
        self.stream, self.tail, self.progress = stream, DONE, progress
        self._tasks: deque[tuple[Run, Sequence[Event], Event]] = deque()

    def issue(self, run: Run, waits: Sequence[Event]) -> Event:
        """Queue a step for the driver."""
        event = _OwnEvent()
        event.progress = self.progress
        if self.tail is not DONE:
            waits = (*waits, self.tail)  # for its failure
        self._tasks.append((run, waits, event))
        self.tail = event
        return event

    @property
    def is_ready(self) -> bool:
        """Whether there is a step that has nothing to wait for."""
        return bool(self._tasks) and all(event.done for event in self._tasks[0][1])

    def run_next(self) -> bool:
        """Run the first step, if there is one and it has nothing to wait for; return whether."""
        if not self.is_ready:
            return False
        run, waits, event = self._tasks[0]
        try:
            event.failure = next((e.failure for e in waits if e.failure is not None), None)
            if event.failure is None:
                run()
        except BaseException as error:  # raised at the end of the run
            event.failure = Failure(error)
        finally:  # whatever interrupts it
            event.done = True
            if self._tasks and self._tasks[0][2] is event:
                self._tasks.popleft()
            self.progress.note()
        return True

    def abandon(self, failure: Failure) -> None:
        """Drop the steps that have not been run: they count as failed."""
        while self._tasks:
            *_, event = self._tasks[0]
            event.failure, event.done = failure, True
            self._tasks.popleft()
        self.progress.note()


class QueueLane(Lane):
    """The lane of a stream with a thread."""

    def __init__(self, stream: Any) -> None:
        self.stream, self.tail = stream, DONE

    def issue(self, run: Run, waits: Sequence[Event]) -> Event:
        """Queue a step on the stream; where an earlier one failed, it counts as failed, too."""
        try:
            self.tail = self.stream.worker.submit(run, tuple(waits))
        except BaseException as error:  # of an earlier step: it drops what comes later
            self.tail = Event.of(None)
            self.tail.fail(Failure(error))
        return self.tail

    def drain(self) -> Failure | None:
        """Wait for everything issued; return the failure of a step, which counts as reported."""
        failure: Failure | None = self.stream.worker.drain()
        if failure is None or failure.reported:
            return None
        failure.tell()
        return failure


class _Failed(Exception):
    """A step that a loop or a branch waits for has failed."""

    def __init__(self, failure: Failure) -> None:
        super().__init__()
        self.failure = failure


class Driver:
    """One run of a plan: its lanes, and the steps of its bodies."""

    def __init__(
        self,
        own: OwnLane,
        lanes: Mapping[Body, Sequence[Lane | None]],
        is_cancelled: Callable[[], bool],
        record: RunRecord,
    ) -> None:
        self.own, self.lanes, self.record = own, lanes, record
        """The lanes of the streams of each body; None where it is that of the node around."""
        self.is_cancelled = is_cancelled

    def run(self, body: Body, frame: Frame) -> None:
        """Run a body to its end.

        Raises, after all of its lanes have ended, what a predicate raises, or a step, the first one
        in the order of its stream.
        """
        queues = {lane for lanes in self.lanes.values() for lane in lanes if lane is not None}
        others = [lane for lane in queues if isinstance(lane, QueueLane)]
        outside, progress = RUNTIME.planned(), self.own.progress
        try:
            for lane in others:
                lane.stream.worker.listeners.append(progress.note)
            failure = self._run_to_end(body, frame, others)
        except BaseException as error:  # of a predicate, or an interrupt, which may come anywhere
            dropped = Failure(error, quiet=True)
            dropped.tell()
            self.own.abandon(dropped)
            for lane in others:
                lane.drain()
            raise
        finally:
            if RUNTIME.planned() is not outside:  # an interrupt of a predicate left it
                RUNTIME.plan(outside)
            for lane in others:
                with suppress(ValueError):
                    lane.stream.worker.listeners.remove(progress.note)
        if failure is not None:
            raise failure.tell()

    def _run_to_end(self, body: Body, frame: Frame, others: Sequence[QueueLane]) -> Failure | None:
        """Run a body until all of its lanes have ended; return the failure of a step, if any."""
        failure: Failure | None = None
        try:
            self._drive(self._body(body, frame, self.own, ()))
        except _Failed as problem:
            failure = problem.failure
        self._drive(iter(()))
        failure = failure or self.own.tail.failure
        for lane in others:
            failure = lane.drain() or failure
        return failure

    def _drive(self, waiting: Iterator[Sequence[Event]]) -> None:
        """Resume a generator whenever what it waits for is done, and run the steps of stream 0."""
        own, progress = self.own, self.own.progress
        awaited: Sequence[Event] = ()
        while True:
            if not awaited or any(event.done for event in awaited):
                try:
                    awaited = next(waiting)
                except StopIteration:
                    break
            elif not own.run_next():
                progress.wait_for(partial(_can_go_on, awaited, own))
        while not own.tail.done:
            if not own.run_next():
                progress.wait_for(partial(_can_go_on, (), own))

    def _body(self, body: Body, frame: Frame, home: Lane, begins: Sequence[Event]) -> Waiting:
        """Issue a body, whose stream 0 is `home` where that is on its device, after events."""
        lanes = [lane or home for lane in self.lanes[body]]
        schedule, nodes = body.schedule, body.nodes
        begins = (*begins, home.tail) if any(lane is not home for lane in lanes) else begins
        if not body.has_control_flow:
            self._issue_all(body, frame, home, lanes, begins)
            return
        events: list[Event | None] = [None] * len(nodes)
        active: dict[int, tuple[Waiting, Sequence[Event]]] = {}
        remaining: Sequence[int] = schedule.order
        begun = {id(home)}
        while True:
            held = {id(lanes[schedule.streams[at][0]]) for at in active}
            later = []
            for at in remaining:
                lane = lanes[schedule.streams[at][0]]
                waits = [events[p] for p in schedule.waits[at]]
                if id(lane) in held or None in waits:
                    held.add(id(lane))
                    later.append(at)
                    continue
                known = [event for event in waits if event is not None]
                if id(lane) not in begun:
                    begun.add(id(lane))
                    known += begins
                if self.is_cancelled():
                    later = []
                    break
                node = nodes[at]
                if isinstance(node, Step):
                    events[at] = self._issue(body, at, frame, lane, known)
                    continue
                control = self._control(node, frame, lane, known)
                if (awaited := next(control, None)) is None:
                    events[at] = lane.tail
                else:
                    active[at] = control, awaited
                    held.add(id(lane))
            remaining = later
            if not active:
                break
            yield [event for _, awaited in active.values() for event in awaited]
            for at, (control, awaited) in list(active.items()):
                if any(event.done for event in awaited):
                    if (awaited_next := next(control, None)) is None:
                        events[at] = lanes[schedule.streams[at][0]].tail
                        del active[at]
                    else:
                        active[at] = control, awaited_next
        _join(home, lanes, begun)

    def _issue_all(
        self, body: Body, frame: Frame, home: Lane, lanes: Sequence[Lane], begins: Sequence[Event]
    ) -> None:
        """Issue a body of steps alone, as `_body` does."""
        streams, waits, is_cancelled = body.schedule.streams, body.schedule.waits, self.is_cancelled
        events = [DONE] * len(body.nodes)
        begun = {id(home)}
        for at in body.schedule.order:
            lane = lanes[streams[at][0]]
            awaited = [events[p] for p in waits[at]]
            if id(lane) not in begun:
                begun.add(id(lane))
                awaited += begins
            if is_cancelled():
                break
            events[at] = self._issue(body, at, frame, lane, awaited)
        _join(home, lanes, begun)

    def _issue(
        self, body: Body, at: int, frame: Frame, lane: Lane, waits: Sequence[Event]
    ) -> Event:
        step = body.nodes[at]
        assert isinstance(step, Step), "a loop or a branch is more than one piece of work"
        run = step.bind(frame)
        if frame.where:
            run = _in_iteration(run, frame.where)
        run = self.record.timed(body, at, frame.where, lane.stream.name, run)
        return lane.issue(run, waits)

    def _control(
        self, node: Loop | Branch, frame: Frame, lane: Lane, waits: Sequence[Event]
    ) -> Waiting:
        if waits:
            lane.issue(_nothing, waits)
        match node:
            case Loop():
                yield from self._loop(node, frame, lane)
            case Branch():
                yield from self._branch(node, frame, lane)
            case _:
                assert_never(node)

    def _loop(self, loop: Loop, frame: Frame, lane: Lane) -> Waiting:
        """Issue a loop: its first part, then as often as its predicate holds the other, and again
        the first."""
        carrying = Carrying(loop, frame, partial(lane.issue, waits=()))
        outer = f"{frame.where}, " if frame.where else ""
        count, ends = 0, deque[Event]()
        while not self.is_cancelled():
            where = f"{outer}iteration {count} of `{loop.name}`"
            counts = {**frame.counts, loop.counter: count}
            inner = replace(frame, arrays=carrying.arrays, counts=counts, where=where)
            yield from self._body(loop.before, inner, lane, ())
            yield from self._fresh(loop, lane)
            if self.is_cancelled():
                break
            if not _holds(loop, replace(inner, arrays=carrying.shown), count):
                break
            if count == loop.at_most:
                raise too_many_iterations(loop)
            yield from self._body(loop.after, inner, lane, ())
            count += 1
            carrying.advance()
            ends.append(lane.issue(_nothing, ()))
            while len(ends) > RUN_AHEAD:
                if ends[0].done:
                    ends.popleft()
                else:
                    yield (ends[0],)
        carrying.finish()

    def _branch(self, branch: Branch, frame: Frame, lane: Lane) -> Waiting:
        yield from self._fresh(branch, lane)
        if self.is_cancelled():
            return
        index = _branch_index(branch, frame)
        if index >= 0:
            yield from self._body(branch.branches[index], frame, lane, ())
            return
        _pass_through(branch, frame, lane)

    def _fresh(self, node: Loop | Branch, lane: Lane) -> Waiting:
        """Wait until what a predicate reads has been computed; raises its failure."""
        if not node.predicate.buffers:
            return
        event = lane.tail
        while not event.done:
            yield (event,)
        if event.failure is not None:
            raise _Failed(event.failure)


def _pass_through(branch: Branch, frame: Frame, lane: Lane) -> None:
    """Give each target the value that its source has before any of them gets one."""
    targets = [frame.array(carry.target) for carry in branch.otherwise]
    sources = [frame.array(carry.source) for carry in branch.otherwise]
    for at, carry in enumerate(branch.otherwise):
        if any(sources[at] is target for target in targets[:at]):
            kept = carry.make[1](carry.source.label, sources[at])
            lane.issue(partial(copy, kept, sources[at], "passed through"), ())
            sources[at] = kept
    for target, source in zip(targets, sources, strict=True):
        lane.issue(partial(copy, target, source, "passed through"), ())


def _join(home: Lane, lanes: Sequence[Lane], begun: Container[int]) -> None:
    """Let a lane wait for the end of all others that have begun."""
    tails = [lane.tail for lane in lanes if lane is not home and id(lane) in begun]
    if tails:
        home.issue(_nothing, tails)


def _nothing() -> None:
    """Do nothing: the work of a wait."""


def _can_go_on(awaited: Sequence[Event], own: OwnLane) -> bool:
    """Whether an event is done, or the driver has a step to run."""
    return any(event.done for event in awaited) or own.is_ready


def _in_iteration(run: Run, where: str) -> Run:
    """Return work whose errors say in which iterations they came."""

    def run_in_iteration() -> object:
        try:
            return run()
        except CdError as error:
            first, *others = error.diagnostics
            raise type(error)(replace(first, notes=(*first.notes, where)), *others) from None

    return run_in_iteration


def _holds(loop: Loop, frame: Frame, count: int) -> bool:
    """Return whether a loop goes on; raises CdTypeError CD0863 for what is no truth value."""
    value = _evaluated(loop, frame, count)
    if isinstance(value, bool | int | float | np.generic):
        return bool(value)
    raise _no_answer(loop, value, "true or false")


def _branch_index(branch: Branch, frame: Frame) -> int:
    """Return which branch runs, negative for none.

    Raises CdTypeError CD0863 for what is no whole number, CdIndexError CD0864 for one without a
    branch.
    """
    value = _evaluated(branch, frame, 0)
    try:
        index = operator.index(value if not isinstance(value, np.bool_) else int(value))
    except TypeError:
        raise _no_answer(branch, value, "a whole number") from None
    if index >= len(branch.branches):
        raise no_branch(branch, index)
    return index


def no_branch(branch: Branch, index: int) -> CdIndexError:
    """Return the error CD0864: a predicate chose a branch that there is not."""
    count = len(branch.branches)
    last = f"its last one is {count - 1}" if count else "it has none"
    return CdIndexError(
        Diagnostic(
            "CD0864", f"`{branch.name}` chose branch {index}, and {last}",
            notes=(f"it was recorded at {branch.line}",),
            helps=("a negative number runs none of them",),
        )
    )  # fmt: skip


class _InPredicate:
    """What a predicate does with tensors instead of its values is refused."""

    def __init__(self, name: str) -> None:
        self.name = name

    def touch(self, label: str) -> None:
        """Raise CdTypeError CD0862: it gets values by `reads`."""
        raise CdTypeError(
            Diagnostic(
                "CD0862", f"the predicate of `{self.name}` uses `{label}`, instead of a value",
                helps=("let it take the value: `reads=[x]`, `lambda x: ...`",),
            )
        )  # fmt: skip

    def settle(self) -> None:
        """Do nothing: nothing is deferred."""

    def link(self, name: str, fields: Sequence[Any]) -> None:
        """Raise CdTypeError CD0862 where a routine gets arrays, which take values over."""
        for field in fields:
            self.touch(field.label)

    def call(self, routine: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Raise CdTypeError CD0862."""
        self.touch(routine.name)

    def function(
        self, function: Any, arguments: Mapping[str, Any], backend: str | None
    ) -> tuple[()] | tuple[Any]:
        """Return (): what it calls on arrays is called."""
        return ()

    def copy(self, field: Any, ends: tuple[Any, Any], source: Any, target: Any) -> None:
        """Raise CdTypeError CD0862."""
        self.touch(field.label)

    def merge(self, consumer: Any, field: Any, source: Any, once: bool) -> None:
        """Raise CdTypeError CD0862."""
        self.touch(field.label)


def _evaluated(node: Loop | Branch, frame: Frame, count: int) -> Any:
    """Return the value of a predicate, which sees nothing but its values."""
    outside = RUNTIME.planned()
    try:
        RUNTIME.plan(_InPredicate(node.name))
        return node.predicate.evaluate(frame, count)
    except StopIteration as error:
        raise CdValueError(
            Diagnostic(
                "CD0863", f"the predicate of `{node.name}` raised StopIteration",
                notes=(f"it was recorded at {node.line}",),
                helps=("return whether to go on: `next(values, None) is not None`",),
            )
        ) from error  # fmt: skip
    finally:
        RUNTIME.plan(outside)


def _no_answer(node: Loop | Branch, value: object, wanted: str) -> CdTypeError:
    return CdTypeError(
        Diagnostic(
            "CD0863", f"the predicate of `{node.name}` gave a {type(value).__name__}, not {wanted}",
            notes=(f"it was recorded at {node.line}",),
            helps=("return one number: `lambda n, x: bool(x.max() > 1)`",),
        )
    )  # fmt: skip


def too_many_iterations(loop: Loop) -> CdValueError:
    """Return the error CD0865: a loop would go beyond its limit."""
    return CdValueError(
        Diagnostic(
            "CD0865",
            f"`{loop.name}` would go beyond {loop.at_most} iterations, its `at_most`",
            notes=(f"it was recorded at {loop.line}",),
            helps=("give it more, or look at why its predicate still holds",),
        )
    )
