"""Steps of routines: what a call of a routine reads and writes, and its work in a frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from ....base.dataclass import dataclass
from ....lowering.ir.assignments import Parameter
from ...captures import GraphPlace, NotCapturable
from ...device_arrays.copies import copy
from ...interface import Array
from ..call_arguments import (
    bind_arguments,
    convert_argument,
    is_by_reference,
    require_disjoint,
)
from ..device import HostContext
from ..link import layout_mismatch
from ..memory import Buffer
from ..parameter_slots import Argument
from ..routine import Routine
from .graph import Resource
from .steps import Counter, Frame, Memory, Run, Scratch, Step

ARGUMENTS = Memory("arguments")
"""The memory of all arrays that are arguments: any two of them may be the same."""


@dataclass(frozen=True, slots=True)
class _Given:
    """An argument of a call: a number, an array that is read when the step runs, a counter."""

    name: str
    value: Any
    parameter: Parameter


Arguments: TypeAlias = Mapping[int, _Given]


def routine_step(
    routine: Routine,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    merged: Buffer | None,
    line: str,
) -> Step:
    """Return the step of a call of a routine, which merges an array where it merges at all.

    Raises what the call would raise for wrong arguments.
    """
    compiled = routine.compiled
    span = compiled.procedure.span
    values = bind_arguments(routine.name, compiled.names, routine.bindings, args, kwargs, span)
    given: dict[int, _Given] = {}
    reads: list[Resource] = list(routine.reads)
    writes: list[Resource] = list(routine.written)
    for at, (slot, parameter) in enumerate(compiled.parameters):
        if not isinstance(slot, Argument):
            continue
        given[at] = _Given(slot.name, values[slot.name], parameter)
        number = not parameter.node.rank and not parameter.written
        if not number or _is_read_late(values[slot.name]):
            (writes if parameter.written else reads).append(ARGUMENTS)
    if merged is not None:
        reads.append(merged)
    size = routine.arena_bytes
    scratch = Scratch(f"temporaries of {routine.name}", size) if size else None
    work = _RoutineWork(routine, given, merged, scratch)
    work.require({})
    device = routine.context.device.name
    return Step(
        routine.name, "routine", (device,), tuple(dict.fromkeys(reads)),
        tuple(dict.fromkeys(writes)), work.bind, work.prepare, work.note, work.names,
        work.require, line, routine, routine.context.stream, scratch,
    )  # fmt: skip


def open_step(routine: Routine, merged: Buffer | None, line: str) -> Step:
    """Return the step of any call of a routine, whose arguments the frame of a run gives."""
    work = _RoutineWork(routine, {}, merged)
    reads = routine.reads if merged is None else (*routine.reads, merged)
    device, stream = routine.context.device.name, routine.context.stream
    return Step(
        routine.name, "routine", (device,), tuple(dict.fromkeys(reads)), routine.written,
        work.bind, work.prepare, work.note, {}, None, line, routine, stream,
    )  # fmt: skip


def _is_read_late(value: Any) -> bool:
    """Whether an argument is read when its step runs: an earlier step may write it."""
    return not isinstance(value, Counter) and is_by_reference(value)


def _converted(argument: _Given, value: Any, routine: Routine) -> Any:
    backend = routine.context.device.code
    return convert_argument(argument.name, value, argument.parameter, backend)


@dataclass(frozen=True, slots=True)
class _RoutineWork:
    """The work of a call of a routine."""

    routine: Routine
    given: Arguments
    merged: Buffer | None
    scratch: Scratch | None = None

    def bind(self, frame: Frame) -> Run:
        """Return the call with the arrays of a frame."""
        routine = self.routine
        moved = frame.arrays and any(held in frame.arrays for held in routine.buffers.values())
        lent = None if self.scratch is None else frame.lent.get(self.scratch)
        if routine.static_run is not None and not moved and not frame.recorded:
            return routine.static_run if lent is None else lent.run
        arrays: dict[int, Any] = {at: frame.array(held) for at, held in routine.buffers.items()}
        if self.merged is not None:
            arrays |= dict.fromkeys(routine.compiled.merged, frame.array(self.merged))
        bind: Callable[[Mapping[int, Any]], Run] = routine.bind
        if frame.recorded:
            bind = routine.recorded
        elif lent is not None:
            bind = partial(routine.bind, arena=lent.memory)
        if frame.given:
            return bind({**arrays, **frame.given})
        late: dict[int, Any] = {}
        writes = any(argument.parameter.written for argument in self.given.values())
        for at, argument in self.given.items():
            value = argument.value
            if isinstance(value, Counter):
                value = frame.counts[value]
            else:
                value = frame.inputs.get(argument.name, value)
            parameter = argument.parameter
            number = not parameter.node.rank and not parameter.written
            if number and not _is_read_late(value):
                arrays[at] = _converted(argument, value, routine)
                continue
            is_array = isinstance(value, np.ndarray) and not number
            fits = is_array and not layout_mismatch(parameter, value)
            in_place = parameter.written or not writes  # what is only read may overlap that
            (arrays if fits and in_place else late)[at] = value
        if not late:
            return bind(arrays)

        def run() -> object:
            converted: dict[int, Array] = {
                at: _converted(self.given[at], value, routine) for at, value in late.items()
            }
            return bind(arrays | converted)()

        return run

    def prepare(self, place: GraphPlace) -> Callable[[], object]:
        """Return what queues the call as a step of a graph, with the numbers that it was given.

        Raises NotCapturable where the host has a part in it, or the call gives arrays.
        """
        routine = self.routine
        if isinstance(routine.context, HostContext):
            raise NotCapturable("is a function: it uses the host's arrays")
        arrays: dict[int, Any] = {at: held.array for at, held in routine.buffers.items()}
        if self.merged is not None:
            arrays |= dict.fromkeys(routine.compiled.merged, self.merged.array)
        for at, argument in self.given.items():
            if argument.parameter.node.rank or argument.parameter.written:
                verb = "writes" if argument.parameter.written else "reads"
                raise NotCapturable(f"{verb} the array `{argument.name}`, which the call gives")
            if isinstance(argument.value, Counter):
                raise NotCapturable(f"is given the iterations of `{argument.value.loop}`")
            number = _converted(argument, argument.value, routine)
            arrays[at] = routine.context.stream.like(argument.name, number)
            copy(arrays[at], number, routine.name)
        return routine.prepare_capture(arrays, place, tuple(self.given))

    @property
    def names(self) -> dict[str, bool]:
        """The names of what a run may give it, and whether the call writes that."""
        return {
            argument.name: argument.parameter.written
            for argument in self.given.values()
            if not isinstance(argument.value, Counter)
        }

    def require(self, inputs: Mapping[str, Any]) -> None:
        """Raise, as a call would, where an argument, or what a run gives for it, does not fit."""
        written = []
        for argument in self.given.values():
            if not isinstance(argument.value, Counter):
                value = inputs.get(argument.name, argument.value)
                array = _converted(argument, value, self.routine)
                if argument.parameter.written:
                    written.append(array)
        require_disjoint(written, self.routine.name)

    def note(self) -> None:
        """Record the versions that the call writes."""
        of_host = isinstance(self.routine.context, HostContext)
        for field, buffer in self.routine.writes:
            field.record_write(buffer)
            if of_host:
                field.host_tick = field.clock
