"""The `where=` filters of traces: Python comparisons of loop and index variables, by name."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace

from ...base.dataclass import dataclass
from ...base.diagnostic import CdValueError, Diagnostic
from ...lowering.ir import dtypes
from ...lowering.ir.expressions import Apply, Expr, Position
from ...lowering.ir.indexing import (
    Affine,
    Range,
    Symbol,
    const,
    floordiv,
    maximum,
    minimum,
    mod,
    multiply,
    var,
)
from ...lowering.ir.ops import OPS

_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip
_SWAPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


@dataclass(frozen=True, slots=True)
class FilteredDomain:
    """A filter applied to a statement: its narrowed ranges, and the remaining tests."""

    ranges: tuple[Range, ...]
    outer: tuple[Expr, ...] = ()
    """Tests of enclosing loop variables only."""
    inner: tuple[Expr, ...] = ()
    """Tests of the statement's points."""


def parse_filter(text: str) -> tuple[ast.expr, ...]:
    """Return the conjuncts of a test; raises CdValueError CD0871 where the text is none."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        conjuncts = tuple(_conjuncts(tree))
        for conjunct in conjuncts:
            _test(conjunct, dict.fromkeys(names(conjunct), Symbol("any", 0)))
    except (SyntaxError, ValueError) as problem:
        raise CdValueError(
            Diagnostic(
                "CD0871", f"`where={text!r}` is no test of indices: {problem}",
                helps=("compare names of indices and loops with numbers: `\"i == 3 and t < 2\"`",),
            )
        ) from None  # fmt: skip
    return conjuncts


def names(test: ast.expr) -> set[str]:
    """Return the names that occur in a test."""
    return {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}


def apply_filter(
    tests: tuple[ast.expr, ...],
    outer: tuple[Symbol, ...],
    ranges: tuple[Range, ...],
    hidden: frozenset[Symbol] = frozenset(),
) -> FilteredDomain | None:
    """Return the tests applied to a statement; None where it lacks a name that they use.

    Hidden symbols have no name.
    """
    outer_symbols = {symbol.name: symbol for symbol in outer if symbol not in hidden}
    inner = (r.symbol for r in ranges if r.symbol not in hidden)
    inner_symbols = {symbol.name: symbol for symbol in inner if symbol.name not in outer_symbols}
    symbols = inner_symbols | outer_symbols
    fits = FilteredDomain(ranges)
    for test in tests:
        used = names(test)
        if not used <= symbols.keys():
            return None
        expr = _test(test, symbols)
        if not used & inner_symbols.keys():
            fits = replace(fits, outer=(*fits.outer, expr))
        elif (narrow := _narrow_ranges(expr, fits.ranges)) is not None:
            fits = replace(fits, ranges=narrow)
        else:
            fits = replace(fits, inner=(*fits.inner, expr))
    return fits


def _conjuncts(tree: ast.expr) -> list[ast.expr]:
    if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And):
        return [part for value in tree.values for part in _conjuncts(value)]
    if isinstance(tree, ast.Compare) and len(tree.ops) > 1:
        sides = [tree.left, *tree.comparators]
        return [
            ast.Compare(left, [op], [right])
            for left, op, right in zip(sides, tree.ops, sides[1:], strict=False)
        ]
    return [tree]


def _test(tree: ast.expr, symbols: Mapping[str, Symbol]) -> Expr:
    match tree:
        case ast.BoolOp(op, values):
            name = "and" if isinstance(op, ast.And) else "or"
            first, *rest = (_test(value, symbols) for value in values)
            for operand in rest:
                first = Apply(OPS[name], (first, operand), dtypes.bool_)
            return first
        case ast.UnaryOp(ast.Not(), value):
            return Apply(OPS["logical_not"], (_test(value, symbols),), dtypes.bool_)
        case ast.Compare(_, [_, _, *_], _):
            return _test(ast.BoolOp(ast.And(), _conjuncts(tree)), symbols)
        case ast.Compare(left, [op], [right]) if type(op) in _COMPARE:
            sides = (
                Position(_affine_value(left, symbols)),
                Position(_affine_value(right, symbols)),
            )
            return Apply(OPS[_COMPARE[type(op)]], sides, dtypes.bool_)
        case _:
            raise ValueError(f"`{ast.unparse(tree)}` is no comparison")


def _affine_value(tree: ast.expr, symbols: Mapping[str, Symbol]) -> Affine:
    match tree:
        case ast.Name(name):
            return var(symbols[name])
        case ast.Constant(int() as value):
            return const(int(value))
        case ast.UnaryOp(ast.USub(), value):
            return -_affine_value(value, symbols)
        case ast.BinOp(left, op, right):
            first, second = _affine_value(left, symbols), _affine_value(right, symbols)
            match op:
                case ast.Add():
                    return first + second
                case ast.Sub():
                    return first - second
                case ast.Mult():
                    return multiply(first, second)
                case ast.FloorDiv() if second.constant:
                    return floordiv(first, second)
                case ast.Mod() if second.constant:
                    return mod(first, second)
    raise ValueError(f"`{ast.unparse(tree)}` is no number of names and whole numbers")


def _narrow_ranges(test: Expr, ranges: tuple[Range, ...]) -> tuple[Range, ...] | None:
    """Return the ranges narrowed by a comparison of one of their symbols with a number, None for
    other tests."""
    match test:
        case Apply(op, (Position(left), Position(right))):
            if right.constant is None:
                left, right, name = right, left, _SWAPPED[op.name]
            else:
                name = op.name
            value = right.constant
        case _:
            return None
    at = next((n for n, r in enumerate(ranges) if r.symbol == left.symbol), None)
    if at is None or value is None or name == "ne":
        return None
    r = ranges[at]
    lo = value + 1 if name == "gt" else value if name in ("eq", "ge") else None
    hi = value if name == "lt" else value + 1 if name in ("eq", "le") else None
    low = r.lo if lo is None else maximum(r.lo, const(lo))
    high = r.hi if hi is None else minimum(r.hi, const(hi))
    return (*ranges[:at], Range(r.symbol, low, high), *ranges[at + 1 :])
