"""Loops that are left together: how many they are."""

from __future__ import annotations

import pytest

from plusequals.lowering.gpu.recurrences.exit_flags import find_exit_nest
from plusequals.lowering.ir.loops import For

from ..kernels import Case

PAIR = (
    "a = -1\nfound = False\nfor i in range(8):\n{}    for j in range(9):\n        if x[i, j] > 3:\n"
    "            a = i\n            found = True\n            break\n{}y[0] = a + found"
)


@pytest.mark.parametrize(("start", "tail", "count"), [
    ("", "    if found:\n        break\n", 2),
    ("", "    if a >= 0:\n        break\n", 2),
    ("", "    if not found:\n        continue\n    break\n", 2),
    ("    found = False\n", "    if found:\n        break\n", 2),
    ("", "    if found:\n        break\n    x[i, 0] = 1\n", 1),
    ("    x[i, 0] = 2\n", "    if found:\n        break\n", 1),
    ("    found = True\n", "    if found:\n        break\n", 1),
    ("", "    if a > 0:\n        break\n", 1),
    ("", "    if x[i, 1] > 3:\n        break\n", 1),
])  # fmt: skip
def test_how_many_are_left_together(start: str, tail: str, count: int) -> None:
    case = Case(PAIR.format(start, tail), y="f64[1]", x="f64[8, 9]")
    at = next(n for n, stmt in enumerate(case.body) if isinstance(stmt, For))
    found = find_exit_nest(case.loop(at), case.body[:at], frozenset())
    assert found is not None and len(found.loops) == count
    assert bool(found.before) == ("found = False" in start)
