"""Numbers that rounds count on, and loops until a bound: which follow from rounds, and how."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.lowering.transform.induction import substitute_induction

from ..gpu.kernels import Case
from ..shown import text_of

ARRAYS = {"y": "f64[40]", "x": "f64[12]", "z": "f64[4, 3]", "k": "i64[4]"}
WHILE = "i = {}\nwhile {}:\n    y[i] = x[i % 12] + i\n    i {}\nk[3] = i"
FOUND = [
    WHILE.format("0", "i < 12", "+= 1"),
    WHILE.format("3", "i <= 30", "+= 4"),
    WHILE.format("39", "i >= k[0]", "-= 1"),
    WHILE.format("20", "2 < i", "-= 3"),
    WHILE.format("k[0]", "k[1] > i", "+= 1"),
    WHILE.format("k[0]", "i <= k[1]", "+= k[2]"),
    WHILE.format("9", "i < 3", "+= 1"),
    "n = 0\nfor i in range(3, -1, -1):\n    for j in range(3):\n        y[n] = z[i, j]\n"
    "        n += 1\n    n -= 2\nk[0] = n",
    "n = k[0]\nfor i in range(k[1]):\n    n += 3\n    y[n] = i\n    n -= 1\nk[2] = n",
    "n = 2\ni = 0\nwhile i < 4:\n    j = 0\n    while j < 3:\n        y[n] = z[i, j]\n"
    "        n += 1\n        j += 1\n    i += 1\nk[0] = n + i + j",
    "for i in range(9):\n    k[1] += 1\n    y[i] = k[1]\n    k[1] += 2",
    "for i in range(4):\n    for j in range(2, -1, -1):\n        k[1] += 3\n"
    "        z[i, j] = k[1]\n    y[k[1] % 40] += i",
    "p = 2\nwhile p * p < 40:\n    m = p * p\n    while m < 40:\n        y[m] += p\n"
    "        m += p\n    p += 1",
]  # fmt: skip


def given(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    k = np.array([rng.integers(0, 6), rng.integers(-3, 20), rng.integers(1, 5), 0])
    k[1] += 30 * (seed == 3)  # out of range, where these are ends
    return [rng.random(40), rng.random(12), rng.random((4, 3)), k]


@pytest.mark.parametrize("text", FOUND)
def test_they_count_to_the_same(text: str) -> None:
    case = Case(text, True, **ARRAYS)
    made = substitute_induction(case.program)
    kept = ("+= k[2]" in text) + 2 * ("p * p" in text)
    assert text_of(made).count("while ") == kept
    case.assert_scheduled(made, given, 6)


WHY = [
    ("it is left", WHILE.format("0", "i < 12", "+= 1").replace("    i +", "    if x[i] > 2:\n"
     "        break\n    i +")),
    ("a round may end early", WHILE.format("0", "i < 12", "+= 1").replace("    y", "    if x[i] > 2"
     ":\n        i += 2\n        continue\n    y")),
    ("the bound moves",
     WHILE.format("0", "i < k[0]", "+= 1").replace("    y", "    k[0] -= 1\n    y")),
    ("the step moves",
     WHILE.format("0", "i < 12", "+= k[0]").replace("    y", "    k[0] += 1\n    y")),
    ("it goes away from the bound", WHILE.format("20", "i < 12", "-= 1")),
    ("it stands still", WHILE.format("20", "i < 12", "+= 0")),
    ("it is changed twice",
     WHILE.format("0", "i < 9", "+= 1").replace("    y", "    i += 1\n    y")),
    ("it is counted under a test",
     "n = 0\nfor i in range(12):\n    if x[i] > 0:\n        y[n] = x[i]\n        n += 1"),
    ("the loop inside leaves numbers out",
     "n = 0\nfor i in range(4):\n    for j in range(0, 3, 2):\n        y[n] = z[i, j]\n"
     "        n += 1"),
    ("the loop inside leaves numbers out, backwards",
     "n = 0\nfor i in range(4):\n    for j in range(11, 0, -3):\n        n += 2\n"
     "        y[n] = x[j]\n    y[n] = i\nk[3] = n"),
    ("it grows by another number", "n = 0\nfor i in range(9):\n    n += i\n    y[n] = x[i]"),
]  # fmt: skip


@pytest.mark.parametrize(("why", "text"), WHY)
def test_others_stay_as_they_are(why: str, text: str) -> None:
    case = Case(text, True, **ARRAYS)
    assert substitute_induction(case.program) is case.program, why
