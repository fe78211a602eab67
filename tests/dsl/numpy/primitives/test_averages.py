"""Means, variances, averages."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import plusequals as pe

from ...elaborate.numpy_oracle import assert_same_as_numpy
from ...elaborate.strict_oracle import assert_as_plain, assert_refused

EXPRESSIONS = (
    "np.nanmax(nn)",
    "np.nansum(nn)",
    "np.nanmean(nn)",
    "np.nanmin(x, axis=0)",
    "np.nanmax(nn, keepdims=True)",
    "np.nanmin(h)",
    "np.nanmax(i, axis=1)",
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
    "np.nansum(nn, dtype=np.float32), np.nansum(nn, initial=2), np.nanprod(nn, 0, where=nn > 0)",
    "np.nansum(i, where=b), np.nanprod(h, initial=0.5, keepdims=True), np.nanmean(h, dtype='f8')",
    "np.nanmax(nn, initial=1.5), np.nanmin(nn, axis=0, where=nn > 1, initial=9)",
    "np.nanmean(nn, where=nn != 1), np.nanvar(nn, where=nn != 1), np.nanstd(nn, correction=1)",
    "np.nanvar(h, dtype=np.float64), np.nanstd(x, 0, np.float32)",
    "np.average(x, returned=True), np.average(x, 1, v, returned=True)",
    "np.array_equal(nn, nn), np.array_equal(nn, nn, equal_nan=True), np.array_equal(i, i, True)",
    "np.nanstd(nn)",
    "np.nanvar(nn)",
    "np.var(x, dtype=complex), np.std(i, dtype=complex), np.var(x, 0, complex, ddof=1)",
    "np.var(z, dtype=complex), zf.std(dtype=np.complex64)",
    "np.var(x * 1e-4 + 1, dtype=np.float32), np.var(k, dtype=np.float32), np.var(b, dtype='f8')",
)


@pytest.mark.parametrize("body", EXPRESSIONS)
def test_it_is_what_numpy_says(body: str) -> None:
    assert_same_as_numpy(body)


@pytest.mark.parametrize("dtype", ["f2", "f8"])
@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("name", ["nanmax", "nanmin"])
def test_extremes_that_skip_nan_are_nan_where_there_is_nothing_else(
    name: str, axis: int | None, dtype: str
) -> None:
    made = pe.cd_from_source(f"def f(x):\n    return np.{name}(x, {axis})\n", {"np": np})
    rng = np.random.default_rng(3)
    for shape in ((3, 5), (40, 33)):
        some = (rng.random(shape) - 0.5).astype(dtype)
        gaps = np.where(rng.random(shape) < 0.4, np.nan, some).astype(dtype)
        gaps[-1] = gaps[:, 0] = np.nan
        for x in (some, gaps, np.full_like(some, np.nan), np.full_like(some, -np.inf)):
            with warnings.catch_warnings(action="ignore"):
                expected = getattr(np, name)(x, axis)
            found = made(x)
            np.testing.assert_array_equal(found, expected)
            assert found.dtype == expected.dtype


def test_means_in_integers_are_truncated() -> None:
    scope: dict[str, Any] = {"np": np}
    text = """
def f(i):
    return np.mean(i, dtype=np.int32), i.mean(0, dtype=int), np.mean(i * 1.5, 1, int)
"""
    i = np.arange(-6, 6).reshape(3, 4)
    plain = dict(scope)
    exec(text, plain)
    found = pe.cd_from_source(text, scope, backend="numpy")(i)
    for one, other in zip(found, plain["f"](i), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("call", "what"),
    [("np.std(i, dtype=np.int32)", "variance"), ("np.mean(i, dtype=bool)", "mean")],
)
def test_types_without_means_are_refused(call: str, what: str) -> None:
    with pytest.raises(pe.CdError, match=f"CD0404.*the {what} of"):
        pe.cd_from_source(f"def f(i): return {call}", {"np": np}, backend="numpy")(np.arange(4))


_SPARSE = np.array([[1.0, np.nan], [np.nan, np.nan], [3.0, 4.0]])


@pytest.mark.parametrize("ddof", [0, 1, 2, 3, 1.5, -1])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_without_degrees_of_freedom_there_is_no_variance(ddof: float, axis: int | None) -> None:
    skipping = f"np.nanvar(a, ddof={ddof}, axis={axis}), np.nanstd(a, ddof={ddof}, axis={axis})"
    assert_as_plain(f"{skipping}, np.var(a, ddof={ddof}, axis={axis})", _SPARSE)


def test_degrees_of_freedom_have_one_name() -> None:
    for name in ("var", "std"):
        assert_refused("CD0440", f"np.{name}(a, ddof=1, correction=1)", np.arange(3.0))
        assert_as_plain(f"np.{name}(a, ddof=0, correction=1)", np.arange(3.0))
