"""What runs along an axis, norms."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe

from ...elaborate.numpy_oracle import (
    assert_refused_as_by_numpy,
    assert_same_as_numpy,
    compiled,
)
from ...elaborate.strict_oracle import assert_as_plain, assert_refused

EXPRESSIONS = (
    "np.cumsum(x)",
    "np.cumsum(x, axis=1)",
    "k.cumsum(axis=0)",
    "np.cumprod(v)",
    "np.cumsum(h, axis=0)",
    "b.cumsum()",
    "np.cov(x)",
    "np.cov(x, rowvar=False)",
    "np.cov(v)",
    "np.cov(x, bias=True)",
    "np.corrcoef(x)",
    "np.corrcoef(x, rowvar=False)",
    "np.corrcoef(np.stack([v, v * v]))",
    "np.cov(v, v * v), np.cov(x, y), np.cov(x, v, bias=True), np.cov(zf, v)",
    "np.cov(x.T, y.T, rowvar=False), np.cov(x.T, v, rowvar=False)",
    "np.corrcoef(v, np.cos(v))[0, 1], np.corrcoef(x, y)",
    "np.trapezoid(x)",
    "np.trapezoid(x, v)",
    "np.trapezoid(v, dx=0.5)",
    "np.add.reduce(x)",
    "np.maximum.reduce(x, axis=1)",
    "np.logical_and.reduce(b)",
    "np.bitwise_or.reduce(i, axis=None)",
    "np.maximum.accumulate(x, axis=1)",
    "np.add.accumulate(k)",
    "np.multiply.accumulate(v)",
    "np.linalg.norm(v[:0], np.inf)",
    "np.linalg.norm(x)",
    "np.linalg.norm(v)",
    "np.linalg.norm(x, axis=1)",
    "np.linalg.norm(x, 1)",
    "np.linalg.norm(v, 1)",
    "np.linalg.norm(x, np.inf)",
    "np.linalg.norm(x, 1, axis=0)",
    "np.linalg.norm(x, axis=0, keepdims=True)",
    "np.linalg.norm(h)",
    "np.cumsum(h)",
    "np.cumprod(k, axis=1)",
    "np.add.reduce(k, axis=1)",
    "x.cumsum(axis=0)",
    "np.concatenate(([0], np.cumsum(v)))",
    "np.maximum.reduce([x, y, x + 1])",
    "np.linalg.vector_norm(v)",
    "np.cumulative_sum(v)",
    "np.polyval([1.0, 2.0, 3.0], x)",
    "np.polyval(x, x[0])",
    "np.polyval(x, 2.0)",
    "np.linalg.norm(x, 1, axis=(1, 0)), np.linalg.norm(x, -1, axis=(1, 0))",
    "np.linalg.norm(x, np.inf, axis=(1, 0)), np.linalg.norm(x, -np.inf, axis=(-1, 0))",
    "np.linalg.norm(t, 1, axis=(2, 0)), np.linalg.norm(t, np.inf, (2, 0))",
    "np.linalg.norm(t, 1, (0, 2)), np.linalg.norm(t, -np.inf, (1, 0))",
    "np.linalg.norm(x, 'f'), np.linalg.norm(t), np.linalg.norm(t, 'fro', (2, 1))",
    "np.trapezoid(x, v[:3], axis=0), np.trapezoid(t, v[:2], 9.0, 0), np.trapezoid(x, x)",
    "np.trapezoid(v, [False, True, True, False]), np.trapezoid(b, v), np.trapezoid(x, x, axis=0)",
    "np.trapezoid(v, w[:2]), np.trapezoid(v[:2], w), np.trapezoid(v[:2], v[:1])",
    "np.trapezoid(v[:0]), np.trapezoid(v[:0], dx=v[:0]), np.trapezoid(v[:1], v[:1])",
)


@pytest.mark.parametrize("body", EXPRESSIONS)
def test_it_is_what_numpy_says(body: str) -> None:
    assert_same_as_numpy(body)


@pytest.mark.parametrize("columns", [0, 1])
@pytest.mark.filterwarnings("ignore")
def test_covariances_of_too_few_values_are_no_numbers(columns: int) -> None:
    x = np.ones((3, columns))
    got = compiled("return np.cov(x), np.cov(x, ddof=2), np.corrcoef(x)", x)
    for mine, wanted in zip(got, (np.cov(x), np.cov(x, ddof=2), np.corrcoef(x))):
        np.testing.assert_array_equal(mine, wanted)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("np.bitwise_and.accumulate(x)", "`bitwise_and` is not defined for float64"),
        ("np.bitwise_or.accumulate(x)", "`bitwise_or` is not defined for float64"),
        ("np.bitwise_xor.accumulate(x, dtype=np.float64)", "`bitwise_xor` is not defined for"),
        ("np.bitwise_xor.reduce(x)", "`bitwise_xor` is not defined for"),
        ("np.maximum.accumulate(1j * x)", "`max` is not defined for complex128"),
    ],
)
def test_an_operation_that_the_elements_do_not_have_is_refused(body: str, message: str) -> None:
    with pytest.raises(pe.CdError, match=f"CD0404.*{message}"):
        compiled(f"return {body}", np.ones(4))


def test_one_number_is_no_list_of_coefficients() -> None:
    with pytest.raises(pe.CdError, match="CD0452.*`polyval` takes an array of coefficients"):
        compiled("return np.polyval(2.0, x)", np.ones(4))


REFUSED = (
    ("np.trapezoid(v, w)", "CD0301", "`x` and axis 0 of `y` in `trapezoid`: sizes 5 and 4 differ"),
    ("np.trapezoid(x, v, axis=0)", "CD0301", "axis 0 of `y` in `trapezoid`: sizes 4 and 3 differ"),
    ("np.trapezoid(v, v[:1])", "CD0301", "`x` and axis 0 of `y` in `trapezoid`: sizes 1 and 4"),
    ("np.trapezoid(v, 2.0)", "CD0452", "an array of points, and is given one number"),
    ("np.linalg.norm(v, 'fro')", "CD0456", "a vector has no norm of order 'fro'"),
    ("np.linalg.norm(x, 'max')", "CD0456", "a matrix has no norm of order 'max'"),
    ("np.linalg.norm(t, 1)", "CD0456", "over one or two axes, and is asked over 3 of f64[2, 3, 4]"),
    ("np.linalg.norm(t, axis=(0, 1, 2))", "CD0456", "is asked over 3 of f64[2, 3, 4]"),
    ("np.linalg.norm(x, axis=(1, -1))", "CD0446", "axis 1 is given twice"),
)


@pytest.mark.parametrize(("body", "code", "message"), REFUSED)
def test_what_numpy_refuses_is_refused(body: str, code: str, message: str) -> None:
    assert_refused_as_by_numpy(body, code, message)


def test_the_points_of_dynamic_sizes_are_checked(backend: str) -> None:
    text = "def f(y, x, axis):\n    return np.trapezoid(y, x, axis=axis)"
    integral = pe.cd_from_source(text, globals={"np": np}, backend=backend)
    for n in (3, 4, 5, 6, 7):
        x, y = np.arange(float(n)), np.ones((2, n))
        np.testing.assert_array_equal(integral(y, x, -1), np.trapezoid(y, x))
    for n in (8, 10, 3):
        with pytest.raises(ValueError, match=f"of `y` in `trapezoid`: sizes {n} and 9 differ"):
            integral(np.ones((2, 9)), np.arange(float(n)), -1)


@pytest.mark.parametrize("order", ["1", "-1", "np.inf", "-np.inf", "2", "3", "0", "None", "-2"])
@pytest.mark.parametrize("axis", ["(0, 1)", "(1, 0)", "(0, 2)", "None", "1"])
def test_a_vector_norm_over_axes_is_of_their_elements(order: str, axis: str) -> None:
    x = np.arange(1.0, 25.0).reshape(2, 3, 4) * np.array([1, -1, 1, 1])
    call = f"np.linalg.vector_norm(a, axis={axis}, ord={order}"
    assert_as_plain(f"{call}), {call}, keepdims=True)", x)


@pytest.mark.parametrize("order", ["1", "-1", "np.inf", "-np.inf"])
def test_a_matrix_norm_keeps_the_axes(order: str) -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    assert_as_plain(f"np.linalg.norm(a, {order}, (2, 0), keepdims=True)", x)


def test_a_vector_norm_has_no_named_order() -> None:
    call = "np.linalg.vector_norm(a, ord='fro', axis=(0, 1))"
    assert_refused("CD0456", call, np.ones((2, 2)))


@pytest.mark.parametrize("dtype", ["np.float32", "np.int8"])
@pytest.mark.parametrize("name", ["logical_and", "logical_or"])
def test_a_scan_of_truths_has_no_other_type(name: str, dtype: str) -> None:
    assert_refused("CD0404", f"np.{name}.accumulate(a, dtype={dtype})", np.array([2, 0, 3]))
    assert_as_plain(f"np.{name}.accumulate(a), np.maximum.accumulate(a, dtype=float)", [2, 0, 3])


def test_a_covariance_has_a_whole_number_of_degrees_of_freedom() -> None:
    assert_refused("CD0444", "np.cov(a, ddof=0.5)", np.eye(3))
    assert_as_plain("np.cov(a, ddof=1.0)", np.array([[1.0, 2, 4], [2, 1, 0]]))


@pytest.mark.parametrize("factors", [np.array([-0.0]), np.array([]), np.array([1, 2])])
def test_a_polynomial_begins_with_zeros(factors: np.ndarray) -> None:
    assert_as_plain("np.polyval(a, b), np.polyval(a, -1.0)", factors, np.array([-1.0, np.inf]))
