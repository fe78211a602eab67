"""Kernels whose blocks keep rows in registers: what they compute, and what they take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.cuda.backend import translate
from plusequals.base import settings
from plusequals.lowering.ir.assignments import Procedure
from plusequals.lowering.ir.interpret import run_procedure

from .batch import compiled
from .on_cpu import CpuDriver, needs_gxx
from .test_nests import TUNED, joined
from .test_nvrtc import needed, needs_nvrtc

Array = np.ndarray[Any, Any]
TEXTS = {
    "softmax": (
        "m[i] = max(x[i, j])\n    e[i, j] = exp(x[i, j] - m[i])\n"
        "    y[i, j] = e[i, j] / sum[k](e[i, k])"
    ),
    "norm": (
        "m[i] = mean(x[i, j])\n    v[i] = mean((x[i, j] - m[i]) ** 2)\n"
        "    y[i, j] = (x[i, j] - m[i]) / sqrt(v[i] + 0.5) * x[0, j]"
    ),
    "in_place": (
        "for i in range(len(x)):\n        y[i] += x[i]\n        t = np.abs(y[i]).max()\n"
        "        y[i] = y[i] / t\n        for j in range(x.shape[1]):\n"
        "            if y[i, j] > 0:\n                y[i, j] = 1 - y[i, j]"
    ),
    "least": "b[i] = argmin[j](x[i, j])\n    y[i, j] = x[i, j] * b[i] + min[k](x[i, k])",
}
WIDTHS = (8, 63, 256, 257, 600, 1024, 2100)


def procedure(name: str, shape: tuple[int, int], dtype: str = "f4") -> Procedure:
    text = f"def {name}_{shape[1]}_{dtype}(y, x):\n    {TEXTS[name]}\n"
    made = pe.cd_from_source(text, {"np": np})
    return made.procedure(np.zeros(shape, dtype), np.zeros(shape, dtype))


@needs_gxx
@pytest.mark.parametrize("profile", ["default", "strict"])
def test_rows_are_those_of_the_program_in_every_run(profile: str) -> None:
    driver = CpuDriver()
    with settings.override(profile=profile):
        made = [procedure(name, (5, width)) for name in TEXTS for width in WIDTHS]
        codes = compiled(made, driver)
    for code, one in zip(codes, made, strict=True):
        shape = one.parameters[0].node.static_shape
        assert shape is not None
        given = np.random.default_rng(2).standard_normal((2, *shape)).astype("f4")
        wanted = given.copy()
        run_procedure(one, [*wanted], print)
        runs = []
        for driver.seed in (0, 1, 2):
            held = given.copy()
            code.run([*held])
            runs.append(held.tobytes())
            np.testing.assert_allclose(held, wanted, 2e-5, 2e-5, err_msg=one.name)
        assert runs == [runs[0]] * 3, one.name


@needs_nvrtc
@pytest.mark.parametrize("architecture", TUNED)
def test_what_rows_take(architecture: str, tmp_path: Path) -> None:
    sizes = [("f4", 300), ("f4", 4096), ("f4", 8191), ("f8", 2048), ("f2", 4096)]
    with settings.override(verify=False):
        plans = [
            translate(procedure(name, (4096, width), dtype), CpuDriver().properties(0))
            for name in TEXTS for dtype, width in sizes
        ]  # fmt: skip
    kernels = [kernel for plan in plans for kernel in plan.text.kernels]
    assert sum(kernel.keeps for kernel in kernels) == len(plans)
    built = needed().build(joined(plans), architecture, tmp_path)
    assert "warning" not in built.log
    for name, figures in built.figures.items():
        assert figures.registers <= 80, (name, str(figures))
        assert figures.spilled == 0 and figures.stack == 0, (name, str(figures))
