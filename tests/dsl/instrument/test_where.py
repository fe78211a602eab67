"""Tests of indices: what they leave of ranges, and what is no test."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdValueError
from plusequals.dsl.instrument.where import apply_filter, parse_filter
from plusequals.lowering.ir.indexing import Range, Symbol, const

I, J, T = Symbol("i", 1), Symbol("j", 2), Symbol("t", 3)
RANGES = (Range(I, const(0), const(9)), Range(J, const(2), const(5)))


@pytest.mark.parametrize(
    ("text", "ranges", "outer", "inner"),
    [
        ("i == 3", [(3, 4), (2, 5)], 0, 0),
        ("i < 3 and j >= 4", [(0, 3), (4, 5)], 0, 0),
        ("1 < i <= 6", [(2, 7), (2, 5)], 0, 0),
        ("5 > i", [(0, 5), (2, 5)], 0, 0),
        ("i > -2", [(0, 9), (2, 5)], 0, 0),
        ("t == 1", [(0, 9), (2, 5)], 1, 0),
        ("i != 3", [(0, 9), (2, 5)], 0, 1),
        ("i == j or i == 2", [(0, 9), (2, 5)], 0, 1),
        ("not i + t == 2 * j", [(0, 9), (2, 5)], 0, 1),
    ],
)
def test_what_is_left(text: str, ranges: list[tuple[int, int]], outer: int, inner: int) -> None:
    found = apply_filter(parse_filter(text), (T,), RANGES)
    assert found is not None
    assert [(r.lo.constant, r.hi.constant) for r in found.ranges] == ranges
    assert (len(found.outer), len(found.inner)) == (outer, inner)


def test_a_statement_without_the_name_does_not_fit() -> None:
    assert apply_filter(parse_filter("k == 1"), (T,), RANGES) is None


@pytest.mark.parametrize(
    "text",
    [
        "i",
        "i + 1",
        "x[i] > 0",
        "i == 1.5",
        "i in (1, 2)",
        "i // j == 1",
        "f(i) == 1",
        "(",
        "i == 1; j",
    ],
)
def test_what_is_no_test(text: str) -> None:
    with pytest.raises(CdValueError) as caught:
        parse_filter(text)
    assert caught.value.code == "CD0871"


def test_letters_of_array_notation_do_not_answer_for_the_users_names(backend: str) -> None:
    text = """def f(x, n, j):
    prev = x * 2
    for i in range(2, n):
        cur = prev + i
        prev = cur * j
    return prev
"""
    f = pe.cd_from_source(text, backend=backend)
    with pe.trace() as trace:
        f(np.arange(4.0), 4, 0.5)
    assert {r.line for r in trace.where("i == 3")} == {4, 5}
    assert {r.line for r in trace.where("i == 3", array="prev")} == {5}
    assert str(trace.why("prev", 1)).startswith(
        "prev[1] = cur[1]{=5.0} * j{=0.5}    2.0 -> 2.5    line 5, n = 4, i = 3\n"
        "├─ cur[1] = prev[1]{=2.0} + 3    4.0 -> 5.0    line 4, n = 4, i = 3\n"
    )
