"""Grids of coordinates."""

from __future__ import annotations

import numpy as np
import pytest

from ...elaborate.numpy_oracle import assert_same_as_numpy
from ...elaborate.strict_oracle import assert_as_plain

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


@pytest.mark.parametrize("base", [np.array([2.0, 3.0]), np.ones((2, 2), "f4"), 2.5], ids=repr)
def test_bases_have_axes_behind_that_of_the_exponents(base: object) -> None:
    assert_as_plain("np.logspace(0, 1, 3, base=a), np.logspace(0, 1, 2, base=[2, 3])", base)


@pytest.mark.parametrize("ends", [(0.0, 5e-324), (np.float32(0), np.float32(1e-45)), (1.0, 1.0)])
def test_points_whose_step_underflows(ends: tuple[float, float]) -> None:
    assert_as_plain("np.linspace(a, b, 4), np.linspace(a, b, 4, False)", *ends)
    assert_as_plain("np.linspace(0, 5e-324, 4), np.linspace(0, a, 3, retstep=True)", *ends)
