"""Contractions by tiles of both sizes: what they compute, and what they take."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.cuda import backend as module
from plusequals.backends.cuda import executor
from plusequals.backends.cuda.backend import translate
from plusequals.base import settings
from plusequals.lowering import thresholds

from .batch import compiled
from .on_cpu import CpuDriver, needs_gxx
from .test_nests import SPILLED, TUNED, joined
from .test_nvrtc import needed, needs_nvrtc

Array = np.ndarray[Any, Any]
PRODUCTS = {
    "plain": ("c[i, j] = sum[k](a[i, k] * b[k, j])", (130, 9), (9, 257)),
    "turned": ("c[i, j] = sum[k](a[k, i] * b[j, k])", (20, 128), (128, 20)),
    "behind": ("c[i, j] = relu(sum[k](a[i, k] * b[j, k]) - i) * 2", (150, 33), (131, 33)),
    "window": ("c[i, j] = sum[p, k](a[i + p, k] * b[p, k, j])", (140, 8), (3, 8, 129)),
}
TEXTS = {name: f"def f(c, a, b):\n    {text}\n" for name, (text, _, _) in PRODUCTS.items()}


@pytest.fixture(autouse=True)
def without_tensor_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no device have tensor cores: `test_tensors` is about these."""
    monkeypatch.setattr(module, "TENSOR_CAPABILITY", (99, 0))


def arguments(name: str, dtype: str) -> list[Array]:
    rng = np.random.default_rng(1)
    _, first, second = PRODUCTS[name]
    shapes = {"plain": (130, 257), "turned": (128, 128), "behind": (150, 131), "window": (138, 129)}
    return [rng.standard_normal(x).astype(dtype) for x in (shapes[name], first, second)]


