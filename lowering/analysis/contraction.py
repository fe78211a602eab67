"""Tensor contractions: nests that accumulate for every pair of a row and a column.

    for i, for j:  start;  for k: acc = acc + f(a(i, k), b(k, j));  rest

Products of matrices, whatever the order, number, strides or affine subscripts of their axes. Each
term is made of operands that depend on the row only and operands that depend on the column only
(and on the reduction variables `k`), so a block of rows and a block of columns need each operand
once; `tile_products` packs them. Several loops may be rows, others columns; those that are both, or
neither, stay around them. Columns are contiguous in memory where results are stored, except where
reductions are long and neighbours share terms, as in sliding windows: these are rows, which can be
read in place. Where the bounds of rows depend on columns, or the other way round, as in a
triangle, the loops run over the bounding box, with tests that say which elements exist. Analysis
only.

>>> from plusequals.lowering.ir.fresh import fresh_for
>>> program = lowered("c[i, j] = sum(a[i, k] * b[j, k])", c="f32[8, 9]", a="f32[8, 5]",
...                   b="f32[9, 5]")
>>> (nest,) = [stmt for stmt in program.kernels[0].body if isinstance(stmt, For)]
>>> found = find_contraction(nest, fresh_for(program))
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
from .. import thresholds
from ..ir import dtypes
from ..ir.dtypes import DType
from ..ir.expressions import Apply, Cast, Expr, Read, reads
from ..ir.fresh import Fresh
from ..ir.indexing import Affine, Quasi, QuasiOp, Range, Symbol, maximum, minimum, var
from ..ir.loops import For, Store, Update
from ..ir.node import Node
from ..ir.walk import statements
from .accumulation import REAL_TYPES, Accumulation, Body, find_accumulation
from .self_dependence import bound_over, symbols_of
from .subscripts import is_in_range, ranges

VECTOR_OPS = frozenset(("add", "sub", "mul", "product", "div", "neg", "max", "min"))
"""Operations that vectors of columns support without a loop."""
COMPLEX_TYPES = frozenset((dtypes.complex64, dtypes.complex128))
Side = Literal["row", "column"]


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of each term that depends on the row only, or on the column only."""

    node: Node
    """Stands for it in the term; no node of the program."""
    value: Expr
    side: Side


@dataclass(frozen=True, slots=True)
class Contraction:
    """A nest that accumulates for every pair of a row and a column."""

    nest: Accumulation
    rows: tuple[For, ...]
    """The last one is that whose operands are contiguous where they are read."""
    columns: tuple[For, ...]
    """The last one is that whose results are contiguous."""
    term: Expr
    """What is accumulated, as an expression of the operands."""
    parts: tuple[Operand, ...]
    tests: tuple[Affine, ...] = ()
    """All are non-negative where an element exists: bounds that depended on rows or columns."""

    @property
    def others(self) -> tuple[For, ...]:
        """The loops that are neither rows nor columns."""
        taken = {loop.symbol for loop in (*self.rows, *self.columns)}
        return tuple(loop for loop in self.nest.outer_loops if loop.symbol not in taken)

    @property
    def is_transposed(self) -> bool:
        """Whether results are contiguous along the last rows, and not along columns."""
        stored = _contiguous_symbols(self.nest.rest)
        return self.rows[-1].symbol in stored and self.columns[-1].symbol not in stored

    def is_read(self, domain: tuple[Range, ...]) -> bool:
        """Whether all operands are in range in the whole box around rows and columns."""
        domain = (*domain, *ranges((*self.others, *self.rows, *self.columns, *self.nest.depth)))
        every = (read for part in self.parts for read in reads(part.value))
        return all(is_in_range(read.node, read.index, domain) for read in every)

    def loops(self, side: Side) -> tuple[For, ...]:
        """Return the loops over all rows, or columns."""
        return self.rows if side == "row" else self.columns


def find_contraction(
    loop: For, fresh: Fresh, reorders: bool = False, types: frozenset[DType] = REAL_TYPES
) -> Contraction | None:
    """Return the contraction that a nest computes, None where it is none, see `find_accumulation`.

    The caller has to check whether its loops may be interchanged.
    """
    nest = find_accumulation(loop, fresh, reorders, types)
    if nest is None:
        return None
    for pair in _row_column_pairs(nest):
        result = _try_contraction(nest, (pair[0],), (pair[1],))
        for outer_loop in reversed(nest.outer_loops):
            if result is not None and outer_loop not in pair:
                result = _extend(result, outer_loop) or result
        result = None if result is None else _bounding_box(result)
        if result is not None:
            return result
    return None


