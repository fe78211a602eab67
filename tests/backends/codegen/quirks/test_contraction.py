"""Products that compilers may not round together with sums: what they are, and what is computed."""

from typing import Any

import numpy as np
import pytest

from plusequals import cd
from plusequals.backends.codegen.quirks.contraction import may_alternate, may_be_product
from plusequals.base import settings
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.expressions import Expr
from plusequals.lowering.lower import lower
from tests.compare import run_on

from ..programs import apply, assign, at, node, over, procedure, read, symbols

(I,) = symbols("i")
X = node(0, "x", (8,))
Y = node(1, "y", (8,))
S = node(2, "s", ())
A, B = read(X, I), read(S)
TIMES = apply("mul", A, A)
LESS, MORE = apply("sub", TIMES, B), apply("add", TIMES, B)


def stored(*values: Expr) -> bool:
    body = [assign("y", Y, at(I), value, over((I, 0, 8))) for value in values]
    return may_alternate(lower(procedure("f", [(Y, True), (X, False), (S, False)], body)))


def test_sums_and_differences_of_products_in_one_array_alternate() -> None:
    assert stored(LESS, MORE)
    assert stored(apply("add", TIMES, apply("neg", B)), MORE)  # which compilers make LESS of
    assert not stored(LESS) and not stored(LESS, LESS) and not stored(MORE, MORE)
    assert not stored(apply("sub", A, TIMES), MORE)  # no instruction takes products away


def test_what_ends_with_a_product_may_be_one() -> None:
    assert may_be_product(TIMES) and may_be_product(apply("exp", A)) and may_be_product(B)
    assert not may_be_product(A) and not may_be_product(LESS)
    assert not may_be_product(apply("min", TIMES, B))
    whole = node(3, "k", (8,), dtypes.int64)
    assert not may_be_product(apply("mul", read(whole, I), read(whole, I)))


def pairs(out: Any, x: Any, y: Any, c: Any) -> None:
    for k in range(out.shape[0]):
        out[k, 0] = x[k, 0] * c[0] - y[k, 0]
        out[k, 1] = x[k, 1] * c[1] + y[k, 1]


def rotated(out: Any, x: Any, y: Any, c: Any) -> None:
    out[:, ::2] = x[:, ::2] * y[:, ::2] - x[:, 1::2] * y[:, 1::2]
    out[:, 1::2] = x[:, ::2] * y[:, 1::2] + x[:, 1::2] * y[:, ::2]


def named(out: Any, x: Any, y: Any, c: Any) -> None:
    for k in range(out.shape[0]):
        p, q = x[k, 0] * c[0], x[k, 1] * c[1]
        out[k, 0], out[k, 1] = p - y[k, 0], q + y[k, 1]


@pytest.mark.parametrize("function", [pairs, rotated, named])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [1, 3, 64])
def test_products_are_rounded_before_they_are_added_to(
    function: Any, dtype: type, rows: int
) -> None:
    draw = np.random.default_rng(1)
    x, y = (draw.normal(size=(rows, 2)).astype(dtype) for _ in range(2))
    c = draw.normal(size=2).astype(dtype)
    wanted, got = np.zeros((rows, 2), dtype), np.zeros((rows, 2), dtype)
    function(wanted, x, y, c)
    with settings.override(optimize=3, schedule=True):
        run_on("cc", cd(function), got, x, y, c)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_products_are_rounded_the_same_in_vectors_and_alone(dtype: type) -> None:
    draw = np.random.default_rng(1)
    x, y = (draw.normal(size=64).astype(dtype) * (1 + draw.normal() * dtype(1j)) for _ in range(2))
    times = cd(lambda a, b: a * b)
    with settings.override(optimize=3, schedule=True):
        got = run_on("cc", times, x, y)
    np.testing.assert_array_equal(got.real, x.real * y.real - x.imag * y.imag)
    np.testing.assert_array_equal(got.imag, x.real * y.imag + x.imag * y.real)
