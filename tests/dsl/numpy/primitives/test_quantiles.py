"""Order statistics."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe

from ...elaborate.numpy_oracle import assert_same_as_numpy, compiled
from ...elaborate.strict_oracle import assert_as_plain

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
    "np.quantile(y, [0.25, 0.5])",
    "np.percentile(y, (10, 50), axis=1)",
    "np.quantile(h, [0.3, 0.9], axis=0)",
    "np.quantile(y, 0.3)",
    "np.percentile(h, 50)",
    "np.quantile(w, np.float64(0.3))",
    "np.quantile(i, [0.1, 0.5])",
    "np.median(t, axis=(0, 2)), np.median(t, axis=(2, 0), keepdims=True)",
    "np.median(t[:, ::-1, ::2], axis=(-1, 0)), np.median(t, axis=(1,))",
    "np.percentile(t, 30, axis=(0, 1)), np.quantile(t, [0.1, 0.5], axis=(1, 2), keepdims=True)",
    "np.median(nn.reshape(1, 5), axis=(0, 1))",
    "np.quantile(x, [0.9, 0.1, 0.5, 0.0, 1.0, 0.3])",
    "np.quantile(p, np.array(0.3)), np.percentile(y, np.array(30.0), axis=0)",
    "np.quantile(i, np.array(1)), np.quantile(x, np.array(s / 5), axis=1, keepdims=True)",
)


@pytest.mark.parametrize("body", EXPRESSIONS)
def test_it_is_what_numpy_says(body: str) -> None:
    assert_same_as_numpy(body)


@pytest.mark.parametrize("size", [(5, 7), (1, 1), (4, 6)])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4"])
def test_shares_may_be_known_to_the_run_only(dtype: str, size: tuple[int, int]) -> None:
    bodies = (
        "np.quantile(x, [s / 2, 1 - s / 2])", "np.percentile(x, 100 * s)", "np.quantile(x, q, 1)",
        "np.quantile(x, s, axis=0, keepdims=True)", "np.percentile(x, (100 * s, 50), axis=(0, 1))",
        "np.percentile(x, q * 100, axis=(0, 1), keepdims=True)", "np.quantile(x, q[1])",
    )  # fmt: skip
    text = f"lambda x, s, q: ({', '.join(bodies)})"
    x = (9 * np.random.default_rng(3).standard_normal(size)).astype(dtype)
    if size == (4, 6) and dtype != "i4":
        x[1, 2] = np.nan
    given = x, 0.3, np.array([0.0, 0.25, 1.0])
    found = pe.cd_from_source(text, {"np": np}, backend="numpy")(*given)
    for mine, wanted in zip(found, eval(text)(*given), strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-6 if dtype == "f4" else 0)
        assert np.isnan(wanted).any() or mine.dtype == wanted.dtype


def test_shares_of_the_run_are_from_nothing_to_all() -> None:
    function = pe.cd_from_source("lambda x, s: np.quantile(x, s)", {"np": np}, backend="numpy")
    for share in (1.5, -0.1, np.nan):
        with pytest.raises(ValueError, match=f"CD0442.*from 0 to 1, and is given {share}"):
            function(np.ones(3), share)
    with pytest.raises(pe.CdError, match=r"numbers along one axis, and is f64\[1, 3\]"):
        function(np.ones(3), np.ones((1, 3)))


SHARES = (
    "np.float32(0.3)", "np.float16(0.3)", "np.float64(0.3)", "np.int64(1)", "True", "[0, 1]",
    "[1, 0.5]", "[np.float32(0.3)]", "[np.float32(0.3), 0.5]", "[np.float16(0.25), s4]", "k",
    "s4", "s2", "q4", "q2", "q8",
)  # fmt: skip


@pytest.mark.parametrize("dtype", "i1 i2 i4 i8 u2 u8 f2 f4 f8".split())
def test_the_type_of_a_share_goes_into_that_of_the_result(dtype: str) -> None:
    x = np.random.default_rng(5).integers(0, 60, (2, 90)).astype(dtype)
    x[0, 0] = 100
    bodies = [f"np.{name}(x, {q}, axis={axis})" for q in SHARES for name, axis in
              (("quantile", None), ("quantile", 1), ("percentile", 0))]  # fmt: skip
    bodies += ["np.quantile(x, q1)", "np.quantile(x, q1, axis=0)"]
    text = f"lambda x, k, s4, s2, q4, q2, q8, q1: ({', '.join(bodies)})"
    line = np.array([0.1, 0.3, 1.0])
    given = (x, 1, np.float32(0.3), np.float16(0.3), line.astype("f4"), line.astype("f2"), line,
             np.array([0, 1], np.int16))  # fmt: skip
    found = pe.cd_from_source(text, {"np": np}, backend="numpy")(*given)
    for body, mine, wanted in zip(bodies, found, eval(text)(*given), strict=True):
        assert type(mine) is type(wanted) and mine.dtype == wanted.dtype, body
        near = 2e-3 if wanted.dtype == "f2" else 1e-6
        np.testing.assert_allclose(mine, wanted, rtol=near, err_msg=body)


def test_elements_of_64_bits_are_found_as_they_are() -> None:
    x, q = np.array([2**62 + 1, 5, 2**62]), np.array([1, 0])
    text = "lambda x, q: (np.quantile(x, 1), np.quantile(x, q))"
    first, both = pe.cd_from_source(text, {"np": np}, backend="numpy")(x, q)
    assert first == 2**62 + 1 and both.tolist() == [2**62 + 1, 5]


def test_a_list_outside_the_function_is_known() -> None:
    with pe.override(backend="numpy"):
        found = pe.cd_from_source(
            "def f(x):\n    return np.quantile(x, Q)",
            globals={"np": np, "Q": np.array([0.25, 0.75]).tolist()},
        )(np.arange(5.0))
    np.testing.assert_array_equal(found, [1.0, 3.0])


@pytest.mark.parametrize("size", [128, 5001])
def test_long_rows_are_parted(size: int) -> None:
    text = "lambda x: (np.median(x), np.quantile(x, 0.3), np.median(np.array([x, x]), 1))"
    f = pe.cd_from_source(text, {"np": np}, backend="cc")
    x = np.random.default_rng(size).standard_normal(size)
    assert "select_rows" in str(f.explain(x))
    for last in (1.0, np.inf, np.nan):
        x[size // 5] = last
        expected = np.median(x), np.quantile(x, 0.3), np.median([x, x], 1)
        with pe.override(optimize=1):  # it is a long text
            results = f(x)
        for found, wanted in zip(results, expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("shape", [(1,), (7,), (9, 30)])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4"])
def test_of_what_a_mask_selects(dtype: str, shape: tuple[int, ...], backend: str) -> None:
    bodies = (
        "np.median(x[m])", "np.percentile(x[m], 90)", "np.quantile(2 * x[m] + 1, [0.05, q])",
        "np.quantile(x[m], q, keepdims=True)", "np.median(x[x != 90], axis=0)",
    )  # fmt: skip
    text = f"lambda x, m, q: ({', '.join(bodies)})"
    f = pe.cd_from_source(f"def f(x, m, q):\n    return ({', '.join(bodies)})", {"np": np}, backend)
    rng = np.random.default_rng(1)
    for share in (0.3, 1.0):
        x, m = rng.integers(0, 90, shape).astype(dtype), rng.random(shape) < share
        m.flat[0] = True
        for missing in (False, dtype != "i4"):
            x.flat[0] = np.nan if missing else 3
            with np.errstate(all="ignore"):
                found, expected = f(x, m, 0.7), eval(text)(x, m, 0.7)
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-6)
                assert np.asarray(one).dtype == np.asarray(other).dtype
                assert np.shape(one) == np.shape(other)
    with pytest.raises(pe.CdError, match="of nothing has no value"):
        f(x, np.zeros(shape, bool), 0.7)


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "u4", "u8", "f2"])
def test_the_middle_of_what_a_mask_selects_in_its_own_type(dtype: str) -> None:
    f = pe.cd_from_source("def f(x, m):\n    return np.median(x[m])", {"np": np})
    rng = np.random.default_rng(2)
    x, m = (90 * rng.random(200)).astype(dtype), rng.random(200) < 0.6
    if dtype[0] in "iu":
        x[::3] = np.iinfo(dtype).max
    found, expected = f(x, m), np.median(x[m])
    np.testing.assert_allclose(found, expected, rtol=1e-3 if dtype == "f2" else 1e-12)
    assert type(found) is type(expected)


@pytest.mark.parametrize("dtype", ["i1", "i8", "u8", "f2", "f4"])
def test_the_type_of_a_share_goes_into_that_of_what_a_mask_selects(dtype: str) -> None:
    shares = ("0.3", "1", "True", "[0, 1]", "k", "s4", "np.float16(0.3)", "[1, 0.5]", "q4", "q1")
    bodies = [f"np.quantile(x[m], {q})" for q in shares]
    bodies += [f"np.percentile(x[m], {q})" for q in ("30", "[10, 50]", "k", "s4", "q4")]
    x = np.random.default_rng(3).integers(0, 90, (7, 15)).astype(dtype)
    given = (x, x > 20, 1, np.float32(0.3), np.array([0.1, 0.3, 1.0], "f4"), np.array([1, 0]))
    text = f"lambda x, m, k, s4, q4, q1: ({', '.join(bodies)})"
    found = pe.cd_from_source(text, {"np": np}, backend="numpy")(*given)
    for body, mine, wanted in zip(bodies, found, eval(text)(*given), strict=True):
        assert type(mine) is type(wanted) and mine.dtype == wanted.dtype, body
        near = 2e-3 if wanted.dtype == "f2" else 1e-6
        np.testing.assert_allclose(mine, wanted, rtol=near, err_msg=body)


def test_elements_of_64_bits_that_a_mask_selects_are_found_as_they_are() -> None:
    x = np.array([2**62 + 1, 5, 2**62, 2**63 - 1, 4])
    text = "lambda x, m: (np.quantile(x[m], 1), np.quantile(x[m], [1, 0], keepdims=True))"
    first, both = pe.cd_from_source(text, {"np": np}, backend="numpy")(x, (x > 4) & (x < 2**63 - 1))
    assert first == 2**62 + 1 and both.tolist() == [[2**62 + 1], [5]]


def test_several_shares_part_long_rows_once() -> None:
    f = pe.cd_from_source("lambda x: np.percentile(x, [5, 50, 95])", {"np": np}, backend="cc")
    x = np.random.default_rng(4).standard_normal(5001)
    np.testing.assert_array_equal(f(x), np.percentile(x, [5, 50, 95]))
    text = str(f.explain(x))
    assert "select_rows" in text and "parted_2" not in text


def test_shares_along_two_axes_are_refused() -> None:
    with pytest.raises(pe.CdError, match="CD0443.*`q` has to be a number, or numbers along one"):
        compiled("return np.percentile(x, [[1, 2], [3, 4]])", np.ones(4))


_INF, _NAN = np.inf, np.nan
_MIDDLES = (
    [1e308, 1.2e308, 1.5e308], [1.7e308], [1e308, 1.5e308], [1.0, _INF, _INF], [1.0, 2.0, _INF],
    [-_INF, -_INF, 3.0], [-0.0], [-0.0, -0.0], [-0.0, -0.0, -0.0], [1.0, _NAN, 3.0], [-_INF, _INF],
    [3.0, 1.0, 2.0],
)  # fmt: skip


@pytest.mark.parametrize("values", _MIDDLES, ids=repr)
@pytest.mark.parametrize(
    "body",
    [
        "np.median(a), np.quantile(a, 0.5), np.median(a, axis=0, keepdims=True)",
        "np.percentile(a, 50), np.quantile(a, [0.5, 1.0])",
        "np.median(a[a == a])",
    ],
)
def test_a_middle_is_that_of_numpy_to_the_bit(body: str, values: list[float]) -> None:
    assert_as_plain(body, np.array(values))


def test_middles_of_other_types_and_ranks() -> None:
    assert_as_plain("np.median(a), np.quantile(a, 0.5)", np.array([1e38, 2e38, 3e38], "f4"))
    assert_as_plain("np.median(a)", np.array(-0.0))
    assert_as_plain("np.median(a, axis=1)", np.array([[1e308, 1.2e308, 1.5e308], [-0.0, -0.0, 5]]))
    assert_as_plain("np.quantile(a, 0.5, axis=0)", np.array([[1.0, _INF], [_INF, 4], [2.0, _INF]]))


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_the_middle_of_a_length_known_at_run_time_only(count: int) -> None:
    """A slice of a length that is read from the data."""
    x = np.array([-0.0, _INF, 1.6e308, 1.7e308])
    body = "n = int(b[0])\nc = a[:n] + 0.0\nnp.median(c), np.quantile(c, 0.5)"
    assert_as_plain(body, x, np.array([count]))