def _bounding_box(candidate: Contraction) -> Contraction | None:
    """Return the contraction of the bounding box of its rows and columns, with tests where not all
    of its elements exist; None where other loops depend on rows or columns."""
    box_symbols = {loop.symbol for loop in (*candidate.rows, *candidate.columns)}
    outside = (*candidate.others, *candidate.nest.depth)
    if not all(_is_fixed(loop, box_symbols) for loop in outside):
        return None
    ranges = tuple(
        Range(loop.symbol, loop.lo, loop.hi)
        for loop in candidate.nest.outer_loops
        if loop.symbol in box_symbols
    )
    boxed: dict[Symbol, For] = {}
    tests: list[Affine] = []
    for loop in (*candidate.rows, *candidate.columns):
        if _is_fixed(loop, box_symbols):
            continue
        lows, highs = _bound_operands(loop.lo, "max"), _bound_operands(loop.hi, "min")
        low, high = _box_end(lows, ranges, -1), _box_end(highs, ranges, 1)
        if low is None or high is None or (low.symbols() | high.symbols()) & box_symbols:
            return None
        boxed[loop.symbol] = replace(loop, lo=low, hi=high)
        tests += [var(loop.symbol) - at for at in lows if at.symbols() & box_symbols]
        tests += [at - var(loop.symbol) - 1 for at in highs if at.symbols() & box_symbols]
    if any(
        isinstance(atom, Quasi) and Affine(((atom, 1),)).symbols() & box_symbols
        for at in tests
        for atom, _ in at.terms
    ):
        return None
    rows, columns = (
        tuple(boxed.get(loop.symbol, loop) for loop in group)
        for group in (candidate.rows, candidate.columns)
    )
    return replace(candidate, rows=rows, columns=columns, tests=tuple(tests))


def _bound_operands(bound: Affine, op: QuasiOp) -> tuple[Affine, ...]:
    """Return the operands of which a bound is the minimum, or the maximum.

    >>> i = var(Symbol("i", 0))
    >>> _bound_operands(minimum(i + 1, i * 2), "min"), _bound_operands(i, "min")
    ((2*i, i + 1), (i,))
    """
    for atom, factor in bound.terms:
        if isinstance(atom, Quasi) and atom.op == op and factor == 1:
            rest = bound - Affine(((atom, 1),))
            return (*_bound_operands(rest + atom.left, op), *_bound_operands(rest + atom.right, op))
    return (bound,)


def _box_end(sides: tuple[Affine, ...], ranges: tuple[Range, ...], sign: int) -> Affine | None:
    """Return the end of a box around all iterations of a loop; None where it is not affine."""
    ends = [end for end in (bound_over(side, ranges, sign) for side in sides) if end is not None]
    return reduce(minimum if sign > 0 else maximum, ends) if ends else None


def _is_fixed(loop: For, symbols: set[Symbol]) -> bool:
    """Whether the bounds of a loop depend on none of these symbols."""
    return symbols.isdisjoint(loop.lo.symbols() | loop.hi.symbols())


def _try_contraction(
    nest: Accumulation, rows: tuple[For, ...], columns: tuple[For, ...]
) -> Contraction | None:
    """Return the contraction of a nest with these rows and columns; None where its terms combine
    the two by more than arithmetic."""
    row, column = (frozenset(loop.symbol for loop in loops) for loops in (rows, columns))
    split = _TermSplitter(row, column, frozenset(k.symbol for k in nest.depth))
    term = split.term(nest.update.value)
    if term is None or {part.side for part in split.parts} != {"row", "column"}:
        return None
    return Contraction(nest, rows, columns, term, tuple(split.parts))


def _extend(candidate: Contraction, loop: For) -> Contraction | None:
    """Return the contraction with one more loop among its rows or columns, None where it is
    neither."""
    nest, symbol = candidate.nest, loop.symbol
    if symbol not in symbols_of(nest.update.value):
        return None
    rows = _try_contraction(
        nest, _contiguous_last((loop, *candidate.rows), candidate), candidate.columns
    )
    return rows or _try_contraction(
        nest, candidate.rows, _contiguous_last((loop, *candidate.columns), candidate)
    )


def _contiguous_last(loops: tuple[For, ...], candidate: Contraction) -> tuple[For, ...]:
    """Return loops with the one last along which memory is contiguous."""
    loops = tuple(loop for loop in candidate.nest.outer_loops if loop in loops)
    contiguous = (
        candidate.columns[-1]
        if candidate.columns[-1] in loops
        else _contiguous_loop(loops, candidate)
    )
    return (*(loop for loop in loops if loop is not contiguous), contiguous)


def _contiguous_loop(loops: tuple[For, ...], candidate: Contraction) -> For:
    """Return the loop along which the row operands are contiguous, or the last."""
    for part in candidate.parts:
        for read in reads(part.value):
            for loop in reversed(loops):
                subscript = read.index[-1] if read.index else None
                if isinstance(subscript, Affine) and loop.symbol in subscript.symbols():
                    return loop
    return loops[-1]


