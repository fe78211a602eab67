"""Products of matrices in tiles that stay in vector registers.

Changes: a nest over rows and columns that accumulates (`contraction`) becomes a nest over tiles of
R rows and C columns. What its terms need of a block of rows, and of a block of columns, is copied
beforehand into panels in which a tile finds it side by side:

    rows[(i - i0) K + k R + r] = a(i + r, k)          columns[(j - j0) K + k C + c] = b(k, j + c)
    tile[r, c] = tile[r, c] + rows[...] * columns[...]            for all r, c in registers, each k

A panel that the rows or columns do not fill is filled with zeros; what they give is not stored.
Where blocks have many rows, the columns of some tiles are copied when it is their turn. Where all
columns stay in a cache and rows are read in place, all of them meet one tile's rows, then the next.
Rows of which few tiles use the neighbouring steps are read in place: their last tile starts further
up, where there are as many rows as it has. Where not all elements exist, as in a triangle, tiles
and blocks without any are left out, and of those that have some only these are stored.

Needs: rounds that may run in any order. Guarantees: not a bit changes. The terms of an element are
added in their order, and start from what they started from; everything else that is done with it is
done as before, once.

>>> from plusequals.lowering.target import Target
>>> show(lambda program: tiles(program, Target(schedule=True)),
...      "c[i, j] = sum(a[i, k] * b[k, j])", c="f32[6, 16]", a="f32[6, 99]", b="f32[99, 16]")
for k in 0..99:
    for column in 0..16 vector:
        columns[16*k + column] = b[k, column]
for row in 0..6 unrolled:
    for column in 0..16 vector:
        tile[row, column] = 0.0
for k in 0..99:
    for row in 0..6 unrolled:
        for column in 0..16 vector:
            tile[row, column] += a[row, k] * columns[16*k + column]
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
from dataclasses import replace
from math import prod

from ....base.dataclass import dataclass
from ...analysis.contraction import Contraction, Part, contraction
from ...analysis.subscripts import is_in_range, ranges
from ...ir import dtypes
from ...ir.assignments import Access
from ...ir.decision import Decided, Decision, Reason
from ...ir.expressions import Apply, Const, Expr, Position, Read
from ...ir.fresh import Fresh
from ...ir.indexing import Affine, const, maximum, minimum, var
from ...ir.loops import For, If, LoopKind, Program, Stmt, Store
from ...ir.node import Node, Purpose
from ...ir.ops import OPS
from ...ir.rewrite import substitute, substitute_expr
from ...target import Target
from ...transform.outermost import Noted, Outermost
from .axes import At, rounds_of
from .blocking import sizes
from .packing import Panels, Rounds, Sizes, around
from .partial_tiles import every, reached

Body = tuple[Stmt, ...]


class Tiled(Reason):
    """Why a nest is computed in tiles."""

    REUSED = "each row meets each column, so what is loaded is used many times"


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
        found = contraction(loop, self.fresh, self.target.reorders)
        chosen = None if found is None else sizes(found, self.target)
        if found is None or chosen is None or not self.is_legal(found, outer):
            del self.fresh.nodes[before:]
            return None
        detail = f"{chosen.row.lanes} rows by {chosen.column.lanes} columns"
        span, name = found.nest.update.span, found.rows[-1].symbol.name
        self.decisions.append(Decision("tiles", Tiled.REUSED, None, detail, span, variable=name))
        tiler = _Tiler.of(self.fresh, found, chosen, self.rounds)
        self.rounds.extend((tiler.out.id, one.symbol) for one in (*outer, *found.others))
        return tiler.nest()

    def is_legal(self, found: Contraction, outer: tuple[For, ...]) -> bool:
        """Whether the rounds of all loops that change places may run in any order."""
        if not self.is_free(found.nest.chain, outer):
            return False
        known = ranges((*outer, *found.nest.chain))
        place = found.nest.place
        if place is not None and not is_in_range(place.node, place.index, known):
            return False
        return not found.tests or found.is_read(ranges(outer))


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
    rounds: Noted

    @classmethod
    def of(cls, fresh: Fresh, found: Contraction, sizes: Sizes, rounds: Noted) -> _Tiler:
        """Return what makes the nest, with the arrays that it needs."""
        panels = Panels.of(fresh, found, sizes)
        shape, dtype = (sizes.row.lanes, sizes.column.lanes), found.nest.acc.dtype
        tile = fresh.array("tile", shape, dtype, "tile")
        whole = panels.holds("row")
        count = prod(shape) if whole else sizes.row.room * sizes.column.room
        purpose: Purpose = "tile" if whole else "kept"
        out = fresh.array("tile_out", (count,), dtype, purpose)
        return cls(fresh, found, sizes, panels, tile, out, rounds)

    def nest(self) -> Body:
        """Return the loops over blocks, in the loops that are neither row nor column."""
        row, column, fresh = self.sizes.row, self.sizes.column, self.fresh

        def columns(at: At) -> Body:
            inner = row.blocks(fresh, lambda first: self.meeting(first, at, self.block(first, at)))
            return (*self.columns(at), *inner)

        body = column.blocks(fresh, columns)
        for loop in reversed(self.found.others):
            body = (replace(loop, body=body),)
        return body

    def columns(self, column: At) -> Body:
        """Return what fills the panels of a block of columns, where these hold all terms."""
        k = self.found.nest.depth[0]
        if self.sizes.group or not self.panels.holds("column"):
            return ()
        body = self.panels.filled("column", column, k.lo, k.hi)
        for row in self.found.rows:
            if rounds_of(row) is None:
                some = Apply(OPS["lt"], (Position(row.lo), Position(row.hi)), dtypes.bool_)
                body = (If(some, body),)
        return body

    def block(self, row: At, column: At) -> Body:
        """Return the tiles of a block of rows and columns."""
        k, span = self.found.nest.depth[0], self.found.nest.update.span
        if self.panels.holds("row"):
            fill = self.panels.filled("row", row, k.lo, k.hi)

            def whole(at: _At) -> Body:
                added = self.added(at, k.lo, k.hi)
                return (*self.begun(at), *added, *self.kept(at), *self.finished(at))

            return (*fill, *self.each(row, column, Rounds(row, k.lo, k.hi), whole))
        self.rounds.extend((self.out.id, one) for at in (*row, *column) for one in at.symbols())
        first = self.fresh.symbol(k.symbol.name)
        last = minimum(var(first) + self.sizes.depth, k.hi)
        start = Apply(OPS["eq"], (Position(var(first)), Position(k.lo)), dtypes.bool_)
        ended = Apply(OPS["ge"], (Position(last), Position(k.hi)), dtypes.bool_)

        def part(at: _At) -> Body:
            begun = If(start, self.begun(at), self.loaded(at), span)
            done = If(ended, self.finished(at), span=span)
            return (begun, *self.added(at, var(first), last), *self.kept(at), done)

        columns = self.panels.filled("column", column, var(first), last)
        body = (
            *(() if self.sizes.group or self.panels.holds("column") else columns),
            *self.panels.filled("row", row, var(first), last),
            *self.each(row, column, Rounds(row, var(first), last), part),
        )
        end = k.hi if rounds_of(k) else maximum(k.hi, k.lo + 1)  # no terms: it is only started
        return (For(first, k.lo, end, self.sizes.depth, body, span=k.span),)

    def each(self, row: At, column: At, of: Rounds, made: Callable[[_At], Body]) -> Body:
        """Return the loops over the tiles of a block, those of a column, or row, one by one."""
        rows, columns, some = self.sizes.row, self.sizes.column, self.sizes.axis("column")

        def tile(group: At, first: At, at: At) -> Body:
            body = made(_At(row, column, group, first, at))
            return self.meeting(first, at, body, of_block=False)

        def tiles(group: At) -> Body:
            return some.tiles(self.fresh, group, lambda at: rows.tiles(
                self.fresh, row, lambda first: tile(group, first, at)
            ))  # fmt: skip

        def of_row(first: At) -> Body:
            return some.tiles(self.fresh, column, lambda at: tile(column, first, at))

        if some is columns:
            first_rows = self.sizes.rows_first
            return rows.tiles(self.fresh, row, of_row) if first_rows else tiles(column)

        def copied(group: At) -> Body:
            return (*self.panels.filled("column", group, of.first, of.last), *tiles(group))

        return columns.parts(self.fresh, column, some.block, copied)

    def meeting(self, row: At, column: At, body: Body, of_block: bool = True) -> Body:
        """Return what is done for a tile or a block in which there may be elements."""
        tests = self.reached(row, column, 1, of_block)
        return (If(every(tests), body, span=self.found.nest.update.span),) if tests else body

    def reached(self, row: At, column: At, sign: int, of_block: bool = False) -> list[Affine]:
        """Return the tests where they are greatest (sign 1) or least in a tile or a block."""
        both = (self.sizes.row, row), (self.sizes.column, column)
        return reached(self.found.tests, both, sign, of_block)

    # ------------------------------------------------------------------------------ one tile

    def in_tile(self, made: Callable[[Affine, Affine], Stmt]) -> Stmt:
        """Return the loops over all elements of a tile."""
        row, column = self.fresh.symbol("row"), self.fresh.symbol("column")
        span = self.found.nest.update.span
        lanes = const(self.sizes.column.lanes)
        inner = For(column, const(0), lanes, 1, (made(var(row), var(column)),), "vector", span)
        return For(row, const(0), const(self.sizes.row.lanes), 1, (inner,), "unrolled", span)

    def outside(self, at: _At, row: Affine, column: Affine) -> tuple[Affine]:
        """Return where an element of a tile is outside of the registers."""
        size = self.sizes
        inside = row * size.column.lanes + column
        if self.panels.holds("row"):
            return (inside,)
        block = size.column.before(at.column, at.columns) * size.row.room
        return (block + size.row.before(at.row, at.rows) * size.column.lanes + inside,)

    def begun(self, at: _At) -> Body:
        """Return what gives the elements of a tile what they start from."""
        nest = self.found.nest
        match nest.start:
            case (Store(_, Const() as value),):
                return (self.in_tile(lambda r, c: Store(Access(self.tile, (r, c)), value)),)

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
        update, size, panels = self.found.nest.update, self.sizes, self.panels
        before = (first - self.found.nest.depth[0].lo) * size.inner
        behind = before if panels.holds("column") else const(0)
        columns = size.axis("column").before(at.column, at.group)
        if panels.in_place:
            values, step, loops = panels.counting(None, Rounds(at.rows, first, last))
        else:
            name = self.fresh.symbol("step")
            steps = (last - first) * size.inner
            values, step, loops = {}, var(name), [(name, const(0), steps, update.span)]

        def add(row: Affine, column: Affine) -> Stmt:
            def of_row(part: Part) -> Expr:
                if not panels.in_place:
                    return panels.read(part, size.row.before(at.row, at.rows), step, row)
                lane = size.row.placed(size.row.inside(at.row), size.row.digits(row))
                return substitute_expr(part.value, {**lane, **values})

            def of_column(part: Part) -> Expr:
                return panels.read(part, columns, step + behind, column)

            value = panels.taken({"row": of_row, "column": of_column})
            return replace(update, access=Access(self.tile, (row, column)), value=value)

        return around(loops, (self.in_tile(add),))

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
        tests = self.reached(at.row, at.column, -1)
        if not tests:
            return self.existing(at, made)

        def some(row: Affine, column: Affine) -> Body:
            return (If(every(self.found.tests), made(row, column)),)

        inside, span = self.existing(at, made), self.found.nest.update.span
        return (If(every(tests), inside, self.existing(at, some), span),)

    def existing(self, at: _At, made: Callable[[Affine, Affine], Body]) -> Body:
        """Return the loops over the elements of a tile that its box has."""
        columns, axis = self.sizes.column.width(at.column), self.sizes.column
        if columns[-1].constant is not None:
            return self.elements(at, columns, made)
        lanes = tuple(map(const, axis.box))
        full = Apply(OPS["eq"], (Position(columns[-1]), Position(lanes[-1])), dtypes.bool_)
        both = self.elements(at, lanes, made), self.elements(at, columns, made)
        return (If(full, *both, self.found.nest.update.span),)

    def elements(self, at: _At, columns: At, made: Callable[[Affine, Affine], Body]) -> Body:
        """Return the loops over the elements of a tile of so many columns."""
        size, names = self.sizes, self.found.nest.named
        inside = frozenset(one.symbol for one in self.found.columns)
        kind: LoopKind = "vector" if columns[-1].constant is not None else "serial"

        def element(rows: At, lanes: At) -> tuple[Body, Body]:
            start = size.row.inside(at.row) if self.panels.in_place else at.row
            gaps = zip(rows, at.row, start, strict=True)
            shifted = tuple(lane + (one - other) for lane, one, other in gaps)
            body = made(size.row.lane(shifted), size.column.lane(lanes))
            outer, inner = names(body, inside)
            placed = size.row.placed(at.row, rows)
            whole = substitute((*inner, *body), placed)
            return substitute(outer, placed), substitute(
                whole, size.column.placed(at.column, lanes)
            )

        def row(rows: At) -> Body:
            outer: list[Stmt] = []

            def inner(lanes: At) -> Body:
                outer[:], body = element(rows, lanes)
                return body

            body = size.column.elements(self.fresh, "", columns, inner, kind)
            return (*outer, *body)

        def column(lanes: At) -> Body:
            def inner(rows: At) -> Body:
                outer, body = element(rows, lanes)
                return (*outer, *body)

            return size.row.elements(self.fresh, "", size.row.width(at.row), inner)

        if self.found.is_turned:
            return size.column.elements(self.fresh, "", columns, column)
        return size.row.elements(self.fresh, "", size.row.width(at.row), row)


@dataclass(frozen=True, slots=True)
class _At:
    """A tile: where its block starts, and the columns in panels, and where it does."""

    rows: At
    columns: At
    group: At
    row: At
    column: At
