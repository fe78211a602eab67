"""Executor of host programs: one run of compiled kernels, with transfers, results and faults.

A run allocates device memory for every host array, uploads arguments, executes the steps of the
host program, waits, and downloads what was written. After a failed check nothing is downloaded.
Device arrays are used in place; if all are, and nothing can fail, a run is asynchronous: its
results are ordered by streams.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from math import prod
from typing import Any, Protocol

import numpy as np

from ...base.dataclass import dataclass
from ...lowering.ir.assignments import Break, Continue, Parameter
from ...lowering.ir.dynamic_sizes import run_time_sizes
from ...lowering.ir.evaluate import State, compile_value, symbol_key
from ...lowering.ir.expressions import Expr
from ...lowering.ir.faults import raise_fault
from ...lowering.ir.indexing import Symbol, evaluate
from ...lowering.ir.node import Node
from ..codegen import records
from ..device_arrays.device_array import DeviceArray, PlacedArray
from ..gpu.device import OpenedDevice
from ..gpu.driver_protocol import Handle, Shape
from ..gpu.staging import Transfers
from ..gpu.stream_sync import signal_foreign, wait_for_foreign
from ..interface import Array
from .host_program import (
    MAX_ANSWERS,
    MOST_BLOCKS,
    REPORT_BYTES,
    Allocate,
    Bind,
    BindAnswers,
    Clear,
    Conditional,
    CountedLoop,
    Exchange,
    HostProgram,
    HostValue,
    Launch,
    Query,
    ShowPrint,
    Step,
    WhileLoop,
)
from .kernels import FAULT_RECORD_SIZE, MAX_POSITION_LENGTH, Kernel, KernelText

_FLAG, _RECORD = MAX_ANSWERS, MAX_ANSWERS + 2 + MAX_POSITION_LENGTH
"""The positions of the fault flag and of the fault record in the report of a run."""


class _Failed(Exception):
    """A check failed: the remaining steps are skipped."""


class ExecutableCode(Protocol):
    """The interface of code that a run needs."""

    @property
    def name(self) -> str:
        """Its name for users."""

    @property
    def plan(self) -> HostProgram:
        """Its host program."""

    @property
    def functions(self) -> tuple[Handle, ...]:
        """Its kernels, in the order of the host program."""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters of a call."""

    @property
    def results(self) -> tuple[Node, ...]:
        """The results of a call."""

    @property
    def device(self) -> OpenedDevice:
        """The device that it runs on."""

    @property
    def run_number(self) -> int:
        """The number that identifies the lines of its log."""


