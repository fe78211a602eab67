"""All test kernels in one tuple."""

from __future__ import annotations

from . import apps_inputs, nets, physics, polybench_algebra, polybench_stencils
from .kernel import Kernel

KERNELS: tuple[Kernel, ...] = (
    *polybench_algebra.KERNELS,
    *polybench_stencils.KERNELS,
    *physics.KERNELS,
    *nets.KERNELS,
    *apps_inputs.KERNELS,
)
