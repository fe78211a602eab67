"""Section 2 of the language page: what a name is, and what is captured."""

from __future__ import annotations

import math

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdIndexError, CdNameError

from ..compare import assert_same, run_on
from .ask import compiled, refused, run

X = np.array([0.5, 1.0, 2.0, 0.25, 3.0])
A = np.arange(6.0).reshape(2, 3)


def test_a_name_that_is_nothing_names_the_nearest() -> None:
    refused("values, out", "out[i] = valeus[i]", X, X.copy(), error=CdNameError,
            says=("`valeus`",), offers=("values",))  # fmt: skip


@pytest.mark.parametrize("call", ["np.exp(x[i])", "math.exp(x[i])", "e(x[i])", "exp(x[i])"])
def test_functions_are_known_by_object(backend: str, call: str) -> None:
    y = np.zeros(5)
    run(backend, "y, x", f"y[i] = {call}", y, X, e=math.exp)
    assert_same(y, np.exp(X))


def double_it(v):
    return 2 * v


def test_a_users_function_of_a_known_name_is_the_users(backend: str) -> None:
    y = np.zeros(5)
    run(backend, "y, x", "y[i] = exp(x[i])", y, X, exp=double_it)
    assert_same(y, 2 * X)


def test_a_captured_number_in_a_bare_subscript() -> None:
    refused("y, x", "y[i] = x[i]", X.copy(), X, says=("`i`", "3"), i=3)


def test_a_captured_number_in_slices_and_arithmetic_is_a_constant(backend: str) -> None:
    expected = X.copy()
    expected[3:] = X[:2] * 3
    y = X.copy()
    run(backend, "y, x", "y[k:] = x[:-k] * k", y, X, k=3)
    assert_same(y, expected)


def test_captured_numbers_are_compared_on_every_call(backend: str) -> None:
    names = {"np": np, "scale": 2.0}
    f = pe.cd_from_source("def f(x):\n    return x * scale\n", names)
    assert_same(run_on(backend, f, X), X * 2.0)
    names["scale"] = 3.0
    assert_same(run_on(backend, f, X), X * 3.0)


def test_captured_arrays_are_inputs_by_reference(backend: str) -> None:
    table = X.copy()
    f = compiled("x", "return x + table", table=table)
    assert_same(run_on(backend, f, X), 2 * X)
    table[:] = 1.0
    assert_same(run_on(backend, f, X), X + 1.0)


def test_a_name_that_is_assigned_is_no_captured_array(backend: str) -> None:
    table = X.copy()
    assert_same(run(backend, "x", "table = x + 1\nreturn table", X, table=table), X + 1.0)
    assert_same(table, X)


@pytest.mark.parametrize("body", ["table[0] = 1.0", "table += x\nreturn table"])
def test_captured_arrays_are_never_written(body: str) -> None:
    table = X.copy()
    refused("x", body, X, says=("`table`",), table=table)
    assert_same(table, X)


def test_captured_tuples_and_dtypes_are_constants(backend: str) -> None:
    body = "t = np.zeros(shape, dtype)\nt[:] = 1\nreturn t"
    got = run(backend, "x", body, X, shape=(2, 3), dtype=np.float32)
    assert_same(got, np.ones((2, 3), np.float32))


def test_a_name_has_one_role() -> None:
    refused("y, x", "y[i] = x[i]\ni = 3\ny[0] = i", X.copy(), X, says=("`i`",))


@pytest.mark.parametrize("letter", ["i", "j2", "k_", "i_1"])
def test_index_letters(backend: str, letter: str) -> None:
    y = np.zeros(5)
    run(backend, "y, x", f"y[{letter}] = x[{letter}]", y, X)
    assert_same(y, X)


def test_index_letters_by_import(backend: str) -> None:
    y = np.zeros(5)
    run(backend, "y, x", "y[row] = x[row]", y, X, row=pe.idx.i)
    assert_same(y, X)


def test_words_of_more_letters_are_no_index() -> None:
    refused("y, x", "y[row] = x[row]", X.copy(), X, says=("`row`",))


def test_a_static_integer_gives_a_version_for_each_value(backend: str) -> None:
    f = compiled("x, n", "return x.reshape(n, -1) + np.zeros((n, 1))")
    for n in (1, 2, 3, 6):
        assert_same(run_on(backend, f, A, n), A.reshape(n, -1))


def test_a_run_time_integer_in_a_subscript(backend: str) -> None:
    f = compiled("y, x, n", "y[i] = x[n, i]")
    for n in (0, 1):
        y = np.zeros(3)
        run_on(backend, f, y, A, n)
        assert_same(y, A[n])


@pytest.mark.parametrize("n", [2, -3, 99])
def test_a_static_index_is_checked_before_anything_is_written(backend: str, n: int) -> None:
    y = np.full(3, 9.0)
    refused("y, x, n", "y[:] = 0\ny[i] = x[n, i]", y, A, n, error=CdIndexError,
            says=(str(n), "2"), backend=backend)  # fmt: skip
    assert_same(y, np.full(3, 9.0))
