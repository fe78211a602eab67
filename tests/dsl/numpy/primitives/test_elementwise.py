"""Elementwise work: operators and functions of one, two and three arguments."""

from __future__ import annotations

from itertools import product

import ml_dtypes
import numpy as np
import pytest

import plusequals as pe
from tests.compare import assert_same
from tests.language.ask import plain, run

from ...elaborate.numpy_oracle import assert_refused_as_by_numpy, assert_same_as_numpy, compiled
from ...elaborate.strict_oracle import assert_as_plain, assert_refused

EXPRESSIONS = (
    "np.exp(x)",
    "np.sqrt(np.abs(y))",
    "np.sqrt(k)",
    "k / k",
    "x // 0.3",
    "i % 3",
    "i / 2",
    "k * 2",
    "u + u",
    "h * 2.5",
    "h + y",
    "np.exp(h)",
    "b & b",
    "b | (x > 0)",
    "~b",
    "np.logical_not(x)",
    "np.logical_and(x, i)",
    "np.logical_xor(b, i)",
    "b + b",
    "b * b",
    "x * s",
    "y * s",
    "y * np.sqrt(2.0)",
    "i * 2.5",
    "np.add(x, y)",
    "np.maximum(x, 0)",
    "np.minimum(u, 100)",
    "np.hypot(x, y)",
    "np.arctan2(x, i)",
    "np.copysign(x, y)",
    "np.degrees(y)",
    "np.radians(x)",
    "np.square(k)",
    "np.cbrt(x)",
    "np.sign(x)",
    "np.sign(i)",
    "np.heaviside(x, 0.5)",
    "np.logaddexp(x, y)",
    "np.isnan(nn)",
    "np.isfinite(i)",
    "np.signbit(x)",
    "np.floor(x)",
    "np.floor(i)",
    "np.rint(y)",
    "np.rint(k)",
    "np.trunc(x)",
    "np.reciprocal(x)",
    "np.positive(i)",
    "np.remainder(x, 0.7)",
    "np.fmod(i, 3)",
    "np.divmod(i, 3)",
    "np.where(x > 0, x, 0)",
    "np.where(b, y, 1.5)",
    "np.where(b, k, i)",
    "np.clip(x, -0.5, 0.5)",
    "np.clip(i, None, 2)",
    "np.clip(u, 10, None)",
    "np.clip(y, a_min=0, a_max=1)",
    "x.clip(0, 1)",
    "np.real(z)",
    "np.imag(z)",
    "np.abs(z)",
    "np.angle(z)",
    "z.real",
    "z.imag",
    "x.imag",
    "np.conj(z)",
    "z * zf",
    "np.exp(z)",
    "z / z",
    "np.isclose(x, y)",
    "np.nan_to_num(nn)",
    "np.sinc(x)",
    "np.invert(u)",
    "u << 1",
    "i >> 1",
    "i ^ 3",
    "np.equal(x, y)",
    "x < y",
    "np.not_equal(i, 2)",
    "np.less(u, -1)",
    "np.select([x > 1, x > 0], [x, y], 7.0)",
    "-i",
    "np.negative(x)",
    "np.where(h > 0, h, 1)",
    "np.where(x > 0, 1, 0)",
    "np.where(x > 0, 1.5, i)",
    "x.conj()",
    "zf.conjugate()",
    "np.clip(x, v, 1.0)",
    "np.clip(i, -2, 2)",
    "np.clip(n, u[0], None), np.clip(s, y[0, 0], None), np.clip(n, None, u), np.clip(3, u[0], 9)",
    "np.clip(n, np.uint64(3), None), np.clip(True, u[0], 9), np.clip(n, min=np.int8(7))",
    "np.minimum(np.maximum(x, -1), 1)",
    "np.logical_or(x > 1, x < -1)",
    "np.sign(u)",
    "np.abs(k)",
    "k // 2 * 3",
    "i // k",
    "i % k",
    "x % 1.0",
    "-x // 1",
    "np.exp2(x)",
    "np.sqrt(x + 0j)",
    "np.log(p) + np.log2(p) + np.log10(p) + np.log1p(p) + np.expm1(p)",
    "np.sinh(x) + np.cosh(x) + np.tanh(x) + np.arctan(x) + np.arcsinh(x)",
    "np.arcsin(np.tanh(x)) + np.arccos(np.tanh(x)) + np.arctanh(np.tanh(x)) + np.arccosh(p[0] + 2)",
    "np.newaxis is None",
    "np.acos(np.tanh(x)) + np.asin(np.tanh(x)) + np.atan(x)",
    "np.absolute(x) + np.fabs(x)",
    "np.mod(i, 3)",
    "np.true_divide(i, 2)",
    "np.bitwise_and(i, 3) | np.bitwise_or(i, 1)",
    "np.left_shift(k, 1)",
    "np.bitwise_not(i)",
    "np.nan_to_num(nn, nan=1.0)",
    "np.isneginf(nn)",
    "np.modf(x)",
    "np.modf(k)",
    "np.modf(u)",
    "np.modf(b)",
    "np.modf(i.astype(np.int16))",
    "np.modf(h)",
    "np.modf(-2.0)",
    "b.imag",
    "k.imag",
    "np.imag(-y)",
    "np.imag(h)",
)
EDGES = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 2.0, -2.0, -2.75, 3.5])


