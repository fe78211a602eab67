"""Captured plans: a plan as one graph of its device, launched by one call of the driver.

The streams of the schedule become branches of the graph, its signals and waits the edges. Loops and
branches whose predicate is a tensor on the device become conditional nodes, and what is in them is
done in order. All else of a run is that of the plan: what it waits for and is waited for, versions,
loads, contexts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, assert_never

import numpy as np

from ....base.diagnostic import CdValueError, Diagnostic
from ...captures import (
    GraphCase,
    GraphLoop,
    GraphPlace,
    GraphStep,
    HasGraphs,
    NotCapturable,
    Preparation,
)
from ...device_arrays.copies import AnyArray, prepare_copy
from ..device import device
from .driver import no_branch, too_many_iterations
from .program import Program
from .run_record import RunRecord
from .steps import Body, Branch, Carry, Frame, Loop, Node, Step

_ANSWERS = {True: "true or false", False: "whole number"}
"""What the predicate of a loop gives, and that of a branch."""


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
    """Raise CdValueError CD0870 for what needs the host, and steps on anything but one device."""
    name, nodes = program.name, program.body.nodes
    if not nodes:
        raise _refusal(name, "it has no steps")
    _require_parts(name, program.body, nodes[0].devices[0])


def _require_parts(name: str, body: Body, home: str) -> None:
    for node in body.nodes:
        if not isinstance(device(node.devices[0]).memory, HasGraphs):
            raise _refusal(name, f"runs on {node.devices[0]}, which has no graphs", node)
        other = next((each for each in node.devices if each != home), None)
        if other is not None:
            raise _refusal(name, f"runs on {other}, and other steps on {home}", node)
        if not isinstance(node, Step):
            if why := _control_reason(node):
                raise _refusal(name, why, node)
            for part in node.bodies:
                _require_parts(name, part, home)


def _control_reason(node: Loop | Branch) -> str:
    """Return why a graph cannot hold a loop or branch, "" where it can, but for its steps."""
    if node.predicate.function is not None:
        return "has a predicate that is a function of the host"
    if not node.predicate.buffers:
        return "has the iterations of a loop as its predicate, which the host counts"
    (read,), is_loop = node.predicate.buffers, isinstance(node, Loop)
    array: AnyArray = read.array
    if isinstance(array, np.ndarray):
        return f"has `{read.label}` as its predicate, an array of the host"
    if array.size != 1 or array.dtype.kind == "c" or not (is_loop or array.dtype.kind in "biu"):
        return f"has `{read.label}` as its predicate, which is no {_ANSWERS[is_loop]}"
    if isinstance(node, Loop) and node.carries:
        return "has tensors that change places in each iteration"
    if isinstance(node, Branch) and not node.branches:
        return "has no branch"
    sources = () if isinstance(node, Loop) else [carry.source for carry in node.otherwise]
    targets = () if isinstance(node, Loop) else [carry.target for carry in node.otherwise]
    if any(source in targets[:at] for at, source in enumerate(sources)):
        return "passes a value on that it has replaced before"
    return ""


def _graph_steps(name: str, body: Body) -> list[GraphStep]:
    """Return the steps of a graph in the order of the schedule, on its streams, with its waits."""
    schedule, steps = body.schedule, list[GraphStep]()
    position = {at: number for number, at in enumerate(schedule.order)}
    for at in schedule.order:
        waits = tuple(position[waited] for waited in schedule.waits[at])
        prepare = _prepared(name, body.nodes[at])
        steps.append(GraphStep(prepare, schedule.streams[at][0], waits))
    return steps


def _prepared(name: str, node: Node) -> Preparation:
    """Return how a node becomes a step of a graph: a loop or branch with its parts."""
    match node:
        case Step():
            return partial(_prepare, name, node)
        case Loop():
            most = -1 if node.at_most is None else node.at_most
            return GraphLoop(
                node.predicate.buffers[0].array, _in_order(name, node.before),
                _in_order(name, node.after), most, lambda _: too_many_iterations(node),
                lambda why: _refusal(name, f"needs a conditional node, and {why}", node),
            )  # fmt: skip
        case Branch():
            copies = [
                GraphStep(partial(_prepare_copy, name, node, carry), 0, ())
                for carry in node.otherwise
            ]
            return GraphCase(
                node.predicate.buffers[0].array,
                [_in_order(name, part) for part in node.branches], copies, partial(no_branch, node),
                lambda why: _refusal(name, f"needs a conditional node, and {why}", node),
            )  # fmt: skip
        case _:
            assert_never(node)


def _in_order(name: str, body: Body) -> list[GraphStep]:
    """Return the steps of a part of a loop or branch, one after another."""
    return [GraphStep(_prepared(name, body.nodes[at]), 0, ()) for at in body.schedule.order]


def _prepare(name: str, step: Step, place: GraphPlace) -> Callable[[], object]:
    try:
        return step.prepare(place)
    except NotCapturable as why:
        raise _refusal(name, str(why), step) from None


def _prepare_copy(
    name: str, branch: Branch, carry: Carry, place: GraphPlace
) -> Callable[[], object]:
    try:
        return prepare_copy(carry.target.array, carry.source.array, place)
    except NotCapturable as why:
        raise _refusal(name, str(why), branch) from None


def _refusal(name: str, why: str, node: Node | None = None) -> CdValueError:
    """Return the error CD0870 with a reason, of a node where it is that of one."""
    reason = why if node is None else f"`{node.name}` {why}"
    lines = () if node is None else (f"it was recorded at {node.line}",)
    helps = ("run the plan itself: `plan()`",)
    message = f"`{name}` cannot be captured: {reason}"
    return CdValueError(Diagnostic("CD0870", message, notes=lines, helps=helps))
