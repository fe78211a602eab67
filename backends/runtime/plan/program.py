"""Recorded plans, ready to run: their streams, what they read and write, and their runs."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ....base import settings
from ....base.diagnostic import CdTypeError, CdValueError, Diagnostic, nearest
from .. import hazards
from ..argument_checks import field_of, wrong_argument
from ..call_arguments import own_value
from ..device import Stream, device
from ..field import Field
from ..memory import Buffer
from ..queue import Event, WakeUps
from ..routine import Routine
from ..state import RUNTIME
from ..transfer import queue_copy
from .drafts import misuse, not_taken
from .driver import Driver, Lane, OwnLane, QueueLane
from .private_arrays import PrivateMemory, is_in_order, require_written, share_memory
from .recording import Recorded
from .run_record import RunRecord
from .steps import Body, Frame, Node, Step, scheduled


class Program:
    """A recorded plan, ready to run: its streams, and all that it reads and writes."""

    def __init__(
        self,
        name: str,
        recorded: Recorded,
        max_streams: int | None,
        memory: PrivateMemory | None = None,
    ) -> None:
        self.name, self.recorded = name, recorded
        self.body = scheduled(recorded.nodes, max_streams)
        private = recorded.private
        if memory is None:
            memory = share_memory(name, self.body, private, recorded.moved)
        else:
            require_written(name, self.body, private)
            self.body, memory = self._in_order(memory, max_streams)
        self.memory = memory
        """That of the arrays that only the plan sees, and of temporaries."""
        self.arguments: dict[str, bool] = {}
        """The names of what a run may give, and whether it is written."""
        for step in self.body.steps:
            for argument, written in step.arguments.items():
                self.arguments[argument] = written or self.arguments.get(argument, False)
        nodes = self.body.nodes
        reads = dict.fromkeys(r for node in nodes for r in node.reads if isinstance(r, Buffer))
        writes = dict.fromkeys(w for node in nodes for w in node.writes if isinstance(w, Buffer))
        self.reads = tuple(r for r in reads if r not in writes and r not in private)
        self.writes = (*(write for write in writes if write not in private), *memory.arenas)
        self._notes = tuple(self.body.notes)
        self._lock, self._process = threading.Lock(), os.getpid()
        """One run at a time: they have the streams and the scratch arrays in common."""
        self._runner: int | None = None
        """The thread of the run."""
        home = self.body.schedule.devices[0] if nodes else ""
        self.stream = device(home).stream(threaded=False)
        """Where it runs that waits for it."""
        self._streams: list[Stream] = []
        self._homes: dict[Body, list[Stream | None]] = {}
        self._place(self.body, home, 0)
        self.is_serial = not self._streams and not self.body.has_control_flow

    def _in_order(
        self, memory: PrivateMemory, max_streams: int | None
    ) -> tuple[Body, PrivateMemory]:
        """Return the body, and what it takes of the memory of the plan that it is a part of, so
        that nothing is needed at once that shares memory.

        Raises CdTypeError CD0866 where arrays would be.
        """
        private, less = self.recorded.private, memory.without_temporaries
        one_stream = scheduled(self.recorded.nodes, 1)
        for body, each in (self.body, memory), (self.body, less), (one_stream, memory):
            if is_in_order(body, private, each):
                return body, each
        if is_in_order(one_stream, private, less):
            return one_stream, less
        raise not_taken(
            f"`{self.name}` would run at once on several devices what shares memory",
            "make the tensors with `pe.tensor`",
        )

    def of(self, nodes: Sequence[Node], name: str, max_streams: int | None) -> Program:
        """Return the program of some of the nodes."""
        recorded = self.recorded
        part = replace(recorded, nodes=tuple(nodes))
        return Program(name, part, max_streams, self.memory)

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

    def start(
        self, queue: Stream, inputs: Mapping[str, Any]
    ) -> tuple[Event, Callable[[], None], RunRecord]:
        """Queue a run on a stream, after whatever uses its arrays.

        Returns the event of its end, a function that cancels it, and the record of its steps.
        """
        if self._runner == threading.get_ident():
            raise misuse(f"`{self.name}` is run by its own predicate", "run it after that")
        inputs = self._checked(inputs, copied=queue is not self.stream)
        cancelled, record = threading.Event(), RunRecord(self.name)
        logged = settings.current().debug_log_from_routines
        queue.worker.wait_for_slot()
        with RUNTIME.scheduling.lock:
            RUNTIME.scheduling.decisions += 1
            for context in self.recorded.contexts:
                context.require_live()
            for context, field, buffer in self.recorded.loads:
                context.refresh(field, buffer)
            automatic = settings.current().automatic_host_transfers
            for field, buffer in self.recorded.asked:
                if automatic and field.host_tick > buffer.tick:
                    queue_copy(queue, field.host, buffer)
            for field in self.recorded.on_host:
                queue_copy(queue, field.newest(), field.host)
            recorded = RUNTIME.recording(logged) is not None
            frame = Frame({}, inputs, {}, "", recorded, lent=self.memory.lent)

            def run() -> None:
                self._run(frame, cancelled.is_set, record)

            event = hazards.enqueue(queue, run, self.reads, self.writes)
            event.keep()
            for context in self.recorded.contexts:
                context.note_run(event)
            for note in self._notes:
                note()
        queue.flush(event)
        return event, cancelled.set, record

    def _run(self, frame: Frame, is_cancelled: Callable[[], bool], record: RunRecord) -> None:
        if self._process != os.getpid():  # a thread of the parent may hold the lock
            self._lock, self._process = threading.Lock(), os.getpid()
        with self._lock:
            self._runner = threading.get_ident()
            try:
                self._drive(frame, is_cancelled, record)
            finally:
                self._runner = None

    def _drive(self, frame: Frame, is_cancelled: Callable[[], bool], record: RunRecord) -> None:
        if frame.recorded or self.is_serial:
            self._run_in_order(frame, is_cancelled, record)
            return
        own = OwnLane(self.stream, WakeUps())
        queues = {id(stream): QueueLane(stream) for stream in self._streams}
        lanes: dict[Body, list[Lane | None]] = {
            body: [None if stream is None else queues[id(stream)] for stream in homes]
            for body, homes in self._homes.items()
        }
        Driver(own, lanes, is_cancelled, record).run(self.body, frame)

    def _run_in_order(
        self, frame: Frame, is_cancelled: Callable[[], bool], record: RunRecord
    ) -> None:
        """Run everything on this thread, in program order."""
        if not self.body.has_control_flow and record.profile() is None:
            for step in self.body.steps:
                if is_cancelled():
                    return
                step.bind(frame)()
            return
        own = OwnLane(self.stream, WakeUps())
        lanes: dict[Body, list[Lane | None]] = {
            each: [None] * len(homes) for each, homes in self._homes.items()
        }
        Driver(own, lanes, is_cancelled, record).run(self.body, frame)

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
        inputs = {
            name: _as_now(value, name, copied and not self.arguments[name])
            for name, value in inputs.items()
        }
        if inputs:
            for step in self.body.steps:
                if step.require is not None:
                    step.require(inputs)
        return inputs

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
        if isinstance(wanted, str) or not isinstance(wanted, list | tuple):
            raise wrong_argument("list of routines", wanted, 'write a list: `sources=["step"]`')
        for given in wanted:
            if not isinstance(given, str | Routine):
                fix = 'give routines of the plan, or their names: `"step"`'
                raise wrong_argument("routine or its name", given, fix)
        names = [given if isinstance(given, str) else given.name for given in wanted]
        for name in names:
            if all(node.name != name for node in self.body.nodes):
                raise self.no_node(name)
        return [at for at, node in enumerate(self.body.nodes) if node.name in names]


def _as_now(value: Any, name: str, copied: bool) -> Any:
    """Return an input as it is now: a tensor's value, an array of its own if `copied`."""
    if hasattr(value, "field") or isinstance(value, Field):
        return field_of(value).numpy()
    return own_value(value, name) if copied else value
