"""Which nests accumulate for every pair of a row and a column: products of matrices, whatever the
order, number, stride or affine form of their axes, and all that is done to their elements.

    for i, for j:  start;  for k: acc = acc + f(a(i, k), b(k, j));  rest

The terms are made from parts that know only the row and parts that know only the column (and the
rounds `k` that count), so a block of rows and a block of columns need each part once. That is
found here; `tiles` makes loops of it. Several loops may be the rows, others the columns; those that
are both, or neither, stay around them. Columns are stored side by side, but where sums are long and
neighbours have terms in common, as in windows: these are rows, which can be read in place. Where
the bounds of rows depend on columns, or the other way round, as in a triangle, there is a box
around them, and tests that say which elements exist. It changes nothing.

>>> from plusequals.lowering.ir.fresh import fresh_for
>>> program = lowered("c[i, j] = sum(a[i, k] * b[j, k])", c="f32[8, 9]", a="f32[8, 5]",
...                   b="f32[9, 5]")
>>> (nest,) = [stmt for stmt in program.kernels[0].body if isinstance(stmt, For)]
>>> found = contraction(nest, fresh_for(program))
>>> [[loop.symbol.name for loop in some] for some in (found.rows, found.columns, found.nest.depth)]
[['i'], ['j'], ['k']]
>>> [(part.side, part.value.node.label) for part in found.parts]
[('row', 'a'), ('column', 'b')]
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import field, replace
from functools import reduce
from math import prod
from typing import Literal

from ...base.dataclass import dataclass
from ..ir import dtypes
from ..ir.dtypes import DType
from ..ir.expressions import Apply, Cast, Expr, Read, reads
from ..ir.fresh import Fresh
from ..ir.indexing import Affine, Quasi, QuasiOp, Range, Symbol, maximum, minimum, var
from ..ir.loops import For, Store, Update
from ..ir.node import Node
from ..ir.walk import statements
from .accumulation import REALS, Accumulation, Body, accumulation
from .self_dependence import extreme, symbols_of
from .subscripts import is_in_range, ranges

ON_VECTORS = frozenset(("add", "sub", "mul", "product", "div", "neg", "max", "min"))
"""What a vector of columns can do without a loop."""
COMPLEXES = frozenset((dtypes.complex64, dtypes.complex128))
Side = Literal["row", "column"]
LONG = 512
"""From so many terms on it is little to store elements that are not side by side."""
OFTEN = 8
"""From half as many terms on where each would be copied for so many columns."""
WIDE = 32
"""So many columns at least are worth it."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of each term that knows only the row, or only the column."""

    node: Node
    """Stands for it in the term; the program does not have it."""
    value: Expr
    side: Side


@dataclass(frozen=True, slots=True)
class Contraction:
    """A nest that accumulates for every row and every column."""

    nest: Accumulation
    rows: tuple[For, ...]
    """The last one is that of which neighbours lie side by side where they are read."""
    columns: tuple[For, ...]
    """The last one is that of which neighbours are stored side by side."""
    term: Expr
    """What is accumulated, in terms of the parts."""
    parts: tuple[Part, ...]
    tests: tuple[Affine, ...] = ()
    """All are zero or more where an element exists: bounds that were rows or columns."""

    @property
    def others(self) -> tuple[For, ...]:
        """The loops that are neither row nor column."""
        taken = {loop.symbol for loop in (*self.rows, *self.columns)}
        return tuple(one for one in self.nest.chain if one.symbol not in taken)

    @property
    def is_turned(self) -> bool:
        """Whether neighbours are stored side by side of the last rows, and not of columns."""
        stored = _last_axes(self.nest.rest)
        return self.rows[-1].symbol in stored and self.columns[-1].symbol not in stored

    def is_read(self, known: tuple[Range, ...]) -> bool:
        """Whether all parts are there in the whole box around rows and columns."""
        known = (*known, *ranges((*self.others, *self.rows, *self.columns, *self.nest.depth)))
        every = (read for part in self.parts for read in reads(part.value))
        return all(is_in_range(read.node, read.index, known) for read in every)

    def loops(self, side: Side) -> tuple[For, ...]:
        """Return the loops over all rows, or columns."""
        return self.rows if side == "row" else self.columns


def contraction(
    loop: For, fresh: Fresh, reorders: bool = False, types: frozenset[DType] = REALS
) -> Contraction | None:
    """Return the contraction that a nest is, None where it is none, see `accumulation`.

    Whether its loops may change places is for the caller to find out.
    """
    nest = accumulation(loop, fresh, reorders, types)
    if nest is None:
        return None
    for pair in _pairs(nest):
        found = _found(nest, (pair[0],), (pair[1],))
        for one in reversed(nest.chain):
            if found is not None and one not in pair:
                found = _with(found, one) or found
        found = None if found is None else _boxed(found)
        if found is not None:
            return found
    return None


