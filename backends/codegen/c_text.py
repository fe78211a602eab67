"""Fragments of C text with their precedence, so that parentheses are minimal."""

from __future__ import annotations

import re
from typing import NamedTuple

SELECT, OR, AND, BITOR, BITXOR, BITAND, EQUAL, RELATE, SHIFT, ADD, MUL, UNARY, POSTFIX = range(13)
_INFIX = {
    "||": (OR, EQUAL), "&&": (AND, EQUAL), "|": (BITOR, UNARY), "^": (BITXOR, UNARY),
    "&": (BITAND, UNARY), ">>": (SHIFT, UNARY),
    "==": (EQUAL, ADD), "!=": (EQUAL, ADD), "<": (RELATE, ADD),
    "<=": (RELATE, ADD), ">": (RELATE, ADD), ">=": (RELATE, ADD),
    "+": (ADD, MUL), "-": (ADD, MUL), "*": (MUL, UNARY), "/": (MUL, UNARY),
}  # fmt: skip
"""The precedence of each operator, and the least precedence of operands without parentheses.

Stricter than C where it is easily misread: comparisons in comparisons, `&&` in `||`, bit operators.
"""


_NEGATIVE = re.compile(r"-[0-9]")


class CText(NamedTuple):
    """A fragment of C and the precedence of its outermost operator."""

    text: str
    level: int

    def within(self, level: int) -> str:
        """Return the text, parenthesized where its precedence is below `level`."""
        return self.text if self.level >= level else f"({self.text})"


def infix(operator: str, args: list[CText]) -> CText:
    """Return one or two operands joined by a C operator, parenthesized only where needed."""
    if len(args) == 1:
        body = args[0].within(UNARY)
        return CText(operator + (f"({body})" if body[0] == operator else body), UNARY)
    if operator == "+" and args[1].level == UNARY and _NEGATIVE.match(args[1].text):
        return infix("-", [args[0], CText(args[1].text[1:], POSTFIX)])
    level, min_level = _INFIX[operator]
    chained = args[0].level == level and level not in (EQUAL, RELATE)
    left = args[0].text if chained else args[0].within(min_level)
    return CText(f"{left} {operator} {args[1].within(min_level)}", level)
