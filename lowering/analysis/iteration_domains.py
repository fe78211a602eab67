"""Iteration domains: how often a statement is reached, and the values of its loop variables.

The iterations of all loops around a statement are not enumerated: only variables that something
depends on (an inner bound, a test, an index that is asked for) get a column of values; every other
loop only multiplies. So the count is exact for rectangles, triangles and guarded corners alike.
What depends on data is assumed, and the assumption is part of the answer. Analysis only.

>>> from plusequals.lowering.ir.indexing import const, var
>>> i, j = Symbol("i", 0), Symbol("j", 1)
>>> inner = For(j, const(0), var(i), 1, ())
>>> outer = For(i, const(0), const(1000), 1, (inner,))
>>> domain_points((outer, inner), (), frozenset(), CallValues()).times
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
from .. import thresholds
from ..ir.assignments import Break, Continue, Let, Parameter
from ..ir.expressions import Apply, Cast, Const, Expr, Position, Read, Select, walk
from ..ir.indexing import Affine, Quasi, Symbol
from ..ir.loops import For, If, Program, Stmt, While
from ..ir.walk import free_symbols, statements

_ARRAY_OPS = frozenset(
    "eq ne lt le gt ge and or logical_not add sub mul neg floordiv mod min max".split()
)
"""Operations that NumPy evaluates on whole columns; of `min` and `max` see `_apply`."""

Column = NDArray[np.int64]
Value = Any
"""A number, or a column of numbers: one for each point."""


@dataclass(frozen=True, slots=True)
class CallValues:
    """The values of one call: sizes by symbol, scalar arguments by the id of their node."""

    symbols: Mapping[Symbol, int] = field(default_factory=dict)
    scalars: Mapping[int, int | float | bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Assumption:
    """An assumption about a value that depends on data, and the statement that it is about."""

    text: str
    span: Span = field(default=NOWHERE)


@dataclass(frozen=True, slots=True)
class Points:
    """The points of an iteration domain: a column for each symbol that was asked for."""

    columns: Mapping[Symbol, Column]
    weight: NDArray[np.float64]
    """How often each point is reached, float64."""
    assumed: tuple[Assumption, ...] = ()
    is_sampled: bool = False

    @property
    def times(self) -> float:
        """How often the statement is reached, altogether."""
        return float(self.weight.sum())


def call_values(parameters: Iterable[Parameter], values: Iterable[Any]) -> CallValues:
    """Return the symbols and scalars that the arguments of a call determine: extents of arrays, and
    numbers."""
    symbols: dict[Symbol, int] = {}
    scalars: dict[int, int | float | bool] = {}
    for parameter, value in zip(parameters, values, strict=True):
        for extent, size in zip(parameter.node.shape, np.shape(value), strict=False):
            if extent.symbol is not None:
                symbols.setdefault(extent.symbol, size)
        if not (parameter.written or np.ndim(value) or parameter.node.dtype.kind == "c"):
            scalars[parameter.node.id] = np.asarray(value, parameter.node.dtype.numpy).item()
    return CallValues(symbols, scalars)


def add_let_values(program: Program, call_values: CallValues) -> CallValues:
    """Return the values of a call, with the integers that the program's `Let` statements compute
    from them."""
    symbols = dict(call_values.symbols)
    for kernel in program.kernels:
        for stmt in statements(kernel.body):
            if isinstance(stmt, Let):
                value = evaluate_at(stmt.value, {}, CallValues(symbols, call_values.scalars))
                if value is not None:
                    symbols[stmt.symbol] = int(value)
    return CallValues(symbols, call_values.scalars)


def domain_points(
    inside: tuple[Stmt, ...],
    tests: Iterable[Expr],
    wanted: frozenset[Symbol],
    call_values: CallValues,
) -> Points:
    """Return the points inside of some statements, outermost first, at which the tests hold.

    Tests that depend on data are taken to hold.
    """
    tests = tuple(tests)
    needed = wanted.union(*map(free_symbols, tests))
    for stmt in reversed(inside):
        if isinstance(stmt, For):
            needed |= stmt.lo.symbols() | stmt.hi.symbols()
    domain = Points({}, np.ones(1))
    for stmt in inside:
        if isinstance(stmt, For):
            domain = _add_loop(domain, stmt, stmt.symbol in needed, call_values)
        elif isinstance(stmt, While):
            text = "how often this loop runs is known only at run time: one iteration is counted"
            domain = _assume(domain, text, stmt.span)
    return _filter(domain, tests, inside, call_values)


def evaluate_index(
    index: Affine, columns: Mapping[Symbol, Value], call_values: CallValues
) -> Value | None:
    """Return the value of an index expression at points; None where a symbol is not known."""
    total: Value = index.offset
    for atom, factor in index.terms:
        if isinstance(atom, Symbol):
            part = columns.get(atom, call_values.symbols.get(atom))
        else:
            part = _quasi_value(atom, columns, call_values)
        if part is None:
            return None
        total = total + factor * part
    return total


def evaluate_at(
    expr: Expr, columns: Mapping[Symbol, Value], call_values: CallValues
) -> Value | None:
    """Return the value of an expression at points; None where it depends on data."""
    match expr:
        case Const(value, _):
            return value
        case Position(index):
            return evaluate_index(index, columns, call_values)
        case Read(node, ()):
            return call_values.scalars.get(node.id)
        case Cast(value, dtype) if dtype.kind in "biu":
            inner = evaluate_at(value, columns, call_values)
            return None if inner is None else np.asarray(inner).astype(dtype.numpy)
        case Apply(op, args, _) if op.name in _ARRAY_OPS:
            return _apply(op.name, op.meaning, [evaluate_at(a, columns, call_values) for a in args])
        case Select(test, yes, no):
            parts = [evaluate_at(part, columns, call_values) for part in (test, yes, no)]
            return _apply("where", np.where, parts)
        case _:
            return None


def _apply(name: str, meaning: Any, args: list[Value | None]) -> Value | None:
    if any(arg is None for arg in args):
        return None
    by_element = {"max": np.maximum, "min": np.minimum}
    return by_element.get(name, meaning)(*args)


def _quasi_value(
    atom: Quasi, columns: Mapping[Symbol, Value], call_values: CallValues
) -> Value | None:
    left, right = (evaluate_index(side, columns, call_values) for side in (atom.left, atom.right))
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


def _add_loop(domain: Points, loop: For, is_needed: bool, call_values: CallValues) -> Points:
    """Return the points with one more loop around them, its variable as a column if needed."""
    lo, hi = (evaluate_index(bound, domain.columns, call_values) for bound in (loop.lo, loop.hi))
    if any(isinstance(stmt, Break | Continue) for stmt in statements(loop.body)):
        text = "this loop may be left early: all of its iterations are counted"
        domain = _assume(domain, text, loop.span)
    if lo is None or hi is None:
        text = "how often this loop runs is known only at run time: one iteration is counted"
        domain = _assume(domain, text, loop.span)
        lo = 0 if lo is None else lo
        hi = lo + loop.step
    count = len(domain.weight)
    lo = np.broadcast_to(np.asarray(lo, np.int64), (count,))
    trip_counts = np.maximum(0, -((lo - np.asarray(hi, np.int64)) // loop.step))
    if not is_needed:
        return Points(
            domain.columns, domain.weight * trip_counts, domain.assumed, domain.is_sampled
        )
    stride = max(1, -(-int(trip_counts.sum()) // thresholds.MAX_DOMAIN_POINTS))
    sampled = -(-trip_counts // stride)
    row = np.repeat(np.arange(count), sampled)
    iteration = np.arange(len(row)) - np.repeat(np.cumsum(sampled) - sampled, sampled)
    iteration = np.minimum(iteration * stride + stride // 2, trip_counts[row] - 1)
    columns = {symbol: column[row] for symbol, column in domain.columns.items()}
    columns[loop.symbol] = lo[row] + loop.step * iteration
    weight = domain.weight[row] * (trip_counts[row] / sampled[row])
    return Points(columns, weight, domain.assumed, domain.is_sampled or stride > 1)


def _filter(
    domain: Points, tests: tuple[Expr, ...], inside: tuple[Stmt, ...], call_values: CallValues
) -> Points:
    """Return the points at which tests hold that do not depend on data."""
    for test in tests:
        value = evaluate_at(test, domain.columns, call_values)
        if value is None:
            text = "a test here depends on data: what it guards is counted as always done"
            domain = _assume(domain, text, _span_of(test, inside))
            continue
        mask = np.broadcast_to(np.asarray(value, bool), domain.weight.shape)
        columns = {symbol: column[mask] for symbol, column in domain.columns.items()}
        domain = Points(columns, domain.weight[mask], domain.assumed, domain.is_sampled)
    return domain


def _assume(domain: Points, text: str, span: Span) -> Points:
    return Points(
        domain.columns, domain.weight, (*domain.assumed, Assumption(text, span)), domain.is_sampled
    )


def _span_of(test: Expr, inside: tuple[Stmt, ...]) -> Span:
    """Return where a test is written: at its branch, or with the innermost statement around it."""
    positive = test.args[0] if isinstance(test, Apply) and test.op.name == "logical_not" else test
    branches = (
        stmt for stmt in inside
        if isinstance(stmt, If) and any(e is positive or e is test for e in walk(stmt.test))
    )  # fmt: skip
    candidates = (*branches, *reversed(inside))
    spans = (getattr(stmt, "span", NOWHERE) for stmt in candidates)
    return next((span for span in spans if span is not NOWHERE), NOWHERE)
