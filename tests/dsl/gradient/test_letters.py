"""Letters whose ranges the text has to give: each text computes what the assignments do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.dsl.gradient.letters import ends
from plusequals.lowering.ir.indexing import Range, Symbol, const, minimum, var

FUNCTIONS = {
    "a masked read of a shorter axis": """
        a[i, j] = d[j, pad(i)] / (b[j, pad(i + 1)] + 1)
        return np.sum(a)""",
    "a letter after a loop of that name": "return np.sum(1 - np.prod(a, axis=1))",
    "a test with a letter that has no plain use": """
        if a[1 - i, j] > 0:
            a[i, j] = max[k](b[0, k]) * a[i, j]
        return np.sum(a)""",
    "a part of an axis that a call knows": """
        a[:n - 1] = a[:n - 1] * a[:n - 1] + d[0, 0]
        return np.sum(a)""",
    "positions from a number on": """
        d[i, j] = max[k in range(1, n)](a[k, j] * d[i, j])
        return np.sum(d)""",
    "positions of two letters": """
        d[i, j] = max[k in range(1, 2), m in range(0, 1)](a[k, m] * d[i, j])
        return np.sum(d)""",
    "positions of letters that are shifted": """
        d[i, j] = max[k in range(1, n), m in range(0, k)](a[k - 1, m] * b[k - 1, 0] * d[i, j])
        return np.sum(d)""",
    "a length that is known inside of a loop": """
        s = d[0, 0]
        for t in range(2):
            k = int(d[0, 0] + t)
            w = d[:k, 0] * a[:k, 0]
            s = s + np.sum(w * w) * s
        return s""",
    "a sum over a length that is known inside of a loop": """
        s = d[0, 0]
        for t in range(2):
            k = int(d[0, 0] + t)
            w = a[:k, 0] * d[0, 0]
            s = s + np.sum(w * w)
        return s""",
    "reductions of a part that is known inside of a loop": """
        s = d[0, 0]
        for t in range(2):
            k = int(d[0, 0] + t)
            s = s + np.sum(a[:k, 0] * a[:k, 0]) * s + np.max(a[:max(k, 1), 0] * s)
        return s""",
    "a number reduced over nothing": """
        v = np.array(d[0, 0])
        return np.sum(a) * np.sum(v) * np.max(v) if np.count_nonzero(v) else 0.0""",
    "a test that is constant": """
        a[i, j] /= where(1, a[i, j], b[0, j])
        a[i, j] *= where(1, 2.0, a[i, j])
        return np.sum(a * a)""",
    "no points at all": """
        if i == 7:
            a[i, j] += max(a[i, j], 1)
        return np.sum(a * a)""",
    "an array without axes": """
        c /= -2.0
        c += np.sum(a) * c
        return c * np.sum(d)""",
    "an axis that is not on the left": "a[None,] += a; return np.sum(a * a)",
    "a range with two ends": """
        v = np.zeros(n)
        v[0] = d[0, 0]
        t[i] = sum[j <= i](v[j] * a[i, 0])
        return np.sum(t) if n else 0.0""",
}


def values() -> dict[str, Any]:
    rng = np.random.default_rng(2)
    return {
        "a": rng.random((2, 1)) + 0.5,
        "b": rng.random((1, 1)),
        "d": rng.random((1, 1)),
        "n": 2,
        "c": np.array(0.5),
    }


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_letter_has_the_range_that_it_had(name: str) -> None:
    body = FUNCTIONS[name].strip("\n") if "\n" in FUNCTIONS[name] else "        " + FUNCTIONS[name]
    text = f"def f(a, b, d, n, c):\n{body}\n"
    with pe.override("numpy"):
        f = pe.cd_from_source(text, {"np": np})
        step = pe.value_and_gradient(f, wrt=("a", "d"))
        value, (d_a, d_d) = pe.cd_from_source(step.text(**values()), step.names)(
            **(given := values())
        )
        after = values()
        assert value == f(**after)
        for name in "ac":
            np.testing.assert_array_equal(given[name], after[name])
        for name, found in (("a", d_a), ("d", d_d)):
            for index in np.ndindex(*found.shape):
                sides = []
                for move in (1e-6, -1e-6):
                    moved = values()
                    moved[name][index] += move
                    sides.append(f(**moved))
                assert abs(found[index] - (sides[0] - sides[1]) / 2e-6) < 1e-8


def test_positions_are_those_of_the_range_of_the_letter() -> None:
    text = """
def f(x, y):
    y[i] = max[k in range(1, 4)](x[k] * y[i])
    return np.sum(y)
"""
    x, y = np.array([9.0, 1.0, 5.0, 2.0]), np.array([1.0, -1.0])
    with pe.override("numpy"):
        step = pe.gradient(pe.cd_from_source(text, {"np": np}), wrt=("x", "y"))
        d_x, d_y = pe.cd_from_source(step.text(x, y), step.names)(x, y)
    assert d_x.tolist() == [0.0, -1.0, 1.0, 0.0]
    assert d_y.tolist() == [5.0, 1.0]


def test_statements_without_points_are_left_out() -> None:
    f = pe.cd_from_source("def f(b):\n    b *= b.ravel()\n    return np.sum(b)\n", {"np": np})
    with pe.override("numpy"):
        assert pe.gradient(f, wrt="b")(np.zeros((1, 0))).shape == (1, 0)


def test_a_sum_over_no_points_is_a_number() -> None:
    text = "def f(a):\n    v = a.reshape(-1)\n    return np.sum(v * v) + np.prod(v)\n"
    with pe.override("numpy"):
        step = pe.value_and_gradient(pe.cd_from_source(text, {"np": np}), wrt="a")
        value, d_a = step(np.zeros((0, 1)))
    assert value == 1.0
    assert d_a.shape == (0, 1)


def test_ends_without_letters_come_first() -> None:
    i, k, n = Symbol("i", 1), Symbol("k", 2), Symbol("n", 3)
    lo, hi = ends(Range(k, const(0), minimum(var(i) + 1, var(n)) + 1), {i, k})
    assert lo == [const(0)]
    assert hi == [var(n) + 1, var(i) + 2]
