"""Rounds that fill what is not filled yet: which mark it first, and that they fill the same."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.base.diagnostic import CdIndexError
from plusequals.lowering.gpu.mapping import map_program
from plusequals.lowering.gpu.recurrences.idempotent_scatter import rewrite_idempotent_scatters
from plusequals.lowering.ir.printer import print_program
from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.target import Target

from ...scheduled import function, interpreted, of_any_size, scheduled
from ...shown import text_of
from ..kernels import Case, backwards, ran

ARRAYS = {"a": "i64[12]", "b": "b[12]", "u": "i64[40]", "v": "i64[40]", "k": "i64[3]"}
EDGES = "for e in range(len(u)):\n    if {}:\n        {}\n"
TEXTS = [
    EDGES.format("a[u[e]] == k[0] and a[v[e]] < 0", "a[v[e]] = k[0] + 1"),
    EDGES.format("a[u[e]] == k[0] and a[v[e]] < k[2]", "a[v[e]] = k[1]"),
    EDGES.format("e != 7 and a[u[e]] == k[0] and a[v[e]] == k[2]", "a[v[e]] = k[1]"),
    EDGES.format("a[u[e]] > 0 and not b[v[e]]", "b[v[e]] = True"),
    EDGES.format("a[u[e]] == k[0] and not b[v[e]] and a[v[e]] == -1",
                 "b[v[e]] = True\n        a[v[e]] = k[1]"),
    "s = False\n" + EDGES.format("a[u[e]] == k[0] and a[v[e]] < 0",
                                 "a[v[e]] = k[1]\n        s = True") + "k[2] = s",
    "for t in range(4):\n    for e in range(len(u)):\n        x = a[u[e]]\n        w = v[e]\n"
    "        if x == t:\n            if a[w] == -1:\n                a[w] = t + 1",
    "t = 0\nsome = True\nwhile some:\n    some = False\n    for i in range(len(a)):\n"
    "        if a[i] == t:\n            for p in range(3 * i, 3 * i + 3):\n"
    "                if a[v[p]] < 0:\n                    a[v[p]] = t + 1\n"
    "                    some = True\n    t += 1",
]  # fmt: skip


def given(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    a = rng.integers(-2, 3, 12)
    a[rng.integers(0, 12)] = 0
    k = rng.integers(-2, 3, 3)
    return [a, rng.integers(0, 2, 12) > 0, rng.integers(0, 12, 40), rng.integers(0, 12, 40), k]


@pytest.mark.parametrize("text", TEXTS)
def test_they_fill_the_same(text: str) -> None:
    case = Case(text, True, **ARRAYS)
    made = case.fresh.declared(rewrite_idempotent_scatters(case.program, case.facts, case.fresh))
    assert "max= 1" in text_of(made)
    whole = map_program(case.program, Target("cuda"), exact=True).program
    for program in (made, whole, backwards(whole)):
        verify_program(program)
        for seed in range(40 if program is made else 12):
            got, want = ran(program, given(seed)), ran(case.program, given(seed))
            assert [x.tobytes() for x in got] == [x.tobytes() for x in want], seed


def test_a_stored_number_may_be_the_zero_of_a_loop_without_iterations() -> None:
    text = "for r in range(k[1]):\n    n = 3\n    if a[r] > 1:\n        n = 5\n"
    text += EDGES.format("a[u[e]] == 0 and a[v[e]] < 0", "a[v[e]] = n")
    case = Case(text, True, **ARRAYS)
    made = case.fresh.declared(rewrite_idempotent_scatters(case.program, case.facts, case.fresh))
    assert "max= 1" in text_of(made)
    for seed in range(40):
        arrays = given(seed)
        arrays[-1][1] = seed % 2
        got, want = (ran(one, [x.copy() for x in arrays]) for one in (made, case.program))
        assert [x.tobytes() for x in got] == [x.tobytes() for x in want], seed


def test_marks_have_the_size_of_the_run() -> None:
    text = "def f(a, u, v, k):\n    for e in range(len(u)):\n"
    text += "        if a[u[e]] == k[0] and a[v[e]] < 0:\n            a[v[e]] = k[0] + 1"
    arguments = [given(0)[at] for at in (0, 2, 3, 4)]
    program = scheduled(of_any_size(function(text), *arguments), Target("cuda"))
    whole = map_program(program, Target("cuda"), exact=True).program
    assert "a_marks: i32[a_0]" in print_program(whole)
    for seed in range(12):
        arguments = [given(seed)[at] for at in (0, 2, 3, 4)]
        want = [array.tobytes() for array in interpreted(program, *arguments)]
        for one in (whole, backwards(whole)):
            assert [array.tobytes() for array in interpreted(one, *arguments)] == want


WHY = [
    ("what is filled is asked of other elements", "a[u[e]] > k[0] and a[v[e]] < 0", "a[v[e]] = 7"),
    ("all is filled, whatever it is", "a[u[e]] == k[0]", "a[v[e]] = 7"),
    ("it is not always the same", "a[u[e]] == k[0] and a[v[e]] < 0", "a[v[e]] = e"),
    ("something else is filled", "a[v[e]] < 0", "a[v[e]] = 2\n        b[u[e]] = True"),
    ("something else is counted", "a[v[e]] < 0", "a[v[e]] = 2\n        k[1] += 1"),
    ("it does something where it is filled", "a[v[e]] < 0",
     "a[v[e]] = 2\n    else:\n        b[u[e]] = True"),
    ("more is asked", "a[v[e]] < 0",
     "a[v[e]] = 2\n    if a[u[e]] == 2:\n        b[u[e]] = True"),
    ("where it is filled depends on what is filled", "a[v[e]] < 0", "a[a[v[e]] + 3] = 2"),
    ("checks may fail where it is filled", "a[v[e]] < 0 and b[u[e] - 1]", "a[v[e]] = 2"),
    ("a check asks for what is filled elsewhere", "a[v[e]] < 0",
     "a[v[e]] = 2\n    x = 0 if a[u[e]] != 2 else k[e]"),
    ("the flag is asked", "a[v[e]] < 0 and k[1] < 3", "a[v[e]] = 2\n        k[1] = 3"),
    ("it is asked of two at once", "a[v[e]] < a[u[e]]", "a[v[e]] = 2"),
]  # fmt: skip


@pytest.mark.parametrize(("why", "test", "body"), WHY)
def test_others_stay_as_they_are(why: str, test: str, body: str) -> None:
    case = Case(EDGES.format(test, body), True, **ARRAYS)
    made = rewrite_idempotent_scatters(case.program, case.facts, case.fresh)
    assert text_of(made) == text_of(case.program), why


def test_an_index_out_of_range_is_told() -> None:
    case = Case(TEXTS[0], True, **ARRAYS)
    whole = map_program(case.program, Target("cuda"), exact=True).program
    held = given(1)
    held[2][17] = 99
    for program in (whole, backwards(whole)):
        with pytest.raises(CdIndexError, match="index 99"):
            ran(program, held)


def test_a_device_marks_by_atomic_operations() -> None:
    case = Case(TEXTS[0].replace("k[0]", "3"), True, **ARRAYS)
    text = text_of(map_program(case.program, Target("cuda"), exact=True).program)
    assert "atomic " in text and "in 0..1 thread" not in text
