"""Loops that keep the greatest or the least: which do each by itself, and what they find."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from plusequals.lowering.gpu.mapping import map_program
from plusequals.lowering.gpu.recurrences.separate_min_max import separate_extremes
from plusequals.lowering.ir.rewrite import map_kernels
from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.target import Target

from ...shown import text_of
from ..kernels import Case, backwards, ran

NAN, INF = float("nan"), float("inf")
LOOK = (
    "hi = z[0]\nlo = z[1]\na = -1\nb = -1\nfor i in {}:\n    if x[i] {} hi:\n        hi = x[i]\n"
    "        a = i\n    elif x[i] {} lo:\n        lo = x[i]\n        b = i\n"
    "y[0] = hi\ny[1] = lo\ny[2] = a\ny[3] = b"
)
TEXTS = [
    LOOK.format("range(len(x))", ">", "<"),
    LOOK.format("range(len(x))", "<", ">"),
    LOOK.format("range(len(x))", ">=", "<="),
    LOOK.format("range(len(x))", ">", "<="),
    LOOK.format("range(len(x) - 1, 0, -2)", ">=", "<"),
    "hi = z[0]\nlo = z[1]\nfor i in range(len(x)):\n    d = abs(x[i]) - 1\n    if d < lo:\n"
    "        lo = d\n    else:\n        if hi < d:\n            hi = d\ny[0] = hi\ny[1] = lo",
    "hi = z[0]\nlo = z[1]\na = -1\nb = -1\nfor i in range(4):\n    for j in range(6):\n"
    "        d = x[6 * i + j]\n        if d > hi:\n            hi = d\n            a = i\n"
    "        elif d < lo:\n            lo = d\n            b = i * 10 + j\n"
    "y[0] = hi\ny[1] = lo\ny[2] = a\ny[3] = b",
]
VALUES = [
    [3, 1, 7, 7, 2], [NAN, 1, 2, NAN, 2, -3], [NAN] * 4, [-INF, INF, 3], [0.0, -0.0, 0.0], [5],
    [1, 2, 3, 4, NAN, 5, 4], [-1, -2, 2], [1, NAN, 3, NAN, 5],
]  # fmt: skip
STARTS = [(0, 0), (-INF, INF), (1, 2), (2, 1), (NAN, 1), (1, NAN), (0.0, -0.0), (9, 9), (-9, 9)]


@pytest.mark.parametrize("text", TEXTS)
def test_they_find_the_same(text: str) -> None:
    case = Case(text, True, y="f64[4]", x="f64[24]", z="f64[2]")
    change = partial(separate_extremes, facts=case.facts, fresh=case.fresh)
    made = case.fresh.declared(map_kernels(case.program, change))
    assert "since" in text_of(made)
    whole = map_program(case.program, Target("cuda"), exact=True).program
    assert text_of(whole).count("argm") >= 2
    for program in (made, whole, backwards(whole)):
        verify_program(program)
        for values in VALUES:
            for start in STARTS if program is made else STARTS[1:3]:
                given = [
                    np.zeros(4),
                    np.resize(np.array(values, float), 24),
                    np.array(start, float),
                ]
                got, want = ran(program, given), ran(case.program, given)
                assert [a.tobytes() for a in got] == [a.tobytes() for a in want], (values, start)


@pytest.mark.parametrize("text", [
    LOOK.format("range(len(x))", ">", ">"),  # of three kinds of terms there is no least one
    LOOK.format("range(len(x))", ">", "<").replace("b = i", "a = i"),  # both keep it
    LOOK.format("range(len(x))", ">", "<").replace("y[0]", "    y[0] = x[i]\ny[0]"),  # it does more
    LOOK.format("range(len(x))", ">", "<").replace("elif x[i]", "elif z[0]"),  # of another term
    LOOK.format("range(len(x))", ">", "<").replace("    if", "    hi -= 1\n    if"),  # it changes
    LOOK.format("range(len(x))", ">", "<").replace(
        "    if", "    if i == 9:\n        lo = z[1]\n    if"
    ),
])  # fmt: skip
def test_what_stays(text: str) -> None:
    case = Case(text, True, y="f64[4]", x="f64[70]", z="f64[2]")
    assert separate_extremes(case.body, case.facts, case.fresh) == case.body
