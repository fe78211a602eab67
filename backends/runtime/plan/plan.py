"""Plans and their runs, as users hold them."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from ....base.diagnostic import CdValueError, Diagnostic
from ..argument_checks import wrong_argument
from ..device import Stream
from ..queue import Event
from ..routine import Routine
from ..state import RUNTIME
from ..tensor import Tensor, tensor
from ..timeline import Timeline
from .capture import CapturedProgram
from .control_flow import Case, WhileLoop, pairs, require_counts
from .drafts import PredicateSpec, misuse
from .memory_report import PlanMemory, memory_of_plan
from .program import Program
from .recording import Recorded, Recorder
from .report import dot, explanation, save_picture, statistics, table
from .run_record import RunRecord


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
        if max_streams is not None:
            self._require_limit(max_streams)
        self.name = str(name or "plan")
        self.max_streams = max_streams
        self._make_recorder = recorder
        self._recorder: Recorder | None = None
        self._thread = 0
        """The thread that records it."""
        self._program: Program | None = None

    @staticmethod
    def _require_limit(given: Any) -> None:
        """Raise CdValueError CD0868 for anything but a number of streams."""
        if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < 1:
            helps = ("give 1 or more, or nothing: as many as there is to do at once",)
            message = f"a plan has {given!r} streams at most"
            raise CdValueError(Diagnostic("CD0868", message, helps=helps))

    @classmethod
    def of(cls, recorded: Recorded, max_streams: int | None, name: str) -> Plan:
        """Return the plan of what was recorded elsewhere."""
        made = cls(max_streams, name)
        made._program = Program(made.name, recorded, max_streams)
        return made

    # ---------------------------------------------------------------------------- recording

    def __enter__(self) -> Self:
        if RUNTIME.planned() is not None or self._program is not None or self._recorder:
            what = "a plan is recorded inside of another one" if self._program is None else (
                f"`{self.name}` has been recorded already"
            )  # fmt: skip
            raise misuse(what, "make another one: `with pe.plan() as plan:`")
        recorder = self._make_recorder(self.max_streams)
        recorder.owner = self
        self._thread = threading.get_ident()
        try:
            RUNTIME.plan(recorder)
            self._recorder = recorder
        except BaseException:  # an interrupt: the `with` does not begin
            RUNTIME.plan(None)
            self._recorder = None
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:  # fmt: skip
        if self._thread in RUNTIME.planning:
            del RUNTIME.planning[self._thread]  # without a call, at which an interrupt may come
        recorder, self._recorder = self._recorder, None
        RUNTIME.plan(None)
        if kind is None and recorder is not None:
            self._program = Program(self.name, recorder.recorded(), self.max_streams)

    def _require_recording(self, what: str) -> Recorder:
        if self._recorder is None:
            raise misuse(f"`{what}` is called outside of the `with` of its plan",
                          "record it inside: `with pe.plan() as plan:`")  # fmt: skip
        return self._recorder

    def tensor(
        self,
        label: str,
        shape: Sequence[int] | int,
        dtype: Any = None,
        fields: Sequence[str] = (),
    ) -> Tensor:
        """Return a tensor that only this plan sees, as `pe.tensor` makes one.

        It holds nothing between runs, and shares memory with others that are not needed at the same
        time. A run that would read it before it has written all of it is refused when the `with`
        ends; so is any use outside of the plan: CdTypeError and CdValueError CD0876.
        """
        if self._program is not None:
            raise misuse(f"`{self.name}` has been recorded already", "make the tensor before that")
        made = tensor(label, shape, dtype, fields=fields)
        for name in made.fields:
            made.field(name).owner = self
        return made

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
        tensor with one element. `carry={x: y}` gives `x` in each iteration the value that `y` had
        at the end of the last one. More than `at_most` iterations are an error of the run (CD0865).
        """
        recorder = self._require_recording("plan.while_")
        spec = PredicateSpec.of(predicate, reads, in_loop=True)
        require_counts(recorder, spec)
        if at_most is not None and (not isinstance(at_most, int | np.integer) or at_most < 0):
            helps = ("give a whole number, or nothing: as often as the predicate holds",)
            message = f"a loop has {at_most!r} iterations at most"
            raise CdValueError(Diagnostic("CD0868", message, helps=helps))
        most = None if at_most is None else int(at_most)
        return WhileLoop(recorder, spec, pairs(carry, "carry"), most, str(name))

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
        spec = PredicateSpec.of(index, reads)
        require_counts(recorder, spec)
        return Case(recorder, spec, pairs(otherwise, "otherwise"), str(name))

    # ------------------------------------------------------------------------------ running

    @property
    def program(self) -> Program:
        """What was recorded; CdTypeError CD0868 before the `with` has ended."""
        if self._program is None:
            raise misuse(f"`{self.name}` has not been recorded", "let its `with` end first")
        return self._program

    def __call__(self, /, **inputs: Any) -> None:
        """Run it and wait; `inputs` are arguments of its routines, by name, for this run.

        Raises the first error of a step or a predicate; CdTypeError CD0869 for a name that no
        routine has.
        """
        program = self.program
        if recorder := RUNTIME.planned():
            recorder.touch(self.name)
        event, _, _ = program.start(program.stream, inputs)
        event.wait()

    def run(self, /, on: Stream | None = None, **inputs: Any) -> Run:
        """Queue a run on a stream, as one step of it, and return that run.

        Without a stream it has been waited for. Arrays among the inputs are copied, unless a
        routine writes them.
        """
        if not isinstance(on, Stream | None):
            raise wrong_argument("stream", on, "give one: `plan.run(on=device.stream())`")
        program = self.program
        if recorder := RUNTIME.planned():
            recorder.touch(self.name)
        event, cancel, record = program.start(program.stream if on is None else on, inputs)
        if on is None:
            event.wait()
        return Run(program, event, cancel, record)

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

    def capture(self) -> Plan:
        """Return the plan as one graph of its device, which a run launches by one call.

        It is run as this one, and has the same results, bit for bit. A trace, or a log of
        routines, runs its steps instead. Numbers of routines are those of the recording. Raises
        CdValueError CD0870, with the step and the reason, where a run needs the host, or a device
        has no graphs; CdMemoryError CD0880 where it has no memory for all temporaries at once, and
        CdBackendError CD0845 where a context was finalized, CD0884 where the device fails.
        """
        program = self.program
        if recorder := RUNTIME.planned():
            recorder.touch(self.name)
        made = Plan(self.max_streams)
        made._program = CapturedProgram(program, self.max_streams)
        made.name = made._program.name
        return made

    # ------------------------------------------------------------------------------- seeing

    def stats(self) -> dict[str, int]:
        """Return counts: nodes, streams, events, waits, edges, removed and added edges; and bytes:
        of the memory that the plan's own arrays and the temporaries of its routines share, of these
        one by one, and of all that a run takes at its peak, as in `memory`."""
        memory = self.memory()
        return {
            **statistics(self.program.body),
            "arena_bytes": memory.arena,
            "unshared_bytes": memory.unshared,
            "peak_bytes": memory.peak,
        }

    def memory(self) -> PlanMemory:
        """Return the bytes that a run takes beside the tensors that others see: of the plan's own
        arrays and temporaries, of the temporaries of each routine alone, and at its peak."""
        return memory_of_plan(self.program.body, self.program.memory)

    def explain(self, routine: Routine | str) -> str:
        """Return why each step of a routine, or loop or branch of a name, comes when it does.

        Raises CdValueError CD0869 where the plan has none of that name.
        """
        name = _name_of(routine)
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

    def __reduce__(self) -> Any:
        raise TypeError(f"`{self.name}` is a plan of this process: record it where it is needed")

    def __repr__(self) -> str:
        state = (
            "not recorded" if self._program is None else f"{len(self._program.body.nodes)} nodes"
        )
        return f"<plan {self.name}: {state}>"


