"""Section 4 of the language page: what array notation checks at run time, returns and refuses."""

from __future__ import annotations

import re

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdIndexError, CdShapeError

from ..compare import assert_same, run_on
from .ask import compiled, plain, refused, run

X = np.array([0.5, -1.0, 2.0, 0.25, -3.0])
A = np.arange(12.0).reshape(3, 4) - 5.0
IDX = np.array([0, 2, 2])

REFUSED = [
    ("return x + np.random.rand(5)", "random", "pass"),
    ("return np.linalg.eig(a)", "eig", "outside"),
    ("return np.linalg.svd(a)", "svd", "outside"),
    ("return np.where(x > 0)", "where", "np.where("),
    ("return np.nonzero(x)", "nonzero", "count: `found, n"),
    ("t = []\nfor v in x:\n    t.append(v)\nreturn t", "grow", "array"),
    ("t = {}\nt[0] = x[0]\nreturn x", "dictionaries", "array"),
    ("yield x[0]", "generator", "return"),
    ("try:\n    x[0] = 1\nexcept ValueError:\n    pass", "exceptions", "try"),
    ("t = x[x > 0]\nreturn t", "run time", "where"),
    ("t = a[a > 0] * 2\nreturn t", "run time", "where"),
    ("x[idx] += 1.0", "duplicate", "x[idx["),
    ("import os\nreturn x", "import", "top"),
    ("global q\nreturn x", "outside", "return"),
    ("del x", "del", "leave"),
    ("return np.fromfile('x')", "fromfile", ""),
]


@pytest.mark.parametrize(("body", "says", "offers"), REFUSED)
def test_refused_with_the_way_out(body: str, says: str, offers: str) -> None:
    error = refused("x, a, idx", body, X.copy(), A, IDX, says=(says,))
    helps = "\n".join(line for one in error.diagnostics for line in one.helps)
    assert helps and offers in helps


CODES = [
    ("yield x[0]", "CD0111"),
    ("try:\n    x[0] = 1\nexcept ValueError:\n    pass", "CD0114"),
    ("with open('f') as g:\n    pass", "CD0115"),
    ("import os", "CD0116"),
    ("global q", "CD0117"),
    ("del x", "CD0118"),
    ("t = {}", "CD0121"),
    ("x =- x", "CD0104"),
]


@pytest.mark.parametrize(("body", "code"), CODES)
def test_codes_are_stable(body: str, code: str) -> None:
    assert refused("x", body, X.copy()).code == code


def test_recursion() -> None:
    text = "def f(n):\n    if n == 0:\n        return 1\n    return n * f(n - 1)\n"
    names: dict[str, object] = {"np": np}
    names["f"] = f = pe.cd_from_source(text, names)
    with pytest.raises(pe.CdError, match="recurs|itself"):
        f(3)


def test_sizes_that_do_not_broadcast() -> None:
    refused("x, a", "return a + x", X, A, error=CdShapeError, says=("4", "5"))
    refused("x, a", "return a @ x", X, A, error=CdShapeError, says=("4", "5"))
    refused("x, a", "x[:] = a", X.copy(), A, error=CdShapeError, says=("5",))


@pytest.mark.parametrize("bounds", [(0, 3), (2, 2), (1, 99), (-3, 99), (3, 1), (-99, 2)])
def test_slice_bounds_clip_as_numpys(backend: str, bounds: tuple[int, int]) -> None:
    body = "lo = bounds[0]\nhi = bounds[1]\nreturn np.sum(x[lo:hi])"
    data = np.array(bounds)
    assert_same(run(backend, "x, bounds", body, X, data), plain("x, bounds", body, X, data))


def test_computed_subscripts_never_wrap(backend: str) -> None:
    assert_same(run(backend, "x", "return x[-1] + x[-5]", X), X[-1] + X[-5])
    body = "s = 0.0\nfor k in range(3):\n    s += x[k - 1]\nreturn s"
    refused("x", body, X, error=CdIndexError, says=("-1",), backend=backend)


