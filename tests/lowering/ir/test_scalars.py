"""What becomes of scalars: conversions, rounding, powers, and what is better."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from plusequals.lowering.ir import dtypes, scalars
from plusequals.lowering.ir.evaluate import State, compile_value
from plusequals.lowering.ir.expressions import Cast, Expr
from plusequals.lowering.ir.ops import OPS
from plusequals.lowering.ir.scalars import conversion_function, scalar_function

from .build import ap, bool_, f32, f64, i32, i64, num


def value(expr: Expr) -> Any:
    with np.errstate(all="ignore"):
        return compile_value(expr)(State(print))


@pytest.mark.parametrize("dtype", [dtypes.complex64, dtypes.complex128])
def test_products_of_complex_numbers_are_rounded_at_each_step(dtype: dtypes.DType) -> None:
    kind, real = dtype.numpy.type, dtype.real.numpy.type
    rng_ = np.random.default_rng(5)
    parts = rng_.standard_normal((200, 4))
    parts[::7] = rng_.choice([0.0, -0.0, 1.0, -1.0], (29, 4))
    for a, b, c, d in parts.astype(dtype.real.numpy):
        made = compile_value(ap("mul", num(complex(a, b), dtype), num(complex(c, d), dtype)))
        got = made(State(print))
        assert type(got) is kind
        wanted = np.array([real(a * c) - real(b * d), real(a * d) + real(b * c)])
        assert np.array([got.real, got.imag]).tobytes() == wanted.tobytes()


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


REAL = [dtype for dtype in dtypes.ALL if dtype.kind != "c"]


@pytest.mark.parametrize("target", [dtype for dtype in REAL if dtype.kind == "f"], ids=str)
@pytest.mark.parametrize("source", REAL, ids=str)
def test_conversions_to_floats_round_as_those_of_arrays(
    source: dtypes.DType, target: dtypes.DType
) -> None:
    random = np.random.default_rng(8)
    bits = random.integers(0, 256, 300 * source.bits // 8).astype(np.uint8)
    values = bits.view(source.numpy) if source.kind != "b" else bits > 128
    if source.kind == "f":
        near = [*random.standard_normal(900), 0.0, -0.0, np.inf, -np.inf, np.nan]
        values = np.concatenate([values, np.array(near).astype(source.numpy)])
    convert = conversion_function(source, target)
    with np.errstate(all="ignore"):
        wanted = values.astype(target.numpy)
        found = np.array([convert(value) for value in values])
        numbers = found == found
        assert numbers.tolist() == (wanted == wanted).tolist()
    assert found.dtype == target.numpy
    assert found[numbers].tobytes() == wanted[numbers].tobytes()


@pytest.mark.parametrize("name", scalars._OF_SCALARS)
def test_what_is_quick_of_scalars_is_what_numpy_means(name: str) -> None:
    op, random = OPS[name], np.random.default_rng(2)
    for dtype in (one for one in dtypes.ALL if one.kind in op.admits and one.kind != "c"):
        bits = random.integers(0, 256, 50 * dtype.bits // 8).astype(np.uint8)
        values = list(bits.view(dtype.numpy) if dtype.kind != "b" else bits > 128)
        if dtype.kind == "f":
            values += list(np.array([0.0, -0.0, np.inf, -np.inf, np.nan]).astype(dtype.numpy))
        quick = scalar_function(op, dtype)
        for at in range(len(values) - 1):
            given = values[at : at + op.arity]
            with np.errstate(all="ignore"):
                found, wanted = quick(*given), op.meaning(*given)
            assert type(found) is type(wanted)
            assert found.tobytes() == wanted.tobytes() or found != found and wanted != wanted
