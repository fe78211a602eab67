"""Loops with an `else`, rewritten with a flag, do what Python's do."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.dsl.source import surface as s
from plusequals.dsl.source.desugar import desugar_else, has_break, nested_blocks
from plusequals.dsl.source.function_source import source_from_text
from plusequals.dsl.source.parse import parse
from tests.compare import assert_same, run_on
from tests.language.ask import compiled, plain, program, run

X = np.array([1.0, 2.0, 3.0])
LOOPS = {
    "for, left": (
        "for k in range(3):\n    if x[k] > 1.5:\n        break\nelse:\n    k = 9\nreturn k"
    ),
    "for, not left": (
        "for k in range(3):\n    if x[k] > 9:\n        break\nelse:\n    k = 9\nreturn k"
    ),
    "while": (
        "n = 7\nwhile n > 0:\n    n -= 3\n    if n == 1:\n        break\nelse:\n    n = 50\n"
        "return n"
    ),
    "without a break": "s = 0\nfor k in range(3):\n    s += k\nelse:\n    s += 10\nreturn s",
    "primes": (
        "s = 0\nfor n in range(2, 12):\n    for d in range(2, n):\n        if n % d == 0:\n"
        "            break\n    else:\n        s = s * 10 + n\nreturn s"
    ),
    "a return in it": (
        "for v in x:\n    if v > 9:\n        break\nelse:\n    return -1.0\nreturn 1.0"
    ),
    "unrolled": (
        "s = 0\nfor p in (1, 2, 3):\n    if x[1] == p:\n        break\n    s += p\nelse:\n"
        "    s = 100\nreturn s"
    ),
    "a break for the loop outside": (
        "s = 0\nfor k in range(3):\n    for v in x:\n        if v > 2.5 + k:\n            break\n"
        "    else:\n        break\n    s += 1\nreturn s, k"
    ),
}


@pytest.mark.parametrize("body", LOOPS.values(), ids=LOOPS)
def test_an_else_runs_where_no_break_has_left_the_loop(body: str, backend: str) -> None:
    assert_same(run(backend, "x", body, X.copy()), plain("x", body, X.copy()))


def _body(text: str) -> tuple[s.Statement, ...]:
    return parse(source_from_text(program("x", text), "<scene>")).body


def test_a_loop_that_is_never_left_needs_no_flag() -> None:
    (loop,) = _body("for k in x:\n    y = k")
    (other,) = _body("y = 1")
    assert isinstance(loop, s.For)
    assert desugar_else(loop, (other,)) == [loop, other]
    assert desugar_else(loop, ()) == [loop]


def test_breaks_of_inner_loops_are_theirs() -> None:
    (outer,) = _body("for k in x:\n    while k:\n        break")
    assert isinstance(outer, s.For)
    assert not has_break(outer.body)
    (test,) = _body("if x:\n    break\nelse:\n    y = 1")
    assert has_break((test,))
    assert len(nested_blocks(test)) == 2


TOP = 2**63 - 1
FAR = "n = 0\nfor i in range(a, b, {}):\n    n += 1\n    s[0] += i % 7\nreturn n"
ENDS = [
    (TOP - 9, TOP), (TOP - 300_001, TOP), (TOP, TOP), (0, 9), (-TOP - 1, 9 - TOP),
    (9 - TOP, -TOP - 1), (300_001 - TOP, -TOP - 1), (-TOP - 1, -TOP - 1), (5, -7),
]  # fmt: skip


@pytest.mark.parametrize("step", [1, 2, 7, -1, -3, 2**61, -(2**61)])
def test_loops_end_at_the_last_numbers_of_64_bits(step: int) -> None:
    code = compiled("a, b, s", FAR.format(step))
    wide = [(-TOP - 1, TOP), (TOP, -TOP - 1)] if abs(step) > 7 else []
    for a, b in ENDS + wide:
        rounds, s = range(a, b, step), np.zeros(1)
        assert run_on("cc", code, a, b, s) == len(rounds)
        assert s[0] == sum(i % 7 for i in rounds)


def test_loops_that_are_left_end_there_too() -> None:
    body = "n = 0\nfor i in range(a, b, -2):\n    n += 1\n    if n > m:\n        break\nreturn n"
    for a, m, expected in ((6 - TOP, 99, 4), (6 - TOP, 1, 2), (3 - TOP, 99, 2)):
        assert run("cc", "a, b, m", body, a, -TOP - 1, m) == expected