def _row_column_pairs(nest: Accumulation) -> list[tuple[For, For]]:
    """Return candidate loops over rows and over columns, the best first: those whose results are
    contiguous, but for long reductions those whose neighbours share no terms, which packing would
    copy for each."""
    reduction_symbols = {k.symbol for k in nest.depth}
    read_symbols = (symbols_of(read) for read in reads(nest.update.value))
    terms = [symbols for symbols in read_symbols if symbols & reduction_symbols]
    store_symbols = _contiguous_symbols(nest.rest)
    candidates: list[tuple[tuple[bool, bool, int, int, int], tuple[For, For]]] = []
    if not all(_is_fixed(loop, reduction_symbols) for loop in nest.depth):
        return []
    count = prod(_clipped_trip_count(k) for k in nest.depth)
    long = (
        count >= thresholds.LONG_REDUCTION_TERMS
        or 2 * count >= thresholds.LONG_REDUCTION_TERMS
        and _copies_per_term(nest) >= thresholds.MANY_COPIES_PER_TERM
    )
    for number, column in enumerate(nest.outer_loops):
        for row in nest.outer_loops:
            column_only = any(
                column.symbol in symbols and row.symbol not in symbols for symbols in terms
            )
            row_only = any(
                row.symbol in symbols and column.symbol not in symbols for symbols in terms
            )
            if column_only and row_only:
                plain = not (long and _prefers_interchange(nest, row, column))
                contiguous = plain and column.symbol in store_symbols
                score = (
                    contiguous,
                    plain,
                    _clipped_trip_count(column),
                    _clipped_trip_count(row),
                    number,
                )
                candidates.append((score, (row, column)))
    return [
        pair for _, pair in sorted(candidates, key=lambda candidate: candidate[0], reverse=True)
    ]


def _copies_per_term(nest: Accumulation) -> int:
    """Return how many elements share a term, where neighbours share terms."""
    outer_symbols, reduction_symbols = (
        {loop.symbol for loop in nest.outer_loops},
        {k.symbol for k in nest.depth},
    )
    shared = sliding_windows(reads(nest.update.value), outer_symbols, reduction_symbols)
    return prod(_clipped_trip_count(k) for k in nest.depth if k.symbol in shared)


def _prefers_interchange(nest: Accumulation, row: For, column: For) -> bool:
    """Whether rows and columns are better interchanged: neighbours share terms, which packing
    copies for each column, but which rows read in place."""
    reduction_symbols = {k.symbol for k in nest.depth}
    shared = (
        sliding_windows(reads(nest.update.value), {loop.symbol}, reduction_symbols)
        for loop in (row, column)
    )
    count = (row.hi - row.lo).constant
    return (
        tuple(map(bool, shared)) == (False, True)
        and count is not None
        and count >= thresholds.MIN_INTERCHANGED_COLUMNS
    )


def sliding_windows(
    elements: Iterable[Read], symbols: Set[Symbol], reduction_symbols: Set[Symbol]
) -> frozenset[Symbol]:
    """Return the reduction symbols along whose axes neighbours of these symbols share terms
    (sliding windows)."""
    subscripts = (
        at.symbols() for element in elements for at in element.index if isinstance(at, Affine)
    )
    return frozenset(
        symbol
        for symbols_of_axis in subscripts
        if symbols_of_axis & symbols
        for symbol in symbols_of_axis & reduction_symbols
    )


def _contiguous_symbols(rest: Body) -> frozenset[Symbol]:
    """Return the symbols in the last subscripts of what is stored."""
    symbols: frozenset[Symbol] = frozenset()
    for stmt in statements(rest):
        if isinstance(stmt, Store | Update) and stmt.access.index:
            last = stmt.access.index[-1]
            symbols |= last.symbols() if isinstance(last, Affine) else frozenset()
    return symbols


def _clipped_trip_count(loop: For) -> int:
    """Return the trip count of a loop, up to which more make no difference."""
    trip_count = (loop.hi - loop.lo).constant
    return 64 if trip_count is None else min(64, trip_count)


@dataclass(slots=True)
class _TermSplitter:
    """Splits a term into operands of rows and of columns."""

    rows: frozenset[Symbol]
    columns: frozenset[Symbol]
    counting: frozenset[Symbol]
    parts: list[Operand] = field(default_factory=list)

    def term(self, value: Expr) -> Expr | None:
        """Return a term of operands; None where more than arithmetic combines rows and columns."""
        used = symbols_of(value)
        if not (self.rows & used and self.columns & used):
            if used.isdisjoint(self.rows | self.columns | self.counting):
                return value
            return self.part(value, "column" if self.columns & used else "row")
        match value:
            case Apply(op, args, dtype) if op.name in VECTOR_OPS:
                terms = [self.term(arg) for arg in args]
                supported = tuple(term for term in terms if term is not None)
                return Apply(op, supported, dtype) if len(supported) == len(terms) else None
            case Cast(inner, dtypes.float64) if inner.dtype is dtypes.float32:
                term = self.term(inner)
                return None if term is None else Cast(term, dtypes.float64)
            case _:
                return None

    def part(self, value: Expr, side: Side) -> Expr | None:
        """Return the read that stands for an operand, None where vectors do not support its
        type."""
        if value.dtype not in REAL_TYPES | COMPLEX_TYPES:
            return None
        for previous in self.parts:
            if previous.value == value:
                return Read(previous.node, ())
        operand = Operand(Node(-1 - len(self.parts), f"{side}s", (), value.dtype), value, side)
        self.parts.append(operand)
        return Read(operand.node, ())
