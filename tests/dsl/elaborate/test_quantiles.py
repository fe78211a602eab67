"""Order statistics."""

from __future__ import annotations

import pytest

from .numpy_oracle import assert_same_as_numpy

EXPRESSIONS = (
    "np.median(v)",
    "np.median(w)",
    "np.median(x, axis=0)",
    "np.median(x)",
    "np.median(nn)",
    "np.median(x, axis=1, keepdims=True)",
    "np.quantile(p, 0.3)",
    "np.percentile(x, 80, axis=0)",
    "np.quantile(p, [0.25, 0.5])",
    "np.median(x + i)",
)


@pytest.mark.parametrize("body", EXPRESSIONS)
def test_it_is_what_numpy_says(body: str) -> None:
    assert_same_as_numpy(body)
