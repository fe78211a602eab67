"""Many procedures as kernels of CUDA, which this processor runs with its threads as fibres."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from plusequals.backends.cuda.code import CudaCode
from plusequals.backends.interface import Origin
from plusequals.lowering.ir.assignments import Procedure
from tests.backends.cuda.batch import compiled
from tests.backends.cuda.on_cpu import CpuDriver, overflows

SEEDS = (0, 1, 2)
"""Orders of blocks and threads: that of their numbers, and two others."""


@dataclass(frozen=True, slots=True)
class OnDevice:
    """Code of one procedure, and the driver that decides in which order its threads run."""

    code: CudaCode
    driver: CpuDriver
    origin: Origin = "compiled"
    text: str = ""

    def run(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """Run on parameters, then results; return the results."""
        return self.code.run(arrays)

    def overflows(self) -> int:
        """Return how many signed integers of this text have overflowed so far."""
        return overflows(self.code)


def on_device(procedures: Sequence[Procedure]) -> list[OnDevice]:
    """Return code for procedures of different names."""
    driver = CpuDriver()
    return [OnDevice(code, driver) for code in compiled(procedures, driver)]


def orders(code: OnDevice) -> Iterator[int]:
    """Yield once for each order in which the threads then run."""
    for seed in SEEDS:
        code.driver.seed = seed
        yield seed
