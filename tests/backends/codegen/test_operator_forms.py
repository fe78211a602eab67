"""What is spelled in another way than its name says."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.codegen.operator_forms import (
    intermediate_type,
    is_int,
    is_power_of_two,
    is_zero_product,
    subtracted_from_zero,
    widen_operation,
)
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.expressions import Apply, Cast, Const, Position, Read, Select
from plusequals.lowering.ir.indexing import Symbol, const, var
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.ops import OPS

X = Read(Node(0, "x", (), dtypes.float32), ())
H = Read(Node(1, "h", (), dtypes.float16), ())


@pytest.mark.parametrize(("by", "is_one"), [(1, False), (2, True), (6, False), (64, True)])
def test_powers_of_two(by: int, is_one: bool) -> None:
    args = Position(var(Symbol("i", 0))), Const(by, dtypes.int64)
    assert is_power_of_two(Apply(OPS["floordiv"], args, dtypes.int64)) is is_one
    assert not is_power_of_two(Apply(OPS["mul"], args, dtypes.int64))


def test_what_is_taken_from_zero() -> None:
    square = Apply(OPS["mul"], (X, X), dtypes.float32)
    for zero, found in ((0.0, square), (-0.0, None), (1.0, None)):
        made = Apply(OPS["sub"], (Const(zero, dtypes.float32), square), dtypes.float32)
        assert subtracted_from_zero(made) is found


SIGNS = (
    "-f64(a[i]) + 0.0", "a[i] / -1 + 0.0", "0.0 + a[i] / -1", "f64(a[i]) * -1.0 + 0",
    "0.0 + -1.0 * f64(a[i])", "(-f64(a[i]) if a[i] < 1 else 2.0) + 0.0", "-abs(c[i]) + 0.0",
    "(c[i] if a[i] > 1 else a[i] / -1) + b[pad(9)]", "a[i] / -1 + b[pad(9)]", "a[i] / -2 + 0.0",
    "-abs(c[i]) * 1.0 + 0.0", "-(-(f64(a[i])) + 0.0) + 0.0", "0.0 - (0.0 - f64(a[i]))",
    "-f64(a[i]) - -0.0", "a[i] / -1 - f64(-0.0)", "-abs(c[i]) - -0.0",
)  # fmt: skip


@pytest.mark.parametrize("value", SIGNS)
def test_zeros_have_the_signs_of_the_interpreter(value: str) -> None:
    found = []
    for backend in ("cc", "numpy"):
        f, c = (
            pe.cd_from_source(f"def f(c, a, b):\n    c[i] = {value}\n", backend=backend),
            np.zeros(1),
        )
        f(c, np.zeros(1, np.uint8), np.zeros(2, np.uint8))
        found.append(np.signbit(c[0]))
    assert found[0] == found[1]


def test_products_with_a_zero() -> None:
    whole = Read(Node(2, "n", (), dtypes.int64), ())
    for factor, found in ((0.0, True), (-0.0, True), (2.0, False)):
        made = Const(factor, dtypes.float32)
        assert is_zero_product(Apply(OPS["mul"], (X, made), dtypes.float32)) is found
        assert is_zero_product(Apply(OPS["mul"], (made, X), dtypes.float32)) is found
        assert not is_zero_product(Apply(OPS["add"], (X, made), dtypes.float32))
    assert not is_zero_product(Apply(OPS["mul"], (whole, Const(0, dtypes.int64)), dtypes.int64))


def test_halves_are_computed_wider() -> None:
    made = widen_operation(Apply(OPS["add"], (H, H), dtypes.float16))
    assert isinstance(made, Cast) and made.value.dtype is dtypes.float32
    assert (
        intermediate_type(dtypes.float16, dtypes.int64, frozenset((dtypes.float16,)))
        is dtypes.float32
    )
    assert intermediate_type(dtypes.int64, dtypes.float16, frozenset()) is dtypes.float32
    assert (
        intermediate_type(dtypes.float64, dtypes.float16, frozenset()) is None
    )  # it would round twice
    assert intermediate_type(dtypes.float64, dtypes.int64, frozenset()) is None


def test_what_c_takes_for_an_int() -> None:
    small = Position(const(3))
    assert is_int(small) and is_int(Const(3, dtypes.int64))
    assert not is_int(Position(var(Symbol("i", 0))))
    assert is_int(Select(Const(True, dtypes.bool_), small, small))
