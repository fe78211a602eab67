"""Compiled kernels with the plan of the host: arrays in, results and faults out.

A run takes memory of the device for every array, copies what is given to it, does the steps of
the plan, waits, and copies back what was written. Where a check failed nothing is copied back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

import numpy as np

from ...lowering.dataclass import dataclass
from ...lowering.diagnostic import Span
from ...lowering.ir.assignments import Break, Continue, Parameter
from ...lowering.ir.evaluate import State, value_of
from ...lowering.ir.faults import raise_fault
from ...lowering.ir.indexing import Symbol, evaluate
from ...lowering.ir.loops import Program
from ...lowering.ir.node import Node
from ...lowering.passes.buffers import sizes_of
from ..emit import record
from ..interface import Array, KernelRow, Origin
from .device import Opened
from .kernels import FAULTS, PLACES, Text
from .nvrtc import Figures
from .plan import (
    ANSWERS,
    MOST_BLOCKS,
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
from .verbs import Handle

_FLAG, _RECORD = ANSWERS, ANSWERS + 2 + PLACES
"""Where in the numbers that a run reports, behind answers, it says whether it failed, and how."""


@dataclass(frozen=True, slots=True)
class CudaCode:
    """Kernels for one device. Any number of threads may run them at once."""

    name: str
    plan: Plan
    functions: tuple[Handle, ...]
    parameters: tuple[Parameter, ...]
    results: tuple[Node, ...]
    origin: Origin
    device: Opened
    figures: Mapping[str, Figures]
    """What each kernel takes of a multiprocessor, by name."""
    module: Handle = None
    """Kept here, since letting go of it takes the kernels away."""

    @property
    def text(self) -> str:
        """The CUDA that was compiled."""
        return self.plan.text.text

    @property
    def line_map(self) -> Mapping[int, Span]:
        """The statement that each line of the CUDA comes from."""
        return self.plan.text.line_map

    @property
    def program(self) -> Program:
        """The loops that were compiled, with those that are blocks and threads."""
        return self.plan.program

    @property
    def kernels(self) -> tuple[KernelRow, ...]:
        """What each kernel takes of a multiprocessor; nothing where the compiler did not say."""
        return tuple(
            KernelRow(kernel.name, kernel.span, kernel.threads, taken.registers, taken.spilled,
                      taken.shared, taken.stack)
            for kernel in self.plan.text.kernels if (taken := self.figures.get(kernel.name))
        )  # fmt: skip

    def run(self, arrays: Sequence[Array | None]) -> tuple[Array, ...]:
        """Run on parameters, then results; return the results.

        Raises what a failed check names, CdMemoryError CD0880 and CdBackendError CD0884.
        """
        with self.device.working(self.name) as stream:
            run = _Run(self, stream)
            try:
                return run(arrays)
            finally:
                run.end()

    def bind(self, arrays: Sequence[Array | None]) -> Callable[[], tuple[Array, ...]]:
        """Return the run on these arrays, which can be repeated."""
        return lambda: self.run(arrays)


class _Failed(Exception):
    """A check failed: what follows is not done."""


@dataclass(slots=True)
class _Run:
    """One run: where each array is, and what the host knows."""

    code: CudaCode
    stream: Handle
    places: dict[int, int] = field(default_factory=dict)
    """The address of each node's array."""
    state: State = field(default_factory=lambda: State(lambda text: None))
    taken: list[int] = field(default_factory=list)
    """The addresses of memory that is given back at the end."""
    shapes: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Those of arrays whose size only the run knows."""
    reports: int = 0
    launches: int = 0

    @property
    def text(self) -> Text:
        return self.code.plan.text

    @property
    def symbols(self) -> dict[Symbol, int]:
        return self.state.symbols

    def __call__(self, arrays: Sequence[Array | None]) -> tuple[Array, ...]:
        """Do everything; the results are the arrays that were given for them, or new ones."""
        code, device = self.code, self.code.device
        count = len(code.parameters)
        given = [array for array in arrays[:count] if array is not None]
        held = self.begin(given)
        try:
            self.steps(code.plan.steps)
            self.report()
        except _Failed:
            self.logs_home(given)
            self.fail()
        written = [k for k, p in enumerate(code.parameters) if p.written and p.log is None]
        for k in written:
            address = self.places[code.parameters[k].node.id]
            device.download(held[k], address, self.stream)
        out = map(self.taken_home, code.results, arrays[count:])
        results = tuple(out)
        device.wait(self.stream)
        for k in written:
            if not np.may_share_memory(held[k], given[k]):
                np.copyto(given[k], held[k])
        self.logs_home(given)
        return results

    def logs_home(self, given: Sequence[Array]) -> None:
        """Copy back what was filled of logs, whose counters are the last parameter."""
        code, device = self.code, self.code.device
        logs = [(k, p.node, p.log) for k, p in enumerate(code.parameters) if p.log is not None]
        if not logs:
            return
        counters = given[-1]
        device.download(counters, self.places[code.parameters[-1].node.id], self.stream)
        device.wait(self.stream)
        for k, node, place in logs:
            filled = given[k][: counters[place]]
            device.download(filled, self.places[node.id], self.stream)
        device.wait(self.stream)

    def begin(self, given: Sequence[Array]) -> list[Array]:
        """Take memory and fill it; return the arguments in C order, as they are there."""
        code, device = self.code, self.code.device
        self.reports = self.take("what is reported", 8 * (ANSWERS + FAULTS))
        device.context.clear(self.reports, 8 * (ANSWERS + FAULTS), self.stream)
        self.places[code.plan.answers.id] = self.reports
        for symbol, at, axis in sizes_of(code.plan.program):
            self.symbols[symbol] = given[at].shape[axis]
        held = [self.given(p, array) for p, array in zip(code.parameters, given, strict=True)]
        for node in (*code.plan.device, *code.results):
            if node.static_shape is not None:
                self.places[node.id] = self.take(node.label, node.bytes)
        return held

    def take(self, label: str, size: int) -> int:
        """Return the address of memory for the run."""
        address = self.code.device.take(size, label, self.code.name)
        self.taken.append(address)
        return address

    def given(self, parameter: Parameter, array: Array) -> Array:
        """Copy an argument to the device; return it in C order, as it is there. Logs are zeros."""
        node, device = parameter.node, self.code.device
        address = self.places[node.id] = self.take(node.label, array.nbytes)
        if parameter.log is not None:
            device.context.clear(address, array.nbytes, self.stream)
            return array
        packed = np.ascontiguousarray(array).reshape(array.shape)
        device.upload(address, packed, self.stream)
        return packed

    def taken_home(self, node: Node, array: Array | None) -> Array:
        """Queue the copy of a result into an array, a new one where none is given."""
        if array is None:
            array = np.empty(self.shapes[node.id], node.dtype.numpy)
        self.code.device.download(array, self.places[node.id], self.stream)
        return array

    def end(self) -> None:
        """Give back the memory of the run, when nothing uses it any more."""
        self.code.device.give_back(self.taken, self.stream)

    # ------------------------------------------------------------------------- steps

    def steps(self, steps: Sequence[Step]) -> str:
        """Do steps; return `break` or `continue` where one of them was that."""
        for step in steps:
            signal = self.step(step)
            if signal:
                return signal
        return ""

    def step(self, step: Step) -> str:
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
                self.symbols[symbol] = int(value_of(value)(self.state))
            case Learn(symbols, launch):
                self.launch(launch)
                self.symbols.update(zip(symbols, self.report().tolist()))
            case Clear(node):
                self.code.device.context.clear(self.places[node.id], node.bytes, self.stream)
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
        lo, hi = evaluate(step.lo, self.symbols), evaluate(step.hi, self.symbols)
        for value in range(lo, hi, step.step):
            self.symbols[step.symbol] = value
            if self.steps(step.body) == "break":
                break
        return ""

    def launch(self, step: Launch, *behind: int) -> None:
        """Queue a kernel; one whose loops have no round is left out."""
        kernel = self.text.kernels[step.kernel]
        rounds = [evaluate(size, self.symbols) for size in step.grid]
        if min(rounds) <= 0:
            return
        grid = [min(size, most) for size, most in zip(rounds, MOST_BLOCKS)]
        grid += [1] * (3 - len(grid))
        arguments = [self.places[node.id] for node in kernel.nodes]
        arguments += [self.symbols[symbol] for symbol in kernel.symbols]
        self.launches += 1
        arguments += [self.reports + 8 * _FLAG, self.launches] * kernel.checks
        arguments += behind
        function = self.code.functions[step.kernel]
        shape = grid[0], grid[1], grid[2]
        self.code.device.context.launch(function, shape, step.threads, arguments, self.stream)

    def ask(self, asked: Asked) -> int:
        """Return a value that the host has to know."""
        if isinstance(asked, Known):
            return int(value_of(asked.value)(self.state))
        self.launch(asked)
        return int(self.report()[0])

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
        values = found[_RECORD : _RECORD + record.SLOTS].tolist()
        fault, span = self.text.faults[values[0]]
        known = [value.item() for value in record.decode(values)]
        raise_fault(fault, [*known, *["..."] * record.SLOTS], span)

    def give(self, node: Node) -> None:
        """Give an array its storage, of its size now, filled with zeros."""
        shape = tuple(max(0, evaluate(extent, self.symbols)) for extent in node.shape)
        size = node.dtype.itemsize
        for extent in shape:
            size *= extent
        self.shapes[node.id] = shape
        address = self.places[node.id] = self.take(node.label, size)
        self.code.device.context.clear(address, size, self.stream)

    def show(self, step: Show) -> None:
        """Print what a kernel finds the values to be."""
        kernel = self.text.kernels[step.launch.kernel]
        address = self.take("what is printed", 8 * kernel.prints)
        self.launch(step.launch, address)
        found = np.zeros(kernel.prints, np.int64)
        self.code.device.download(found, address, self.stream)
        self.report()
        statement = self.text.prints[step.number]
        self.code.device.show(
            statement.text(value.item() for value in record.decode([*found.tolist(), 0, 0]))
        )
