"""Guarded accumulators as selects: the results of branches, in SIMD lanes where columns are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plusequals.base import settings
from plusequals.lowering.cpu.arg_selects import select_guarded
from plusequals.lowering.cpu.outer_vectorize import vectorize_outer
from plusequals.lowering.ir.loops import If, Program, Update
from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.lower import lower
from plusequals.lowering.pipeline import optimize
from plusequals.lowering.target import Target

from ...compare import run_on
from ..scheduled import MODEST, function, interpreted, of_any_size
from ..shown import lowered

STRICT = Target(schedule=True)
ARGMAX = "def f(x):\n    y = np.argmax(x, axis=0)\n    return y\n"
ARGMIN = "def f(x):\n    y = np.argmin(x, axis=-2, keepdims=True)\n    return y\n"
SEARCH = """
def f(x, best, place):
    for j in range(x.shape[1]):
        b = x[0, j]
        p = 0
        for i in range(1, x.shape[0]):
            if x[i, j] >= b:
                b = x[i, j]
                p = i
        best[j] = b
        place[j] = p
"""
FOUND = """
def f(x):
    place = np.zeros(x.shape[1], np.int64)
    for j in range(x.shape[1]):
        b = -1.5
        for i in range(x.shape[0]):
            if x[i, j] > b:
                b = x[i, j]
                place[j] = i
    return place
"""
PAIRS = """
def f(x, best, place):
    for j in range(x.shape[1]):
        b = x[0, j]
        c = x[0, j]
        p = -1
        for i in range(x.shape[0]):
            u = x[i, j] * 2
            if u > b:
                c = b
                b = u
                p = i
            elif u < c:
                c = u
        best[j] = b - c
        place[j] = p
