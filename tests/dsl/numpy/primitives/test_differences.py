"""Finite differences: `np.diff` and `np.gradient`."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe

from ...elaborate.numpy_oracle import assert_refused_as_by_numpy, assert_same_as_numpy

EXPRESSIONS = (
    "np.diff(v)",
    "np.diff(x, axis=0)",
    "np.diff(x, n=2)",
    "np.diff(b1)",
    "np.gradient(v)",
    "np.gradient(x, axis=0)",
    "np.gradient(x)",
    "np.gradient(v, 0.5)",
    "np.gradient(x, axis=(1, 0))",
    "np.gradient(x, 2.0, 3.0, axis=(1, 0))",
    "np.gradient(t, 1.0, 2.0, 3.0, axis=(2, 0, 1))",
    "np.gradient(t, axis=(-1, 0)), np.gradient(x, axis=())",
    "np.diff(v, prepend=0), np.diff(v, append=v[:2]), np.diff(v, prepend=v[-1], append=0.5)",
    "np.diff(x, prepend=x[:, :1]), np.diff(x, axis=0, append=x[:1], n=2)",
    "np.diff(i, prepend=0), np.diff(i, append=2.5), np.diff(h, prepend=0), np.diff(b, append=True)",
    "np.diff(v, 0, prepend=3)",
    "np.gradient(v, edge_order=2), np.gradient(x, 0.5, axis=1, edge_order=2)",
    "np.gradient(t, 1.0, 2.0, 3.0, edge_order=1)",
)


@pytest.mark.parametrize("body", EXPRESSIONS)
def test_it_is_what_numpy_says(body: str) -> None:
    assert_same_as_numpy(body)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "c16"])
@pytest.mark.parametrize("points", ["f8", "f4", "i8"])
def test_points_at_uneven_distances(order: int, dtype: str, points: str) -> None:
    values = (np.arange(42.0) ** 2 % 17).reshape(6, 7).astype(dtype)
    rows = np.array([0, 1, 3, 4, 8, 9], points)
    columns = np.array([0, 2, 3, 7, 8, 9, 12], points)
    text = f"def f(a, b, c):\n    return np.gradient(a, b, c, edge_order={order})"
    found = pe.cd_from_source(text, globals={"np": np}, backend="numpy")(values, rows, columns)
    for mine, wanted in zip(found, np.gradient(values, rows, columns, edge_order=order)):
        assert mine.dtype == wanted.dtype
        np.testing.assert_allclose(mine, wanted, rtol=1e-6 if "4" in dtype + points else 1e-13)


def test_run_time_sizes(backend: str) -> None:
    text = "def f(y, x):\n    return np.gradient(y, x, edge_order=2), np.diff(y, prepend=y[-1])"
    slope = pe.cd_from_source(text, globals={"np": np}, backend=backend)
    for n in (3, 4, 5, 6, 9, 12):
        x, y = np.arange(float(n)) ** 1.5, np.arange(float(n)) % 3
        found = slope(y, x)
        np.testing.assert_allclose(found[0], np.gradient(y, x, edge_order=2), rtol=1e-13)
        np.testing.assert_array_equal(found[1], np.diff(y, prepend=y[-1]))
    with pytest.raises(ValueError, match="needs three points on axis 0, which has 2"):
        slope(np.ones(2), np.arange(2.0))
    with pytest.raises(ValueError, match="the coordinates and the values: sizes 4 and 5 differ"):
        slope(np.ones(5), np.arange(4.0))


REFUSED = (
    ("np.gradient(x, 1.0, 2.0, 3.0)", "CD0440", "2 axes takes as many spacings, or one for all"),
    ("np.gradient(x, 1.0, 2.0, axis=0)", "CD0440", "and is given 2"),
    ("np.gradient(x, axis=(0, 0))", "CD0446", "axis 0 is given twice"),
    ("np.gradient(v[:1])", "CD0314", "`gradient` needs two points on axis 0, which has 1"),
    ("np.gradient(v, x)", "CD0452", "a vector of coordinates for an axis, and is given f64[3, 4]"),
    ("np.gradient(v[:2], edge_order=2)", "CD0314", "needs three points on axis 0, which has 2"),
    ("np.gradient(v, edge_order=3)", "CD0445", "`edge_order` of `gradient` is 1 or 2"),
    ("np.gradient(v, v[:3])", "CD0301", "the coordinates and the values: sizes 3 and 4 differ"),
    ("np.diff(x, prepend=v)", "CD0313", "joined arrays need the same number of axes"),
    ("np.diff(x, prepend=x[:2])", "CD0301", "joined arrays"),
)


@pytest.mark.parametrize(("body", "code", "message"), REFUSED)
def test_what_numpy_refuses_is_refused(body: str, code: str, message: str) -> None:
    assert_refused_as_by_numpy(body, code, message)


def test_slopes_need_two_points_at_run_time(backend: str) -> None:
    text = "def f(x, n):\n    for k in range(3, n, -1):\n        x[:k] = np.gradient(x[:k])"
    slope = pe.cd_from_source(text, globals={"np": np}, backend=backend)
    found, wanted = np.arange(5.0) ** 2, np.arange(5.0) ** 2
    slope(found, 1)
    for k in (3, 2):
        wanted[:k] = np.gradient(wanted[:k])
    np.testing.assert_array_equal(found, wanted)
    with pytest.raises(ValueError, match="`gradient` needs two points on axis 0, which has 1"):
        slope(found, 0)
