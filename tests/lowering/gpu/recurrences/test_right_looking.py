"""Rounds that hand on what later ones need: which do, and that every element stays as it is."""

from __future__ import annotations

import pytest

from plusequals.lowering import thresholds
from plusequals.lowering.analysis.dependence import find_dependence
from plusequals.lowering.gpu.recurrences.right_looking import rewrite_right_looking
from plusequals.lowering.ir.indexing import var
from plusequals.lowering.ir.loops import Comment, For, Stmt
from plusequals.lowering.ir.walk import statements

from ..kernels import Case

ARRAYS = {"x": "f64[14]", "b": "f64[14]", "m": "f64[14, 14]"}
SOLVED = "for i in range({0}, 12):\n    s = b[i]\n    for j in range({0}, i):\n        {1}\n    {2}"


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "MIN_WAVEFRONT_ITERATIONS", 4)


def made_of(case: Case) -> tuple[Stmt, ...]:
    body = rewrite_right_looking(case.program, case.facts, case.fresh).kernels[0].body
    return tuple(stmt for stmt in body[case.last :] if not isinstance(stmt, Comment))


TURNED = [
    SOLVED.format(0, "s -= m[i, j] * x[j]", "x[i] = s / (2 + abs(m[i, i]))"),
    SOLVED.format(3, "s -= m[i, j] * x[j]", "x[i] = s"),
    SOLVED.format(2, "t = m[i, j] * x[j]\n        s -= t * abs(t)", "x[i] = s"),
    SOLVED.format(0, "s = s * x[j] + m[i, j]", "t = s * 2\n    x[i] = t + x[i]"),
    "for i in range(12):\n    for j in range(i):\n        b[i] -= m[i, j] * b[j]",
    "for i in range(12):\n    for j in range(i):\n        if m[i, j] > 0:\n"
    "            b[i] -= m[i, j] * x[j]\n    x[i] = b[i] * 0.5\n    b[i] = 1.0",
    "for k in range(12):\n    for j in range(k):\n        r = 0.0\n        for i in range(5):\n"
    "            r += m[i, j] * m[i, k]\n        for i in range(5):\n"
    "            m[i, k] -= r * m[i, j]\n    s = 0.0\n    for i in range(5):\n"
    "        s += m[i, k] * m[i, k]\n    for i in range(5):\n        m[i, k] /= 1 + s",
    "for t in range(2):\n    for i in range(12):\n        s = b[i]\n        for j in range(i):\n"
    "            s -= m[i, j] * x[j]\n        x[i] = s\n    for i in range(12):\n"
    "        b[i] += x[i] * 0.25",
]  # fmt: skip


@pytest.mark.parametrize("text", TURNED)
def test_rounds_hand_on_what_they_found(text: str) -> None:
    case = Case(text, True, **ARRAYS)
    made = made_of(case)
    case.assert_same(made)
    loops = [stmt for stmt in statements(made) if isinstance(stmt, For)]
    later = [one for one in loops if any(one.lo == var(loop.symbol) + 1 for loop in loops)]
    assert later, "there is a loop over what comes"
    own = frozenset(node.id for node in case.fresh.nodes if not node.rank) | case.facts.all_nodes
    assert all(find_dependence(one, own) is None for one in later)


@pytest.mark.parametrize("text", [
    SOLVED.format(0, "s -= m[i, j] * x[j + 1]", "x[i] = s"),  # of the round behind
    SOLVED.format(0, "s -= m[i, j] * x[j]", "x[i] = s\n    b[i + 1] = x[i]"),  # starts need it
    SOLVED.format(0, "s -= m[i, j] * x[j]", "x[i] = s\n    x[0] = s"),  # changes it once more
    SOLVED.format(0, "s -= m[i, j] * x[j]\n        if s > 9:\n            break", "x[i] = s"),
    SOLVED.format(0, "s -= m[i, j] * x[j]\n        print(s)", "x[i] = s"),
    SOLVED.format(0, "x[j] += m[i, j]\n        s -= x[j]", "x[i] = s"),  # each changes earlier ones
    "for i in range(12):\n    s = b[i]\n    for j in range(1, i):\n        s -= m[i, j] * x[j]\n"
    "    x[i] = s",  # not over all earlier rounds
    "s = 1.0\nfor i in range(12):\n    for j in range(i):\n        s -= m[i, j] * x[j]\n"
    "    x[i] = s",  # one scalar for all
    SOLVED.format(0, "s -= m[i, j] * x[j]", "x[i] = s").replace(
        "    for j", "    if b[i] > 0:\n        continue\n    for j"
    ),  # iterations that end early
    "for i in range(12):\n    if b[i] > 0:\n        b[i] = 3.0\n        continue\n"
    "    for j in range(i):\n        b[i] -= m[i, j] * b[j]\n    b[i] *= 0.5",
    SOLVED.format(0, "m[i, j] = b[j] * 2", "x[i] = s"),  # has independent rounds
])  # fmt: skip
def test_what_stays(text: str) -> None:
    case = Case(text, True, **ARRAYS)
    assert rewrite_right_looking(case.program, case.facts, case.fresh) == case.program
