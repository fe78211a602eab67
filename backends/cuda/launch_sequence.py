"""Runs of which the host knows everything before: what queues them, prepared once.

Such a run has its arrays on the device already, and nothing that the host has to wait for: no
check, no value that a kernel finds, no result. What it asks of the driver is the same each time, so
it is written down when the arrays are known, and a call repeats that. Numbers by which blocks count
themselves are its own, since runs of other streams count at the same time: they are zeros before
and after each kernel, and filled only once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from ...base.dataclass import dataclass
from ...base.diagnostic import CdMemoryError
from ...base.finalizers import when_gone
from ...lowering.ir.node import Node
from ..gpu.device import forked
from ..gpu.device_array import DeviceArray, Placed
from ..gpu.driver_protocol import DriverError, Handle, Shape
from ..interface import Array
from .executor import Run, Runs
from .host_program import Launch, Show

CALLS = 64
"""Runs of more steps are not written down."""
KEPT = 1 << 20
"""Bytes of temporaries that a run keeps from call to call, at most; more are taken by each call."""


class _Waits(Exception):
    """The host has to know something on the way."""


def straight(code: Runs, arrays: Sequence[Any], lane: Handle) -> Callable[[], None] | None:
    """Return what queues a run on arrays of a stream, and does not wait for it; None for others.

    Raises CdMemoryError CD0880 where there is no room for temporaries, CdBackendError CD0884 where
    the device fails; so does what it returns.
    """
    theirs = all(isinstance(one, DeviceArray) and one.home[1] is lane for one in arrays)
    checks = any(kernel.checks for kernel in code.plan.text.kernels)
    if not theirs or checks or code.results:
        return None
    placed = [one.settled for one in arrays]
    run, device = _Straight(code, lane), code.device
    try:
        with device.working(code.name, code.plan.program.span, lane):
            run.write(placed)
    except BaseException as why:
        run.end()
        if isinstance(why, _Waits):
            return None
        raise
    if sum(node.bytes for node in code.plan.device) > KEPT:
        return _borrowing(run, placed)
    calls = tuple(run.calls)
    temporaries = [when_gone(device.pool.returned, one, lane, False) for one in run.taken]

    def start(held: object = temporaries) -> None:
        if device.lost:
            raise forked()
        try:
            for call in calls:
                call()
        except DriverError as why:
            raise device.failed(code.name, why, code.plan.program.span) from None

    return start


def _borrowing(run: _Straight, placed: Sequence[Placed]) -> Callable[[], None]:
    """Return what queues a run whose temporaries are taken by each call, and given back at once.

    What comes next in its stream may have them. They are mostly where they were, so that what was
    written down holds.
    """
    code, lane, device, arrived = run.code, run.stream, run.code.device, run.arrived
    if arrived:
        run.taken.remove(arrived)
    known, calls, labels = list(run.taken), run.calls, run.labels
    run.end()
    kept = when_gone(device.pool.returned, arrived, lane, False) if arrived else None

    def queue(taken: list[int]) -> None:
        nonlocal known, calls
        for label, size in labels:
            taken.append(device.pool.take(size, label, code.name, lane))
        if taken != known:
            again = _Straight(code, lane, arrived=arrived, borrowed=list(taken))
            again.write(placed)
            known, calls = list(taken), again.calls
        for call in calls:
            call()

    def start(held: object = kept) -> None:
        if device.lost:
            raise forked()
        taken: list[int] = []
        try:
            queue(taken)
        except DriverError as why:
            raise device.failed(code.name, why, code.plan.program.span) from None
        except CdMemoryError:  # what is queued is not lost: it ends before anybody is told
            device.wait(lane)
            raise
        finally:
            device.pool.give_back(taken, lane)

    return start


@dataclass(slots=True)
class _Straight(Run):
    """Such a run, which is not done: what it would ask of the driver, in order."""

    calls: list[Callable[[], None]] = field(default_factory=list)
    borrowed: list[int] = field(default_factory=list)
    """The addresses of its temporaries, in order, where somebody else takes them."""
    labels: list[tuple[str, int]] = field(default_factory=list)
    """What it takes otherwise, and how much."""

    def write(self, placed: Sequence[Placed]) -> None:
        """Write down the run on arrays of the device; raises where the host has to wait."""
        size = self.code.plan.counted
        if size and not self.arrived:
            self.arrived = Run.take(self, "what blocks count", size)
            Run.clear(self, self.arrived, size)
        self.place(placed)
        self.steps(self.code.plan.steps)
        self.returned(placed)

    def take(self, label: str, size: int) -> int:
        """Return the address of memory for the run."""
        if self.borrowed:
            return self.borrowed.pop(0)
        self.labels.append((label, size))
        return Run.take(self, label, size)

    def launch(self, step: Launch, *behind: int) -> None:
        """Note a kernel; raises where the host has to know what it finds."""
        if self.code.plan.answers in self.text.kernels[step.kernel].nodes:
            raise _Waits
        Run.launch(self, step, *behind)

    def note(self, call: Callable[[], None]) -> None:
        """Add a call; raises where there are too many."""
        if len(self.calls) == CALLS:
            raise _Waits
        self.calls.append(call)

    def start(self, number: int, grid: Shape, block: Shape, arguments: list[int]) -> None:
        """Note a kernel."""
        function, given = self.code.functions[number], self.text.kernels[number].dynamic
        context = self.code.device.context
        self.note(context.prepared(function, grid, block, arguments, self.stream, given))

    def clear(self, address: int, size: int) -> None:
        """Note the filling of memory with zeros."""
        context, stream = self.code.device.context, self.stream
        self.note(lambda: context.clear(address, size, stream))

    def copy(self, address: int, source: int, size: int) -> None:
        """Note a copy within the device."""
        device, stream = self.code.device, self.stream
        self.note(lambda: device.copy(address, source, size, stream))

    def give(self, node: Node) -> None:
        """Raise: storage is given when its size is known."""
        raise _Waits

    def report(self) -> Array:
        """Raise: there is nothing that could be reported before it runs."""
        raise _Waits

    def show(self, step: Show) -> None:
        """Raise: what is printed is not known before it runs."""
        raise _Waits
