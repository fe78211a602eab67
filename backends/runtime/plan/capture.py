"""Captured plans: a plan as one graph of its device, launched by one call of the driver.

The streams of the schedule become branches of the graph, its signals and waits the edges. All else
of a run is that of the plan: what it waits for and is waited for, versions, loads, contexts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, assert_never

from ....base.diagnostic import CdValueError, Diagnostic
from ...captures import GraphPlace, GraphStep, HasGraphs, NotCapturable
from ..device import device
from .program import Program
from .run_record import RunRecord
from .steps import Body, Branch, Frame, Loop, Node, Step


class CapturedProgram(Program):
    """A program whose runs launch a graph; observed ones, of traces and logs, run its steps."""

    def __init__(self, program: Program, max_streams: int | None) -> None:
        """Capture a program. Raises CdValueError CD0870 where a graph cannot hold it."""
        _require_capturable(program)
        name = f"captured {program.name}"
        super().__init__(name, program.recorded, max_streams, program.memory)
        for context in program.recorded.contexts:
            context.require_live()
        steps = _graph_steps(program.name, self.body)
        try:
            memory = self.stream.device.memory
            self._launch: Callable[[], object] = memory.graph(self.name, steps, self.stream.lane)
        except NotCapturable as why:
            raise _refusal(program.name, str(why)) from None

    def _checked(self, inputs: Mapping[str, Any], copied: bool) -> dict[str, Any]:
        """Return no inputs; CdValueError CD0870 where there are some: the graph has its numbers."""
        for name in inputs:
            raise CdValueError(
                Diagnostic(
                    "CD0870", f"`{self.name}` is given `{name}`, and a graph has its numbers",
                    helps=("run the plan that was captured, or let a tensor have the number",),
                )
            )  # fmt: skip
        return {}

    def _drive(self, frame: Frame, is_cancelled: Callable[[], bool], record: RunRecord) -> None:
        if frame.recorded:
            super()._drive(frame, is_cancelled, record)
        elif not is_cancelled():
            record.launch(self.stream.name, self._launch)()


def _require_capturable(program: Program) -> None:
    """Raise CdValueError CD0870 for control flow, and steps on anything but one device."""
    name, nodes = program.name, program.body.nodes
    if not nodes:
        raise _refusal(name, "it has no steps")
    home = nodes[0].devices[0]
    for node in nodes:
        match node:
            case Step():
                other = next((each for each in node.devices if each != home), None)
                if not isinstance(device(node.devices[0]).memory, HasGraphs):
                    raise _refusal(name, f"runs on {node.devices[0]}, which has no graphs", node)
                if other is not None:
                    raise _refusal(name, f"runs on {other}, and other steps on {home}", node)
            case Loop() | Branch():
                raise _refusal(name, _control_reason(node), node)
            case _:
                assert_never(node)


def _control_reason(node: Loop | Branch) -> str:
    if node.predicate.function is not None:
        return "has a predicate that is a function of the host"
    return "has a tensor as its predicate, and conditional nodes of graphs are not used"


def _graph_steps(name: str, body: Body) -> list[GraphStep]:
    """Return the steps of a graph in the order of the schedule, on its streams, with its waits."""
    schedule, steps = body.schedule, list[GraphStep]()
    position = {at: number for number, at in enumerate(schedule.order)}
    for at in schedule.order:
        step = body.nodes[at]
        assert isinstance(step, Step), "control flow has been refused"
        waits = tuple(position[waited] for waited in schedule.waits[at])
        steps.append(GraphStep(partial(_prepare, name, step), schedule.streams[at][0], waits))
    return steps


def _prepare(name: str, step: Step, place: GraphPlace) -> Callable[[], object]:
    try:
        return step.prepare(place)
    except NotCapturable as why:
        raise _refusal(name, str(why), step) from None


def _refusal(name: str, why: str, node: Node | None = None) -> CdValueError:
    """Return the error CD0870 with a reason, of a node where it is that of one."""
    reason = why if node is None else f"`{node.name}` {why}"
    lines = () if node is None else (f"it was recorded at {node.line}",)
    helps = ("run the plan itself: `plan()`",)
    message = f"`{name}` cannot be captured: {reason}"
    return CdValueError(Diagnostic("CD0870", message, notes=lines, helps=helps))
