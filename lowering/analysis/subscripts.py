"""Affine subscripts: which elements they can access, for all iterations at once.

A symbol runs through its `Range`; a symbol without one may be anything. Each answer "yes" is sure;
"no" may also mean that it could not be shown. Used by `accesses` and the passes. Analysis only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from math import gcd, lcm
from typing import NamedTuple

from .. import thresholds
from ..ir import dtypes
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
    from_terms,
    mod,
    substitute,
    var,
)
from ..ir.loops import For, Stmt
from ..ir.node import Node
from ..ir.ops import OPS
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


def all_elements(node: Node) -> tuple[tuple[Index, ...], tuple[Range, ...]]:
    """Return an index that runs over all elements of a node, and the ranges of its symbols."""
    sizes = [(axis, n) for axis, n in enumerate(node.shape) if n.constant != 1]
    symbols = {axis: Symbol(f"axis{axis}", -1 - axis) for axis, _ in sizes}
    index = (var(symbols[a]) if a in symbols else const(0) for a in range(node.rank))
    return tuple(index), tuple(Range(symbols[axis], const(0), n) for axis, n in sizes)


def widen_dynamic(
    node: Node, index: tuple[Index, ...]
) -> tuple[tuple[Index, ...], tuple[Range, ...]]:
    """Return an index with a symbol over the whole axis for each subscript that depends on data."""
    symbols = {
        axis: Symbol(f"any{axis}", -1 - axis)
        for axis, subscript in enumerate(index)
        if isinstance(subscript, Dynamic)
    }
    wide = tuple(
        var(symbols[a]) if a in symbols else subscript for a, subscript in enumerate(index)
    )
    return wide, tuple(Range(s, const(0), node.shape[axis]) for axis, s in symbols.items())


def stride_in_loops(subscript: Index, loops: Sequence[For]) -> int:
    """Return a number that divides the distances between the values of a subscript in loops.

    >>> stride_in_loops(var(Symbol("i", 0)) * 3, (For(Symbol("i", 0), const(0), const(9), 2, ()),))
    6
    """
    if isinstance(subscript, Dynamic):
        return 1
    return gcd(*(subscript.coefficient(loop.symbol) * loop.step for loop in loops)) or 1


def bounds_in_loops(subscript: Index, loops: Sequence[For]) -> Iterator[Affine]:
    """Yield the numbers at which the values of a subscript in loops may begin or end."""
    if isinstance(subscript, Affine):
        for end in (
            substitute(subscript, {loop.symbol: loop.lo for loop in loops}),
            substitute(subscript, {loop.symbol: loop.hi for loop in loops}),
        ):
            yield from (end, end + 1)


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

    Each axis determines one symbol, where all else on the axis is known and its coefficient divides
    the difference; or all symbols of loops that it linearizes, `3*i + j` with three iterations of
    `j`. A symbol without an axis has no single answer: the last iteration wins.

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
                    if factor and symbol not in rest.symbols():
                        if (value := divided(element - rest, factor)) is not None:
                            values[symbol] = value
    if bound - set(values):
        return None
    for subscript, element in zip(written, wanted, strict=True):
        if isinstance(subscript, Dynamic) or isinstance(element, Dynamic):
            if subscript != element:
                return None
        elif substitute(subscript, values) != element:
            return None
    return values


def divided(index: Affine, by: int) -> Affine | None:
    """Return the exact quotient by a number; None where it may be no integer."""
    if index.offset % by or any(factor % by for _, factor in index.terms):
        return None
    return from_terms({atom: factor // by for atom, factor in index.terms}, index.offset // by)


class Elements(NamedTuple):
    """Elements of an array: those of an index where its symbols are in ranges and tests hold."""

    index: tuple[Index, ...]  # type: ignore[assignment]  # hides `tuple.index`
    domain: tuple[Range, ...]
    tests: tuple[Expr, ...] = ()

    def part(self, axis: int, at: int, subscript: Affine, ends: tuple[Affine, Affine]) -> Elements:
        """Return those for which the range at a position, that of an axis, is another one."""
        index = (*self.index[:axis], subscript, *self.index[axis + 1 :])
        narrowed = Range(self.domain[at].symbol, *ends)
        return Elements(index, (*self.domain[:at], narrowed, *self.domain[at + 1 :]), self.tests)

    def only(self, axis: int, at: int, element: Affine) -> Elements:
        """Return those of one subscript on an axis, which needs its range no longer."""
        index = (*self.index[:axis], element, *self.index[axis + 1 :])
        return Elements(index, (*self.domain[:at], *self.domain[at + 1 :]), self.tests)

    def first(self) -> Elements | None:
        """Return the element of the least values; None where ranges may be empty."""
        if any((size := (r.hi - r.lo).constant) is None or size < 1 for r in self.domain):
            return None
        least = {r.symbol: r.lo for r in self.domain}
        index = (substitute(i, least) if isinstance(i, Affine) else i for i in self.index)
        return Elements(tuple(index), ())


def residue_classes(
    elements: Elements, axis: int, at: int, modulus: int, backwards: bool
) -> Iterator[Elements]:
    """Yield the elements of each residue class of an axis, whose subscript is the symbol of the
    range at a position, counted from the first or from the last one: together they are all.

    >>> i = Symbol("i", 0)
    >>> whole = Elements((var(i),), (Range(i, const(1), const(6)),))
    >>> for part in residue_classes(whole, 0, 0, 2, False): print(part.index, part.domain)
    (2*i + 1,) (Range(symbol=i.0, lo=0, hi=3),)
    (2*i + 2,) (Range(symbol=i.0, lo=0, hi=2),)
    """
    symbol, lo, hi = elements.domain[at].symbol, elements.domain[at].lo, elements.domain[at].hi
    for residue in range(modulus):
        count = floordiv(hi - lo + (modulus - 1 - residue), const(modulus))
        if count.constant is not None and count.constant < 1:
            continue
        distance = var(symbol) * modulus + residue
        subscript = hi - 1 - distance if backwards else lo + distance
        part = elements.part(axis, at, subscript, (const(0), count))
        # what the number of elements says, for bounds of expressions that have no quotient
        is_inside = Apply(OPS["lt"], (Position(distance), Position(hi - lo)), dtypes.bool_)
        yield part._replace(tests=(*part.tests, is_inside))


def is_reached_in_parts(
    is_reached: Callable[[Elements], bool],
    writes: Sequence[tuple[tuple[Index, ...], Sequence[For]]],
    elements: Elements,
    first: int = 0,
) -> bool:
    """Whether each element is reached by one of several writes, given with their loops.

    The ranges from `first` on are split: into residue classes where writes have strides, then
    where writes begin and end.
    """
    if is_reached(elements):
        return True
    if (corner := elements.first()) is not None and not is_reached(corner):
        return False
    for at in range(first, len(elements.domain)):
        symbol, lo, hi = elements.domain[at].symbol, elements.domain[at].lo, elements.domain[at].hi
        axis, subscript = next(
            (n, sub)
            for n, sub in enumerate(elements.index)
            if isinstance(sub, Affine) and sub.coefficient(symbol)
        )
        strides = {stride_in_loops(index[axis], loops) for index, loops in writes} - {1}
        if strides and subscript == var(symbol):
            period, size = lcm(*strides), (hi - lo).constant
            moduli = [m for m in (*sorted(strides), period) if m <= thresholds.MAX_WRITE_STRIDE]
            is_exact = size is not None and period in moduli
            for modulus in (period,) if is_exact else dict.fromkeys(moduli):
                for backwards in (False,) if size is not None else (False, True):
                    classes = residue_classes(elements, axis, at, modulus, backwards)
                    if all(is_reached_in_parts(is_reached, writes, part, at) for part in classes):
                        return True
            if is_exact:
                return False  # parts of a class begin and end as writes do
        bounds = [cut for index, loops in writes for cut in bounds_in_loops(index[axis], loops)]
        factor = subscript.coefficient(symbol)
        base = subscript - var(symbol) * factor
        gaps = (cut - base if factor > 0 else base - cut + 1 for cut in bounds)
        cuts = [hi, *(floordiv(gap + (abs(factor) - 1), const(abs(factor))) for gap in gaps)]
        pending = [cut for cut in dict.fromkeys(cuts) if cut != lo][: thresholds.MAX_WRITE_BOUNDS]
        reached = [lo]  # from a point up to which all is reached, the range goes on to the next
        for start in reached:  # one, so that the order of the points need not be known
            for cut in tuple(pending):
                if (cut - start).constant == 1:
                    part, rest = elements.only(axis, at, base + start * factor), at
                else:
                    part, rest = elements.part(axis, at, subscript, (start, cut)), at + 1
                if is_reached_in_parts(is_reached, writes, part, rest):
                    if cut == hi:
                        return True
                    pending.remove(cut)
                    reached.append(cut)
    return False


def is_in_loops(
    values: Mapping[Symbol, Affine],
    loops: Iterable[Stmt],
    domain: tuple[Range, ...],
    tests: tuple[Expr, ...],
) -> bool:
    """Whether an iteration is surely one of the loops'."""
    for stmt in loops:
        if isinstance(stmt, For):
            (reach,) = ranges((stmt,))
            at = values[stmt.symbol]
            if divided(at - substitute(stmt.lo, values), stmt.step) is None:
                return False
            low, high = at - substitute(reach.lo, values), substitute(reach.hi, values) - at - 1
            if not (is_nonnegative(low, domain, tests) and is_nonnegative(high, domain, tests)):
                return False
    return True
