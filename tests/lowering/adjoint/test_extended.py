"""Procedures in extended precision give more digits than float64 has, of the same numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.lowering.ir import dtypes, evaluate
from plusequals.lowering.ir.scalars import scalar_function

from .extended import IS_WIDER, Extended
from .programs import EXTREMES, JUMPS, SORTS, WHILES, function_of, values_of

PROGRAMS = {**EXTREMES, **JUMPS, **WHILES, **SORTS}
needs_more = pytest.mark.skipif(not IS_WIDER, reason="the long double of this machine is a double")


def extended(f: Any, *values: object) -> np.longdouble:
    """Return the number that a function returns in extended precision."""
    match = f.matched(*values)[0]
    return Extended(match.specialization.typed.procedure).run(match.held)[0][()]


@pytest.mark.parametrize("name", list(PROGRAMS)[::4])
def test_programs_give_the_same_numbers(name: str) -> None:
    f = function_of(PROGRAMS[name], "numpy")
    value = extended(f, *values_of(3))
    assert float(value) == pytest.approx(f(*values_of(3)), rel=1e-13)


@needs_more
@pytest.mark.parametrize(
    "text",
    ["x / 3.0 * 3.0", "np.sqrt(x) ** 2", "x ** 1.5 / np.sqrt(x)", "np.exp(np.log(x))",
     "np.abs(x * (3.0 + 4.0j)) / 5.0", "(fma(x, x, 1.0) - 1.0) / x",
     "np.sum(np.sort(np.array([x, 0.1]))) - 0.1"],
)  # fmt: skip
def test_rounding_errors_are_those_of_a_wider_type(text: str) -> None:
    f = pe.cd_from_source(f"def f(x):\n    return {text} - x\n", {"np": np}, backend="numpy")
    assert abs(extended(f, 0.7)) < 1e-18


@needs_more
def test_error_functions_have_more_digits() -> None:
    f = pe.cd_from_source("def f(x):\n    return erf(x) + erfc(x) - 1.0\n", backend="numpy")
    assert abs(extended(f, 0.8)) < 1e-18
    g = pe.cd_from_source("def f(x):\n    return erf(x)\n", backend="numpy")
    for x in (-8.0, -2.0, 0.0, 0.3, 3.0, 6.5):
        assert float(extended(g, x)) == pytest.approx(math.erf(x), rel=1e-15)


def test_what_is_interpreted_afterwards_is_as_before() -> None:
    test_programs_give_the_same_numbers("a sort")
    assert dtypes.float64.numpy == np.dtype("float64")
    assert vars(evaluate)["scalar_function"] is scalar_function
