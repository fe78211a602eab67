"""Means, variances, averages."""

from __future__ import annotations

import pytest

from .numpy_oracle import assert_same_as_numpy

EXPRESSIONS = (
    "np.nanmax(nn)",
    "np.nansum(nn)",
    "np.nanmean(nn)",
    "np.nanmin(x, axis=0)",
    "np.mean(x)",
    "i.mean(axis=0)",
    "b.mean()",
    "h.mean()",
    "y.mean(axis=(0, 1))",
    "z.mean(axis=0)",
    "np.var(x, axis=0)",
    "np.var(z)",
    "np.std(i)",
    "y.std(axis=1, ddof=1, keepdims=True)",
    "x.std()",
    "np.ptp(x, axis=0)",
    "np.average(x)",
    "np.average(x, axis=1, weights=v)",
    "np.average(v, weights=v)",
    "np.mean(i, dtype=np.float32)",
    "x[b].mean()",
    "x[b].std()",
    "(x - x.mean(0)) / x.std(0)",
    "np.mean(nn[1:2])",
    "np.var(h)",
    "np.std(y, axis=0)",
    "v.mean(), v.std(), v.var(ddof=1)",
    "np.abs(z).mean()",
    "z.mean()",
    "np.nanstd(nn)",
    "np.nanvar(nn)",
)


@pytest.mark.parametrize("body", EXPRESSIONS)
def test_it_is_what_numpy_says(body: str) -> None:
    assert_same_as_numpy(body)
