"""What is recorded of each kind of statement: every column, and where it is evaluated."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe

CASES = {
    "y[i] = x[i] * x[i] + 2": ["before", "operand x", "after"],
    "y[i] += y[i] * x[i]": ["before", "operand x", "after"],
    "y[i] += a[i, j]": ["before", "contribution", "after"],
    "y[i] = sum[j](a[i, j])": ["before", "after"],
    "y[i] = sum[j](a[i, j]) / x[i]": ["before", "operand sum", "operand x", "after"],
    "y[n[i]] = x[i]": ["before", "operand n", "subscript", "operand x", "after"],
    "y[i] = x[n[i]]": ["before", "operand n", "subscript", "operand x", "after"],
    "y[i] = x[i] if x[i] > 1 else a[i, 0]": [
        "before",
        "operand x",
        "operand a ?",
        "after",
    ],
    "y[i] = 1": ["before", "after"],
}


@pytest.mark.parametrize("statement", CASES)
def test_the_columns_of_a_statement(statement: str) -> None:
    f = pe.cd_from_source(f"def f(x, y, a, n):\n    {statement}\n")
    with pe.trace() as trace:
        f(np.ones(3), np.zeros(3), np.ones((3, 3)), np.array([2, 1, 0]))
    site = trace.runs[0].layout.sites[-1]
    told = []
    for column in site.columns:
        name = getattr(getattr(column.expr, "node", None), "label", "sum")
        what = f"operand {name}" if column.what == "operand" else column.what
        told.append(what + (" ?" if column.guard is not None else ""))
    assert told == CASES[statement]


def test_tests_in_tests_guard_each_other(backend: str) -> None:
    text = "y[i] = 0.0 if i == 0 else x[i] if x[i - 1] > 0 else z[i]"
    f = pe.cd_from_source(f"def f(x, y, z):\n    {text}\n", backend=backend)
    x, y = np.array([1.0, -2.0, 3.0]), np.zeros(3)
    with pe.trace() as trace:
        f(x, y, x * 10)
    assert y.tolist() == [0.0, -2.0, 30.0]
    told = [[o.text for o in r.operands] for r in trace]
    assert told == [[], ["x[0]", "x[1]"], ["x[1]", "z[2]"]]


def test_a_reduction_in_a_test_in_a_test(backend: str) -> None:
    text = "y[i] = (x[i, 0] if sum[k](x[i + 1, k]) > 0 else z[i]) if i < 2 else 0.0"
    f = pe.cd_from_source(f"def f(x, y, z):\n    {text}\n", backend=backend)
    y, x = np.zeros(3), np.arange(6.0).reshape(3, 2)
    with pe.trace() as trace:
        f(x, y, np.ones(3))
    assert y.tolist() == [0.0, 2.0, 0.0] and len(trace) == 3


@pytest.mark.parametrize(
    "statement", ["y[i] %= a[i, j]", "y[i] -= a[i, j]", "y[i] = max(y[i], a[i, j])"]
)
@pytest.mark.parametrize("width", [0, 2])
def test_accumulations_stay_what_they_are(statement: str, width: int, backend: str) -> None:
    f = pe.cd_from_source(f"def f(y, a):\n    {statement}\n", backend=backend)
    y, z, a = np.array([7, 9]), np.array([7, 9]), np.full((2, width), 4)
    f(y, a)
    with pe.trace() as trace:
        f(z, a)
    assert y.tolist() == z.tolist() and len(trace) == 2
