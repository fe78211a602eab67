"""Every rule of complex numbers against differences, along two directions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plusequals.lowering.adjoint.complex_rules import HOLOMORPHIC, as_type, operand_cotangents
from plusequals.lowering.adjoint.rules import number
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.expressions import Apply, Cast, Const, Expr, Select
from plusequals.lowering.ir.ops import OPS
from plusequals.lowering.ir.scalars import conversion_function, scalar_function

POINT = (0.3 + 0.8j, 1.2 - 0.5j, -0.7 + 0.4j)
REAL = ("abs", "angle", "imag", "real")


def value_of(expr: Expr) -> Any:
    """Return the value of an expression of constants."""
    match expr:
        case Const(value, dtype):
            return dtype.numpy.type(value)
        case Select(test, yes, no):
            return value_of(yes if value_of(test) else no)
        case Cast(value, dtype):
            return conversion_function(value.dtype, dtype)(value_of(value))
        case Apply(op, args):
            return scalar_function(op, args[0].dtype)(*map(value_of, args))
    raise AssertionError(expr)


def applied(name: str, values: tuple[complex, ...]) -> Apply:
    result = dtypes.float64 if name in REAL else dtypes.complex128
    return Apply(OPS[name], tuple(Const(v, dtypes.complex128) for v in values), result)


@pytest.mark.parametrize("name", sorted({*HOLOMORPHIC, *REAL, "conj"}))
def test_cotangents_are_those_of_differences(name: str) -> None:
    point = POINT[: OPS[name].arity]
    given = 0.6 if name in REAL else 0.6 - 0.9j
    expr = applied(name, point)
    found = operand_cotangents(expr, Const(given, expr.dtype))
    assert found is not None
    for at, cotangent in enumerate(found):
        assert cotangent is not None and cotangent.dtype == dtypes.complex128
        for move in (1e-6, 1e-6j):
            ends = []
            for step in (move, -move):
                moved = tuple(v + step if n == at else v for n, v in enumerate(point))
                ends.append(complex(value_of(applied(name, moved))))
            expected = (np.conj(given) * (ends[0] - ends[1]) / 2).real
            assert (np.conj(value_of(cotangent)) * move).real == pytest.approx(expected, rel=1e-6)


def test_an_operand_of_another_type_gets_its_part() -> None:
    z = Const(2 + 3j, dtypes.complex128)
    assert value_of(as_type(z, dtypes.float64)) == 2.0
    assert as_type(number(1.0, dtypes.float32), dtypes.complex128).dtype == dtypes.complex128
    assert as_type(z, dtypes.complex128) is z


def test_other_operations_have_no_rule() -> None:
    expr = applied("sign", POINT[:1])
    assert operand_cotangents(expr, expr) is None
