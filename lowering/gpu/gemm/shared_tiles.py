"""Contractions by tiles in shared memory, with a block of registers in each thread.

    for i, j: total = 0; for k: total += a[i, k] * b[k, j]; rest
    becomes
    for im, jn:                                           blocks, each a tile of 64 by 64
        acc[y, x, r, s] = 0                               threads, each 4 by 4 of them
        a_ahead, b_ahead = a[...], b[...]                 or 128 and 8 where it is large enough
        for kt in 0..K/16:
            a_tile[k, i] = a_ahead; b_tile[k, j] = b_ahead   threads, and a barrier
            a_ahead, b_ahead = a[...], b[...]                threads, for the next round
            acc[y, x, r, s] += a_tile[k, r] * b_tile[k, s]
        rest, where i and j are in range                  threads

Any number of loops may stand for each of `i`, `j` and `k`, as in a convolution, and for what both
factors depend on. Every element is summed in the order of `k`, so with `exact` results
are those of the program, bit by bit; otherwise products and sums are fused, if no loop was written
for the terms. Needs a band whose
points start a scalar, from zero or from what they read, sum products of a factor of each side, and
go on without loops. Products may be added in a wider type than their own, as those of int32 are.
What a thread reads of a tile at once are neighbours, and rows of tiles are as far apart as a
multiple of them: a device loads four numbers of 32 bits by one instruction, from all banks.
A factor may be computed: the element that it needs is read ahead, what it needs that is the same
for all terms a block has in shared memory, and the rest is done when the tile is filled.

>>> program = lowered("c[i, j] = sum[k](a[i, k] * b[k, j])",
...     c="f32[64, 64]", a="f32[64, 64]", b="f32[64, 64]")
>>> program = optimize(program, Target("cuda"))[0]
>>> facts = facts_of(program)
>>> made = tiles(band(program.kernels[0].body[1], facts), facts, fresh_for(program))
>>> [space for space in made.spaces.values()]
['rows', 'rows', 'rows', 'shared', 'shared']
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import ceil

from ....base.dataclass import dataclass
from ...analysis.accumulators import zero_of
from ...analysis.parallel_band import Band, Facts, around, favours
from ...ir import dtypes
from ...ir.assignments import Access
from ...ir.expressions import Apply, Cast, Const, Expr, Position, Read, Select, children, rebuild
from ...ir.fresh import Fresh
from ...ir.indexing import Affine, Symbol, const, floordiv, mod, var
from ...ir.loops import Barrier, For, If, Stmt, Store, Update
from ...ir.node import Node
from ...ir.ops import OPS
from ...ir.rewrite import substitute, substitute_expr
from ...ir.walk import free_symbols, reads, writes
from ..barriers import met
from ..thread_points import Made, Space
from .contraction import DEPTH, SIDE, Contraction, contraction, points_of, started  # fmt: skip
from .tile_side import Side
from .vector_stores import SIZE, Neighbours, done_with, together

ACROSS = 16
"""Threads along each side of a tile."""
NEIGHBOURS = 4
"""Rows and columns of a thread that are side by side."""
STEP = 2
"""Terms that are multiplied without a loop: with more, registers do not suffice."""
ENOUGH = 128
"""So many tiles are work for all of a device."""
LARGE = ENOUGH * 2 * SIDE * 2 * SIDE
"""With so many elements there are tiles of twice both sides for all of it."""


def extents(what: Contraction) -> tuple[int, int]:
    """Return how many rows and columns a tile has: more where that is enough for a device."""
    rows, columns = (points_of(group) for group in (what.rows, what.columns))
    if rows is None or columns is None or what.total.dtype.bits > 32:
        return SIDE, SIDE
    sides = [2 * SIDE if size > SIDE else SIDE for size in (rows, columns)]
    high, broad = sides
    others = points_of(what.both) or 1
    if min(sides) > SIDE:
        enough = rows * columns * others >= LARGE
    else:
        enough = ceil(rows / high) * ceil(columns / broad) * others >= ENOUGH
    return (high, broad) if enough else (SIDE, SIDE)


def tiles(found: Band, facts: Facts, fresh: Fresh) -> Made | None:
    """Return the kernel of a band that is a contraction, None where it is none."""
    made = contraction(found)
    return None if made is None else _Tiling(made, facts.exact, fresh).made()


def in_blocks(
    what: Contraction, sides: Iterable[tuple[Side, int]], body: tuple[Stmt, ...], fresh: Fresh
) -> tuple[Stmt, ...]:
    """Return what a block does in a loop of blocks for each tile, given how far a side of it goes,
    under the statements that this comes from.

    All loops on which both factors depend are counted as one: a grid has three axes.
    """
    blocks = [replace(loop, kind="block", body=()) for loop in what.both]
    if len(blocks) > 1:
        both = Side(what.both, fresh, "both")
        blocks = [For(both.tile, const(0), both.size, 1, (), "block")]
        body = substitute(body, both.values(var(both.tile)))
    for side, extent in sides:
        count = floordiv(side.size + (extent - 1), const(extent))
        blocks.append(For(side.tile, const(0), count, 1, (), "block"))
    return around(blocks, (*what.told, *body))


def zero(node: Node) -> Const:
    """Return the zero of a node's type."""
    return Const(zero_of(node.dtype), node.dtype)


