"""Tests that hold where all of several do: which these are, and the test that they make."""

from __future__ import annotations

import pytest

from plusequals.lowering.analysis.conjunctions import conjunction, split_conjunction
from plusequals.lowering.ir.expressions import Expr
from plusequals.lowering.ir.loops import If
from plusequals.lowering.ir.printer import print_expr
from plusequals.lowering.ir.walk import statements

from ..gpu.kernels import Case


def asked(text: str) -> Expr:
    case = Case(
        f"for i in range(len(x)):\n    if {text}:\n        y[i] = 1",
        x="f64[9]",
        y="f64[9]",
        b="b[9]",
    )
    return next(stmt.test for stmt in statements(case.body) if isinstance(stmt, If))


@pytest.mark.parametrize(("text", "parts"), [
    ("x[i] > 1", ["x[i] > 1.0"]),
    ("x[i] > 1 and y[i] < 2 and b[i]", ["x[i] > 1.0", "y[i] < 2.0", "b[i]"]),
    ("not b[i] and x[i] > 1", ["not b[i]", "x[i] > 1.0"]),
    ("(x[i] > 1) & b[i]", ["x[i] > 1.0", "b[i]"]),
    ("b[i] or x[i] > 1", ["True if b[i] else x[i] > 1.0"]),
])  # fmt: skip
def test_they_are_what_was_joined(text: str, parts: list[str]) -> None:
    test = asked(text)
    found = split_conjunction(test)
    assert [*map(print_expr, found)] == parts
    assert split_conjunction(conjunction(found)) == found
