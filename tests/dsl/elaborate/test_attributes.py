"""Attributes of arrays."""

from __future__ import annotations

import pytest

from .numpy_oracle import assert_same_as_numpy

EXPRESSIONS = (
    "x[x > 0].size",
    "x.shape",
    "x.ndim",
    "x.size",
    "x.nbytes",
    "x.dtype == np.float64",
    "np.sum(x, dtype=x.dtype)",
    "tuple(x.shape), list(x.shape)",
    "x.dtype.name",
    "x.dtype.itemsize, x.itemsize",
    "np.shape(x), np.ndim(x), np.size(x)",
    "np.isscalar(s)",
    "np.iscomplexobj(z), np.isrealobj(x)",
    "np.result_type(x, y) == np.float64",
)


@pytest.mark.parametrize("body", EXPRESSIONS)
def test_it_is_what_numpy_says(body: str) -> None:
    assert_same_as_numpy(body)
