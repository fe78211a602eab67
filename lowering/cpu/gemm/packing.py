"""Panels: copies of what a contraction needs of some rows or columns, in the order of its tiles.

A panel has room for the lanes of one tile (so many rows, or columns) and `sizes.panel` terms:

    panel[(at - block) * terms + step * lanes + lane] = part(at + lane, step)

for the lanes of `at`, the first row or column of a tile, `block` the first one whose panels are
there. Lanes behind the last row or column are zeros. What a panel is filled from is read once for
each row (or column) and step, in the order in which it lies in memory.

>>> from plusequals.lowering.ir.fresh import fresh_for
>>> from plusequals.lowering.ir.printer import print_statement
>>> from plusequals.lowering.analysis.contraction import contraction
>>> program = lowered("c[i, j] = sum(-a[i, k] * b[k, j])", c="f32[6, 9]", a="f32[6, 9]",
...                   b="f32[9, 9]")
>>> (nest,) = [stmt for stmt in program.kernels[0].body if isinstance(stmt, For)]
>>> fresh = fresh_for(program)
>>> found = contraction(nest, fresh)
>>> axes = Axis(found.rows, (4,), (8,), 4), Axis(found.columns, (8,), (16,), 8)
>>> panels = Panels.of(fresh, found, Sizes(*axes, 9, 9, 1))
>>> for stmt in panels.filled("row", (const(0),), const(0), const(9)):
...     print(print_statement(stmt))
for k in 0..8 step 8:
    for row in 0..4:
        for k_2 in k..k + 8:
            rows[4*k_2 + row] = -a[row, k_2]
for k in 8..9:
    for row in 0..4 unrolled:
        rows[4*k + row] = -a[row, k]
for k in 0..8 step 8:
    for row in 0..2:
        for k_2 in k..k + 8:
            rows[4*k_2 + row + 36] = -a[row + 4, k_2]
for k in 8..9:
    for row in 0..2 unrolled:
        rows[4*k + row + 36] = -a[row + 4, k]
for k in 0..9:
    for row in 2..4:
        rows[row + 4*k + 36] = 0.0
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod

from ....base.dataclass import dataclass
from ....base.diagnostic import Span
from ...analysis.contraction import Contraction, Part, Side
from ...analysis.subscripts import stride
from ...ir import dtypes
from ...ir.assignments import Access
from ...ir.expressions import Apply, Const, Expr, Position, Read, reads, rebuild
from ...ir.fresh import Fresh
from ...ir.indexing import Affine, Symbol, const, floordiv, maximum, minimum, var
from ...ir.loops import For, If, LoopKind, Stmt, Store
from ...ir.node import Node
from ...ir.ops import OPS
from ...ir.rewrite import substitute, substitute_expr
from .axes import At, Axis, rounds_of

Body = tuple[Stmt, ...]
Lanes = Callable[[Callable[[At], Body], LoopKind], Body]
"""Makes the loops over the lanes of a tile."""
Tiles = Callable[[Callable[[At], Body]], Body]
"""Makes the loops over tiles."""
Loops = Sequence[tuple[Symbol, Affine, Affine, Span]]
"""Variables, bounds and statements of loops, the innermost first."""
Steps = tuple[dict[Symbol, Affine], Affine, Loops]
"""What counting loops are in a panel, the number of a step there, and the loops over steps."""
NEAR = 8
"""So many steps of a lane, or of tiles side by side, are copied at once."""
FEW = 16
"""Up to so many tiles side by side rows are read where they are."""
SAME = 4096
"""What is so many bytes apart may be on the same lines of the first cache."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of tiles, and of the blocks whose panels are in the caches."""

    row: Axis
    column: Axis
    depth: int
    """How many rounds of the outermost counting loop are in a panel of rows, and run at once."""
    column_depth: int
    """How many of them are in a panel of columns."""
    inner: int
    """How many terms each of these has."""
    group: Axis | None = None
    """The columns that are copied at a time, when it is their turn; None: those of a block."""
    rows_first: bool = False
    """Whether all columns meet the rows of a tile before the next rows do."""
    shared: bool = False
    """Whether threads share the panels of columns, and what fills them."""

    def panel(self, side: Side) -> int:
        """Return how many terms a panel has room for."""
        return (self.depth if side == "row" else self.column_depth) * self.inner

    def axis(self, side: Side) -> Axis:
        """Return the rows, or the columns, in blocks of those that are in panels at a time."""
        return self.row if side == "row" else self.group or self.column


