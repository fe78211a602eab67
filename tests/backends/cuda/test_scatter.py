"""Writes to where data says, by many pieces at once: the same as one after the other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.cuda.backend import translate
from plusequals.base import settings
from plusequals.base.diagnostic import CdError

from .on_cpu import CpuDriver, backend, installed, needs_gxx
from .test_nests import TUNED, joined
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
@pytest.mark.parametrize("architecture", TUNED)
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


ATOMIC = {
    "i8": ("counts", "sums", "largest", "rounds"),
    "u4": ("counts", "sums", "largest"),
    "f4": ("sums", "rounds"),
    "f8": ("sums",),
}
"""What is done by atomic operations, where that is asked for, by the type of the sums."""


@needs_gxx
@pytest.mark.parametrize("dtype", ATOMIC)
def test_atomic_operations_compute_what_the_program_does(dtype: str) -> None:
    rng = np.random.default_rng(4)
    k, x = rng.integers(0, 7, 900), rng.integers(0, 99, 900).astype(dtype)
    driver = CpuDriver()
    for name in ATOMIC[dtype]:
        function = pe.cd_from_source(f"def f(h, k, x):\n{TEXTS[name]}")
        wanted = np.ones(7, dtype)
        function.on("numpy")(wanted, k, x)
        with installed(backend(driver)), settings.override(atomics=True, verify=False):
            for driver.seed in (0, 3):
                held = np.ones(7, dtype)
                function.on("cuda")(held, k, x)
                assert held.tolist() == wanted.tolist(), name
            assert "atomic_" in function.on("cuda").explain(held, k, x).code, name


def test_atomic_operations_are_on_request_and_keep_orders_that_are_asked_for() -> None:
    def uses_them(name: str, dtype: str, **changes: object) -> bool:
        function = pe.cd_from_source(f"def f(h, k, x):\n{TEXTS[name]}")
        k = np.zeros(5000, int)
        with settings.override(verify=False, **changes):
            procedure = function.procedure(np.zeros(9, dtype), k, np.zeros(5000, dtype))
            made = translate(procedure, CpuDriver().properties(0))
        return "atomic_" in made.text.text

    assert not uses_them("sums", "f4") and not uses_them("sums", "i8")
    assert uses_them("sums", "f4", atomics=True)
    assert not uses_them("sums", "f4", atomics=True, profile="strict")
    assert uses_them("sums", "i8", atomics=True, profile="strict")
    assert not uses_them("from behind", "i8", atomics=True), "there is no such operation"


@needs_gxx
def test_of_failures_between_atomic_operations_the_first_is_told() -> None:
    k, driver = np.zeros(900, int), CpuDriver(seed=2)
    k[[888, 300, 700]] = 50, 60, 70
    function = pe.cd_from_source(f"def f(h, k, x):\n{TEXTS['rounds']}")
    held = np.zeros(9, int)
    with installed(backend(driver)), settings.override(atomics=True):
        with pytest.raises(CdError, match="60"):
            function.on("cuda")(held, k, k.copy())
    assert not held.any()


@needs_nvrtc
@pytest.mark.parametrize("architecture", TUNED)
def test_what_atomic_operations_take(architecture: str, tmp_path: Path) -> None:
    plans = []
    texts = {**TEXTS, "bits": "    h[k[i]] |= x[i]\n", "odd": "    h[k[i]] ^= x[i]\n"}
    texts["less"] = "    h[k[i]] = min(h[k[i]], x[i])\n"
    for dtype in ("i4", "u4", "i8", "u8", "f4", "f8"):
        for name, text in texts.items():
            if name == "from behind" or (dtype[0] == "f" and name not in ("sums", "rounds")):
                continue
            function = pe.cd_from_source(f"def f{len(plans)}(h, k, x):\n{text}")
            k, h = np.zeros(100_000, int), np.zeros(300, dtype)
            with settings.override(verify=False, atomics=True):
                procedure = function.procedure(h, k, np.zeros(100_000, dtype))
                plans.append(translate(procedure, CpuDriver().properties(0)))
            assert "atomic_" in plans[-1].text.text, (dtype, name)
    built = needed().build(joined(plans), architecture, tmp_path)
    assert "warning" not in built.log
    assert len(built.figures) >= len(plans) > 20
    for name, figures in built.figures.items():
        assert figures.registers <= 80 and figures.spilled == figures.stack == 0, name
