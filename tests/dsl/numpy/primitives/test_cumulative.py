"""What runs along an axis, norms."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe

from ...elaborate.numpy_oracle import assert_same_as_numpy, compiled

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
    "np.gradient(v)",
    "np.gradient(x, axis=0)",
    "np.gradient(x)",
    "np.gradient(v, 0.5)",
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
