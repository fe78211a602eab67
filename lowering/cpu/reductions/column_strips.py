"""Outer-loop vectorization of reductions down columns, in strips of adjacent columns.

Changes: a loop over columns, in each of which inner loops accumulate terms, becomes a loop over
strips of columns. A strip keeps its sums in vector registers while it runs down the rows, so that
memory is read in its order; the remaining columns run as before. Few columns are one strip, and the
rest of them runs two at a time. Where the near caches do not hold all rows, strips are longer, with
sums in the L1 cache, and take a few rows at a time: long rows use more of the memory's bandwidth,
and a sum is loaded and stored once for these rows.

    strip[c] = start(j + c);  for k: strip[c] += term(j + c, k);  rest(j + c)       0 <= c < C

A test that is invariant in a row is executed once for the row.

Columns of different lengths are accumulated together as far as all of them go, and then one by one.

Precondition: iterations that may run in any order, and terms of unit stride. Postcondition:
bit-identical: the terms of a column are added in their order.

>>> from plusequals.lowering.passes.contract_arrays import contract_arrays
>>> from plusequals.lowering.target import Target
>>> show(lambda program: vectorize_columns(contract_arrays(program).program, Target(schedule=True)),
...      "y[j] = sum(x[i, j])", y="f32[9]", x="f32[9, 9]")
for j in 0..8 step 8:
    for column in 0..8 vector:
        strip[column] = 0.0
    for i in 0..9:
        for column in 0..8 vector:
            strip[column] += x[i, j + column]
    for column in 0..8 vector:
        y_acc = strip[column]
        y[j + column] = y_acc
for j in 8..9:
    y_acc = 0.0
    for i in 0..9:
        y_acc += x[i, j]
    y[j] = y_acc
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import prod
from typing import TYPE_CHECKING

from ....base.dataclass import dataclass
from ....base.lazy_import import LazyModule
from ... import thresholds
from ...analysis.accumulation import REAL_TYPES, Accumulation, Body, find_accumulation
from ...analysis.dependence import find_dependence, find_privatizable
from ...analysis.self_dependence import symbols_of
from ...analysis.subscripts import is_in_range, ranges, stride
from ...ir import dtypes, indexing
from ...ir.assignments import Access
from ...ir.decision import Decided, Decision, Reason
from ...ir.expressions import Apply, Cast, Expr, Read, Select, reads
from ...ir.fresh import Fresh
from ...ir.indexing import Affine, Symbol, const, maximum, var
from ...ir.loops import For, If, Program, Stmt, Store
from ...ir.node import Node, Purpose
from ...ir.rewrite import substitute
from ...target import Target
from ...transform.outermost import OutermostRewriter

if TYPE_CHECKING:
    from ...analysis import contraction
else:  # what few programs need
    contraction = LazyModule("...analysis.contraction", __package__)

TYPES = REAL_TYPES | frozenset(dtype for dtype in dtypes.ALL if dtype.kind in "iu")
"""The types that are accumulated in strips."""
WHOLE = frozenset(("add", "sub", "mul", "neg", "max", "min"))
"""Operations that vectors of integers have."""


class StripReason(Reason):
    """Why sums are computed in strips."""

    ROWS = "its terms are a row apart in memory, those of neighbouring elements are contiguous"


def vectorize_columns(program: Program, target: Target) -> Decided:
    """Return the program with reductions down columns in strips, and the decisions."""
    return _StripVectorizer.on(program, target)


class _StripVectorizer(OutermostRewriter):
    """The vectorization of the reductions down columns of one program."""

    __slots__ = ()

    def nest(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        """Return the loop over columns in strips; None where it is none or stays as it is."""
        node_count = len(self.fresh.nodes)
        nest = find_accumulation(loop, self.fresh, self.target.reorders, TYPES)
        lanes = self.target.lanes(nest.acc.dtype.bits) if nest else 0
        if nest is None or not self.is_strip(nest, lanes, outer):
            del self.fresh.nodes[node_count:]
            return None
        node = nest.element.node if nest.element else nest.acc
        self.decisions.append(Decision("lanes", StripReason.ROWS, node, span=nest.update.span))
        end = self.end(loop, outer)
        columns = (end - loop.lo).constant
        ragged = loop.symbol in nest.depth[-1].hi.symbols()
        if (
            columns is not None
            and lanes <= columns <= thresholds.MAX_SINGLE_STRIP_VECTORS * lanes
            and not ragged
        ):
            most = columns // lanes * lanes
            few = (most,) if lanes == 2 or columns - most < 2 else (most, 2)
            return self.strip_mine(loop, end, few, partial(self.strip, loop, nest, most))
        widths = (4 * lanes, lanes) if end.constant is None else (4 * lanes, 2 * lanes, lanes)
        widths = (*self.memory_widths(nest, 4 * lanes), *widths)
        return self.strip_mine(loop, end, widths, partial(self.strip, loop, nest, 4 * lanes))

    def memory_widths(self, nest: Accumulation, register_width: int) -> tuple[int, ...]:
        """Return the width of strips whose sums are in memory, if there should be such strips.

        They are as wide as the L1 cache allows, and at least as many as there are threads.
        """
        if nest.outer_loops[0].symbol in nest.depth[-1].hi.symbols() or _rows_overlap(nest):
            return ()
        counts = [(loop.hi - loop.lo).constant for loop in (*nest.outer_loops, *nest.depth)]
        size = nest.acc.dtype.itemsize
        static_counts = [count for count in counts if count is not None]
        if (
            len(static_counts) == len(counts)
            and prod(static_counts) * size <= self.target.l2_bytes // 4
        ):
            return ()
        columns = (
            counts[0] or thresholds.DYNAMIC_STRIP_WIDTHS * register_width * self.target.threads
        )
        most = max(1, self.target.l1_bytes // (2 * size))
        strip_count = max(self.target.threads, -(-columns // most))
        width = columns // strip_count // register_width * register_width
        return (width,) if width > register_width else ()

    def strip(
        self,
        loop: For,
        nest: Accumulation,
        register_width: int,
        width: int,
        first: Affine,
        last: Affine,
    ) -> Stmt:
        """Return the loop over strips of a width, by pieces where they are wider."""
        is_long = width > register_width
        at = self.fresh.symbol(loop.symbol.name)
        purpose: Purpose = "panel" if is_long else "tile"
        node = self.fresh.array("strip", (width,), nest.acc.dtype, purpose)
        strip = _Strip(self.fresh, nest, node, var(at), width, min(width, register_width))
        *others, inner = nest.depth
        if loop.symbol in inner.hi.symbols():
            return For(at, first, last, width, strip.sum_ragged(inner), span=loop.span)
        rows = replace(inner, body=strip.accumulate(inner.symbol, 1))
        row_loops: Body = (rows,)
        if is_long:
            end = self.end(inner, (*nest.outer_loops, *others))
            row_loops = self.strip_mine(
                rows, end, (thresholds.STRIP_ROWS,), partial(strip.row_block, inner)
            )
        for level in reversed(others):
            row_loops = (replace(level, body=row_loops),)
        body = (strip.initialize(), *row_loops, strip.finish())
        return For(at, first, last, width, body, span=loop.span)

    def is_strip(self, nest: Accumulation, lanes: int, outer: tuple[For, ...]) -> bool:
        """Whether terms of adjacent columns have unit stride, and columns are independent."""
        loop = nest.outer_loops[0]
        trip_count = (loop.hi - loop.lo).constant
        if (
            len(nest.outer_loops) > 1
            or lanes < 2
            or (trip_count is not None and trip_count < lanes)
        ):
            return False
        column = loop.symbol
        if any(column in k.lo.symbols() for k in nest.depth):
            return False
        ends = [k.hi for k in nest.depth if column in k.hi.symbols()]
        if ends and (len(nest.depth) > 1 or not _is_ragged(ends[0], column)):
            return False
        value = nest.update.value
        if column not in symbols_of(value):
            return False
        if not all(_is_vectorizable(side, column) for side in _alternatives(value, column)):
            return False
        domain = ranges((*outer, loop))
        if nest.element and not is_in_range(nest.element.node, nest.element.index, domain):
            return False
        privates = find_privatizable(loop, self.only()[id(loop)])
        return find_dependence(loop, privates, self.temporaries, ranges(outer)) is None


@dataclass(frozen=True, slots=True)
class _Strip:
    """A strip of columns, and the statements on its sums."""

    fresh: Fresh
    nest: Accumulation
    node: Node
    """The array of sums."""
    first: Affine
    """The first column."""
    width: int
    register_width: int
    """The number of sums that fit in registers."""

    def each(self, build: Callable[[Access], Body]) -> Stmt:
        """Return loops that do for all sums, piece after piece, what `build` does for one."""
        column, span = self.nest.outer_loops[0].symbol, self.nest.update.span
        lane, at = self.fresh.symbol("column"), self.fresh.symbol("piece")
        is_single = self.width == self.register_width
        here = var(lane) if is_single else var(at) + var(lane)
        body = substitute(build(Access(self.node, (here,))), {column: self.first + here})
        inner = For(lane, const(0), const(self.register_width), 1, body, "vector", span)
        if is_single:
            return inner
        return For(at, const(0), const(self.width), self.register_width, (inner,), span=span)

    def initialize(self) -> Stmt:
        """Return the initialization of the sums."""
        nest = self.nest
        if len(nest.start) == 1 and nest.element is None:
            return self.each(lambda sum_: (replace(nest.start[0], access=sum_),))
        acc = Read(nest.acc, ())
        return self.each(lambda sum_: (*nest.start, Store(sum_, acc, nest.update.span)))

    def accumulate(self, row: Symbol, rows: int) -> Body:
        """Return the updates of the sums by the terms of some rows, in their order."""
        update, symbol = self.nest.update, self.nest.depth[-1].symbol
        here = [{symbol: var(row) + n} for n in range(rows)]
        if len(_alternatives(update.value, self.nest.outer_loops[0].symbol)) > 1:
            return tuple(stmt for at in here for stmt in substitute(self.accumulate_selected(), at))
        return (self.each(lambda sum_: tuple(
            stmt for at in here for stmt in substitute((replace(update, access=sum_),), at)
        )),)  # fmt: skip

    def accumulate_selected(self) -> Body:
        """Return the branch that adds the terms of a row which a test selects."""
        update = self.nest.update
        assert isinstance(update.value, Select), "others have no choice"

        def side(value: Expr) -> Body:
            return (self.each(lambda sum_: (replace(update, access=sum_, value=value),)),)

        select = update.value
        return (If(select.test, side(select.yes), side(select.no), update.span),)

    def row_block(self, loop: For, rows: int, lo: Affine, hi: Affine) -> For:
        """Return a loop over rows that takes some at a time."""
        row = self.fresh.symbol(loop.symbol.name)
        return replace(loop, symbol=row, lo=lo, hi=hi, step=rows, body=self.accumulate(row, rows))

    def sum_ragged(self, loop: For) -> Body:
        """Return the sums of columns of different lengths: the rows that all have together, then
        the others.

        Both are in the order of the terms, so each column has the sum that it has alone.
        """
        nest, column, span = self.nest, self.nest.outer_loops[0].symbol, self.nest.update.span
        shortest = self.first + (0 if loop.hi.coefficient(column) > 0 else self.width - 1)
        end = maximum(loop.lo, indexing.substitute(loop.hi, {column: shortest}))
        sums = self.fresh.array("sums", (self.width,), self.node.dtype, "kept")
        row, rest_column = self.fresh.symbol(loop.symbol.name), self.fresh.symbol(column.name)
        term = substitute((nest.update,), {loop.symbol: var(row)})
        rest = (
            *nest.again, Store(Access(nest.acc, ()), Read(sums, (var(column) - self.first,)), span),
            replace(loop, symbol=row, lo=end, body=term), *nest.rest,
        )  # fmt: skip
        rest = substitute(rest, {column: self.first + var(rest_column)})
        return (
            self.initialize(),
            replace(loop, hi=end, body=self.accumulate(loop.symbol, 1)),
            self.each(lambda sum_: (
                Store(Access(sums, sum_.index), Read(self.node, sum_.index), span),
            )),
            For(rest_column, const(0), const(self.width), 1, rest, span=span),
        )  # fmt: skip

    def finish(self) -> Stmt:
        """Return what the loop over columns does with the sums."""
        nest, span = self.nest, self.nest.update.span
        return self.each(lambda sum_: (
            *nest.again, Store(Access(nest.acc, ()), Read(self.node, sum_.index), span), *nest.rest,
        ))  # fmt: skip


def _is_ragged(end: Affine, column: Symbol) -> bool:
    """Whether each column has one term more than the one before, or one less."""
    step = end.coefficient(column)
    return abs(step) == 1 and column not in (end - var(column) * step).symbols()


def _rows_overlap(nest: Accumulation) -> bool:
    """Whether the rows of all operands overlap: no more memory is read than one row has."""
    column, row = nest.outer_loops[0].symbol, nest.depth[-1].symbol
    operands = (r for r in reads(nest.update.value) if column in symbols_of(r))
    return all(stride(r.node, r.index, row) in (-1, 1) for r in operands)


def _alternatives(value: Expr, column: Symbol) -> tuple[Expr, ...]:
    """Return the values that a term may have: both of a select whose test is the same for all
    columns."""
    if isinstance(value, Select) and column not in symbols_of(value.test):
        return value.yes, value.no
    return (value,)


def _is_vectorizable(value: Expr, column: Symbol) -> bool:
    """Whether a term is of elements with unit stride, by operations that vectors have."""
    if column not in symbols_of(value):
        return True
    match value:
        case Read(node, index, _):
            return node.dtype in TYPES and stride(node, index, column) == 1
        case Apply(op, args, dtype) if dtype in REAL_TYPES and op.name in contraction.VECTOR_OPS:
            return all(_is_vectorizable(arg, column) for arg in args)
        case Apply(op, args, dtype) if dtype.kind in "iu" and op.name in WHOLE:
            return all(_is_vectorizable(arg, column) for arg in args)
        case Cast(inner, dtypes.float64) if inner.dtype is dtypes.float32:
            return _is_vectorizable(inner, column)
        case Cast(Read(node, index, _), dtype) if dtype.kind in "iu" and node.dtype.kind in "biu":
            return stride(node, index, column) == 1
        case _:
            return False
