"""Self-dependences of assignments: reads of elements that the same assignment writes.

Loops that update in place would see new values there. Analysis only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from math import gcd
from typing import Literal

from ..ir import walk
from ..ir.assignments import Access, Assign
from ..ir.expressions import Domain, Dynamic, Expr, Index, Position, Read, children
from ..ir.indexing import Affine, Atom, Quasi, Range, Symbol, from_terms, var

Clash = Literal["value at the cell", "value elsewhere", "place"]
"""The value reads the element itself, after it may have been written; the value reads elements that
other points write; or the predicate or the subscripts of a point do."""
OnExpr = Callable[[Expr], Expr]
OnIndex = Callable[[Affine], Affine]


def find_clashes(
    stmt: Assign, access: Access, positive: Collection[Symbol] = (), outer: Sequence[Range] = ()
) -> frozenset[Clash]:
    """Return how reads of the node of one written access conflict with the statement's own writes.

    `positive` are symbols of loops around it that are greater than zero, `outer` the ranges of
    all.
    """
    if access.node not in [read.node for read in walk.direct_effects(stmt).all_reads]:
        return frozenset()
    ranges = stmt.free.ranges + stmt.reduced.ranges
    is_private_element = is_injective(access.index, stmt.free.ranges, positive)
    is_private_element = is_private_element and not depends_on(access, stmt.reduced)
    is_written_once = not stmt.reduced.ranges and not stmt.initialize
    clashes: set[Clash] = set()
    for decides_where, is_after_write, expr in _expressions(stmt):
        for read in _reads_of(expr, access):
            if never_overlap(read.index, access.index, ranges, outer):
                continue
            if is_private_element and read.index == access.index:
                if is_after_write and not is_written_once:
                    clashes.add("place" if decides_where else "value at the cell")
            else:
                clashes.add("place" if decides_where else "value elsewhere")
    return frozenset(clashes)


def _expressions(stmt: Assign) -> Iterator[tuple[bool, bool, Expr]]:
    """Yield each expression; whether it decides where to write; whether it is evaluated after a
    write."""
    yield False, True, stmt.value
    if stmt.reduced.where is not None:
        yield False, True, stmt.reduced.where
    if stmt.free.where is not None:
        yield True, False, stmt.free.where
    accesses = (stmt.target,) if stmt.pair is None else (stmt.target, stmt.pair.access)
    for access in accesses:
        yield from ((True, True, at.value) for at in access.index if isinstance(at, Dynamic))


def _reads_of(expr: Expr, access: Access) -> Iterator[Read]:
    if isinstance(expr, Read) and expr.node == access.node:
        yield expr
    for child in children(expr):
        yield from _reads_of(child, access)


def is_injective(
    index: tuple[Index, ...], ranges: tuple[Range, ...], positive: Collection[Symbol] = ()
) -> bool:
    """Whether different points surely access different elements: each symbol alone on some axis,
    with a constant coefficient, or one of symbols that are known to be positive."""
    bound = {r.symbol for r in ranges}
    if not bound:
        return True
    determined: set[Symbol] = set()
    for at in index:
        if isinstance(at, Dynamic):
            return False
        used = at.symbols() & bound
        if len(used) == 1:
            (symbol,) = used
            quasis = [
                (q, k) for q, k in at.terms if isinstance(q, Quasi) and symbol in _symbols_inside(q)
            ]
            if (
                at.coefficient(symbol)
                and not quasis
                or _is_increasing(at, symbol, quasis, positive)
            ):
                determined.add(symbol)
    return determined == bound


def _is_increasing(
    at: Affine, symbol: Symbol, quasis: list[tuple[Quasi, int]], positive: Collection[Symbol]
) -> bool:
    """Whether a subscript is strictly increasing in a symbol, each coefficient a product of
    positive symbols."""
    steps = []
    for atom, factor in quasis:
        sides = [atom.left, atom.right]
        if atom.op != "mul" or factor < 0 or var(symbol) not in sides:
            return False
        sides.remove(var(symbol))
        steps.append(sides[0])
    positive_variables = [var(variable) for variable in positive]
    return (
        bool(steps)
        and at.coefficient(symbol) >= 0
        and all(step in positive_variables for step in steps)
    )


def _symbols_inside(atom: Quasi) -> frozenset[Symbol]:
    return atom.left.symbols() | atom.right.symbols()


def never_overlap(
    read: tuple[Index, ...], write: tuple[Index, ...], ranges: tuple[Range, ...],
    outer: Sequence[Range] = (),
) -> bool:  # fmt: skip
    """Whether no two points read and write the same element, shown by one axis: disjoint ranges, or
    a greatest common divisor.

    >>> i, j, k = (Symbol(name, n) for n, name in enumerate("ijk"))
    >>> rows, columns = Range(i, var(k) + 1, var(k) + 9), Range(j, var(k), var(k) + 9)
    >>> never_overlap((var(k), var(j)), (var(i), var(j)), (columns,), (rows,))
    True
    """
    for left, right in zip(read, write, strict=True):
        if isinstance(left, Dynamic) or isinstance(right, Dynamic):
            continue
        for below, above in ((left, right), (right, left)):
            most, least = bound_over(below, ranges, 1), bound_over(above, ranges, -1)
            if most is not None and least is not None:
                gap = bound_over(least - most, tuple(outer), -1)
                if gap is not None and (gap.constant or 0) > 0:
                    return True
        if _differs_by_gcd(left, right, ranges):
            return True
    return False


def _differs_by_gcd(read: Affine, write: Affine, ranges: tuple[Range, ...]) -> bool:
    """Whether two subscripts are never equal by the GCD test: their difference is no multiple of
    the greatest common divisor of all coefficients of symbols of the ranges, `4 * i` and `4 * j +
    1`."""
    symbols = {r.symbol for r in ranges}

    def is_bound(atom: Atom) -> bool:
        return bool(symbols & (_symbols_inside(atom) if isinstance(atom, Quasi) else {atom}))

    coefficients = [k for side in (read, write) for atom, k in side.terms if is_bound(atom)]
    rest = [
        from_terms({atom: k for atom, k in side.terms if not is_bound(atom)}, side.offset)
        for side in (read, write)
    ]
    gap, step = (rest[0] - rest[1]).constant, gcd(*coefficients)
    return gap is not None and step > 1 and gap % step != 0


def bound_over(index: Affine, ranges: tuple[Range, ...], sign: int) -> Affine | None:
    """Return the greatest (sign 1) or least value over the ranges, None where it is not affine."""
    terms, offset = dict(index.terms), index.offset
    others = [atom for atom in terms if isinstance(atom, Quasi)]
    for r in reversed(ranges):
        k = terms.pop(r.symbol, 0)
        if others and _is_hidden(r.symbol, terms):
            return None
        if k:
            last = (k > 0) == (sign > 0)
            end = r.hi if last else r.lo
            offset += (end.offset - last) * k
            for atom, factor in end.terms:
                terms[atom] = terms.get(atom, 0) + factor * k
                others += [atom] if isinstance(atom, Quasi) else []
    return from_terms(terms, offset)


def _is_hidden(symbol: Symbol, terms: Mapping[Atom, int]) -> bool:
    """Whether a symbol occurs in a term that is not affine."""
    return any(
        k and isinstance(atom, Quasi) and symbol in _symbols_inside(atom)
        for atom, k in terms.items()
    )


def depends_on(access: Access, domain: Domain) -> bool:
    """Whether the subscripts of an access depend on a symbol of the domain."""
    bound = set(domain.symbols)
    return any(
        bound & (symbols_of(at.value) if isinstance(at, Dynamic) else at.symbols())
        for at in access.index
    )


def symbols_of(expr: Expr) -> frozenset[Symbol]:
    """Return every symbol in an expression."""
    out: frozenset[Symbol] = frozenset()
    if isinstance(expr, Position):
        out = expr.index.symbols()
    if isinstance(expr, Read):
        out = out.union(*(at.symbols() for at in expr.index if isinstance(at, Affine)))
    return out.union(*(symbols_of(child) for child in children(expr)))
