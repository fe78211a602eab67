"""The rows or the columns of a product: loops of which a tile has a box, and a block several tiles.

    for i in 0..7, for j in 0..16:   lanes 16 i + j                  all rows, as one axis
    box (2, 16)                      two i, all j: 32 lanes a tile
    block (4, 16)                    four i, all j: two tiles

Inside of the loop that is cut all are whole, outside of it one round at a time is taken: so a tile
is a nest of plain loops, and what lies side by side stays that. This changes nothing.

>>> loops = [For(Symbol(name, n), const(0), const(size), 1, ())
...          for n, (name, size) in enumerate((("i", 7), ("j", 16)))]
>>> axis = Axis(tuple(loops), (2, 16), (4, 16), 32)
>>> axis.room, axis.cut, axis.is_even
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
At = tuple[Affine, ...]
"""A round of each loop of an axis."""


@dataclass(frozen=True, slots=True)
class Axis:
    """All rows, or all columns, and how they are cut."""

    loops: tuple[For, ...]
    """Lanes count them like digits, the last one fastest; what is unknown before is outermost."""
    box: tuple[int, ...]
    """How many rounds of each are in a tile."""
    block: tuple[int, ...]
    """How many of them are in a block."""
    lanes: int
    """What a tile has room for."""

    @property
    def count(self) -> int:
        """How many lanes of a full tile are rows or columns."""
        return prod(self.box)

    @property
    def room(self) -> int:
        """What a block has room for."""
        return prod(self.tiles_of(n) for n in range(len(self.loops))) * self.lanes

    @property
    def cut(self) -> int:
        """The loop of which a tile may have fewer rounds than others."""
        uneven = [n for n, one in enumerate(self.loops) if _left(one, self.box[n]) != 0]
        return uneven[0] if uneven else len(self.loops) - 1

    @property
    def is_even(self) -> bool:
        """Whether all tiles are full."""
        return all(_left(one, size) == 0 for one, size in zip(self.loops, self.box, strict=True))

    def tiles_of(self, number: int) -> int:
        """Return how many tiles a block has along a loop."""
        return -(-self.block[number] // self.box[number])

    def lane(self, at: At) -> Affine:
        """Return the number of a lane, given the round in its box of each loop."""
        lane, stride = const(0), 1
        for one, size in reversed(list(zip(at, self.box, strict=True))):
            lane += one * stride
            stride *= size
        return lane

    def digits(self, lane: Affine) -> At:
        """Return the round in its box of each loop, given the number of a lane."""
        out: list[Affine] = []
        size = 1
        for n in reversed(range(len(self.loops))):
            digit = floordiv(lane, const(size))
            size *= self.box[n]
            whole = size >= self.count
            digit = const(0) if self.box[n] == 1 and len(self.loops) > 1 else digit
            out.insert(0, digit if whole else mod(digit, const(self.box[n])))
        return tuple(out)

    def before(self, at: At, block: At) -> Affine:
        """Return how many lanes the tiles of a block have before one."""
        total, stride = const(0), self.lanes
        for n in reversed(range(len(self.loops))):
            gap, size = at[n] - block[n], self.box[n]
            exact = stride % size == 0
            total += gap * (stride // size) if exact else floordiv(gap, const(size)) * stride
            stride *= self.tiles_of(n)
        return total

    def end(self, block: At) -> At:
        """Return where a block ends."""
        return tuple(
            lo + size if _left(one, size) == 0 else minimum(lo + size, one.hi)
            for one, lo, size in zip(self.loops, block, self.block, strict=True)
        )

    def width(self, at: At) -> At:
        """Return how many rounds of each loop the tile has that starts there."""
        return tuple(
            const(size) if _left(one, size) == 0 else minimum(const(size), one.hi - lo)
            for one, lo, size in zip(self.loops, at, self.box, strict=True)
        )

    def inside(self, at: At) -> At:
        """Return where the tile starts that has the lanes of one, but is full: further up, where
        there are not as many rounds left as a tile has."""
        n = self.cut
        return (*at[:n], minimum(at[n], self.loops[n].hi - self.box[n]), *at[n + 1 :])

    def placed(self, at: At, lanes: At) -> dict[Symbol, Affine]:
        """Return the round of each loop that a lane of a tile has."""
        every = zip(self.loops, at, lanes, strict=True)
        return {loop.symbol: start + lane for loop, start, lane in every}

    def blocks(self, fresh: Fresh, made: Callable[[At], Body]) -> Body:
        """Return the loops over blocks, those with the most rounds outermost."""
        lo, hi = tuple(one.lo for one in self.loops), tuple(one.hi for one in self.loops)

        def rounds(number: int) -> int:
            known = rounds_of(self.loops[number])
            return -(-(1 << 30 if known is None else known) // self.block[number])

        order = sorted(range(len(self.loops)), key=rounds, reverse=True)
        return self.nested(fresh, (lo, hi, self.block), order, made)

    def tiles(self, fresh: Fresh, block: At, made: Callable[[At], Body]) -> Body:
        """Return the loops over the tiles of a block."""
        return self.parts(fresh, block, self.box, made)

    def parts(
        self, fresh: Fresh, block: At, size: tuple[int, ...], made: Callable[[At], Body]
    ) -> Body:
        """Return the loops over parts of a block, of so many rounds of each loop."""
        bounds = block, self.end(block), size
        return self.nested(fresh, bounds, range(len(self.loops)), made)

    def nested(
        self, fresh: Fresh, bounds: tuple[At, At, tuple[int, ...]],
        order: Sequence[int], made: Callable[[At], Body],
    ) -> Body:  # fmt: skip
        """Return the loops in steps, in an order; `bounds` are those of each, and its step."""
        lows, highs, steps = bounds

        def level(order: Sequence[int], at: Mapping[int, Affine]) -> Body:
            if not order:
                return made(tuple(at[n] for n in range(len(self.loops))))
            first, *others = order

            def inner(one: Affine) -> Body:
                return level(others, {**at, first: one})

            symbol = self.loops[first].symbol
            return over(fresh, symbol, lows[first], highs[first], steps[first], inner)

        return level(order, {})

    def elements(
        self, fresh: Fresh, label: str, counts: At, made: Callable[[At], Body],
        last: LoopKind = "serial",
    ) -> Body:  # fmt: skip
        """Return the loops over so many rounds of the box of a tile, of that name or their own."""
        names = [fresh.symbol(label or loop.symbol.name) for loop in self.loops]
        short = [count.constant == 1 and len(counts) > 1 for count in counts]
        at = tuple(const(0) if one else var(name) for one, name in zip(short, names, strict=True))
        body, kind = made(at), last
        for n in reversed(range(len(counts))):
            if not short[n]:
                body = (For(names[n], const(0), counts[n], 1, body, kind, self.loops[n].span),)
            kind = "serial"
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


def _left(loop: For, size: int) -> int | None:
    """Return how many rounds of a loop are left when it is cut, None where that is not known."""
    rounds = rounds_of(loop)
    return 0 if size == 1 else None if rounds is None else rounds % size
