"""Scalars that only count on: which do, and from where."""

from __future__ import annotations

import pytest

from plusequals.lowering.gpu.recurrences.monotonic import monotonic_bounds

from ..kernels import Case


@pytest.mark.parametrize(("start", "by", "least"), [
    ("3", "n += 2", 3), ("0", "n = n + 1", 0), ("5", "n += 2\n        n = 4", 4),
    ("-1", "n += 1", None),
    ("3", "n -= 1", None), ("3", "n += int(x[2])", None), ("3", "n *= 2", None),
    ("int(x[1])", "n += 1", None), ("3", "n += 70000", None),
])  # fmt: skip
def test_which_do(start: str, by: str, least: int | None) -> None:
    text = f"n = {start}\nfor i in range(9):\n    if x[i] > n:\n        {by}\ny[0] = n"
    case = Case(text, y="i64[1]", x="f64[9]")
    (node,) = [one for one in case.program.locals if one.label == "n"]
    assert monotonic_bounds(case.program).get(node.id) == least


@pytest.mark.parametrize(("before", "least"), [("", 0), ("n = 2\n", 2)])
def test_a_loop_without_iterations_leaves_zero(before: str, least: int) -> None:
    loop = "for i in range(int(x[0])):\n    n = 3\n    if x[i] > 1:\n        n = 5\n"
    case = Case(before + loop + "y[0] = n", y="i64[1]", x="f64[9]")
    (node,) = [one for one in case.program.locals if one.label == "n"]
    assert monotonic_bounds(case.program).get(node.id) == least
