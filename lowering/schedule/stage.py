"""Panels: copies of what a contraction needs of some rows or columns, in the order of its tiles.

A panel has room for the lanes of one tile (so many rows, or columns) and `sizes.panel` terms:

    panel[(at - block) * terms + step * lanes + lane] = part(at + lane, step)

for the lanes of `at`, the first row or column of a tile, `block` the first one whose panels are
there. Lanes behind the last row or column are zeros. What a panel is filled from is read once for
each row (or column) and step, in the order in which it lies in memory.

>>> from plusequals.lowering.ir.fresh import fresh_for
>>> from plusequals.lowering.ir.printer import print_statement
>>> from plusequals.lowering.schedule.contraction import contraction
>>> program = lowered("c[i, j] = sum(a[i, k] * b[k, j])", c="f32[6, 9]", a="f32[6, 9]",
...                   b="f32[9, 9]")
>>> (nest,) = [stmt for stmt in program.kernels[0].body if isinstance(stmt, For)]
>>> fresh = fresh_for(program)
>>> panels = Panels.of(fresh, contraction(nest, fresh), Sizes(4, 8, 8, 16, 9, 9, 1))
>>> for stmt in panels.filled("row", const(0), const(0), const(9)):
...     print(print_statement(stmt))
for k in 0..8 step 8:
    for row in 0..4:
        for k_2 in k..k + 8:
            rows[row + 4*k_2] = a[row, k_2]
for k in 8..9:
    for row in 0..4 unrolled:
        rows[4*k + row] = a[row, k]
for k in 0..8 step 8:
    for row in 0..2:
        for k_2 in k..k + 8:
            rows[row + 4*k_2 + 36] = a[row + 4, k_2]
for k in 8..9:
    for row in 0..2 unrolled:
        rows[4*k + row + 36] = a[row + 4, k]
for k in 0..9:
    for row in 2..4:
        rows[row + 4*k + 36] = 0.0
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ..diagnostic import Span
from ..ir import dtypes
from ..ir.assignments import Access
from ..ir.expressions import Apply, Const, Expr, Position, Read, reads, rebuild
from ..ir.fresh import Fresh
from ..ir.indexing import Affine, Symbol, const, floordiv, maximum, minimum, var
from ..ir.loops import For, If, LoopKind, Stmt, Store
from ..ir.node import Node
from ..ir.ops import OPS
from ..ir.rewrite import substitute, substitute_expr
from .contraction import Contraction, Part

Body = tuple[Stmt, ...]
Side = Literal["row", "column"]
Loops = Sequence[tuple[Symbol, Affine, Affine, Span]]
"""Variables, bounds and statements of loops, the innermost first."""
NEAR = 8
"""So many steps of a lane are copied at once."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of tiles, and of the blocks whose panels are in the caches."""

    rows: int
    columns: int
    row_block: int
    column_block: int
    depth: int
    """How many rounds of the outermost counting loop are in a panel of rows, and run at once."""
    column_depth: int
    """How many of them are in a panel of columns."""
    inner: int
    """How many terms each of these has."""

    def panel(self, side: Side) -> int:
        """Return how many terms a panel has room for."""
        return (self.depth if side == "row" else self.column_depth) * self.inner


