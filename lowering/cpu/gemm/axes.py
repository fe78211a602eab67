"""Tiled and blocked axes of a matrix product: its rows, or its columns, as loops.

    for i in 0..7, for j in 0..16:   lanes 16 i + j                  all rows, as one axis
    box (2, 16)                      two i, all j: 32 lanes a tile
    block (4, 16)                    four i, all j: two tiles

Loops inside of the one that is split are whole, of those outside of it a tile has one iteration: so
a tile is a nest of plain loops, and unit strides are kept. Analysis only.

>>> loops = [For(Symbol(name, n), const(0), const(size), 1, ())
...          for n, (name, size) in enumerate((("i", 7), ("j", 16)))]
>>> axis = Axis(tuple(loops), (2, 16), (4, 16), 32)
>>> axis.block_lanes, axis.partial_loop, axis.is_even
(64, 0, False)
>>> axis.digits(const(20))
(1, 4)
>>> i, j = var(Symbol("i", 8)), var(Symbol("j", 9))
>>> axis.lane((i, j)), axis.before((i, const(0)), (const(4), const(0)))
(16*i + j, 16*i - 64)
>>> axis.width((i, const(0)))
(min(-i + 7, 2), 16)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from ....base.dataclass import dataclass
from ...ir.fresh import Fresh
from ...ir.indexing import Affine, Symbol, const, floordiv, minimum, mod, var
from ...ir.loops import For, LoopKind, Stmt

Body = tuple[Stmt, ...]
Point = tuple[Affine, ...]
"""The value of each loop's index variable, or an offset along each loop."""