@dataclass(slots=True)
class Run:
    """The state of one run: addresses of arrays, and integers of the host."""

    code: ExecutableCode
    stream: Handle
    addresses_by_id: dict[int, int] = field(default_factory=dict)
    """The address of each node's array."""
    symbols: dict[Symbol, int] = field(default_factory=dict)
    """The current integers of the host."""
    taken: list[int] = field(default_factory=list)
    """The addresses of memory that is freed at the end."""
    callers: dict[int, int] = field(default_factory=dict)
    """The original addresses of the arguments, which may be exchanged."""
    shapes: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """The shapes of arrays of run-time size."""
    copies: Transfers = field(init=False)
    reports: int = 0
    arrived: int = 0
    """The address of the last-block counters: zeros before and after each launch."""
    launches: int = 0

    def __post_init__(self) -> None:
        self.copies = self.code.device.transfers(self.stream)

    @property
    def text(self) -> KernelText:
        """The text of the kernels."""
        return self.code.plan.text

    def __call__(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """Execute the run; return the results, in the arrays given for them or in new ones."""
        code = self.code
        count = len(code.parameters)
        arguments = [array for array in arrays[:count] if array is not None]
        placed = [array for array in arguments if isinstance(array, PlacedArray)]
        wait_for_foreign(code.device, placed, self.stream)
        self.begin(arguments)
        try:
            self.steps(code.plan.steps)
            if self.asks:
                self.report()
        except _Failed:
            self.download_logs(arguments)
            self.fail()
        self.returned(arguments)
        results = tuple(
            self.take_result(node) if placed and array is None and node.rank
            else self.download_result(node, array)
            for node, array in zip(code.results, arrays[count:], strict=True)
        )  # fmt: skip
        if (
            signal_foreign(code.device, placed, self.stream, code.name)
            or self.copies.busy
            or not placed
        ):
            self.copies.finish()
        self.download_logs(arguments)
        return results

    def returned(self, arguments: Sequence[Any]) -> None:
        """Queue the copies of written arguments back to the caller's arrays."""
        for parameter, array in zip(self.code.plan.program.parameters, arguments, strict=True):
            if not parameter.written or parameter.log is not None:
                continue
            node = parameter.node
            original = self.callers[node.id]
            current = self.addresses_by_id[node.id] if parameter.returns else original
            if not isinstance(array, PlacedArray):
                self.copies.download(array, current)
            elif current != original:
                self.copy(original, current, node.bytes)

    def download_logs(self, given: Sequence[Any]) -> None:
        """Download the filled part of logs, whose counters are the last parameter."""
        code = self.code
        logs = [(k, p.node, p.log) for k, p in enumerate(code.parameters) if p.log is not None]
        if not logs:
            return
        counters = given[-1]
        self.copies.download(counters, self.addresses_by_id[code.parameters[-1].node.id])
        self.copies.finish()
        for k, node, position in logs:
            self.copies.download(given[k][: counters[position]], self.addresses_by_id[node.id])
        self.copies.finish()

    @property
    def asks(self) -> bool:
        """Whether a check may have failed."""
        return any(kernel.checks for kernel in self.text.kernels)

    def begin(self, given: Sequence[Any]) -> None:
        """Allocate and initialize memory."""
        size = REPORT_BYTES + self.code.plan.counted
        self.reports = self.addresses_by_id[self.code.plan.answers.id] = self.take(
            "what is reported", size
        )
        self.arrived = self.reports + REPORT_BYTES
        self.clear(self.reports, size)
        self.bind(given)

    def bind(self, given: Sequence[Any]) -> None:
        """Place all arrays on the device, and bind the symbols of sizes."""
        code = self.code
        for symbol, position, axis in run_time_sizes(code.plan.program):
            self.symbols[symbol] = given[position].shape[axis]
        for parameter, array in zip(code.parameters, given, strict=True):
            self.given(parameter, array)
        for node in (*code.plan.device, *code.results):
            if node.static_shape is not None:
                self.addresses_by_id[node.id] = self.take(node.label, node.bytes)

    def take(self, label: str, size: int) -> int:
        """Allocate memory of the run; return its address."""
        address = self.code.device.pool.take(size, label, self.code.name, self.stream)
        self.taken.append(address)
        return address

    def given(self, parameter: Parameter, array: Any) -> None:
        """Place an argument on the device: in place, or a copy in C order; a log is zeroed."""
        node = parameter.node
        if isinstance(array, PlacedArray):
            self.addresses_by_id[node.id] = self.callers[node.id] = array.address
            return
        address = self.take(node.label, array.nbytes)
        self.addresses_by_id[node.id] = self.callers[node.id] = address
        if parameter.log is None:
            self.copies.upload(address, array)
        else:
            self.code.device.context.clear(address, array.nbytes, self.stream)

    def take_result(self, node: Node) -> DeviceArray:
        """Return a result as a device array, which takes ownership of its memory."""
        address = self.addresses_by_id[node.id]
        shape = self.shapes.get(node.id, node.static_shape)
        assert shape is not None, "its storage was given, and so its shape"
        if address not in self.taken:  # an alias of another result or of an argument
            size = node.dtype.itemsize * prod(shape)
            owned = self.take(node.label, size)
            self.copy(owned, address, size)
            address = owned
        self.taken.remove(address)
        return DeviceArray(self.code.device, address, shape, node.dtype.numpy, self.stream)

    def download_result(self, node: Node, array: Array | None) -> Array:
        """Queue the download of a result into an array, a new one where none is given."""
        if array is None:
            shape = self.shapes.get(node.id, node.static_shape)
            assert shape is not None, "its storage was given, and so its shape"
            array = np.empty(shape, node.dtype.numpy)
        self.copies.download(array, self.addresses_by_id[node.id])
        return array

    def end(self) -> None:
        """Return the memory of the run to the pool; queued work may still use it."""
        self.copies.drop()
        self.code.device.pool.give_back(self.taken, self.stream)

    # ------------------------------------------------------------------------- steps

    def steps(self, steps: Sequence[Step]) -> str:
        """Execute steps; return "break" or "continue" where one of them is that, else ""."""
        for step in steps:
            signal = self.step(step)
            if signal:
                return signal
        return ""

    def step(self, step: Step) -> str:
        """Execute a step; return as `steps` does."""
        match step:
            case Launch():
                self.launch(step)
            case CountedLoop():
                return self.repeat(step)
            case WhileLoop(prelude, test, body):
                while self.steps(prelude) != "break" and self.ask(test):
                    if self.steps(body) == "break":
                        break
            case Conditional(test, then, orelse):
                return self.steps(then if self.ask(test) else orelse)
            case Bind(symbol, value):
                self.symbols[symbol] = self.number(value)
            case BindAnswers(symbols, launch):
                self.launch(launch)
                self.symbols.update(zip(symbols, self.report().tolist()))
            case Clear(node):
                self.clear(self.addresses_by_id[node.id], node.bytes)
            case Allocate(node):
                self.give(node)
            case Exchange(nodes, sources):
                addresses = [self.addresses_by_id[source.id] for source in sources]
                self.addresses_by_id.update(
                    zip((node.id for node in nodes), addresses, strict=True)
                )
            case ShowPrint():
                self.show(step)
            case Break():
                return "break"
            case Continue():
                return "continue"
        return ""

    def repeat(self, step: CountedLoop) -> str:
        """Execute a loop; return as `steps` does."""
        lo, hi = evaluate(step.lo, self.symbols), evaluate(step.hi, self.symbols)
        for value in range(lo, hi, step.step):
            self.symbols[step.symbol] = value
            if self.steps(step.body) == "break":
                break
        return ""

    def launch(self, step: Launch, *extra: int) -> None:
        """Queue a kernel, unless its loops have no iterations."""
        kernel = self.text.kernels[step.kernel]
        shape = self.grid(step)
        if shape is None:
            return
        copies = {n.id: self.aside(n) for n in kernel.nodes if self.is_misaligned(n, kernel)}
        arguments = [copies.get(node.id, self.addresses_by_id[node.id]) for node in kernel.nodes]
        arguments += [self.symbols[symbol] for symbol in kernel.symbols]
        arguments += [self.arrived] * (kernel.arrivals is not None)
        self.launches += 1
        arguments += [self.reports + 8 * _FLAG, self.launches] * kernel.checks
        arguments += extra
        self.start(step.kernel, shape, step.threads, arguments)
        for node in kernel.nodes:
            if node.id in copies and kernel.aligned[node.id]:
                self.copy(self.addresses_by_id[node.id], copies[node.id], node.bytes)

    def is_misaligned(self, node: Node, kernel: Kernel) -> bool:
        """Whether an array, such as a foreign one, lacks the alignment that a kernel needs."""
        return node.id in kernel.aligned and self.addresses_by_id[node.id] % 16 != 0

    def aside(self, node: Node) -> int:
        """Return the address of an aligned copy of an array."""
        address = self.take(f"{node.label}, moved", node.bytes)
        self.copy(address, self.addresses_by_id[node.id], node.bytes)
        return address

    def grid(self, step: Launch) -> Shape | None:
        """Return the blocks of a launch along each axis, None where there are no iterations."""
        trip_counts = [evaluate(size, self.symbols) for size in step.grid]
        if min(trip_counts) <= 0:
            return None
        x, y, z, *_ = (*(min(size, limit) for size, limit in zip(trip_counts, MOST_BLOCKS)), 1, 1)
        return x, y, z

    def start(self, number: int, grid: Shape, block: Shape, arguments: list[int]) -> None:
        """Queue a kernel."""
        function, dynamic_bytes = self.code.functions[number], self.text.kernels[number].dynamic
        self.code.device.context.launch(
            function, grid, block, arguments, self.stream, dynamic_bytes
        )

    def clear(self, address: int, size: int) -> None:
        """Queue a zero fill of memory."""
        self.code.device.context.clear(address, size, self.stream)

    def copy(self, address: int, source: int, size: int) -> None:
        """Queue a copy within the device."""
        self.code.device.copy(address, source, size, self.stream)

    def ask(self, query: Query) -> int:
        """Return a value that the host needs, from a kernel where it depends on data."""
        if isinstance(query, HostValue):
            return self.number(query.value)
        self.launch(query)
        return int(self.report()[0])

    def number(self, value: Expr) -> int:
        """Return the value of an expression over the integers of the host."""
        numbers = {symbol_key(symbol): number for symbol, number in self.symbols.items()}
        return int(compile_value(value)(State(lambda text: None, {}, numbers)))

    def report(self) -> Array:
        """Wait for all queued work; return its report."""
        report = np.zeros(MAX_ANSWERS + 1, np.int64)
        self.code.device.download(report, self.reports, self.stream)
        self.code.device.wait(self.stream)
        if report[_FLAG]:
            raise _Failed
        return report

    def fail(self) -> None:
        """Raise the fault of the first failed check."""
        report = np.zeros(MAX_ANSWERS + FAULT_RECORD_SIZE, np.int64)
        self.code.device.download(report, self.reports, self.stream)
        self.code.device.wait(self.stream)
        values = report[_RECORD : _RECORD + records.SLOTS].tolist()
        fault, span = self.text.faults[values[0]]
        fault_values = [value.item() for value in records.decode(values)]
        raise_fault(fault, [*fault_values, *["..."] * records.SLOTS], span)

    def give(self, node: Node) -> None:
        """Allocate an array of run-time size, filled with zeros."""
        shape = tuple(max(0, evaluate(extent, self.symbols)) for extent in node.shape)
        size = node.dtype.itemsize * prod(shape)
        self.shapes[node.id] = shape
        address = self.addresses_by_id[node.id] = self.take(node.label, size)
        self.clear(address, size)

    def show(self, step: ShowPrint) -> None:
        """Print the values that a kernel computes."""
        kernel = self.text.kernels[step.launch.kernel]
        if kernel.logs:  # the host waits, lest the device's small output buffer overflows
            self.launch(step.launch, self.code.run_number)
            self.report()
            return
        address = self.take("what is printed", 8 * kernel.prints)
        self.launch(step.launch, address)
        record = np.zeros(kernel.prints, np.int64)
        self.code.device.download(record, address, self.stream)
        self.report()
        statement = self.text.prints[step.number]
        self.code.device.show(statement.text(records.decode([*record.tolist(), 0, 0])))
