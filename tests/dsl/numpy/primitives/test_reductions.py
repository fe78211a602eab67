"""Reductions over axes."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.base import settings

from ...elaborate.numpy_oracle import assert_refused_as_by_numpy, assert_same_as_numpy, compiled
from ...elaborate.strict_oracle import assert_as_plain

EXPRESSIONS = (
    "np.sum(2.5, axis=0), np.prod(v[0], axis=-1), np.max(n, axis=0), np.any(s, axis=0)",
    "np.argmax(v[1], axis=-1), np.count_nonzero(s, axis=0), np.ptp(v[0], axis=0)",
    "np.nansum(v[0], axis=0), np.nanmax(s, axis=-1), np.nanmean(s, axis=0), np.cumsum(s, axis=0)",
    "np.fmax(x, y)",
    "np.allclose(x, x)",
    "np.sum(x)",
    "x.sum(axis=0)",
    "x.sum(1, keepdims=True)",
    "k.sum()",
    "b.sum(axis=1)",
    "u.sum()",
    "h.sum()",
    "h.sum(axis=0)",
    "np.sum(t, axis=(0, 2))",
    "np.sum(t, axis=(0, -1), keepdims=True)",
    "np.prod(x, axis=-1)",
    "np.prod(k)",
    "x.max()",
    "np.max(x, axis=0)",
    "np.amin(u)",
    "i.min(axis=1)",
    "b.max()",
    "np.max(nn)",
    "np.any(x > 1, axis=0)",
    "np.all(b)",
    "(x > 5).any()",
    "np.argmax(x)",
    "np.argmin(x, axis=0)",
    "x.argmax(axis=1, keepdims=True)",
    "np.argmax(nn)",
    "np.count_nonzero(i)",
    "np.count_nonzero(b, axis=0)",
    "np.array_equal(x, x)",
    "np.array_equal(x, v)",
    "np.sum(x, dtype=np.float32)",
    "np.sum(x, initial=5.0)",
    "np.max(x, initial=1.0)",
    "np.max(x > 0, initial=2)",
    "np.min(x.astype(np.int8), initial=-2.5)",
    "np.sum(x.astype(np.float32), initial=np.float64(0.5))",
    "np.allclose(x, x)",
    "np.array_equal(x, x)",
    "x[b].sum()",
    "x[b].max()",
    "x / x.sum(axis=1, keepdims=True)",
    "np.exp(x - x.max(axis=1)[:, None])",
    "np.sum(np.sum(v[:, None] * x.T**2))",
    "np.sum(x[:0])",
    "np.prod(x[:0])",
    "np.max(h)",
    "np.argmax(h, axis=1)",
    "(h * 2).sum(axis=1)",
    "np.sum(u, axis=0)",
    "np.prod(b, axis=0)",
    "np.sum(t, axis=None, keepdims=True)",
    "np.max(t, axis=(0, 2))",
    "np.min(t, axis=(1, 2), keepdims=True)",
    "np.argmin(t, axis=1)",
    "x.sum(axis=0, dtype=np.float32)",
    "x.max(axis=1, keepdims=True)",
    "x.argmin()",
    "x.any(axis=1)",
    "x.prod()",
    "z.real.sum() + z.imag.max()",
    "z.sum(axis=0)",
    "np.prod(zf)",
    "np.count_nonzero(x > 0)",
)


@pytest.mark.parametrize("body", EXPRESSIONS)
def test_it_is_what_numpy_says(body: str) -> None:
    assert_same_as_numpy(body)


@pytest.mark.parametrize(
    "body", ["np.max(x[:0])", "np.argmin(v[:0])", "x[x > 9].max()", "np.min(x[:, 2:1], axis=1)"]
)
def test_extremes_of_nothing_are_errors(body: str) -> None:
    with pytest.raises(pe.CdError, match="of nothing") as caught:
        compiled(body)
    assert isinstance(caught.value, ValueError)


def test_extremes_that_start_from_a_number_may_be_of_nothing() -> None:
    assert_same_as_numpy("np.max(k[:0], initial=-3)")
    assert_same_as_numpy("np.min(k[:0], initial=100), v[:0].max(initial=2)")
    assert_same_as_numpy("np.max(k[:, 2:1], axis=1, initial=7)")


def test_extremes_of_nothing_are_told_where_they_are_computed() -> None:
    made = pe.cd_from_source(
        "def f(x, c):\n"
        "    if c[0] > 0:\n        return x.max() + np.argmin(x)\n"
        "    for n in range(int(c[1])):\n        c[0] = np.min(x[n:])\n"
        "    return 7.0\n",
        {"np": np},
    )
    for size in range(6):  # sizes are run-time sizes from the fourth on
        assert made(np.zeros(size), np.zeros(2)) == 7
    with pytest.raises(pe.CdError, match="CD0459.*`max` of nothing"):
        made(np.zeros(0), np.ones(2))
    with pytest.raises(pe.CdError, match="CD0459.*`min` of nothing"):
        made(np.zeros(0), np.array([0.0, 1]))


@pytest.mark.parametrize("body", ["np.min(z)", "np.argmax(z)"])
def test_complex_numbers_have_no_extremes(body: str) -> None:
    with pytest.raises(pe.CdError, match="complex"):
        compiled(body)


def test_half_floats_are_compared_in_the_type_they_are_computed_in(backend: str) -> None:
    x = np.array([1, 7, np.nan, 9], np.float16)
    made = pe.cd_from_source("def f(x):\n    return np.argmax(x), x.argmin(0)\n", {"np": np})
    with settings.override(backend=backend, verify=True):
        assert made(x) == (2, 2)
        assert made(x[:2]) == (1, 0)


@pytest.mark.parametrize("function", ["np.max(a, initial={})", "np.sum(a, None, {}, initial={})"])
@pytest.mark.parametrize("initial", [np.int64(300), np.int32(-300), np.uint16(300)], ids=repr)
def test_an_integer_of_numpy_starts_no_reduction_that_does_not_hold_it(
    function: str, initial: np.generic
) -> None:
    small, count = np.array([1, 2], np.int8), function.count("{}")
    read, known = (("a.dtype", given)[-count:] for given in ("b", repr(initial)))
    assert_as_plain(function.format(*read), small, type(initial)(7))
    assert_as_plain(function.format(*read), small.view("u1"), initial)
    for given in (read, known):
        text = f"def f(a, b):\n    return {function.format(*given)}"
        with pytest.raises(pe.CdError, match="CD046"):
            pe.cd_from_source(text, {"np": np}, backend="numpy")(small, initial)


AS_IN_NUMPY = ("np.sum(x, initial=np.array(2.0)), np.max(v, initial=v[0])",)


@pytest.mark.parametrize("body", AS_IN_NUMPY)
def test_arguments_that_numpy_takes_are_taken(body: str) -> None:
    assert_same_as_numpy(body)


REFUSED = (
    (
        "np.sum(x, initial=v)",
        "CD0452",
        "`initial` of a reduction is one number, and is given f64[4]",
    ),
    ("np.max(x, initial=[1.0])", "CD0452", "and is given a list of 1"),
    ("np.sum(x, initial=np)", "CD0402", "is not an array"),
)


@pytest.mark.parametrize(("body", "code", "message"), REFUSED)
def test_what_numpy_refuses_is_refused(body: str, code: str, message: str) -> None:
    assert_refused_as_by_numpy(body, code, message)


SELECTED = (
    "np.sum(x, where=m)", "x.sum(where=m, axis=0)", "x.sum(axis=1, where=r, keepdims=True)",
    "np.prod(x, where=r)", "x.max(where=m, initial=1)", "np.min(x, axis=0, where=m, initial=3)",
    "x.mean(where=m)", "np.mean(x, axis=1, where=r)", "np.std(x, where=m)", "x.max(where=m)",
    "x.var(axis=0, where=m, ddof=1)", "np.any(x, where=m)", "x.all(axis=1, where=m)",
    "np.sum(x, where=True)", "np.sum(x, where=False)", "x.sum(where=m[:, :1])",
    "np.sum(x, axis=0, where=m, initial=2)", "np.sum(x[0], where=m)", "np.mean(x, where=False)",
    "np.sum(x, where=[True, False, True, True, False])", "np.sum(x, where=m.astype(int))",
)  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "u1", "?"])
@pytest.mark.parametrize("text", SELECTED)
def test_where_selects_what_is_reduced(text: str, dtype: str, backend: str) -> None:
    rng = np.random.default_rng(3)
    x = rng.integers(0, 9, (4, 5)).astype(dtype)
    m, r = rng.random((4, 5)) > 0.5, rng.random(5) > 0.5
    names = {"np": np}
    function = pe.cd_from_source(f"lambda x, m, r: {text}", names, backend=backend)
    try:
        expected = eval(f"lambda x, m, r: {text}", names)(x, m, r)
    except (TypeError, ValueError):
        with pytest.raises((TypeError, ValueError)):
            function(x, m, r)
        return
    got = function(x, m, r)
    assert type(got) is type(expected) and got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=1e-6)
