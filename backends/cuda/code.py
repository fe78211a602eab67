"""Compiled kernels with the plan of the host: arrays in, results and faults out; see `run`."""

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
from ..gpu.device import Opened
from ..gpu.device_array import DeviceArray
from ..gpu.driver_protocol import DriverError, Handle
from ..interface import KernelRow, Origin
from .executor import Run
from .host_program import Plan
from .launch_sequence import straight
from .nvrtc import Figures


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
    lane: Handle = None
    """The stream of its runs, which then wait for it; None for that of plain calls."""
    run_number: int = 0
    """What the lines of its log are told by."""

    def in_lane(self, lane: Handle) -> CudaCode:
        """Return the same code for arrays that stay on the device, on a stream of their own."""
        return replace(self, lane=lane)

    def printing(self, run_number: int) -> CudaCode:
        """Return the same code for one run, whose log is told by that number."""
        return replace(self, run_number=run_number)

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
    def whole(self) -> Program:
        """The loops before they were shared out."""
        return self.plan.whole or self.plan.program

    @property
    def decisions(self) -> Sequence[Decision]:
        """What became of each nest on the device, and why."""
        return self.plan.decisions

    @property
    def computed(self) -> Set[int]:
        """The arrays, by node id, whose elements products compute where they fill tiles."""
        return self.plan.computed

    @property
    def kernels(self) -> tuple[KernelRow, ...]:
        """What each kernel takes of a multiprocessor; nothing where the compiler did not say."""
        return tuple(
            KernelRow(kernel.name, kernel.span, kernel.threads, taken.registers, taken.spilled,
                      taken.shared + kernel.dynamic, taken.stack)
            for kernel in self.plan.text.kernels if (taken := self.figures.get(kernel.name))
        )  # fmt: skip

    @property
    def span(self) -> Span:
        """Where the user's function is."""
        return self.plan.program.span

    def run(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """Run on parameters, then results; return the results.

        Arrays are of the host or `Placed`; with one of these, results that were not given are
        made on the device. Raises what a failed check names, CdMemoryError CD0880, CdBackendError
        CD0884, and CdTypeError CD0886 for an array on another device.
        """
        arrays = [one.settled if isinstance(one, DeviceArray) else one for one in arrays]
        with self.device.working(self.name, self.span, self.lane) as stream:
            run = Run(self, stream)
            try:
                return run(arrays)
            except BaseException:
                with suppress(DriverError):  # what is queued may still use arrays of the caller
                    self.device.wait(stream)
                raise
            finally:
                run.end()

    def bind(self, arrays: Sequence[Any]) -> Callable[[], tuple[Any, ...]]:
        """Return the run on these arrays, which can be repeated."""
        return lambda: self.run(arrays)

    def ahead(self, arrays: Sequence[Any]) -> Callable[[], None] | None:
        """Return what queues the run on these arrays behind what is queued on its stream."""
        return None if self.lane is None else straight(self, arrays, self.lane)

    def finish(self) -> None:
        """Return when all that is queued on its stream is done; raises CdBackendError CD0884."""
        with self.device.working(self.name, self.span, self.lane) as stream:
            self.device.wait(stream)

    def is_finished(self) -> bool:
        """Whether all that is queued on its stream is done; raises CdBackendError CD0884."""
        with self.device.working(self.name, self.span, self.lane) as stream:
            return self.device.is_idle(stream)
