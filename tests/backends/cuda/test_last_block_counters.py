"""Kernels of which the last block does the rest: their text, and that it may be any block."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.codegen.source import preamble
from plusequals.backends.cuda import launch_sequence
from plusequals.backends.cuda.backend import translate
from plusequals.backends.cuda.dialect import CUDA
from plusequals.backends.cuda.host_program import COUNTER_BYTES, HostProgram
from plusequals.base import settings
from plusequals.lowering import thresholds
from plusequals.lowering.ir.assignments import Procedure

from .batch import compiled
from .late import LateContext, LateDriver
from .on_cpu import CpuDriver, Gxx, backend, installed, needs_gxx
from .test_launch_sequence import is_ahead
from .test_nests import TUNED, joined
from .test_nvrtc import needed, needs_nvrtc

Array = np.ndarray[Any, Any]
Golden = Callable[[str], Callable[[str], None]]
SEEDS = range(8)
"""In these orders of three blocks each of them is the last one of some."""
ALL = ("x.argmax()", "x.mean()", "(1 + x / 999).prod()", "x.var()", "x.sum() / abs(x).max()")
CASES = (
    ((83, 121), ALL),
    ((1, 9001), ALL[:1]),
    ((37, 400), ("x.sum(axis=0)", "x.max(axis=0) - x.min(axis=0)", "x.argmin(axis=0)")),
    ((3, 9001), ("x.sum(axis=1)", "x.argmax(axis=1)")),
)
"""Shapes of arrays, and what becomes of them."""
FULL = (
    ("x.sum()", "f4"), ("x.sum(axis=0)", "f4"), ("(x * x).sum(axis=0) / x.max(axis=0)", "f8"),
    ("x.sum() / x.max() + x.min()", "f8"),
)  # fmt: skip
"""What is computed, in numbers of which type: 32 registers are enough for it."""
WHICH = """
extern "C" __global__ void which(int64_t *found, uint32_t *arrived)
{
    if (comes_last(&arrived[blockIdx.y], gridDim.x)) {
        if (threadIdx.x == 5) found[blockIdx.y] = blockIdx.x;
        atomicAdd(&found[2], (int64_t)1);
    }
}
"""


def procedure(name: str, expression: str, x: Array) -> Procedure:
    text = f"def {name}(y, x):\n    y[:] = {expression}\n"
    axis = 1 if "axis=0" in expression else 0 if "axis=1" in expression else None
    y = np.zeros(1 if axis is None else x.shape[axis], x.dtype)
    return pe.cd_from_source(text, {"np": np}).procedure(y, x)


def planned(expression: str, x: Array) -> HostProgram:
    with settings.override(verify=False):
        return translate(procedure("f", expression, x), CpuDriver().properties(0))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let columns be cut where they have few rows."""
    for name, value in (
        ("MIN_COLUMN_TERMS", 400 * 37),
        ("COLUMN_REDUCTION_THREADS", 2000),
        ("MIN_COLUMN_TERMS_PER_THREAD", 7),
    ):
        monkeypatch.setattr(thresholds, name, value)


def test_a_sum_over_all_is_one_kernel(golden: Golden) -> None:
    plan = planned("x.sum()", np.zeros(9001, "f4"))
    (kernel,) = plan.text.kernels
    assert kernel.arrivals is not None
    assert (kernel.shape.blocks, kernel.arguments, plan.counted) == ((3, 1, 1), 4, COUNTER_BYTES)
    golden("sum.cu")(plan.text.text.split("\n", plan.text.above)[-1])


def test_blocks_of_a_tile_of_columns_have_a_number_of_their_own(
    small: None, golden: Golden
) -> None:
    plan = planned("x.sum(axis=0)", np.zeros((37, 400), "f4"))
    assert plan.counted == 2 * COUNTER_BYTES
    golden("columns.cu")(plan.text.text.split("\n", plan.text.above)[-1])


