"""What runs along an axis, norms."""

from __future__ import annotations

import pytest

from .numpy_oracle import assert_same_as_numpy

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
    "np.gradient(v)",
    "np.gradient(x, axis=0)",
    "np.gradient(x)",
    "np.gradient(v, 0.5)",
    "np.convolve(v, w)",
    "np.convolve(w, v, 'same')",
    "np.convolve(w, v, 'valid')",
    "np.convolve(v, w, 'same')",
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
    "np.correlate(v, w, 'full')",
    "np.polyval([1.0, 2.0, 3.0], x)",
)


@pytest.mark.parametrize("body", EXPRESSIONS)
def test_it_is_what_numpy_says(body: str) -> None:
    assert_same_as_numpy(body)
