"""What statements assign, read and bind anew."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plusequals.dsl.elaborate.scope import (
    EXIT,
    RESULT,
    assigned_names,
    first_use,
    loads_in,
    names_in,
    next_use,
    plain_names,
    rebound_names,
)
from plusequals.dsl.source import surface as s

from .scenes import parsed

BODY = """
a = b[c] = d
e[0] += f
(g, h[1]), i = j
for k, l in m:
    n = o
    while p:
        q -= r
if s:
    t.u = v
else:
    w: x
with comment("y"):
    z = lambda y: y + aa
return ab
"""


def _function() -> s.Function:
    return parsed("d", BODY)


def test_names_that_are_assigned_include_subscripted_ones() -> None:
    assert list(assigned_names(_function().body)) == [
        "a", "b", "e", "g", "h", "i", "k", "l", "n", "q", "w", "z", RESULT, EXIT,
    ]  # fmt: skip


def test_names_that_are_bound_anew_are_bare() -> None:
    assert list(rebound_names(_function().body)) == [
        "a", "g", "i", "k", "l", "n", "q", "w", "z", RESULT, EXIT,
    ]  # fmt: skip


def test_names_that_are_bound_whatever_they_were_are_not_augmented_alone() -> None:
    assert set(rebound_names(_function().body)) - set(plain_names(_function().body)) == {"q"}


def test_names_that_are_read_are_not_those_that_are_only_set() -> None:
    read = [name.id for statement in _function().body for name in loads_in(statement)]
    assert read == [
        "d", "b", "c", "e", "f", "j", "h", "m", "o", "p", "q", "r", "s", "v", "t", "x", "aa", "ab",
    ]  # fmt: skip


def test_a_lambda_hides_its_parameters() -> None:
    function = parsed("x", "return lambda i, j: i + j + k")
    assert [name.id for statement in function.body for name in names_in(statement)] == ["k"]


def test_what_is_read_is_found_once_and_no_part_of_a_statement() -> None:
    one, other = (parsed("d", BODY).body for _ in range(2))
    assert all(loads_in(statement) is loads_in(statement) for statement in one)
    assert one == other and repr(one) == repr(other) and hash(one[0]) == hash(other[0])
    changed = replace(one[0], value=one[1].value)
    assert [name.id for name in loads_in(changed)] == ["f", "b", "c"]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("x = 1", "set"),
        ("x = x + 1", "read"),
        ("x += 1", "read"),
        ("x[0] = 1", "read"),
        ("y = 1", "unused"),
        ("y = x\nx = 1", "read"),
        ("if t:\n    x = 1\nelse:\n    x = 2", "set"),
        ("if t:\n    x = 1", "unused"),
        ("if t:\n    x = 1\ny = x", "read"),
        ("if x:\n    y = 1", "read"),
        ("for n in range(3):\n    x = 1\ny = x", "set"),
        ("for n in range(3, 1):\n    x = 1", "unused"),
        ("for n in range(3, True):\n    x = 1", "unused"),
        ("for n in range(1, 3, 0):\n    x = 1", "unused"),
        ("for n in range(t):\n    x = 1\ny = x", "read"),
        ("for n in range(3):\n    if t:\n        break\n    x = 1", "unused"),
        ("for n in range(3):\n    y = x\n    x = 1", "read"),
        ("for n in (t, 2):\n    x = 1", "set"),
        ("for n in (*t,):\n    x = 1", "unused"),
        ("for n in range(x):\n    x = 1", "read"),
        ("for x in range(3):\n    y = x", "set"),
        ("for x in range(t):\n    y = x", "unused"),
        ("while t:\n    y = x\n    x = 1", "read"),
        ("while x:\n    x = 1", "read"),
        ("with comment('c'):\n    x = 1", "set"),
        ("x, y = 1, 2", "set"),
        ("return x", "read"),
    ],
)
def test_the_first_use_of_a_name(body: str, found: str) -> None:
    assert first_use(parsed("x", body).body, "x") == found


NESTED = """
a = b = c = d = e = x
for i in range(9):
    if x[i] > 0:
        for k in range(3):
            a += 1
        b = c
    d = 1
for k in range(2):
    e = a
while e > a:
    a = 0
c = d
return c
"""


@pytest.mark.parametrize(
    ("loop", "uses"),
    [  # of each loop, in their order: a name that it does not mention has a next use, too
        (0, {"a": "read", "b": "unused", "c": "set", "d": "read", "e": "set", "x": "unused"}),
        (1, {"a": "read", "b": "unused", "c": "read", "d": "read", "e": "set", "x": "read"}),
        (2, {"a": "read", "b": "unused", "c": "set", "d": "read", "e": "read", "x": "unused"}),
        (3, {"a": "unused", "b": "unused", "c": "set", "d": "read", "e": "unused"}),
    ],
)
def test_the_next_use_after_a_loop(loop: int, uses: dict[str, str]) -> None:
    function = parsed("x", NESTED)
    first, second, third = (function.body[at] for at in (1, 2, 3))
    assert isinstance(first, s.For) and isinstance(first.body[0], s.If)
    found = (first, first.body[0].then[0], second, third)[loop]
    assert isinstance(found, s.For | s.While)
    assert {name: next_use(function, found, name) for name in uses} == uses
    other = parsed("x", "for i in range(3): x[i] = 0").body[0]
    assert isinstance(other, s.For)
    assert not next_use(function, other, "x")  # which is no loop of this function
