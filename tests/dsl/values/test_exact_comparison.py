"""A Python int and a Python float are compared by value, whatever their size."""

from __future__ import annotations

import math

import numpy as np
import pytest

from plusequals.lowering.ir.expressions import Select, walk
from plusequals.lowering.ir.walk import expressions_of, statements
from tests.language.ask import compiled, plain

from ..elaborate.scenes import typed

ODD = 2**53 + 1
INTS = (
    0,
    1,
    -1,
    ODD,
    -ODD,
    ODD - 1,
    ODD - 2,
    2**63 - 1,
    -(2**63),
    2**63 - 512,
    2**63 - 513,
    1 << 62,
)
FLOATS = (
    0.0, -0.0, 0.5, -0.5, 1.0, -1.5, 2.0**53, 2.0**53 + 2, -(2.0**53), 2.0**63, -(2.0**63), 2.0**64,
    math.inf, -math.inf, math.nan, 2.0**62, math.nextafter(2.0**63, 0), 5e-324, -1.7e308,
)  # fmt: skip
BOTH = "n == v, n != v, n < v, n <= v, n > v, n >= v, v == n, v != n, v < n, v <= n, v > n, v >= n"


def test_run_time_numbers_are_compared_exactly(backend: str) -> None:
    f = compiled("n, v", f"return {BOTH}, n in (v,), (n,) <= (v,)").on(backend)
    for n in INTS:
        for value in FLOATS:
            expected = plain("n, v", f"return {BOTH}, n in (v,), (n,) <= (v,)", n, value)
            assert f(n, value) == expected, (n, value)


@pytest.mark.parametrize("value", [2.0**53, -(2.0**53) - 2, 2.0**63, -(2.0**63), 2.0**70, math.inf])
def test_a_constant_float_is_compared_exactly(value: float) -> None:
    f = compiled("n", f"return {BOTH}", v=value)
    for n in INTS:
        assert f(n) == plain("n", f"return {BOTH}", n, v=value), n


@pytest.mark.parametrize("number", [ODD, -ODD, 2**53, 2**63 - 1, -(2**63), 2**62 + 1])
def test_a_constant_int_is_compared_exactly(number: int) -> None:
    f = compiled("v", f"return {BOTH}", n=number)
    for value in FLOATS:
        assert f(value) == plain("v", f"return {BOTH}", value, n=number), value


@pytest.mark.parametrize(
    "body",
    [
        "return n == 1.5, n < 100.0, n != 2.0**52", "return f > 3, f <= -7, f == 0",
        "s = 0\nfor k in range(len(x)):\n    s += 1 if 2 * k - 1 < f else 0\nreturn s",
        "x[i] = 1.0 if i < f else 0.0\nreturn x", "return x < n, x[0] == n, x[0] == f",
    ],
)  # fmt: skip
def test_what_is_right_in_double_is_compared_in_double(body: str) -> None:
    f = compiled("x, n, f", body)
    for n in range(3, 6):
        f(np.ones(n), n, 1.5)
    procedure = typed("x, n, f", body, np.ones(4), 3, 1.5).procedure
    exprs = [expr for one in statements(procedure.body) for expr in expressions_of(one)]
    selects = [part for expr in exprs for part in walk(expr) if isinstance(part, Select)]
    assert not any(isinstance(part.yes, Select) for part in selects)
