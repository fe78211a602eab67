"""Products by four warps together: what they compute, and what they take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.cuda.host_program import HostProgram
from plusequals.lowering import thresholds

from .batch import compiled
from .on_cpu import CpuDriver, needs_gxx
from .test_nvrtc import needed, needs_nvrtc
from .test_tensors import plan_of

Array = np.ndarray[Any, Any]
HALF, BRAIN = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)
PRODUCTS = {
    "plain": ("c[i, j] = sum[k](a[i, k] * b[k, j])", (130, 264), (130, 72), (72, 264)),
    "turned": ("c[i, j] = sum[k](a[k, i] * b[j, k])", (72, 66), (20, 72), (66, 20)),
    "into": ("c[i, j] += a[i, k] * b[k, j]", (128, 131), (128, 130), (130, 131)),
    "after": ("c[j, i] = relu(sum[k](a[i, k] * b[j, k]) - i)", (256, 65), (65, 64), (256, 64)),
    "each": ("c[n, i, j] = sum[k](a[n, i, k] * b[n, k, j])", (2, 65, 66), (2, 65, 18), (2, 18, 66)),
}  # fmt: skip
"""With edges in every direction, and with none; rows and columns that are and are no pairs."""


def arguments(name: str, dtype: np.dtype[Any]) -> list[Array]:
    """Return numbers of few digits: their products and sums are exact."""
    rng = np.random.default_rng(len(name))
    return [(rng.integers(-4, 5, shape) / 4).astype(dtype) for shape in PRODUCTS[name][1:]]


def meaning(name: str, held: list[Array]) -> Array:
    c, a, b = (one.astype(np.float32) for one in held)
    match name:
        case "turned":
            return a.T @ b.T
        case "into":
            return c + a @ b
        case "after":
            return np.maximum(a @ b.T - np.arange(len(a))[:, None], 0).T
        case _:
            return a @ b


@needs_gxx
@pytest.mark.parametrize("dtype", [HALF, BRAIN], ids=str)
def test_they_compute_what_the_program_does(
    dtype: np.dtype[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thresholds, "MIN_OCCUPYING_TILES", 1)
    functions = [
        pe.cd_from_source(f"def f_{at}(c, a, b):\n    {PRODUCTS[name][0]}\n")
        for at, name in enumerate(PRODUCTS)
    ]
    given = [arguments(name, dtype) for name in PRODUCTS]
    driver = CpuDriver()
    codes = compiled([f.procedure(*one) for f, one in zip(functions, given, strict=True)], driver)
    for name, code, held in zip(PRODUCTS, codes, given, strict=True):
        right = meaning(name, held).astype(dtype)
        assert "multiplied_wide<" in code.text, name
        for driver.seed in (1, 2):
            got = [one.copy() for one in held]
            code.run(got)
            assert got[0].tobytes() == right.tobytes(), name


def large(dtype: Any, text: str = PRODUCTS["plain"][0], **given: Any) -> HostProgram:
    return plan_of(text, *(np.zeros((2048, 2048), dtype) for _ in range(3)), **given)


def test_only_devices_that_have_them_use_them() -> None:
    made = large(HALF)
    assert made.text.specific and made.text.kernels[0].dynamic == 196_608
    for architecture in ((8, 0), (8, 9), (10, 0), (12, 0)):
        other = large(HALF, architecture=architecture)
        assert "multiplied<" in other.text.text and not other.text.specific
    assert not large(np.float32, tf32=True).text.specific


@needs_nvrtc
@pytest.mark.parametrize("name", [name for name in PRODUCTS if name != "each"])
def test_they_take_no_more_than_a_multiprocessor_has(name: str, tmp_path: Path) -> None:
    made = large(HALF, PRODUCTS[name][0])
    built = needed().build(made.text.text, "sm_90a", tmp_path)
    for kernel in made.text.kernels:
        taken = built.figures[kernel.name]
        assert taken.registers <= 255 and taken.spilled == 0, name
    assert "Performance Loss" not in built.log, "a compiler that has products wait says so"
