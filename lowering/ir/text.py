"""Names, subscripts and expressions as text, with the parentheses that precedence requires.

Precedence is Python's, as numbers: 1 `if else`, 2 or, 3 and, 4 not, 5 comparisons, 6 `|`, 7 `^`,
8 `&`, 9 shifts, 10 sums, 11 products, 12 signs, 13 powers, 14 names, calls and subscripts.
"""

from __future__ import annotations

from dataclasses import field
from typing import assert_never

import numpy as np

from ...base.dataclass import dataclass
from .expressions import (
    Apply,
    Cast,
    Const,
    Domain,
    Dynamic,
    Expr,
    Index,
    Position,
    Read,
    Reduce,
    Select,
)
from .indexing import Affine, Quasi, Symbol
from .node import Node
from .ops import Op

INFIX: dict[str, tuple[str, int]] = {
    "or": ("or", 2), "and": ("and", 3),
    "eq": ("==", 5), "ne": ("!=", 5), "lt": ("<", 5), "le": ("<=", 5), "gt": (">", 5),
    "ge": (">=", 5), "bitor": ("|", 6), "bitxor": ("^", 7), "bitand": ("&", 8),
    "shl": ("<<", 9), "shr": (">>", 9), "add": ("+", 10), "sub": ("-", 10), "mul": ("*", 11),
    "div": ("/", 11), "floordiv": ("//", 11), "mod": ("%", 11), "pow": ("**", 13),
    "whole_pow": ("**", 13), "half_pow": ("**", 13),
}  # fmt: skip
_PREFIX = {"logical_not": ("not ", 4), "neg": ("-", 12), "invert": ("~", 12)}
_QUASI = {"floordiv": "//", "mod": "%", "mul": "*"}
_REDUCTION = {"add": "sum", "mul": "prod", "and": "all", "or": "any"}
_ATOM = 14


@dataclass(frozen=True, slots=True)
class Scope:
    """The names in use in a scope: each symbol and node gets one at its first occurrence."""

    symbols: dict[Symbol, str] = field(default_factory=dict)
    nodes: dict[int, str] = field(default_factory=dict)

    def inner(self) -> Scope:
        """A nested scope with these names; names that it adds are local to it."""
        return Scope(dict(self.symbols), dict(self.nodes))

    def symbol(self, symbol: Symbol) -> str:
        """The name of a symbol: its own, with `_2` appended where that is taken."""
        if symbol not in self.symbols:
            self.symbols[symbol] = self._unused_name(symbol.name)
        return self.symbols[symbol]

    def node(self, node: Node) -> str:
        """The name of a node: its label, with `_2` appended where that is taken."""
        if node.id not in self.nodes:
            self.nodes[node.id] = self._unused_name(node.label)
        return self.nodes[node.id]

    def _unused_name(self, preferred: str) -> str:
        taken = {*self.symbols.values(), *self.nodes.values()}
        name, count = preferred, 2
        while name in taken:
            name, count = f"{preferred}_{count}", count + 1
        return name


def reduction_name(op: Op) -> str:
    """Return the name of a reduction by the op: `sum` for add, `all` for and, `max` for max."""
    return _REDUCTION.get(op.name, op.name)


def expr_text(expr: Expr, scope: Scope) -> str:
    """Return the expression as text."""
    return _expr(expr, scope, 0)


def index_text(index: Affine, scope: Scope) -> str:
    """Return the index expression as text: `2*i - j + 1`, `(i + 1)//4`, `min(i, n)`."""
    return _index(index, scope)[0]


def element_text(node: Node, index: tuple[Index, ...], scope: Scope) -> str:
    """Return `x[i, j]`; the name alone for a node of rank 0."""
    name = scope.node(node)
    if not index:
        return name
    parts = [
        expr_text(i.value, scope) if isinstance(i, Dynamic) else index_text(i, scope) for i in index
    ]
    return f"{name}[{', '.join(parts)}]"


def domain_text(domain: Domain, scope: Scope) -> str:
    """Return `i in [0, 4), j in [0, i) where x[i] > 0`, binding its symbols in the scope."""
    ranges = []
    for r in domain.ranges:
        lo, hi = index_text(r.lo, scope), index_text(r.hi, scope)
        ranges.append(f"{scope.symbol(r.symbol)} in [{lo}, {hi})")
    where = "" if domain.where is None else f"where {expr_text(domain.where, scope)}"
    return " ".join(part for part in (", ".join(ranges), where) if part)