@dataclass(frozen=True, slots=True)
class Panels:
    """The panels of a contraction, and the loops that fill them."""

    fresh: Fresh
    found: Contraction
    sizes: Sizes
    nodes: Mapping[int, Node]
    """By the id of what stands for a part in the term."""

    @classmethod
    def of(cls, fresh: Fresh, found: Contraction, sizes: Sizes) -> Panels:
        """Return the panels of a contraction, as new arrays."""
        blocks = {"row": sizes.row_block, "column": sizes.column_block}
        nodes = {
            part.node.id: fresh.array(
                part.node.label,
                (blocks[part.side] * sizes.panel(part.side),),
                part.node.dtype,
                "panel",
            )
            for part in found.parts
        }
        return cls(fresh, found, sizes, nodes)

    def holds(self, side: Side) -> bool:
        """Whether a panel has room for all terms."""
        rounds = rounds_of(self.found.nest.depth[0])
        return rounds is not None and rounds * self.sizes.inner <= self.sizes.panel(side)

    def loop(self, side: Side) -> For:
        """Return the loop over all rows, or columns."""
        return self.found.row if side == "row" else self.found.column

    def lanes(self, side: Side) -> int:
        """Return how many rows or columns a tile has."""
        return self.sizes.rows if side == "row" else self.sizes.columns

    def end(self, side: Side, block: Affine) -> Affine:
        """Return where a block ends."""
        size = self.sizes.row_block if side == "row" else self.sizes.column_block
        return minimum(block + size, self.loop(side).hi)

    def is_even(self, side: Side) -> bool:
        """Whether all tiles are full."""
        rounds = rounds_of(self.loop(side))
        return rounds is not None and rounds % self.lanes(side) == 0

    def width(self, side: Side, at: Affine) -> Affine:
        """Return how many rows or columns the tile has that starts there."""
        lanes = const(self.lanes(side))
        return lanes if self.is_even(side) else minimum(lanes, self.loop(side).hi - at)

    def element(self, part: Part, at: Affine, step: Affine, lane: Affine) -> tuple[Affine]:
        """Return where a lane of a tile has its part of a step; `at` counts from the block."""
        return (at * self.sizes.panel(part.side) + step * self.lanes(part.side) + lane,)

    def filled(self, side: Side, block: Affine, first: Affine, last: Affine) -> Body:
        """Return the loops that fill the panels of a block for some rounds of the depth."""
        return tuple(
            stmt
            for part in self.found.parts if part.side == side
            for stmt in self.filled_with(part, block, first, last)
        )  # fmt: skip

    def filled_with(self, part: Part, block: Affine, first: Affine, last: Affine) -> Body:
        """Return the loops over full tiles, and what fills the last one where it is not full."""
        side, lanes = part.side, self.lanes(part.side)
        end = self.end(side, block)

        def full(at: Affine) -> Body:
            return self.copied(part, block, at, const(lanes), first, last)

        if self.is_even(side):
            return over(self.fresh, self.loop(side).symbol, block, end, lanes, full)
        whole = block + floordiv(end - block, const(lanes)) * lanes
        out = over(self.fresh, self.loop(side).symbol, block, whole, lanes, full)
        left = end - whole
        body = (
            *self.copied(part, block, whole, left, first, last),
            *self.cleared(part, block, whole, left, first, last),
        )
        test = Apply(OPS["lt"], (Position(whole), Position(end)), dtypes.bool_)
        return (*out, *(body if left.constant else (If(test, body),)))

    def copied(
        self, part: Part, block: Affine, at: Affine, count: Affine, first: Affine, last: Affine
    ) -> Body:
        """Return the loops that copy so many lanes of a tile."""
        lane = self.fresh.symbol(part.side)
        inside, step, loops = self.counting(first, last)
        loop = self.loop(part.side)
        values = {loop.symbol: at + var(lane), **inside}
        node = self.nodes[part.node.id]
        place = Access(node, self.element(part, at - block, step, var(lane)))
        store = Store(place, substitute_expr(part.value, values), self.found.nest.update.span)
        if count.constant is not None and not self.is_across(part):
            return self.turned(loops, lane, count, store)
        kind: LoopKind = "serial" if count.constant is None else "vector"

        def lanes(body: Body) -> Body:
            return (For(lane, const(0), count, 1, body, kind, loop.span),)

        if self.is_across(part):
            return around(loops, lanes((store,)))
        return lanes(around(loops, (store,)))

    def turned(self, loops: Loops, lane: Symbol, count: Affine, store: Store) -> Body:
        """Return the loops that copy lanes of which the steps are neighbours: some steps of each
        lane at a time, as many as memory gives at once."""
        (name, lo, hi, span), *outer = loops
        hi = hi if (hi - lo).constant is not None else maximum(hi, lo)
        first = self.fresh.symbol(name.name)
        whole = lo + floordiv(hi - lo, const(NEAR)) * NEAR
        near = For(name, var(first), var(first) + NEAR, 1, (store,), span=span)
        body: Body = ()
        if (whole - lo).constant != 0:
            inner = For(lane, const(0), count, 1, (near,), span=span)
            body = (For(first, lo, whole, NEAR, (inner,), span=span),)
        if (hi - whole).constant != 0:
            step, other = self.fresh.symbol(name.name), self.fresh.symbol(lane.name)
            last = substitute((store,), {name: var(step), lane: var(other)})
            inner = For(other, const(0), count, 1, last, "unrolled", span)
            body = (*body, For(step, whole, hi, 1, (inner,), span=span))
        return around(outer, body)

    def cleared(
        self, part: Part, block: Affine, at: Affine, count: Affine, first: Affine, last: Affine
    ) -> Body:
        """Return the loops that fill the lanes of a tile from a number on with zeros."""
        lane = self.fresh.symbol(part.side)
        _, step, loops = self.counting(first, last)
        node = self.nodes[part.node.id]
        place = Access(node, self.element(part, at - block, step, var(lane)))
        store = Store(place, Const(0.0, node.dtype), self.found.nest.update.span)
        lanes = const(self.lanes(part.side))
        clear = For(lane, count, lanes, 1, (store,), "serial", self.loop(part.side).span)
        return around(loops, (clear,))

    def counting(self, first: Affine, last: Affine) -> tuple[dict[Symbol, Affine], Affine, Loops]:
        """Return new symbols for the counting loops, the number of the step, and the loops."""
        names = [self.fresh.symbol(loop.symbol.name) for loop in self.found.nest.depth]
        step, stride = const(0), 1
        loops: list[tuple[Symbol, Affine, Affine, Span]] = []
        outermost = self.found.nest.depth[0]
        for loop, name in reversed(list(zip(self.found.nest.depth, names, strict=True))):
            lo, hi = (first, last) if loop is outermost else (loop.lo, loop.hi)
            step += (var(name) - lo) * stride
            stride *= rounds_of(loop) or 1
            loops.append((name, lo, hi, loop.span))

        depth = self.found.nest.depth
        symbols = {loop.symbol: var(name) for loop, name in zip(depth, names, strict=True)}
        return symbols, step, loops

    def is_across(self, part: Part) -> bool:
        """Whether neighbouring lanes, rather than steps, are neighbours in memory."""
        symbol = self.loop(part.side).symbol
        last = [read.index[-1] for read in reads(part.value) if read.index]
        across = [isinstance(at, Affine) and symbol in at.symbols() for at in last]
        return all(across) if across else True

    def taken(self, term: Expr, at: Mapping[Side, Affine], step: Mapping[Side, Affine],
              row: Affine, column: Affine) -> Expr:  # fmt: skip
        """Return a term whose parts are read from the panels."""
        lanes = {"row": row, "column": column}
        parts = {part.node.id: part for part in self.found.parts}

        def expr(value: Expr) -> Expr:
            if isinstance(value, Read) and value.node.id in parts:
                part = parts[value.node.id]
                place = self.element(part, at[part.side], step[part.side], lanes[part.side])
                return Read(self.nodes[part.node.id], place)
            return rebuild(value, expr, lambda index: index)

        return expr(term)


def around(loops: Loops, body: Body) -> Body:
    """Return a body in loops, of which the first one is the innermost."""
    for name, lo, hi, span in loops:
        body = (For(name, lo, hi, 1, body, span=span),)
    return body


def rounds_of(loop: For) -> int | None:
    """Return how many rounds a loop has, None where that is not known."""
    rounds = (loop.hi - loop.lo).constant
    return None if rounds is None else max(0, rounds)


def over(
    fresh: Fresh, name: Symbol, lo: Affine, hi: Affine, step: int, made: Callable[[Affine], Body]
) -> Body:
    """Return a loop in steps; of a single round what that does."""
    rounds = (hi - lo).constant
    if rounds is not None and rounds <= step:
        return made(lo) if rounds > 0 else ()
    symbol = fresh.symbol(name.name)
    return (For(symbol, lo, hi, step, made(var(symbol))),)
