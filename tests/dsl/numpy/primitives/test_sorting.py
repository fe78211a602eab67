"""Order and counts."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe

from ...elaborate.numpy_oracle import assert_refused_as_by_numpy, assert_same_as_numpy, compiled
from ...elaborate.strict_oracle import assert_as_plain, assert_refused

EXPRESSIONS = (
    "np.sort(v)",
    "np.sort(x)",
    "np.sort(x, axis=0)",
    "np.sort(t, axis=1)",
    "np.sort(t)",
    "np.sort(nn)",
    "np.sort(i, axis=None)",
    "np.sort(u)",
    "np.argsort(v)",
    "np.argsort(x, axis=0)",
    "np.argsort(i, kind='stable')",
    "np.argsort(nn)",
    "v.sort() or v",
    "x.sort() or x",
    "t.sort(axis=0) or t",
    "x.sort(axis=0) or x",
    "v.argsort()",
    "np.searchsorted(np.sort(p), v)",
    "np.searchsorted(np.sort(p), x, side='right')",
    "np.searchsorted(np.sort(v), 0.3)",
    "np.searchsorted(np.arange(5), i, 'right')",
    "np.digitize(x, np.array([-1.0, 0.0, 1.0]))",
    "np.histogram(x)",
    "np.histogram(y, 5)",
    "np.histogram(x, bins=4, range=(-1, 1))",
    "np.histogram(x, 3, weights=x)",
    "np.histogram(i, 4)",
    "np.histogram(x, bins=np.array([-2.0, -1.0, 0.5, 3.0]))",
    "np.histogram(x, 4, density=True)",
    "np.histogram(x, n)[0]",
    "np.histogram(np.tile(k, 30), 3, weights=np.tile(k, 30), density=True)",
    "np.histogram(np.tile(u, 9), 2, weights=np.tile(u, 9))",
    "np.histogram(y, 3, weights=y, density=True), np.histogram(y, 3, weights=h, density=True)",
    "np.histogram(np.arange(-12, 13).astype(np.float16) / 4)",
    "np.bincount(idx, minlength=6)",
    "np.bincount(idx, minlength=4, weights=v)",
    "np.bincount(idx[:0], minlength=4, weights=v[:0])",
    "np.sum(np.bincount(idx))",
    "np.bincount(idx[idx > 0], minlength=6)",
    "np.bincount(idx[idx > 0], weights=v[idx > 0] * 2, minlength=6)",
    "np.bincount(i[i > 0] % 5, minlength=5)",
    "np.interp(x, np.sort(v), v)",
    "np.interp(0.2, np.sort(v), v)",
    "np.interp(w, np.sort(v), v, left=-9.0)",
    "x[np.argsort(x[:, 0])]",
    "np.sort(x.ravel())[::-1]",
    "np.sort(x + 1, axis=0)",
    "np.sort(np.sort(x, 0), 1)",
    "v[np.searchsorted(np.sort(v), 0.0) - 1]",
    "np.histogram(v, bins=3)[1]",
    "np.sum(np.histogram(x.ravel(), 5)[0])",
)


@pytest.mark.parametrize("body", EXPRESSIONS)
def test_it_is_what_numpy_says(body: str) -> None:
    assert_same_as_numpy(body)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("np.bincount(i[0] - 9, minlength=3)", "counts no negative numbers"),
        ("np.bincount(idx, minlength=2)", "counts 0 to 1 here(.|\n)*`minlength` is the length"),
        ("np.histogram(nn)", "finite"),
        ("np.bincount(x)", "integers along one axis"),
        ("np.bincount(idx, v * 1j)", "adds up real weights"),
        ("np.sort(z)", "complex"),
    ],
)
def test_what_cannot_be_ordered_or_counted_is_an_error(body: str, message: str) -> None:
    with pytest.raises(pe.CdError, match=message):
        compiled(body)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "u1", "?"])
def test_rows_of_any_length_and_type_in_order(dtype: str) -> None:
    text = "def f(x):\n    return np.sort(x), np.argsort(x), np.sort(x, axis=0)\n"
    function = pe.cd_from_source(text, {"np": np})
    for size in (1, 16, 17, 33, 48, 259):
        x = np.random.default_rng(size).integers(0, 30, (3, size)).astype(dtype)
        if x.dtype.kind == "f":
            x[:, ::7], x[:, 1::9], x[:, 2::9], x[:, 3::9] = np.nan, np.inf, -0.0, -np.inf
        with pe.override(optimize=1):  # these are long texts
            rows, places, columns = function(x)
        np.testing.assert_array_equal(rows, np.sort(x))
        np.testing.assert_array_equal(places, np.argsort(x, kind="stable"))
        np.testing.assert_array_equal(columns, np.sort(x, axis=0))


@pytest.mark.parametrize("dtype", ["f4", "f2", "i8", "u1", "?"])
@pytest.mark.parametrize("count", [2, 5, 10])
def test_many_short_rows_in_order(count: int, dtype: str) -> None:
    text = "def f(x):\n    return np.sort(x), np.sort(x, axis=0), np.median(x, axis=2)\n"
    x = np.random.default_rng(count).integers(0, 3, (count, 160, count)).astype(dtype)
    if x.dtype.kind == "f":
        x[:, ::7], x[:, 1::9], x[:, 2::9], x[:, 3::9] = -np.nan, np.inf, -0.0, -np.inf
    x[:, 4::5] = np.sort(x[:, 4::5])[..., ::-1]
    with pe.override(optimize=1):
        rows, columns, middles = pe.cd_from_source(text, {"np": np})(x)
    for found, axis in ((rows, -1), (columns, 0)):
        wanted = np.sort(x, axis, kind="stable")
        np.testing.assert_array_equal(found, wanted)
        if dtype == "f4":
            np.testing.assert_array_equal(
                np.signbit(found)[found == 0], np.signbit(wanted)[found == 0]
            )
    np.testing.assert_array_equal(middles, np.median(x, axis=2))


AS_IN_NUMPY = (
    "np.sort(x, kind='q'), np.sort(x, kind='Stable'), np.argsort(v, kind='heapsort')",
    "np.histogram(v[:0], 3), np.histogram(i[:0, 0], 2), np.histogram(y[0, :0], 3)",
    "np.histogram(v, [1.0]), np.histogram(v, []), np.histogram(x, 3, weights=y)",
)


@pytest.mark.parametrize("body", AS_IN_NUMPY)
def test_arguments_that_numpy_takes_are_taken(body: str) -> None:
    assert_same_as_numpy(body)


REFUSED = (
    ("np.sort(x, kind='foo')", "CD0448", "'mergesort' or 'stable', and is given 'foo'"),
    ("np.argsort(x, kind='foo')", "CD0448", "and is given 'foo'"),
    ("np.histogram(v, 0)", "CD0457", "`bins` of a histogram is at least 1, and is 0"),
    (
        "np.histogram(v, 'auto2')",
        "CD0457",
        "a number of bins, or their edges, and is given str 'auto2'",
    ),
    (
        "np.histogram(v, m)",
        "CD0452",
        "`histogram` takes edges along one axis, and is given f64[4, 4]",
    ),
    ("np.histogram(x, 3, weights=x.T)", "CD0301", "values and weights: sizes 3 and 4 differ"),
    (
        "np.histogram(x, 3, weights=x.ravel())",
        "CD0452",
        "have the shape of the values, and are f64[12]",
    ),
    ("np.bincount(idx, weights=x)", "CD0452", "takes one weight for each integer, along one axis"),
    (
        "np.bincount(idx, weights=2.0)",
        "CD0452",
        "takes one weight for each integer, along one axis",
    ),
)


@pytest.mark.parametrize(("body", "code", "message"), REFUSED)
def test_what_numpy_refuses_is_refused(body: str, code: str, message: str) -> None:
    assert_refused_as_by_numpy(body, code, message)


def test_a_number_of_bins_is_checked_at_run_time(backend: str) -> None:
    text = "def f(x, k):\n    return np.histogram(x, k[0])"
    counted = pe.cd_from_source(text, globals={"np": np}, backend=backend)
    counts, _ = counted(np.arange(4.0), np.array([2]))
    np.testing.assert_array_equal(counts, [2, 2])
    with pytest.raises(ValueError, match="`bins` of a histogram is at least 1, and is 0"):
        counted(np.arange(4.0), np.array([0]))


_BIG = 2**53 + np.arange(4)


def test_integers_are_compared_with_integer_edges_as_such() -> None:
    assert_as_plain("np.histogram(a, b)", _BIG, _BIG[[0, 1, 3]])
    assert_as_plain(f"np.histogram(a, [{2**53}, {2**53 + 1}, {2**53 + 3}])", _BIG)
    assert_as_plain("np.histogram(a, b)", _BIG.astype("u8"), _BIG[[0, 1, 3]])


@pytest.mark.parametrize("dtype", ["i1", "u8", "f2", "f4", "f8", "?"])
@pytest.mark.parametrize("of_range", ["f8", "f4", "i8", "i1"])
def test_edges_have_the_type_of_values_and_range(dtype: str, of_range: str) -> None:
    values = np.array([0, 1, 1, 5, 3, 2]).astype(dtype)
    ends = np.array([0, 4]).astype(of_range)
    assert_as_plain("np.histogram(a, 3, range=(b[0], b[1])), np.histogram(a, 3, b)", values, ends)
    assert_as_plain("np.histogram(a, 3, (0, 5)), np.histogram(a, 3, (0.1, 5.7))", values)


@pytest.mark.parametrize("ends", [np.arange(3.0), 3, (1, 2, 3)], ids=repr)
def test_a_range_is_two_numbers(ends: object) -> None:
    assert_refused("CD0457", "np.histogram(a, 3, range=b)", np.ones(2), ends)


@pytest.mark.parametrize("values", [_BIG, np.array([1.0, 1 + 2**-23], "f4")], ids=["i8", "f4"])
def test_bins_have_a_width(values: np.ndarray) -> None:
    assert_refused("too many bins", "np.histogram(a, 3)", values)


@pytest.mark.parametrize("edges", [[1, np.nan], [3, 2, np.nan], [1, 1, np.nan], [3, np.nan, 1]])
def test_edges_that_numpy_cannot_search_are_refused(edges: list[float]) -> None:
    """NumPy takes these for decreasing, and looks in them as if they were in order."""
    text = "def f(x, b): return np.digitize(x, b)"
    with pytest.raises(ValueError, match="bins must be monotonically"):
        pe.cd_from_source(text, {"np": np})(np.ones(2), np.array(edges))


@pytest.mark.parametrize("edges", [[np.nan, 1], [1, 2, np.nan], [np.nan, 3, 2], [np.nan] * 2])
def test_edges_with_nan_in_order(edges: list[float]) -> None:
    values = np.array([0.0, 1, 1.5, 2, 3, 4, np.nan])
    assert_as_plain("np.digitize(a, b), np.digitize(a, b, True)", values, np.array(edges))


def test_a_sort_is_named_once() -> None:
    assert_refused("CD0440", "np.argsort(a, kind='stable', stable=True)", np.ones(2))


@pytest.mark.parametrize("knots", [1, 2, 3, 40])
@pytest.mark.parametrize("in_order", [True, False])
def test_interpolation_that_begins_at_the_interval_before(knots: int, in_order: bool) -> None:
    rng = np.random.default_rng(knots)
    xp = np.sort(rng.integers(-20, 21, knots) / 2.0)  # some of them twice
    fp, x = rng.standard_normal(knots), rng.integers(-45, 46, 2500) / 4.0
    x[[7, 1023, 1024, 1800]] = np.nan, -np.inf, np.nan, np.inf
    assert_as_plain("np.interp(a, b, c)", np.sort(x) if in_order else x, xp, fp)
