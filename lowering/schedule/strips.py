"""Sums down columns: some neighbouring columns at once, each in a lane of its own.

Changes: a loop over columns, in each of which others count the terms of an accumulation, becomes a
loop over strips of columns. A strip keeps its sums in vector registers while it runs down the rows,
so that memory is read in its order; what is left of the columns runs as before. Where no cache
holds all rows, strips are longer, with sums in the nearest one: memory gives long pieces sooner.

    strip[c] = start(j + c);  for k: strip[c] += term(j + c, k);  rest(j + c)       0 <= c < C

Needs: rounds that may run in any order, and terms that lie side by side. Guarantees: not a bit
changes: the terms of a column are added in their order.

>>> from plusequals.lowering.passes.shrink import shrink
>>> from plusequals.lowering.target import Target
>>> show(lambda program: strips(shrink(program), Target(schedule=True)),
...      "y[j] = sum(x[i, j])", y="f32[70]", x="f32[9, 70]")
for j in 0..64 step 32:
    for column in 0..32 vector:
        strip[column] = 0.0
    for i in 0..9:
        for column in 0..32 vector:
            strip[column] += x[i, j + column]
    for column in 0..32 vector:
        y_acc = strip[column]
        y[j + column] = y_acc
for j in 64..70:
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

from ..clash import symbols_of
from ..ir import dtypes
from ..ir.assignments import Access
from ..ir.expressions import Apply, Cast, Expr, Read
from ..ir.indexing import Affine, Symbol, const, var
from ..ir.loops import For, Program, Stmt, Store
from ..ir.node import Purpose
from ..ir.rewrite import substitute
from ..passes.cells import is_in_range, ranges, stride
from ..passes.decision import Decided, Decision, Reason
from ..target import Target
from .accumulation import Accumulation, Body, accumulation
from .contraction import ON_VECTORS
from .legal import independent, private
from .outermost import Outermost


class Down(Reason):
    """Why sums are taken in strips."""

    ROWS = "its terms lie a row apart, those of its neighbours side by side"


def strips(program: Program, target: Target) -> Program:
    """Return the program with sums down columns in strips."""
    return in_strips(program, target).program


def in_strips(program: Program, target: Target) -> Decided:
    """Return the program with sums down columns in strips, and which these are."""
    return _Work.on(program, target)


class _Work(Outermost):
    """The work on one program."""

    __slots__ = ()

    def nest(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        """Return the loop over columns in strips, None where it is none or has to stay."""
        before = len(self.fresh.nodes)
        nest = accumulation(loop, self.fresh, self.target.reorders)
        lanes = self.target.lanes(nest.acc.dtype.bits) if nest else 0
        if nest is None or not self.is_strip(nest, lanes, outer):
            del self.fresh.nodes[before:]
            return None
        node = nest.place.node if nest.place else nest.acc
        self.decisions.append(Decision("lanes", Down.ROWS, node, span=nest.update.span))
        end = self.end(loop, outer)
        widths = (4 * lanes, lanes) if end.constant is None else (4 * lanes, 2 * lanes, lanes)
        widths = (*self.long(nest, 4 * lanes), *widths)
        return self.cut(loop, end, widths, partial(self.strip, loop, nest))

    def long(self, nest: Accumulation, least: int) -> tuple[int, ...]:
        """Return the width of strips whose sums are in memory, if there should be such strips."""
        counts = [(one.hi - one.lo).constant for one in (*nest.chain, *nest.depth)]
        known = [count for count in counts if count is not None]
        size = nest.acc.dtype.itemsize
        if len(known) < len(counts) or prod(known) * size <= self.target.l2_bytes:
            return ()
        most = min(self.target.l1_bytes // (2 * size), known[0] // self.target.threads)
        width = 1 << max(most, 1).bit_length() - 1
        return (width,) if width > least else ()

    def strip(self, loop: For, nest: Accumulation, width: int, first: Affine, last: Affine) -> Stmt:
        """Return the loop over strips of a width."""
        at, span = self.fresh.symbol(loop.symbol.name), nest.update.span
        long = width > 4 * self.target.lanes(nest.acc.dtype.bits)
        purpose: Purpose = "panel" if long else "tile"
        node = self.fresh.array("strip", (width,), nest.acc.dtype, purpose)

        def each(made: Callable[[Access], Body]) -> Stmt:
            lane = self.fresh.symbol("column")
            body = substitute(made(Access(node, (var(lane),))), {loop.symbol: var(at) + var(lane)})
            return For(lane, const(0), const(width), 1, body, "vector", span)

        def begun(sum_: Access) -> Body:
            if len(nest.start) == 1 and nest.place is None:
                return (replace(nest.start[0], access=sum_),)
            return (*nest.start, Store(sum_, Read(nest.acc, ()), span))

        def done(sum_: Access) -> Body:
            value = Read(node, sum_.index)
            return (*nest.again, Store(Access(nest.acc, ()), value, span), *nest.rest)

        added = each(lambda sum_: (replace(nest.update, access=sum_),))
        for one in reversed(nest.depth):
            added = replace(one, body=(added,))
        return For(at, first, last, width, (each(begun), added, each(done)), span=loop.span)

    def is_strip(self, nest: Accumulation, lanes: int, outer: tuple[For, ...]) -> bool:
        """Whether terms of neighbouring columns lie side by side, and columns are independent."""
        loop = nest.chain[0]
        rounds = (loop.hi - loop.lo).constant
        if len(nest.chain) > 1 or lanes < 2 or (rounds is not None and rounds < lanes):
            return False
        column = loop.symbol
        if any(column in (k.lo.symbols() | k.hi.symbols()) for k in nest.depth):
            return False
        if column not in symbols_of(nest.update.value) or not _fits(nest.update.value, column):
            return False
        known = ranges((*outer, loop))
        if nest.place and not is_in_range(nest.place.node, nest.place.index, known):
            return False
        mine = private(loop, self.only()[id(loop)])
        return independent(loop, mine, self.own, ranges(outer)) is None


def _fits(value: Expr, column: Symbol) -> bool:
    """Whether a term is one of neighbours, joined by what vectors can do."""
    if column not in symbols_of(value):
        return True
    match value:
        case Read(node, index, _):
            real = node.dtype in (dtypes.float32, dtypes.float64)
            return real and stride(node, index, column) == 1
        case Apply(op, args, _) if op.name in ON_VECTORS:
            return all(_fits(arg, column) for arg in args)
        case Cast(inner, dtypes.float64) if inner.dtype is dtypes.float32:
            return _fits(inner, column)
        case _:
            return False
