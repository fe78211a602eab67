"""Loops that look for the first best term by a test: which are reductions, and of what."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plusequals.lowering.ir.loops import Stmt, Update
from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.schedule.firsts import firsts

from .kernels import Case, ran

NAN, INF = float("nan"), float("inf")
LOOK = "m = z[0]\nb = -1\nfor i in range(len(x)):\n    if x[i] {} m:\n        m = x[i]\n"
ENDS = "        b = i\ny[0] = m\ny[1] = b"
TEXTS = [
    LOOK.format(">") + ENDS,
    LOOK.format("<") + ENDS,
    LOOK.format(">") + "y[0] = m",
    "m = z[0]\nb = -1\nfor i in range(1, len(x), 2):\n    if m > x[i]:\n        b = i\n"
    "        m = x[i]\ny[0] = m\ny[1] = b",
    "m = z[0]\nb = -1\nfor i in range(len(x)):\n    t = abs(x[i])\n    x[i] = 0\n    if t > m:\n"
    "        m = t\n        b = 2 * i + 1\ny[0] = m\ny[1] = b",
]


def changed(case: Case) -> tuple[Stmt, ...]:
    return firsts(case.body, case.fresh)


@pytest.mark.parametrize("values", [
    [3, 1, 7, 7, 2], [NAN, 1, 2, NAN, 2], [NAN] * 4, [-INF] * 3, [INF, INF], [0.0, -0.0, 0.0],
    [-0.0, 0.0], [5], [-1, -2, 2],
])  # fmt: skip
@pytest.mark.parametrize("start", [0.0, -0.0, NAN, INF, -INF, 2.0])
@pytest.mark.parametrize("text", TEXTS)
def test_they_find_the_same(text: str, start: float, values: list[float]) -> None:
    values = values * 8
    case = Case(text, True, y="f64[2]", x=f"f64[{len(values)}]", z="f64[1]")
    made = changed(case)
    assert any(isinstance(s, Update) and s.pair is not None for s in statements(made))
    given = [np.zeros(2), np.array(values, float), np.array([start])]
    kernel = replace(case.program.kernels[0], body=made)
    after = case.fresh.declared(replace(case.program, kernels=(kernel,)))
    verify_program(after)
    assert [a.tobytes() for a in ran(after, given)] == [
        a.tobytes() for a in ran(case.program, given)
    ]


@pytest.mark.parametrize("text", [
    LOOK.format(">=") + "y[0] = m",  # the last of equal ones
    LOOK.format(">") + "    z[i] = m\ny[0] = m",  # it is used in every round
    "m = z[0]\nfor i in range(len(x)):\n    if x[i] > m:\n        m = x[i] + 1\ny[0] = m",
    "m = z[0]\nfor i in range(len(x)):\n    if x[i] - m > m:\n        m = x[i] - m\ny[0] = m",
    "m = z[0]\nfor i in range(len(x) - 1, -1, -1):\n    if x[i] > m:\n        m = x[i]\ny[0] = m",
    "m = z[0]\nfor i in range(len(x)):\n    if x[i] > m:\n        m = x[i]\n        z[i] = 1\n"
    "y[0] = m",
])  # fmt: skip
def test_what_stays(text: str) -> None:
    case = Case(text, True, y="f64[2]", x="f64[70]", z="f64[70]")
    assert changed(case) == case.body
