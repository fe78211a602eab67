"""The paragraph on types in section 3 of the language page."""

from __future__ import annotations

import math

import numpy as np
import pytest

from plusequals.base import settings
from plusequals.base.diagnostic import CdTypeError, CdZeroDivisionError

from ..compare import assert_same
from .ask import plain, refused, run

F32 = np.array([1.5, -2.0, 0.25], np.float32)
I32 = np.array([7, -7, 5], np.int32)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("t[i] = x[i] * 2.0\nreturn t", F32 * 2.0),
        ("t[i] = x[i] * i\nreturn t", F32 * np.arange(3, dtype=np.float32)),
        ("t[i] = n[i] / 2\nreturn t", I32 / 2),
        ("t[i] = n[i] // 2\nreturn t", I32 // 2),
        ("t[i] = n[i] % 4\nreturn t", I32 % 4),
        ("t[i] = n[i] + x[i]\nreturn t", I32 + F32),
        ("t[i] = n[i] * s\nreturn t", I32 * np.float32(0.5)),
        ("return x * s", F32 * np.float32(0.5)),
        ("for k in range(3):\n    x[k] = x[k] + k\nreturn x + 0",
         F32 + np.arange(3, dtype=np.float32)),
    ],
)  # fmt: skip
def test_promotion_is_numpys(backend: str, body: str, expected: np.ndarray) -> None:
    got = run(backend, "x, n, s", body, F32.copy(), I32, np.float32(0.5))
    assert_same(got, expected, 1e-6)


def test_division_floors_and_integers_wrap(backend: str) -> None:
    a, b = np.array([127, -128, 7], np.int8), np.array([1, -1, -2], np.int8)
    for body in ("return a + b", "return a * b", "return a // 2", "return b % 3", "return -a"):
        assert_same(run(backend, "a, b", body, a, b), plain("a, b", body, a, b))


def test_integer_division_by_zero_is_zero(backend: str) -> None:
    a, zero = np.array([7, -7, 0]), np.zeros(3, np.int64)
    assert_same(run(backend, "a, b", "return a // b, a % b", a, zero), (zero, zero))


def test_integer_division_by_zero_in_checked_mode(backend: str) -> None:
    with settings.override(checked=True):
        refused("a, b", "return a // b", np.ones(2, int), np.zeros(2, int),
                error=CdZeroDivisionError, says=("zero",), backend=backend)  # fmt: skip


def test_stores_cast_same_kind_silently(backend: str) -> None:
    y, z = np.zeros(3, np.float32), np.zeros(3, np.int8)
    run(backend, "y, z, x, n", "y[i] = x[i]\nz[i] = n[i]", y, z, np.full(3, 0.1),
        np.array([1, 300, -1]))  # fmt: skip
    assert_same((y, z), (np.full(3, 0.1, np.float32), np.array([1, 44, -1], np.int8)))


@pytest.mark.parametrize("store", ["y[i] = x[i]", "y[:] = x", "y[0] = x[0]"])
def test_floats_do_not_fit_into_integers(store: str) -> None:
    refused("y, x", store, np.zeros(3, np.int32), np.ones(3), error=CdTypeError,
            says=("float64", "int32"), offers=("np.int32",))  # fmt: skip


@pytest.mark.parametrize("update", ["y += x", "y /= 2", "y[i] += x[i]", "y[0] *= 0.5"])
def test_updates_of_integers_stay_integers(update: str) -> None:
    refused("y, x", update, np.zeros(3, np.int32), np.ones(3), error=CdTypeError, says=("int32",))


@pytest.mark.parametrize("store", ["y[i] = x[i]", "y[:] = x"])
def test_complex_does_not_fit_into_real(store: str) -> None:
    refused("y, x", store, np.zeros(3), np.ones(3, complex), error=CdTypeError,
            says=("complex128", "float64"))  # fmt: skip


def test_casts_make_them_fit(backend: str) -> None:
    y = np.zeros(3, np.int32)
    run(backend, "y, x", "y[i] = i32(x[i])", y, np.array([1.9, -1.9, 3.0]))
    assert_same(y, np.array([1, -1, 3], np.int32))


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "uint8", "uint32", "float32"])
def test_sums_widen_as_numpys(backend: str, dtype: str) -> None:
    x = np.arange(200).astype(dtype)
    assert_same(run(backend, "x", "t[i] = sum(x[i, k])\nreturn t", x.reshape(2, 100)),
                x.reshape(2, 100).sum(axis=1), 1e-6)  # fmt: skip
    assert_same(run(backend, "x", "t[i] = prod(x[i, k])\nreturn t", x[:6].reshape(2, 3)),
                x[:6].reshape(2, 3).prod(axis=1), 1e-6)  # fmt: skip


