"""Many procedures in one CUDA text, run on this processor: one run of g++ for all of them."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from plusequals.backends.codegen.source import preamble
from plusequals.backends.cuda.backend import translate
from plusequals.backends.cuda.code import CudaCode
from plusequals.backends.cuda.dialect import CUDA
from plusequals.backends.cuda.host_program import HostProgram
from plusequals.backends.gpu.device import OpenedDevice
from plusequals.base import settings
from plusequals.lowering.ir.assignments import Procedure

from .on_cpu import CpuDriver, Gxx

_VERIFIED = 8
"""Of so many procedures one is verified after each pass, which costs as much as all the rest."""


def compiled(procedures: Sequence[Procedure], driver: CpuDriver | None = None) -> list[CudaCode]:
    """Return code for procedures of different names, on one device of a driver."""
    driver = driver or CpuDriver()
    known = driver.properties(0)
    device = driver.opened(0)
    plans = []
    for number, procedure in enumerate(procedures):
        verified = settings.current().verify and number % _VERIFIED == 0
        with settings.override(verify=verified):
            plans.append(translate(procedure, known))
    return loaded(procedures, plans, device)


def loaded(
    procedures: Sequence[Procedure], plans: Sequence[HostProgram], device: OpenedDevice
) -> list[CudaCode]:
    """Return the code of plans."""
    codes = "\n".join(plan.text.text.split("\n", plan.text.above)[-1] for plan in plans)
    with tempfile.TemporaryDirectory(prefix="plusequals-") as folder:
        made = Gxx().build(preamble(codes, CUDA) + codes, "sm_90", Path(folder))
    module = device.context.load(made.code)
    out = []
    for procedure, plan in zip(procedures, plans, strict=True):
        functions = tuple(
            device.context.function(module, kernel.name, kernel.arguments, kernel.dynamic)
            for kernel in plan.text.kernels
        )
        code = CudaCode(procedure.name, plan, functions, procedure.parameters, procedure.results,
                        "compiled", device, {}, module)  # fmt: skip
        out.append(code)
    return out


def compiled_one(procedure: Procedure, driver: CpuDriver | None = None) -> CudaCode:
    """Return code for one procedure."""
    (code,) = compiled([procedure], driver)
    return code
