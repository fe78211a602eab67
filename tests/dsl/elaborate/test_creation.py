"""Arrays out of nothing, and copies."""

from __future__ import annotations

import pytest

from .numpy_oracle import assert_same_as_numpy

EXPRESSIONS = (
    "np.eye(3)",
    "np.eye(n, 4, 1)",
    "np.identity(4, dtype=np.float32)",
    "np.tri(3, 4)",
    "np.zeros(3)",
    "np.zeros((n, 2), dtype=int)",
    "np.ones((2, 3), np.float32)",
    "np.zeros_like(x)",
    "np.ones_like(i)",
    "np.full((2, 2), 7)",
    "np.full(3, s)",
    "np.full(3, 2.5, dtype=np.float32)",
    "np.full_like(i, 2.7)",
    "np.array([1, 2, 3])",
    "np.array([[1, 2.5], [3, 4]])",
    "np.array(x)",
    "np.array([s, 2.0], dtype=np.float32)",
    "np.array([v[0], w[0]])",
    "np.asarray(x)",
    "np.asarray(x, dtype=np.float32)",
    "x.copy()",
    "np.arange(5)",
    "np.arange(1, 10, 2)",
    "np.arange(10, 0, -3)",
    "np.arange(n)",
    "np.arange(0, 1, 0.1)",
    "np.arange(3.0)",
    "np.arange(4, dtype=np.float32)",
    "np.linspace(0, 1, 5)",
    "np.linspace(0, s, n)",
    "np.linspace(1, 2, 4, endpoint=False)",
    "np.linspace(0, 1, 1)",
    "np.linspace(0, 1, 4, retstep=True)",
    "np.linspace(0, 10, 5, dtype=int)",
    "np.finfo(np.float32).eps",
    "np.finfo(x.dtype).max",
    "v.item(1)",
    "v.fill(3.0) or v",
    "np.zeros(3, dtype=x.dtype) + np.ones(3, dtype=v.dtype)",
    "np.arange(n) * 2.0",
    "np.arange(n)[::-1]",
    "np.arange(2, n + 2)",
    "np.linspace(s, n, 4)",
    "np.full((2, 3), np.inf)",
    "np.full(3, True)",
    "np.ones(3, dtype=bool)",
    "np.zeros((2, 2), dtype=complex)",
    "np.eye(3)[1]",
    "np.array([v, v * 2])",
    "np.array([1, 2, 3], dtype=np.int8)",
    "np.array([True, False])",
    "np.array([1, 2j])",
    "np.array([])",
    "np.array(3.5)",
    "np.array((v[0], 1))",
    "np.logspace(0, 2, 5)",
    "np.ones_like(x, dtype=int)",
    "np.zeros_like(x, shape=(2, 2))",
)


@pytest.mark.parametrize("body", EXPRESSIONS)
def test_it_is_what_numpy_says(body: str) -> None:
    assert_same_as_numpy(body)
