"""A function as kernels on a machine: memory is taken once, and runs are only launches."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from plusequals import cd
from plusequals.backends.cuda.backend import translate
from plusequals.backends.cuda.host_program import (
    COUNTER_BYTES,
    MOST_BLOCKS,
    Clear,
    CountedLoop,
    HostProgram,
    Launch,
    Step,
)
from plusequals.backends.cuda.kernels import FAULT_RECORD_SIZE
from plusequals.backends.cuda.nvrtc import Compiler, ResourceUsage
from plusequals.backends.gpu.driver_protocol import Properties
from plusequals.base import settings
from plusequals.lowering.ir.assignments import Procedure
from plusequals.lowering.ir.indexing import Symbol, evaluate

from .machine import Array, Machine


class LeftOut(Exception):
    """Something cannot be measured; says why."""


@dataclass(slots=True)
class Prepared:
    """A function on a machine, with its arguments there."""

    machine: Machine
    plan: HostProgram
    functions: list[Any]
    places: dict[int, int]
    figures: dict[str, ResourceUsage]
    faults: int
    arrived: int
    """Where blocks count themselves: zeros between kernels."""
    symbols: dict[Symbol, int] = field(default_factory=dict)

    def run(self) -> None:
        """Queue everything."""
        self.steps(self.plan.steps)

    def steps(self, steps: Sequence[Step]) -> None:
        for step in steps:
            match step:
                case Launch():
                    self.launch(step)
                case Clear(node):
                    self.machine.clear(self.places[node.id], node.bytes)
                case CountedLoop(symbol, lo, hi, by, body):
                    ends = evaluate(lo, self.symbols), evaluate(hi, self.symbols)
                    for self.symbols[symbol] in range(*ends, by):
                        self.steps(body)
                case _:
                    raise LeftOut("the host decides between kernels")

    def launch(self, step: Launch) -> None:
        kernel = self.plan.text.kernels[step.kernel]
        rounds = [evaluate(size, self.symbols) for size in step.grid]
        if min(rounds) <= 0:
            return
        grid = [min(size, most) for size, most in zip(rounds, MOST_BLOCKS)]
        grid += [1] * (3 - len(grid))
        arguments = [self.places[node.id] for node in kernel.nodes]
        arguments += [self.symbols[symbol] for symbol in kernel.symbols]
        arguments += [self.arrived] * (kernel.arrivals is not None)
        arguments += [self.faults, step.kernel + 1] * kernel.checks
        function = self.functions[step.kernel]
        self.machine.launch(function, grid, step.threads, arguments, kernel.dynamic)

    def outputs(self, arrays: Sequence[Array], names: Sequence[str]) -> list[Array]:
        """Return what arrays of those names are now, shaped as the given ones."""
        by_name = {p.node.label: p.node for p in self.plan.program.parameters}
        found = [np.empty_like(array) for array in arrays]
        for array, name in zip(found, names, strict=True):
            self.machine.download(array, self.places[by_name[name].id])
        return found

    def free(self) -> None:
        """Give all memory back."""
        for address in {*self.places.values(), self.faults, self.arrived}:
            self.machine.free(address)


def prepared(
    function: Callable[..., Any], arguments: Sequence[Any], machine: Machine, compiler: Compiler
) -> Prepared:
    """Return a function on a machine; raises LeftOut where it needs more than launches."""
    plain = getattr(function, "__wrapped__", function)
    procedure: Procedure = cd(plain).procedure(*arguments)
    known = _properties(machine)
    with settings.override(verify=False):
        plan = translate(procedure, known)
    if procedure.results:
        raise LeftOut("it makes new arrays")
    with tempfile.TemporaryDirectory(prefix="plusequals-") as folder:
        target = known.target_of(plan.text.specific)
        made = compiler.build(plan.text.text, target, Path(folder))
    functions = [
        machine.function(made.code, k.name, k.arguments, k.dynamic) for k in plan.text.kernels
    ]
    given = dict(zip(inspect.signature(plain).parameters, arguments, strict=True))
    places = {}
    for parameter in procedure.parameters:
        array = np.asarray(given[parameter.node.label], parameter.node.dtype.numpy)
        places[parameter.node.id] = machine.allocate(array.nbytes)
        machine.upload(places[parameter.node.id], array)
    for node in (*plan.device, plan.answers):
        if node.static_shape is None:
            raise LeftOut("the size of an array is only known in the run")
        places[node.id] = machine.allocate(node.bytes)
    faults = machine.allocate(8 * FAULT_RECORD_SIZE)
    machine.clear(faults, 8 * FAULT_RECORD_SIZE)
    size = max(plan.counted, COUNTER_BYTES)
    arrived = machine.allocate(size)
    machine.clear(arrived, size)
    return Prepared(machine, plan, functions, places, made.figures, faults, arrived)


def _properties(machine: Machine) -> Properties:
    major, minor = machine.facts.target[3:-1], machine.facts.target[-1]
    most = machine.facts.most_shared_bytes
    return Properties(machine.facts.name, (int(major), int(minor)), 1, 0, most_shared_bytes=most)
