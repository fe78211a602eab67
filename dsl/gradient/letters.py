"""The index letters of an assignment, so that the text gives each the range that it has.

A letter that subscripts an axis by itself runs over that axis, all such axes have one size, and
tests restrict it (docs/language.md, section 4). Where the plain uses of a letter would give it
fewer numbers than it has, the letter is shifted: it runs through higher numbers, and no axis is
subscripted by it alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import count

from ...base.diagnostic import NOWHERE
from ...lowering.adjoint.kept import upper_bound
from ...lowering.adjoint.rules import NotDifferentiable
from ...lowering.adjoint.terms import all_of
from ...lowering.ir import dtypes
from ...lowering.ir.assignments import Assign
from ...lowering.ir.expressions import (
    Apply,
    Cast,
    Const,
    Domain,
    Expr,
    Position,
    Read,
    Select,
    walk,
)
from ...lowering.ir.indexing import (
    Affine,
    Quasi,
    Range,
    Symbol,
    const,
    floordiv,
    mod,
    multiply,
    var,
)
from ...lowering.ir.indexing import substitute as in_index
from ...lowering.ir.ops import OPS
from ...lowering.ir.rewrite import Rewrite, rename, rewrite, substitute_expr


def _plain_sizes(stmt: Assign, of_values: bool = False) -> dict[Symbol, set[Affine]]:
    """Return the sizes of the axes that each letter subscripts alone."""
    accesses = [] if of_values else [(stmt.target.node, stmt.target.index)]
    if stmt.pair is not None and not of_values:
        accesses.append((stmt.pair.access.node, stmt.pair.access.index))
    exprs = [e for e in (stmt.value, stmt.free.where, stmt.reduced.where) if e is not None]
    accesses += [(p.node, p.index) for e in exprs for p in walk(e) if isinstance(p, Read)]
    found: dict[Symbol, set[Affine]] = {}
    for node, index in accesses:
        for at, extent in zip(index, node.shape, strict=True):
            if isinstance(at, Affine) and at.symbol is not None:
                found.setdefault(at.symbol, set()).add(extent)
    return found


def letters_with_ranges(stmt: Assign, of_values: bool = False) -> set[Symbol]:
    """Return the letters whose ranges follow from their plain uses; those on a side of a test
    inside of one of another count for nothing, which both tests may exclude."""
    sizes = _plain_sizes(stmt, of_values)
    tests = [test for test in (stmt.free.where, stmt.reduced.where) if test is not None]
    index = [at for e in (stmt.value, *tests) for read in _unconditional(e, 1) for at in read.index]
    if not of_values:
        index += stmt.target.index
        index += () if stmt.pair is None else stmt.pair.access.index
    used = {at.symbol for at in index if isinstance(at, Affine)}
    return {
        r.symbol
        for r in (*stmt.free.ranges, *stmt.reduced.ranges)
        if r.lo.constant == 0 and sizes.get(r.symbol) == {r.hi} and r.symbol in used
    }


def with_plain_letters(stmt: Assign) -> Assign:
    """Return an assignment whose letters subscript alone only axes of one size each: others are
    shifted."""
    for domain in ("free", "reduced"):
        for r in getattr(stmt, domain).ranges:
            for shift in count(max(0, -(r.lo.constant or 0))):
                changed = _shifted(stmt, r.symbol, shift)
                if _is_expressible(changed, r.symbol):
                    break
            stmt = changed
    return stmt


def with_known_ranges(stmt: Assign, numbers: Collection[Symbol]) -> Assign:
    """Return a reduction whose letters run over whole axes where the ends of their ranges are
    numbers that only a run knows: a test of each point restricts them."""
    given, stmt = stmt, _with_tests_of_terms(stmt)
    sizes = _plain_sizes(stmt)
    found = {at for read in _unconditional(stmt.value) for at in read.index}
    certain = {at.symbol for at in found if isinstance(at, Affine)}
    ranges: list[Range] = []
    tests: list[Expr] = []
    for r in stmt.reduced.ranges:
        of_run = (r.lo.symbols() | r.hi.symbols()).intersection(numbers)
        if of_run and r.symbol in certain and len(sizes[r.symbol]) == 1:
            tests += range_tests(r)
            r = Range(r.symbol, const(0), *sizes[r.symbol])
        ranges.append(r)
    if not tests:
        return given
    tests += [stmt.reduced.where] if stmt.reduced.where is not None else []
    return replace(stmt, reduced=Domain(tuple(ranges), all_of(tests)))


def _with_tests_of_terms(stmt: Assign) -> Assign:
    """Return a sum without the terms that are zero where a test does not hold."""
    while stmt.op is OPS["add"] and stmt.pair is None and stmt.reduced.ranges:
        match stmt.value:
            case Select(test, term, Const(0)):
                where = [stmt.reduced.where] if stmt.reduced.where is not None else []
                domain = Domain(stmt.reduced.ranges, all_of([*where, test]))
                stmt = replace(stmt, value=term, reduced=domain)
            case _:
                break
    return stmt


def range_tests(r: Range) -> Iterator[Expr]:
    """Yield the tests that a letter is in a range."""
    lo, hi = ends(r)
    yield from (compared("ge", r.symbol, end) for end in lo if end.constant != 0)
    yield from (compared("lt", r.symbol, end) for end in hi)


def compared(name: str, symbol: Symbol, end: Affine) -> Expr:
    """Return the comparison of a letter with an index expression."""
    return Apply(OPS[name], (Position(var(symbol)), Position(end)), dtypes.bool_)


def _is_expressible(stmt: Assign, symbol: Symbol) -> bool:
    """Whether the plain uses of a letter give it at least the numbers that it has."""
    sizes = _plain_sizes(stmt).get(symbol, set())
    if not sizes:
        return True
    his = [r.hi for r in stmt.free.ranges if r.symbol == symbol]  # a reduced one has a binder
    return len(sizes) == 1 and (
        symbol in _certain_letters(stmt) or all(_is_at_most(hi, *sizes) for hi in his)
    )


def _certain_letters(stmt: Assign) -> set[Symbol]:
    """Return the letters that subscript an axis alone at each point of a statement."""
    found = [*stmt.target.index, *(stmt.pair.access.index if stmt.pair is not None else ())]
    if not stmt.reduced.ranges:
        found += [at for read in _unconditional(stmt.value) for at in read.index]
    return {at.symbol for at in found if isinstance(at, Affine) and at.symbol is not None}


def _unconditional(expr: Expr, depth: int = 0) -> list[Read]:
    """Return the reads that are evaluated wherever an expression is, or on sides of at most so many
    tests."""
    match expr:
        case Read():
            return [expr]
        case Apply(_, args):
            return [read for arg in args for read in _unconditional(arg, depth)]
        case Cast(value):
            return _unconditional(value, depth)
        case Select(test, yes, no):
            sides = (yes, no) if depth else ()
            inside = [read for side in sides for read in _unconditional(side, depth - 1)]
            return [*_unconditional(test, depth), *inside]
        case _:
            return []


def is_empty(stmt: Assign) -> bool:
    """Whether an assignment is known to have no points."""
    tests = [stmt.free.where] + ([] if stmt.initialize else [stmt.reduced.where])
    if any(isinstance(test, Const) and not test.value for test in tests):
        return True
    sizes = [(r.hi - r.lo).constant for r in stmt.free.ranges]
    sizes += [] if stmt.initialize else [(r.hi - r.lo).constant for r in stmt.reduced.ranges]
    return any(size is not None and size <= 0 for size in sizes)


def position_in_text(ranges: Sequence[Range]) -> Affine:
    """Return the number that `argmax` gives for a point of its letters, whose ends are written."""
    position = const(0)
    for r, size in zip(ranges, _box(ranges), strict=True):
        position = multiply(position, size) + var(r.symbol)
    return position


def position_of(number: Affine, position: Affine, ranges: Sequence[Range]) -> Affine:
    """Return a position in letters as one in the number that `argmax` gives for its point."""
    values: dict[Symbol, Affine] = {}
    for r, size in zip(ranges[:0:-1], _box(ranges)[:0:-1], strict=True):
        values[r.symbol] = mod(number, size)
        number = floordiv(number, size)
    return in_index(position, {**values, ranges[0].symbol: number} if ranges else {})


def _box(ranges: Sequence[Range]) -> list[Affine]:
    """Return the sizes of the box from zero in which the points of ranges are numbered."""
    sizes: list[Affine] = []
    for at, r in enumerate(ranges):
        size: Affine | None = r.hi
        for other in reversed(ranges[:at]):
            size = size and upper_bound(size, other.symbol, other.lo, other.hi - 1)
        if size is None:
            raise NotDifferentiable("an extreme over ranges that depend on others", NOWHERE)
        sizes.append(size)
    return sizes


def _is_at_most(index: Affine, most: Affine) -> bool:
    """Whether an index expression is proven to be another one at most."""
    excess = (index - most).constant
    if excess is not None:
        return excess <= 0
    sides = _sides(index, "min")
    return len(sides) > 1 and any(_is_at_most(side, most) for side in sides)


def ends(r: Range, letters: Collection[Symbol] = ()) -> tuple[list[Affine], list[Affine]]:
    """Return index expressions of which the largest is where a range begins, and those of which the
    smallest is where it ends; those without letters come first."""
    pair = _sides(r.lo, "max"), _sides(r.hi, "min")
    lo, hi = (sorted(side, key=lambda e: bool(e.symbols() & set(letters))) for side in pair)
    return lo, hi


def _sides(index: Affine, op: str) -> list[Affine]:
    match index:
        case Affine(((Quasi(name, left, right), 1),), offset) if name == op:
            return [side + offset for part in (left, right) for side in _sides(part, op)]
        case _:
            return [index]


def _shifted(stmt: Assign, symbol: Symbol, shift: int) -> Assign:
    """Return an assignment in which a letter runs through numbers that are `shift` higher."""
    if not shift:
        return stmt
    values = {symbol: var(symbol) - shift}
    by = Rewrite(lambda e: substitute_expr(e, values), lambda index: in_index(index, values))
    (new,) = rewrite((stmt,), by)  # of a symbol that the statement binds itself

    def moved(domain: Domain, given: Domain) -> Domain:
        return Domain(
            tuple(
                Range(r.symbol, r.lo + shift, r.hi + shift) if r.symbol == symbol
                else Range(r.symbol, *(_moved(e, symbol, shift) for e in (r.lo, r.hi)))
                for r in given.ranges
            ),
            domain.where,
        )  # fmt: skip

    return replace(new, free=moved(new.free, stmt.free), reduced=moved(new.reduced, stmt.reduced))


def _moved(index: Affine, symbol: Symbol, shift: int) -> Affine:
    return in_index(index, {symbol: var(symbol) - shift})


def with_letters_of_their_own(stmt: Assign, variables: Collection[Symbol]) -> Assign:
    """Return an assignment whose letters are none of the variables of loops: where a loop has given
    a variable a number, its name is no letter any more."""
    symbols = [r.symbol for r in (*stmt.free.ranges, *stmt.reduced.ranges)]
    others = {s: Symbol(s.name, -s.serial - 1) for s in symbols if s in variables}
    (renamed,) = rename((stmt,), others, {}) if others else (stmt,)
    return renamed
