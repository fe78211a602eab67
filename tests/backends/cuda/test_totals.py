"""Running totals of real numbers: in pieces, and the same in every run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.cuda.backend import translate
from plusequals.base import settings

from .batch import compiled
from .on_cpu import CpuDriver, installed, needs_gxx
from .test_nests import TUNED, joined
from .test_nvrtc import needed, needs_nvrtc

TEXT = "    y[:] = np.cumsum(x)\n"
SIZED = f"def f(y: f64[n], x: f64[n]):\n{TEXT}"


@needs_gxx
@pytest.mark.parametrize("n", [1, 63, 65, 997])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8"])
def test_pieces_are_the_same_in_every_run(dtype: str, n: int) -> None:
    rng = np.random.default_rng(n)
    x = (rng.standard_normal(n) + (1j if dtype == "c8" else 0)).astype(dtype)
    driver = CpuDriver()
    function = pe.cd_from_source(f"def f(y, x):\n{TEXT}", {"np": np})
    with settings.override(verify=False):
        (code,) = compiled([function.procedure(x.copy(), x)], driver)
    assert ("_parts" in code.text) is (n > 64)
    runs = []
    for driver.seed in (0, 1, 2):
        y = np.full(n, np.nan, dtype)
        code.run([y, x])
        runs.append(y.tobytes())
        np.testing.assert_allclose(y, np.cumsum(x.astype("c16")), 1e-4, 1e-4)
    assert runs == [runs[0]] * 3


@needs_gxx
def test_the_order_of_the_program_is_kept_where_it_is_asked_for() -> None:
    x = np.random.default_rng(2).standard_normal(500).astype("f4")
    function = pe.cd_from_source(f"def f(y, x):\n{TEXT}", {"np": np})
    rounds = "    y[0] = x[0]\n    for i in range(1, 500):\n        y[i] = y[i - 1] + x[i]\n"
    loop = pe.cd_from_source(f"def f(y, x):\n{rounds}")
    with settings.override(profile="strict"), installed():
        kept = np.empty_like(x)
        function.on("cuda")(kept, x)
    with installed():
        written = np.empty_like(x)
        loop.on("cuda")(written, x)
    wanted = np.cumsum(x, dtype="f4")
    assert kept.tobytes() == written.tobytes() == wanted.tobytes()


@needs_gxx
def test_sizes_of_the_run() -> None:
    function = pe.cd_from_source(SIZED, {"np": np})
    with installed():
        for n in (0, 1, 2, 31, 1500):
            x = np.arange(n) / 8
            y = np.empty(n)
            function.on("cuda")(y, x)
            assert y.tolist() == np.cumsum(x).tolist()


@needs_nvrtc
@pytest.mark.parametrize("architecture", TUNED)
def test_what_pieces_take(architecture: str, tmp_path: Path) -> None:
    x = np.zeros(1_000_000, "f4")
    function = pe.cd_from_source(f"def f(y, x):\n{TEXT}", {"np": np})
    with settings.override(verify=False):
        plan = translate(function.procedure(x.copy(), x), CpuDriver().properties(0))
    built = needed().build(joined([plan]), architecture, tmp_path)
    assert "warning" not in built.log
    assert len(built.figures) >= 3
    for name, figures in built.figures.items():
        assert figures.registers <= 80 and figures.spilled == figures.stack == 0, name
