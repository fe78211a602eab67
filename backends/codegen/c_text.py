"""Pieces of C, which tell how tightly they bind, so that as few brackets stand as are needed."""

from __future__ import annotations

from typing import NamedTuple

CHOOSE, OR, AND, BITOR, BITXOR, BITAND, EQUAL, RELATE, SHIFT, ADD, MUL, UNARY, POSTFIX = range(13)
_INFIX = {
    "||": (OR, EQUAL), "&&": (AND, EQUAL), "|": (BITOR, UNARY), "^": (BITXOR, UNARY),
    "&": (BITAND, UNARY), ">>": (SHIFT, UNARY),
    "==": (EQUAL, ADD), "!=": (EQUAL, ADD), "<": (RELATE, ADD),
    "<=": (RELATE, ADD), ">": (RELATE, ADD), ">=": (RELATE, ADD),
    "+": (ADD, MUL), "-": (ADD, MUL), "*": (MUL, UNARY), "/": (MUL, UNARY),
}  # fmt: skip
"""Of each operator: its level, and the least level at which operands stand without brackets.

Stricter than C where people misread it: comparisons in comparisons, `&&` in `||`, bit operators.
"""


class Text(NamedTuple):
    """A piece of C and how tightly its outermost operator binds."""

    text: str
    level: int

    def within(self, level: int) -> str:
        """Return the text, in brackets where something of that level or tighter is needed."""
        return self.text if self.level >= level else f"({self.text})"


def infix(operator: str, args: list[Text]) -> Text:
    """Return one or two operands joined by a C operator, bracketed only where needed."""
    if len(args) == 1:
        body = args[0].within(UNARY)
        return Text(operator + (f"({body})" if body[0] == operator else body), UNARY)
    level, least = _INFIX[operator]
    chained = args[0].level == level and level not in (EQUAL, RELATE)
    left = args[0].text if chained else args[0].within(least)
    return Text(f"{left} {operator} {args[1].within(least)}", level)
