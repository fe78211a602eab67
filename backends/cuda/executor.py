"""One run of compiled kernels: the steps of the host, arrays in, results and faults out.

A run takes memory of the device for every array of the host, copies what is given to it, does the
steps of the plan, waits, and copies back what was written. Where a check failed nothing is copied
back. Arrays that are on the device are used where they are; if all are, and nothing can fail, a run
does not wait: what it makes is ordered by streams.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from math import prod
from typing import Any, Protocol

import numpy as np

from ...base.dataclass import dataclass
from ...lowering.ir.assignments import Break, Continue, Parameter
from ...lowering.ir.dynamic_sizes import sizes_of
from ...lowering.ir.evaluate import State, key, value_of
from ...lowering.ir.expressions import Expr
from ...lowering.ir.faults import raise_fault
from ...lowering.ir.indexing import Symbol, evaluate
from ...lowering.ir.node import Node
from ..codegen import records
from ..gpu.device import Opened
from ..gpu.device_array import DeviceArray, Placed
from ..gpu.driver_protocol import Handle, Shape
from ..gpu.staging import Transfers
from ..gpu.stream_sync import after, before
from ..interface import Array
from .host_program import (
    ANSWERS,
    MOST_BLOCKS,
    REPORTED,
    Again,
    Asked,
    Bind,
    Choose,
    Clear,
    Exchange,
    Give,
    Known,
    Launch,
    Learn,
    Plan,
    Repeat,
    Show,
    Step,
)
from .kernels import FAULTS, PLACES, Kernel, Text

_FLAG, _RECORD = ANSWERS, ANSWERS + 2 + PLACES
"""Where in the numbers that a run reports, behind answers, it says whether it failed, and how."""


class _Failed(Exception):
    """A check failed: what follows is not done."""


class Runs(Protocol):
    """Code as a run needs it."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def plan(self) -> Plan:
        """The host's part of it."""

    @property
    def functions(self) -> tuple[Handle, ...]:
        """Its kernels, in the order of the plan."""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """What a call gives."""

    @property
    def results(self) -> tuple[Node, ...]:
        """What it returns."""

    @property
    def device(self) -> Opened:
        """Where it runs."""

    @property
    def run_number(self) -> int:
        """What the lines of its log are told by."""