@pytest.mark.parametrize(
    "call",
    [
        "np.isneginf({0}), np.isposinf({0})", "np.sinc({0})", "np.divmod({0}, 2)",
        "np.divmod(7.5, {0})", "np.real({0}), np.real({0}) * 2", "np.imag({0})", "np.modf({0})",
        "np.angle({0})", "np.isclose({0}, {0})", "np.nan_to_num({0})", "np.vecdot({0}, {0})",
        "np.isscalar({0}), np.isscalar({0}[0]), np.isscalar('a'), np.isscalar(None)",
        "np.where({0}, {0}, 0.0)", "np.clip({0}, 0, 1)", "np.round({0})", "np.fix({0})",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "given", ["line", "pair", "whole", "[1.0, -np.inf]", "(0.5, 2.0)", "[0, 1]"]
)
def test_sequences_of_constants_are_arrays(call: str, given: str) -> None:
    scope = {"np": np, "line": [1.0, -np.inf], "pair": (0.25, 1.5), "whole": [3, 0]}
    text = f"lambda: ({call.format(given)},)"
    with np.errstate(all="ignore"):
        found = pe.cd_from_source(text, globals=scope, backend="numpy")()
        assert_same(found, eval(text, scope)(), 1e-12)


@pytest.mark.parametrize("body", EXPRESSIONS)
def test_it_is_what_numpy_says(body: str) -> None:
    assert_same_as_numpy(body)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_modf_of_infinities_and_signed_zeros(dtype: type) -> None:
    given = EDGES.astype(dtype)
    for got, wanted in zip(compiled("np.modf(x)", given), np.modf(given), strict=True):
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(got, wanted)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(wanted))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64])
def test_infinities_become_the_largest_number_of_their_type(dtype: type) -> None:
    given = EDGES.astype(dtype)
    if given.dtype.kind == "c":
        given.imag = EDGES[::-1]
    got = compiled("np.nan_to_num(x)", given)
    assert got.dtype == given.dtype
    np.testing.assert_array_equal(got, np.nan_to_num(given))


def test_the_largest_bfloat16() -> None:
    got = compiled("np.nan_to_num(x)", EDGES[:3].astype(ml_dtypes.bfloat16))
    top = float(ml_dtypes.finfo(ml_dtypes.bfloat16).max)
    np.testing.assert_array_equal(got.astype(np.float64), [top, -top, 0.0])


def test_imaginary_parts_of_reals_are_positive_zeros() -> None:
    got = compiled("x.imag", EDGES)
    np.testing.assert_array_equal(got, np.zeros(9))
    assert not np.signbit(got).any()


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_reciprocals_of_complex_numbers_have_the_signs_of_numpy(dtype: type, backend: str) -> None:
    numbers = [0.0, -0.0, 1.0, -4.0, np.inf, -np.inf, np.nan, 1e-310, 0.3]
    given = np.array([complex(re, im) for re in numbers for im in numbers]).astype(dtype)
    with np.errstate(all="ignore"), pe.override(backend=backend):
        got, wanted = compiled("np.reciprocal(z)", given), np.reciprocal(given)
    for one, other in ((got.real, wanted.real), (got.imag, wanted.imag)):
        np.testing.assert_array_equal(one, other)
        known = ~np.isnan(other)
        np.testing.assert_array_equal(np.signbit(one[known]), np.signbit(other[known]))


def test_conjugates_of_python_numbers_are_python_numbers() -> None:
    made = pe.cd_from_source(
        "def f(z, n, x):\n"
        "    return z.conjugate(), n.conjugate(), x.conjugate(), (2 + 1j).conjugate()\n",
        {},
    )
    for n in range(5):
        assert repr(made(n + 2j, n, n / 2)) == repr((n - 2j, n, n / 2, 2 - 1j))


AS_IN_NUMPY = (
    "np.clip(x), np.clip(x, None, 0.5), np.clip(x, 0.0, None), np.clip(x, min=0.0), x.clip(0.0)",
    "np.select([True], [x]), np.select([[True, False, True, False]], [v])",
    "np.nan_to_num(nn, nan=v[:1]), np.nan_to_num(nn, nan=w), np.nan_to_num(x, nan=v)",
)


@pytest.mark.parametrize("body", AS_IN_NUMPY)
def test_arguments_that_numpy_takes_are_taken(body: str) -> None:
    assert_same_as_numpy(body)


