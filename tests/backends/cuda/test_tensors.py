"""Contractions by tensor cores: what they compute, what they take, and where there are none."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.cuda.backend import translate
from plusequals.backends.cuda.host_program import HostProgram
from plusequals.base import settings
from plusequals.lowering.gpu.gemm import tensor_cores
from plusequals.lowering.ir.assignments import Procedure
from plusequals.lowering.ir.interpret import run_procedure

from .batch import compiled
from .on_cpu import CpuDriver, Nothing, backend, installed, needs_gxx
from .test_nests import SPILLED, TUNED, joined
from .test_nvrtc import needed, needs_nvrtc

Array = np.ndarray[Any, Any]
TYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32}
PRODUCTS = {
    "plain": ("c[i, j] = sum[k](a[i, k] * b[k, j])", (67, 20), (67, 36), (36, 20)),
    "turned": ("c[i, j] = sum[k](a[k, i] * b[j, k])", (18, 66), (40, 18), (66, 40)),
    "after": ("c[i, j] = relu(sum[k](a[i, k] * b[j, k]) - i)", (24, 20), (24, 33), (20, 33)),
    "whole": ("c[j, i] = sum[k](a[k, i] * b[k, j])", (64, 64), (16, 64), (16, 64)),
    "each": ("c[n, i, j] = sum[k](a[n, i, k] * b[n, k, j])", (2, 17, 65), (2, 17, 16), (2, 16, 65)),
    "window": ("c[i, j] = sum[p, k](a[i + p, k] * b[p, k, j])", (66, 24), (68, 8), (3, 8, 24)),
    "far": ("c[i, j] = sum[k](a[i, 2 * k] * (b[k, j] + 1))", (19, 33), (19, 60), (30, 33)),
    "into": ("c[i, j] += a[i, k] * b[k, j]", (35, 66), (35, 17), (17, 66)),
    "odd": ("c[i, j] = sum[k](a[i, k + 1] * b[k, j])", (20, 31), (20, 33), (32, 31)),
}  # fmt: skip
NONE = {("far", "f16"), ("far", "bf16")}
"""What is computed in float32 before it is multiplied."""
REGISTERS = 224
"""With so many a multiprocessor holds two blocks of 128 threads."""
TEXTS = {name: f"def f(c, a, b):\n    {text}\n" for name, (text, *_) in PRODUCTS.items()}


def arguments(name: str, kind: str) -> list[Array]:
    """Return numbers of few digits: their products and sums are exact."""
    rng = np.random.default_rng(len(name))
    shapes = PRODUCTS[name][1:]
    return [(rng.integers(-8, 9, shape) / 4).astype(TYPES[kind]) for shape in shapes]


def procedure_of(name: str, kind: str) -> Procedure:
    return pe.cd_from_source(TEXTS[name]).procedure(*arguments(name, kind))


@cache
def expected(name: str) -> Array:
    """Return what is computed in float32, where nothing is rounded."""
    held = arguments(name, "tf32")
    run_procedure(procedure_of(name, "tf32"), held, print)
    return held[0]


@needs_gxx
@pytest.mark.parametrize(
    ("kind", "large"),
    [
        *((kind, None) for kind in TYPES),
        ("f16", (128, 128)),
        ("bf16", (64, 128)),
        ("tf32", (128, 128)),
        ("tf32", (128, 64)),
    ],
)
def test_blocks_of_elements_compute_what_the_program_does(
    kind: str, large: tuple[int, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = CpuDriver()
    names = ["plain", "turned"] if large else [*PRODUCTS]
    made = [replace(procedure_of(name, kind), name=f"f_{at}") for at, name in enumerate(names)]
    if large:
        monkeypatch.setattr(tensor_cores, "tile_extents", lambda what: large)
    with settings.override(tf32=kind == "tf32", verify=not large):
        codes = compiled(made, driver)
    assert len(codes) == len(names)
    for name, code in zip(names, codes, strict=True):
        assert ("multiplied<" in code.text) == ((name, kind) not in NONE), name
        for driver.seed in (3, 4):
            got = arguments(name, kind)
            if name != "into":
                got[0][...] = np.nan
            code.run(got)
            assert got[0].tobytes() == expected(name).astype(TYPES[kind]).tobytes(), name


def plan_of(
    text: str, *arrays: Array, architecture: tuple[int, int] = (9, 0), **changes: Any
) -> HostProgram:
    """Return the kernels of a function for a device."""
    function = pe.cd_from_source(f"def f({', '.join('cab'[: len(arrays)])}):\n    {text}\n")
    known = replace(CpuDriver().properties(0), architecture=architecture)
    with settings.override(verify=False, **changes):
        return translate(function.procedure(*arrays), known)


def uses_tensors(dtype: Any, n: int = 64, text: str = PRODUCTS["plain"][0], **given: Any) -> bool:
    made = plan_of(text, *(np.zeros((n, n), dtype) for _ in range(3)), **given)
    return "multiplied<" in made.text.text


def test_where_tensor_cores_are_used() -> None:
    half, brain, real = np.float16, ml_dtypes.bfloat16, np.float32
    assert uses_tensors(half) and uses_tensors(brain) and uses_tensors(real, tf32=True)
    assert not uses_tensors(real) and not uses_tensors(np.float64, tf32=True)
    assert not uses_tensors(half, profile="strict")
    assert not uses_tensors(real, profile="strict", tf32=True)
    assert not uses_tensors(half, architecture=(7, 5)), "it has none of these instructions"
    assert not uses_tensors(half, 15), "most of a block would be empty"
    rounds = "for k in range(64):\n        c[i, j] += a[i, k] * b[k, j]"
    assert not uses_tensors(half, text=rounds), "what was written in order stays in order"


@pytest.mark.parametrize("name", ["plain", "into"])
def test_one_code_for_all_sizes_uses_them_too(name: str) -> None:
    with installed(backend(compiler=Nothing)), settings.override(verify=False):
        function = pe.cd_from_source(TEXTS[name]).on("cuda")
        for n in range(20, 27):
            held = [np.zeros(shape, "f2") for shape in ((n, n + 3), (n, n + 1), (n + 1, n + 3))]
            function(*held)
        made = function.explain(*held)
    assert "a: f16[a_0, a_1]" in made.assignments, "any size"
    assert "multiplied<" in made.code


@needs_gxx
@pytest.mark.parametrize("kind", TYPES)
def test_many_terms_are_added_in_parts(kind: str) -> None:
    rng = np.random.default_rng(8)
    a, b = ((rng.integers(-4, 5, n) / 4).astype(TYPES[kind]) for n in ((18, 512), (512, 20)))
    c = np.zeros((18, 20), np.float32)
    with settings.override(tf32=kind == "tf32"):
        (code,) = compiled(
            [pe.cd_from_source(TEXTS["plain"]).procedure(c, a, b)], CpuDriver(seed=2)
        )
    assert "multiplied<" in code.text and "_parts[" in code.text
    code.run([c, a, b])
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


@needs_gxx
@pytest.mark.parametrize("kind", TYPES)
def test_what_is_no_number_and_what_is_tiny_goes_through(kind: str) -> None:
    special = [np.nan, np.inf, -np.inf, 2.0**-24, -(2.0**-20), 1.5 * 2**14]
    c, a, b = (np.zeros((16, 16), TYPES[kind]) for _ in range(3))
    a[range(6), range(6)] = special
    b[:] = 1
    changes = settings.override(tf32=kind == "tf32", verify=False)
    with installed(backend()), changes:
        pe.cd_from_source(TEXTS["plain"]).on("cuda")(c, a, b)
    np.testing.assert_array_equal(c[:6, 7].astype(float), special)


@needs_gxx
def test_tf32_keeps_10_bits_and_rounds_to_the_nearest() -> None:
    a, b, c = (np.zeros((16, 16), np.float32) for _ in range(3))
    a[0, 0], b[0, 0] = 1 + 2**-11, 1
    a[1, 0], a[2, 0], a[3, 0] = 1 + 2**-12, -1 - 3 * 2**-11, 1 + 2**-10
    with installed(backend()), settings.override(tf32=True):
        pe.cd_from_source(TEXTS["plain"]).on("cuda")(c, a, b)
    assert c[:4, 0].tolist() == [1 + 2**-10, 1, -1 - 2**-9, 1 + 2**-10]


@needs_gxx
@pytest.mark.parametrize("name", ["plain", "into"])
def test_sizes_and_places_of_the_run(name: str) -> None:
    text = "def f(c: f16[m, n], a: f16[m, k], b: f16[k, n]):\n"
    function = pe.cd_from_source(f"{text}    {PRODUCTS[name][0]}\n")
    with installed(), settings.override(verify=False):
        for m, k, n in ((0, 9, 5), (17, 0, 3), (65, 33, 64)):
            rng = np.random.default_rng(m)
            a, b = (rng.integers(-4, 5, shape).astype("f2") for shape in ((m, k), (k, n)))
            held = [np.ones((m, n), "f2"), np.ones((m, n), "f2")]
            for backend_name, c in zip(("cuda", "cc"), held, strict=True):
                function.on(backend_name)(c, a, b)
            assert held[0].tobytes() == held[1].tobytes(), (m, k, n)


@needs_nvrtc
@pytest.mark.parametrize("architecture", TUNED)
def test_nothing_is_spilled(architecture: str, tmp_path: Path) -> None:
    plans = []
    for kind, n in (("f16", 4096), ("bf16", 2001), ("f16", 512), ("tf32", 4096), ("tf32", 2001)):
        for name in ("plain", "turned", "into"):
            held = [np.zeros((n, n), TYPES[kind]) for _ in range(3)]
            function = pe.cd_from_source(TEXTS[name].replace("def f", f"def f{len(plans)}"))
            with settings.override(verify=False, tf32=kind == "tf32"):
                known = replace(CpuDriver().properties(0), architecture=(8, 0))
                plans.append(translate(function.procedure(*held), known))
    built = needed().build(joined(plans), architecture, tmp_path)
    assert "warning" not in built.log
    assert len(built.figures) == sum(len(plan.text.kernels) for plan in plans)
    for name, figures in built.figures.items():
        assert figures.registers <= REGISTERS and figures.shared <= 48 * 1024, (name, str(figures))
        assert max(figures.spilled, figures.stack) <= SPILLED, (name, str(figures))
