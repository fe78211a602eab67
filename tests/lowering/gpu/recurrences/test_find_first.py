"""Loops that are left: which look for the round that leaves them, and that they find the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plusequals.base.diagnostic import CdIndexError
from plusequals.lowering.gpu.mapping import map_program
from plusequals.lowering.gpu.recurrences.find_first import rewrite_find_first
from plusequals.lowering.ir.assignments import Break
from plusequals.lowering.ir.loops import Program
from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.target import Target

from ...shown import text_of
from ..kernels import Case, backwards, ran

FIRST = "b = -7\nfor i in range({}):\n    if x[i] > z[0]:\n        b = {}\n        break\ny[0] = b"
PAIR = (
    "a = -1\nb = -2\nfound = False\nfor i in {}:\n    for j in {}:\n"
    "        if x[i] + x[j % len(x)] > z[0]:\n            a = i\n            b = j\n"
    "            found = True\n            break\n    if found:\n        break\n"
    "y[0] = a\ny[1] = b + found"
)
TEXTS = [
    FIRST.format("len(x)", "i"),
    FIRST.format("3, len(x), 2", "2 * i + 1"),
    FIRST.format("len(x) - 1, -1, -1", "i"),
    FIRST.format("len(x)", "x[len(x) - 1 - i] * 2"),
    FIRST.format("len(x)", "3"),
    FIRST.format("len(x)", "b * 2 + i"),
    FIRST.format("5", "i"),
    "for i in range(len(x)):\n    d = abs(x[i] - z[0])\n    if d < 1:\n        y[0] = d\n"
    "        y[1] = i\n        break",
    "d = 7.0\nfor i in range(len(x)):\n    d = x[i] * 2\n    if d > z[0]:\n        break\ny[0] = d",
    "d = 7.0\nfor i in range(len(x) - 1, 2, -2):\n    d = x[i] * 2\n    if d > z[0]:\n"
    "        d = d + 1\n        y[1] = i\n        break\ny[0] = d",
    "for i in range(len(x)):\n    if x[i] > z[0]:\n        y[0] = i\n        break\n    else:\n"
    "        if x[i] < -z[0] - 1:\n            y[1] = i\n            break",
    "for i in range(len(x)):\n    if x[i] > z[0]:\n        if x[i] > z[0] + 1:\n"
    "            y[1] = 3\n            break\n        y[0] = i\n        break",
    "for i in range(len(x)):\n    s = 0.0\n    for j in range(3):\n        s += x[(i + j) % 7]\n"
    "    if s > z[0]:\n        y[0] = s\n        for j in range(3):\n            y[1] += j * i\n"
    "        break",
    PAIR.format("range(len(x))", "range(len(x))"),
    PAIR.format("range(len(x))", "range(i + 1, len(x))"),
    PAIR.format("range(2, 9)", "range(7, 0, -2)"),
    PAIR.format("range(8, 2, -3)", "range(i)"),
    PAIR.format("range(5)", "range(3)").replace("found = False\nfor", "for").replace(
        "    for j", "    found = False\n    for j", 1),
    "a = -1\nb = -1\nfor i in range(len(x)):\n    t = x[i] * 2\n    for j in range(i):\n"
    "        if t - x[j] > z[0]:\n            a = i\n            b = j\n            break\n"
    "    else:\n        continue\n    break\ny[0] = a\ny[1] = b",
    "a = -1\nfor i in range(4):\n    for j in range(5):\n        for k in range(i + j):\n"
    "            if x[i + j] - x[k] > z[0]:\n                a = 100 * i + 10 * j + k\n"
    "                break\n        if a >= 0:\n            break\n    if a > -1:\n"
    "        break\ny[0] = a",
]  # fmt: skip


def values_of(n: int, z: float) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    return [np.full(2, 9.0), rng.integers(-4, 5, n) / 2, np.array([z])]


@pytest.mark.parametrize("n", [11, 40])
@pytest.mark.parametrize("text", TEXTS)
def test_they_find_the_same(text: str, n: int) -> None:
    case = Case(text, True, y="f64[2]", x=f"f64[{n}]", z="f64[1]")
    made = case.fresh.declared(rewrite_find_first(case.program, case.facts, case.fresh))
    assert not any(isinstance(stmt, Break) for stmt in statements(made.kernels[0].body))
    whole = map_program(case.program, Target("cuda"), exact=True).program
    for program in (made, whole, backwards(whole)):
        verify_program(program)
        for z in (-9.0, 0.0, 1.5, 3.5, 9.0, np.nan) if program is made else (1.5, 9.0):
            given = values_of(n, z)
            got, want = ran(program, given), ran(case.program, given)
            assert [a.tobytes() for a in got] == [a.tobytes() for a in want]


WHY = [
    ("the loop does more before it is left",
     "b = 0\nfor i in range(len(x)):\n    x[i] = z[0]\n    if x[i] > 1:\n        b = i\n"
     "        break\ny[0] = b"),
    ("the loop does more until it is left",
     "n = 0\nb = 0\nfor i in range(len(x)):\n    if x[i] > 1:\n        b = i\n        break\n"
     "    n += 1\ny[0] = b + n"),
    ("there may be no end to the rounds",
     "b = 0\nfor i in range(10 ** 12):\n    if x[i % len(x)] * i > 99:\n        b = i\n"
     "        break\ny[0] = b"),
    ("there may be no end to a round",
     "b = 0\nfor i in range(len(x)):\n    v = x[i]\n    while v < 9:\n        v = v * 2\n"
     "    if v > 1:\n        b = i\n        break\ny[0] = b"),
    ("each point looks for itself",
     "for k in range(len(y)):\n    b = 0\n    for i in range(len(x)):\n        if x[i] > k:\n"
     "            b = i\n            break\n    y[k] = b"),
    ("what some round found is used",
     "d = 0.0\nfor i in range(len(x)):\n    if x[i] > 1:\n        break\n    d = x[i] * 2\n"
     "y[0] = d"),
    ("what some round may have found is used",
     "d = 0.0\nfor i in range(len(x)):\n    if x[i] < 0:\n        d = x[i] * 2\n    if x[i] > 1:\n"
     "        break\ny[0] = d"),
]  # fmt: skip


@pytest.mark.parametrize(("why", "text"), WHY)
def test_others_stay_as_they_are(why: str, text: str) -> None:
    case = Case(text, True, y="f64[90]", x="f64[40]", z="f64[1]")
    made = rewrite_find_first(case.program, case.facts, case.fresh)
    assert text_of(made) == text_of(case.program), why


APART = [
    ("the flag is set before", PAIR.replace("found = False\n", "found = z[0] > 1\n")),
    ("the flag may not be set where it is left", PAIR.replace(
        "            found = True", "            found = x[j % len(x)] > 1")),
    ("more is done between", PAIR.replace("    if found", "    x[i] = 1\n    if found")),
    ("the inner loop goes on with what is set before it", PAIR.replace(
        "    for j", "    s = 0.0\n    for j").replace(
        "        if x[i] + x[j", "        s = s + x[j % len(x)]\n        if s + x[j")),
    ("the inner loop changes what is read before it", "w = 0.0\n" + PAIR.replace(
        "    for j", "    t = w\n    for j").replace(
        "        if x[i]", "        w = x[j % len(x)]\n        if t")),
    ("the flag is asked inside", PAIR.replace("        if x", "        if not found and x", 1)),
]  # fmt: skip


@pytest.mark.parametrize(("why", "text"), APART)
def test_loops_that_are_not_left_together_are_left_one_by_one(why: str, text: str) -> None:
    text = text.format("range(len(x))", "range(len(x))")
    case = Case(text, True, y="f64[2]", x="f64[20]", z="f64[1]")
    made = case.fresh.declared(rewrite_find_first(case.program, case.facts, case.fresh))
    assert any(isinstance(s, Break) for s in statements(made.kernels[0].body)), why
    whole: Program = map_program(case.program, Target("cuda"), exact=True).program
    for program in (made, whole, backwards(whole)):
        for z in (-9.0, 1.5, 3.5, 9.0):
            given = values_of(20, z)
            got, want = ran(program, given), ran(case.program, given)
            assert [a.tobytes() for a in got] == [a.tobytes() for a in want], why


CHECKED = (
    "b = -1\nfor i in range(len(k)):\n    if x[k[i]] > 1:\n        b = i\n"
    "        y[1] = x[k[i] + 1]\n        break\ny[0] = b"
)


@pytest.mark.parametrize(("hit", "bad"), [(20, 50), (50, 20), (50, 50), (70, 0), (0, 70)])
def test_checks_fail_up_to_the_round_that_is_found_and_not_behind_it(hit: int, bad: int) -> None:
    case = Case(CHECKED, True, y="f64[2]", x="f64[9]", k="i64[64]")
    made = map_program(case.program, Target("cuda"), exact=True).program
    assert "min= i" in text_of(made)
    k = np.zeros(64, np.int64)
    k[hit : hit + 1] = 4
    k[bad : bad + 1] = -20
    given = [np.zeros(2), np.arange(9) / 4, k]
    given[1][4] = 2.0
    for program in (made, backwards(made)):
        if bad <= hit and bad < 64:
            with pytest.raises(CdIndexError, match="index -20"):
                ran(program, given)
        else:
            got, want = ran(program, given), ran(case.program, given)
            assert [a.tobytes() for a in got] == [a.tobytes() for a in want]


def test_a_check_behind_what_is_found_fails_there() -> None:
    case = Case(CHECKED, True, y="f64[2]", x="f64[9]", k="i64[64]")
    made = map_program(case.program, Target("cuda"), exact=True).program
    given = [np.zeros(2), np.full(9, 4.0), np.full(64, 8)]
    with pytest.raises(CdIndexError, match="index 9"):
        ran(made, given)


def test_a_search_of_a_large_array_is_shared_by_many_blocks() -> None:
    case = Case(TEXTS[0], True, y="f64[2]", x="f64[50000]", z="f64[1]")
    made = map_program(case.program, Target("cuda"), exact=True).program
    assert "for part in 0..13 block:" in text_of(replace(made, locals=()))
