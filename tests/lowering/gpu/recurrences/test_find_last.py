"""Loops that keep what one round found: which look for that round, and that they find the same."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.lowering.gpu.mapping import map_program
from plusequals.lowering.gpu.recurrences.find_last import rewrite_find_last
from plusequals.lowering.ir.loops import Program
from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.target import Target

from ...shown import text_of
from ..kernels import Case, backwards, ran

LAST = "b = -7\nfor i in range({}):\n    if x[i] > z[0]:\n        b = {}\ny[0] = b"
FIRST = (
    "b = -7\nfound = False\nfor i in range(len(x)):\n    if {}:\n        b = {}\n"
    "        found = True\ny[0] = b\ny[1] = found"
)
GRID = (
    "for i in {}:\n    for j in {}:\n        if x[(3 * i + j) % len(x)] > z[0]:\n"
    "            y[0] = i\n            y[1] = {}"
)
TEXTS = [
    LAST.format("len(x)", "i"),
    LAST.format("len(x) - 1, 2, -3", "i"),
    LAST.format("len(x)", "x[i] + z[0]"),
    LAST.format("1, len(x)", "i * i"),
    "for i in range(-len(x), 0):\n    if x[i + len(x)] > z[0]:\n        y[1] = i",
    "for i in range(len(x)):\n    d = abs(x[i] - z[0])\n    e = d * d\n    if e < 1:\n"
    "        y[0] = e + d\n        y[1] = i",
    "b = -1\nc = -1\nfor i in range(len(x)):\n    if x[i] > z[0]:\n        b = i\n    else:\n"
    "        c = i\ny[0] = b\ny[1] = c",
    "n = 0\nb = -1\nfor i in range(len(x)):\n    if x[i] > z[0]:\n        n += 1\n        b = i\n"
    "y[0] = b\ny[1] = n",
    "b = -1\nfor i in range(len(x)):\n    if x[i] > z[0]:\n        if x[i] < 3:\n"
    "            y[0] = i\n        else:\n            b = i\ny[1] = b",
    FIRST.format("b < 0 and x[i] > z[0]", "i"),
    FIRST.format("x[i] > z[0] and b == -7 and x[i] < 9", "i * 2"),
    FIRST.format("not found and x[i] > z[0]", "x[i] * 2"),
    FIRST.format("found == False and x[i] > z[0]", "3"),
    FIRST.format("x[i] > z[0] and not found", "i").replace("found = False", "found = z[0] > 1"),
    "b = -1\nn = 0\nfor i in range(len(x)):\n    if b < 0:\n        if x[i] > z[0]:\n"
    "            b = i\n    if x[i] > 1:\n        n += 1\ny[0] = b\ny[1] = n",
    "b = -1\nc = 7\nfor i in range(3):\n    for j in range(len(x)):\n"
    "        if b < 0 and x[j] > z[0] + i:\n            b = i\n            c = j\n"
    "y[0] = b\ny[1] = c",
    "b = -1\nc = -1\nfor i in range(len(x)):\n    if x[i] > z[0]:\n        if b < 0:\n"
    "            b = i\n    if x[i] < z[0] and c < 0:\n        c = i + 3\n"
    "y[0] = b\ny[1] = c",
    "b = -1\nfor i in range(len(x)):\n    if x[i] > z[0]:\n        b = i\n        continue\n"
    "    x[i] = 1\ny[0] = b",
    "b = -1\nfor i in range(len(x)):\n    if x[i] > z[0]:\n        b = i\n"
    "        if x[i] > 1:\n            continue\n        x[i] = 9\n    x[i] += 1\ny[0] = b",
    "b = -1\nfor i in range(len(x)):\n    if x[i] > z[0]:\n        if x[i] > 1:\n"
    "            continue\n        b = i\n    x[i] += 1\ny[0] = b",
    GRID.format("range(4)", "range(len(x))", "j"),
    GRID.format("range(5)", "range(i, 9)", "i * j"),
    GRID.format("range(2, 9, 3)", "range(8, -1, -2)", "j"),
    GRID.format("range(6, 0, -1)", "range(i + 2)", "x[j % len(x)]"),
]


def values_of(n: int, z: float) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    return [np.full(2, 9.0), rng.integers(-4, 5, n) / 2, np.array([z])]


def programs(case: Case) -> list[Program]:
    """The program with reductions, and its kernels in both orders."""
    made = rewrite_find_last(case.program, case.facts, case.fresh)
    assert made is not case.program
    whole = map_program(case.program, Target("cuda"), exact=True).program
    return [case.fresh.declared(made), whole, backwards(whole)]


@pytest.mark.parametrize("n", [11, 90])
@pytest.mark.parametrize("text", TEXTS)
def test_they_find_the_same(text: str, n: int) -> None:
    case = Case(text, True, y="f64[2]", x=f"f64[{n}]", z="f64[1]")
    made = programs(case)
    for program in made:
        verify_program(program)
        for z in (-9.0, 0.0, 1.5, 9.0, np.nan):
            given = values_of(n, z)
            got, want = ran(program, given), ran(case.program, given)
            assert [a.tobytes() for a in got] == [a.tobytes() for a in want]


WHY = [
    ("the value before is looked at",
     "b = 0\nfor i in range(len(x)):\n    if x[i] > b:\n        b = i\ny[0] = b"),
    ("two places keep it",
     "b = 0\nfor i in range(len(x)):\n    if x[i] > 1:\n        b = i\n    if x[i] < 0:\n"
     "        b = -i\ny[0] = b"),
    ("what it keeps changes",
     "b = 0.0\nfor i in range(len(x)):\n    x[i] = z[0]\n    if x[i] > 1:\n"
     "        b = x[len(x) - i - 1]\ny[0] = b"),
    ("the loop is left",
     "b = 0\nfor i in range(10 ** 12):\n    if x[i % len(x)] * i > 99:\n        b = i\n"
     "        break\ny[0] = b"),
    ("it may be found again",
     "b = -1\nfor i in range(-3, 30):\n    if b < 0 and x[i + 3] > 1:\n        b = i\ny[0] = b"),
    ("it may be found again, for all that is known",
     "b = 0.0\nfor i in range(len(x)):\n    if b == 0 and x[i] > 1:\n        b = x[i]\n"
     "y[0] = b"),
    ("more is done where it is found",
     "b = -1\nfor i in range(len(x)):\n    if b < 0 and x[i] > 1:\n        b = i\n"
     "        y[i] = 2\ny[0] = b"),
    ("more is done before it is found",
     "b = -1\nfor i in range(len(x)):\n    if b < 0:\n        y[i] = 3\n"
     "        if x[i] > 1:\n            b = i\ny[0] = b"),
    ("more is done behind it",
     "b = -1\nfor i in range(len(x)):\n    if b < 0 and x[i] > 1:\n        b = i\n"
     "    else:\n        y[i] = 3\ny[0] = b"),
    ("what is found is used",
     "b = -1\nfor i in range(len(x)):\n    if b < 0 and x[i] > 1:\n        b = i\n"
     "    y[i] = b"),
    ("only some of it is kept where an iteration ends",
     "b = -1\nc = -1\nfor i in range(len(x)):\n    if x[i] > 1:\n        b = i\n"
     "        if x[i] > 2:\n            continue\n        c = i\ny[0] = b\ny[1] = c"),
    ("what is asked changes",
     "b = -1\nfor i in range(len(x)):\n    if b < i and x[i] > 1:\n        b = i\ny[0] = b"),
]  # fmt: skip


@pytest.mark.parametrize(("why", "text"), WHY)
def test_others_stay_as_they_are(why: str, text: str) -> None:
    case = Case(text, True, y="f64[90]", x="f64[40]", z="f64[1]")
    made = rewrite_find_last(case.program, case.facts, case.fresh)
    assert text_of(made) == text_of(case.program), why


def test_what_fails_first_is_seen() -> None:
    text = "for i in range(len(x)):\n    if x[k[i]] > 1:\n        y[0] = i"
    case = Case(text, True, y="f64[2]", x="f64[40]", k="i64[40]")
    made = rewrite_find_last(case.program, case.facts, case.fresh)
    assert text_of(made) == text_of(case.program), "`y` is seen after an error"
    local = Case("b = 0\n" + text.replace("y[0]", "b") + "\ny[0] = b", True,
                 y="f64[2]", x="f64[40]", k="i64[40]")  # fmt: skip
    made = local.fresh.declared(rewrite_find_last(local.program, local.facts, local.fresh))
    assert "max=" in text_of(made)
    given = [np.zeros(2), np.linspace(-1, 3, 40), np.arange(40)[::-1].copy()]
    assert ran(made, given)[0][0] == ran(local.program, given)[0][0] == 19
