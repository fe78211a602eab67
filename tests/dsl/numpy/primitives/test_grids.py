"""Grids of coordinates."""

from __future__ import annotations

import pytest

from ...elaborate.numpy_oracle import assert_same_as_numpy

EXPRESSIONS = (
    "np.mgrid[0:3, 0:4]",
    "np.mgrid[-2:3, 0:1:0.25]",
    "np.mgrid[0:5]",
    "np.mgrid[0:1:5j]",
    "np.mgrid[0:1:n * 1j, 0:2:3j]",
    "np.ogrid[v[0]:1:n * 1j]",
    "np.mgrid[0:1:(n // n) * 1j, 0:2:3j]",
    "np.r_[0:1:complex(0, n), v]",
    "np.ogrid[0:3, 0:4]",
    "np.meshgrid(v, w)",
    "np.meshgrid(v, w, indexing='ij')",
    "np.meshgrid(v, w, sparse=True)",
    "np.indices((2, 3))",
    "np.r_[v, w]",
    "np.c_[v, v]",
)


@pytest.mark.parametrize("body", EXPRESSIONS)
def test_it_is_what_numpy_says(body: str) -> None:
    assert_same_as_numpy(body)


AS_IN_NUMPY = (
    "np.meshgrid(x, v), np.meshgrid(2.0, v), np.meshgrid(x, v, indexing='ij', sparse=True)",
    "np.indices(()), np.indices((), sparse=True), np.indices((), np.float32)",
)


@pytest.mark.parametrize("body", AS_IN_NUMPY)
def test_arguments_that_numpy_takes_are_taken(body: str) -> None:
    assert_same_as_numpy(body)
