"""Sums down columns by many threads: the same in every run, and what such kernels take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.cuda.backend import translate
from plusequals.base import settings
from plusequals.lowering import thresholds
from plusequals.lowering.ir.assignments import Procedure

from .batch import compiled
from .on_cpu import CpuDriver, needs_gxx
from .test_nests import TUNED, joined
from .test_nvrtc import needed, needs_nvrtc

Array = np.ndarray[Any, Any]
TEXTS = ("x.sum(axis=0)", "x.mean(axis=0)", "x.var(axis=0)", "x.argmin(axis=0)",
         "np.sqrt((x * x).sum(axis=0))")  # fmt: skip


def procedure(expression: str, y: Array, x: Array, name: str = "f") -> Procedure:
    text = f"def {name}(y, x):\n    y[:] = {expression}\n"
    return pe.cd_from_source(text, {"np": np}).procedure(y, x)


@needs_gxx
@pytest.mark.parametrize("shape", [(33, 64), (100, 65), (257, 100)])
def test_parts_are_the_same_in_every_run(
    shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (
        ("MIN_COLUMN_TERMS", 64 * 33),
        ("COLUMN_REDUCTION_THREADS", 1024),
        ("MIN_COLUMN_TERMS_PER_THREAD", 5),
    ):
        monkeypatch.setattr(thresholds, name, value)
    x = np.random.default_rng(3).standard_normal(shape).astype("f4")
    driver = CpuDriver()
    with settings.override(verify=False):
        made = [
            procedure(text, np.zeros(shape[1], "f4"), x, f"f{at}") for at, text in enumerate(TEXTS)
        ]
        codes = compiled(made, driver)
    for text, code in zip(TEXTS, codes, strict=True):
        assert "_chunks" in code.text
        wanted = eval(text, {"np": np, "x": x.astype("f8")})
        runs = []
        for driver.seed in (0, 1, 2):
            y = np.full(shape[1], np.nan, "f4")
            code.run([y, x])
            runs.append(y.tobytes())
            np.testing.assert_allclose(y, wanted, 1e-5, 1e-5)
        assert runs == [runs[0]] * 3


@needs_nvrtc
@pytest.mark.parametrize("architecture", TUNED)
def test_what_parts_take(architecture: str, tmp_path: Path) -> None:
    x, y = np.zeros((4096, 1024), "f4"), np.zeros(1024, "f4")
    with settings.override(verify=False):
        plan = translate(procedure(TEXTS[2], y, x), CpuDriver().properties(0))
    built = needed().build(joined([plan]), architecture, tmp_path)
    assert "warning" not in built.log
    assert len(built.figures) == 4
    for name, figures in built.figures.items():
        assert figures.registers <= 64, f"{name}: half the threads that a multiprocessor has"
        assert figures.spilled == figures.stack == 0, name
