"""CUDA code: compiled kernels with their host program, ready to run; see `executor`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ...base.dataclass import dataclass
from ...base.diagnostic import Span
from ...lowering.ir.assignments import Parameter
from ...lowering.ir.decision import Decision
from ...lowering.ir.loops import Program
from ...lowering.ir.node import Node
from ..captures import GraphPlace
from ..device_arrays.device_array import DeviceArray
from ..gpu.device import OpenedDevice
from ..gpu.driver_protocol import DriverError, Handle
from ..interface import KernelRow, Origin
from .executor import Run
from .host_program import HostProgram
from .launch_sequence import capture_sequence, record_sequence
from .nvrtc import ResourceUsage


@dataclass(frozen=True, slots=True)
class CudaCode:
    """Kernels for one device; thread-safe."""

    name: str
    plan: HostProgram
    functions: tuple[Handle, ...]
    parameters: tuple[Parameter, ...]
    results: tuple[Node, ...]
    origin: Origin
    device: OpenedDevice
    figures: Mapping[str, ResourceUsage]
    """The resource usage of each kernel, by name."""
    module: Handle = None
    """Referenced here, since its destruction unloads the kernels."""
    lane: Handle = None
    """The stream of its runs; None for that of plain calls."""
    run_number: int = 0
    """The number that identifies the lines of its log."""

    def in_lane(self, lane: Handle) -> CudaCode:
        """Return the same code for resident arrays, on a stream of the device."""
        return replace(self, lane=lane)

    def printing(self, run_number: int) -> CudaCode:
        """Return the same code for one run, whose log lines have that number."""
        return replace(self, run_number=run_number)

    @property
    def text(self) -> str:
        """The CUDA source text."""
        return self.plan.text.text

    @property
    def line_map(self) -> Mapping[int, Span]:
        """The source statement of each line of the CUDA text."""
        return self.plan.text.line_map

    @property
    def above(self) -> int:
        """The number of lines before the kernels: the header and the prelude."""
        return self.plan.text.above

    @property
    def program(self) -> Program:
        """The compiled loops, mapped to blocks and threads."""
        return self.plan.program

    @property
    def whole(self) -> Program:
        """The loops before their mapping to blocks and threads."""
        return self.plan.whole or self.plan.program

    @property
    def decisions(self) -> Sequence[Decision]:
        """What became of each nest on the device, and why."""
        return self.plan.decisions

    @property
    def computed(self) -> Set[int]:
        """The arrays, by node id, whose elements matrix products recompute when they fill tiles."""
        return self.plan.computed

    @property
    def kernels(self) -> tuple[KernelRow, ...]:
        """The resource usage of the kernels, of those that the compiler reported."""
        return tuple(
            KernelRow(kernel.name, kernel.span, kernel.threads, usage.registers, usage.spilled,
                      usage.shared + kernel.dynamic, usage.stack)
            for kernel in self.plan.text.kernels if (usage := self.figures.get(kernel.name))
        )  # fmt: skip

    @property
    def span(self) -> Span:
        """The location of the user's function."""
        return self.plan.program.span

    def run(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """Run on parameters, then results; return the results.

        Arrays are of the host or `Placed`; with one of the latter, results that are not given are
        allocated on the device. Raises the fault of a failed check, CdMemoryError CD0880,
        CdBackendError CD0884, and CdTypeError CD0886 for an array on another device.
        """
        arrays = [
            array.unsynchronized if isinstance(array, DeviceArray) else array for array in arrays
        ]
        with self.device.working(self.name, self.span, self.lane) as stream:
            run = Run(self, stream)
            try:
                return run(arrays)
            except BaseException:
                with suppress(DriverError):  # queued work may still use arrays of the caller
                    self.device.wait(stream)
                raise
            finally:
                run.end()

    def bind(self, arrays: Sequence[Any]) -> Callable[[], tuple[Any, ...]]:
        """Return a function that runs on these arrays."""
        return lambda: self.run(arrays)

    def prepare_launch(self, arrays: Sequence[Any]) -> Callable[[], None] | None:
        """Return a function that queues the run on these arrays, None where it has to wait."""
        return None if self.lane is None else record_sequence(self, arrays, self.lane)

    def prepare_capture(
        self, arrays: Sequence[Any], place: GraphPlace, numbers: Sequence[int]
    ) -> Callable[[], None]:
        """Return a function that queues a run on device arrays, as a step of a graph.

        Raises NotCapturable where the host has to wait, CdMemoryError CD0880, CdBackendError.
        """
        return capture_sequence(self, arrays, place, numbers)

    def finish(self) -> None:
        """Wait for all work queued on its stream; raises CdBackendError CD0884."""
        with self.device.working(self.name, self.span, self.lane) as stream:
            self.device.wait(stream)

    def is_finished(self) -> bool:
        """Whether all work queued on its stream is done; raises CdBackendError CD0884."""
        with self.device.working(self.name, self.span, self.lane) as stream:
            return self.device.is_idle(stream)
