"""Kernels whose threads share more than they may declare: what a launch gives to each block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from plusequals.backends.cuda import dialect, kernels
from plusequals.backends.cuda.backend import target_of
from plusequals.backends.cuda.block_memory import ALIGNMENT, MAX_STATIC_BYTES, layout_shared
from plusequals.backends.cuda.code import CudaCode
from plusequals.backends.cuda.host_program import HostProgram, plan_host
from plusequals.backends.cuda.launch_sequence import record_sequence
from plusequals.backends.cuda.nvrtc import CompiledModule, ResourceUsage
from plusequals.backends.device_arrays.device_array import DeviceArray
from plusequals.backends.gpu.driver_protocol import DriverError, Properties
from plusequals.base import settings
from plusequals.base.diagnostic import CdBackendError
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.assignments import Access, Parameter, Procedure
from plusequals.lowering.ir.indexing import const, var
from plusequals.lowering.ir.loops import Barrier, For, Kernel, Program, Store

from ..codegen.programs import node, position, read, symbols
from .batch import loaded
from .late import LateDriver
from .on_cpu import MOST_SHARED, UNASKED, CpuDriver, Nothing, backend, needs_gxx
from .test_nvrtc import needed, needs_nvrtc

Golden = Callable[[str], Callable[[str], None]]
B, T = symbols("b t")
ROWS = 3


def reversing(count: int, last: int = 0) -> Procedure:
    """What `planned` is made of: `y[i, j] = x[i, count - 1 - j]`, and of `z` the same."""
    x, y = (node(k, name, (ROWS, count), dtypes.float64) for k, name in enumerate("xy"))
    z = node(2, "z", (ROWS, count), dtypes.int16)
    parameters = (Parameter(x, False), Parameter(y, True), Parameter(z, True))
    return Procedure("reversing", parameters, (), (), ())


def planned(count: int, beyond: int = 0) -> HostProgram:
    """Return a plan whose blocks read rows into memory that they share, and write them reversed.

    Each stores `beyond` elements more than it shares.
    """
    parameters = reversing(count).parameters
    x, y, z = (parameter.node for parameter in parameters)
    row, short = node(3, "row", (count,), dtypes.float64), node(4, "short", (count,), dtypes.int16)
    back = const(count - 1) - var(T)

    def threads(many: int, *stores: Store) -> For:
        return For(T, const(0), const(many), 1, stores, "thread")

    block = For(B, const(0), const(ROWS), 1, (
        threads(count, Store(Access(row, (var(T),)), read(x, B, T))),
        threads(count + beyond, Store(Access(short, (var(T),)), position(T))),
        Barrier(),
        threads(
            count,
            Store(Access(y, (var(B), var(T))), read(row, back)),
            Store(Access(z, (var(B), var(T))), read(short, back)),
        ),
        Barrier(),
    ), "block")  # fmt: skip
    program = Program("reversing", parameters, (row, short), (), (Kernel("reversing", (block,)),))
    return plan_host(program, {3: "shared", 4: "shared"}, frozenset())


def checked(code: CudaCode, count: int) -> None:
    """Run code of `planned` and compare."""
    x = np.random.default_rng(count).standard_normal((ROWS, count))
    y, z = np.zeros((ROWS, count)), np.zeros((ROWS, count), np.int16)
    code.run([x, y, z])
    np.testing.assert_array_equal(y, x[:, ::-1])
    np.testing.assert_array_equal(z, np.tile(np.arange(count)[::-1].astype(np.int16), (ROWS, 1)))


def test_what_fits_is_declared_and_other_memory_is_given_in_order() -> None:
    floats = [node(k, f"a{k}", (shape,)) for k, shape in enumerate((4096, 4096, 4096 - 4, 5))]
    assert layout_shared([]) == ({}, 0)
    assert layout_shared(floats[:3]) == ({}, 0)
    places, end = layout_shared(floats)
    assert places == {0: 0, 1: 16384, 2: 32768, 3: 49152}
    assert end == 49152 + 20
    empty = layout_shared([node(0, "none", (0,)), node(1, "more", (MAX_STATIC_BYTES,))])
    assert empty == ({0: 0, 1: ALIGNMENT}, ALIGNMENT + 4 * MAX_STATIC_BYTES)


def test_the_text_of_a_kernel_that_is_given_memory(golden: Golden) -> None:
    (small,), (large,) = (planned(count).text.kernels for count in (4000, 6000))
    assert (small.dynamic, small.shared) == (0, 40_000)
    assert (large.dynamic, large.shared) == (60_128, 60_000)
    text = planned(6000).text
    golden("given.cu")(text.text.split("\n", text.above)[-1])
    assert "block_bytes" not in planned(4000).text.text
    assert text.text.count("extern __shared__ __align__(1024)") == 1


@needs_gxx
@pytest.mark.parametrize("count", [1, 33, 4912, 4913, 6001, 23_000])
def test_memory_of_any_size_is_shared(count: int) -> None:
    driver = CpuDriver(seed=count)
    (code,) = loaded([reversing(count)], [planned(count)], driver.opened(0))
    for driver.shape in (None, ((2, 1, 1), (96, 1, 1)), ((1, 1, 1), (32, 1, 1))):
        checked(code, count)
    (kernel,) = code.plan.text.kernels
    assert bool(kernel.dynamic) == (count > 4912)
    launches = [what[6:] for what in driver.log if what[1] == "launch"]
    assert launches == [(kernel.dynamic,) * bool(kernel.dynamic)] * 3


@needs_gxx
def test_runs_that_are_written_down_give_it_too() -> None:
    device = LateDriver().opened(0)
    (code,) = loaded([reversing(6000)], [planned(6000)], device)
    lane = device.stream()
    x = np.random.default_rng(1).standard_normal((ROWS, 6000))
    held = [x, np.zeros_like(x), np.zeros(x.shape, np.int16)]
    there = [
        DeviceArray(device, device.pool.take(a.nbytes, "a", "f", lane), a.shape, a.dtype, lane)
        for a in held
    ]
    device.upload(there[0].address, x, lane)
    start = record_sequence(code, there, lane)
    assert start is not None
    start(), start()
    np.testing.assert_array_equal(there[1].numpy(), x[:, ::-1])


@needs_gxx
def test_what_is_written_behind_it_is_seen() -> None:
    (code,) = loaded([reversing(6000)], [planned(6000, beyond=9)], CpuDriver().opened(0))
    with pytest.raises(CdBackendError, match="behind the bytes that a launch gives"):
        checked(code, 6000)


def test_more_than_a_device_has_is_refused() -> None:
    context = CpuDriver().open(0)
    with pytest.raises(DriverError, match="more than there are"):
        context.function(None, "f", 0, MOST_SHARED + 1)
    function = context.function(None, "f", 0, UNASKED + 1)
    context.launch(function, (1, 1, 1), (1, 1, 1), (), "s", UNASKED + 1)
    with pytest.raises(DriverError, match="more than it asked for"):
        context.launch(context.function(None, "f", 0), (1,) * 3, (1,) * 3, (), "s", UNASKED + 1)


def test_a_module_is_loaded_with_what_its_launches_give() -> None:
    driver = CpuDriver()
    made = backend(driver, Nothing)
    found, _ = made.load(planned(6000), "reversing", made.opened(0))
    assert found.functions[0][-1] == 60_128


def test_what_a_kernel_takes_is_told_with_what_it_is_given() -> None:
    made = planned(6000)
    (kernel,) = made.text.kernels
    taken = {kernel.name: ResourceUsage(20, 4, 0, 0)}
    code = CudaCode("f", made, (None,), (), (), "compiled", CpuDriver().opened(0), taken)
    assert [row.shared for row in code.kernels] == [60_132]


def test_schedules_know_what_a_device_has() -> None:
    hopper, small = CpuDriver().properties(0), Properties("T4", (7, 5), 40, 1 << 34)
    assert target_of(hopper).shared_bytes == MOST_SHARED
    assert target_of(small).shared_bytes == MAX_STATIC_BYTES
    other = Properties("B200", (10, 0), 148, 180 << 30, most_shared_bytes=MOST_SHARED)
    assert [target_of(one).warpgroups for one in (hopper, small, other)] == [True, False, False]


class Noting(Nothing):
    """Compiles nothing, and notes what for."""

    targets: list[str] = []

    def build(self, text: str, target: str, folder: Path) -> CompiledModule:
        self.targets.append(target)
        return super().build(text, target, folder)


def test_what_only_one_architecture_runs_is_compiled_for_it_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Noting.targets.clear()
    made = backend(CpuDriver(), Noting)
    plain = planned(6000)
    assert not plain.text.specific
    of_one = replace(plain, text=replace(plain.text, specific=True))
    with settings.override(cache=False):
        for one in (plain, of_one, plain, of_one):
            made.load(one, "reversing", made.opened(0))
    assert Noting.targets == ["sm_90", "sm_90a"]
    monkeypatch.setattr(kernels, "SPECIFIC", frozenset(["block_bytes"]))
    assert planned(6000).text.specific and not planned(60).text.specific
    assert dialect.SPECIFIC <= set(kernels.prelude.prelude_definitions(dialect.LIBRARY))


@needs_nvrtc
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_90a", "sm_100"])
def test_real_compilers_know_that_it_is_shared(architecture: str, tmp_path: Path) -> None:
    text = planned(6000).text
    built = needed().build(text.text, architecture, tmp_path)
    assert "warning" not in built.log
    assert built.figures[text.kernels[0].name].shared == 0
    assert built.figures[text.kernels[0].name].stack == 0
