"""Triton's kernels compute what the workloads say, as far as that can be seen without Triton."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest

from benchmarks.cell import wrong
from tests.gpu.played_triton import Tensor, Triton

from .work import MEASURED, Measured, empty

NAME = "tests.gpu.on_triton"
COVERED = (
    "saxpy", "softmax", "layer_norm", "gemm_f32_4096", "gemm_f16_4096", "gemm_bf16_4096",
    "gemm_tf32_4096", "attention",
)  # fmt: skip


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    played = Triton()
    monkeypatch.setitem(sys.modules, "triton", played)
    monkeypatch.setitem(sys.modules, "triton.language", played.language)
    monkeypatch.delitem(sys.modules, NAME, raising=False)
    yield importlib.import_module(NAME)
    sys.modules.pop(NAME, None)


def measured(name: str) -> Measured:
    return next(what for what in MEASURED if what.workload.name == name)


def sized(what: Measured) -> list[tuple[int, ...]]:
    """Return sizes: the small one, and others that fill no block, one, and some."""
    others = {1: [(150,), (128,), (1,)], 2: [(3, 1), (5, 128)], 4: [(2, 1, 70, 40), (1, 1, 64, 16)]}
    return [what.small, *others[len(what.dims)]]


@pytest.mark.parametrize("name", COVERED)
def test_a_kernel_computes_what_it_should(name: str, kernels: ModuleType) -> None:
    what = measured(name)
    for dims in sized(what):
        case = what.workload.make(np.random.default_rng(1), *dims)
        outputs = empty(case)
        tensors = [Tensor(array) for array in (*outputs, *case.inputs)]
        getattr(kernels, what.triton)(*tensors, *case.numbers)
        problem = wrong(tuple(outputs), what.workload.right(case), what.workload.tolerance)
        assert problem is None, (dims, problem)
