"""Loops of every kind on a whole device: what they compute, whatever the order, and what they take.

The device is played by this processor; NVRTC compiles the same text for devices that there are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.codegen.source import preamble
from plusequals.backends.cuda.backend import translate
from plusequals.backends.cuda.code import CudaCode
from plusequals.backends.cuda.dialect import CUDA
from plusequals.backends.cuda.host_program import HostProgram
from plusequals.backends.cuda.kernels import Kernel
from plusequals.base import settings
from plusequals.base.diagnostic import CdError
from plusequals.lowering.ir.assignments import Procedure
from plusequals.lowering.ir.interpret import run_procedure
from plusequals.lowering.ir.loops import For
from plusequals.lowering.ir.walk import statements, writes
from tests.lowering.nests_of_all_kinds import LARGE, NESTS, text_of
from tests.programs.thresholds import lowered

from .batch import loaded
from .on_cpu import CpuDriver, backend, installed, needs_gxx
from .test_nvrtc import needed, needs_nvrtc

Array = np.ndarray[Any, Any]
SIZES = (0, 1, 5, 37)
SEEDS = (0, 1, 2)
ARCHITECTURES = ("sm_80", "sm_100")
"""The oldest and the newest: between them is what a nest of any kind has to be compiled for."""
TUNED = ("sm_90",)
"""For which tiles, rows and sums have their sizes: what these take is looked at there."""
ROUGH = ("softmax", "matrix product")
"""Nests that call functions which the C library rounds in another way than NumPy."""


@dataclass(frozen=True)
class Case:
    """A nest for one size."""

    name: str
    number: int
    size: int
    procedure: Procedure
    arguments: list[Array]

    def held(self) -> list[Array]:
        return [a.copy() for a in self.arguments]


def cases(n: int, real: type = np.float64) -> Iterator[Case]:
    """Yield the nests that are not refused for a size; what is large has one size only."""
    for number, name in enumerate(NESTS):
        if name in LARGE and n != 5:
            continue
        arguments = [
            np.array(a, real if a.dtype.kind == "f" else a.dtype)
            for a in NESTS[name][1](n, np.random.default_rng(n))
        ]
        function = pe.cd_from_source(text_of(name), {"np": np}, backend="numpy")
        with contextlib.suppress(CdError):
            made = function.procedure(*arguments)
            yield Case(name, number, n, replace(made, name=f"nest_{number}_{n}"), arguments)


@pytest.fixture(scope="module")
def expected() -> list[tuple[Case, list[Array]]]:
    """The nests for all sizes, and what they compute."""
    out = []
    for case in (case for n in SIZES for case in cases(n)):
        held = case.held()
        with contextlib.suppress(CdError):  # as where there is nothing to look for
            run_procedure(case.procedure, held, print)
            out.append((case, held))
    return out


def plans(made: Sequence[Case], driver: CpuDriver) -> list[HostProgram]:
    with settings.override(verify=False):
        return [translate(case.procedure, driver.properties(0)) for case in made]


def compiled(made: Sequence[Case], driver: CpuDriver) -> list[CudaCode]:
    return loaded([case.procedure for case in made], plans(made, driver), driver.opened(0))


def joined(made: list[HostProgram]) -> str:
    """Return one text of all kernels."""
    codes = "\n".join(plan.text.text.split("\n", plan.text.above)[-1] for plan in made)
    return preamble(codes, CUDA) + codes


@needs_gxx
@pytest.mark.parametrize(("profile", "sizes"), [("default", SIZES), ("strict", SIZES[2:])])
def test_blocks_and_threads_in_any_order_compute_what_the_program_says(
    profile: str, sizes: tuple[int, ...], expected: list[tuple[Case, list[Array]]]
) -> None:
    driver = CpuDriver()
    expected = [one for one in expected if one[0].size in sizes]
    with settings.override(profile=profile):
        codes = compiled([case for case, _ in expected], driver)
    for (case, wanted), code in zip(expected, codes, strict=True):
        runs = []
        for driver.seed in SEEDS:
            held = case.held()
            code.run(held)
            runs.append([a.tobytes() for a in held])
            for got, want in zip(held, wanted, strict=True):
                if profile == "strict" and case.name not in ROUGH:
                    assert got.tobytes() == want.tobytes(), case.procedure.name
                np.testing.assert_allclose(got, want, 1e-10, 1e-10, err_msg=case.name)
        assert runs == [runs[0]] * len(SEEDS), f"{case.procedure.name} differs from run to run"


@needs_gxx
def test_sizes_of_a_launch_change_no_bit() -> None:
    driver = CpuDriver()
    made = list(cases(5))
    for case, code in zip(made, compiled(made, driver), strict=True):
        if any(kernel.keeps for kernel in code.plan.text.kernels):
            continue
        runs = []
        for driver.shape in (None, ((3, 1, 1), (32, 1, 1)), ((1, 1, 1), (96, 1, 1))):
            held = case.held()
            code.run(held)
            runs.append([a.tobytes() for a in held])
        assert runs == [runs[0]] * 3


def kind(kernel: Kernel) -> str:
    """Return what sort of kernel one is."""
    loops = [s for s in statements((kernel.loop,)) if isinstance(s, For)]
    if kernel.shape.threads[1] > 1 and any(loop.kind == "unrolled" for loop in loops):
        return "tiles"
    if all((loop.hi - loop.lo).constant == 1 for loop in loops if loop.kind == "thread"):
        return "alone"
    return "block" if kernel.shared else "points"


REGISTERS = {"tiles": 128, "block": 80, "points": 80, "alone": 255}
"""With so many a multiprocessor holds at least 512, 768 and 768 threads; one it holds anyway."""
SPILLED = 24
"""Bytes that a thread may keep in memory: for sm_100 a counter of the compiler's own is kept so."""


