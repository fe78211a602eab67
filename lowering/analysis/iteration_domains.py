"""How often a place of a program is reached, and through which values its loop variables run.

The rounds of all loops around a place are not run through: only variables that something depends
on (an inner bound, a test, an index that is asked for) get a column of numbers; every other loop
only multiplies. So the count is exact for rectangles, triangles and guarded corners alike. What
only the run can know is assumed, and the assumption is part of the answer.

>>> from plusequals.lowering.ir.indexing import const, var
>>> i, j = Symbol("i", 0), Symbol("j", 1)
>>> inner = For(j, const(0), var(i), 1, ())
>>> outer = For(i, const(0), const(1000), 1, (inner,))
>>> points((outer, inner), (), frozenset(), Known()).times
499500.0
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base.dataclass import dataclass
from ...base.diagnostic import NOWHERE, Span
from ..ir.assignments import Break, Continue, Let, Parameter
from ..ir.expressions import Apply, Cast, Const, Expr, Position, Read, Select, walk
from ..ir.indexing import Affine, Quasi, Symbol
from ..ir.loops import For, If, Program, Stmt, While
from ..ir.walk import free_symbols, statements

LIMIT = 1 << 20
"""With more points than that, evenly spaced ones stand for all of them."""
_FOLDED = frozenset(
    "eq ne lt le gt ge and or logical_not add sub mul neg floordiv mod min max".split()
)
"""Operations whose NumPy meaning holds for whole columns; of `min` and `max` see `_applied`."""

Column = NDArray[np.int64]
Value = Any
"""A number, or a column of numbers: one for each point."""


@dataclass(frozen=True, slots=True)
class Known:
    """The numbers of one call: sizes by symbol, scalar arguments by the id of their node."""

    symbols: Mapping[Symbol, int] = field(default_factory=dict)
    scalars: Mapping[int, int | float | bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Assumption:
    """What was taken for granted where only the run can know, and which statement that is."""

    text: str
    span: Span = field(default=NOWHERE)


@dataclass(frozen=True, slots=True)
class Points:
    """The points at which a place is reached: a column for each symbol that was asked for."""

    columns: Mapping[Symbol, Column]
    weight: NDArray[np.float64]
    """How often each point is reached."""
    assumed: tuple[Assumption, ...] = ()
    is_sampled: bool = False

    @property
    def times(self) -> float:
        """How often the place is reached, altogether."""
        return float(self.weight.sum())


def known_of(parameters: Iterable[Parameter], values: Iterable[Any]) -> Known:
    """Return what the values of a call say: the extents of arrays, and the numbers among them."""
    symbols: dict[Symbol, int] = {}
    scalars: dict[int, int | float | bool] = {}
    for parameter, value in zip(parameters, values, strict=True):
        for extent, size in zip(parameter.node.shape, np.shape(value), strict=False):
            if extent.symbol is not None:
                symbols.setdefault(extent.symbol, size)
        if not (parameter.written or np.ndim(value) or parameter.node.dtype.kind == "c"):
            scalars[parameter.node.id] = np.asarray(value, parameter.node.dtype.numpy).item()
    return Known(symbols, scalars)


def known_after(program: Program, known: Known) -> Known:
    """Return what is known, with the integers that the program reads once from what is known."""
    symbols = dict(known.symbols)
    for kernel in program.kernels:
        for stmt in statements(kernel.body):
            if isinstance(stmt, Let):
                value = value_at(stmt.value, {}, Known(symbols, known.scalars))
                if value is not None:
                    symbols[stmt.symbol] = int(value)
    return Known(symbols, known.scalars)


def points(
    inside: tuple[Stmt, ...], tests: Iterable[Expr], wanted: frozenset[Symbol], known: Known
) -> Points:
    """Return the points inside of some statements, outermost first, at which the tests hold.

    Tests that depend on data are taken to hold.
    """
    tests = tuple(tests)
    needed = wanted.union(*map(free_symbols, tests))
    for stmt in reversed(inside):
        if isinstance(stmt, For):
            needed |= stmt.lo.symbols() | stmt.hi.symbols()
    found = Points({}, np.ones(1))
    for stmt in inside:
        if isinstance(stmt, For):
            found = _rounds(found, stmt, stmt.symbol in needed, known)
        elif isinstance(stmt, While):
            text = "how often this loop runs is not known before the call: one round is counted"
            found = _assuming(found, text, stmt.span)
    return _where(found, tests, inside, known)


def number_at(index: Affine, columns: Mapping[Symbol, Value], known: Known) -> Value | None:
    """Return the number of an index expression at points; None where a symbol is not known."""
    total: Value = index.offset
    for atom, factor in index.terms:
        if isinstance(atom, Symbol):
            part = columns.get(atom, known.symbols.get(atom))
        else:
            part = _quasi(atom, columns, known)
        if part is None:
            return None
        total = total + factor * part
    return total


def value_at(expr: Expr, columns: Mapping[Symbol, Value], known: Known) -> Value | None:
    """Return the value of an expression at points; None where it depends on data."""
    match expr:
        case Const(value, _):
            return value
        case Position(index):
            return number_at(index, columns, known)
        case Read(node, ()):
            return known.scalars.get(node.id)
        case Cast(value, dtype) if dtype.kind in "biu":
            inner = value_at(value, columns, known)
            return None if inner is None else np.asarray(inner).astype(dtype.numpy)
        case Apply(op, args, _) if op.name in _FOLDED:
            return _applied(op.name, op.meaning, [value_at(a, columns, known) for a in args])
        case Select(test, yes, no):
            parts = [value_at(part, columns, known) for part in (test, yes, no)]
            return _applied("where", np.where, parts)
        case _:
            return None


def _applied(name: str, meaning: Any, args: list[Value | None]) -> Value | None:
    if any(arg is None for arg in args):
        return None
    by_element = {"max": np.maximum, "min": np.minimum}
    return by_element.get(name, meaning)(*args)


def _quasi(atom: Quasi, columns: Mapping[Symbol, Value], known: Known) -> Value | None:
    left, right = (number_at(side, columns, known) for side in (atom.left, atom.right))
    if left is None or right is None:
        return None
    match atom.op:
        case "min":
            return np.minimum(left, right)
        case "max":
            return np.maximum(left, right)
        case "floordiv":
            return left // right
        case "mod":
            return left % right
        case "mul":
            return left * right


def _rounds(found: Points, loop: For, is_needed: bool, known: Known) -> Points:
    """Return the points with one more loop around them, its variable as a column if needed."""
    lo, hi = (number_at(bound, found.columns, known) for bound in (loop.lo, loop.hi))
    if any(isinstance(stmt, Break | Continue) for stmt in statements(loop.body)):
        text = "this loop may be left early: all of its rounds are counted"
        found = _assuming(found, text, loop.span)
    if lo is None or hi is None:
        text = "how often this loop runs is not known before the call: one round is counted"
        found = _assuming(found, text, loop.span)
        lo, hi = lo or 0, (lo or 0) + loop.step
    count = len(found.weight)
    lo = np.broadcast_to(np.asarray(lo, np.int64), (count,))
    rounds = np.maximum(0, -((lo - np.asarray(hi, np.int64)) // loop.step))
    if not is_needed:
        return Points(found.columns, found.weight * rounds, found.assumed, found.is_sampled)
    every = max(1, -(-int(rounds.sum()) // LIMIT))
    shown = -(-rounds // every)
    row = np.repeat(np.arange(count), shown)
    number = np.arange(len(row)) - np.repeat(np.cumsum(shown) - shown, shown)
    number = np.minimum(number * every + every // 2, rounds[row] - 1)
    columns = {symbol: column[row] for symbol, column in found.columns.items()}
    columns[loop.symbol] = lo[row] + loop.step * number
    weight = found.weight[row] * (rounds[row] / shown[row])
    return Points(columns, weight, found.assumed, found.is_sampled or every > 1)


def _where(
    found: Points, tests: tuple[Expr, ...], inside: tuple[Stmt, ...], known: Known
) -> Points:
    """Return the points at which tests hold that do not depend on data."""
    for test in tests:
        value = value_at(test, found.columns, known)
        if value is None:
            text = "a test here depends on data: what it guards is counted as always done"
            found = _assuming(found, text, _span_of(test, inside))
            continue
        kept = np.broadcast_to(np.asarray(value, bool), found.weight.shape)
        columns = {symbol: column[kept] for symbol, column in found.columns.items()}
        found = Points(columns, found.weight[kept], found.assumed, found.is_sampled)
    return found


def _assuming(found: Points, text: str, span: Span) -> Points:
    return Points(
        found.columns, found.weight, (*found.assumed, Assumption(text, span)), found.is_sampled
    )


def _span_of(test: Expr, inside: tuple[Stmt, ...]) -> Span:
    """Return where a test is written: at its branch, or with the innermost statement around it."""
    written = test.args[0] if isinstance(test, Apply) and test.op.name == "logical_not" else test
    branches = (
        stmt for stmt in inside
        if isinstance(stmt, If) and any(part is written or part is test for part in walk(stmt.test))
    )  # fmt: skip
    around = (*branches, *reversed(inside))
    spans = (getattr(stmt, "span", NOWHERE) for stmt in around)
    return next((span for span in spans if span is not NOWHERE), NOWHERE)
