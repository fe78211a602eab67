"""Loops that look for the place of the best term: which keep the term, and what they find."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plusequals.base.diagnostic import CdIndexError
from plusequals.lowering.analysis.parallel_band import facts_of
from plusequals.lowering.gpu.recurrences.arg_lookup import rewrite_arg_lookups
from plusequals.lowering.gpu.recurrences.arg_min_max import rewrite_arg_min_max
from plusequals.lowering.ir.loops import Program, Update
from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.ir.walk import statements

from ..kernels import Case, ran

NAN, INF = float("nan"), float("inf")
LOOK = "p = k[0]\nfor i in range({}, {}):\n    if {}:\n        p = i\nk[1] = p"
TESTS = [
    "x[i] > x[p]", "x[p] > x[i]", "x[p] < x[i]", "abs(x[i] - 1) < abs(x[p] - 1)", "x[i] >= x[p]",
]  # fmt: skip
ARRAYS = {"k": "i64[2]", "x": "f64[16]", "y": "f64[16]"}


def looking(text: str) -> tuple[Case, Program, bool]:
    """Return a case, its program with the best terms kept, and whether that is a reduction."""
    case = Case(text, True, **ARRAYS)
    made = rewrite_arg_lookups(case.program, case.fresh)
    body = rewrite_arg_min_max(made.kernels[0].body, facts_of(made, True), case.fresh)
    made = case.fresh.declared(replace(made, kernels=(replace(made.kernels[0], body=body),)))
    verify_program(made)
    inside = statements(body)
    return case, made, any(isinstance(s, Update) and s.pair is not None for s in inside)


@pytest.mark.parametrize("values", [
    [3, 1, 7, 7, 2], [NAN, 1, 2, NAN, 2], [NAN] * 4, [-INF, INF], [0.0, -0.0, 0.0], [5], [-1, -2],
])  # fmt: skip
@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("start", [0, 3, 15])
def test_they_find_the_same(test: str, start: int, values: list[float]) -> None:
    case, made, is_sum = looking(LOOK.format(1, 16, test))
    assert is_sum
    given = [np.array([start, 0]), np.resize(np.array(values, float), 16), np.zeros(16)]
    for got, want in zip(ran(made, given), ran(case.program, given), strict=True):
        assert got.tobytes() == want.tobytes()


@pytest.mark.parametrize("rounds", [0, 1])
def test_the_first_place_is_checked_where_there_is_a_round(rounds: int) -> None:
    case, made, is_sum = looking(LOOK.format(3, 3 + rounds, TESTS[0]))
    given = [np.array([99, 0]), np.zeros(16), np.zeros(16)]
    for program in (made, case.program):
        if rounds:
            with pytest.raises(CdIndexError, match="index 99 is out of range"):
                ran(program, given)
        else:
            assert ran(program, given)[0][1] == 99


def test_rows_below_a_pivot() -> None:
    text = (
        "for r in range(16):\n    p = r\n    for i in range(r + 1, 16):\n"
        "        if abs(x[i]) > abs(x[p]):\n            p = i\n    t = x[r]\n    x[r] = x[p]\n"
        "    x[p] = t"
    )
    case, made, is_sum = looking(text)
    assert is_sum
    given = [np.zeros(2, int), np.random.default_rng(4).standard_normal(16), np.zeros(16)]
    got, want = ran(made, given)[1], ran(case.program, given)[1]
    assert got.tobytes() == want.tobytes() and sorted(abs(got))[::-1] == [*abs(got)]


@pytest.mark.parametrize("text", [
    LOOK.format(1, 16, "x[i] > y[p]"),  # another term
    LOOK.format(1, 16, "x[i - 1] > x[p]"),  # that of another place
    LOOK.format(1, 16, "x[i] > x[p]").replace("p = i\n", "p = i - 1\n"),
    LOOK.format(1, 16, "x[i] > x[p]").replace("p = i\n", "p = i\n        x[i] = 0\n"),
    LOOK.format(1, 16, "x[i] > x[p]").replace("p = i\n", "p = i\n    else:\n        p = p + 1\n"),
    LOOK.format(1, 16, "x[i] > x[p]").replace("k[1] = p", "    y[i] = p"),  # used meanwhile
    LOOK.format(1, 12, "x[2 * p % 16] < x[2 * i % 16]"),  # is not looked up by itself
])  # fmt: skip
def test_what_stays(text: str) -> None:
    case = Case(text, True, **ARRAYS)
    assert rewrite_arg_lookups(case.program, case.fresh) == case.program
