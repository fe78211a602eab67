"""What expressions and indices are worth: conversions, wrapping, rounding, and integer powers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from plusequals.lowering.diagnostic import CdInternalError
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.evaluate import State, key, number_of, place_of, points_of, value_of
from plusequals.lowering.ir.expressions import Cast, Expr, Reduce, Select
from plusequals.lowering.ir.indexing import (
    Affine,
    const,
    floordiv,
    maximum,
    minimum,
    mod,
    multiply,
    var,
)
from plusequals.lowering.ir.ops import OPS, PAIR_OPS

from .build import aff, ap, at, bool_, f32, f64, i32, i64, node, num, over, pos, read, rng, symbols

I, J = symbols("i j")


def value(expr: Expr, **numbers: int) -> Any:
    state = State(print, {}, {key(s): numbers[s.name] for s in (I, J) if s.name in numbers})
    with np.errstate(all="ignore"):
        return value_of(expr)(state)


def test_select_evaluates_only_the_chosen_side() -> None:
    x = node(0, "x", 3)
    expr = Select(ap("gt", pos(I), num(0, i64)), read(x, aff(I) - 1), num(-1.0))
    state = State(print, {0: np.float32([5, 6, 7])})
    found = []
    for state.numbers[key(I)] in range(3):
        found.append(float(value_of(expr)(state)))
    assert found == [-1, 5, 6]


@pytest.mark.parametrize(
    ("index", "wanted"),
    [
        (minimum(var(I), var(J)), 3),
        (maximum(var(I), var(J)), 5),
        (multiply(var(I), var(J)), 15),
        (floordiv(var(I) * 3 - var(J), const(5)), 2),
        (floordiv(-var(I), var(J)), -2),
        (mod(var(J) - var(I), var(I)), 3),
        (var(I) * 2 - var(J) + 1, 8),
        (const(4), 4),
    ],
)
def test_index_arithmetic(index: Affine, wanted: int) -> None:
    assert number_of(index)(State(print, {}, {key(I): 5, key(J): 3})) == wanted


def test_points_come_in_order_where_the_predicate_holds() -> None:
    domain = over(rng(I, 0, 3), rng(J, I, 3), where=ap("ne", pos(J), num(1, i64)))
    state = State(print)
    seen = [(state.numbers[key(I)], state.numbers[key(J)]) for _ in points_of(domain)(state)]
    assert seen == [(0, 0), (0, 2), (1, 2), (2, 2)]


@pytest.mark.parametrize(("where", "count"), [(None, 1), (True, 1), (False, 0)])
def test_a_domain_without_ranges_is_one_point_or_none(where: bool | None, count: int) -> None:
    predicate = None if where is None else num(where, bool_)
    points = points_of(over(where=predicate))
    for _ in range(2):
        assert len(list(points(State(print)))) == count


@pytest.mark.parametrize("dtype", [dtypes.complex64, dtypes.complex128])
def test_products_of_complex_numbers_are_rounded_at_each_step(dtype: dtypes.DType) -> None:
    kind, real = dtype.numpy.type, dtype.real.numpy.type
    rng_ = np.random.default_rng(5)
    parts = rng_.standard_normal((200, 4))
    parts[::7] = rng_.choice([0.0, -0.0, 1.0, -1.0], (29, 4))
    for a, b, c, d in parts.astype(dtype.real.numpy):
        made = value_of(ap("mul", num(complex(a, b), dtype), num(complex(c, d), dtype)))
        got = made(State(print))
        assert type(got) is kind
        wanted = np.array([real(a * c) - real(b * d), real(a * d) + real(b * c)])
        assert np.array([got.real, got.imag]).tobytes() == wanted.tobytes()


def test_place_is_the_array_and_the_cell() -> None:
    array = np.zeros((2, 3), "f")
    found, cell = place_of(at(node(0, "x", 2, 3), 1, aff(I) - 1))(
        State(print, {0: array}, {key(I): 3})
    )
    assert (found is array, cell) == (True, (1, 2))


def test_node_without_storage_is_an_internal_error() -> None:
    with pytest.raises(CdInternalError, match="row#0 has no storage"):
        place_of(at(node(0, "row", I), 0))(State(print))


def test_nan_constants_and_signed_zeros_survive() -> None:
    assert math.isnan(value(num(float("nan"))))
    assert np.signbit(value(num(-0.0)))


def test_reduce_inside_an_expression() -> None:
    (i,) = symbols("i")
    square = ap("mul", pos(i), pos(i))
    total = Reduce(OPS["add"], over(rng(i, 0, 4)), square, i64)
    last = Reduce(PAIR_OPS["argmax"], over(rng(i, 0, 4)), square, i64, aff(i))
    assert (value(total), value(last)) == (14, 3)


@pytest.mark.parametrize(
    ("given", "source", "target", "wanted"),
    [
        (2.9, f64, i32, 2),
        (-2.9, f32, i64, -2),
        (1e30, f32, i32, 2**31 - 1),
        (-1e30, f64, dtypes.int8, -128),
        (-1.0, f32, dtypes.uint8, 0),
        (float("inf"), f32, dtypes.uint64, 2**64 - 1),
        (float("-inf"), f64, i64, -(2**63)),
        (float("nan"), f32, i32, 0),
        (300, i32, dtypes.uint8, 44),
        (-1, i64, dtypes.uint16, 65535),
        (2**63, dtypes.uint64, i64, -(2**63)),
        (0.5, f32, bool_, True),
        (float("nan"), f32, bool_, True),
        (1j, dtypes.complex64, bool_, True),
        (3.7 + 2j, dtypes.complex128, i32, 3),
        (3.5 + 2j, dtypes.complex128, f32, 3.5),
        (True, bool_, f64, 1.0),
        (1 + 2**-11, f32, dtypes.float16, 1.0),
        (1 + 2**-8, f32, dtypes.bfloat16, 1.0),
        (1 + 3 * 2**-8, f32, dtypes.bfloat16, 1 + 2**-6),
    ],
)
def test_cast(given: complex, source: dtypes.DType, target: dtypes.DType, wanted: complex) -> None:
    got = value(Cast(num(given, source), target))
    assert got == wanted
    assert got.dtype == target.numpy


@pytest.mark.parametrize(
    ("name", "args", "dtype", "wanted"),
    [
        ("floordiv", (7, 0), i32, 0),
        ("mod", (7, 0), i32, 0),
        ("mod", (-7, 3), i32, 2),
        ("floordiv", (-7, 2), i64, -4),
        ("add", (2**31 - 1, 1), i32, -(2**31)),
        ("mul", (200, 2), dtypes.uint8, 144),
        ("pow", (3, 4), i64, 81),
        ("pow", (2, -1), i32, 0),
        ("pow", (-1, -3), i32, -1),
        ("pow", (-1, -2), i32, 1),
        ("pow", (1, -2), i32, 1),
        ("add", (1e8, 1.0), f32, 1e8),
        ("div", (1.0, 0.0), f32, np.inf),
    ],
)
def test_arithmetic_wraps_rounds_and_never_raises(
    name: str, args: tuple[float, ...], dtype: dtypes.DType, wanted: float
) -> None:
    got = value(ap(name, *(num(arg, dtype) for arg in args)))
    assert got == wanted
    assert got.dtype == dtype.numpy


@pytest.mark.parametrize(
    ("base", "exponent", "wanted"),
    [
        (-math.inf, 0.5, math.inf),
        (-0.0, 0.5, 0.0),
        (4.0, 0.5, 2.0),
        (-4.0, 0.5, math.nan),
        (-0.0, -3.0, -math.inf),
        (0.0, -0.5, math.inf),
        (-1e200, 3.0, -math.inf),
        (math.nan, 0.0, 1.0),
    ],
)
@pytest.mark.parametrize("dtype", [f32, f64])
def test_real_powers_are_those_of_c(
    base: float, exponent: float, wanted: float, dtype: dtypes.DType
) -> None:
    with np.errstate(all="ignore"):
        got = value(ap("pow", num(base, dtype), num(exponent, dtype)))
    assert got.dtype == dtype.numpy
    np.testing.assert_array_equal(got, wanted)
    assert np.signbit(got) == np.signbit(wanted) or np.isnan(got)


@pytest.mark.parametrize("n", [2**62, 2**63 - 1, -(2**63), 2**40 + 1])
def test_positions_wrap_where_numbers_of_64_bits_do(n: int) -> None:
    i = np.array([n])
    with np.errstate(all="ignore"):
        wanted: dict[Affine, Any] = {
            var(I) * 2: i * 2,
            var(I) + 1: i + 1,
            -var(I): -i,
            multiply(var(I), var(I)) * 3 + 5: i * i * 3 + 5,
            floordiv(multiply(var(I), var(I)), const(3)): i * i // 3,
            mod(var(I) * 2, const(7)): i * 2 % 7,
            minimum(var(I) * 2, var(I)): np.minimum(i * 2, i),
        }
    for index, numbers in wanted.items():
        assert value(pos(index), i=n) == numbers[0], index


def test_a_place_wraps_before_it_is_out_of_its_array() -> None:
    x = node(0, "x", 3)
    state = State(print, {0: np.float32([5, 6, 7])}, {key(I): 2**62})
    assert value_of(read(x, var(I) * 4 + 1))(state) == 6
    with pytest.raises(CdInternalError):
        value_of(read(x, var(I) * 4 + 3))(state)


def test_nothing_is_divided_by_zero() -> None:
    assert value(pos(floordiv(var(I), var(J))), i=5, j=0) == 0
    assert value(pos(mod(var(I), var(J))), i=5, j=0) == 0