@dataclass(frozen=True, slots=True)
class Axis:
    """All rows, or all columns, with the sizes of their tiles and blocks."""

    loops: tuple[For, ...]
    """Lanes number them like digits, the last one fastest; a loop of dynamic size is outermost."""
    box: tuple[int, ...]
    """How many iterations of each loop a tile has."""
    block: tuple[int, ...]
    """How many iterations of each loop a block has."""
    lanes: int
    """The lanes of a tile, padding included."""

    @property
    def count(self) -> int:
        """The lanes of a full tile that are rows or columns."""
        return prod(self.box)

    @property
    def block_lanes(self) -> int:
        """The lanes of all tiles of a block."""
        return prod(self.tiles_of(n) for n in range(len(self.loops))) * self.lanes

    @property
    def partial_loop(self) -> int:
        """The loop whose last tile may be partial."""
        uneven = [n for n, loop in enumerate(self.loops) if _remainder(loop, self.box[n]) != 0]
        return uneven[0] if uneven else len(self.loops) - 1

    @property
    def is_even(self) -> bool:
        """Whether all tiles are full."""
        return all(
            _remainder(loop, size) == 0 for loop, size in zip(self.loops, self.box, strict=True)
        )

    def tiles_of(self, number: int) -> int:
        """Return how many tiles a block has along a loop."""
        return -(-self.block[number] // self.box[number])

    def lane(self, at: Point) -> Affine:
        """Return the number of a lane, given its offset in the box along each loop."""
        lane, stride = const(0), 1
        for offset, size in reversed(list(zip(at, self.box, strict=True))):
            lane += offset * stride
            stride *= size
        return lane

    def digits(self, lane: Affine) -> Point:
        """Return the offset in the box along each loop, given the number of a lane."""
        out: list[Affine] = []
        size = 1
        for n in reversed(range(len(self.loops))):
            digit = floordiv(lane, const(size))
            size *= self.box[n]
            is_outermost = size >= self.count
            digit = const(0) if self.box[n] == 1 and len(self.loops) > 1 else digit
            out.insert(0, digit if is_outermost else mod(digit, const(self.box[n])))
        return tuple(out)

    def before(self, at: Point, block: Point) -> Affine:
        """Return how many lanes the tiles of a block have before the one at `at`."""
        total, stride = const(0), self.lanes
        for n in reversed(range(len(self.loops))):
            gap, size = at[n] - block[n], self.box[n]
            is_exact = stride % size == 0
            total += gap * (stride // size) if is_exact else floordiv(gap, const(size)) * stride
            stride *= self.tiles_of(n)
        return total

    def end(self, block: Point) -> Point:
        """Return where a block ends."""
        return tuple(
            lo + size if _remainder(loop, size) == 0 else minimum(lo + size, loop.hi)
            for loop, lo, size in zip(self.loops, block, self.block, strict=True)
        )

    def width(self, at: Point) -> Point:
        """Return how many iterations of each loop the tile has that starts there."""
        return tuple(
            const(size) if _remainder(loop, size) == 0 else minimum(const(size), loop.hi - lo)
            for loop, lo, size in zip(self.loops, at, self.box, strict=True)
        )

    def inside(self, at: Point) -> Point:
        """Return where the tile starts that has the lanes of one, but is full: it is shifted up
        where fewer iterations remain than a tile has."""
        n = self.partial_loop
        return (*at[:n], minimum(at[n], self.loops[n].hi - self.box[n]), *at[n + 1 :])

    def placed(self, at: Point, lanes: Point) -> dict[Symbol, Affine]:
        """Return the value of each loop's index variable for a lane of a tile."""
        offsets = zip(self.loops, at, lanes, strict=True)
        return {loop.symbol: start + lane for loop, start, lane in offsets}

    def blocks(self, fresh: Fresh, build: Callable[[Point], Body]) -> Body:
        """Return the loops over blocks, those with the most iterations outermost."""
        lo, hi = tuple(loop.lo for loop in self.loops), tuple(loop.hi for loop in self.loops)

        def block_count(number: int) -> int:
            trip_count = trip_count_of(self.loops[number])
            return -(-(1 << 30 if trip_count is None else trip_count) // self.block[number])

        order = sorted(range(len(self.loops)), key=block_count, reverse=True)
        return self.nest_loops(fresh, (lo, hi, self.block), order, build)

    def tiles(self, fresh: Fresh, block: Point, build: Callable[[Point], Body]) -> Body:
        """Return the loops over the tiles of a block."""
        return self.parts(fresh, block, self.box, build)

    def parts(
        self, fresh: Fresh, block: Point, size: tuple[int, ...], build: Callable[[Point], Body]
    ) -> Body:
        """Return the loops over parts of a block, of so many iterations of each loop."""
        bounds = block, self.end(block), size
        return self.nest_loops(fresh, bounds, range(len(self.loops)), build)

    def nest_loops(
        self, fresh: Fresh, bounds: tuple[Point, Point, tuple[int, ...]],
        order: Sequence[int], build: Callable[[Point], Body],
    ) -> Body:  # fmt: skip
        """Return strided loops, nested in an order; `bounds` are the beginning, end and step of
        each."""
        lows, highs, steps = bounds

        def level(order: Sequence[int], at: Mapping[int, Affine]) -> Body:
            if not order:
                return build(tuple(at[n] for n in range(len(self.loops))))
            first, *others = order

            def inner(start: Affine) -> Body:
                return level(others, {**at, first: start})

            symbol = self.loops[first].symbol
            return strided_loop(fresh, symbol, lows[first], highs[first], steps[first], inner)

        return level(order, {})

    def elements(
        self, fresh: Fresh, label: str, counts: Point, build: Callable[[Point], Body],
        last: LoopKind = "serial",
    ) -> Body:  # fmt: skip
        """Return the loops over so many iterations of the box of a tile, named `label` or like the
        axis's loops."""
        names = [fresh.symbol(label or loop.symbol.name) for loop in self.loops]
        is_single = [count.constant == 1 and len(counts) > 1 for count in counts]
        at = tuple(
            const(0) if single else var(name) for single, name in zip(is_single, names, strict=True)
        )
        body, kind = build(at), last
        for n in reversed(range(len(counts))):
            if not is_single[n]:
                body = (For(names[n], const(0), counts[n], 1, body, kind, self.loops[n].span),)
            kind = "serial"
        return body


def trip_count_of(loop: For) -> int | None:
    """Return the trip count of a loop; None where it is dynamic."""
    trip_count = (loop.hi - loop.lo).constant
    return None if trip_count is None else max(0, trip_count)


def strided_loop(
    fresh: Fresh, name: Symbol, lo: Affine, hi: Affine, step: int, build: Callable[[Affine], Body]
) -> Body:
    """Return a strided loop; of a single iteration its body."""
    extent = (hi - lo).constant
    if extent is not None and extent <= step:
        return build(lo) if extent > 0 else ()
    symbol = fresh.symbol(name.name)
    return (For(symbol, lo, hi, step, build(var(symbol))),)


def _remainder(loop: For, size: int) -> int | None:
    """Return the remainder of a loop's trip count; None where it is dynamic."""
    trip_count = trip_count_of(loop)
    return 0 if size == 1 else None if trip_count is None else trip_count % size
