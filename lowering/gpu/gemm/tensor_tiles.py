"""Contractions by units of a device that multiply blocks of elements: tensor cores.

    for i, j: total = 0; for k: total += a[i, k] * b[k, j]; rest
    becomes
    for im, jn:                                            blocks, each a tile of 64 by 64
        acc[y, x, r, s] = 0                                threads, of 4 warps, or 128 by 128
        a_tile[0..3], b_tile[0..3] = a[...], b[...]        threads, 16 bytes at once
        for kt in 0..K/16:
            a_tile[(kt + 3) % 4], ... = a[...], b[...]     threads, while others are used
            acc[y, x, r, s] += a_tile[kt % 4, r, k] * b_tile[kt % 4, k, s]        tensor
        rest, where i and j are in range                   threads

Needs what `device_tiles` needs, factors of a type that the device has units for, and that it is
left open how terms are rounded and in which order they are added. A warp has a part of a tile; its
threads have the elements that the unit gives them: of each 8 rows the one of number `lane / 4`, of
each 8 columns those of numbers `lane % 4 * 2` and one more. Tiles lie in shared memory as their
factor lies in memory, so that a thread copies neighbours, and rows of tiles are as far apart as it
takes for 8 of them to be in different banks. Four warps together, where a device has that, read
larger tiles themselves, whose pieces are exchanged instead; a tile is then filled while the one
before is used. Sums that are only stored are so two neighbours at once.

>>> program = lowered("c[i, j] = sum[k](a[i, k] * b[k, j])",
...     c="f32[64, 64]", a="f16[64, 64]", b="f16[64, 64]")
>>> program = optimize(program, Target("cuda"))[0]
>>> facts = facts_of(program)
>>> found = band(program.kernels[0].body[1], facts)
>>> made = tensor_tiles(found, facts, fresh_for(program), Target("cuda", tensors=("f16",)))
>>> [space for space in made.spaces.values()]
['rows', 'shared', 'shared']
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from ....base.dataclass import dataclass
from ...analysis.parallel_band import Band, Facts, distance_of, favours, trips
from ...ir import dtypes
from ...ir.assignments import Access
from ...ir.dtypes import DType
from ...ir.expressions import Apply, Cast, Expr, Position, Read, Select
from ...ir.fresh import Fresh
from ...ir.indexing import Affine, Symbol, const, floordiv, mod, var
from ...ir.loops import Barrier, For, If, Stmt, Store
from ...ir.node import Node
from ...ir.ops import OPS
from ...ir.rewrite import substitute_expr
from ...ir.walk import reads, writes
from ...target import Target
from ..barriers import met
from ..thread_points import Made, Space
from .contraction import Contraction, contraction, points_of, started
from .shared_tiles import ACROSS, in_blocks, zero
from .tensor_cores import PIECE, chosen
from .tile_side import Side
from .vector_stores import SIZE, Neighbours, done_with, together

UNIT = 8
"""Rows and columns that a unit's blocks of sums are made of."""
ROW = 64
"""Numbers of 16 bits in a row of a tile whose pieces are exchanged."""
NOTHING = const(0)
LEAST = 16
"""With fewer rows, columns or terms most of what a unit does would be for nothing."""


def tensor_tiles(found: Band, facts: Facts, fresh: Fresh, target: Target) -> Made | None:
    """Return the kernel of a band that contracts factors of a device's types, else None."""
    types = target.tensors
    made = contraction(found) if types and not facts.exact else None
    if made is None or not made.counted or made.total.dtype is not dtypes.float32:
        return None
    if made.product is not dtypes.float32:
        return None
    factors = [_narrow(one) for one in (made.first, made.second)]
    dtype = factors[0].dtype
    if dtype is not factors[1].dtype or dtype.short not in types:
        return None
    sizes = [points_of(group) for group in (made.rows, made.columns, made.terms)]
    if any(size is not None and size < LEAST for size in sizes):
        return None
    room = target.shared_bytes if target.warpgroups else 0
    return _Tiling(replace(made, first=factors[0], second=factors[1]), dtype, room, fresh).made()


def _narrow(factor: Expr) -> Expr:
    """Return a factor before it is converted from a type of 16 bits."""
    is_half = isinstance(factor, Cast) and factor.value.dtype in (dtypes.float16, dtypes.bfloat16)
    return factor.value if isinstance(factor, Cast) and is_half else factor