def _boxed(found: Contraction) -> Contraction | None:
    """Return the contraction of a box around its rows and columns, with tests where not all of its
    elements exist; None where other loops depend on rows or columns."""
    group = {one.symbol for one in (*found.rows, *found.columns)}
    others = (*found.others, *found.nest.depth)
    if not all(_is_fixed(one, group) for one in others):
        return None
    ranges = tuple(
        Range(one.symbol, one.lo, one.hi) for one in found.nest.chain if one.symbol in group
    )
    boxes: dict[Symbol, For] = {}
    tests: list[Affine] = []
    for one in (*found.rows, *found.columns):
        if _is_fixed(one, group):
            continue
        lows, highs = _sides(one.lo, "max"), _sides(one.hi, "min")
        low, high = _end(lows, ranges, -1), _end(highs, ranges, 1)
        if low is None or high is None or (low.symbols() | high.symbols()) & group:
            return None
        boxes[one.symbol] = replace(one, lo=low, hi=high)
        tests += [var(one.symbol) - at for at in lows if at.symbols() & group]
        tests += [at - var(one.symbol) - 1 for at in highs if at.symbols() & group]
    if any(
        isinstance(atom, Quasi) and Affine(((atom, 1),)).symbols() & group
        for at in tests
        for atom, _ in at.terms
    ):
        return None
    rows, columns = (
        tuple(boxes.get(one.symbol, one) for one in some) for some in (found.rows, found.columns)
    )
    return replace(found, rows=rows, columns=columns, tests=tuple(tests))


def _sides(bound: Affine, op: QuasiOp) -> tuple[Affine, ...]:
    """Return that of which a bound is the least, or the greatest.

    >>> i = var(Symbol("i", 0))
    >>> _sides(minimum(i + 1, i * 2), "min"), _sides(i, "min")
    ((2*i, i + 1), (i,))
    """
    for atom, factor in bound.terms:
        if isinstance(atom, Quasi) and atom.op == op and factor == 1:
            rest = bound - Affine(((atom, 1),))
            return (*_sides(rest + atom.left, op), *_sides(rest + atom.right, op))
    return (bound,)


def _end(sides: tuple[Affine, ...], ranges: tuple[Range, ...], sign: int) -> Affine | None:
    """Return the end of a box around all rounds of a loop."""
    found = [end for end in (extreme(one, ranges, sign) for one in sides) if end is not None]
    return reduce(minimum if sign > 0 else maximum, found) if found else None


def _is_fixed(loop: For, symbols: set[Symbol]) -> bool:
    """Whether the bounds of a loop depend on none of these."""
    return symbols.isdisjoint(loop.lo.symbols() | loop.hi.symbols())


def _found(
    nest: Accumulation, rows: tuple[For, ...], columns: tuple[For, ...]
) -> Contraction | None:
    """Return a nest with these rows and columns; None where its terms join them in other ways."""
    row, column = (frozenset(one.symbol for one in some) for some in (rows, columns))
    split = _Split(row, column, frozenset(k.symbol for k in nest.depth))
    term = split.term(nest.update.value)
    if term is None or {part.side for part in split.parts} != {"row", "column"}:
        return None
    return Contraction(nest, rows, columns, term, tuple(split.parts))


def _with(found: Contraction, loop: For) -> Contraction | None:
    """Return the contraction with one more loop of rows or columns, None where it is neither."""
    nest, symbol = found.nest, loop.symbol
    if symbol not in symbols_of(nest.update.value):
        return None
    rows = _found(nest, _ordered((loop, *found.rows), found), found.columns)
    return rows or _found(nest, found.rows, _ordered((loop, *found.columns), found))


def _ordered(loops: tuple[For, ...], found: Contraction) -> tuple[For, ...]:
    """Return loops with the one last whose neighbours lie side by side."""
    loops = tuple(one for one in found.nest.chain if one in loops)
    near = found.columns[-1] if found.columns[-1] in loops else _near(loops, found)
    return (*(one for one in loops if one is not near), near)


def _near(loops: tuple[For, ...], found: Contraction) -> For:
    """Return the loop whose neighbours lie side by side in what rows are made from, or the last."""
    for part in found.parts:
        for read in reads(part.value):
            for one in reversed(loops):
                last = read.index[-1] if read.index else None
                if isinstance(last, Affine) and one.symbol in last.symbols():
                    return one
    return loops[-1]


