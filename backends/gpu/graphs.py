"""Graphs: steps of several streams, captured once and launched by one call of the driver.

A capture has streams of its own: on others, the pool or another thread could queue work meanwhile.
What it records by events and waits is the order of a schedule, and nothing else is in order.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from ..captures import GraphCase, GraphLoop, GraphPlace, GraphStep
from .conditions import Conditions, Queued
from .driver_protocol import Context, Handle


class Graphs:
    """The graphs of one device; thread-safe."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._lock = threading.RLock()
        self._streams: list[Handle] = []
        """Streams of captures, which queue nothing else."""
        self._events: list[Handle] = []
        """Events of captures; the host asks none of them."""
        self._bodies: list[Handle] = []
        """Streams of captures of the bodies of conditional nodes, by how deep they are nested."""
        self.dropped: deque[Handle] = deque()
        """Graphs that nobody can launch any more; finalizers may append at any point."""

    def capture(
        self, steps: Sequence[GraphStep], device: object, home: Handle, conditions: Conditions
    ) -> tuple[Handle, object]:
        """Return the graph of steps that is launched on a stream, and what holds their memory.

        Raises DriverError, and what preparing a step raises; then nothing is left.
        """
        with self._lock:
            while self.dropped:
                self._context.destroy_graph(self.dropped.popleft())
            for _ in range(len(self._streams), 1 + max(step.stream for step in steps)):
                self._streams.append(self._context.stream())
            for _ in range(len(self._events), len(steps) + 1):
                self._events.append(self._context.event())
            queued = [
                self._prepared(
                    step, GraphPlace(device, self._streams[step.stream], home), 0, conditions
                )
                for step in steps
            ]
            with self._context.capturing:
                return self._record(steps, queued, conditions), queued

    def _prepared(
        self, step: GraphStep, place: GraphPlace, depth: int, conditions: Conditions
    ) -> Queued:
        """Return what queues a step, which has its memory; the bodies of a loop or case are queued
        on streams of their own."""
        if not isinstance(step.prepare, GraphLoop | GraphCase):
            return step.prepare(place)
        if depth == len(self._bodies):
            self._bodies.append(self._context.stream())
        inner = place._replace(stream=self._bodies[depth])

        streams, node = (place.stream, inner.stream), step.prepare

        def part(body: Sequence[GraphStep], at: GraphPlace = inner) -> list[Queued]:
            return [self._prepared(each, at, depth + 1, conditions) for each in body]

        if isinstance(node, GraphLoop):
            parts = part(node.before, place), part(node.after), part(node.before)
            return conditions.loop(node, parts, streams)
        branches = [part(body) for body in node.branches]
        return conditions.case(node, (branches, part(node.otherwise)), streams)

    def _record(
        self, steps: Sequence[GraphStep], queued: Sequence[Queued], conditions: Conditions
    ) -> Handle:
        """Capture steps whose memory has been taken; return their graph."""
        context, origin = self._context, self._streams[0]
        try:
            context.begin_capture(origin)
            conditions.begin(origin)
            self._queue(steps, queued)
            return context.end_capture(origin)
        except BaseException:  # also an interrupt, which may come anywhere
            with suppress(Exception):  # where there is nothing to end
                context.destroy_graph(context.end_capture(origin))
            self._streams, self._events, self._bodies = [], [], []  # none is known to be free
            raise

    def _queue(self, steps: Sequence[GraphStep], queued: Sequence[Callable[[], object]]) -> None:
        """Queue steps, each after those that it waits for, and let stream 0 wait for the last."""
        context, streams, (begin, *events) = self._context, self._streams, self._events
        awaited = {waited for step in steps for waited in step.waits}
        last = {step.stream: at for at, step in enumerate(steps)}
        begun = {0}
        context.record(begin, streams[0])
        for at, (step, queue) in enumerate(zip(steps, queued, strict=True)):
            stream = streams[step.stream]
            for waited in step.waits:
                context.wait(stream, events[waited])
            if step.stream not in begun and not step.waits:
                context.wait(stream, begin)
            begun.add(step.stream)
            queue()
            if at in awaited or (step.stream and last[step.stream] == at):
                context.record(events[at], stream)
        for number, at in last.items():
            if number:
                context.wait(streams[0], events[at])
