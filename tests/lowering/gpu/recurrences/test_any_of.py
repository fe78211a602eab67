"""Flags that loops set: which become reductions, and that these find the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plusequals.lowering.gpu.mapping import map_program
from plusequals.lowering.gpu.recurrences.any_of import rewrite_any_of
from plusequals.lowering.ir.assignments import Access
from plusequals.lowering.ir.expressions import Dynamic, Read
from plusequals.lowering.ir.loops import Stmt, Store
from plusequals.lowering.ir.rewrite import map_kernels, map_statements
from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.target import Target

from ...shown import text_of
from ..kernels import Case, backwards, ran

TEXTS = [
    "ok = True\nfor i in range(len(x)):\n    if x[i] > z[0]:\n        ok = False\ny[0] = ok",
    "for i in range(len(x)):\n    if x[i] > z[0]:\n        y[1] = z[0] + 1",
    "ok = 1\nfor i in range(len(x)):\n    for j in range(i):\n        if x[i] > x[j] + z[0]:\n"
    "            ok = 5\ny[0] = ok",
    "new = 0\nfor i in range(len(x)):\n    one = True\n    for j in range(i):\n"
    "        if x[i] == x[j]:\n            one = False\n    if one:\n        new += 1\ny[0] = new",
    "some = False\nfor i in range(len(x)):\n    a = x[i] * 2\n    if a > z[0]:\n        x[i] = a\n"
    "        some = True\n    elif a < -z[0]:\n        some = True\ny[0] = some",
    "for t in range(3):\n    some = False\n    for i in range(len(x)):\n        if x[i] > z[0]:\n"
    "            x[i] -= 1\n            some = True\n    if not some: break\n"
    "    y[0] += 1",
]


@pytest.mark.parametrize("n", [11, 60])
@pytest.mark.parametrize("text", TEXTS)
def test_they_say_the_same(text: str, n: int) -> None:
    case = Case(text, True, y="f64[2]", x=f"f64[{n}]", z="f64[1]")
    made = rewrite_any_of(case.program, case.fresh)
    assert "or= True" in text_of(made)
    whole = map_program(case.program, Target("cuda"), exact=True).program
    for program in (case.fresh.declared(made), whole, backwards(whole)):
        verify_program(program)
        for z in (-9.0, 0.0, 1.0, 9.0, np.nan):
            given = [np.zeros(2), np.random.default_rng(n).integers(-4, 5, n) / 2, np.array([z])]
            got, want = ran(program, given), ran(case.program, given)
            assert [a.tobytes() for a in got] == [a.tobytes() for a in want]


WHY = [
    ("it is looked at", "ok = True\nfor i in range(len(x)):\n    if ok and x[i] > 1:\n"
     "        ok = False\ny[0] = ok"),
    ("it gets two values", "ok = 0\nfor i in range(len(x)):\n    if x[i] > 1:\n        ok = 1\n"
     "    elif x[i] < 1:\n        ok = 2\ny[0] = ok"),
    ("its value changes", "for i in range(len(x)):\n    if x[i] > 1:\n        y[1] = x[i] * i"),
    ("nothing is tested", "for i in range(len(x)):\n    x[i] += 1\n    y[1] = 3"),
    ("it is seen after an error",
     "for i in range(len(x)):\n    if x[int(x[i])] > 1:\n        y[1] = 3"),
]  # fmt: skip


@pytest.mark.parametrize(("why", "text"), WHY)
def test_others_stay_as_they_are(why: str, text: str) -> None:
    case = Case(text, True, y="f64[2]", x="f64[40]")
    assert text_of(rewrite_any_of(case.program, case.fresh)) == text_of(case.program), why


def test_what_is_set_is_one_element() -> None:
    text = "for i in range(len(x)):\n    if x[i] > 1:\n        y[1] = 3\n    k[0] += 1"
    case = Case(text, True, y="f64[2]", x="f64[40]", k="i64[1]")
    (counter,) = (node for node in case.program.locals if node.label == "k_acc")
    where = Dynamic(Read(counter, ()))

    def by_data(stmt: Stmt) -> tuple[Stmt, ...]:
        if not isinstance(stmt, Store) or stmt.access.node.label != "y":
            return (stmt,)
        return (replace(stmt, access=Access(stmt.access.node, (where,))),)

    program = map_kernels(case.program, lambda body: map_statements(body, by_data))
    assert rewrite_any_of(program, case.fresh) == program


def test_a_flag_for_all_pairs_is_found_by_many_blocks() -> None:
    text = (
        "ok = True\nfor i in range(400):\n    for j in range(300):\n"
        "        if x[i, j] != x[j, i]:\n            ok = False\ny[0] = ok"
    )
    case = Case(text, True, y="b[1]", x="f64[400, 400]")
    assert "for part in 0..30 block:" in text_of(map_program(case.program, Target("cuda")).program)
