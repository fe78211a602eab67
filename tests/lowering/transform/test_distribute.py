"""Rounds with much that is independent: which do that first, and that they do the same."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.lowering import thresholds
from plusequals.lowering.gpu.passes import normalized
from plusequals.lowering.ir.printer import print_program
from plusequals.lowering.target import Target
from plusequals.lowering.transform.distribute import distribute_loops

from ..gpu.kernels import Case
from ..scheduled import function, interpreted, of_any_size, scheduled
from ..shown import text_of

ARRAYS = {"x": "f64[9, 7]", "y": "f64[9]", "h": "f64[5]", "k": "i64[9]"}
LONG = "s = y[i]\n    for j in range(7):\n        s = s * 0.5 + x[i, j]\n    "
FIRST = [
    "m = -1.0\na = 0\nfor i in range(9):\n    " + LONG + "if s > m:\n        m = s\n"
    "        a = i\nh[0] = m + a",
    "for i in range(8, 0, -1):\n    " + LONG + "h[k[i]] += s",
    "t = 0.0\nfor i in range(9):\n    " + LONG + "y[i] = s\n    t = t * s + y[i]\nh[1] = t",
    "for i in range(1, 9):\n    " + LONG + "s += 1\n    s *= h[0]\n    h[0] = s",
    "m = x[0, 0]\na = 0\nb = 0\nfor i in range(9):\n    c = x[i, 0]\n    d = 0\n"
    "    for j in range(7):\n        if x[i, j] > c:\n            c = x[i, j]\n            d = j\n"
    "    if c > m:\n        m = c\n        a = i\n        b = d\nh[0] = a\nh[1] = b",
]  # fmt: skip


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "MIN_FISSION_ITERATIONS", 4)


def given(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.integers(-9, 9, (9, 7)) / 4
    return [x, rng.random(9), rng.random(5), rng.integers(0, 6 if seed % 3 == 2 else 5, 9)]


@pytest.mark.parametrize("text", FIRST)
def test_they_do_the_same(text: str) -> None:
    case = Case(text, True, **ARRAYS)
    made = case.fresh.declared(distribute_loops(case.program, case.facts, case.fresh))
    assert "_expanded" in text_of(made)
    case.assert_scheduled(made, given, 6)


WHY = [
    ("rounds are independent", LONG + "y[i] = s"),
    ("rounds need each other for it", LONG.replace("y[i]", "y[i - 1]") + "y[i] = s"),
    ("nothing is long", "s = y[i] * 2\n    h[k[i]] += s"),
    ("both may fail", LONG.replace("x[i, j]", "x[i, k[j]]") + "h[k[i]] += s"),
    ("the loop may be left", LONG + "h[0] = h[0] * s\n    if s > 2:\n        break"),
    ("it changes what later rounds need", LONG + "h[0] = h[0] * s\n    y[i + 1] = s"),
    ("more than scalars are kept",
     "t = np.zeros(3)\n    for j in range(7):\n        t[j % 3] = x[i, j]\n    h[0] = h[0] * t[1]"),
]  # fmt: skip


@pytest.mark.parametrize(("why", "text"), WHY)
def test_others_stay_as_they_are(why: str, text: str) -> None:
    case = Case(f"for i in range(1, 8):\n    {text}", True, **ARRAYS)
    made = distribute_loops(case.program, case.facts, case.fresh)
    assert text_of(made) == text_of(case.program), why


def test_the_best_of_all_rows_of_any_number() -> None:
    text = "def f(x, y):\n    m = x[0, 0]\n    a = 0\n    b = 0\n    for i in range(x.shape[0]):\n"
    text += "        for j in range(x.shape[1]):\n            if x[i, j] > m:\n"
    text += "                m = x[i, j]\n                a = i\n                b = j\n"
    arguments = [given(0)[0], np.zeros(2, np.int64)]
    any_size = of_any_size(function(text + "    y[0] = a\n    y[1] = b"), *arguments)
    program = scheduled(any_size, Target("cuda"))
    made = normalized(program)
    assert "m_first_expanded: f64[x_0]" in print_program(made)
    for seed in range(4):
        arguments = [given(seed)[0], np.zeros(2, np.int64)]
        want = [array.tobytes() for array in interpreted(program, *arguments)]
        assert [array.tobytes() for array in interpreted(made, *arguments)] == want
