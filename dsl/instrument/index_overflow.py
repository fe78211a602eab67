"""Overflow tests of index expressions, which are computed in int64.

    n*n, (a + b)//2, i + n     index expressions of Python integers; each sum and product in one
                               has to fit into int64, or it wraps around

The test compares with the value in float64: a wrapped result is off by a multiple of 2**64, which
exceeds any rounding error. No test is needed where the intervals of the symbols exclude overflow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...lowering.ir import dtypes
from ...lowering.ir.assignments import Assign, Check, For, Let, Procedure
from ...lowering.ir.bounds import Bounds
from ...lowering.ir.expressions import Apply, Cast, Const, Expr, Position, Read, Select
from ...lowering.ir.indexing import Affine, Atom, Quasi, Range, Symbol
from ...lowering.ir.intervals import Interval
from ...lowering.ir.node import Node
from ...lowering.ir.ops import OPS
from ...lowering.ir.walk import statements
from ..values.types import TRUE
from .integer_overflow import guarded_operands

_LARGEST = 2**56
"""An upper bound of the extent of an axis: no address space holds more elements."""
_LIMIT = 2**63


def symbol_bounds(procedure: Procedure) -> Bounds:
    """Return bounds of the symbols of a procedure that hold at all of their uses."""
    intervals: dict[Symbol, Interval] = {}
    bounds = Bounds(intervals)
    nodes: Iterable[Node] = (parameter.node for parameter in procedure.parameters)
    for extent in (extent for node in nodes for extent in node.shape):
        if extent.symbol is not None:
            intervals[extent.symbol] = 0, _LARGEST
    for statement in statements(procedure.body):
        match statement:
            case Let(symbol, value):
                intervals[symbol] = bounds.value(value)
            case For(symbol, lo, hi, step):
                first, last = (lo, hi - 1) if step > 0 else (hi + 1, lo)
                intervals[symbol] = bounds.least(first), bounds.most(last)
            case Assign(free=free, reduced=reduced):
                _add_bounds((*free.ranges, *reduced.ranges), bounds, intervals)
            case Check(over=over):
                _add_bounds(over.ranges, bounds, intervals)
            case _:
                pass
    return bounds


def _add_bounds(ranges: Iterable[Range], bounds: Bounds, intervals: dict[Symbol, Interval]) -> None:
    for r in ranges:
        intervals[r.symbol] = bounds.least(r.lo), bounds.most(r.hi - 1)


def user_symbols(procedure: Procedure) -> frozenset[Symbol]:
    """Return the symbols that are scalar parameters or loop variables."""
    parameters = {parameter.node for parameter in procedure.parameters}
    result = set()
    for statement in statements(procedure.body):
        match statement:
            case Let(symbol, Read(node, ()) | Cast(Read(node, ()))) if node in parameters:
                result.add(symbol)
            case For(symbol):
                result.add(symbol)
            case _:
                pass
    return frozenset(result)


def index_overflow_tests(expr: Expr, bounds: Bounds) -> Iterator[Expr]:
    """Yield the tests that no index expression in an expression overflows."""
    match expr:
        case Position(index):
            yield from _index_tests(index, bounds)
        case Read(_, indices):
            for at in indices:
                if isinstance(at, Affine):
                    yield from _index_tests(at, bounds)
        case _:
            pass
    for guard, child in guarded_operands(expr):
        for test in index_overflow_tests(child, bounds):
            yield test if guard is None else Select(guard, test, TRUE)


def _index_tests(index: Affine, bounds: Bounds) -> Iterator[Expr]:
    for atom, _ in index.terms:
        if isinstance(atom, Quasi):
            yield from _index_tests(atom.left, bounds)
            yield from _index_tests(atom.right, bounds)
            if atom.op == "mul" and not _fits(bounds.interval(_atom_index(atom))):
                product = Apply(
                    OPS["mul"], (_to_float(atom.left), _to_float(atom.right)), dtypes.float64
                )
                yield _is_near(product, _atom_index(atom))
    is_plain = not index.terms or index == _atom_index(index.terms[0][0])
    if not is_plain and not _fits(bounds.interval(index)):
        yield _is_near(_float_value(index), index)


def _float_value(index: Affine) -> Expr:
    """Return the value of an index expression in float64."""
    total: Expr = Const(float(index.offset), dtypes.float64)
    for atom, factor in index.terms:
        by = Const(float(factor), dtypes.float64)
        term = Apply(OPS["mul"], (_to_float(_atom_index(atom)), by), dtypes.float64)
        total = Apply(OPS["add"], (total, term), dtypes.float64)
    return total


def _is_near(value: Expr, index: Affine) -> Expr:
    """Return the test that an index expression is near its value in float64, not 2**64 away."""
    difference = Apply(OPS["sub"], (value, _to_float(index)), dtypes.float64)
    distance = Apply(OPS["abs"], (difference,), dtypes.float64)
    return Apply(OPS["lt"], (distance, Const(float(_LIMIT), dtypes.float64)), dtypes.bool_)


def _to_float(index: Affine) -> Expr:
    return Cast(Position(index), dtypes.float64)


def _atom_index(atom: Atom) -> Affine:
    return Affine(((atom, 1),), 0)


def _fits(interval: Interval) -> bool:
    low, high = interval
    return low is not None and high is not None and -_LIMIT <= low and high < _LIMIT
