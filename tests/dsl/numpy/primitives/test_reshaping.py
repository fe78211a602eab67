"""Reshape: groups of axes, views and copies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe

from ...elaborate.numpy_oracle import assert_same_as_numpy, compiled

EXPRESSIONS = (
    "x.reshape(4, 3)",
    "x.reshape((2, -1))",
    "x.reshape(-1)",
    "t.reshape(6, 4)",
    "t.T.reshape(6, 4)",
    "t.reshape(2, 2, 6)",
    "t.reshape(-1, 3, order='F')",
    "np.arange(6.0).reshape((3, 2), order='F') + 1",
    "np.reshape(t.reshape(-1), (4, -1), order='F')",
    "x.reshape(-1).reshape((2, 3, 2), order='F') * 2",
    "x.reshape(-1).reshape((3, 4), order='A') * 2",
    "(x + 1).reshape(2, 6)",
    "(x + 1).reshape(2, 2, 3)",
    "(t + 1).reshape(-1)",
    "x.ravel()",
    "x.T.ravel()",
    "x.flatten()",
    "np.ravel(t, order='F')",
    "np.arange(6).reshape(2, 3) + 1",
    "x.reshape(2, 6).sum(axis=0)",
    "x.reshape(-1, 2).max(1)",
    "x.T.reshape(2, 6).sum(0)",
    "t.transpose(2, 0, 1).reshape(4, 6)",
    "np.reshape(x + 1, (6, 2)).T",
    "np.triu(np.arange(16).reshape(4, 4), 2)",
)


@pytest.mark.parametrize("body", EXPRESSIONS)
def test_it_is_what_numpy_says(body: str) -> None:
    assert_same_as_numpy(body)


@pytest.mark.parametrize("body", ["x.reshape(5, -1)", "np.reshape(x, (2, 5))", "x.reshape(-1, -1)"])
def test_sizes_that_do_not_fit_are_refused(body: str) -> None:
    with pytest.raises(pe.CdError, match="reshape|-1"):
        compiled(body)


@pytest.mark.parametrize("shape", [(3, 0), (0, 8), (9, 0, 2)])
def test_what_has_no_elements_is_a_view_of_any_shape(shape: tuple[int, ...]) -> None:
    body = "r = x.reshape(4, 0)\nr[:] = 1\nr, x.T.reshape(0, 3, 2) + 1, np.sort(x), np.sort(x, 0)"
    x = np.zeros(shape)
    one, two, rows, columns = compiled(body, x)
    assert one.shape == (4, 0) and two.shape == (0, 3, 2)
    assert rows.shape == columns.shape == shape


DYNAMIC = {
    "x.reshape(n, -1).sum(axis=1)": True,
    "x.reshape(-1, n) * 2": True,
    "x.reshape(n, -1, 2).max(axis=1)": True,
    "x.reshape(4, 15).T.reshape(-1, n) + 1": True,
    "x.reshape(n, 60 // n) * 2": False,  # of sizes that may be -1
    "x.reshape(n, -1)": False,  # a returned view, whose strides are those of a call
    "np.diagonal(x.reshape(6, 10), n) + 1": True,
    "np.trace(x.reshape(6, 10), -n)": True,
}


@pytest.mark.parametrize(("body", "is_dynamic"), DYNAMIC.items())
def test_a_size_beside_an_inferred_one_is_a_run_time_value(body: str, is_dynamic: bool) -> None:
    text = f"def f(x, n):\n    return {body}\n"
    f, names, x = pe.cd_from_source(text, {"np": np}), {"np": np}, np.arange(60.0)
    exec(text, names)
    plain: Any = names["f"]
    for n in (2, 3, 5, 6, 10, 1, 15, 30):
        np.testing.assert_array_equal(f(x, n), plain(x, n), strict=True)
    one, two = (f.matched(x, n)[0].specialization for n in (6, 10))
    assert (one is two) == is_dynamic


@pytest.mark.parametrize(
    ("n", "text"),
    [(0, "beside a size 0"), (7, "60 elements cannot be"), (-1, "negative"), (2**62, "not fit")],
)
def test_a_run_time_size_that_does_not_fit_is_refused(n: int, text: str) -> None:
    f, x = pe.cd_from_source("def f(x, n):\n    return x.reshape(n, -1) + 1\n"), np.arange(60.0)
    for size in (2, 3, 4, 5):
        f(x, size)
    with pytest.raises(pe.CdError, match=text):
        f(x, n)
