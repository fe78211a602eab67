"""Pieces of C: brackets stand where precedence needs them, or people do, and nowhere else."""

from __future__ import annotations

import pytest

from plusequals.backends.codegen.c_text import ADD, EQUAL, MUL, POSTFIX, UNARY, CText, infix

A, B = CText("a", POSTFIX), CText("b", POSTFIX)
SUM, PRODUCT, MINUS = CText("a + b", ADD), CText("a * b", MUL), CText("-a", UNARY)


@pytest.mark.parametrize(
    ("operator", "args", "text", "level"),
    [
        ("+", [PRODUCT, A], "a * b + a", ADD),
        ("+", [SUM, A], "a + b + a", ADD),
        ("-", [A, SUM], "a - (a + b)", ADD),
        ("*", [SUM, A], "(a + b) * a", MUL),
        ("==", [CText("a == b", EQUAL), A], "(a == b) == a", EQUAL),
        ("-", [MINUS], "-(-a)", UNARY),
        ("!", [SUM], "!(a + b)", UNARY),
    ],
)
def test_operators(operator: str, args: list[CText], text: str, level: int) -> None:
    assert infix(operator, args) == CText(text, level)


def test_brackets_are_for_what_binds_less() -> None:
    assert [SUM.within(level) for level in (ADD, MUL)] == ["a + b", "(a + b)"]