@dataclass(frozen=True, slots=True)
class Rounds:
    """Of which block panels are filled, for which rounds of the outermost counting loop."""

    block: At
    first: Affine
    last: Affine


@dataclass(frozen=True, slots=True)
class Panels:
    """The panels of a contraction, and the loops that fill them."""

    fresh: Fresh
    found: Contraction
    sizes: Sizes
    nodes: Mapping[int, Node]
    """By the id of what stands for a part in the term; rows that are read in place have none."""
    in_place: bool
    """Whether rows are read where they are."""

    @classmethod
    def of(cls, fresh: Fresh, found: Contraction, sizes: Sizes) -> Panels:
        """Return the panels of a contraction, as new arrays."""
        rounds = rounds_of(found.nest.depth[0])
        in_place = rounds is not None and rounds <= sizes.depth
        in_place = in_place and is_near(found, sizes.row, sizes.column)
        nodes = {
            part.node.id: fresh.array(
                part.node.label,
                (sizes.axis(part.side).room * sizes.panel(part.side),),
                part.node.dtype,
                "panel",
            )
            for part in found.parts
            if part.side == "column" or not in_place
        }
        return cls(fresh, found, sizes, nodes, in_place)

    def holds(self, side: Side) -> bool:
        """Whether a panel has room for all terms."""
        rounds = rounds_of(self.found.nest.depth[0])
        return rounds is not None and rounds * self.sizes.inner <= self.sizes.panel(side)

    def element(self, part: Part, before: Affine, step: Affine, lane: Affine) -> tuple[Affine]:
        """Return where a lane of a tile has its part of a step; so many lanes are `before`."""
        lanes = self.sizes.axis(part.side).lanes
        return (before * self.sizes.panel(part.side) + step * lanes + lane,)

    def filled(self, side: Side, block: At, first: Affine, last: Affine) -> Body:
        """Return the loops that fill the panels of a block for some rounds of the depth."""
        return tuple(
            stmt
            for part in self.found.parts if part.side == side and part.node.id in self.nodes
            for stmt in self.filled_with(part, Rounds(block, first, last))
        )  # fmt: skip

    def filled_with(self, part: Part, rounds: Rounds) -> Body:
        """Return the loops over full tiles, and what fills the last one where it is not full."""
        axis, block = self.sizes.axis(part.side), rounds.block
        end, cut = axis.end(block), axis.cut
        loop, size = axis.loops[cut], axis.box[cut]
        full = tuple(map(const, axis.box))
        if axis.is_even:
            return self.full(part, rounds, partial(axis.tiles, self.fresh, block))
        known = rounds_of(loop)
        if known is None:
            whole = block[cut] + floordiv(end[cut] - block[cut], const(size)) * size
            left, stop = end[cut] - whole, whole
        else:  # only the last block has a tile that is not full
            whole, left = loop.lo + known // size * size, const(known % size)
            stop = (
                whole if axis.block[cut] >= known else minimum(block[cut] + axis.block[cut], whole)
            )
        counts = (*full[:cut], left, *full[cut + 1 :])

        def rest(at: At) -> Body:
            return self.tile(part, rounds, at, counts)

        def each(stop: Affine, first: Affine, made: Callable[[At], Body]) -> Body:
            lows, highs = (
                (*some[:cut], one, *some[cut + 1 :]) for some, one in ((block, first), (end, stop))
            )
            return axis.nested(self.fresh, (lows, highs, axis.box), range(len(block)), made)

        out = self.full(part, rounds, partial(each, stop, block[cut]))
        body = each(whole + size, whole, rest)
        last = block[cut] + axis.block[cut] if known is not None else end[cut]
        if known is not None and axis.block[cut] >= known:
            return (*out, *body)
        test = Apply(OPS["lt"], (Position(whole), Position(last)), dtypes.bool_)
        return (*out, If(test, body))

    def full(self, part: Part, rounds: Rounds, tiles: Tiles) -> Body:
        """Return what fills full tiles, in loops over them: where lanes are neighbours in memory,
        some steps of all tiles at a time, which are long pieces of few pages; not where threads
        share the tiles."""
        axis = self.sizes.axis(part.side)
        counts, steps = tuple(map(const, axis.box)), self.counting(part, rounds)
        outer: tuple[For, ...] = ()
        mine = part.side == "row" or not self.sizes.shared
        if mine and is_across(part, self.found) and axis.room > axis.lanes == axis.count:
            inner, outer = _some(self.fresh, steps[2])
            steps = (*steps[:2], inner)
        body = tiles(lambda at: self.tile(part, rounds, at, counts, steps))
        for loop in outer:
            body = (replace(loop, body=body),)
        return body

    def tile(
        self, part: Part, rounds: Rounds, at: At, counts: At, steps: Steps | None = None
    ) -> Body:
        """Return what fills the lanes of a tile, behind so many rounds of its box with zeros."""
        axis = self.sizes.axis(part.side)
        body = self.copied(part, rounds, at, counts, steps or self.counting(part, rounds))
        size = prod(axis.box[axis.cut :])
        used = counts[axis.cut] * (size // axis.box[axis.cut])
        parts = axis.count // size
        if used.constant != size and parts > 1:  # lanes are missing in each part of the tile
            symbol = self.fresh.symbol(part.side)
            missing = self.cleared(part, rounds, at, (used, const(size)), var(symbol) * size)
            body = (*body, For(symbol, const(0), const(parts), 1, missing))
        behind = const(axis.count) if parts > 1 else used
        if behind.constant == axis.lanes:
            return body
        return (*body, *self.cleared(part, rounds, at, (behind, const(axis.lanes)), const(0)))

    def copied(self, part: Part, rounds: Rounds, at: At, counts: At, steps: Steps) -> Body:
        """Return the loops that copy so many rounds of the box of a tile."""
        axis = self.sizes.axis(part.side)
        inside, step, loops = steps

        def store(lanes: At) -> Store:
            values = axis.placed(at, lanes)
            node, lane = self.nodes[part.node.id], axis.lane(lanes)
            place = Access(node, self.element(part, axis.before(at, rounds.block), step, lane))
            value = substitute_expr(part.value, {**values, **inside})
            return Store(place, value, self.found.nest.update.span)

        def lanes(made: Callable[[At], Body], last: LoopKind = "serial") -> Body:
            return axis.elements(self.fresh, part.side, counts, made, last)

        if is_across(part, self.found):
            kind: LoopKind = "serial" if counts[-1].constant is None else "vector"
            return around(loops, lanes(lambda at: (store(at),), kind))
        if any(count.constant is None for count in counts):
            return lanes(lambda at: around(loops, (store(at),)))
        return self.turned(loops, lanes, store)

    def turned(self, loops: Loops, lanes: Lanes, store: Callable[[At], Store]) -> Body:
        """Return the loops that copy lanes of which the steps are neighbours: some steps of each
        lane at a time, as many as memory gives at once."""
        (name, lo, hi, span), *outer = loops
        hi = hi if (hi - lo).constant is not None else maximum(hi, lo)
        first = self.fresh.symbol(name.name)
        whole = lo + floordiv(hi - lo, const(NEAR)) * NEAR
        body: Body = ()

        def near(at: At) -> Body:
            return (For(name, var(first), var(first) + NEAR, 1, (store(at),), span=span),)

        if (whole - lo).constant != 0:
            body = (For(first, lo, whole, NEAR, lanes(near, "serial"), span=span),)
        if (hi - whole).constant != 0:
            step = self.fresh.symbol(name.name)

            def last(at: At) -> Body:
                return substitute((store(at),), {name: var(step)})

            body = (*body, For(step, whole, hi, 1, lanes(last, "unrolled"), span=span))
        return around(outer, body)

    def cleared(
        self, part: Part, rounds: Rounds, at: At, lanes: tuple[Affine, Affine], start: Affine
    ) -> Body:
        """Return the loops that fill a range of the lanes of a tile, from one on, with zeros."""
        axis, lane = self.sizes.axis(part.side), self.fresh.symbol(part.side)
        _, step, loops = self.counting(part, rounds)
        node, before = self.nodes[part.node.id], axis.before(at, rounds.block)
        place = Access(node, self.element(part, before, step, start + var(lane)))
        store = Store(place, Const(0.0, node.dtype), self.found.nest.update.span)
        clear = For(lane, *lanes, 1, (store,), "serial", axis.loops[-1].span)
        return around(loops, (clear,))

    def counting(self, part: Part | None, rounds: Rounds) -> Steps:
        """Return new symbols for the counting loops, the number of the step, and the loops: of
        which neighbours lie side by side in the part the innermost, or all in their order."""
        depth, outermost = self.found.nest.depth, self.found.nest.depth[0]
        names = [self.fresh.symbol(loop.symbol.name) for loop in depth]
        step, size = const(0), 1
        loops: list[tuple[Symbol, Affine, Affine, Span]] = []
        lasts = [] if part is None else _lasts(part)
        near = {symbol for at in lasts for symbol in at.symbols()}
        for loop, name in reversed(list(zip(depth, names, strict=True))):
            lo, hi = (rounds.first, rounds.last) if loop is outermost else (loop.lo, loop.hi)
            step += (var(name) - lo) * size
            size *= rounds_of(loop) or 1
            loops.insert(0 if loop.symbol in near else len(loops), (name, lo, hi, loop.span))
        symbols = {loop.symbol: var(name) for loop, name in zip(depth, names, strict=True)}
        return symbols, step, loops

    def taken(self, made: Mapping[Side, Callable[[Part], Expr]]) -> Expr:
        """Return the term with what is read for each of its parts."""
        parts = {part.node.id: part for part in self.found.parts}

        def expr(value: Expr) -> Expr:
            if isinstance(value, Read) and value.node.id in parts:
                part = parts[value.node.id]
                return made[part.side](part)
            return rebuild(value, expr, lambda index: index)

        return expr(self.found.term)

    def read(self, part: Part, before: Affine, step: Affine, lane: Affine) -> Expr:
        """Return the read of a part of a term from its panel."""
        return Read(self.nodes[part.node.id], self.element(part, before, step, lane))


def is_across(part: Part, found: Contraction) -> bool:
    """Whether neighbouring lanes, rather than steps, are neighbours in memory."""
    symbols = {loop.symbol for loop in found.loops(part.side)}
    return all(symbols & at.symbols() for at in _lasts(part))


def is_near(found: Contraction, axis: Axis, column: Axis) -> bool:
    """Whether rows are read where they are: what a few tiles use is not worth a copy, where the
    steps of a row are neighbours, and rows do not fall on the same lines of the first cache."""
    columns = [rounds_of(one) for one in column.loops]
    if None in columns:
        return False
    tiles = prod(-(-(n or 1) // size) for n, size in zip(columns, column.box, strict=True))
    cut = rounds_of(axis.loops[axis.cut])
    if tiles > FEW or (not axis.is_even and (cut is None or cut < axis.box[axis.cut])):
        return False
    return all(_is_near(part, axis, found) for part in found.parts if part.side == "row")


def _is_near(part: Part, axis: Axis, found: Contraction) -> bool:
    """Whether a part is an element whose next steps are behind it, apart from those of others."""
    value, counting = part.value, {loop.symbol for loop in found.nest.depth}
    if not isinstance(value, Read):
        return False
    last = value.index[-1] if value.index else None
    near = isinstance(last, Affine) and bool(last.symbols() & counting)
    lanes = [loop for loop, size in zip(axis.loops, axis.box, strict=True) if size > 1]
    strides = [stride(value.node, value.index, loop.symbol) for loop in lanes]
    return near and all(
        gap is not None and (gap == 0 or gap * value.dtype.itemsize % SAME) for gap in strides
    )


def _some(fresh: Fresh, loops: Loops) -> tuple[Loops, tuple[For, ...]]:
    """Return loops over about `NEAR` steps, and the loops around these; the innermost first."""
    count = 1
    for at, (name, lo, hi, span) in enumerate(loops):
        rounds, inner = (hi - lo).constant, loops[:at]
        if rounds is None or rounds * count > NEAR:
            outer = [For(*one[:3], 1, (), span=one[3]) for one in loops[at:]]
            size = NEAR // count
            if size > 1:
                first = fresh.symbol(name.name)
                last = var(first) + size
                last = last if rounds is not None and rounds % size == 0 else minimum(last, hi)
                inner = (*inner, (name, var(first), last, span))
                outer[0] = replace(outer[0], symbol=first, step=size)
            return inner, tuple(outer)
        count *= rounds
    return loops, ()


def around(loops: Loops, body: Body) -> Body:
    """Return a body in loops, of which the first one is the innermost."""
    for name, lo, hi, span in loops:
        body = (For(name, lo, hi, 1, body, span=span),)
    return body


def _lasts(part: Part) -> list[Affine]:
    """Return the last subscripts of what a part reads."""
    found = (read.index[-1] for read in reads(part.value) if read.index)
    return [at if isinstance(at, Affine) else const(0) for at in found]