REFUSED = (
    ("np.clip(x, 1)", "CD0440", "`clip`: a_max is missing"),
    ("np.clip(x, None)", "CD0440", "`clip`: a_max is missing"),
    ("np.clip(x, a_max=1)", "CD0440", "`clip`: a_min is missing"),
    ("np.clip(x, 0, max=2)", "CD0440", "`clip`: a_max is missing"),
    ("np.clip(x, 0, 1, max=2)", "CD0440", "`clip` is given its limits twice"),
    (
        "np.select([x], [1])",
        "CD0440",
        "condition 0 of `np.select` is no array of bools, and is f64[3, 4]",
    ),
    (
        "np.select([v > 0, idx], [1, 2])",
        "CD0440",
        "condition 1 of `np.select` is no array of bools",
    ),
    ("np.nan_to_num(v, nan=x)", "CD0302", "shape (3, 4) does not broadcast to (4,)"),
)


@pytest.mark.parametrize(("body", "code", "message"), REFUSED)
def test_what_numpy_refuses_is_refused(body: str, code: str, message: str) -> None:
    assert_refused_as_by_numpy(body, code, message)


_SOME = (np.array([1.0, np.nan, 2.0]), np.array([1.0, np.nan, 3.0]))


@pytest.mark.parametrize("flag", ["1", "0", "np.True_", "True", "None", "c"])
@pytest.mark.parametrize("name", ["isclose", "allclose"])
def test_any_true_value_makes_nan_equal(name: str, flag: str) -> None:
    assert_as_plain(f"np.{name}(a, b, equal_nan={flag})", *_SOME, 1)


@pytest.mark.parametrize("flag", [0, 1, 7])
@pytest.mark.parametrize("z", [np.array([1 + 2j]), np.array([1.0, -1.0])], ids=["c16", "f8"])
def test_an_angle_is_in_degrees_where_asked_for(z: np.ndarray, flag: int) -> None:
    assert_as_plain("np.angle(a, b), np.angle(a, deg=b)", z, flag)
    with pytest.raises(pe.CdError, match="CD0443.*deg"):
        pe.cd_from_source("def f(a, b): return np.angle(a, b[0] > 0)", {"np": np})(z, np.ones(1))


def test_a_number_in_place_of_nan_is_real() -> None:
    assert_refused("CD0405", "np.nan_to_num(a, nan=1j)", np.array([np.nan]))
    assert_refused("CD0405", "np.nan_to_num(a, neginf=b)", np.array([-np.inf]), 2j)
    assert_refused("CD0453", "np.nan_to_num(a, copy=False)", 2.5)


@pytest.mark.parametrize("value", [np.array(2.5), np.array(3), np.array(np.nan), np.array(1 + 2j)])
def test_parts_of_arrays_without_axes(value: np.ndarray) -> None:
    assert_as_plain("np.imag(a), a.imag, np.real(a)", value)
    assert_as_plain("b = np.nan_to_num(a, copy=False)\na[...] = 7\nb", value)


@pytest.mark.parametrize("value", [True, np.True_, np.int8(3), 2.5, np.complex64(1j)], ids=repr)
def test_parts_of_numbers(value: object) -> None:
    assert_as_plain("a.real, a.imag, a.conjugate()", value)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_clip_gives_numpys_zeros_and_nans(dtype: type[np.floating], backend: str) -> None:
    values = [0.0, -0.0, 1.0, -1.0, np.nan]
    x, low, high = (np.array(row, dtype) for row in zip(*product(values, repeat=3)))
    body = "return np.clip(x, a, b), x.clip(min=a), x.clip(max=a)"
    found = run(backend, "x, a, b", body, x, low, high)
    for got, expected in zip(found, plain("x, a, b", body, x, low, high)):
        assert_same(got, expected)
        numbers = ~np.isnan(expected)
        assert_same(np.signbit(got)[numbers], np.signbit(expected)[numbers])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize(
    "limits",
    ["a, b", "b, a", "0.0, 1.0", "-1.0, -0.0", "a, None", "None, b", "a, 1.0", "np.ones(1), b"],
)
def test_clip_between_numbers_keeps_a_zero_that_equals_one(
    limits: str, dtype: type[np.floating], backend: str
) -> None:
    x = np.array([0.0, -0.0, 1.0, -1.0, np.nan], dtype)
    body = f"return np.clip(x, {limits}), np.clip(x[1], {limits})"
    for numbers in product((dtype(0.0), dtype(-0.0)), repeat=2):
        found = run(backend, "x, a, b", body, x, *numbers)
        for got, expected in zip(found, plain("x, a, b", body, x, *numbers)):
            assert_same(got, expected)
            given = ~np.isnan(expected)
            assert_same(np.signbit(got)[given], np.signbit(expected)[given])
