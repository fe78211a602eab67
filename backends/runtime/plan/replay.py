"""Replays: recorded calls that are queued again, each on the stream of its routine.

A plan runs on streams of its own, that analysis has chosen. A replay is on those of the contexts
that its routines were linked into: it queues what the calls themselves would, in their order, and
what conflicts is ordered as for calls. What is always the same is done once: when it is recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from ....base import settings
from ....base.dataclass import dataclass
from .. import hazards
from ..device import Context
from ..field import Field
from ..memory import Buffer
from ..parameter_slots import Argument
from ..queue import Event
from ..routine import Routine
from ..state import RUNTIME
from ..transfer import decide
from .recording import Recorded, Recorder
from .steps import Frame, Run, Step
from .work import open_step


class ReplayRecorder(Recorder):
    """Records calls for replays. What routines return is dropped."""

    def __init__(self) -> None:
        super().__init__(None)
        self._merge_buffers: dict[tuple[Any, Field], Buffer] = {}
        """What the streams merge: one for all calls, and for all recordings."""

    def record(self, calls: Callable[[], None]) -> Replay:
        """Return what a function calls on this thread, to be queued any number of times.

        Raises what the calls raise that a plan of them would, but for what they return.
        """
        assert RUNTIME.planned() is None, "nobody else records what this thread calls"
        try:
            RUNTIME.plan(self)
            calls()
            return Replay(self.recorded())
        finally:
            RUNTIME.plan(None)
            self.clear()

    def _require_taken(self, routine: Routine, on_host: bool) -> None:
        """Raise CdValueError CD0850 where something is read before it is written; versions are
        looked at whenever a call is queued."""
        routine.require_written(self._written)

    def _step(
        self,
        routine: Routine,
        arguments: tuple[tuple[Any, ...], Mapping[str, Any]],
        merged: Buffer | None,
        line: str,
    ) -> Step:
        """Return the step of a call without its arguments, which each replay gives."""
        return open_step(routine, merged, line)

    def _merge_buffer(self, field: Field, stream: Any) -> Buffer:
        key = stream, field
        if key not in self._merge_buffers:
            self._merge_buffers[key] = super()._merge_buffer(field, stream)
        return self._merge_buffers[key]


@dataclass(frozen=True, slots=True)
class _Queued:
    """A step of a replay."""

    step: Step
    reads: tuple[Buffer, ...]
    writes: tuple[Buffer, ...]
    loads: tuple[tuple[Context, Field, Buffer], ...]
    """The arrays that take over the host's newer versions before it: no step has written them."""
    run: Run | None
    """Its work where it has no arguments."""

    def enqueue(self, given: Mapping[int, Any]) -> Event:
        """Queue it with arrays for its arguments; return its end.

        Precondition: the scheduling lock is held. Raises what a call of its routine raises.
        """
        step, stream, routine = self.step, self.step.stream, self.step.routine
        if routine is not None:
            routine.require_versions()
        for context, field, buffer in self.loads:
            context.refresh(field, buffer)
        run, is_observed = self.run, RUNTIME.recording(_is_logged()) is not None
        if run is None or is_observed:
            run = step.bind(Frame({}, {}, {}, "", is_observed, given))
        run = RUNTIME.timed(step.name, step.kind, stream.name, run)
        event = hazards.enqueue(stream, run, self.reads, self.writes)
        step.note()
        if routine is not None:
            routine.note_versions()
        return event


class Replay:
    """Calls of routines, merges and copies, to be queued again. See `ReplayRecorder`."""

    def __init__(self, recorded: Recorded) -> None:
        self._contexts = recorded.contexts
        self._steps: list[_Queued] = []
        known: set[Buffer] = set()
        """What the steps so far have read or written."""
        for step in recorded.nodes:
            assert isinstance(step, Step), "calls, merges and copies are recorded"
            reads, writes = _arrays(step.reads), _arrays(step.writes)
            loads = tuple(
                load for load in recorded.loads if load[2] in reads and load[2] not in known
            )
            run = None if _has_arguments(step.routine) else step.bind(Frame({}, {}, {}))
            self._steps.append(_Queued(step, reads, writes, loads, run))
            known.update(reads, writes)

    def queue(self, calls: Iterable[Mapping[str, Any]]) -> None:
        """Queue everything, with arguments by name for each call of a routine, in their order.

        It returns before that has run, but for calls whose arguments their owners may use. Raises
        what such calls raise.
        """
        for context in self._contexts:
            context.require_live()
        arguments, awaited = iter(calls), list[Event]()
        for queued in self._steps:
            routine, given, is_synchronous = queued.step.routine, dict[int, Any](), False
            if routine is not None:
                _, given, is_synchronous = routine.arguments_of((), next(arguments))
            event = decide(partial(queued.enqueue, given), queued.step.stream)
            if is_synchronous:
                awaited.append(event)
        for event in awaited:
            failure = event.settle()
            if failure is not None:
                raise failure.tell()


def _is_logged() -> bool:
    return settings.current().debug_log_from_routines


def _has_arguments(routine: Routine | None) -> bool:
    slots = () if routine is None else routine.compiled.slots
    return any(isinstance(slot, Argument) for slot in slots)


def _arrays(resources: Sequence[Any]) -> tuple[Buffer, ...]:
    return tuple(each for each in resources if isinstance(each, Buffer))
