"""Every rule of the table against differences, at points where the function is smooth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import NOWHERE
from plusequals.lowering.adjoint.rules import NotDifferentiable, apply, number, partials
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.expressions import Apply, Cast, Const, Expr, Select
from plusequals.lowering.ir.ops import OPS, Op
from plusequals.lowering.ir.scalars import scalar_function

POINTS = {1: ((0.3,), (0.7,), (-0.4,), (1.7,)), 2: ((0.3, 0.8), (2.4, -1.25), (1.5, 0.8)),
          3: ((0.3, 0.8, 1.5),)}  # fmt: skip
WITH_RULES = [op for op in OPS.values() if op.derivative and "f" in op.admits]


def value_of(expr: Expr) -> Any:
    """Return the value of an expression of constants."""
    match expr:
        case Const(value):
            return value
        case Select(test, yes, no):
            return value_of(yes if value_of(test) else no)
        case Cast(value, _):
            return value_of(value)
        case Apply(op, args):
            function = scalar_function(op, args[0].dtype)
            kinds = [np.bool_ if arg.dtype.kind == "b" else np.float64 for arg in args]
            values = [kind(value_of(arg)) for kind, arg in zip(kinds, args)]
            return function(*values)
    raise AssertionError(expr)


def applied(name: str, values: tuple[float, ...]) -> Apply:
    return Apply(OPS[name], tuple(number(v, dtypes.float64) for v in values), dtypes.float64)


@pytest.mark.parametrize("op", WITH_RULES, ids=lambda op: op.name)
def test_partial_derivatives_are_those_of_differences(op: Op) -> None:
    name, arity = op.name, op.arity
    checked = 0
    for point in POINTS[arity]:
        with np.errstate(all="ignore"):
            if name in ("whole_pow", "half_pow"):
                point = (abs(point[0]), 10.0 if name == "whole_pow" else 1.5)
            found = partials(applied(name, point))
            assert found is not None and len(found) == arity
            for at, derivative in enumerate(found):
                ends = [
                    value_of(applied(name, (*point[:at], point[at] + step, *point[at + 1 :])))
                    for step in (1e-6, -1e-6)
                ]
                expected = (ends[0] - ends[1]) / 2e-6
                is_constant = at == 1 and name in ("pow", "whole_pow", "half_pow")
                if not np.isfinite(expected) or is_constant:
                    continue
                one = 0.0 if derivative is None else value_of(derivative)
                assert one == pytest.approx(expected, rel=1e-5, abs=1e-6), (point, at)
                checked += 1
    assert checked


def test_products_and_signs_are_folded() -> None:
    x, one = applied("exp", (0.5,)), number(1.0, dtypes.float64)
    assert apply("mul", x, one) == apply("mul", one, x) == apply("div", x, one) == x
    assert apply("neg", apply("neg", x)) == x
    assert apply("mul", x, apply("div", one, x)) == apply("div", x, x)
    test = apply("gt", x, one)
    chosen = apply("mul", x, Select(test, one, number(0.0, dtypes.float64)))
    assert chosen == Select(test, x, number(0.0, dtypes.float64))


def test_a_refusal_knows_why_and_where() -> None:
    why = NotDifferentiable("a sort", NOWHERE)
    assert (why.reason, why.span) == ("a sort", NOWHERE)


@pytest.mark.parametrize("name", ["fmax", "fmin"])
def test_the_operand_beside_a_nan_has_the_derivative(name: str) -> None:
    f = pe.cd_from_source(f"def f(x, y):\n    return np.sum(np.{name}(x, y))\n", {"np": np})
    x, y = np.array([1.0, np.nan, 1.0]), np.array([np.nan, 1.0, 1.0])
    with pe.override("numpy"):
        d_x, d_y = pe.gradient(f, wrt=("x", "y"))(x, y)
    assert d_x.tolist() == [1.0, 0.0, 1.0]
    assert d_y.tolist() == [0.0, 1.0, 0.0]


def test_signs_and_steps_have_derivatives() -> None:
    text = "def f(x, y):\n    return np.sum(np.copysign(x, y) + 10 * np.heaviside(x, y))\n"
    f = pe.cd_from_source(text, {"np": np})
    x, y = np.array([2.0, -2.0, 2.0, 0.0]), np.array([1.0, -1.0, -1.0, 3.0])
    with pe.override("numpy"):
        d_x, d_y = pe.gradient(f, wrt=("x", "y"))(x, y)
    assert d_x.tolist() == [1.0, 1.0, -1.0, 0.0]
    assert d_y.tolist() == [0.0, 0.0, 0.0, 10.0]


def test_roundings_to_digits_are_constant_piece_by_piece() -> None:
    x = np.array([1.26, 3.46])
    f = pe.cd_from_source("def f(x):\n    return np.sum(x * np.round(x, 1))\n", {"np": np})
    assert pe.gradient(f, wrt="x")(x).tolist() == [1.3, 3.5]
    f = pe.cd_from_source("def f(x):\n    return x[0] * round(float(x[1]), 1)\n")
    assert pe.gradient(f, wrt="x")(x).tolist() == [3.5, 0.0]


@pytest.mark.parametrize(
    ("name", "at", "derivative"),
    [
        ("arcsinh", 1e180, 1e-180),
        ("arccosh", 1e180, 1e-180),
        ("arccosh", 1.0 + 2.0**-40, 2.0**19.5 / (1.0 + 2.0**-41) ** 0.5),
        ("arcsin", 1.0 - 2.0**-40, 2.0**19.5 / (1.0 - 2.0**-41) ** 0.5),
        ("arctanh", 1.0 - 2.0**-40, 2.0**39 / (1.0 - 2.0**-41)),
    ],
)
def test_derivatives_keep_their_digits_near_one_and_far_out(
    name: str, at: float, derivative: float
) -> None:
    f = pe.cd_from_source(f"def f(x):\n    return np.{name}(x)\n", {"np": np})
    found = pe.gradient(f, wrt="x")(at)
    assert abs(found / derivative - 1) < 1e-14
