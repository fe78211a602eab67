"""Which cells an index can reach: questions about affine indices, answered for all points at once.

A symbol runs through its `Range`; what is not known of it can be anything. Each answer "yes" is
sure; "no" may also mean that it could not be seen. Used by `access` and the passes.
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
    floordiv,
    mod,
    sides,
    substitute,
    var,
)
from ..ir.loops import For, Stmt
from ..ir.node import Node
from .self_dependence import extreme, symbols_of


def ranges(inside: Iterable[Stmt]) -> tuple[Range, ...]:
    """Return through what the symbols of the loops run, outermost first; steps are left out."""
    return tuple(
        [
            Range(f.symbol, f.lo, f.hi) if f.step > 0 else Range(f.symbol, f.hi + 1, f.lo + 1)
            for f in inside
            if isinstance(f, For)
        ]
    )


def differs(left: Index, right: Index, known: tuple[Range, ...]) -> bool:
    """Whether two indices are different numbers, whatever the symbols are.

    >>> i, j = Symbol("i", 0), Symbol("j", 1)
    >>> triangle = Range(i, const(0), const(9)), Range(j, const(0), var(i))
    >>> differs(var(i), var(j), triangle), differs(var(i) * 2, var(j) * 2 + 1, ())
    (True, True)
    """
    if isinstance(left, Dynamic) or isinstance(right, Dynamic):
        return False
    gap = left - right
    if not gap.terms:
        return gap.offset != 0
    if gap.offset % gcd(*[k for _, k in gap.terms]):
        return True
    return is_least(gap - 1, known) or is_least(gap * -1 - 1, known)


def are_apart(
    left: tuple[Index, ...] | None, right: tuple[Index, ...] | None, known: tuple[Range, ...]
) -> bool:
    """Whether two places of an array are never the same cell, for a reason that one axis gives."""
    if left is None or right is None:
        return False
    return any(differs(one, other, known) for one, other in zip(left, right, strict=True))


def is_in_range(
    node: Node,
    index: tuple[Index, ...] | None,
    known: tuple[Range, ...],
    tests: Sequence[Expr] = (),
) -> bool:
    """Whether an access is surely inside of its array; `tests` are known to hold."""
    return index is None or all(
        isinstance(one, Affine)
        and is_least(one, known, tests)
        and is_least(size - one - 1, known, tests)
        for one, size in zip(index, node.shape, strict=True)
    )


def is_least(value: Affine, known: tuple[Range, ...], tests: Iterable[Expr] = ()) -> bool:
    """Whether an index expression is surely zero or more; `tests` are known to hold."""
    if not value.terms:
        return value.offset >= 0
    if _is_not_negative(extreme(value, known, -1)):
        return True
    if any(_has_sides(one) for one in known):
        wider = tuple(map(_widened, known))
        if wider != known and _is_not_negative(extreme(value, wider, -1)):
            return True
    if any(isinstance(atom, Quasi) for atom, _ in value.terms):
        least = _within(known).least(value)
        if least is not None and least >= 0:
            return True
    if not tests:
        return False
    said = (fact for test in tests for fact in facts(test))
    return any(is_least(value - fact, known) for fact in said if fact.terms)


@lru_cache(256)
def _within(known: tuple[Range, ...]) -> Bounds:
    """Return the bounds inside of loops: the places of one nest ask for them many times."""
    return reduce(Bounds.inside, known, Bounds())


def _is_not_negative(value: Affine | None) -> bool:
    return value is not None and value.constant is not None and value.constant >= 0


def _has_sides(known: Range) -> bool:
    """Whether an end of a range may be the least or the greatest of some."""
    return any(
        len(end.terms) == 1 and isinstance(end.terms[0][0], Quasi) for end in (known.lo, known.hi)
    )


def _widened(known: Range) -> Range:
    """Return a range with numbers for ends that are the least or greatest of a number and more."""
    return Range(known.symbol, _number_of(known.lo, "max"), _number_of(known.hi, "min"))


def _number_of(end: Affine, op: QuasiOp) -> Affine:
    return next((side for side in sides(end, op) if side.constant is not None), end)


def holds(test: Expr, known: tuple[Range, ...], tests: tuple[Expr, ...]) -> bool:
    """Whether a test surely holds where others do."""
    if test in tests:
        return True
    said = tuple(facts(test))
    return bool(said) and all(is_least(fact, known, tests) for fact in said)


def facts(test: Expr) -> Iterator[Affine]:
    """Yield what is zero or more where a comparison of indices holds: all that it says."""
    match test:
        case Apply(op, (left, right), _):
            one, other = _number(left), _number(right)
            if one is None or other is None:
                return
            match op.name:
                case "le":
                    yield other - one
                case "lt":
                    yield other - one - 1
                case "ge":
                    yield one - other
                case "gt":
                    yield one - other - 1
                case "eq":
                    yield from (one - other, other - one)
                case _:
                    return
        case Apply(op, (inner,), _) if op.name == "logical_not":
            for fact in tuple(facts(inner))[:1] if not _is_equality(inner) else ():
                yield fact * -1 - 1
        case _:
            return


def _is_equality(test: Expr) -> bool:
    return isinstance(test, Apply) and test.op.name == "eq"


def _number(expr: Expr) -> Affine | None:
    match expr:
        case Position(index):
            return index
        case Const(int() as value, _) if not isinstance(value, bool):
            return const(value)
        case _:
            return None


def stride(node: Node, index: tuple[Index, ...], symbol: Symbol) -> int | None:
    """Return by how many elements a place moves where a symbol grows by one; None where unclear.

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
        if any(symbol in (one.left.symbols() | one.right.symbols()) for one in functions):
            return None
        factor = at.coefficient(symbol)
        if factor and step.constant is None:
            return None
        total += factor * (step.constant or 0)
    return total


