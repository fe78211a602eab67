"""The kernels of conditions: they compile for devices, and set what they should."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from plusequals.backends.cuda import nvrtc
from plusequals.backends.cuda.conditions import (
    ARGUMENT_COUNT,
    CONDITION_KERNELS,
    conditions_text,
)

from .captures import UNSET, CapturingContext, CapturingDriver
from .on_cpu import Gxx, needs_gxx

ONE = (1, 1, 1)


@pytest.mark.parametrize("target", ["sm_75", "sm_90", "sm_100"])
def test_they_compile_for_devices(target: str, tmp_path: Path) -> None:
    try:
        compiler = nvrtc.find_compiler()
    except nvrtc.CompileError as why:
        pytest.skip(f"no compiler of CUDA: {why}")
    made = compiler.build(conditions_text(), target, tmp_path)
    assert set(made.figures) == set(CONDITION_KERNELS)
    assert all(figure.spilled == 0 for figure in made.figures.values())


class Kernels:
    """The kernels on a played device, and memory for what they look at."""

    def __init__(self, folder: Path) -> None:
        self.context = CapturingContext(CapturingDriver(), 0)
        self.module = self.context.load(Gxx().build(conditions_text(), "sm_90", folder).code)
        self.go_on, self.choose = (
            self.context.function(self.module, name, ARGUMENT_COUNT) for name in CONDITION_KERNELS
        )
        self.element, self.count, self.fault, self.word = (
            self.context.allocate(size, None) for size in (8, 8, 24, 8)
        )

    def put(self, address: int, *values: object) -> None:
        for at, value in enumerate(values):
            array = np.asarray(value)
            raw = np.frombuffer(array.tobytes(), np.uint8)
            self.context._memory(address + at * array.nbytes, array.nbytes)[:] = raw

    def run(self, kernel: object, *arguments: int) -> int:
        """Return what a kernel sets."""
        self.put(self.word, np.uint64(UNSET))
        self.context.launch(kernel, ONE, (32, 1, 1), (self.word, *arguments), "stream")
        self.context.finish()
        return int(self.context._memory(self.word, 4).view(np.uint32)[0])

    def faults(self) -> list[int]:
        return [int(n) for n in self.context._memory(self.fault, 24).view(np.int64)]


@needs_gxx
def test_a_loop_goes_on_while_its_element_is_true(tmp_path: Path) -> None:
    on = Kernels(tmp_path)
    on.put(on.fault, *[np.int64(0)] * 3)
    for value, size, mask, wanted in (
        (np.int8(-1), 1, 0xFF, 1), (np.bool_(False), 1, 0xFF, 0),
        (np.float64(-0.0), 8, 2**63 - 1, 0),
        (np.float64(np.nan), 8, 2**63 - 1, 1), (np.float16(2**-24), 2, 0x7FFF, 1),
        (np.int64(-(2**63)), 8, -1, 1), (np.uint16(0), 2, 0xFFFF, 0),
    ):  # fmt: skip
        on.put(on.element, np.uint64(2**64 - 1))
        on.put(on.element, value)
        on.put(on.count, np.int64(0))
        given = on.element, size, mask, on.count, -1, on.fault, 5
        assert on.run(on.go_on, *given) == wanted, value
    on.put(on.element, np.int64(1))
    on.put(on.count, np.int64(0))
    found = [on.run(on.go_on, on.element, 8, -1, on.count, 2, on.fault, 5) for _ in range(4)]
    assert found == [1, 1, 0, 0]
    assert on.faults() == [1, 2, 5]


@needs_gxx
def test_a_branch_runs_where_the_element_is_its_number(tmp_path: Path) -> None:
    on = Kernels(tmp_path)
    for value, wanted in (
        (np.int8(-3), [0, 0, 0, 1]), (np.int64(2), [0, 0, 1, 0]), (np.uint8(0), [1, 0, 0, 0]),
        (np.bool_(True), [0, 1, 0, 0]), (np.uint64(2**64 - 1), [0] * 4), (np.int32(3), [0] * 4),
        (np.uint8(255), [0] * 4),
    ):  # fmt: skip
        on.put(on.fault, *[np.int64(0)] * 3)
        on.put(on.element, value)
        signed = value.dtype.kind == "i"
        found = [
            on.run(on.choose, on.element, value.nbytes, signed, which, 3, on.fault, 7)
            for which in (0, 1, 2, -1)
        ]
        assert found == wanted, value
        assert on.faults()[0] == (not any(wanted)), value
