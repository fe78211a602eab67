"""Loops that are left early: jumps of unrolled loops, returns of any; as Python leaves them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from plusequals.base.diagnostic import CdError
from plusequals.dsl.elaborate.early_exit import (
    endless,
    returns_inside,
    returns_within,
    straightened,
    with_exits,
)
from plusequals.dsl.source import surface as s
from plusequals.dsl.source.desugar import has_break, leaves
from tests.compare import assert_same
from tests.language.ask import plain, run

from .scenes import parsed

X = np.arange(6.0).reshape(2, 3) + 1.0
UNROLLED = {
    "break": "s = 0\nfor p in (1, 2, 3):\n    if x[0, 0] < p:\n        break\n    s = s * 10 + p\n"
    "return s",
    "continue": "s = 0\nfor p in (1, 2, 3):\n    if x[0, 1] == p:\n        continue\n"
    "    s = s * 10 + p\nreturn s",
    "both, and what follows a test": (
        "s = 0\nfor p in (1, 2, 3, 4):\n    if x[0, 0] > p:\n        s += 1\n"
        "    elif x[0, 1] == p:\n        s += 100\n        continue\n    else:\n        s += 7\n"
        "        if x[1, 0] < p + 2:\n            break\n    s = s * 2\nreturn s"
    ),
    "inside a loop that runs": (
        "s = 0\nfor k in range(3):\n    for p in (1, 2, 3):\n        if x[0, k] < p:\n"
        "            break\n        s = s * 10 + p\nreturn s"
    ),
    "a nest of two": (
        "s = 0\nfor p in (1, 2):\n    for q in (1, 2, 3):\n        if x[0, 0] * q > p:\n"
        "            break\n        s = s * 10 + q\n    s = s * 10 + p\nreturn s"
    ),
    "known now": "s = 0\nfor p in (1, 2, 3):\n    if p == 3:\n        break\n    s += p\nreturn s",
    "the target after a break": (
        "for p in (1, 2, 3):\n    if x[0, 1] <= p:\n        break\nreturn p"
    ),
    "in a block with a name": (
        "s = 0\nfor p in (1, 2, 3):\n    with comment('round'):\n        if x[0, 1] <= p:\n"
        "            break\n        s += p\n    s += 10\nreturn s"
    ),
}
RETURNS = {
    "from a loop that runs": (
        "for k in range(3):\n    if x[0, k] > 1.5:\n        return k\nreturn -1"
    ),
    "from a nest": (
        "for i in range(2):\n    for k in range(3):\n        if x[i, k] > 3.5:\n"
        "            return i, k, x[i, k]\n    x[i] += 1.0\nreturn -1, -1, x[0, 0]"
    ),
    "from an endless loop": (
        "n, k = 27, 0\nwhile True:\n    if n == 1:\n        return k\n    k += 1\n"
        "    n = n // 2 if n % 2 == 0 else 3 * n + 1"
    ),
    "of a row that is made": (
        "for row in x:\n    if row[0] > 2.0:\n        return row * 2\nreturn np.zeros(3)"
    ),
    "of the row itself": "for row in x:\n    if row[0] > 2.0:\n        return row\nreturn x[0]",
    "of bools": "for k in range(3):\n    if x[0, k] == 2.0:\n        return True\nreturn False",
    "of nothing": "for k in range(3):\n    x[0, k] += 1\n    if x[0, k] > 2.5:\n        return",
    "from an unrolled loop": (
        "for p in (1, 2, 3):\n    if x[0, 1] < p:\n        return p * x\n    x[1, 0] += 1\n"
        "x[1, 1] = 7\nreturn x"
    ),
    "at once from an unrolled loop": (
        "for p in (1, 2, 3):\n    x[0, 0] += p\n    return x\nreturn x"
    ),
    "from the second loop": (
        "for k in range(3):\n    if x[0, k] > 9:\n        return 1\n"
        "while x[0, 0] < 3:\n    x[0, 0] += 1\n    if x[0, 0] == 3:\n        return 2\nreturn 3"
    ),
    "from a function called in a loop": (
        "def first(v, t):\n    for k in range(3):\n        if v[k] > t:\n            return k\n"
        "    return 3\ns = 0\nfor t in range(4):\n    s = s * 10 + first(x[0], t)\nreturn s"
    ),
}


@pytest.mark.parametrize("body", UNROLLED.values(), ids=UNROLLED)
def test_unrolled_loops_jump_as_pythons_do(body: str, backend: str) -> None:
    assert_same(run(backend, "x", body, X.copy()), _pythons(body, X.copy()))


@pytest.mark.parametrize("body", RETURNS.values(), ids=RETURNS)
def test_a_return_in_a_loop_ends_the_function(body: str, backend: str) -> None:
    mine, pythons = X.copy(), X.copy()
    assert_same(run(backend, "x", body, mine), _pythons(body, pythons))
    assert_same(mine, pythons)


def _pythons(body: str, x: np.ndarray) -> object:
    return plain("x", body.replace("with comment('round')", "if True"), x)


def test_an_array_that_depends_on_the_round_cannot_be_returned_inside() -> None:
    with pytest.raises(CdError, match="CD0144"):
        run("numpy", "x", "for k in range(3):\n    return x[0, :k]\nreturn x[0]", X.copy())


def _loop(text: str) -> s.For | s.While:
    (loop,) = parsed("x", text).body
    assert isinstance(loop, s.For | s.While)
    return loop


def test_inner_loops_keep_their_jumps_and_share_their_returns() -> None:
    inner = _loop(
        "for i in x:\n    for j in x:\n        if j:\n            break\n        return j"
    )
    assert not leaves(inner.body)
    assert not has_break(inner.body)
    assert returns_inside(inner.body)
    assert not returns_inside(_loop("for i in x:\n    def f():\n        return i").body)
    assert leaves(_loop("for i in x:\n    if i:\n        continue").body)


def test_what_a_jump_skips_is_in_an_else() -> None:
    body = straightened(_loop("for i in x:\n    if i:\n        break\n    y = i").body, "left")
    want = parsed("x", "if i:\n    left = True\nelse:\n    y = i").body
    assert body == want
    plain_body = _loop("for i in x:\n    y = i").body
    assert straightened(plain_body, "left") == plain_body


def test_a_return_breaks_out_of_every_loop() -> None:
    outer = with_exits(_loop("for i in x:\n    for j in x:\n        return j").body)
    inner, gone = outer
    assert isinstance(inner, s.For)
    assert isinstance(gone, s.If)
    assert [type(one) for one in inner.body] == [s.Return, s.Break]
    assert [type(one) for one in gone.then] == [s.Break]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("while True:\n    return 1", True),
        ("while True:\n    if x:\n        break", False),
        ("while x:\n    return 1", False),
        ("for i in x:\n    return 1", False),
    ],
)
def test_a_loop_without_a_break_ends_by_return_only(text: str, found: bool) -> None:
    assert endless(_loop(text)) is found


class Unread(tuple[s.Statement, ...]):
    """Statements that nobody may look at."""

    def __iter__(self) -> Iterator[s.Statement]:
        raise AssertionError("what follows was read")


def test_what_follows_a_test_is_read_only_where_it_returns() -> None:
    body = "if x[0, 0]:\n    y = 1\nif x[0, 1]:\n    if x[0, 2]:\n        return 1\n    y = 2"
    plain_test, returning = parsed("x", body).body
    assert isinstance(plain_test, s.If) and isinstance(returning, s.If)
    assert not returns_within(plain_test, Unread())
    assert returns_within(returning, (plain_test, *(returning,) * 4))
    assert not returns_within(returning, (plain_test, *(returning,) * 5))
