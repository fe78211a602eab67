"""Products of matrices in tiles that stay in vector registers.

Changes: a nest over rows and columns that accumulates (`contraction`) becomes a nest over tiles of
R rows and C columns. What its terms need of a block of rows, and of a block of columns, is copied
beforehand into panels in which a tile finds it side by side:

    rows[(i - i0) K + k R + r] = a(i + r, k)          columns[(j - j0) K + k C + c] = b(k, j + c)
    tile[r, c] = tile[r, c] + rows[...] * columns[...]            for all r, c in registers, each k

A panel that the rows or columns do not fill is filled with zeros; what they give is not stored.

Needs: rounds that may run in any order. Guarantees: not a bit changes. The terms of an element are
added in their order, and start from what they started from; everything else that is done with it is
done as before, once.

>>> from plusequals.lowering.target import Target
>>> show(lambda program: tiles(program, Target(schedule=True)),
...      "c[i, j] = sum(a[i, k] * b[k, j])", c="f32[6, 16]", a="f32[6, 99]", b="f32[99, 16]")
for k in 0..99:
    for column in 0..16 vector:
        columns[column + 16*k] = b[k, column]
for k in 0..96 step 8:
    for row in 0..6:
        for k_2 in k..k + 8:
            rows[row + 6*k_2] = a[row, k_2]
for k in 96..99:
    for row in 0..6 unrolled:
        rows[6*k + row] = a[row, k]
for row in 0..6 unrolled:
    for column in 0..16 vector:
        tile[row, column] = 0.0
for step in 0..99:
    for row in 0..6 unrolled:
        for column in 0..16 vector:
            tile[row, column] += rows[6*step + row] * columns[16*step + column]
for row in 0..6 unrolled:
    for column in 0..16 vector:
        tile_out[16*row + column] = tile[row, column]
for i in 0..6:
    for j in 0..16 vector:
        c_sum = tile_out[16*i + j]
        c[i, j] = c_sum
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

from ..ir import dtypes
from ..ir.assignments import Access
from ..ir.expressions import Apply, Const, Position, Read
from ..ir.fresh import Fresh
from ..ir.indexing import Affine, const, maximum, minimum, var
from ..ir.loops import For, If, LoopKind, Program, Stmt, Store
from ..ir.node import Node, Purpose
from ..ir.ops import OPS
from ..ir.rewrite import substitute
from ..passes.cells import is_in_range, ranges
from ..passes.decision import Decided, Decision, Reason
from ..target import Target
from .blocks import sizes
from .contraction import Contraction, contraction
from .legal import independent, private
from .outermost import Outermost
from .stage import Panels, Side, Sizes, over, rounds_of

Body = tuple[Stmt, ...]


class Tiled(Reason):
    """Why a nest is computed in tiles."""

    REUSED = "each row meets each column, so what is loaded is used many times"


# ----------------------------------------------------------------------------------- the pass


def tiles(program: Program, target: Target) -> Program:
    """Return the program with its products of matrices in tiles."""
    return in_tiles(program, target).program


def in_tiles(program: Program, target: Target) -> Decided:
    """Return the program with its products of matrices in tiles, and which these are."""
    return _Work.on(program, target)


class _Work(Outermost):
    """The work on one program."""

    __slots__ = ()

    def nest(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        """Return a nest in tiles, None where it is none or has to stay."""
        before = len(self.fresh.nodes)
        found = contraction(loop, self.fresh)
        chosen = None if found is None else sizes(found, self.target)
        if found is None or chosen is None or not self.is_legal(found, outer):
            del self.fresh.nodes[before:]
            return None
        detail = f"{chosen.rows} rows by {chosen.columns} columns"
        self.decisions.append(
            Decision(
                "tiles",
                Tiled.REUSED,
                None,
                detail,
                found.nest.update.span,
                variable=found.row.symbol.name,
            )
        )
        return _Tiler.of(self.fresh, found, chosen).nest()

    def is_legal(self, found: Contraction, outer: tuple[For, ...]) -> bool:
        """Whether the rounds of all loops that change places may run in any order."""
        known = ranges(outer)
        for loop in found.nest.chain:
            mine = private(loop, self.only()[id(loop)])
            if independent(loop, mine, self.own, known) is not None:
                return False
            known = (*known, *ranges((loop,)))
        place = found.nest.place
        return place is None or is_in_range(place.node, place.index, known)


# ----------------------------------------------------------------------------------- the nest


@dataclass(frozen=True, slots=True)
class _Tiler:
    """Makes the nest of one contraction."""

    fresh: Fresh
    found: Contraction
    sizes: Sizes
    panels: Panels
    tile: Node
    out: Node
    """The elements of tiles outside of the registers: of one, or of a block between its panels."""

    @classmethod
    def of(cls, fresh: Fresh, found: Contraction, sizes: Sizes) -> _Tiler:
        """Return what makes the nest, with the arrays that it needs."""
        panels = Panels.of(fresh, found, sizes)
        shape, dtype = (sizes.rows, sizes.columns), found.nest.acc.dtype
        tile = fresh.array("tile", shape, dtype, "tile")
        whole = panels.holds("row")
        count = prod(shape) if whole else sizes.row_block * sizes.column_block
        purpose: Purpose = "tile" if whole else "panel"
        out = fresh.array("tile_out", (count,), dtype, purpose)
        return cls(fresh, found, sizes, panels, tile, out)

    def nest(self) -> Body:
        """Return the loops over blocks, in the loops that are neither row nor column."""
        found, size, fresh = self.found, self.sizes, self.fresh
        row, column = found.row, found.column

        def columns(at: Affine) -> Body:
            def rows(first: Affine) -> Body:
                return self.block(first, at)

            inner = over(fresh, row.symbol, row.lo, row.hi, size.row_block, rows)
            return (*self.columns(at), *inner)

        body = over(fresh, column.symbol, column.lo, column.hi, size.column_block, columns)
        for loop in reversed(found.others):
            body = (replace(loop, body=body),)
        return body

    def columns(self, column: Affine) -> Body:
        """Return what fills the panels of a block of columns, where these hold all terms."""
        row, k = self.found.row, self.found.nest.depth[0]
        if not self.panels.holds("column"):
            return ()
        body = self.panels.filled("column", column, k.lo, k.hi)
        if rounds_of(row):
            return body
        return (If(Apply(OPS["lt"], (Position(row.lo), Position(row.hi)), dtypes.bool_), body),)

    def block(self, row: Affine, column: Affine) -> Body:
        """Return the tiles of a block of rows and columns."""
        k, span = self.found.nest.depth[0], self.found.nest.update.span
        if self.panels.holds("row"):
            fill = self.panels.filled("row", row, k.lo, k.hi)

            def whole(at: _At) -> Body:
                added = self.added(at, k.lo, k.hi)
                return (*self.begun(at), *added, *self.kept(at), *self.finished(at))

            return (*fill, *self.each(row, column, whole))
        first = self.fresh.symbol(k.symbol.name)
        last = minimum(var(first) + self.sizes.depth, k.hi)
        start = Apply(OPS["eq"], (Position(var(first)), Position(k.lo)), dtypes.bool_)

        def part(at: _At) -> Body:
            begun = If(start, self.begun(at), self.loaded(at), span)
            return (begun, *self.added(at, var(first), last), *self.kept(at))

        columns = self.panels.filled("column", column, var(first), last)
        body = (
            *(() if self.panels.holds("column") else columns),
            *self.panels.filled("row", row, var(first), last),
            *self.each(row, column, part),
        )
        end = k.hi if rounds_of(k) else maximum(k.hi, k.lo + 1)  # no terms: it is only started
        return (
            For(first, k.lo, end, self.sizes.depth, body, span=k.span),
            *self.each(row, column, self.finished),
        )

    def each(self, row: Affine, column: Affine, made: Callable[[_At], Body]) -> Body:
        """Return a loop over the tiles of a block; those of the same columns follow each other."""
        found, panels, size = self.found, self.panels, self.sizes

        def columns(at: Affine) -> Body:
            def rows(first: Affine) -> Body:
                return made(_At(row, column, first, at))

            end = panels.end("row", row)
            return over(self.fresh, found.row.symbol, row, end, size.rows, rows)

        end = panels.end("column", column)
        return over(self.fresh, found.column.symbol, column, end, size.columns, columns)

    # ------------------------------------------------------------------------------ one tile

    def in_tile(self, made: Callable[[Affine, Affine], Stmt]) -> Stmt:
        """Return the loops over all elements of a tile."""
        row, column = self.fresh.symbol("row"), self.fresh.symbol("column")
        span = self.found.nest.update.span
        lanes = const(self.sizes.columns)
        inner = For(column, const(0), lanes, 1, (made(var(row), var(column)),), "vector", span)
        return For(row, const(0), const(self.sizes.rows), 1, (inner,), "unrolled", span)

    def outside(self, at: _At, row: Affine, column: Affine) -> tuple[Affine]:
        """Return where an element of a tile is outside of the registers."""
        inside = row * self.sizes.columns + column
        if self.panels.holds("row"):
            return (inside,)
        block = (at.column - at.columns) * self.sizes.row_block
        return (block + (at.row - at.rows) * self.sizes.columns + inside,)

    def begun(self, at: _At) -> Body:
        """Return what gives the elements of a tile what they start from."""
        match self.found.nest.start:
            case (Store(_, Const() as value),):
                return (self.in_tile(lambda r, c: Store(Access(self.tile, (r, c)), value)),)
            case _:
                pass

        nest = self.found.nest

        def taken(row: Affine, column: Affine) -> Body:
            place = Access(self.out, self.outside(at, row, column))
            return (*nest.start, Store(place, Read(nest.acc, ()), nest.update.span))

        return (*self.elementwise(at, taken), *self.loaded(at))

    def loaded(self, at: _At) -> Body:
        """Return what takes a tile into registers."""

        def load(row: Affine, column: Affine) -> Stmt:
            place = self.outside(at, row, column)
            return Store(Access(self.tile, (row, column)), Read(self.out, place))

        return (self.in_tile(load),)

    def added(self, at: _At, first: Affine, last: Affine) -> Body:
        """Return the loop over the terms of a tile, of some rounds of the depth."""
        step, update = self.fresh.symbol("step"), self.found.nest.update
        sides: dict[Side, Affine] = {"row": at.row - at.rows, "column": at.column - at.columns}
        before = (first - self.found.nest.depth[0].lo) * self.sizes.inner
        behind = before if self.panels.holds("column") else const(0)
        place: dict[Side, Affine] = {"row": var(step), "column": var(step) + behind}
        steps = (last - first) * self.sizes.inner

        def add(row: Affine, column: Affine) -> Stmt:
            value = self.panels.taken(self.found.term, sides, place, row, column)
            return replace(update, access=Access(self.tile, (row, column)), value=value)

        return (For(step, const(0), steps, 1, (self.in_tile(add),), span=update.span),)

    def kept(self, at: _At) -> Body:
        """Return what puts the elements of a tile into memory."""

        def keep(row: Affine, column: Affine) -> Stmt:
            place = self.outside(at, row, column)
            return Store(Access(self.out, place), Read(self.tile, (row, column)))

        return (self.in_tile(keep),)

    def finished(self, at: _At) -> Body:
        """Return what is done with the elements of a tile."""
        nest = self.found.nest

        def rest(row: Affine, column: Affine) -> Body:
            value = Read(self.out, self.outside(at, row, column))
            done = Store(Access(nest.acc, ()), value, nest.update.span)
            return (*nest.again, done, *nest.rest)

        return self.elementwise(at, rest)

    def elementwise(self, at: _At, made: Callable[[Affine, Affine], Body]) -> Body:
        """Return the loops over those elements of a tile that exist, with the names they need."""
        columns, lanes = self.panels.width("column", at.column), const(self.sizes.columns)
        if columns.constant is not None:
            return self.elements(at, columns, made)
        full = Apply(OPS["eq"], (Position(columns), Position(lanes)), dtypes.bool_)
        both = self.elements(at, lanes, made), self.elements(at, columns, made)
        return (If(full, *both, self.found.nest.update.span),)

    def elements(self, at: _At, columns: Affine, made: Callable[[Affine, Affine], Body]) -> Body:
        """Return the loops over the elements of a tile of so many columns."""
        found = self.found
        row, column = (self.fresh.symbol(s.symbol.name) for s in (found.row, found.column))
        body = made(var(row), var(column))
        outer, inner = found.nest.named(body, found.column.symbol)
        kind: LoopKind = "vector" if columns.constant is not None else "serial"
        inside = For(column, const(0), columns, 1, (*inner, *body), kind, found.column.span)
        values = {
            found.row.symbol: at.row + var(row), found.column.symbol: at.column + var(column),
        }  # fmt: skip
        rows = self.panels.width("row", at.row)
        loop = For(row, const(0), rows, 1, (*outer, inside), span=found.row.span)
        return substitute((loop,), values)


@dataclass(frozen=True, slots=True)
class _At:
    """A tile: where its block starts, and where it does."""

    rows: Affine
    columns: Affine
    row: Affine
    column: Affine