@needs_gxx
@pytest.mark.parametrize("profile", ["default", "strict"])
@pytest.mark.parametrize("dtype", ["f4", "f2"])
def test_wide_tiles_compute_what_narrow_ones_do(
    dtype: str, profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = CpuDriver(seed=7)
    found: list[list[bytes]] = []
    for least in (1, 1 << 60):
        monkeypatch.setattr(thresholds, "MIN_LARGE_TILE_ELEMENTS", least)
        given = [arguments(name, dtype) for name in PRODUCTS]
        made = [
            pe.cd_from_source(TEXTS[name]).procedure(*args)
            for name, args in zip(PRODUCTS, given, strict=True)
        ]
        made = [replace(one, name=f"f_{at}") for at, one in enumerate(made)]
        with settings.override(profile=profile, verify=False):
            codes = compiled(made, driver)
        side = thresholds.TILE_SIDE * (2 if least == 1 else 1)
        for code in codes:
            assert f"_tile[{thresholds.TILE_DEPTH * (side + 4)}]" in code.text
        for code, args in zip(codes, given, strict=True):
            code.run(args)
        found.append([args[0].tobytes() for args in given])
        if dtype != "f4":
            continue
        for name, (c, a, b) in zip(PRODUCTS, given, strict=True):
            if name == "plain":
                np.testing.assert_allclose(c, a @ b, 1e-4, 1e-5)
    assert found[0] == found[1], "each element is summed in the order of its terms"


ATTENTION = """
def f(y, q, k, v):
    s[b, h, i, j] = sum[d](q[b, h, i, d] * k[b, h, j, d])
    m[b, h, i] = max(s[b, h, i, j])
    p[b, h, i, j] = exp(s[b, h, i, j] - m[b, h, i])
    y[b, h, i, d] = sum(p[b, h, i, j] * v[b, h, j, d]) / sum(p[b, h, i, j])
"""


@needs_gxx
@pytest.mark.parametrize("rows", [20, 66])
def test_attention_is_products_by_tiles_where_there_is_work_for_them(rows: int) -> None:
    rng = np.random.default_rng(rows)
    shape = (2, 2, rows, 9)
    given = [np.zeros(shape), *(rng.standard_normal(shape) for _ in range(3))]
    (code,) = compiled([pe.cd_from_source(ATTENTION).procedure(*given)], CpuDriver(seed=4))
    assert (code.text.count("first_tile[") > 0) == (rows == 66)
    code.run(given)
    y, q, k, v = given
    p = np.exp(q @ k.swapaxes(2, 3))
    np.testing.assert_allclose(y, p @ v / p.sum(3, keepdims=True), 1e-10, 1e-12)


SOFTMAX = """
def f(y, q, k, v, scale):
    s = scale * (q @ k.transpose(0, 1, 3, 2))
    e = np.exp(s - s.max(axis=3, keepdims=True))
    y[:] = (e / e.sum(axis=3, keepdims=True)) @ v
"""
WEIGHTED = """
def f(y, s, v):
    e = np.exp(s - s.max(axis=1, keepdims=True))
    y[:] = (e / e.sum(axis=1, keepdims=True)) @ v
"""


def attending(text: str, dtype: str, *sizes: int) -> tuple[Any, list[Any]]:
    """Return the assignments of a text for batches, heads, queries, keys, width; and arguments."""
    rng, (b, h, n, t, d) = np.random.default_rng(1), sizes
    shapes = (b, h, n, d), (b, h, n, d), (b, h, t, d), (b, h, t, d)
    given: list[Any] = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    given += [np.dtype(dtype).type(0.25)] * ("scale" in text)
    return pe.cd_from_source(text, {"np": np}).procedure(*given), given


@needs_gxx
@pytest.mark.parametrize("profile", ["default", "strict"])
@pytest.mark.parametrize("text", [ATTENTION, SOFTMAX])
def test_weights_of_attention_are_computed_where_tiles_are_filled(
    text: str, profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    procedure, given = attending(text, "f4", 1, 2, 66, 67, 65)
    with settings.override(profile=profile):
        (code,) = compiled([procedure], CpuDriver(seed=3))
    kernels = re.split("__global__", str(code.text))
    assert ["exp_f32" in one for one in kernels if "first_tile[" in one] == [False, True]
    code.run(given)
    y, q, k, v, scale = (np.float64(one) for one in [*given, 1.0][:5])
    p = np.exp(scale * (q @ k.swapaxes(2, 3)))
    np.testing.assert_allclose(y, p @ v / p.sum(3, keepdims=True), 1e-4, 1e-5)
    before = given[0].tobytes()
    monkeypatch.setattr(executor, "MOST_BLOCKS", (2, 1, 1))
    code.run(given)
    assert given[0].tobytes() == before, "a block does several tiles of a grid that is too large"


@needs_nvrtc
@pytest.mark.parametrize("architecture", TUNED)
def test_nothing_of_computed_factors_is_spilled(architecture: str, tmp_path: Path) -> None:
    made = []
    for n, (rows, terms, columns) in enumerate(
        ((16384, 96, 64), (29129, 97, 72), (16384, 96, 128))
    ):
        function = pe.cd_from_source(WEIGHTED.replace("def f(", f"def f{n}("), {"np": np})
        arrays = (np.zeros(s, "f4") for s in ((rows, columns), (rows, terms), (terms, columns)))
        with settings.override(verify=False):
            made.append(translate(function.procedure(*arrays), CpuDriver().properties(0)))
        assert len(made[-1].text.kernels) == 2
    built = needed().build(joined(made), architecture, tmp_path)
    assert "warning" not in built.log
    for name, figures in built.figures.items():
        assert figures.registers <= 128, name
        assert max(figures.spilled, figures.stack) <= SPILLED, (name, str(figures))


@needs_gxx
@pytest.mark.parametrize("profile", ["default", "strict"])
def test_many_terms_are_added_in_parts_where_their_order_is_open(profile: str) -> None:
    rng = np.random.default_rng(8)
    a, b = (rng.integers(-9, 10, shape) / 4 for shape in ((20, 512), (512, 18)))
    given = [np.zeros((20, 18), "f4"), a.astype("f4"), b.astype("f4")]
    with settings.override(profile=profile):
        (code,) = compiled([pe.cd_from_source(TEXTS["plain"]).procedure(*given)], CpuDriver(seed=2))
    assert ("_parts[" in code.text) == (profile == "default")
    code.run(given)
    assert np.array_equal(given[0], a @ b)


WHOLE = {
    "into": "def f(c, a, b):\n    c[i, j] += a[i, k] * b[k, j]\n",
    "sum": "def f(c, a, b):\n    c[i, j] = sum[k](a[i, k] * b[k, j])\n",
    "matmul": "def f(c, a, b):\n    c[:] = a @ b\n",
    "less": "def f(c, a, b):\n    c[i, j] -= a[i, k] * b[k, j]\n",
}


@needs_gxx
@pytest.mark.parametrize("dtype", ["i4", "i8", "u4", "i2", "u1"])
def test_whole_numbers_wrap_and_keep_every_bit(dtype: str) -> None:
    rng = np.random.default_rng(5)
    info, names = np.iinfo(dtype), ["into", "sum", "matmul"]
    a, b, c = (
        rng.integers(info.min, info.max, size, dtype=dtype, endpoint=True)
        for size in ((70, 37), (37, 65), (70, 65))
    )
    kinds = dict.fromkeys(names, dtype)
    kinds["sum"] = {"i": "i8", "u": "u8"}[dtype[0]]
    given = [[c.astype(kinds[name]), a.copy(), b.copy()] for name in names]
    made = [pe.cd_from_source(WHOLE[name].replace("def f", f"def {name}")).procedure(*args)
            for name, args in zip(names, given, strict=True)]  # fmt: skip
    codes = compiled(made, CpuDriver(seed=9))
    assert all("first_tile" in code.text for code in codes)
    with np.errstate(over="ignore"):
        products = a[:, :, None] * b[None, :, :]
        want = [(c + products.sum(1, dtype=dtype)).astype(dtype),
                products.sum(1, dtype=kinds["sum"]), a @ b]  # fmt: skip
    for code, args, one in zip(codes, given, want, strict=True):
        code.run(args)
        assert np.array_equal(args[0], one), code.name


@needs_gxx
@pytest.mark.parametrize("profile", ["default", "strict"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "c8"])
def test_sums_that_start_from_an_array(dtype: str, profile: str) -> None:
    rng = np.random.default_rng(6)
    a, b, c = (rng.integers(-4, 5, n).astype(dtype) for n in ((66, 33), (33, 65), (66, 65)))
    function, given = pe.cd_from_source(WHOLE["into"]), [c.copy(), a, b]
    with settings.override(profile=profile):
        (code,) = compiled([function.procedure(*given)], CpuDriver(seed=3))
        code.run(given)
    assert "first_tile" in code.text
    assert np.array_equal(given[0], c + a @ b), "whole numbers are exact in any order"


@needs_gxx
@pytest.mark.parametrize("shape", [(300, 20), (17, 129)])
@pytest.mark.parametrize("profile", ["default", "strict"])
def test_tiles_of_one_long_side_compute_what_square_ones_do(
    profile: str, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    rows, columns = shape
    driver = CpuDriver(seed=5)
    found = []
    for enough in (1, 1 << 60):
        monkeypatch.setattr(thresholds, "MIN_OCCUPYING_TILES", enough)
        a, b = (rng.integers(-9, 9, s) / 8 for s in ((rows, 37), (37, columns)))
        given = [np.zeros(shape, "f4"), a.astype("f4"), b.astype("f4")]
        with settings.override(profile=profile, verify=False):
            (code,) = compiled([pe.cd_from_source(TEXTS["plain"]).procedure(*given)], driver)
        sides = [64 if enough > 1 or size <= 64 else 128 for size in shape]
        for name, side in zip(("first", "second"), sides, strict=True):
            assert f"{name}_tile[{16 * (side + 4)}]" in code.text
        code.run(given)
        found.append(given[0].tobytes() == (a @ b).astype("f4").tobytes())
    assert found == [True, True]


def test_one_long_side_is_enough_where_there_are_many_tiles() -> None:
    def sides(m: int, n: int, dtype: str = "f4") -> list[bool]:
        arrays = [np.zeros(s, dtype) for s in ((m, n), (m, 64), (64, n))]
        with settings.override(verify=False):
            procedure = pe.cd_from_source(TEXTS["plain"]).procedure(*arrays)
            text = translate(procedure, CpuDriver().properties(0)).text.text
        return [f"{name}_tile[{16 * 132}]" in text for name in ("first", "second")]

    assert sides(128 * 128, 64) == sides(128 * 127 + 1, 8) == [True, False]
    assert sides(50, 128 * 128) == [False, True]
    assert sides(128 * 127, 64) == sides(128 * 128, 64, "f8") == [False, False]
    assert sides(64, 64) == [False, False]


def plan_of(name: str, dtype: str, n: int) -> Any:
    function = pe.cd_from_source(TEXTS[name])
    arrays = [np.zeros((n, n), dtype) for _ in range(3)]
    with settings.override(verify=False):
        return translate(function.procedure(*arrays), CpuDriver().properties(0))


def test_wide_tiles_are_for_what_is_large() -> None:
    def is_wide(dtype: str, n: int) -> bool:
        return f"_tile[{16 * (128 + 4)}]" in plan_of("plain", dtype, n).text.text

    assert is_wide("f4", 2048) and is_wide("f2", 1449)
    assert is_wide("f4", 1440), "in two parts"
    assert not is_wide("f4", 704) and not is_wide("f8", 2048)


@needs_nvrtc
@pytest.mark.parametrize("architecture", TUNED)
def test_nothing_of_wide_tiles_is_spilled(architecture: str, tmp_path: Path) -> None:
    made = []
    for dtype, n in (("f4", 4096), ("f4", 2001), ("f2", 2048), ("f2", 2001), ("f4", 512)):
        for name in ("plain", "turned"):
            with settings.override(verify=False):
                function = pe.cd_from_source(TEXTS[name].replace("def f", f"def f{len(made)}"))
                arrays = [np.zeros((n, n), dtype) for _ in range(3)]
                made.append(translate(function.procedure(*arrays), CpuDriver().properties(0)))
    for m, n in ((40_000, 64), (50, 30_001)):
        arrays = [np.zeros(s, "f4") for s in ((m, n), (m, 99), (99, n))]
        function = pe.cd_from_source(TEXTS["plain"].replace("def f", f"def f{len(made)}"))
        with settings.override(verify=False):
            made.append(translate(function.procedure(*arrays), CpuDriver().properties(0)))
    for dtype, n in (("f4", 4096), ("f4", 2001), ("i4", 2001), ("i8", 700), ("f8", 700)):
        for name in ("into", "sum"):
            arrays = [np.zeros((n, n), "i8" if name == "sum" and dtype == "i4" else dtype)]
            arrays += [np.zeros((n, n), dtype) for _ in range(2)]
            function = pe.cd_from_source(WHOLE[name].replace("def f", f"def f{len(made)}"))
            with settings.override(verify=False):
                made.append(translate(function.procedure(*arrays), CpuDriver().properties(0)))
    built = needed().build(joined(made), architecture, tmp_path)
    assert "warning" not in built.log
    assert len(built.figures) == sum(len(plan.text.kernels) for plan in made)
    for name, figures in built.figures.items():
        assert figures.registers <= 128, (name, str(figures))
        assert max(figures.spilled, figures.stack) <= SPILLED, (name, str(figures))


ODD = (
    (65, 30, 77), (129, 16, 130), (1, 30, 77), (67, 33, 129), (33, 17, 31), (200, 100, 45),
    (1023, 511, 1025), (2048, 700, 60), (31, 5000, 33), (128, 32, 128), (97, 48, 101),
)  # fmt: skip


@needs_nvrtc
@pytest.mark.parametrize("architecture", TUNED)
@pytest.mark.parametrize("dtype", ["f4", "i4"])
def test_nothing_of_odd_sizes_is_spilled(architecture: str, dtype: str, tmp_path: Path) -> None:
    plans = []
    for number, (m, k, n) in enumerate(ODD):
        function = pe.cd_from_source(f"def f{number}(y, x, w, b):\n    y[:] = x @ w + b\n")
        arrays = (np.zeros(shape, dtype) for shape in ((m, n), (m, k), (k, n), (n,)))
        with settings.override(verify=False):
            plans.append(translate(function.procedure(*arrays), CpuDriver().properties(0)))
    built = needed().build(joined(plans), architecture, tmp_path)
    assert "warning" not in built.log
    for name, figures in built.figures.items():
        assert figures.spilled == figures.stack == 0, name
