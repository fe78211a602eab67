"""Rounds that count elements that data picks, and use the counts: which find these before."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.lowering import thresholds
from plusequals.lowering.analysis.parallel_band import facts_of
from plusequals.lowering.gpu.recurrences.multi_prefix import rewrite_multi_prefix
from plusequals.lowering.ir.rewrite import map_kernels
from plusequals.lowering.transform.recognize_updates import recognize_updates

from ...shown import text_of
from ..kernels import Case

ARRAYS = {"y": "i64[60]", "x": "i64[40]", "k": "i64[40]", "c": "i64[5]", "d": "i64[5, 3]"}
LOOP = "for i in range(len(x)):\n    "
COUNTED = [
    LOOP + "y[c[k[i]]] = x[i]\n    c[k[i]] += 1",
    LOOP + "j = k[i]\n    y[c[j]] = i\n    c[j] += 1\nd[0, 0] = c[1]",
    LOOP + "if x[i] > 2:\n        e = k[i] % 2\n        y[c[e]] = x[i]\n        c[e] += x[i]",
    "for i in range(len(x) - 1, 0, -1):\n    c[k[i]] -= 1\n    y[i] = 3",
    "for i in range(len(x) - 1, -1, -1):\n    y[i] = c[k[i]]\n    c[k[i]] = max(c[k[i]], x[i])",
    LOOP + "y[i] = d[k[i], x[i] % 3]\n    d[k[i], x[i] % 3] += 2",
    "for t in range(2):\n    for i in range(len(x)):\n        y[c[k[i]]] = t\n        c[k[i]] += 1",
]


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "MIN_PREFIX_CHUNK_ITERATIONS", 8)
    monkeypatch.setattr(thresholds, "MIN_LAST_WRITER_ITERATIONS", 1)


def with_updates(text: str) -> Case:
    case = Case(text, True, **ARRAYS)
    case.program = map_kernels(case.program, recognize_updates)
    case.facts = facts_of(case.program, True)
    return case


def given(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    top = 6 if seed % 4 == 3 else 5
    c = np.arange(0, 50, 10) + rng.integers(0, 12 if seed % 4 == 2 else 2, 5)
    return [rng.integers(0, 9, 60), rng.integers(0, 9, 40), rng.integers(0, top, 40), c,
            rng.integers(0, 9, (5, 3))]  # fmt: skip


@pytest.mark.parametrize("text", COUNTED)
def test_rounds_find_the_same_counts(text: str) -> None:
    case = with_updates(text)
    made = case.fresh.declared(rewrite_multi_prefix(case.program, case.facts, case.fresh))
    assert ("_expanded" in text_of(made)) == ("= 3" not in text)
    case.assert_scheduled(made, given, 8)


WHY = [
    ("what is counted is asked elsewhere", "y[c[k[i]] + c[0]] = 1\n    c[k[i]] += 1"),
    ("it is asked behind", "c[k[i]] += 1\n    y[c[k[i]]] = 1"),
    ("it is counted where it is asked",
     "if c[k[i]] < 9:\n        y[i] = c[k[i]]\n        c[k[i]] += 1"),
    ("it is asked where it is not counted",
     "y[i] = c[k[i]]\n    if x[i] > 2:\n        c[k[i]] += 1"),
    ("where it is counted is changed", "y[i] = c[k[i]]\n    c[k[i]] += 1\n    k[0] = 2"),
    ("it is counted twice", "y[i] = c[k[i]]\n    c[k[i]] += 1\n    c[0] += 1"),
    ("rounds need each other", "y[i] = c[k[i]] + y[i - 1]\n    c[k[i]] += 1"),
    ("the order counts", "y[i] = c[k[i]]\n    c[k[i]] = 2 * c[k[i]] + x[i]"),
]  # fmt: skip


@pytest.mark.parametrize(("why", "text"), WHY)
def test_others_stay_as_they_are(why: str, text: str) -> None:
    case = with_updates(f"for i in range(1, 40):\n    {text}")
    made = rewrite_multi_prefix(case.program, case.facts, case.fresh)
    assert text_of(made) == text_of(case.program), why
