"""Stores that accumulate: which become updates, and what they are looked up by."""

from __future__ import annotations

import pytest

from plusequals.lowering.ir.loops import Check, For, Store, Update
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.transform.recognize_updates import recognize_updates

from ..gpu.kernels import Case


def changed(text: str, **arrays: str) -> list[Update]:
    """Return the updates of a loop whose stores became some; it does what it did."""
    case = Case(text, exact=True, **arrays)
    made = recognize_updates(case.body)
    (loop,) = [stmt for stmt in made if isinstance(stmt, For)]
    case.assert_same((loop,))
    return [stmt for stmt in statements((loop,)) if isinstance(stmt, Update)]


LOOP = "for i in range(len(x)):\n    "
INSIDE = [
    ("y[k[i]] = max(y[k[i]], x[i])", "f32", "max"),
    ("y[k[i]] = min(x[i], y[k[i]])", "i32", "min"),
    ("y[k[i]] = y[k[i]] & x[i]", "u8", "bitand"),
    ("y[k[i]] = x[i] * y[k[i]]", "i64", "mul"),
    ("y[k[i]] = y[k[i]] - x[i]", "i64", "add"),
    ("y[k[i]] -= x[i]", "i32", "add"),
    ("if x[i] > y[k[i]]:\n        y[k[i]] = x[i]", "i64", "max"),
    ("if y[k[i]] >= x[i]:\n        y[k[i]] = x[i]", "u8", "min"),
]


@pytest.mark.parametrize("n", [2, 37])
@pytest.mark.parametrize(("text", "kind", "op"), INSIDE)
def test_what_accumulates_is_an_update(text: str, kind: str, op: str, n: int) -> None:
    made = changed(LOOP + text, y=f"{kind}[8]", x=f"{kind}[{n}]", k=f"u8[{n}]")
    assert [one.op.name for one in made] == [op]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("y[k[i]] = y[k[i]] + x[i]", "f32"),  # in its order
        ("y[k[i]] = max(x[i], y[k[i]])", "f32"),  # the first of two zeros
        ("if x[i] > y[k[i]]:\n        y[k[i]] = x[i]", "f32"),  # one may be NaN
        ("y[k[i]] = x[i] - y[k[i]]", "i32"),
        ("y[k[i]] = y[k[i]] + y[i]", "i32"),
        ("if x[i] > y[k[i]]:\n        y[k[i]] = x[i] + 1", "i32"),
        ("if x[i] > 3:\n        y[k[i]] = x[i]", "i32"),
    ],
)
def test_what_stays_as_it_is(text: str, kind: str) -> None:
    assert not changed(LOOP + text, y=f"{kind}[40]", x=f"{kind}[37]", k="u8[37]")


def test_a_subscript_is_looked_up_and_checked_once_unless_it_changes() -> None:
    sizes = {"y": "i32[8]", "x": "i32[37]", "k": "u8[37]"}
    once = Case(LOOP + "y[k[i]] = max(y[k[i]], x[i])", True, **sizes)
    twice = Case(LOOP + "y[k[i]] += x[i]\n    k[i] = 1\n    y[k[i]] += x[i]", True, **sizes)
    for case, count in ((once, 1), (twice, 2)):
        made = recognize_updates(case.body)
        assert sum(isinstance(stmt, Check) for stmt in statements(made)) == count
        case.assert_same([stmt for stmt in made if isinstance(stmt, For)])


def test_what_stands_in_no_loop_stays() -> None:
    case = Case("y[3] = y[3] + 1", y="i32[8]")
    assert any(isinstance(stmt, Store) for stmt in statements(recognize_updates(case.body)))
