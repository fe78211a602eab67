"""Error messages and fix hints of a run-time index that is out of range."""

from __future__ import annotations

import ast
from contextlib import suppress

from ...lowering.ir.assignments import Fault
from ...lowering.ir.expressions import Expr, Position
from ...lowering.ir.indexing import Affine, Range, const, var
from .fix_hints import WAYS_OUT


def index_fault(
    value: Expr,
    extent: Affine,
    axis: int,
    name: str,
    over: tuple[Range, ...],
    text: str = "",
) -> tuple[Fault, tuple[Expr, ...]]:
    """Return the fault of an out-of-range index, and its values: index, size, iteration point."""
    message = f"index {{0}} is out of range for axis {axis} of `{name}` with size {{1}}"
    if shown := over[:5]:
        point = ", ".join(f"{r.symbol.name} = {{{n}}}" for n, r in enumerate(shown, 2))
        message += f", at {point}"
    values = (value, Position(extent), *(Position(var(r.symbol)) for r in shown))
    empty = value == Position(const(0))
    below = isinstance(value, Position) and bool(value.index.terms) and value.index.offset < 0
    hints = WAYS_OUT["empty axis"] if empty else _suggest_subscripts(text, axis, below)
    return Fault("CD0601", "CdIndexError", message, hints), values


def _suggest_subscripts(text: str, axis: int, below: bool) -> tuple[str, ...]:
    """Return fix hints for a subscript, in source form, whose index on an axis may be out of range.

    `below`: the index may be negative, which its text may say, too.

    >>> for hint in _suggest_subscripts("s.x[i - 1, j]", 0, True):
    ...     print(hint)
    a computed index does not count from the end: that is `s.x[(i - 1) % len(s.x), j]`
    or say what is outside: `s.x[clamp(i - 1), j]`, `s.x[pad(i - 1), j]`
    """
    base, items, at = "x", ["i - 1" if below else "i"], 0
    with suppress(SyntaxError):
        match ast.parse(text, mode="eval").body:
            case ast.Subscript(_, ast.Tuple(elements)) if any(map(_indexes_no_axis, elements)):
                pass
            case ast.Subscript(value, ast.Tuple(elements)) if axis < len(elements):
                base, items, at = ast.unparse(value), list(map(ast.unparse, elements)), axis
            case ast.Subscript(value, ast.Slice()):
                base = ast.unparse(value)
            case ast.Subscript(value, only) if not axis:
                base, items = ast.unparse(value), [ast.unparse(only)]

    def render(index: str) -> str:
        return f"`{base}[{', '.join((*items[:at], index, *items[at + 1 :]))}]`"

    index = items[at]
    size = f"{base}.shape[{axis}]" if axis else f"len({base})"
    clamped, padded, wrapped = (render(f"{name}({index})") for name in ("clamp", "pad", "wrap"))
    if not below and not index.startswith("-"):
        return (f"correct the index, or say what is outside: {clamped}, {padded}, {wrapped}",)
    return (
        f"a computed index does not count from the end: that is {render(f'({index}) % {size}')}",
        f"or say what is outside: {clamped}, {padded}",
    )


def _indexes_no_axis(item: ast.expr) -> bool:
    return isinstance(item, ast.Constant) and item.value in (None, ...)
