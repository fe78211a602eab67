"""Affine subscripts: which elements they can access, for all iterations at once.

A symbol runs through its `Range`; a symbol without one may be anything. Each answer "yes" is sure;
"no" may also mean that it could not be shown. Used by `accesses` and the passes. Analysis only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from math import gcd

from ..ir.bounds import Bounds
from ..ir.expressions import Apply, Const, Dynamic, Expr, Index, Position
from ..ir.indexing import (
    Affine,
    Quasi,
    QuasiOp,
    Range,
    Symbol,
    const,
    extremum_operands,
    floordiv,
    mod,
    substitute,
    var,
)
from ..ir.loops import For, Stmt
from ..ir.node import Node
from .self_dependence import bound_over, symbols_of


def ranges(inside: Iterable[Stmt]) -> tuple[Range, ...]:
    """Return the ranges of the symbols of loops, outermost first: from the least value to the
    greatest, whichever way a loop runs; that a step leaves values out is ignored."""
    return tuple(
        [
            Range(f.symbol, f.lo, f.hi) if f.step > 0 else Range(f.symbol, f.hi + 1, f.lo + 1)
            for f in inside
            if isinstance(f, For)
        ]
    )


def are_different(left: Index, right: Index, domain: tuple[Range, ...]) -> bool:
    """Whether two subscripts are different numbers, whatever the values of the symbols.

    >>> i, j = Symbol("i", 0), Symbol("j", 1)
    >>> triangle = Range(i, const(0), const(9)), Range(j, const(0), var(i))
    >>> are_different(var(i), var(j), triangle), are_different(var(i) * 2, var(j) * 2 + 1, ())
    (True, True)
    """
    if isinstance(left, Dynamic) or isinstance(right, Dynamic):
        return False
    gap = left - right
    if not gap.terms:
        return gap.offset != 0
    if gap.offset % gcd(*[k for _, k in gap.terms]):
        return True
    return is_nonnegative(gap - 1, domain) or is_nonnegative(gap * -1 - 1, domain)


def are_disjoint(
    left: tuple[Index, ...] | None, right: tuple[Index, ...] | None, domain: tuple[Range, ...]
) -> bool:
    """Whether two indices of an array are never the same element, shown by one axis."""
    if left is None or right is None:
        return False
    return any(
        are_different(first, second, domain) for first, second in zip(left, right, strict=True)
    )


def is_in_range(
    node: Node,
    index: tuple[Index, ...] | None,
    domain: tuple[Range, ...],
    tests: Sequence[Expr] = (),
) -> bool:
    """Whether an access is surely in bounds of its array where `tests` hold."""
    return index is None or all(
        isinstance(subscript, Affine)
        and is_nonnegative(subscript, domain, tests)
        and is_nonnegative(size - subscript - 1, domain, tests)
        for subscript, size in zip(index, node.shape, strict=True)
    )


def is_nonnegative(value: Affine, domain: tuple[Range, ...], tests: Iterable[Expr] = ()) -> bool:
    """Whether an index expression is surely non-negative where `tests` hold."""
    if not value.terms:
        return value.offset >= 0
    if _is_non_negative(bound_over(value, domain, -1)):
        return True
    if any(_has_min_max(range_) for range_ in domain):
        wider = tuple(map(_widen, domain))
        if wider != domain and _is_non_negative(bound_over(value, wider, -1)):
            return True
    if any(isinstance(atom, Quasi) for atom, _ in value.terms):
        least = _bounds_inside(domain).least(value)
        if least is not None and least >= 0:
            return True
    if not tests:
        return False
    implied = (fact for test in tests for fact in implied_inequalities(test))
    return any(is_nonnegative(value - fact, domain) for fact in implied if fact.terms)


@lru_cache(256)
def _bounds_inside(domain: tuple[Range, ...]) -> Bounds:
    """Return the bounds inside of loops; cached, for accesses of one nest ask for them many
    times."""
    return reduce(Bounds.inside, domain, Bounds())


def _is_non_negative(value: Affine | None) -> bool:
    return value is not None and value.constant is not None and value.constant >= 0


def _has_min_max(range_: Range) -> bool:
    """Whether an end of a range may be a minimum or maximum."""
    return any(
        len(end.terms) == 1 and isinstance(end.terms[0][0], Quasi) for end in (range_.lo, range_.hi)
    )


def _widen(range_: Range) -> Range:
    """Return a range whose ends are constants where they are minima or maxima with a constant."""
    return Range(range_.symbol, _constant_side(range_.lo, "max"), _constant_side(range_.hi, "min"))


def _constant_side(end: Affine, op: QuasiOp) -> Affine:
    return next((side for side in extremum_operands(end, op) if side.constant is not None), end)


def is_implied(test: Expr, domain: tuple[Range, ...], tests: tuple[Expr, ...]) -> bool:
    """Whether a test is surely implied by others."""
    if test in tests:
        return True
    implied = tuple(implied_inequalities(test))
    return bool(implied) and all(is_nonnegative(fact, domain, tests) for fact in implied)


def implied_inequalities(test: Expr) -> Iterator[Affine]:
    """Yield expressions that are non-negative where a comparison of index expressions holds,
    equivalent to it."""
    match test:
        case Apply(op, (left, right), _):
            first, second = _as_index(left), _as_index(right)
            if first is None or second is None:
                return
            match op.name:
                case "le":
                    yield second - first
                case "lt":
                    yield second - first - 1
                case "ge":
                    yield first - second
                case "gt":
                    yield first - second - 1
                case "eq":
                    yield from (first - second, second - first)
                case _:
                    return
        case Apply(op, (inner,), _) if op.name == "logical_not":
            for fact in tuple(implied_inequalities(inner))[:1] if not _is_equality(inner) else ():
                yield fact * -1 - 1
        case _:
            return


def _is_equality(test: Expr) -> bool:
    return isinstance(test, Apply) and test.op.name == "eq"


def _as_index(expr: Expr) -> Affine | None:
    match expr:
        case Position(index):
            return index
        case Const(int() as value, _) if not isinstance(value, bool):
            return const(value)
        case _:
            return None


def stride(node: Node, index: tuple[Index, ...], symbol: Symbol) -> int | None:
    """Return by how many elements an access moves where a symbol increases by one; None where
    unclear.

    >>> from plusequals.lowering.ir.dtypes import float32
    >>> i, j = Symbol("i", 0), Symbol("j", 1)
    >>> x = Node(0, "x", (const(8), const(9)), float32)
    >>> stride(x, (var(i) * 2, var(j)), i), stride(x, (var(i), var(j)), j), stride(x, (), j)
    (18, 1, 0)
    """
    total = 0
    for at, step in zip(index, node.element_strides, strict=False):
        if isinstance(at, Dynamic):
            if symbol in symbols_of(at.value):
                return None
            continue
        functions = [atom for atom, _ in at.terms if isinstance(atom, Quasi)]
        if any(symbol in (quasi.left.symbols() | quasi.right.symbols()) for quasi in functions):
            return None
        factor = at.coefficient(symbol)
        if factor and step.constant is None:
            return None
        total += factor * (step.constant or 0)
    return total


def solve_subscripts(
    written: tuple[Index, ...], wanted: tuple[Index, ...], inner: Iterable[Stmt]
) -> dict[Symbol, Affine] | None:
    """Return the iteration of the write's inner loops that accesses the wanted element; None where
    unclear.

    Each axis determines one symbol, where its coefficient is 1 or -1 and all else on the axis is
    known; or all symbols of loops that it linearizes, `3*i + j` with three iterations of `j`. A
    symbol without an axis has no single answer: the last iteration wins.

    >>> i = Symbol("i", 0)
    >>> loop = For(i, const(0), const(8), 1, ())
    >>> solve_subscripts((var(i) + 1,), (const(5),), (loop,))
    {i.0: 4}
    """
    loops = [stmt for stmt in inner if isinstance(stmt, For)]
    bound = {loop.symbol for loop in loops}
    delinearized = _delinearize(written, wanted, loops)
    if delinearized is not None:
        return delinearized
    if any(isinstance(i, Affine) and i.symbols() & bound for i in wanted):
        return _solve_renamed(written, wanted, bound)
    return _solve_axes(written, wanted, bound)


def _delinearize(
    written: tuple[Index, ...], wanted: tuple[Index, ...], loops: Sequence[For]
) -> dict[Symbol, Affine] | None:
    """Return the iteration of loops that the only axis linearizes, None for others."""
    if len(loops) < 2 or len(written) != 1:
        return None
    (subscript,), (element,) = written, wanted
    if not isinstance(subscript, Affine) or not isinstance(element, Affine):
        return None
    values: dict[Symbol, Affine] = {}
    rest = element - subscript
    for loop in loops:
        rest += (var(loop.symbol) - loop.lo) * subscript.coefficient(loop.symbol)
    if (rest.symbols() | element.symbols()) & {loop.symbol for loop in loops}:
        return None
    size, inwards = 1, sorted(loops, key=lambda loop: subscript.coefficient(loop.symbol))
    for loop in inwards:
        trip_count = (loop.hi - loop.lo).constant
        if subscript.coefficient(loop.symbol) != size or loop.step != 1 or not trip_count:
            return None
        part = floordiv(rest, const(size))
        values[loop.symbol] = loop.lo + (
            part if loop is inwards[-1] else mod(part, const(trip_count))
        )
        size *= trip_count
    return values


def _solve_renamed(
    written: tuple[Index, ...], wanted: tuple[Index, ...], bound: set[Symbol]
) -> dict[Symbol, Affine] | None:
    """Return the solution where a loop around the wanted element binds a symbol of the write's
    loops."""
    names = {symbol: Symbol(symbol.name, -2 - symbol.serial) for symbol in bound}
    fresh = {symbol: var(name) for symbol, name in names.items()}
    renamed = tuple(substitute(i, fresh) if isinstance(i, Affine) else i for i in written)
    values = _solve_axes(renamed, wanted, set(names.values()))
    return None if values is None else {symbol: values[name] for symbol, name in names.items()}


def _solve_axes(
    written: tuple[Index, ...], wanted: tuple[Index, ...], bound: set[Symbol]
) -> dict[Symbol, Affine] | None:
    values: dict[Symbol, Affine] = {}
    for _ in range(2):  # again, for axes that use symbols of later axes
        for subscript, element in zip(written, wanted, strict=True):
            if isinstance(subscript, Affine) and isinstance(element, Affine):
                subscript = substitute(subscript, values)
                missing = subscript.symbols() & bound - set(values)
                if len(missing) == 1:
                    (symbol,) = missing
                    factor = subscript.coefficient(symbol)
                    rest = subscript - var(symbol) * factor
                    if factor in (1, -1) and symbol not in rest.symbols():
                        values[symbol] = (element - rest) * factor
    if bound - set(values):
        return None
    for subscript, element in zip(written, wanted, strict=True):
        if isinstance(subscript, Dynamic) or isinstance(element, Dynamic):
            if subscript != element:
                return None
        elif substitute(subscript, values) != element:
            return None
    return values


def is_in_loops(
    values: Mapping[Symbol, Affine],
    loops: Iterable[Stmt],
    domain: tuple[Range, ...],
    tests: tuple[Expr, ...],
) -> bool:
    """Whether an iteration is surely one of the loops'."""
    for stmt in loops:
        if isinstance(stmt, For):
            if stmt.step not in (1, -1):
                return False
            (reach,) = ranges((stmt,))
            at = values[stmt.symbol]
            low, high = at - substitute(reach.lo, values), substitute(reach.hi, values) - at - 1
            if not (is_nonnegative(low, domain, tests) and is_nonnegative(high, domain, tests)):
                return False
    return True