@dataclass(frozen=True, slots=True)
class _Stage:
    """How a tile is filled with a factor; it is computed last, when what was read is there."""

    tile: Node
    ahead: Node
    """What each thread has read of it for the next terms."""
    value: Expr
    read: Expr
    """What of the value is read ahead."""
    side: Side
    extent: int
    """Rows, or columns, of the tile."""
    number: Symbol
    """Counts the elements of a thread."""
    at: Affine
    deep: Affine
    alike: Mapping[Expr, Node]
    """What of the value is the same for all terms of a row, and where a block has it."""


class _Tiling:
    """Makes the kernel of a contraction."""

    def __init__(self, what: Contraction, exact: bool, fresh: Fresh) -> None:
        self.what, self.fresh = what, fresh
        dtype, product = what.total.dtype, what.product
        self.fused = what.counted and not exact and dtype.kind == "f" and product is dtype
        self.rows = Side(what.rows, fresh, "row")
        self.columns = Side(what.columns, fresh, "column")
        self.terms = Side(what.terms, fresh, "term")
        self.extents = extents(what)
        self.blocks = tuple(extent // ACROSS for extent in self.extents)
        self.y, self.x = fresh.symbol("y"), fresh.symbol("x")
        self.r, self.s = fresh.symbol("r"), fresh.symbol("s")
        shape = (ACROSS, ACROSS, *self.blocks)
        self.total = fresh.array(f"{what.total.label}_block", shape, dtype)
        self.first, self.second = (
            fresh.array(name, (DEPTH, extent + NEIGHBOURS), product)
            for name, extent in zip(("first_tile", "second_tile"), self.extents, strict=True)
        )

    def made(self) -> Made:
        """Return the kernel."""
        depth = floordiv(self.terms.size + (DEPTH - 1), const(DEPTH))
        stages = (
            self.stage(self.first, self.what.first, self.rows, self.extents[0]),
            self.stage(self.second, self.what.second, self.columns, self.extents[1]),
        )
        later = var(self.terms.tile) + 1
        more = Apply(OPS["lt"], (Position(later), Position(depth)), dtypes.bool_)
        inner = (
            *(self.threads(self.put(one)) for one in stages),
            self.threads((If(more, tuple(s for one in stages for s in self.fetched(one, later))),)),
            self.multiplied(),
        )
        loop = For(self.terms.tile, const(0), depth, 1, inner)
        used = {n.id for n in (*reads(self.what.rest), *writes(self.what.rest))}
        own = used & self.what.own - {self.total.id, self.what.total.id}
        rows = (self.total.id, *(one.ahead.id for one in stages))
        begun = self.threads(
            tuple(s for one in stages for s in (*self.filled(one), *self.fetched(one, const(0))))
        )
        once = (Barrier(),) if any(one.alike for one in stages) else ()  # not in each round
        whole = (self.cleared(), begun, *once, loop, self.rest())
        body = met(whole, frozenset((*rows, *own)), True)
        shared = (node for one in stages for node in (one.tile, *one.alike.values()))
        spaces: dict[int, Space] = dict.fromkeys(rows, "rows")
        spaces |= dict.fromkeys((node.id for node in shared), "shared")
        sides = zip((self.rows, self.columns), self.extents, strict=True)
        return Made(
            in_blocks(self.what, sides, body, self.fresh), spaces | dict.fromkeys(own, "private")
        )

    def threads(self, body: tuple[Stmt, ...]) -> Stmt:
        """Return what each thread does."""
        inner = For(self.x, const(0), const(ACROSS), 1, body, "thread")
        return For(self.y, const(0), const(ACROSS), 1, (inner,), "thread")

    def each(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return what a thread does for each of its rows and columns."""
        rows, columns = self.blocks
        inner = For(self.s, const(0), const(columns), 1, body, "unrolled")
        return (For(self.r, const(0), const(rows), 1, (inner,), "unrolled"),)

    @property
    def place(self) -> Access:
        """The sum that a thread has for a row and a column."""
        return Access(self.total, (var(self.y), var(self.x), var(self.r), var(self.s)))

    def of(self, thread: Symbol, number: Symbol) -> Affine:
        """Return which row or column of a tile a thread has: some neighbours, then others."""
        others = floordiv(var(number), const(NEIGHBOURS)) * (NEIGHBOURS * ACROSS)
        return var(thread) * NEIGHBOURS + others + mod(var(number), const(NEIGHBOURS))

    def cleared(self) -> Stmt:
        """Return what starts all sums."""
        value = started(self.what, self.here, self.tests, zero(self.total))
        return self.threads(self.each((Store(self.place, value),)))

    @property
    def here(self) -> dict[Symbol, Affine]:
        """What the loops of the rows and columns are for an element of a thread."""
        row, column = self.at
        return self.rows.values(row) | self.columns.values(column)

    @property
    def at(self) -> tuple[Affine, Affine]:
        """The row and column of an element of a thread."""
        row = var(self.rows.tile) * self.extents[0] + self.of(self.y, self.r)
        return row, var(self.columns.tile) * self.extents[1] + self.of(self.x, self.s)

    @property
    def tests(self) -> list[Expr]:
        """What says that these are in range."""
        (row, column), (high, broad) = self.at, self.extents
        return [*self.rows.tests(row, high), *self.columns.tests(column, broad)]

    def stage(self, tile: Node, value: Expr, side: Side, extent: int) -> _Stage:
        """Return how a tile is filled: neighbouring threads read neighbours in memory."""
        number = self.fresh.symbol("m")
        along = var(number) * ACROSS
        read = self.ahead(value)
        flat = (Store(Access(self.what.total, ()), read),)
        if favours(flat, self.what.terms[-1].symbol) > favours(flat, side.loops[-1].symbol):
            at, deep = var(self.y) + along, var(self.x)
        else:
            at, deep = var(self.x) + along, var(self.y)
        shape = (ACROSS, ACROSS, extent // ACROSS)
        ahead = self.fresh.array(f"{tile.label}_ahead", shape, read.dtype)
        alike = self.alike(value, side, extent) if read != _bare(value) else {}
        return _Stage(tile, ahead, value, read, side, extent, number, at, deep, alike)

    def ahead(self, value: Expr) -> Expr:
        """Return what of a factor is read ahead: one element, as it is, or all that is computed of
        several, which would take more registers."""
        found = {one for one in _read_in(value) if free_symbols(one) & self.summed}
        return found.pop() if len(found) == 1 else _bare(value)

    @property
    def summed(self) -> set[Symbol]:
        """The variables of the terms."""
        return {loop.symbol for loop in self.what.terms}

    def alike(self, value: Expr, side: Side, extent: int) -> dict[Expr, Node]:
        """Return arrays of a block for what a factor needs that is the same for all terms: threads
        would read it for each, or keep it in registers."""
        mine = {loop.symbol for loop in side.loops}
        found = dict.fromkeys(one for one in _read_in(value) if free_symbols(one) & mine)
        return {
            one: self.fresh.array(f"{side.tile.name}_value", (extent,), one.dtype)
            for one in found if not free_symbols(one) & self.summed
        }  # fmt: skip

    def filled(self, one: _Stage) -> tuple[Stmt, ...]:
        """Return what a thread puts into the arrays for what is the same for all terms."""
        thread = var(self.y) * ACROSS + var(self.x)
        here = var(one.side.tile) * one.extent + thread
        stores: list[Stmt] = []
        for value, node in one.alike.items():
            found = substitute_expr(value, one.side.values(here))
            for test in one.side.tests(here, one.extent):
                found = Select(test, found, zero(node))
            stores.append(Store(Access(node, (thread,)), found))
        test = Apply(OPS["lt"], (Position(thread), Position(const(one.extent))), dtypes.bool_)
        return (If(test, tuple(stores)),) if stores else ()

    def fetched(self, one: _Stage, tile: Affine) -> tuple[Stmt, ...]:
        """Return what a thread reads of a factor for a tile of terms: zeros where there is none."""
        return self.along(one, Store(self.held(one), self.there(one, one.read, tile)))

    def there(self, one: _Stage, value: Expr, tile: Affine) -> Expr:
        """Return a value for an element of a tile of terms: zero where there is none."""
        here, term = var(one.side.tile) * one.extent + one.at, tile * DEPTH + one.deep
        found = substitute_expr(value, one.side.values(here) | self.terms.values(term))
        for test in (*one.side.tests(here, one.extent), *self.terms.tests(term, DEPTH)):
            found = Select(test, found, Const(zero_of(value.dtype), value.dtype))
        return found

    def put(self, one: _Stage) -> tuple[Stmt, ...]:
        """Return what a thread puts into a tile."""
        read = Read(one.ahead, self.held(one).index)
        value = _bare(one.value)
        found = read if value == one.read else self.found(one, value, read)
        if found.dtype is not one.tile.dtype:
            found = Cast(found, one.tile.dtype)
        return self.along(one, Store(Access(one.tile, (one.deep, one.at)), found))

    def found(self, one: _Stage, value: Expr, read: Read) -> Expr:
        """Return what is computed of an element that was read ahead."""

        def of(expr: Expr) -> Expr:
            if expr in one.alike:
                return Read(one.alike[expr], (one.at,))
            return read if expr == one.read else rebuild(expr, of, lambda index: index)

        return self.there(one, of(value), var(self.terms.tile))

    def held(self, one: _Stage) -> Access:
        """The element that a thread has read."""
        return Access(one.ahead, (var(self.y), var(self.x), var(one.number)))

    def along(self, one: _Stage, stmt: Stmt) -> tuple[Stmt, ...]:
        """Return what a thread does for each element that it reads of a tile."""
        count = const(one.extent // ACROSS)
        return (For(one.number, const(0), count, 1, (stmt,), "unrolled"),)

    def multiplied(self) -> Stmt:
        """Return what adds the products of two tiles to the sums."""
        some, one_of = self.fresh.symbol("some"), self.fresh.symbol("k")
        deep = var(some) * STEP + var(one_of)
        row, column = self.of(self.y, self.r), self.of(self.x, self.s)
        first = Read(self.first, (deep, row))
        second = Read(self.second, (deep, column))
        dtype = self.total.dtype
        one: Stmt
        if self.fused:
            total = Read(self.total, self.place.index)
            one = Store(self.place, Apply(OPS["fma"], (first, second, total), dtype))
        else:
            product: Expr = Apply(OPS["mul"], (first, second), self.what.product)
            product = product if product.dtype is dtype else Cast(product, dtype)
            one = Update(self.place, OPS["add"], product)
        steps = For(one_of, const(0), const(STEP), 1, self.each((one,)), "unrolled")
        return self.threads((For(some, const(0), const(DEPTH // STEP), 1, (steps,)),))

    def rest(self) -> Stmt:
        """Return what is done with the sums, where they are in range."""
        rows, columns = self.blocks
        row, column = self.at
        if not together(self.what, self.columns):
            body = self.used(column, const(0), var(self.s))
            for test in self.tests:
                body = (If(test, body),)
            return self.threads(self.each(body))
        body = Neighbours(
            self.columns, self.extents[1], self.neighbour, self.used, columns // SIZE
        ).stored(self.fresh)
        for test in self.rows.tests(row, self.extents[0]):
            body = (If(test, body),)
        return self.threads((For(self.r, const(0), const(rows), 1, body, "unrolled"),))

    def neighbour(self, group: Affine, one: Affine) -> Affine:
        """Return where one of a group of neighbours is among all columns."""
        start = var(self.columns.tile) * self.extents[1] + var(self.x) * NEIGHBOURS
        parts = const(NEIGHBOURS // SIZE)
        return (
            start + floordiv(group, parts) * (NEIGHBOURS * ACROSS) + mod(group, parts) * SIZE + one
        )

    def used(self, column: Affine, further: Affine, number: Affine) -> tuple[Stmt, ...]:
        """Return what is done with the sum of that number of a column, in the row `r`."""
        here = self.rows.values(self.at[0]) | self.columns.further(column, further)
        return done_with(self.what, here, (self.total, (*self.place.index[:3], number)))


def _bare(value: Expr) -> Expr:
    """Return what a factor is converted from."""
    return value.value if isinstance(value, Cast) else value


def _read_in(value: Expr) -> list[Expr]:
    """Return the elements that a value needs, those that are only there where a test holds with
    that test."""
    if isinstance(value, Read | Select):
        return [value]
    return [one for child in children(value) for one in _read_in(child)]