def _name_of(routine: Any) -> str:
    """Return the name of a routine, or a name; raises CdTypeError CD0852 for anything else."""
    if isinstance(routine, str | Routine):
        return routine if isinstance(routine, str) else routine.name
    raise wrong_argument("routine or its name", routine, 'give its name: `plan.explain("step")`')


class Run:
    """A run of a plan that was queued on a stream."""

    def __init__(
        self, program: Program, event: Event, cancel: Callable[[], None], record: RunRecord
    ) -> None:
        self.name, self._program = program.name, program
        self._event, self._cancel, self._record = event, cancel, record
        self.cancelled = False
        """Whether `cancel` was called before its end."""
        self._has_raised = False

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self._event.done

    def wait(self) -> None:
        """Wait for its end; raises its error, once."""
        failure = self._event.settle()
        if failure is not None and not self._has_raised:
            self._has_raised = True
            raise failure.tell()

    @property
    def timeline(self) -> Timeline:
        """The steps that have ended, as in the profile that was taken while it ran.

        Raises CdTypeError CD0868 where none was.
        """
        return self._record.timeline

    def explain(self, routine: Routine | str) -> str:
        """Return when the steps of a routine ran, and what each waited for, with the reason.

        Raises CdValueError CD0869 where the plan has none of that name, CdTypeError CD0868 where no
        profile was taken while it ran.
        """
        name = _name_of(routine)
        text = self._record.explanation(name)
        if not text and not explanation(self._program.body, name):
            raise self._program.no_node(name)
        return text

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