"""
WINDOWS = """
def f(x, y):
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            y[i, j] = np.argmax(x[i:i+3, j:j+3])
"""
DTYPES = ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u1", "u2", "u4", "u8", "?")


def before(procedure: Any, target: Target) -> Program:
    program, _ = optimize(lower(procedure), target, None, None, "simplify 3")
    return program


def selected(procedure: Any, target: Target) -> Program:
    """Return the loops with selects and lanes, and nothing after these."""
    program = select_guarded(before(procedure, target), target).program
    verify_program(program)
    program = vectorize_outer(program, target).program
    verify_program(program)
    return program


def is_selected(procedure: Any, target: Target = STRICT) -> bool:
    return bool(select_guarded(before(procedure, target), target).decisions)


def numbers(dtype: str, *shape: int) -> Any:
    """Return numbers of which many are equal, some the limits of their type or not finite."""
    rng, kind = np.random.default_rng(sum(shape)), np.dtype(dtype).kind
    if kind == "b":
        return rng.random(shape) > 0.6
    if kind in "iu":
        info = np.iinfo(dtype)
        values = rng.integers(max(info.min, -3), 4, shape).astype(dtype)
        values[rng.random(shape) < 0.1] = info.min
        values[rng.random(shape) < 0.03] = info.max
        return values
    values, special = rng.integers(-3, 4, shape).astype(dtype), rng.random(shape)
    values[special < 0.13] = np.inf
    values[special < 0.1] = -np.inf
    values[special < 0.06] = -0.0
    values[special < 0.03] = np.nan
    return values


def arguments(text: str, dtype: str, rows: int, columns: int) -> tuple[Any, ...]:
    x = numbers(dtype, rows, columns)
    if text in (ARGMAX, ARGMIN, FOUND):
        return (x,)
    if text is WINDOWS:
        return numbers(dtype, rows + 2, columns + 2), np.zeros((rows, columns), np.int64)
    return x, np.zeros(columns, dtype), np.zeros(columns, np.int64)


@pytest.mark.parametrize("text", [ARGMAX, ARGMIN, SEARCH, PAIRS, WINDOWS])
@pytest.mark.parametrize("target", [MODEST, STRICT], ids=["default", "strict"])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "u1"])
def test_not_a_bit_changes(text: str, target: Target, dtype: str) -> None:
    made = function(text)
    for rows, columns in ((1, 33), (2, 64), (9, 97), (5, 3)):
        given = arguments(text, dtype, rows, columns)
        procedure = made.procedure(*given)
        new = selected(procedure, target)
        if columns > 32 and rows > 4:
            inside = [s for k in new.kernels for s in statements(k.body)]
            assert not any(isinstance(s, If) or (isinstance(s, Update) and s.pair) for s in inside)
        for got, want in zip(
            interpreted(new, *given), interpreted(before(procedure, target), *given)
        ):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("text", [ARGMAX, FOUND])
def test_dynamic_sizes_have_selects_too(text: str) -> None:
    procedure = of_any_size(function(text), *arguments(text, "f8", 7, 40))
    new = selected(procedure, STRICT)
    assert is_selected(procedure)
    for rows, columns in ((1, 1), (3, 31), (9, 70)):
        given = arguments(text, "f8", rows, columns)
        for got, want in zip(
            interpreted(new, *given), interpreted(before(procedure, STRICT), *given)
        ):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_positions_are_those_of_numpy(name: str, dtype: str) -> None:
    made = function(f"def f(x):\n    y = np.{name}(x, axis=0)\n    return y\n")
    middle = function(f"def f(x):\n    y = np.{name}(x, axis=1, keepdims=True)\n    return y\n")
    for way in ({"threads": 1}, {"threads": 2, "parallel_from": 0, "profile": "strict"}):
        with settings.override(**way):  # type: ignore[arg-type]
            x = numbers(dtype, 37, 83)
            for given in (x, x[::-1, ::-1], np.asfortranarray(x)):
                want = getattr(np, name)(given, axis=0)
                np.testing.assert_array_equal(run_on("cc", made, given), want)
            x = numbers(dtype, 3, 9, 70)
            want = getattr(np, name)(x, axis=1, keepdims=True)
            np.testing.assert_array_equal(run_on("cc", middle, x), want)


@pytest.mark.parametrize("text", [SEARCH, PAIRS, WINDOWS])
def test_code_gives_what_the_interpreter_gives(text: str) -> None:
    for dtype in ("f8", "f4", "i2"):
        want = arguments(text, dtype, 11, 150)
        run_on("numpy", function(text), *want)
        for way in ({"threads": 1}, {"threads": 2, "parallel_from": 0}):
            given = arguments(text, dtype, 11, 150)
            with settings.override(**way):  # type: ignore[arg-type]
                run_on("cc", function(text), *given)
            for got, expected in zip(given, want):
                np.testing.assert_array_equal(got, expected)


def test_an_empty_axis_is_an_error_and_no_columns_are_none() -> None:
    made = function(ARGMAX)
    with pytest.raises(ValueError):
        made(np.zeros((0, 40)))
    assert made(np.zeros((40, 0))).shape == (0,)


def test_of_nothing_but_nan_and_the_worst_value_the_first_is_taken() -> None:
    for value in (-np.inf, np.nan):
        x = np.full((5, 70), value)
        assert not run_on("cc", function(ARGMAX), x).any()


def test_what_cannot_be_lanes_keeps_its_branches() -> None:
    rows = "def f(x):\n    y = np.argmax(x, axis=1)\n    return y\n"
    assert not is_selected(function(rows).procedure(np.zeros((40, 90))))
    carried = SEARCH.replace("b = x[0, j]", "b = best[max(j - 1, 0)]")
    assert not is_selected(function(carried).procedure(*arguments(carried, "f8", 9, 70)))
    leaving = SEARCH.replace("p = i\n", "p = i\n                break\n")
    assert not is_selected(function(leaving).procedure(*arguments(leaving, "f8", 9, 70)))


def test_a_guarded_read_that_may_be_out_of_bounds_is_not_executed_speculatively() -> None:
    text = SEARCH.replace("b = x[i, j]", "b = x[i + 1, j]")
    program = lowered(text.split(":\n", 1)[1], x="f64[9, 70]", best="f64[70]", place="i64[70]")
    assert not select_guarded(program, STRICT).decisions
