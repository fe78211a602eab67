"""Running totals in pieces: which loops are some, and that pieces give the same."""

from __future__ import annotations

import pytest

from plusequals.lowering.ir.loops import For
from plusequals.lowering.schedule.scan import MOST, ROUNDS, running, scan

from .kernels import Case


def is_total(body: str, **arrays: str) -> bool:
    case = Case(body, **arrays)
    return any(isinstance(stmt, For) and running(stmt) is not None for stmt in case.body)


@pytest.mark.parametrize("n", [2 * ROUNDS, 2 * ROUNDS + 1, 101, 1000])
@pytest.mark.parametrize(
    "text",
    [
        "for i in range(1, len(y)):\n    y[i] = y[i - 1] + x[i]",
        "for i in range(len(y) - 2, -1, -1):\n    y[i] = x[i] * 3 ^ y[i + 1]",
        "for i in range(2, len(y), 2):\n    y[i] = max(y[i - 2], x[i])",
    ],
)
def test_pieces_give_the_same(text: str, n: int) -> None:
    size = 2 * n + 3 if ", 2)" in text else n + 1
    case = Case(text, True, y=f"i64[{size}]", x=f"i64[{size}]")
    made = scan(case.loop(), case.fresh)
    assert made is not None and len(made) == 3
    case.assert_same(made)


def test_how_many_pieces_there_are() -> None:
    text = "for i in range(1, len(y)):\n    y[i] = y[i - 1] + x[i]"
    for rounds, pieces in ((10 * ROUNDS, 10), (2 * MOST * ROUNDS, MOST)):
        case = Case(text, y=f"i64[{rounds + 1}]", x=f"i64[{rounds + 1}]")
        made = scan(case.loop(), case.fresh)
        assert made is not None and made[0].hi.constant == pieces
    few = Case(text, y="i64[9]", x="i64[9]")
    assert scan(few.loop(), few.fresh) is None


def test_what_is_none() -> None:
    sizes = {"y": "i64[99]", "x": "i64[99]"}
    assert is_total("for i in range(1, 99):\n    y[i] = y[i - 1] + x[i]", **sizes)
    assert not is_total("for i in range(1, 99):\n    y[i] = y[i - 1] - x[i]", **sizes)
    assert not is_total("for i in range(2, 99):\n    y[i] = y[i - 2] + x[i]", **sizes)
    assert not is_total("for i in range(1, 99):\n    y[i] = y[i - 1] + y[0]", **sizes)
    assert not is_total("for i in range(1, 99):\n    y[i] = y[i - 1] + i * y[i - 1]", **sizes)
    real = {"y": "f32[99]", "x": "f32[99]"}
    assert not is_total("for i in range(1, 99):\n    y[i] = y[i - 1] + x[i]", **real)
    assert is_total("for i in range(1, 99):\n    y[i] = max(y[i - 1], x[i])", **real)