@needs_gxx
def test_one_block_is_the_last_and_it_may_be_any(tmp_path: Path) -> None:
    context = CpuDriver().open(0)
    module = context.load(Gxx().build(preamble(WHICH, CUDA) + WHICH, "sm_90", tmp_path).code)
    function = context.function(module, "which", 2)
    arrived, found = context.allocate(8, None), context.allocate(24, None)
    context.clear(arrived, 8, None)
    seen = set()
    for context.driver.seed in SEEDS:
        context.clear(found, 24, None)
        context.launch(function, (3, 2, 1), (64, 1, 1), [found, arrived], None)
        numbers, left = np.zeros(3, np.int64), np.ones(2, np.uint32)
        context.download(numbers, found, None)
        context.download(left, arrived, None)
        assert numbers[2] == 2 * 64, "all threads of one block of each row"
        assert not left.any(), "the next launch finds zeros"
        seen |= {*numbers[:2].tolist()}
    assert seen == {0, 1, 2}


@needs_gxx
def test_whichever_block_is_the_last_one_no_bit_changes(small: None) -> None:
    rng, driver = np.random.default_rng(3), CpuDriver()
    cases = [
        (text, rng.standard_normal(shape).astype("f4")) for shape, texts in CASES for text in texts
    ]
    made = [procedure(f"f{at}", text, x) for at, (text, x) in enumerate(cases)]
    with settings.override(verify=False):
        codes = compiled(made, driver)
    for (text, x), code in zip(cases, codes, strict=True):
        assert "comes_last(" in code.text
        wanted = np.atleast_1d(eval(text, {"np": np, "x": x.astype("f8")}))
        runs = []
        for driver.seed in (*SEEDS, len(SEEDS)):
            driver.shape = ((2, 1, 1), (64, 1, 1)) if driver.seed == len(SEEDS) else None
            y = np.full(wanted.shape, np.nan, "f4")
            code.run([y, x])
            runs.append(y.tobytes())
        np.testing.assert_allclose(y, wanted, 1e-4, 1e-4, err_msg=text)
        assert runs == [runs[0]] * len(runs), text


@needs_gxx
@pytest.mark.parametrize("shape", [(9001,), (37, 800)])
def test_runs_of_two_streams_count_blocks_by_themselves(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where temporaries are taken by each call, as the parts of many columns are."""
    monkeypatch.setattr(launch_sequence, "MAX_KEPT_BYTES", 1 << 10)
    for name, value in (
        ("MIN_COLUMN_TERMS", 1 << 14),
        ("COLUMN_REDUCTION_THREADS", 4000),
        ("MIN_COLUMN_TERMS_PER_THREAD", 7),
    ):
        monkeypatch.setattr(thresholds, name, value)
    prepared, arrived = LateContext.prepared, list[int]()

    def noted(self: Any, function: Any, grid: Any, block: Any, given: Any, *rest: Any) -> Any:
        arrived.append(given[-1])
        return prepared(self, function, grid, block, given, *rest)

    monkeypatch.setattr(LateContext, "prepared", noted)
    function = pe.cd_from_source("def f(s, x):\n    s[:] = x.sum(axis=0)\n")
    with installed(backend(LateDriver())):
        totals = [pe.tensor(name, shape[1:] or (1,), "float64") for name in "st"]
        routines = [
            function.compile(s, pe.tensor("x", shape, "float64", init=0.5)).link(
                pe.device("cuda").stream().context()
            )
            for s in totals
        ]
        for _ in range(3):
            for routine in routines:
                routine()
        assert all(map(is_ahead, routines))
        for s in totals:
            assert np.array_equal(s.numpy(), np.full(s.shape, shape[0] / 2))
    assert len(set(arrived)) == 2


@needs_nvrtc
@pytest.mark.parametrize("architecture", TUNED)
def test_the_rest_takes_no_registers_from_what_all_blocks_do(
    architecture: str, tmp_path: Path
) -> None:
    plans = []
    with settings.override(verify=False):
        for at, (text, dtype) in enumerate(FULL):
            x = np.lib.stride_tricks.as_strided(np.zeros(1, dtype), (8192, 4096), (0, 0))
            plans.append(translate(procedure(f"f{at}", text, x), CpuDriver().properties(0)))
    built = needed().build(joined(plans), architecture, tmp_path)
    assert "warning" not in built.log
    assert len(built.figures) == len(FULL)
    for name, figures in built.figures.items():
        assert figures.registers <= 32, f"{name}: eight blocks are held at once"
        assert figures.spilled == figures.stack == 0, name