def _expr(expr: Expr, scope: Scope, least: int) -> str:
    """The text, parenthesized where it binds less tightly than `least`."""
    text, precedence = _text_and_precedence(expr, scope)
    return f"({text})" if precedence < least else text


def _text_and_precedence(expr: Expr, scope: Scope) -> tuple[str, int]:
    match expr:
        case Const():
            text = _const(expr)
            return text, 12 if text.startswith("-") else _ATOM
        case Read(node, index):
            return element_text(node, index, scope), _ATOM
        case Position(index):
            return _index(index, scope)
        case Apply(op, args, _):
            return _apply(op, args, scope)
        case Cast(value, dtype):
            return f"{dtype.short}({expr_text(value, scope)})", _ATOM
        case Select(test, yes, no):
            parts = (_expr(yes, scope, 2), _expr(test, scope, 2), _expr(no, scope, 1))
            return "{} if {} else {}".format(*parts), 1
        case Reduce(op, domain, value, _, position):
            inner = scope.inner()
            over = domain_text(domain, inner)
            at = "" if position is None else f" at {index_text(position, inner)}"
            return f"{reduction_name(op)}[{over}]({expr_text(value, inner)}{at})", _ATOM
        case _:
            assert_never(expr)


def _apply(op: Op, args: tuple[Expr, ...], scope: Scope) -> tuple[str, int]:
    if op.name in _PREFIX:
        sign, level = _PREFIX[op.name]
        return f"{sign}{_expr(args[0], scope, level)}", level
    if op.name not in INFIX:
        return f"{op.name}({', '.join(expr_text(arg, scope) for arg in args)})", _ATOM
    sign, level = INFIX[op.name]
    left, right = level, level + 1
    if sign == "**":
        left, right = 14, 12
    elif level == 5:
        left = 6
    return f"{_expr(args[0], scope, left)} {sign} {_expr(args[1], scope, right)}", level


def _const(const: Const) -> str:
    """The shortest text that denotes the same number in the constant's type."""
    value, dtype = const.value, const.dtype
    match dtype.kind:
        case "b":
            return str(bool(value))
        case "f" if dtype.bits < 64:
            short = np.dtype("float32" if dtype.name == "bfloat16" else dtype.name)
            with np.errstate(over="ignore"):
                return str(np.asarray(value).astype(short)[()])
        case "f" | "c":
            return repr(float(value) if isinstance(value, int) else value)
        case _:
            return str(int(value) if isinstance(value, bool) else value)


def _index(index: Affine, scope: Scope) -> tuple[str, int]:
    """The text of an index expression and its precedence."""
    if not index.terms:
        return str(index.offset), 12 if index.offset < 0 else _ATOM
    texts = [_term(atom, factor, scope) for atom, factor in index.terms]
    first, level = texts[0]
    out = f"-{first}" if index.terms[0][1] < 0 else first
    for (text, _), (_, factor) in zip(texts[1:], index.terms[1:], strict=True):
        out += f" {'-' if factor < 0 else '+'} {text}"
    if index.offset:
        out += f" {'-' if index.offset < 0 else '+'} {abs(index.offset)}"
    if len(texts) > 1 or index.offset:
        return out, 10
    return out, min(level, 11) if index.terms[0][1] < 0 else level


def _term(atom: Symbol | Quasi, factor: int, scope: Scope) -> tuple[str, int]:
    """`3*i` for a factor of 3 or -3, and its precedence."""
    text, level = (scope.symbol(atom), _ATOM) if isinstance(atom, Symbol) else _quasi(atom, scope)
    if abs(factor) == 1:
        return text, level
    return f"{abs(factor)}*{f'({text})' if level <= 11 else text}", 11


def _quasi(quasi: Quasi, scope: Scope) -> tuple[str, int]:
    (left, left_level), (right, right_level) = _index(quasi.left, scope), _index(quasi.right, scope)
    if quasi.op == "min" or quasi.op == "max":
        return f"{quasi.op}({left}, {right})", _ATOM
    left = f"({left})" if left_level < 11 else left
    right = f"({right})" if right_level <= 11 else right
    return f"{left}{_QUASI[quasi.op]}{right}", 11
