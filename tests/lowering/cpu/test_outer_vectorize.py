"""Rounds abreast: the same bits as one after the other, and only where that is a gain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from plusequals.base import settings
from plusequals.lowering.cpu.outer_vectorize import vectorize_outer
from plusequals.lowering.ir.loops import For, Program
from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.lower import lower
from plusequals.lowering.pipeline import optimize
from plusequals.lowering.target import Target

from ...compare import run_on
from ..scheduled import MODEST, function, interpreted, of_any_size, scheduled
from ..shown import lowered

SIZES = (0, 1, 7, 8, 9, 31, 32, 33, 97)
STRICT = Target(schedule=True)
COLUMNS = (
    "def f(x):\n    m[j] = mean(x[i, j])\n    v[j] = mean((x[i, j] - m[j]) ** 2)\n    return v\n"
)
PULLS = """
def f(p, q):
    r[i, j] = 0.5 + (p[j, 0] - p[i, 0]) ** 2 + (p[j, 1] - p[i, 1]) ** 2
    w[i, j] = q[j] / (r[i, j] * sqrt(r[i, j]))
    f[i, k] = sum(w[i, j] * (p[j, k] - p[i, k]))
    return f
"""
RUNNING = """
def f(y, x):
    for j in range(x.shape[1]):
        for t in range(1, x.shape[0]):
            y[t, j] = 0.5 * y[t - 1, j] + x[t, j]
"""
WINDOWS = "def f(x, w):\n    y[i] = sum(x[i + k] * w[k])\n    return y\n"
LARGEST = """
def f(x):
    m[j] = max(x[i, j])
    s[j] = sum(where(x[i, j] > 0, x[i, j], m[j]))
    return s
"""


def loops(program: Program) -> list[For]:
    found = [stmt for kernel in program.kernels for stmt in statements(kernel.body)]
    return [stmt for stmt in found if isinstance(stmt, For)]


def is_abreast(program: Program) -> bool:
    return any(loop.symbol.name == "lane" and loop.step == 1 for loop in loops(program))


def plain(procedure: Any, target: Target) -> Program:
    """Return the loops without lanes, with sums in the same order."""
    program, _ = optimize(lower(procedure), target, None, None, "eliminate_dead_code 2")
    return program


def alone(procedure: Any, target: Target) -> Program:
    """Return the loops with rounds abreast, of which tiles and strips took none before."""
    made = vectorize_outer(plain(procedure, target), target).program
    verify_program(made)
    return made


def numbers(*shape: int, dtype: Any = np.float32) -> Any:
    made = np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)
    if made.size > 4:
        made.flat[3], made.flat[4] = -0.0, np.nan
    return made


def arguments(text: str, size: int, dtype: Any = np.float32) -> tuple[Any, ...]:
    """Return what a function is called with, so many columns wide."""
    if text is PULLS:
        return numbers(size, 2, dtype=dtype), numbers(size, dtype=dtype)
    if text is WINDOWS:
        return numbers(size + 4, dtype=dtype), numbers(5, dtype=dtype)
    if text is RUNNING:
        return numbers(6, size, dtype=dtype), numbers(6, size, dtype=dtype)
    return (numbers(5, size, dtype=dtype),)


@pytest.mark.parametrize("text", [COLUMNS, PULLS, RUNNING, WINDOWS, LARGEST])
@pytest.mark.parametrize("target", [MODEST, STRICT], ids=["default", "strict"])
def test_not_a_bit_changes(text: str, target: Target) -> None:
    made = function(text)
    for size in SIZES:
        given = arguments(text, size)
        procedure = made.procedure(*given)
        new = alone(procedure, target)
        assert is_abreast(new) == (size >= 8)
        for got, want in zip(
            interpreted(new, *given), interpreted(plain(procedure, target), *given)
        ):
            np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32))


@pytest.mark.parametrize("text", [COLUMNS, WINDOWS])
def test_sizes_of_the_run_have_strips_too(text: str) -> None:
    procedure = of_any_size(function(text), *arguments(text, 5))
    new = alone(procedure, MODEST)
    assert is_abreast(new)
    for size in (0, 1, 8, 33, 41):
        given = arguments(text, size)
        for got, want in zip(
            interpreted(new, *given), interpreted(plain(procedure, MODEST), *given)
        ):
            np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("text", [COLUMNS, PULLS, RUNNING, WINDOWS, LARGEST])
def test_code_gives_the_bits_of_the_interpreter(text: str, dtype: Any) -> None:
    for size in (33, 150):
        results = []
        for way in ({"threads": 1}, {"threads": 3, "parallel_from": 0}):
            given = arguments(text, size, dtype)
            with settings.override(schedule=True, profile="strict", **way):
                out = run_on("cc", function(text), *given)
            results.append(given[0] if out is None else out)
        given = arguments(text, size, dtype)
        with settings.override(profile="strict"):
            want = run_on("numpy", function(text), *given)
        want = given[0] if want is None else want
        for got in results:
            np.testing.assert_array_equal(got, want)


def test_other_layouts_give_the_same() -> None:
    whole = numbers(14, 200)
    views = [whole[::2, :77], whole[:, ::-1], np.asfortranarray(whole[:9]), whole[:, ::2]]
    views += [np.broadcast_to(whole[0], (9, 200)), np.broadcast_to(whole[:, :1], (14, 90))]
    for view in views:
        with settings.override(schedule=True, profile="strict"):
            got = run_on("cc", function(COLUMNS), view)
        with settings.override(profile="strict"):
            want = run_on("numpy", function(COLUMNS), view)
        np.testing.assert_array_equal(got, want)


def test_strips_are_as_wide_as_memory_asks_for() -> None:
    text, small = COLUMNS, replace(MODEST, l2_bytes=1024)

    def widths(target: Target, rows: int, columns: int) -> list[int]:
        made = scheduled(function(text).procedure(np.ones((rows, columns), np.float32)), target)
        return [loop.step for loop in loops(made) if loop.step > 1]

    assert widths(MODEST, 5, 300) == [32, 8]
    assert widths(small, 5, 3000) == [1024, 32, 8]
    assert widths(replace(small, threads=8), 5, 3000)[0] == 256


@pytest.mark.parametrize(
    ("body", "arrays"),
    [
        ("y[i] = sum(x[i, j])", {"y": "f32[40]", "x": "f32[40, 40]"}),  # rows, which lie apart
        ("y[i, j] = 2 * x[j, i]", {"y": "f32[40, 40]", "x": "f32[40, 40]"}),
        ("y[i, j] = x[i, j] + 1", {"y": "f32[40, 40]", "x": "f32[40, 40]"}),  # vectors already
        ("y[j] = sum(x[k[i], j])", {"y": "f32[40]", "x": "f32[9, 40]", "k": "i64[9]"}),
        ("y[j] = sum(x[i, j] % 3)", {"y": "f32[40]", "x": "f32[9, 40]"}),
        ("y[j] = sum[i, i <= j](x[i, j])", {"y": "f32[40]", "x": "f32[40, 40]"}),
    ],
)
def test_other_loops_stay(body: str, arrays: dict[str, str]) -> None:
    before = lowered(body, **arrays)
    program, _ = optimize(before, STRICT)
    assert not is_abreast(program)


def test_rounds_that_need_each_other_stay() -> None:
    text = """
for t in range(1, 40):
    for k in range(5):
        y[t] += y[t - 1] * x[k]
"""
    program, _ = optimize(lowered(text, y="f32[40]", x="f32[5]"), STRICT)
    assert not is_abreast(program)
