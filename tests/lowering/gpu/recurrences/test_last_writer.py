"""Elements that data picks, and that rounds fill: which are known by their last rounds."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.lowering import thresholds
from plusequals.lowering.gpu.mapping import map_program
from plusequals.lowering.gpu.recurrences.last_writer import rewrite_last_writers
from plusequals.lowering.target import Target

from ...shown import text_of
from ..kernels import Case

ARRAYS = {"y": "i64[9]", "z": "f64[3, 4]", "x": "f64[40]", "k": "i64[40]", "q": "i64[4]",
          "w": "f64[40, 3]"}  # fmt: skip
FILLED = [
    "for i in range(len(x)):\n    y[k[i]] = i",
    "for i in range(len(x) - 1, 3, -2):\n    if x[i] > 0:\n        y[k[i]] = i",
    "for i in range(len(x)):\n    t = x[i] * 2\n    if t > 1:\n        z[k[i] % 3, k[i] % 4] = t\n"
    "    else:\n        y[k[i]] = i",
    "for i in range(10):\n    for j in range(4):\n        z[k[i] % 3, q[j]] = i - j\n"
    "        y[k[j]] = j",
    "for i in range(4):\n    s = 0.0\n    for j in range(i):\n        s += x[j]\n"
    "    z[q[i], 1] = s",
]  # fmt: skip


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "MIN_LAST_WRITER_ITERATIONS", 1)


def given(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    k = rng.integers(0, 10 if seed % 4 == 3 else 9, 40)
    return [rng.integers(0, 9, 9), rng.random((3, 4)), rng.standard_normal(40), k,
            rng.integers(0, 3, 4), rng.random((40, 3))]  # fmt: skip


@pytest.mark.parametrize("text", FILLED)
def test_the_last_round_counts(text: str) -> None:
    case = Case(text, True, **ARRAYS)
    made = case.fresh.declared(rewrite_last_writers(case.program, case.facts, case.fresh))
    assert "_last" in text_of(made)
    case.assert_scheduled(made, given, 8)


def test_a_nest_of_nothing_but_a_store_marks_by_atomic_operations() -> None:
    case = Case("for i in range(2, 30):\n    for j in range(i * i, 900, i):\n        y[j] = i",
                True, y="i64[900]")  # fmt: skip
    text = text_of(map_program(case.program, Target("cuda"), exact=True).program)
    assert text.count("atomic y_last[") == 1 and text.count("y_last[") > 1


WHY = [
    ("it is read", "y[k[i]] = y[i % 9] + 1"),
    ("it is added to", "y[k[i]] += 1"),
    ("it is filled at two places", "y[k[i]] = 1\n    y[q[0]] = i"),
    (
        "it is filled more than once",
        "j = 0\n    while j < 2:\n        y[k[i + j]] = i\n        j += 1",
    ),
    ("rounds need each other", "y[k[i]] = i\n    if i > 0:\n        x[i] = x[i - 1] * 2"),
    ("the loop may be left", "y[k[i]] = i\n    if x[i] > 2:\n        break"),
    ("the rounds are independent", "x[i] = k[i]"),
    ("rows are independent", "for j in range(9):\n        w[i, q[j % 4]] = x[j]"),
]  # fmt: skip


@pytest.mark.parametrize(("why", "text"), WHY)
def test_others_stay_as_they_are(why: str, text: str) -> None:
    case = Case(f"for i in range(40):\n    {text}", True, **ARRAYS)
    made = rewrite_last_writers(case.program, case.facts, case.fresh)
    assert text_of(made) == text_of(case.program), why


def test_few_rounds_are_gone_through_by_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "MIN_LAST_WRITER_ITERATIONS", 41)
    case = Case(FILLED[0], True, **ARRAYS)
    assert rewrite_last_writers(case.program, case.facts, case.fresh) == case.program
