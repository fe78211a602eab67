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