def _pairs(nest: Accumulation) -> list[tuple[For, For]]:
    """Return loops over rows and over columns: first those that are stored side by side, but where
    sums are long those of which no two have terms in common, which would be copied for each."""
    counting = {k.symbol for k in nest.depth}
    read = (symbols_of(one) for one in reads(nest.update.value))
    terms = [symbols for symbols in read if symbols & counting]
    stored = _last_axes(nest.rest)
    found: list[tuple[tuple[bool, bool, int, int, int], tuple[For, For]]] = []
    if not all(_is_fixed(one, counting) for one in nest.depth):
        return []
    count = prod(_rounds(k) for k in nest.depth)
    long = count >= LONG or 2 * count >= LONG and _copies(nest) >= OFTEN
    for number, column in enumerate(nest.chain):
        for row in nest.chain:
            alone = any(column.symbol in one and row.symbol not in one for one in terms)
            other = any(row.symbol in one and column.symbol not in one for one in terms)
            if alone and other:
                plain = not (long and _is_turned(nest, row, column))
                near = plain and column.symbol in stored
                sides = near, plain, _rounds(column), _rounds(row), number
                found.append((sides, (row, column)))
    return [pair for _, pair in sorted(found, key=lambda one: one[0], reverse=True)]


def _copies(nest: Accumulation) -> int:
    """Return for how many elements a term is, of those that have terms in common."""
    around, counting = {one.symbol for one in nest.chain}, {k.symbol for k in nest.depth}
    common = windows(reads(nest.update.value), around, counting)
    return prod(_rounds(k) for k in nest.depth if k.symbol in common)


def _is_turned(nest: Accumulation, row: For, column: For) -> bool:
    """Whether columns should be rows, and rows columns: neighbours have terms in common, which are
    copied for each column, but read in place for rows."""
    counting = {k.symbol for k in nest.depth}
    both = (windows(reads(nest.update.value), {one.symbol}, counting) for one in (row, column))
    count = (row.hi - row.lo).constant
    return tuple(map(bool, both)) == (False, True) and count is not None and count >= WIDE


def windows(
    elements: Iterable[Read], symbols: Set[Symbol], counting: Set[Symbol]
) -> frozenset[Symbol]:
    """Return what counts along axes on which neighbours of these have terms in common."""
    subscripts = (at.symbols() for one in elements for at in one.index if isinstance(at, Affine))
    return frozenset(one for some in subscripts if some & symbols for one in some & counting)


def _last_axes(rest: Body) -> frozenset[Symbol]:
    """Return the symbols of the last axes of what is stored."""
    found: frozenset[Symbol] = frozenset()
    for stmt in statements(rest):
        if isinstance(stmt, Store | Update) and stmt.access.index:
            last = stmt.access.index[-1]
            found |= last.symbols() if isinstance(last, Affine) else frozenset()
    return found


def _rounds(loop: For) -> int:
    """Return how many rounds a loop has, up to which more make no difference."""
    rounds = (loop.hi - loop.lo).constant
    return 64 if rounds is None else min(64, rounds)


@dataclass(slots=True)
class _Split:
    """The parts of a term, as they are found."""

    rows: frozenset[Symbol]
    columns: frozenset[Symbol]
    counting: frozenset[Symbol]
    parts: list[Part] = field(default_factory=list)

    def term(self, value: Expr) -> Expr | None:
        """Return a term with its parts named; None where more than arithmetic joins them."""
        used = symbols_of(value)
        if not (self.rows & used and self.columns & used):
            if used.isdisjoint(self.rows | self.columns | self.counting):
                return value
            return self.part(value, "column" if self.columns & used else "row")
        match value:
            case Apply(op, args, dtype) if op.name in ON_VECTORS:
                terms = [self.term(arg) for arg in args]
                known = tuple(term for term in terms if term is not None)
                return Apply(op, known, dtype) if len(known) == len(terms) else None
            case Cast(inner, dtypes.float64) if inner.dtype is dtypes.float32:
                term = self.term(inner)
                return None if term is None else Cast(term, dtypes.float64)
            case _:
                return None

    def part(self, value: Expr, side: Side) -> Expr | None:
        """Return what stands for a part of the term, None where vectors do not hold its type."""
        if value.dtype not in REALS | COMPLEXES:
            return None
        for known in self.parts:
            if known.value == value:
                return Read(known.node, ())
        made = Part(Node(-1 - len(self.parts), f"{side}s", (), value.dtype), value, side)
        self.parts.append(made)
        return Read(made.node, ())
