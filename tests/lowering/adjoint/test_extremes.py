"""Positions of maxima and minima by comparison, and what their derivatives add up."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe

NAN = float("nan")
POOLS = {
    "windows side by side": (
        "y[h, c] = max[r in range(2)](x[2 * h + r, c])",
        "y_at[h, c] = 0 if x[2*h, c] == y[h, c] or x[2*h, c] != x[2*h, c] else 1",
        "d_x[2*h + 1, c] += 1.0 if y_at[h, c] == 1 else 0.0",
    ),
    "windows that overlap": (
        "y[h, c] = min[r in range(3)](x[h + r, c])",
        "y_at[h - 1, c] = 0 if x[h - 1, c] == y[h - 1, c] or x[h - 1, c] != x[h - 1, c] else 1",
        "(1.0 if y_at[h - 3, c] == 2 else 0.0)",
    ),
    "a whole axis": (
        "y[c] = max[r in range(len(x))](x[r, c])",
        "y_at[c] = 0 if x[0, c] == y[c] or x[0, c] != x[0, c] else 1",
        "d_x[3, c] += 1.0 if y_at[c] == 3 else 0.0",
    ),
}
SEARCHED = {
    "the last axis": "y[i] = max[j](x[i, j])",
    "what is computed": "y[j] = max[i](x[i, j] * 2.0)",
    "both axes": "y[j] = max[i, k](x[i, k] + x[i, j])",
}
X = np.array([[1, NAN, 2, NAN, 0.0], [2, 1, NAN, NAN, -0.0], [3, 3, 3, 3, 3], [3, 4, 4, 2, 1]])


def summed(statement: str) -> pe.CdFunction:
    text = f"def f(x):\n    {statement}\n    return np.sum(y)\n"
    return pe.cd_from_source(text, {"np": np})


@pytest.mark.parametrize("name", POOLS)
def test_few_points_are_compared_one_by_one(name: str) -> None:
    statement, position, update = POOLS[name]
    text = pe.gradient(summed(statement), wrt="x").text(X)
    assert position in text
    assert update in text
    assert "argmax" not in text


@pytest.mark.parametrize("statement", SEARCHED.values(), ids=SEARCHED.keys())
def test_other_positions_are_searched_for(statement: str) -> None:
    text = pe.gradient(summed(statement), wrt="x").text(X)
    assert "y_at[i] = argmax" in text or "y_at[j] = argmax" in text


def test_the_first_that_is_largest_or_no_number_has_the_derivative() -> None:
    f = summed(POOLS["windows side by side"][0])
    right = [[0, 1, 0, 1, 1], [1, 0, 1, 0, 0], [1, 0, 0, 1, 1], [0, 1, 1, 0, 0]]
    assert pe.gradient(f, wrt="x")(X).tolist() == right
    t = np.arange(20.0).reshape(4, 5)
    assert pe.jvp(f, wrt="x")(X, t) == np.sum(t * right)


@pytest.mark.parametrize("rows", [4, 16, 17, 200])
def test_many_points_have_the_smallest_position(rows: int) -> None:
    f = summed("y[c] = max[r](x[r, c])")
    x = np.random.default_rng(rows).integers(0, 5, (rows, 6)).astype(float)
    x[2, 3] = NAN
    right = np.zeros((rows, 6))
    right[np.argmax(x, axis=0), range(6)] = 1.0
    g = pe.gradient(f, wrt="x")
    assert np.array_equal(g(x), right)
    assert ("= min[" in g.text(x)) == (rows > 16)
    t = np.random.default_rng(1).normal(size=(rows, 6))
    assert pe.jvp(f, wrt="x")(x, t) == pytest.approx(np.sum(t * right), rel=1e-12)


@pytest.mark.parametrize("name", POOLS)
def test_gradients_agree_with_differences(name: str) -> None:
    text = f"def f(x, w):\n    {POOLS[name][0]}\n    return np.sum(y * y * w)\n"
    f = pe.cd_from_source(text, {"np": np})
    x = np.random.default_rng(3).permutation(28).reshape(7, 4) / 7.0
    report = pe.check_gradient(f, (x, 1.5), wrt=("x", "w"), digits=8)
    assert report


def test_states_of_loops_are_kept_for_them() -> None:
    text = (
        "def f(x):\n    u = x.copy()\n    for t in range(3):\n"
        "        m[j] = max[i](u[i, j])\n        u[...] = u * 0.5 + np.sin(m) * t\n"
        "    return np.sum(u * u)\n"
    )
    f = pe.cd_from_source(text, {"np": np})
    x = np.random.default_rng(5).normal(size=(4, 3))
    pe.check_gradient(f, (x,), wrt="x", digits=8)