def solve(
    written: tuple[Index, ...], wanted: tuple[Index, ...], own: Iterable[Stmt]
) -> dict[Symbol, Affine] | None:
    """Return the point of the write's own loops that gives the wanted cell; None where unclear.

    Each axis gives one symbol, where its coefficient is 1 or -1 and all else on the axis is known;
    or all of loops that count through it, `3*i + j` with three rounds of `j`. A symbol without an
    axis has no single answer: the last round wins.

    >>> i = Symbol("i", 0)
    >>> loop = For(i, const(0), const(8), 1, ())
    >>> solve((var(i) + 1,), (const(5),), (loop,))
    {i.0: 4}
    """
    loops = [stmt for stmt in own if isinstance(stmt, For)]
    bound = {loop.symbol for loop in loops}
    counted = _counted_through(written, wanted, loops)
    if counted is not None:
        return counted
    if any(isinstance(i, Affine) and i.symbols() & bound for i in wanted):
        return _solved_apart(written, wanted, bound)
    return _solved(written, wanted, bound)


def _counted_through(
    written: tuple[Index, ...], wanted: tuple[Index, ...], own: Sequence[For]
) -> dict[Symbol, Affine] | None:
    """Return the point of loops that count through the only axis, None of others."""
    if len(own) < 2 or len(written) != 1:
        return None
    (place,), (cell,) = written, wanted
    if not isinstance(place, Affine) or not isinstance(cell, Affine):
        return None
    values: dict[Symbol, Affine] = {}
    rest = cell - place
    for loop in own:
        rest += (var(loop.symbol) - loop.lo) * place.coefficient(loop.symbol)
    if (rest.symbols() | cell.symbols()) & {loop.symbol for loop in own}:
        return None
    size, inwards = 1, sorted(own, key=lambda loop: place.coefficient(loop.symbol))
    for loop in inwards:
        rounds = (loop.hi - loop.lo).constant
        if place.coefficient(loop.symbol) != size or loop.step != 1 or not rounds:
            return None
        part = floordiv(rest, const(size))
        values[loop.symbol] = loop.lo + (part if loop is inwards[-1] else mod(part, const(rounds)))
        size *= rounds
    return values


def _solved_apart(
    written: tuple[Index, ...], wanted: tuple[Index, ...], bound: set[Symbol]
) -> dict[Symbol, Affine] | None:
    """Return what `solve` does where another loop around the wanted cell has a symbol of ours."""
    names = {symbol: Symbol(symbol.name, -2 - symbol.serial) for symbol in bound}
    fresh = {symbol: var(name) for symbol, name in names.items()}
    ours = tuple(substitute(i, fresh) if isinstance(i, Affine) else i for i in written)
    values = _solved(ours, wanted, set(names.values()))
    return None if values is None else {symbol: values[name] for symbol, name in names.items()}


def _solved(
    written: tuple[Index, ...], wanted: tuple[Index, ...], bound: set[Symbol]
) -> dict[Symbol, Affine] | None:
    values: dict[Symbol, Affine] = {}
    for _ in range(2):  # again, for axes that use symbols of axes behind them
        for place, cell in zip(written, wanted, strict=True):
            if isinstance(place, Affine) and isinstance(cell, Affine):
                place = substitute(place, values)
                missing = place.symbols() & bound - set(values)
                if len(missing) == 1:
                    (symbol,) = missing
                    factor = place.coefficient(symbol)
                    rest = place - var(symbol) * factor
                    if factor in (1, -1) and symbol not in rest.symbols():
                        values[symbol] = (cell - rest) * factor
    if bound - set(values):
        return None
    for place, cell in zip(written, wanted, strict=True):
        if isinstance(place, Dynamic) or isinstance(cell, Dynamic):
            if place != cell:
                return None
        elif substitute(place, values) != cell:
            return None
    return values


def is_inside(
    values: Mapping[Symbol, Affine],
    own: Iterable[Stmt],
    known: tuple[Range, ...],
    tests: tuple[Expr, ...],
) -> bool:
    """Whether a point is one through which the loops surely run."""
    for stmt in own:
        if isinstance(stmt, For):
            if stmt.step not in (1, -1):
                return False
            (reach,) = ranges((stmt,))
            at = values[stmt.symbol]
            low, high = at - substitute(reach.lo, values), substitute(reach.hi, values) - at - 1
            if not (is_least(low, known, tests) and is_least(high, known, tests)):
                return False
    return True
