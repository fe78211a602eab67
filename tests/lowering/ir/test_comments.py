"""A comment goes with the statements that it heads, and with no others."""

from __future__ import annotations

import pytest

from plusequals.lowering.ir.assignments import Break
from plusequals.lowering.ir.comments import drop_removed
from plusequals.lowering.ir.loops import Comment, Stmt

A, B, STOP = Comment("a"), Comment("b"), Break()

CASES: list[tuple[list[Stmt | None], list[Stmt]]] = [
    ([A, STOP, B, STOP], [A, STOP, B, STOP]),
    ([A, None, B, STOP], [B, STOP]),
    ([A, None, STOP], [A, STOP]),
    ([A, STOP, B, None], [A, STOP]),
    ([A, B, STOP], [A, B, STOP]),
    ([None, STOP, A], [STOP, A]),
]


@pytest.mark.parametrize(("body", "expected"), CASES)
def test_headed(body: list[Stmt | None], expected: list[Stmt]) -> None:
    assert list(drop_removed(body)) == expected
