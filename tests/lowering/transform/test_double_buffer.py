"""Rounds that need what later ones change: which find it before, and that it is the same."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.base.diagnostic import CdIndexError
from plusequals.lowering.gpu.mapping import map_program
from plusequals.lowering.ir.loops import Program
from plusequals.lowering.ir.printer import print_program
from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.target import Target
from plusequals.lowering.transform.double_buffer import double_buffer

from ..gpu.kernels import Case, backwards, ran
from ..scheduled import function, interpreted, of_any_size, scheduled
from ..shown import text_of

ARRAYS = {"x": "f64[40]", "y": "f64[40]", "k": "i64[4]", "z": "f64[6, 7]"}
KNOWN = [
    "for i in range(len(x) - 1):\n    x[i] = x[i + 1] * 0.5 + y[i]",
    "for i in range(len(x) - 1, 2, -1):\n    x[i] += x[i - 3] * y[i]",
    "for i in range(0, len(x) - 5, 2):\n    x[i] = x[i + 4] - x[i + 1]",
    "for i in range(len(x) - 1):\n    d = x[i + 1] * 2\n    if d > y[i]:\n        x[i] = d + x[i]",
    "for i in range(len(x) - 1):\n    if x[i + 1] > y[i]:\n        x[i] = 3\n    else:\n"
    "        y[i] = 3",
    "for t in range(3):\n    for i in range(len(x) - 1 - t):\n        x[i] = max(x[i + 1], x[i])",
    "for i in range(5):\n    for j in range(7):\n        z[i, j] = z[i + 1, 6 - j] + 1",
    "for i in range(5):\n    for j in range(6):\n        z[i, j] = z[i, j + 1] + z[i + 1, j]",
    "for i in range(2, 30):\n    s = 0.0\n    for j in range(3):\n        s += x[i + j]\n"
    "    x[i - 2] = s",
]
DATA = [
    "for t in range(3):\n    for c in range(39, k[t] - 1, -1):\n"
    "        x[c] = max(x[c], x[c - k[t]] + y[t])",
    "for i in range(10, 20):\n    x[i] = x[i + k[0]] * 2",
    "for i in range(20, 10, -1):\n    if y[i] > 0:\n        x[i] += x[i - k[0]] + x[k[1] + i]",
]


def given(seed: int, k: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    x, y = rng.integers(-9, 9, (2, 40)) / 4
    return [x, y, np.array([k, abs(k), k // 2, 0]), rng.standard_normal((6, 7))]


@pytest.mark.parametrize("text", KNOWN + DATA)
def test_they_find_the_same(text: str) -> None:
    case = Case(text, True, **{name: ARRAYS[name] for name in ARRAYS})
    made = case.fresh.declared(double_buffer(case.program, case.facts, case.fresh))
    assert ("_new" in text_of(made)) == ("y[i] = 3" not in text)
    assert ("else:\n" in text_of(made)) == (text in (*DATA, KNOWN[4]))
    whole = map_program(case.program, Target("cuda"), exact=True).program
    for program in (made, whole, backwards(whole)):
        verify_program(program)
        for k in (-6, -1, 0, 1, 4) if text in DATA else (1, 2):
            held = given(k + 9, k)
            try:
                want = ran(case.program, held)
            except CdIndexError as error:
                with pytest.raises(CdIndexError, match=str(error).splitlines()[0][-40:]):
                    ran(program, held)
                continue
            got = ran(program, held)
            assert [a.tobytes() for a in got] == [a.tobytes() for a in want], k


def test_what_is_new_has_the_size_of_the_run() -> None:
    text = "def f(x, k):\n    for c in range(len(x) - 1, k[0] - 1, -1):\n"
    text += "        x[c] = max(x[c], x[c - k[0]] + 1)"
    arguments = [np.arange(40) % 7, np.array([3])]
    program = scheduled(of_any_size(function(text), *arguments), Target("cuda"))
    whole = map_program(program, Target("cuda"), exact=True).program
    assert "x_new: i64[x_0]" in print_program(whole)
    for k in (-2, 0, 1, 5):
        arguments[1][0] = k
        want = raised_or(program, arguments)
        assert all(raised_or(one, arguments) == want for one in (whole, backwards(whole))), k


def raised_or(program: Program, arguments: list[np.ndarray]) -> list[bytes] | str:
    """Return what a program leaves in its arguments, or what it raises."""
    try:
        return [array.tobytes() for array in interpreted(program, *arguments)]
    except CdIndexError as error:
        return str(error).splitlines()[0]


WHY = [
    ("it was changed before", "for i in range(1, len(x)):\n    x[i] = x[i - 1] * 0.5"),
    ("both are needed", "for i in range(1, len(x) - 1):\n    x[i] = x[i - 1] * 0.5 + x[i + 1]"),
    ("two rounds change one", "for i in range(len(x) - 1):\n    x[i // 2] = x[i // 2 + 1]"),
    ("more is changed", "for i in range(len(x) - 1):\n    x[i] = x[i + 1]\n    y[i + 1] = y[i]"),
    ("it is changed twice", "for i in range(len(x) - 1):\n    for j in range(3):\n"
     "        if y[j] > 0:\n            x[i] += x[i + 1]\n    y[i] = 2"),
    ("the new value is asked",
     "for i in range(len(x) - 1):\n    x[i] = x[i + 1]\n    if x[i] > 3:\n        k[0] = 1"),
    ("it is anywhere", "for i in range(3):\n    x[i] = x[k[i]]"),
    ("it is not moved on by one", "for i in range(15):\n    x[2 * i] = x[2 * i + k[0]]"),
    ("the rounds are independent", "for i in range(len(x)):\n    x[i] = x[i] * 2"),
]  # fmt: skip


@pytest.mark.parametrize(("why", "text"), WHY)
def test_others_stay_as_they_are(why: str, text: str) -> None:
    case = Case(text, True, **ARRAYS)
    made = double_buffer(case.program, case.facts, case.fresh)
    assert text_of(made) == text_of(case.program), why