def test_rows_of_data_dependent_length(backend: str) -> None:
    ptr = np.array([0, 2, 2, 5])
    body = """
        y = np.zeros(3)
        for k in range(3):
            y[k] = np.sum(x[ptr[k]:ptr[k + 1]] ** 2)
        return y
    """
    assert_same(run(backend, "x, ptr", body, X, ptr), plain("x, ptr", body, X, ptr))


def test_a_local_may_have_another_extent_in_each_iteration(backend: str) -> None:
    body = "s = 0.0\nfor k in range(5):\n    t = x[:k] * 2\n    s += t.sum() * len(t)\nreturn s"
    assert_same(run(backend, "x", body, X), plain("x", body, X))


def test_gathers_out_of_range(backend: str) -> None:
    refused("x, idx", "return x[idx]", X, np.array([0, 5]), error=CdIndexError, says=("5",),
            backend=backend)  # fmt: skip


def test_stores_through_an_index_are_in_order(backend: str) -> None:
    x = np.zeros(3)
    run(backend, "x, idx, v", "x[idx] = v", x, np.array([1, 1, 2, 1]), np.arange(4.0))
    assert_same(x, np.array([0.0, 3.0, 2.0]))


def test_a_singular_matrix_raises(backend: str) -> None:
    with pytest.raises(pe.CdError, match=re.compile("singular", re.IGNORECASE)):
        run(backend, "a, b", "return np.linalg.solve(a, b)", np.ones((2, 2)), np.ones(2))
    with pytest.raises(pe.CdError):
        run(backend, "a", "return np.linalg.inv(a)", np.zeros((2, 2)))
    with pytest.raises(pe.CdError):
        run(backend, "a", "return np.linalg.cholesky(a)", -np.eye(2))


def scaled(v, factor=2.0):
    return v * factor


def clear_first(v):
    v[0] = 0.0


def test_calls_are_inlined_with_references(backend: str) -> None:
    x = X.copy()
    body = "clear_first(x[1:])\nreturn scaled(x) + scaled(x, factor=g)"
    got = run(backend, "x, g", body, x, 0.5, scaled=scaled, clear_first=clear_first)
    expected = X.copy()
    expected[1] = 0.0
    assert_same((x, got), (expected, expected * 2.5))


def test_calls_of_compiled_functions_are_inlined(backend: str) -> None:
    add = compiled("c, a, b", "c[i] = a[i] + b[i]")
    y = np.zeros(5)
    run(backend, "y, x", "add(y, x, x)\ny += 1", y, X, add=add)
    assert_same(y, 2 * X + 1)


def test_lambdas_are_inlined(backend: str) -> None:
    body = "square = lambda v: v * v\ny[i] = square(x[i]) + square(2.0)\nreturn y"
    assert_same(run(backend, "x", body, X), X * X + 4.0)


def test_returning_a_parameter_returns_that_object(backend: str) -> None:
    x = X.copy()
    assert run(backend, "x", "x += 1\nreturn x", x) is x
    assert_same(x, X + 1)


def test_returning_a_view_returns_a_view(backend: str) -> None:
    a = A.copy()
    view = run(backend, "a", "return a[1:, ::2]", a)
    assert_same(view, a[1:, ::2])
    view[0, 0] = 99.0
    assert a[1, 0] == 99.0


def test_returning_nothing_scalars_and_tuples(backend: str) -> None:
    assert run(backend, "x", "x[0] = 1", X.copy()) is None
    got = run(backend, "x", "return x[1], (x + 1, len(x)), x.sum()", X)
    assert_same(got, (X[1], (X + 1, 5), X.sum()))


def test_results_are_new_arrays_every_time(backend: str) -> None:
    f = compiled("x", "return x + 1")
    first, second = run_on(backend, f, X), run_on(backend, f, X)
    first[:] = 0.0
    assert_same(second, X + 1)


def test_chained_comparison_of_a_matrix_to_rank_four(backend: str) -> None:
    c = np.arange(24.0).reshape(2, 3, 2, 2)
    body = "return (c > 3) & (c < 9), c.transpose(3, 0, 2, 1)[0].sum(axis=-1)"
    assert_same(run(backend, "c", body, c), plain("c", body, c))
