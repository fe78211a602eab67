"""Tests of which is known that they hold, or that they do not."""

from __future__ import annotations

import pytest

from plusequals.lowering.analysis.predicate_facts import is_always, is_never, scalar_values_after
from plusequals.lowering.ir.indexing import Range, const
from plusequals.lowering.ir.loops import For, If
from plusequals.lowering.ir.walk import statements

from ..gpu.kernels import Case

BEFORE = "b = {}\nfound = {}\nn = k[0]\nfor i in range(9):\n    if {}:\n        y[i] = 1\n"
KEPT = "    b = i\n    found = True\n    n = b\ny[0] = b + found + n"


@pytest.mark.parametrize(("b", "test", "holds"), [
    ("-1", "b < 0", True), ("-1", "b >= 0", False), ("-1", "b == -1", True), ("4", "b != 4", False),
    ("4", "b <= 4", True), ("4", "b > 4", False), ("4", "b > i", None), ("9", "b > i", True),
    ("0", "b == i", None), ("-1", "b == i", False), ("-1", "not found", True),
    ("-1", "found == False", True), ("-1", "found or b > 0", False), ("0", "n == 0", None),
    ("-1", "b < 0 and x[i] > 1", None), ("-1", "b > 0 and x[i] > 1", False),
    ("-1", "b < 0 or x[i] > 1", True), ("-1", "not found and b == -1", True),
])  # fmt: skip
def test_what_is_known(b: str, test: str, holds: bool | None) -> None:
    text = BEFORE.format(b, "False", test) + KEPT
    case = Case(text, y="f64[9]", x="f64[9]", k="i64[9]")
    at = next(n for n, stmt in enumerate(case.body) if isinstance(stmt, For))
    loop = case.loop(at)
    values, known = scalar_values_after(case.body[:at]), (Range(loop.symbol, const(0), const(9)),)
    found = [stmt.test for stmt in statements((loop,)) if isinstance(stmt, If)]
    assert is_always(found[0], values, known) == (holds is True)
    assert is_never(found[0], values, known) == (holds is False)
    assert not scalar_values_after((loop,), values), "a loop may have changed them"
