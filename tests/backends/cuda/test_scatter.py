"""Writes to where data says, by many pieces at once: the same as one after the other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.cuda.backend import translate
from plusequals.lowering import settings
from plusequals.lowering.diagnostic import CdError

from .on_cpu import CpuDriver, backend, installed, needs_gxx
from .test_nests import ARCHITECTURES, joined
from .test_nvrtc import needed, needs_nvrtc

TEXTS = {
    "counts": "    h[k[i]] += 1\n",
    "sums": "    h[k[i]] += x[i]\n",
    "largest": "    h[k[i]] = max(h[k[i]], x[i])\n",
    "rounds": "    for i in range(len(k)):\n        h[k[i]] += x[i]\n",
    "from behind": "    for i in range(len(k) - 1, -1, -3):\n        h[k[i]] *= x[i]\n",
}


@needs_gxx
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize(("n", "size"), [(1023, 7), (2055, 1), (3100, 13), (0, 5)])
def test_pieces_compute_what_the_program_does(name: str, n: int, size: int) -> None:
    rng = np.random.default_rng(n)
    k, x = rng.integers(0, size, n), rng.integers(-(2**62), 2**62, n)
    start = rng.integers(-9, 9, size)
    driver = CpuDriver()
    function = pe.cd_from_source(f"def f(h, k, x):\n{TEXTS[name]}")
    wanted = start.copy()
    function.on("numpy")(wanted, k, x)
    with installed(backend(driver)):
        for driver.seed in (0, 4):
            held = start.copy()
            function.on("cuda")(held, k, x)
            assert held.tolist() == wanted.tolist()
        code = function.on("cuda").explain(start, k, x).code
    rounds = n // 3 if name == "from behind" else n
    assert ("h_parts[" in code) is (rounds >= 1024)


@needs_gxx
def test_of_failures_in_several_pieces_the_first_is_told() -> None:
    k, driver = np.zeros(4000, int), CpuDriver()
    k[[3999, 2222, 2221, 3001]] = 50, 60, 70, 80
    function = pe.cd_from_source(f"def f(h, k, x):\n{TEXTS['rounds']}")
    told = []
    with installed(backend(driver)):
        for name, driver.seed in (("cuda", 1), ("cuda", 2), ("numpy", 0)):
            with pytest.raises(CdError) as caught:
                function.on(name)(np.zeros(9, int), k, k)
            told.append(str(caught.value))
    assert told[0] == told[1] == told[2] and "70" in told[0]


@needs_gxx
def test_sizes_of_the_run() -> None:
    function = pe.cd_from_source(f"def f(h, k, x):\n{TEXTS['sums']}")
    with installed():
        for n in (5, 6, 8, 9, 1500):
            rng = np.random.default_rng(n)
            k, x = rng.integers(0, 11, n), rng.integers(-99, 99, n)
            held = [np.zeros(11, int), np.zeros(11, int)]
            for name, h in zip(("cuda", "numpy"), held, strict=True):
                function.on(name)(h, k, x)
            assert held[0].tolist() == held[1].tolist()


@needs_nvrtc
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_what_pieces_take(architecture: str, tmp_path: Path) -> None:
    plans = []
    for number, text in enumerate(TEXTS.values()):
        function = pe.cd_from_source(f"def f{number}(h, k, x):\n{text}")
        k = np.zeros(100_000, int)
        with settings.override(verify=False):
            procedure = function.procedure(np.zeros(300, int), k, k.copy())
            plans.append(translate(procedure, CpuDriver().properties(0)))
    built = needed().build(joined(plans), architecture, tmp_path)
    assert "warning" not in built.log
    for name, figures in built.figures.items():
        assert figures.registers <= 80 and figures.spilled == figures.stack == 0, name