@dataclass(frozen=True, slots=True)
class _Factor:
    """A factor, and the tiles that it is staged in, by turns."""

    value: Expr
    side: Side
    extent: int
    """Rows, or columns, of a tile."""
    near: Side
    """What neighbours in a tile are: terms, or rows or columns."""
    tiles: Node
    whole: bool
    """Whether neighbours of a piece are neighbours in memory, too."""

    @property
    def stages(self) -> int:
        """How many tiles there are."""
        return self.tiles.shape[0].constant or 0

    def index(
        self, tile: Affine, at: Affine, deep: Affine, by: Affine = NOTHING
    ) -> tuple[Affine, ...]:
        """Return where a row or column has a term of a tile, `by` neighbours on in its piece."""
        held = mod(tile, const(self.stages))
        near, far = (at, deep) if self.near is self.side else (deep, at)
        if self.tiles.rank == 3:
            return held, far, near + by
        if self.tiles.shape[1] == const(1):
            return held, NOTHING, far, near + by
        if any(k % UNIT for _, k in near.terms):
            return held, floordiv(near, const(ROW)), far, mod(near, const(ROW)) + by
        piece = Affine(tuple((atom, k // UNIT) for atom, k in near.terms))
        across = const(ROW // UNIT)
        return held, floordiv(piece, across), far, mod(piece, across) * UNIT + by


class _Tiling:
    """Makes the kernel of a contraction."""

    def __init__(self, what: Contraction, dtype: DType, room: int, fresh: Fresh) -> None:
        self.what, self.fresh, self.dtype = what, fresh, dtype
        self.piece = PIECE // dtype.itemsize
        self.rows = Side(what.rows, fresh, "row")
        self.columns = Side(what.columns, fresh, "column")
        self.terms = Side(what.terms, fresh, "term")
        self.y, self.x = fresh.symbol("y"), fresh.symbol("x")
        self.r, self.s = fresh.symbol("r"), fresh.symbol("s")
        sides = (what.first, self.rows), (what.second, self.columns)
        near = [self.near(value, side) for value, side in sides]
        copied = all(self.is_whole(value, one) for (value, _), one in zip(sides, near, strict=True))
        self.unit, self.high, self.broad = chosen(what, copied, dtype.itemsize, room)
        self.depth = self.unit.pieces * self.piece
        warp = self.high // self.unit.down, self.broad // self.unit.along
        self.counts = warp[0] // UNIT, 2 * (warp[1] // UNIT)
        self.shape = (self.unit.lines, ACROSS, *self.counts)
        self.total = fresh.array(f"{what.total.label}_block", self.shape, what.total.dtype)
        self.first = self.factor("first", what.first, self.rows, self.high, near[0])
        self.second = self.factor("second", what.second, self.columns, self.broad, near[1])

    def near(self, value: Expr, side: Side) -> Side:
        """Return what neighbours in a tile of a factor are: in memory, if that can be."""
        flat = (Store(Access(self.what.total, ()), value),)
        sides = sorted((self.terms, side), key=lambda one: -favours(flat, one.loops[-1].symbol))
        return next((one for one in sides if self.is_whole(value, one)), sides[0])

    def factor(self, name: str, value: Expr, side: Side, extent: int, near: Side) -> _Factor:
        """Return how a factor is staged."""
        stages, far = self.unit.stages, self.depth if near is side else extent
        size = extent if near is side else self.depth
        shape: tuple[int, ...] = (stages, far, size + (UNIT if near is side else self.piece))
        if self.unit.exchanges:
            shape = (stages, size // ROW, far, ROW)
        tiles = self.fresh.array(f"{name}_tiles", shape, self.dtype)
        return _Factor(value, side, extent, near, tiles, self.is_whole(value, near))

    def is_whole(self, value: Expr, near: Side) -> bool:
        """Whether as many neighbours as a piece has are neighbours in memory."""
        last = near.loops[-1]
        rounds = trips(last)
        fits = len(near.loops) == 1 or (rounds is not None and rounds % self.piece == 0)
        return (
            fits
            and isinstance(value, Read)
            and distance_of(value.node, value.index, last.symbol) == 1
        )

    def made(self) -> Made:
        """Return the kernel. The tiles need no other barriers: one that all have used is filled."""
        tile, ahead = var(self.terms.tile), self.unit.ahead
        steps = self.filled(tile + ahead), self.multiplied(tile)
        inner = (Barrier(ahead - 1), *(steps[::-1] if self.unit.exchanges else steps))
        loop = For(self.terms.tile, const(0), self.count, 1, inner)
        begun = [
            stmt for at in range(ahead) for stmt in (self.filled(const(at)), Barrier(ahead))
        ]  # fmt: skip
        used = {n.id for n in (*reads(self.what.rest), *writes(self.what.rest))}
        own = used & self.what.own - {self.total.id, self.what.total.id}
        tiles = (self.first.tiles.id, self.second.tiles.id)
        parts = (self.cleared(), *begun, loop, *self.settled(), self.rest(), Barrier())
        body = met(parts, frozenset((self.total.id, *tiles, *own)), True)
        sides = ((self.rows, self.high), (self.columns, self.broad))
        spaces: dict[int, Space] = {self.total.id: "rows", **dict.fromkeys(tiles, "shared")}
        return Made(
            in_blocks(self.what, sides, body, self.fresh), spaces | dict.fromkeys(own, "private")
        )

    @property
    def count(self) -> Affine:
        """How many tiles the terms make."""
        return floordiv(self.terms.size + (self.depth - 1), const(self.depth))

    def threads(self, body: tuple[Stmt, ...]) -> Stmt:
        """Return what each thread does."""
        inner = For(self.x, const(0), const(ACROSS), 1, body, "thread")
        return For(self.y, const(0), const(self.unit.lines), 1, (inner,), "thread")

    def each(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return what a thread does for each of its elements."""
        rows, columns = self.counts
        inner = For(self.s, const(0), const(columns), 1, body, "unrolled")
        return (For(self.r, const(0), const(rows), 1, (inner,), "unrolled"),)

    @property
    def place(self) -> Access:
        """The sum that a thread has for a row and a column."""
        return Access(self.total, (var(self.y), var(self.x), var(self.r), var(self.s)))

    @property
    def row(self) -> Affine:
        """The row of a tile that a thread has."""
        down = self.unit.down
        warp = floordiv(var(self.y), const(self.unit.lines // down)) * (self.high // down)
        lane = mod(var(self.y), const(2)) * 4 + floordiv(var(self.x), const(4))
        return warp + var(self.r) * UNIT + lane

    @property
    def column(self) -> Affine:
        """The column of a tile that a thread has."""
        return self.column_of(floordiv(var(self.s), const(2)), mod(var(self.s), const(2)))

    def column_of(self, pair: Affine, one: Affine) -> Affine:
        """Return the column of one of two neighbours, of which a thread has several."""
        along = self.unit.along
        warp = mod(floordiv(var(self.y), const(2)), const(along)) * (self.broad // along)
        return warp + pair * UNIT + one + mod(var(self.x), const(4)) * 2

    def cleared(self) -> Stmt:
        """Return what starts all sums."""
        value = started(self.what, self.here, self.in_range, zero(self.total))
        return self.threads(self.each((Store(self.place, value),)))

    @property
    def here(self) -> dict[Symbol, Affine]:
        """What the loops of the rows and columns are for an element of a thread."""
        row, column = self.at
        return self.rows.values(row) | self.columns.values(column)

    @property
    def at(self) -> tuple[Affine, Affine]:
        """The row and column of an element of a thread."""
        row = var(self.rows.tile) * self.high + self.row
        return row, var(self.columns.tile) * self.broad + self.column

    @property
    def in_range(self) -> list[Expr]:
        """What says that these are in range."""
        row, column = self.at
        return [*self.rows.tests(row, self.high), *self.columns.tests(column, self.broad)]

    def filled(self, tile: Affine) -> Stmt:
        """Return how threads fill tiles with those of a number, where there are any."""
        more = Apply(OPS["lt"], (Position(tile), Position(self.count)), dtypes.bool_)
        filling = (*self.pieces(self.first, tile), *self.pieces(self.second, tile))
        return self.threads((If(more, filling),))

    def pieces(self, one: _Factor, tile: Affine) -> tuple[Stmt, ...]:
        """Return how a thread fills its pieces of a tile: neighbouring threads have neighbours."""
        number = self.fresh.symbol("m")
        size = self.depth if one.near is self.terms else one.extent
        across, threads = const(size // self.piece), self.unit.lines * ACROSS
        flat = var(self.y) * ACROSS + var(self.x) + var(number) * threads
        near, far = mod(flat, across) * self.piece, floordiv(flat, across)
        at, deep = (far, near) if one.near is self.terms else (near, far)
        each: tuple[Stmt, ...]
        slow = self.element_by_element(one, tile, at, deep)
        if one.whole:
            each = self.copied(one, tile, at, deep, (slow,))
        else:
            each = (replace(slow, kind="unrolled"),)
        rounds = one.extent * self.depth // self.piece // threads
        return (For(number, const(0), const(rounds), 1, each, "unrolled"),)

    def tests(self, one: _Factor, here: Affine, term: Affine) -> list[Expr]:
        """Return what says that a row or column, and a term, are in range."""
        return [*one.side.tests(here, one.extent), *self.terms.tests(term, self.depth)]

    def element_by_element(self, one: _Factor, tile: Affine, at: Affine, deep: Affine) -> For:
        """Return how a piece is filled: with zeros where there is nothing."""
        symbol = self.fresh.symbol("e")
        place = one.index(tile, at, deep, var(symbol))
        at, deep = _moved(one, at, deep, var(symbol))
        here, term = var(one.side.tile) * one.extent + at, tile * self.depth + deep
        found = substitute_expr(one.value, one.side.values(here) | self.terms.values(term))
        for test in self.tests(one, here, term):
            found = Select(test, found, zero(one.tiles))
        stmt = Store(Access(one.tiles, place), found)
        return For(symbol, const(0), const(self.piece), 1, (stmt,))

    def copied(
        self, one: _Factor, tile: Affine, at: Affine, deep: Affine,
        other: tuple[Stmt, ...],
    ) -> tuple[Stmt, ...]:  # fmt: skip
        """Return how a piece is copied at once where all of it is in range."""
        symbol = self.fresh.symbol("e")
        here, term = var(one.side.tile) * one.extent + at, tile * self.depth + deep
        sides = (one.side, here), (self.terms, term)
        values = {
            of: value for side, at in sides
            for of, value in side.further(at, var(symbol) if side is one.near else NOTHING).items()
        }  # fmt: skip
        found = substitute_expr(one.value, values)
        stmt = Store(Access(one.tiles, one.index(tile, at, deep, var(symbol))), found)
        made = For(symbol, const(0), const(self.piece), 1, (stmt,), "packed")
        tests = self.tests(one, *_moved(one, here, term, const(self.piece - 1)))
        if not tests:
            return (made,)
        test = reduce(lambda a, b: Apply(OPS["and"], (a, b), dtypes.bool_), tests)
        return (If(test, (made,), other),)

    def multiplied(self, tile: Affine) -> Stmt:
        """Return what adds the products of two tiles to the sums."""
        deep = self.fresh.symbol("k")
        first, second = (
            self.wide(Read(one.tiles, one.index(tile, at, var(deep))))
            for one, at in ((self.first, self.row), (self.second, self.column))
        )
        total = Read(self.total, self.place.index)
        one = Store(self.place, Apply(OPS["fma"], (first, second, total), self.total.dtype))
        loop = For(deep, const(0), const(self.depth), 1, self.each((one,)), self.unit.kind)
        return self.threads((loop,))

    def settled(self) -> tuple[Stmt, ...]:
        """Return what waits for the last products, where units add them up on their own."""
        if not self.unit.exchanges:
            return ()
        same = Store(self.place, Read(self.total, self.place.index))
        (loop,) = self.each((same,))
        assert isinstance(loop, For)
        return (self.threads((replace(loop, kind="settled"),)),)

    def wide(self, value: Expr) -> Expr:
        """Return a factor in the type of the sums."""
        same = value.dtype is self.total.dtype
        return value if same else Cast(value, self.total.dtype)

    def rest(self) -> Stmt:
        """Return what is done with the sums, where they are in range."""
        rows, columns = self.counts
        if not together(self.what, self.columns):
            body = self.used(self.at[1], NOTHING, var(self.s))
            for test in self.in_range:
                body = (If(test, body),)
            return self.threads(self.each(body))
        start = var(self.columns.tile) * self.broad
        body = Neighbours(
            self.columns, self.broad, lambda group, one: start + self.column_of(group, one),
            self.used, columns // SIZE,
        ).stored(self.fresh)  # fmt: skip
        for test in self.rows.tests(self.at[0], self.high):
            body = (If(test, body),)
        return self.threads((For(self.r, const(0), const(rows), 1, body, "unrolled"),))

    def used(self, column: Affine, further: Affine, number: Affine) -> tuple[Stmt, ...]:
        """Return what is done with the sum of that number of a column, in the row `r`."""
        here = self.rows.values(self.at[0]) | self.columns.further(column, further)
        return done_with(self.what, here, (self.total, (*self.place.index[:3], number)))


def _moved(one: _Factor, at: Affine, deep: Affine, by: Affine) -> tuple[Affine, Affine]:
    """Return a place that is further along neighbours."""
    return (at + by, deep) if one.near is one.side else (at, deep + by)