def test_half_floats_accumulate_in_single(backend: str) -> None:
    x = np.full(3000, 1.0, np.float16)
    assert_same(run(backend, "x", "return np.sum(x)", x), np.float16(3000))
    assert_same(run(backend, "x", "t[i] = sum(x[i, k])\nreturn t", x[None]),
                np.array([3000], np.float16))  # fmt: skip


def test_half_floats_round_at_every_store_even_a_virtual_one(backend: str) -> None:
    x = np.array([1.0, 2.0], np.float16)
    body = "t[i] = x[i] / 3\nu[i] = t[i] * 3\nreturn u"
    expected = ((x / np.float16(3)).astype(np.float16) * np.float16(3)).astype(np.float16)
    assert np.array_equal(run(backend, "x", body, x), expected)


def test_the_accumulation_type_can_be_given(backend: str) -> None:
    x = np.full(30000, 0.1, np.float32)
    out = np.zeros(1)
    run(backend, "out, x", "out[0] = sum(x[i], acc=f64)", out, x)
    assert_same(out, np.array([x.astype(np.float64).sum()]), 1e-12)


def test_a_local_that_changes_type_in_a_loop_takes_the_join(backend: str) -> None:
    body = "s = 0\nfor k in range(3):\n    s = s + x[k]\nreturn s"
    assert_same(run(backend, "x", body, np.ones(3)), np.float64(3.0))
    body = "s = 1\nfor k in range(3):\n    s = s / 2\nreturn s"
    assert_same(run(backend, "x", body, np.ones(3)), 0.125)


def test_straight_line_rebinding_makes_a_new_version(backend: str) -> None:
    body = "t = n\nt = t / 2\ns = t\nt = x\nreturn s, t + 1"
    assert_same(run(backend, "x, n", body, F32, I32), (I32 / 2, F32 + 1))


@pytest.mark.parametrize("reduce", ["max", "min"])
def test_min_and_max_propagate_nan(backend: str, reduce: str) -> None:
    x = np.array([[1.0, np.nan, 3.0], [1.0, 2.0, 3.0]])
    got = run(backend, "x", f"t[i] = {reduce}(x[i, j])\nreturn t", x)
    assert_same(got, getattr(x, reduce)(axis=1))
    got = run(backend, "x", f"t[i, j] = {reduce}(x[i, j], 2.0)\nreturn t", x)
    assert_same(got, getattr(np, f"{reduce}imum")(x, 2.0))


@pytest.mark.parametrize(
    ("reduce", "expected"),
    [("sum", 0.0), ("prod", 1.0), ("max", -math.inf), ("min", math.inf), ("mean", math.nan)],
)
def test_reductions_of_nothing(backend: str, reduce: str, expected: float) -> None:
    got = run(backend, "x", f"t[i] = {reduce}(x[i, j])\nreturn t", np.zeros((2, 0)))
    assert_same(got, np.full(2, expected))


@pytest.mark.parametrize("reduce", ["any", "all"])
def test_any_and_all_of_nothing(backend: str, reduce: str) -> None:
    got = run(backend, "x", f"t[i] = {reduce}(x[i, j] > 0)\nreturn t", np.zeros((2, 0)))
    assert_same(got, np.full(2, reduce == "all"))


@pytest.mark.parametrize(
    ("reduce", "dtype"),
    [("max", int), ("min", int), ("argmax", float), ("argmin", float), ("argmax", int)],
)
def test_reductions_that_nothing_has_not(backend: str, reduce: str, dtype: type) -> None:
    refused("x", f"t[i] = {reduce}(x[i, j])\nreturn t", np.zeros((2, 0), dtype),
            says=(reduce,), backend=backend)  # fmt: skip
    refused("x", f"return np.{reduce}(x)", np.zeros(0, int if "arg" not in reduce else dtype),
            says=(reduce,), backend=backend)  # fmt: skip
