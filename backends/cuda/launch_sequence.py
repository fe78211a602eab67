"""Launch sequences: recorded driver calls of runs without host synchronization, for replay.

Such a run has its arrays on the device, and nothing that the host waits for: no checks, no values
from kernels, no results. Its driver calls are the same each time, so they are recorded when the
arrays are known, and a call replays them. Its last-block counters are private, since runs of other
streams count concurrently: they are zero before and after each kernel, and cleared only once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from ...base.dataclass import dataclass
from ...base.diagnostic import CdMemoryError
from ...base.finalizers import call_when_unreachable
from ...lowering.ir.node import Node
from ..captures import GraphPlace, NotCapturable
from ..device_arrays.device_array import DeviceArray, PlacedArray
from ..gpu.device import forked_error
from ..gpu.driver_protocol import DriverError, Handle, Shape
from ..interface import Array
from .executor import ExecutableCode, Run
from .host_program import BindAnswers, Launch, ShowPrint, Step

MAX_CALLS = 64
"""The maximum length of a recorded sequence."""
MAX_KEPT_BYTES = 1 << 20
"""The maximum of temporaries in bytes that are kept between calls; more are allocated per call."""


MAX_CAPTURED_CALLS = 4096
"""The maximum length of a sequence that becomes a part of a graph."""


def record_sequence(
    code: ExecutableCode, arrays: Sequence[Any], lane: Handle
) -> Callable[[], None] | None:
    """Return a function that queues a run on arrays of a stream, None where it has to wait.

    Raises CdMemoryError CD0880 where there is no memory for temporaries, CdBackendError CD0884
    where the device fails; so does the returned function.
    """
    if not all(isinstance(array, DeviceArray) and array.home[1] is lane for array in arrays):
        return None
    placed, device = [array.unsynchronized for array in arrays], code.device
    try:
        run = _recorded(_RecordedRun(code, lane), placed)
    except NotCapturable:
        return None
    if sum(node.bytes for node in code.plan.device) > MAX_KEPT_BYTES:
        return _allocate_per_call(run, placed)
    calls = tuple(run.calls)

    def start(held: object = run.kept()) -> None:
        if device.lost:
            raise forked_error()
        try:
            for call in calls:
                call()
        except DriverError as why:
            raise device.failed(code.name, why, code.plan.program.span) from None

    return start


def capture_sequence(
    code: ExecutableCode, arrays: Sequence[Any], place: GraphPlace, numbers: Sequence[int]
) -> Callable[[], None]:
    """Return a function that queues a run on arrays of a device, as a step of a graph.

    Those at the positions `numbers` are the same in each run. It holds all arrays and temporaries,
    as the graph runs without being asked. Raises NotCapturable where the
    host has to wait, and what `record_sequence` raises.
    """
    if any(array.home[0] is not place.device for array in arrays):
        raise NotCapturable(f"has an array that is not of {place.device.name}")
    constants = frozenset(code.parameters[at].node.id for at in numbers)
    run = _RecordedRun(
        code, place.home, queue=place.stream, limit=MAX_CAPTURED_CALLS, constants=constants
    )
    calls = tuple(_recorded(run, [array.unsynchronized for array in arrays]).calls)

    def start(held: object = (run.kept(), tuple(arrays))) -> None:
        for call in calls:
            call()

    return start


def _recorded(run: _RecordedRun, placed: Sequence[PlacedArray]) -> _RecordedRun:
    """Record a run on arrays; return it. Raises NotCapturable; then its memory is given back."""
    code = run.code
    if any(kernel.checks for kernel in code.plan.text.kernels):
        raise NotCapturable("checks indices or values, and the host reads whether they are right")
    if code.results:
        raise NotCapturable("returns something")
    try:
        with code.device.working(code.name, code.plan.program.span, run.stream):
            run.write(placed)
    except BaseException:
        run.end()
        raise
    return run


def _allocate_per_call(run: _RecordedRun, placed: Sequence[PlacedArray]) -> Callable[[], None]:
    """Return a function that queues a run whose temporaries are allocated and freed by each call.

    Later work of the stream may reuse them. Mostly their addresses are the same as before, so that
    the recorded sequence is valid; otherwise it is recorded again.
    """
    code, lane, device, arrived = run.code, run.stream, run.code.device, run.arrived
    if arrived:
        run.taken.remove(arrived)
    recorded, calls, labels = list(run.taken), run.calls, run.labels
    run.end()
    counters = (
        call_when_unreachable(device.pool.returned, arrived, lane, False) if arrived else None
    )

    def queue(addresses: list[int]) -> None:
        nonlocal recorded, calls
        for label, size in labels:
            addresses.append(device.pool.take(size, label, code.name, lane))
        if addresses != recorded:
            rerecorded = _RecordedRun(code, lane, arrived=arrived, borrowed=list(addresses))
            rerecorded.write(placed)
            recorded, calls = list(addresses), rerecorded.calls
        for call in calls:
            call()

    def start(held: object = counters) -> None:
        if device.lost:
            raise forked_error()
        addresses: list[int] = []
        try:
            queue(addresses)
        except DriverError as why:
            raise device.failed(code.name, why, code.plan.program.span) from None
        except CdMemoryError:  # queued work is completed before the error is raised
            device.wait(lane)
            raise
        finally:
            device.pool.give_back(addresses, lane)

    return start


@dataclass(slots=True)
class _RecordedRun(Run):
    """A run that records its driver calls instead of making them."""

    calls: list[Callable[[], None]] = field(default_factory=list)
    borrowed: list[int] = field(default_factory=list)
    """The addresses of its temporaries, in order, where the caller allocates them."""
    labels: list[tuple[str, int]] = field(default_factory=list)
    """The labels and sizes of temporaries that it allocates itself."""
    queue: Handle = None
    """The stream of the calls, where it is not that of the memory."""
    limit: int = MAX_CALLS
    """The maximum number of calls."""
    constants: frozenset[int] = frozenset()
    """The nodes of arguments that are the same in each run."""
    placed: Sequence[PlacedArray] = ()
    """The arguments."""

    @property
    def target(self) -> Handle:
        """The stream of the calls."""
        return self.stream if self.queue is None else self.queue

    def kept(self) -> list[object]:
        """Return what holds its memory, which goes back to the pool with it."""
        pool, stream = self.code.device.pool, self.stream
        return [call_when_unreachable(pool.returned, each, stream, False) for each in self.taken]

    def write(self, placed: Sequence[PlacedArray]) -> None:
        """Record the run on arrays of the device; raises where the host has to wait."""
        size = self.code.plan.counted
        if size and not self.arrived:
            self.arrived = Run.take(self, "what blocks count", size)
            Run.clear(self, self.arrived, size)
        self.placed = placed
        self.bind(placed)
        self.steps(self.code.plan.steps)
        self.returned(placed)

    def take(self, label: str, size: int) -> int:
        """Allocate memory of the run; return its address."""
        if self.borrowed:
            return self.borrowed.pop(0)
        self.labels.append((label, size))
        return Run.take(self, label, size)

    def step(self, step: Step) -> str:
        """Record a step; compute answers that are always the same now."""
        if isinstance(step, BindAnswers) and self.is_constant(step.launch):
            self.symbols.update(zip(step.symbols, self.answers(step.launch)))
            return ""
        return Run.step(self, step)

    def is_constant(self, launch: Launch) -> bool:
        """Whether the answers of a launch depend on nothing that changes."""
        read = {node.id for node in self.text.kernels[launch.kernel].nodes}
        return read <= {*self.constants, self.code.plan.answers.id}

    def answers(self, launch: Launch) -> list[int]:
        """Return the answers of a launch, by a run of its own."""
        run = Run(self.code, self.stream, symbols=dict(self.symbols))
        try:
            run.begin(self.placed)
            run.launch(launch)
            return [int(answer) for answer in run.report()]
        finally:
            run.end()

    def launch(self, step: Launch, *extra: int) -> None:
        """Record a kernel; raises where the host needs its answer."""
        if self.code.plan.answers in self.text.kernels[step.kernel].nodes:
            raise NotCapturable("computes values that the host reads")
        Run.launch(self, step, *extra)

    def note(self, call: Callable[[], None]) -> None:
        """Record a call; raises where there are too many."""
        if len(self.calls) == self.limit:
            raise NotCapturable(f"takes more than {self.limit:,} calls of the driver")
        self.calls.append(call)

    def start(self, number: int, grid: Shape, block: Shape, arguments: list[int]) -> None:
        """Record a launch."""
        function, dynamic_bytes = self.code.functions[number], self.text.kernels[number].dynamic
        context = self.code.device.context
        self.note(context.prepared(function, grid, block, arguments, self.target, dynamic_bytes))

    def clear(self, address: int, size: int) -> None:
        """Record a zero fill of memory."""
        context, stream = self.code.device.context, self.target
        self.note(lambda: context.clear(address, size, stream))

    def copy(self, address: int, source: int, size: int) -> None:
        """Record a copy within the device."""
        device, stream = self.code.device, self.target
        self.note(lambda: device.copy(address, source, size, stream))

    def give(self, node: Node) -> None:
        """Raise: the size of the storage is dynamic."""
        raise NotCapturable(f"computes the size of `{node.label}`")

    def report(self) -> Array:
        """Raise: a report needs synchronization."""
        raise NotCapturable("computes values that the host reads")

    def show(self, step: ShowPrint) -> None:
        """Raise: prints need synchronization."""
        raise NotCapturable("prints")
