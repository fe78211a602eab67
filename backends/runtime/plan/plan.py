"""Plans and their runs, as users hold them."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from ....base import settings
from ....base.diagnostic import CdTypeError, CdValueError, Diagnostic, nearest
from .. import hazards
from ..device import Stream, device
from ..memory import Buffer
from ..queue import DONE, Event
from ..routine import Routine
from ..state import RUNTIME
from ..transfer import queue_copy
from .driver import Driver, Lane, OwnLane, Progress, QueueLane
from .recording import (
    BranchDraft,
    Draft,
    LoopDraft,
    PredicateSpec,
    Recorded,
    Recorder,
    caller_line,
)
from .report import dot, explanation, save_picture, statistics, table
from .steps import Body, Counter, Frame, Node, Step, scheduled


class Plan:
    """Routines, recorded in the `with`, that run as often as it is called.

    `plan()` runs them and waits; `plan.run(on=stream)` returns at once. The results are those of
    the calls in program order, bit for bit.
    """

    def __init__(
        self,
        max_streams: int | None = None,
        name: str | None = None,
        recorder: type[Recorder] = Recorder,
    ) -> None:
        if max_streams is not None and (not isinstance(max_streams, int) or max_streams < 1):
            helps = ("give 1 or more, or nothing: as many as there is to do at once",)
            message = f"a plan has {max_streams!r} streams at most"
            raise CdValueError(Diagnostic("CD0868", message, helps=helps))
        self.name = name or "plan"
        self.max_streams = max_streams
        self._make_recorder = recorder
        self._recorder: Recorder | None = None
        self._program: _Program | None = None

    @classmethod
    def of(cls, recorded: Recorded, max_streams: int | None, name: str) -> Plan:
        """Return the plan of what was recorded elsewhere."""
        made = cls(max_streams, name)
        made._program = _Program(made.name, recorded, max_streams)
        return made

    # ---------------------------------------------------------------------------- recording

    def __enter__(self) -> Self:
        if RUNTIME.planned() is not None or self._program is not None:
            what = "a plan is recorded inside of another one" if self._program is None else (
                f"`{self.name}` has been recorded already"
            )  # fmt: skip
            raise _misuse(what, "make another one: `with pe.plan() as plan:`")
        self._recorder = self._make_recorder(self.max_streams)
        RUNTIME.plan(self._recorder)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:  # fmt: skip
        recorder, self._recorder = self._recorder, None
        RUNTIME.plan(None)
        if kind is None and recorder is not None:
            self._program = _Program(self.name, recorder.recorded(), self.max_streams)

    def _require_recording(self, what: str) -> Recorder:
        if self._recorder is None:
            raise _misuse(f"`{what}` is called outside of the `with` of its plan",
                          "record it inside: `with pe.plan() as plan:`")  # fmt: skip
        return self._recorder

    def while_(
        self,
        predicate: Any,
        reads: Sequence[Any] = (),
        carry: Mapping[Any, Any] | None = None,
        at_most: int | None = None,
        name: str = "while",
    ) -> WhileLoop:
        """Return a context manager that records the iterations of a loop.

        `predicate(count, *values)` gets the number of iterations so far, if it takes one argument
        more than there are `reads`, and fresh values of these; instead of a function it may be a
        tensor with one element. `carry={x: y}` gives
        `x` in each iteration the value that `y` had at the end of the last one. More than `at_most`
        iterations are an error of the run (CD0865).
        """
        recorder = self._require_recording("plan.while_")
        spec = PredicateSpec.of(predicate, reads, in_loop=True)
        return WhileLoop(recorder, spec, carry or {}, at_most, name)

    def case_of(
        self,
        index: Any,
        reads: Sequence[Any] = (),
        otherwise: Mapping[Any, Any] | None = None,
        name: str = "case",
    ) -> Case:
        """Return a context manager that records branches, of which `index(*values)` chooses one.

        Instead of a function it may be a tensor with one element, an integer. A negative number
        runs none; then `otherwise={y: x}` gives `y` the value of `x`.
        """
        recorder = self._require_recording("plan.case_of")
        return Case(recorder, PredicateSpec.of(index, reads), otherwise or {}, name)

    # ------------------------------------------------------------------------------ running

    @property
    def program(self) -> _Program:
        """What was recorded; CdTypeError CD0868 before the `with` has ended."""
        if self._program is None:
            raise _misuse(f"`{self.name}` has not been recorded", "let its `with` end first")
        return self._program

    def __call__(self, **inputs: Any) -> None:
        """Run it and wait; `inputs` are arguments of its routines, by name, for this run.

        Raises the first error of a step or a predicate; CdTypeError CD0869 for a name that no
        routine has.
        """
        self.program.start(self.program.stream, inputs).wait()

    def run(self, on: Stream | None = None, **inputs: Any) -> Run:
        """Queue a run on a stream, as one step of it, and return that run.

        Without a stream it has been waited for. Arrays among the inputs are copied, unless a
        routine writes them.
        """
        if on is None:
            self(**inputs)
            return Run(self.name, DONE, lambda: None)
        return self.program.start(on, inputs)

    def partial(
        self,
        sources: Sequence[Routine | str] | None = None,
        destinations: Sequence[Routine | str] | None = None,
    ) -> Plan:
        """Return the plan of the nodes between some routines, given as such or by name.

        They depend on a source, or are one, and a destination depends on them, or they are one.
        What is outside of that does not run, and what it would write keeps its value.
        """
        program = self.program
        nodes = program.between(sources, destinations)
        made = Plan(self.max_streams, f"part of {self.name}")
        made._program = program.of(nodes, made.name, self.max_streams)
        return made

    # ------------------------------------------------------------------------------- seeing

    def stats(self) -> dict[str, int]:
        """Return counts: nodes, streams, events, waits, edges, removed and added edges."""
        return statistics(self.program.body)

    def explain(self, routine: Routine | str) -> str:
        """Return why each step of a routine, or loop or branch of a name, comes when it does.

        Raises CdValueError CD0869 where the plan has none of that name.
        """
        name = routine if isinstance(routine, str) else routine.name
        text = explanation(self.program.body, name)
        if not text:
            raise self.program.no_node(name)
        return text

    def to_dot(self) -> str:
        """Return the graph as text for Graphviz: nodes in the colours of their streams."""
        return dot(self.program.body, self.name)

    def save_picture(self, path: str | os.PathLike[str]) -> Path:
        """Draw its streams, nodes and what waits into an image file; return its path.

        Raises CdBackendError CD0848 where matplotlib is not installed.
        """
        return save_picture(self.program.body, self.name, path)

    def __str__(self) -> str:
        return table(self.program.body, self.name) if self._program else repr(self)

    def __repr__(self) -> str:
        state = (
            "not recorded" if self._program is None else f"{len(self._program.body.nodes)} nodes"
        )
        return f"<plan {self.name}: {state}>"


class WhileLoop:
    """The recording of a loop: what is called in its `with` is the part after the test."""

    def __init__(
        self, recorder: Recorder, predicate: PredicateSpec, carry: Mapping[Any, Any],
        at_most: int | None, name: str,
    ) -> None:  # fmt: skip
        self._recorder, self._predicate, self._carry = recorder, predicate, carry
        self._at_most, self._name, self._line = at_most, name, caller_line()
        self.count = Counter(name)
        """The number of iterations so far: an argument of routines, one of `reads` inside."""
        self._before: Sequence[Step | Draft] = ()

    @contextmanager
    def before(self) -> Iterator[None]:
        """Record the part before the test, which runs once more than the other."""
        with self._recorder.body() as body:
            yield
        self._before = (*self._before, *body.nodes)

    def __enter__(self) -> Self:
        self._context = self._recorder.body()
        self._body = self._context.__enter__()
        return self

    def __exit__(self, *problem: Any) -> None:
        self._context.__exit__(*problem)
        if problem[0] is None:
            self._recorder.add(
                LoopDraft(
                    self._name, self._predicate, self._before, self._body.nodes, self._carry,
                    self.count, self._at_most, self._line,
                )
            )  # fmt: skip


class Case:
    """The recording of branches."""

    def __init__(
        self, recorder: Recorder, index: PredicateSpec, otherwise: Mapping[Any, Any], name: str
    ) -> None:
        self._recorder, self._index, self._otherwise = recorder, index, otherwise
        self._name, self._line = name, caller_line()
        self._branches: list[Sequence[Step | Draft]] = []

    @contextmanager
    def branch(self) -> Iterator[None]:
        """Record the next branch; the first one is 0."""
        with self._recorder.body() as body:
            yield
        self._branches.append(body.nodes)

    def __enter__(self) -> Self:
        self._context = self._recorder.body("is in no branch of the case")
        self._context.__enter__()
        return self

    def __exit__(self, *problem: Any) -> None:
        self._context.__exit__(*problem)
        if problem[0] is None:
            self._recorder.add(
                BranchDraft(self._name, self._index, self._branches, self._otherwise, self._line)
            )


class Run:
    """A run of a plan that was queued on a stream."""

    def __init__(self, name: str, event: Event, cancel: Callable[[], None]) -> None:
        self.name, self._event, self._cancel = name, event, cancel
        self.cancelled = False
        """Whether `cancel` was called before its end."""

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self._event.done

    def wait(self) -> None:
        """Wait for its end; raises its error, once."""
        self._event.wait()

    def cancel(self) -> None:
        """Start no more steps: those that have not been started are dropped.

        What runs goes on, and `wait` waits for it; the plan can be run again.
        """
        if not self.done:
            self.cancelled = True
            self._cancel()

    def __await__(self) -> Generator[Any, None, None]:
        return asyncio.get_running_loop().run_in_executor(None, self.wait).__await__()

    def __repr__(self) -> str:
        state = "cancelled" if self.cancelled else "done" if self.done else "running"
        return f"<run of {self.name}: {state}>"


class _Program:
    """A recorded plan, ready to run: its streams, and all that it reads and writes."""

    def __init__(self, name: str, recorded: Recorded, max_streams: int | None) -> None:
        self.name, self.recorded = name, recorded
        self.body = scheduled(recorded.nodes, max_streams)
        self.arguments: dict[str, bool] = {}
        """The names of what a run may give, and whether it is written."""
        for step in self.body.steps:
            for argument, written in step.arguments.items():
                self.arguments[argument] = written or self.arguments.get(argument, False)
        nodes = self.body.nodes
        reads = dict.fromkeys(r for node in nodes for r in node.reads if isinstance(r, Buffer))
        writes = dict.fromkeys(w for node in nodes for w in node.writes if isinstance(w, Buffer))
        self.reads = tuple(read for read in reads if read not in writes)
        self.writes = tuple(writes)
        self._notes = tuple(self.body.notes)
        self._lock = threading.Lock()
        """One run at a time: they have the streams and the scratch arrays in common."""
        home = self.body.schedule.devices[0] if nodes else ""
        self.stream = device(home).stream(threaded=False)
        """Where it runs that waits for it."""
        self._streams: list[Stream] = []
        self._homes: dict[Body, list[Stream | None]] = {}
        self._place(self.body, home, 0)
        self.is_serial = not self._streams and not self.body.has_control_flow

    def of(self, nodes: Sequence[Node], name: str, max_streams: int | None) -> _Program:
        """Return the program of some of the nodes."""
        recorded = self.recorded
        part = replace(recorded, nodes=tuple(nodes))
        return _Program(name, part, max_streams)

    def _place(self, body: Body, home: str, first: int) -> int:
        """Give the streams of a body those from number `first` on; return the next number.

        The parts of a loop, and branches, share streams: no two of them run at once.
        """
        at, homes = first, list[Stream | None]()
        for number, name in enumerate(body.schedule.devices):
            if number == 0 and name == home:
                homes.append(None)
                continue
            while at < len(self._streams) and self._streams[at].device.name != name:
                at += 1
            if at == len(self._streams):
                self._streams.append(device(name).stream())
            homes.append(self._streams[at])
            at += 1
        self._homes[body] = homes
        for number, node in enumerate(body.nodes):
            if not isinstance(node, Step):
                inner = body.schedule.devices[body.schedule.streams[number][0]]
                at = max([self._place(part, inner, at) for part in node.bodies], default=at)
        return at

    def start(self, queue: Stream, inputs: Mapping[str, Any]) -> Run:
        """Queue a run on a stream, after whatever uses its arrays."""
        inputs = self._checked(inputs, copied=queue is not self.stream)
        cancelled = threading.Event()
        logged = settings.current().debug_log_from_routines
        queue.worker.wait_for_slot()
        with RUNTIME.scheduling:
            for context in self.recorded.contexts:
                context.require_live()
            for context, field, buffer in self.recorded.loads:
                newest = field.newest()
                if context.parent in self.recorded.own and newest.tick > buffer.tick:
                    queue_copy(context.stream, newest, buffer)
                elif field.host_tick > buffer.tick:
                    context.refresh(field, buffer)
            for field, buffer in self.recorded.asked:
                if field.host_tick > buffer.tick:
                    queue_copy(queue, field.host, buffer)
            for field in self.recorded.on_host:
                queue_copy(queue, field.newest(), field.host)
            recorded = RUNTIME.recording(logged) is not None
            frame = Frame({}, inputs, {}, "", recorded)

            def run() -> None:
                self._run(frame, cancelled.is_set)

            event = hazards.enqueue(queue, run, self.reads, self.writes)
            event.keep()
            for note in self._notes:
                note()
        queue.flush(event)
        return Run(self.name, event, cancelled.set)

    def _run(self, frame: Frame, is_cancelled: Callable[[], bool]) -> None:
        with self._lock:
            if frame.recorded or self.is_serial:
                self._run_in_order(self.body, frame, is_cancelled)
                return
            own = OwnLane(self.stream, Progress())
            queues = {id(stream): QueueLane(stream) for stream in self._streams}
            lanes: dict[Body, list[Lane | None]] = {
                body: [None if stream is None else queues[id(stream)] for stream in homes]
                for body, homes in self._homes.items()
            }
            Driver(own, lanes, is_cancelled).run(self.body, frame)

    def _run_in_order(self, body: Body, frame: Frame, is_cancelled: Callable[[], bool]) -> None:
        """Run everything on this thread, in program order."""
        if not self.body.has_control_flow and RUNTIME.timeline is None:
            for step in body.steps:
                if is_cancelled():
                    return
                step.bind(frame)()
            return
        own = OwnLane(self.stream, Progress())
        lanes: dict[Body, list[Lane | None]] = {
            each: [None] * len(homes) for each, homes in self._homes.items()
        }
        Driver(own, lanes, is_cancelled).run(self.body, frame)

    def _checked(self, inputs: Mapping[str, Any], copied: bool) -> dict[str, Any]:
        """Return the inputs of a run, arrays that it only reads as copies if `copied`.

        CdTypeError CD0869 for unknown names; raises what a call would raise for what does not fit.
        """
        for name in inputs:
            if name not in self.arguments:
                suggestion = nearest(name, sorted(self.arguments))
                known = ", ".join(sorted(self.arguments)) or "nothing"
                raise CdTypeError(
                    Diagnostic(
                        "CD0869", f"no routine of `{self.name}` has an argument `{name}`",
                        notes=(f"they take {known}",),
                        helps=(f"did you mean `{suggestion}`?",) if suggestion else (),
                    )
                )  # fmt: skip
        if inputs:
            for step in self.body.steps:
                if step.require is not None:
                    step.require(inputs)
        return {
            name: value.copy(order="K")
            if copied and isinstance(value, np.ndarray) and not self.arguments[name]
            else value
            for name, value in inputs.items()
        }

    def between(
        self, sources: Sequence[Routine | str] | None, destinations: Sequence[Routine | str] | None
    ) -> list[Node]:
        """Return the nodes between some: see `Plan.partial`."""
        ancestors, nodes = self.body.graph.ancestors, self.body.nodes
        starts = self._numbers(sources, range(len(nodes)))
        ends = self._numbers(destinations, range(len(nodes)))
        return [
            node for at, node in enumerate(nodes)
            if any(at == s or ancestors[at] >> s & 1 for s in starts)
            and any(at == d or ancestors[d] >> at & 1 for d in ends)
        ]  # fmt: skip

    def no_node(self, name: str) -> CdValueError:
        """Return the error CD0869 for a name that no node has."""
        known = [node.name for node in self.body.nodes]
        suggestion = nearest(name, known)
        return CdValueError(
            Diagnostic(
                "CD0869", f"`{self.name}` has no `{name}`",
                notes=(f"it has {', '.join(dict.fromkeys(known)) or 'nothing'}",),
                helps=(f"did you mean `{suggestion}`?",) if suggestion else (),
            )
        )  # fmt: skip

    def _numbers(
        self, wanted: Sequence[Routine | str] | None, default: Sequence[int]
    ) -> Sequence[int]:
        if wanted is None:
            return default
        names = [given if isinstance(given, str) else given.name for given in wanted]
        for name in names:
            if all(node.name != name for node in self.body.nodes):
                raise self.no_node(name)
        return [at for at, node in enumerate(self.body.nodes) if node.name in names]


def _misuse(what: str, fix: str) -> CdTypeError:
    return CdTypeError(Diagnostic("CD0868", what, helps=(fix,)))
