"""What multiplies blocks of elements on a device, and which tiles a block of threads gives it.

    warps        a warp: 16 rows, 8 columns; its threads read factors from shared memory themselves
    warpgroups   four warps: 64 rows, 128 or 256 columns; the unit reads tiles from shared memory

Warpgroups compute several times as fast, where a device has them; their tiles are larger, so they
need products that give all multiprocessors some, and factors whose pieces can be copied at once.

>>> [loops for loops in (WARPS.lines, WARPGROUPS.lines)]
[8, 16]
>>> WARPGROUPS.shared_bytes(128, 256, 2)
196608
"""

from __future__ import annotations

from math import ceil

from ....base.dataclass import dataclass
from ...ir.loops import LoopKind
from .contraction import SIDE, Contraction, points_of
from .shared_tiles import ENOUGH, extents

PIECE = 16
"""Bytes that a thread copies at once."""
WIDE = 128, 256
"""Rows and columns of a tile of warpgroups; half the columns where there are no more."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Units of a block, and what they have of a tile."""

    kind: LoopKind
    """How the loop runs that adds up products."""
    down: int
    """The warps of a block along the rows of a tile: the larger the part of each, the less often a
    number is read from shared memory."""
    along: int
    """Those along its columns."""
    pieces: int
    """So many pieces of 16 bytes are the terms that a tile has of each row and column."""
    stages: int
    """Tiles of each factor: some are used, the others are filled meanwhile."""
    ahead: int
    """So many tiles are filled before they are used."""

    @property
    def lines(self) -> int:
        """Threads of a block along its first axis: half a warp each."""
        return 2 * self.down * self.along

    def shared_bytes(self, high: int, broad: int, itemsize: int) -> int:
        """Return what tiles of so many rows and columns take, without what lies between rows."""
        return self.stages * (high + broad) * self.pieces * PIECE

    @property
    def exchanges(self) -> bool:
        """Whether tiles have their pieces exchanged, as a unit reads them: 128 bytes a row."""
        return self.kind == "warpgroup"


WARPS = Unit("tensor", 2, 2, 2, 4, 3)
WARPGROUPS = Unit("warpgroup", 8, 1, 8, 4, 2)
"""Tiles that one group still reads while another waits are not filled: one is neither."""


def chosen(what: Contraction, copied: bool, itemsize: int, room: int) -> tuple[Unit, int, int]:
    """Return the units for a contraction, and how many rows and columns a tile has.

    `copied` says whether both factors are copied in pieces, `room` how many bytes the threads of
    a block may share where there are warpgroups, 0 where there are none.
    """
    rows, columns = (points_of(group) for group in (what.rows, what.columns))
    if copied and itemsize == 2 and rows is not None and columns is not None:
        high, broad = WIDE[0], WIDE[1] if columns > WIDE[1] // 2 else WIDE[1] // 2
        tiles = ceil(rows / high) * ceil(columns / broad) * (points_of(what.both) or 1)
        fits = WARPGROUPS.shared_bytes(high, broad, itemsize) <= room
        if fits and tiles >= ENOUGH and min(rows, columns) > SIDE:
            return WARPGROUPS, high, broad
    return WARPS, *extents(what)
