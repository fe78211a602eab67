"""Loops that look for the first best term by a test: which are reductions, and of what."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plusequals.lowering.gpu.mapping import map_program
from plusequals.lowering.gpu.recurrences.arg_min_max import rewrite_arg_min_max
from plusequals.lowering.ir.loops import Stmt, Update
from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.target import Target

from ..kernels import Case, backwards, ran

NAN, INF = float("nan"), float("inf")
LOOK = "m = z[0]\nb = -1\nfor i in range(len(x)):\n    if x[i] {} m:\n        m = x[i]\n"
ENDS = "        b = i\ny[0] = m\ny[1] = b"
TEXTS = [
    LOOK.format(">") + ENDS,
    LOOK.format("<") + ENDS,
    LOOK.format(">") + "y[0] = m",
    LOOK.format(">=") + ENDS,
    LOOK.format("<=") + ENDS,
    LOOK.format("<=") + "y[0] = m",
    "m = z[0]\nb = -1\nfor i in range(len(x) - 1, -1, -1):\n    if x[i] > m:\n"
    "        m = x[i]\n" + ENDS,
    "m = z[0]\nb = -1\nfor i in range(len(x) - 1, 0, -3):\n    d = abs(x[i])\n"
    "    if i != 2 and d >= m and x[i] < 9:\n        m = d\n" + ENDS,
    "m = z[0]\nb = -1\nfor i in range(len(x)):\n    if x[i] < 7:\n        if m <= x[i]:\n"
    "            b = i\n            m = x[i]\ny[0] = m\ny[1] = b",
    "m = z[0]\nl = z[0]\nfor i in range(len(x)):\n    d = abs(x[i])\n    if d > m:\n"
    "        m = d\n    if d <= l:\n        l = d\ny[0] = m\ny[1] = l",
    "y[0] = z[0]\nfor i in range(len(x)):\n    if x[i] > y[0]:\n        y[0] = x[i]\n"
    "        y[1] = i",
    "m = z[0]\nfor i in range(len(x)):\n    if x[i] >= m:\n        m = x[i]\n"
    "        y[1] = x[len(x) - 1 - i]\ny[0] = m",
    "m = z[0]\nb = -1\nfor i in range(1, len(x), 2):\n    if m > x[i]:\n        b = i\n"
    "        m = x[i]\ny[0] = m\ny[1] = b",
    "m = z[0]\nb = -1\nfor i in range(len(x)):\n    t = abs(x[i])\n    x[i] = 0\n    if t > m:\n"
    "        m = t\n        b = 2 * i + 1\ny[0] = m\ny[1] = b",
]


def changed(case: Case) -> tuple[Stmt, ...]:
    return rewrite_arg_min_max(case.body, case.facts, case.fresh)


VALUES = [
    [3, 1, 7, 7, 2], [NAN, 1, 2, NAN, 2], [NAN] * 4, [-INF] * 3, [INF, INF], [0.0, -0.0, 0.0],
    [-0.0, 0.0], [5], [-1, -2, 2],
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_they_find_the_same(text: str) -> None:
    case = Case(text, True, y="f64[2]", x="f64[24]", z="f64[1]")
    made = changed(case)
    assert any(isinstance(s, Update) and s.pair is not None for s in statements(made))
    kernel = replace(case.program.kernels[0], body=made)
    after = case.fresh.declared(replace(case.program, kernels=(kernel,)))
    verify_program(after)
    for values in VALUES:
        for start in (0.0, -0.0, NAN, INF, -INF, 2.0):
            given = [np.zeros(2), np.resize(np.array(values, float), 24), np.array([start])]
            got, want = ran(after, given), ran(case.program, given)
            assert [a.tobytes() for a in got] == [a.tobytes() for a in want], (values, start)


@pytest.mark.parametrize("text", [
    LOOK.format(">=") + "    y[i % 2] = 1\ny[0] = m",  # it does more, and counts down
    LOOK.format(">") + "    z[i] = m\ny[0] = m",  # it is used in every round
    "m = z[0]\nfor i in range(len(x)):\n    if x[i] > m:\n        m = x[i] + 1\ny[0] = m",
    "m = z[0]\nfor i in range(len(x)):\n    if x[i] - m > m:\n        m = x[i] - m\ny[0] = m",
    "m = z[0]\nfor i in range(len(x) - 1, -1, -1):\n    if x[i] > m:\n        m = x[i]\n"
    "        y[1] = x[i]\n    x[i] = 2\ny[0] = m",
    "m = z[0]\nfor i in range(len(x)):\n    if x[i] >= m:\n        m = x[i]\n"
    "    if z[i] > 3: break\ny[0] = m",
    "for i in range(len(x)):\n    if x[i] > y[0]:\n        y[0] = x[i]\n        y[int(z[0])] = 1",
    "m = z[0]\nfor i in range(len(x)):\n    if x[i] > m:\n        m = x[i]\n        z[i] = 1\n"
    "y[0] = m",
])  # fmt: skip
def test_what_stays(text: str) -> None:
    case = Case(text, True, y="f64[2]", x="f64[70]", z="f64[70]")
    assert changed(case) == case.body


PAIRS = "m = z[0]\nfor i in {}:\n    for j in {}:\n        d = abs(x[i] - x[j])\n" + (
    "        if d {} m:\n            m = d\n            y[0] = 1\n            b = i * j\n"
    "            c = j - i\ny[1] = m\ny[2] = b\ny[3] = c"
)
NESTED = [
    PAIRS.format("range(len(x))", "range(len(x))", ">"),
    PAIRS.format("range(len(x))", "range(i + 1, len(x))", "<"),
    PAIRS.format("range(2, len(x), 3)", "range(i)", ">"),
    PAIRS.format("range(3)", "range(5, len(x) - i, 2)", "<"),
    PAIRS.format("range(len(x))", "range(i + 1, len(x))", "<="),
    PAIRS.format("range(len(x) - 1, 3, -2)", "range(i)", ">="),
    PAIRS.format("range(9, -1, -1)", "range(9, 0, -3)", ">"),
]


@pytest.mark.parametrize("start", [0.25, 1.0, NAN, INF, -INF])
@pytest.mark.parametrize("text", NESTED)
def test_loops_in_each_other_look_together(text: str, start: float) -> None:
    case = Case("b = -1\nc = -2\n" + text.replace("y[0] = 1", "e = 1") + "\n", True,
                y="f64[4]", x="f64[12]", z="f64[1]")  # fmt: skip
    made = changed(case)
    after = case.fresh.declared(
        replace(case.program, kernels=(replace(case.program.kernels[0], body=made),))
    )
    verify_program(after)
    whole = map_program(case.program, Target("cuda"), exact=True).program
    values = np.random.default_rng(1).integers(-9, 9, 12) / 4
    values[4] = NAN
    given = [np.zeros(4), values, np.array([start])]
    for program in (after, whole, backwards(whole)):
        assert [a.tobytes() for a in ran(program, given)] == [
            a.tobytes() for a in ran(case.program, given)
        ]
    pairs = [s for s in statements(made) if isinstance(s, Update) and s.pair is not None]
    assert len(pairs) == 1


def test_rounds_below_zero_have_numbers_too() -> None:
    text = "m = z[0]\nb = 9\nfor i in range(-len(x), 0):\n    if x[i + len(x)] > m:\n"
    case = Case(text + "        m = x[i + len(x)]\n        b = i\ny[0] = m\ny[1] = b", True,
                y="f64[2]", x="f64[40]", z="f64[1]")  # fmt: skip
    kernel = replace(case.program.kernels[0], body=changed(case))
    made = case.fresh.declared(replace(case.program, kernels=(kernel,)))
    given = [np.zeros(2), np.sin(np.arange(40.0)), np.zeros(1)]
    got = ran(made, given)[0]
    assert got.tobytes() == ran(case.program, given)[0].tobytes() and got[1] < 0