@dataclass(slots=True)
class Run:
    """One run: where each array is, and what the host knows."""

    code: Runs
    stream: Handle
    places: dict[int, int] = field(default_factory=dict)
    """The address of each node's array."""
    symbols: dict[Symbol, int] = field(default_factory=dict)
    """The integers that the host knows now."""
    taken: list[int] = field(default_factory=list)
    """The addresses of memory that is given back at the end."""
    callers: dict[int, int] = field(default_factory=dict)
    """Where the arguments are on the device, whatever traded places with them."""
    shapes: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Those of arrays whose size only the run knows."""
    copies: Transfers = field(init=False)
    reports: int = 0
    arrived: int = 0
    """Where blocks count themselves: zeros before each launch, and after it."""
    launches: int = 0

    def __post_init__(self) -> None:
        self.copies = self.code.device.transfers(self.stream)

    @property
    def text(self) -> Text:
        """The text of the kernels."""
        return self.code.plan.text

    def __call__(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """Do everything; the results are the arrays that were given for them, or new ones."""
        code = self.code
        count = len(code.parameters)
        given = [array for array in arrays[:count] if array is not None]
        theirs = [array for array in given if isinstance(array, Placed)]
        before(code.device, theirs, self.stream)
        self.begin(given)
        try:
            self.steps(code.plan.steps)
            if self.asks:
                self.report()
        except _Failed:
            self.logs_home(given)
            self.fail()
        self.returned(given)
        results = tuple(
            self.kept(node) if theirs and array is None and node.rank
            else self.taken_home(node, array)
            for node, array in zip(code.results, arrays[count:], strict=True)
        )  # fmt: skip
        if after(code.device, theirs, self.stream, code.name) or self.copies.busy or not theirs:
            self.copies.finish()
        self.logs_home(given)
        return results

    def returned(self, given: Sequence[Any]) -> None:
        """Queue the copies of written arguments to where the caller has them."""
        for parameter, array in zip(self.code.plan.program.parameters, given, strict=True):
            if not parameter.written or parameter.log is not None:
                continue
            node = parameter.node
            mine = self.callers[node.id]
            last = self.places[node.id] if parameter.returns else mine
            if not isinstance(array, Placed):
                self.copies.download(array, last)
            elif last != mine:
                self.copy(mine, last, node.bytes)

    def logs_home(self, given: Sequence[Any]) -> None:
        """Copy back what was filled of logs, whose counters are the last parameter."""
        code = self.code
        logs = [(k, p.node, p.log) for k, p in enumerate(code.parameters) if p.log is not None]
        if not logs:
            return
        counters = given[-1]
        self.copies.download(counters, self.places[code.parameters[-1].node.id])
        self.copies.finish()
        for k, node, place in logs:
            self.copies.download(given[k][: counters[place]], self.places[node.id])
        self.copies.finish()

    @property
    def asks(self) -> bool:
        """Whether a check may have failed."""
        return any(kernel.checks for kernel in self.text.kernels)

    def begin(self, given: Sequence[Any]) -> None:
        """Take memory and fill it."""
        size = REPORTED + self.code.plan.counted
        self.reports = self.places[self.code.plan.answers.id] = self.take("what is reported", size)
        self.arrived = self.reports + REPORTED
        self.clear(self.reports, size)
        self.place(given)

    def place(self, given: Sequence[Any]) -> None:
        """Have every array on the device, and know the sizes."""
        code = self.code
        for symbol, at, axis in sizes_of(code.plan.program):
            self.symbols[symbol] = given[at].shape[axis]
        for parameter, array in zip(code.parameters, given, strict=True):
            self.given(parameter, array)
        for node in (*code.plan.device, *code.results):
            if node.static_shape is not None:
                self.places[node.id] = self.take(node.label, node.bytes)

    def take(self, label: str, size: int) -> int:
        """Return the address of memory for the run."""
        address = self.code.device.pool.take(size, label, self.code.name, self.stream)
        self.taken.append(address)
        return address

    def given(self, parameter: Parameter, array: Any) -> None:
        """Have an argument on the device: where it is, or a copy in C order; a log is zeros."""
        node = parameter.node
        if isinstance(array, Placed):
            self.places[node.id] = self.callers[node.id] = array.address
            return
        address = self.take(node.label, array.nbytes)
        self.places[node.id] = self.callers[node.id] = address
        if parameter.log is None:
            self.copies.upload(address, array)
        else:
            self.code.device.context.clear(address, array.nbytes, self.stream)

    def kept(self, node: Node) -> DeviceArray:
        """Return a result where it is, in memory that is its own from now on."""
        address = self.places[node.id]
        shape = self.shapes.get(node.id, node.static_shape)
        assert shape is not None, "its storage was given, and so its shape"
        if address not in self.taken:  # two results in one place, or an argument's
            size = node.dtype.itemsize * prod(shape)
            mine = self.take(node.label, size)
            self.copy(mine, address, size)
            address = mine
        self.taken.remove(address)
        return DeviceArray(self.code.device, address, shape, node.dtype.numpy, self.stream)

    def taken_home(self, node: Node, array: Array | None) -> Array:
        """Queue the copy of a result into an array, a new one where none is given."""
        if array is None:
            shape = self.shapes.get(node.id, node.static_shape)
            assert shape is not None, "its storage was given, and so its shape"
            array = np.empty(shape, node.dtype.numpy)
        self.copies.download(array, self.places[node.id])
        return array

    def end(self) -> None:
        """Give back the memory of the run: what is queued so far may still use it."""
        self.copies.drop()
        self.code.device.pool.give_back(self.taken, self.stream)

    # ------------------------------------------------------------------------- steps

    def steps(self, steps: Sequence[Step]) -> str:
        """Do steps; return `break` or `continue` where one of them was that."""
        for step in steps:
            signal = self.step(step)
            if signal:
                return signal
        return ""

    def step(self, step: Step) -> str:
        """Do a step; return as `steps` does."""
        match step:
            case Launch():
                self.launch(step)
            case Repeat():
                return self.repeat(step)
            case Again(prelude, test, body):
                while self.steps(prelude) != "break" and self.ask(test):
                    if self.steps(body) == "break":
                        break
            case Choose(test, then, other):
                return self.steps(then if self.ask(test) else other)
            case Bind(symbol, value):
                self.symbols[symbol] = self.number(value)
            case Learn(symbols, launch):
                self.launch(launch)
                self.symbols.update(zip(symbols, self.report().tolist()))
            case Clear(node):
                self.clear(self.places[node.id], node.bytes)
            case Give(node):
                self.give(node)
            case Exchange(nodes, sources):
                found = [self.places[source.id] for source in sources]
                self.places.update(zip((node.id for node in nodes), found, strict=True))
            case Show():
                self.show(step)
            case Break():
                return "break"
            case Continue():
                return "continue"
        return ""

    def repeat(self, step: Repeat) -> str:
        """Do a loop; return as `steps` does."""
        lo, hi = evaluate(step.lo, self.symbols), evaluate(step.hi, self.symbols)
        for value in range(lo, hi, step.step):
            self.symbols[step.symbol] = value
            if self.steps(step.body) == "break":
                break
        return ""

    def launch(self, step: Launch, *behind: int) -> None:
        """Queue a kernel; one whose loops have no round is left out."""
        kernel = self.text.kernels[step.kernel]
        shape = self.grid(step)
        if shape is None:
            return
        aside = {n.id: self.aside(n) for n in kernel.nodes if self.is_away(n, kernel)}
        arguments = [aside.get(node.id, self.places[node.id]) for node in kernel.nodes]
        arguments += [self.symbols[symbol] for symbol in kernel.symbols]
        arguments += [self.arrived] * (kernel.arrivals is not None)
        self.launches += 1
        arguments += [self.reports + 8 * _FLAG, self.launches] * kernel.checks
        arguments += behind
        self.start(step.kernel, shape, step.threads, arguments)
        for node in kernel.nodes:
            if node.id in aside and kernel.aligned[node.id]:
                self.copy(self.places[node.id], aside[node.id], node.bytes)

    def is_away(self, node: Node, kernel: Kernel) -> bool:
        """Whether an array does not lie where a kernel needs it, as one of somebody else may."""
        return node.id in kernel.aligned and self.places[node.id] % 16 != 0

    def aside(self, node: Node) -> int:
        """Return the address of a copy of an array, from where a kernel can read it."""
        made = self.take(f"{node.label}, moved", node.bytes)
        self.copy(made, self.places[node.id], node.bytes)
        return made

    def grid(self, step: Launch) -> Shape | None:
        """Return how many blocks a launch has along each axis, None where there is no round."""
        rounds = [evaluate(size, self.symbols) for size in step.grid]
        if min(rounds) <= 0:
            return None
        x, y, z, *_ = (*(min(size, most) for size, most in zip(rounds, MOST_BLOCKS)), 1, 1)
        return x, y, z

    def start(self, number: int, grid: Shape, block: Shape, arguments: list[int]) -> None:
        """Queue a kernel."""
        function, given = self.code.functions[number], self.text.kernels[number].dynamic
        self.code.device.context.launch(function, grid, block, arguments, self.stream, given)

    def clear(self, address: int, size: int) -> None:
        """Queue the filling of memory with zeros."""
        self.code.device.context.clear(address, size, self.stream)

    def copy(self, address: int, source: int, size: int) -> None:
        """Queue a copy within the device."""
        self.code.device.copy(address, source, size, self.stream)

    def ask(self, asked: Asked) -> int:
        """Return a value that the host has to know."""
        if isinstance(asked, Known):
            return self.number(asked.value)
        self.launch(asked)
        return int(self.report()[0])

    def number(self, value: Expr) -> int:
        """Return what is known from the integers that the host knows now."""
        numbers = {key(symbol): number for symbol, number in self.symbols.items()}
        return int(value_of(value)(State(lambda text: None, {}, numbers)))

    def report(self) -> Array:
        """Return what was reported so far, when all that was queued is done."""
        found = np.zeros(ANSWERS + 1, np.int64)
        self.code.device.download(found, self.reports, self.stream)
        self.code.device.wait(self.stream)
        if found[_FLAG]:
            raise _Failed
        return found

    def fail(self) -> None:
        """Raise what the first check that failed names."""
        found = np.zeros(ANSWERS + FAULTS, np.int64)
        self.code.device.download(found, self.reports, self.stream)
        self.code.device.wait(self.stream)
        values = found[_RECORD : _RECORD + records.SLOTS].tolist()
        fault, span = self.text.faults[values[0]]
        known = [value.item() for value in records.decode(values)]
        raise_fault(fault, [*known, *["..."] * records.SLOTS], span)

    def give(self, node: Node) -> None:
        """Give an array its storage, of its size now, filled with zeros."""
        shape = tuple(max(0, evaluate(extent, self.symbols)) for extent in node.shape)
        size = node.dtype.itemsize * prod(shape)
        self.shapes[node.id] = shape
        address = self.places[node.id] = self.take(node.label, size)
        self.clear(address, size)

    def show(self, step: Show) -> None:
        """Print what a kernel finds the values to be."""
        kernel = self.text.kernels[step.launch.kernel]
        if kernel.logs:  # the host waits, so that nothing is lost of the little room for output
            self.launch(step.launch, self.code.run_number)
            self.report()
            return
        address = self.take("what is printed", 8 * kernel.prints)
        self.launch(step.launch, address)
        found = np.zeros(kernel.prints, np.int64)
        self.code.device.download(found, address, self.stream)
        self.report()
        statement = self.text.prints[step.number]
        self.code.device.show(statement.text(records.decode([*found.tolist(), 0, 0])))