def own_bytes(kernel: Kernel) -> int:
    """Return what arrays take that each thread has of its own, to the next 8 bytes each."""
    arrays = [n for n in writes((kernel.loop,)) if n.rank and n not in kernel.nodes]
    return 0 if kernel.shared else sum(-(-node.bytes // 8) * 8 for node in arrays)


@pytest.fixture(scope="module")
def singles() -> list[HostProgram]:
    """The nests of a large size, and some of a small one, in float32, for all architectures."""
    small = [case for case in cases(5, np.float32) if case.name in LARGE or case.number % 3 == 0]
    return plans([*cases(70, np.float32), *small], CpuDriver())


@needs_nvrtc
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_what_kernels_take_of_a_multiprocessor(
    architecture: str, singles: list[HostProgram], tmp_path: Path
) -> None:
    built = needed().build(joined(singles), architecture, tmp_path)
    assert "warning" not in built.log
    kernels = {kernel.name: kernel for plan in singles for kernel in plan.text.kernels}
    assert built.figures.keys() == kernels.keys()
    for name, figures in built.figures.items():
        stack = figures.stack - own_bytes(kernels[name])
        assert max(figures.spilled, stack) <= SPILLED, (name, str(figures))
        assert figures.registers <= REGISTERS[kind(kernels[name])], (name, str(figures))
        assert figures.shared <= 48 * 1024, (name, str(figures))
        assert figures.shared >= kernels[name].shared, (name, str(figures))


SKIPPING = """
def f(a, c, out):
    for t in range(5):
        if a[t, 0] <= 0.25:
            continue
        out[t, i, j] /= (sum[k](c[k, j] * out[t, k, j]) - min(c[j, 2], out[t, 3, clamp(i + 2)]))
    return out
"""


@pytest.mark.parametrize("seed", [0, 1, 5, 77, 921])
def test_points_that_a_continue_ends_stay_as_they_are(seed: int) -> None:
    a = np.arange(20.0).reshape(5, 4) / 8 + 1.0
    a[1::2, 0] = 0.0
    out = np.ones((5, 4, 4)) + np.arange(4)
    with installed(backend(CpuDriver())), lowered(seed):
        f = pe.cd_from_source(SKIPPING, {"clamp": pe.clamp})
        expected = f.on("numpy")(a, a[:4], out.copy())
        found = f.on("cuda")(a, a[:4], out.copy())
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(found[1::2], out[1::2])
