"""Tables front by front: which are, that each point comes once, and that nothing changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from plusequals.lowering import thresholds
from plusequals.lowering.analysis.dependence import find_dependence
from plusequals.lowering.analysis.parallel_band import facts_of
from plusequals.lowering.gpu.passes import normalized
from plusequals.lowering.gpu.recurrences import wavefront as module
from plusequals.lowering.gpu.recurrences.wavefront import skew_to_wavefronts
from plusequals.lowering.ir.indexing import Affine
from plusequals.lowering.ir.loops import Comment, For, Stmt, Store
from plusequals.lowering.ir.printer import print_statement
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.transform.recognize_updates import recognize_updates

from ..kernels import Case, filled, ran

ARRAYS = {"u": "f64[14, 16]", "x": "f64[14, 16]", "v": "f64[60]"}
INTERIOR = "for i in range(3, 12):\n    for j in range(3, 13):\n        {}"


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "MIN_WAVEFRONT_ITERATIONS", 8)


def made_of(case: Case) -> tuple[Stmt, ...]:
    body = skew_to_wavefronts(case.program, case.facts, case.fresh).kernels[0].body
    return tuple(stmt for stmt in body[case.last :] if not isinstance(stmt, Comment))


def skew_of(made: Sequence[Stmt]) -> int | None:
    """Return by how much rows are behind each other, None where there are no fronts."""
    loops = [stmt for stmt in statements(made) if isinstance(stmt, For)]
    front = next((loop for loop in loops if loop.symbol.name == "front"), None)
    if front is None:
        return None
    (points,) = front.body
    assert isinstance(points, For)
    stores = [stmt for stmt in statements((points,)) if isinstance(stmt, Store)]
    columns = [at for s in stores for at in s.access.index if isinstance(at, Affine)]
    return max(-at.coefficient(points.symbol) for at in columns if front.symbol in at.symbols())


@pytest.mark.parametrize(("value", "skew"), [
    ("u[i - 1, j] + u[i, j - 1]", 1),
    ("u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]", 1),
    ("u[i - 1, j - 1] + u[i, j - 1]", 0),
    ("u[i - 1, j + 1] + u[i, j - 1]", 2),
    ("u[i - 1, j + 2] + u[i, j - 1]", 3),
    ("u[i - 1, j + 3] + u[i, j - 1]", None),  # rows would have to be four behind
    ("u[i - 1, j - 1] + u[i - 2, j + 1] + u[i, j - 2]", 1),
    ("u[i, j - 1] * x[i, j]", None),  # rows are independent
    ("u[i - 1, 15 - j] + u[i, j - 1]", None),  # from both ends
])  # fmt: skip
def test_rows_are_as_far_behind_as_they_have_to(value: str, skew: int | None) -> None:
    case = Case(INTERIOR.format(f"u[i, j] = 0.5 * ({value})"), True, **ARRAYS)
    made = made_of(case)
    assert skew_of(made) == skew
    case.assert_same(made)
    if skew is not None:
        (points,) = next(s for s in statements(made) if isinstance(s, For)).body
        assert isinstance(points, For) and find_dependence(points) is None


NESTS = [
    "for i in range(12):\n    for j in range(i + 1):\n"
    "        s = x[i, j]\n        for k in range(j):\n            s -= u[i, k] * u[j, k]\n"
    "        u[i, j] = s / (1 + abs(u[j, j])) if i > j else s",
    "for i in range(12, -1, -1):\n    for j in range(i + 1, 16):\n"
    "        u[i, j] = max(u[i + 1, j], u[i, j - 1], u[i + 1, j - 1] + x[i, j])",
    "for t in range(3):\n    for i in range(1, 13):\n        for j in range(1, 15):\n"
    "            u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])",
    "for i in range(12):\n    for j in range(58):\n        if v[j] > v[j + 1]:\n"
    "            t = v[j]\n            v[j] = v[j + 1]\n            v[j + 1] = t",
    "for i in range(2, 14, 1):\n    for j in range(14, -1, -1):\n"
    "        u[i, j] = u[i - 1, j] + u[i, j + 1] + u[i - 2, j]",
    "for i in range(1, 14):\n    u[i, 0] = i\n    for j in range(1, 16):\n"
    "        if x[i, j] > 0:\n            u[i, j] = u[i - 1, j - 1]\n        else:\n"
    "            u[i, j] = min(u[i - 1, j], u[i, j - 1]) + 1",
    "for i in range(1, 14):\n    for j in range(max(1, i - 3), min(16, i + 9)):\n"
    "        u[i, j] = u[i - 1, j] + u[i, j - 1]",
]  # fmt: skip


@pytest.mark.parametrize("text", NESTS)
def test_nests_of_all_kinds_do_the_same(text: str) -> None:
    case = Case(text, True, **ARRAYS)
    made = made_of(case)
    assert skew_of(made) is not None
    case.assert_same(made)


TOTAL = (
    "s = 0.0\nk = 0\nfor i in range(1, 12):\n    for j in range(1, 13):\n        t = u[i, j]\n"
    "        u[i, j] = 0.5 * (u[i - 1, j] + u[i, j - 1])\n        {}\nv[0] = s + k"
)


@pytest.mark.parametrize(("total", "is_open"), [
    ("s = max(s, abs(u[i, j] - t))", True),
    ("k += u[i, j] > t", True),
    ("v[7] = min(v[7], t)", True),
    ("s += t", False),  # adds in its order
    ("s = max(s, u[i, j] - t)\n        v[j] = s", False),  # looks at it meanwhile
    ("v[i] = max(v[i], t)\n        v[3] = max(v[3], t)", False),  # some round has both
    ("s = max(s, t)\n        s = min(s, u[i, j])", False),
])  # fmt: skip
def test_totals_that_are_exact_in_any_order_go_along(total: str, is_open: bool) -> None:
    case = Case(TOTAL.format(total), True, **ARRAYS)
    at = next(at for at, stmt in enumerate(case.body) if isinstance(stmt, For))
    body = recognize_updates(case.body)
    kernel = replace(case.program.kernels[0], body=body)
    case.program = replace(case.program, kernels=(kernel,))
    case.facts = facts_of(case.program, True)
    made = skew_to_wavefronts(case.program, case.facts, case.fresh).kernels[0].body
    assert (skew_of(made) is not None) is is_open
    case.assert_same(made[at : len(made) - len(body) + at + 1], at)


@pytest.mark.parametrize("text", [
    "for i in range(1, 12):\n    for j in range(1, 13):\n"
    "        u[i, j] = u[i - 1, j] + u[i, j - 1]\n        if u[i, j] > 9:\n            break",
    "for i in range(1, 12):\n    for j in range(1, 13):\n"
    "        u[i, j] = u[i - 1, j] + u[i, j - 1]\n        print(u[i, j])",
    "s = 1.0\nfor i in range(1, 12):\n    for j in range(1, 13):\n"
    "        s = s * 0.5 + x[i, j]\n        u[i, j] = u[i - 1, j] + u[i, j - 1] + s",
    "for i in range(1, 12):\n    for j in range(1, 13):\n        v[i] += x[i, j]\n"
    "        v[j + 20] += x[i, j]",  # nobody reads it: each thread has elements of its own
    "for i in range(1, 12):\n    for j in range(1, 8):\n"
    "        u[i, j] = u[i - 1, j] + u[i, j - 1]",
    "for i in range(1, 12):\n    for j in range(1, 1 + i * i):\n"
    "        v[j % 60] = v[i] + v[j - 1]",
])  # fmt: skip
def test_what_stays_row_by_row(text: str) -> None:
    case = Case(text, True, **ARRAYS)
    assert skew_to_wavefronts(case.program, case.facts, case.fresh) == case.program


def test_a_loop_that_is_no_plain_one_stays() -> None:
    case = Case(INTERIOR.format("u[i, j] = u[i - 1, j] + u[i, j - 1]"), True, **ARRAYS)
    assert not module.can_reorder(replace(case.loop(), kind="vector"))


def test_what_looks_for_the_first_best_point_stands_apart() -> None:
    text = "b = 0.0\n" + INTERIOR.format(
        "u[i, j] = max(u[i - 1, j], u[i, j - 1]) + x[i, j]\n"
        "        if u[i, j] > b:\n            b = u[i, j]\n            v[0] = i * 99 + j"
    )
    case = Case(text + "\nv[1] = b", True, **ARRAYS)
    program = normalized(case.program)
    fronts_, best = (s for s in program.kernels[0].body if isinstance(s, For))
    assert skew_of([fronts_]) == 1 and "argmax" in print_statement(best)
    arrays = [filled(p.node, np.random.default_rng(0)) for p in program.parameters]
    for got, want in zip(ran(program, arrays), ran(case.program, arrays), strict=True):
        assert got.tobytes() == want.tobytes()
