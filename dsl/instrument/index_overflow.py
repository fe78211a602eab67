"""What has to hold for index expressions to be the numbers that they say: 64 bits may not do.

    n*n, (a + b)//2, i + n     index expressions of Python integers; each sum and product in one
                               has to fit into int64, or it wraps around

`size` in float64 tells: what wraps around is off by a multiple of 2**64, which no rounding hides.
Where what is known of the symbols says that all fits there is nothing to test.
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
from .integer_overflow import guarded

_LARGEST = 2**56
"""No axis has more elements: memory has no room for them."""
_LIMIT = 2**63


def known_in(procedure: Procedure) -> Bounds:
    """Return what is known of the symbols of a procedure, each wherever it is used."""
    found: dict[Symbol, Interval] = {}
    known = Bounds(found)
    nodes: Iterable[Node] = (parameter.node for parameter in procedure.parameters)
    for extent in (extent for node in nodes for extent in node.shape):
        if extent.symbol is not None:
            found[extent.symbol] = 0, _LARGEST
    for statement in statements(procedure.body):
        match statement:
            case Let(symbol, value):
                found[symbol] = known.value(value)
            case For(symbol, lo, hi, step):
                first, last = (lo, hi - 1) if step > 0 else (hi + 1, lo)
                found[symbol] = known.least(first), known.most(last)
            case Assign(free=free, reduced=reduced):
                _note((*free.ranges, *reduced.ranges), known, found)
            case Check(over=over):
                _note(over.ranges, known, found)
            case _:
                pass
    return known


def _note(ranges: Iterable[Range], known: Bounds, found: dict[Symbol, Interval]) -> None:
    for r in ranges:
        found[r.symbol] = known.least(r.lo), known.most(r.hi - 1)


def named_in(procedure: Procedure) -> frozenset[Symbol]:
    """Return the symbols that are a number given by the caller, or the variable of a loop."""
    given = {parameter.node for parameter in procedure.parameters}
    found = set()
    for statement in statements(procedure.body):
        match statement:
            case Let(symbol, Read(node, ())) if node in given:
                found.add(symbol)
            case For(symbol):
                found.add(symbol)
            case _:
                pass
    return frozenset(found)


def exact(expr: Expr, known: Bounds) -> Iterator[Expr]:
    """Yield what has to hold for the index expressions in an expression not to wrap around."""
    match expr:
        case Position(index):
            yield from _exact(index, known)
        case Read(_, indices):
            for at in indices:
                if isinstance(at, Affine):
                    yield from _exact(at, known)
        case _:
            pass
    for guard, child in guarded(expr):
        for test in exact(child, known):
            yield test if guard is None else Select(guard, test, TRUE)


def _exact(index: Affine, known: Bounds) -> Iterator[Expr]:
    for atom, _ in index.terms:
        if isinstance(atom, Quasi):
            yield from _exact(atom.left, known)
            yield from _exact(atom.right, known)
            if atom.op == "mul" and not _fits(known.interval(_alone(atom))):
                product = Apply(OPS["mul"], (_float(atom.left), _float(atom.right)), dtypes.float64)
                yield _is_near(product, _alone(atom))
    is_plain = not index.terms or index == _alone(index.terms[0][0])
    if not is_plain and not _fits(known.interval(index)):
        yield _is_near(_size(index), index)


def _size(index: Affine) -> Expr:
    """Return a sum in float64."""
    total: Expr = Const(float(index.offset), dtypes.float64)
    for atom, factor in index.terms:
        by = Const(float(factor), dtypes.float64)
        term = Apply(OPS["mul"], (_float(_alone(atom)), by), dtypes.float64)
        total = Apply(OPS["add"], (total, term), dtypes.float64)
    return total


def _is_near(size: Expr, index: Affine) -> Expr:
    """Return whether an index expression is what it is in float64, and not 2**64 or more away."""
    gap = Apply(OPS["sub"], (size, _float(index)), dtypes.float64)
    distance = Apply(OPS["abs"], (gap,), dtypes.float64)
    return Apply(OPS["lt"], (distance, Const(float(_LIMIT), dtypes.float64)), dtypes.bool_)


def _float(index: Affine) -> Expr:
    return Cast(Position(index), dtypes.float64)


def _alone(atom: Atom) -> Affine:
    return Affine(((atom, 1),), 0)


def _fits(interval: Interval) -> bool:
    low, high = interval
    return low is not None and high is not None and -_LIMIT <= low and high < _LIMIT
