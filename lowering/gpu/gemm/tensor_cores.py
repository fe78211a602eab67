"""Tensor-core units of a device, and the tiles that a thread block gives them.

    warps        a warp: 16 rows, 8 columns; its threads load factors from shared memory themselves
    warpgroups   four warps: 64 rows, 128 or 256 columns; the unit reads tiles from shared memory

Warpgroups compute several times as fast, where a device has them; their tiles are larger, so they
need contractions that occupy all multiprocessors, and factors that are copied in 16-byte vectors.

>>> [loops for loops in (WARPS.lines, WARPGROUPS.lines)]
[8, 16]
>>> WARPGROUPS.shared_bytes(128, 256, 2)
196608
"""

from __future__ import annotations

from math import ceil

from ....base.dataclass import dataclass
from ... import thresholds
from ...ir.instructions import VECTOR_BYTES, MatrixUnit
from .contraction import Contraction, iteration_count
from .shared_tiles import tile_extents


@dataclass(frozen=True, slots=True)
class Unit:
    """The tensor-core units of a block, and their parts of a tile."""

    kind: MatrixUnit
    down: int
    """The warps of a block along the rows of a tile: the larger the part of each, the less often an
    element is loaded from shared memory."""
    along: int
    """The warps along the columns of a tile."""
    vectors: int
    """The terms of a tile in 16-byte vectors of each row and column."""
    stages: int
    """Tile buffers of each factor: some are in use while the others are filled."""
    ahead: int
    """The prefetch distance in tiles."""

    @property
    def lines(self) -> int:
        """Threads of a block along its first axis: half a warp each."""
        return 2 * self.down * self.along

    def shared_bytes(self, high: int, broad: int, itemsize: int) -> int:
        """Return the bytes of all tile buffers, without padding between rows."""
        return self.stages * (high + broad) * self.vectors * VECTOR_BYTES

    @property
    def exchanges(self) -> bool:
        """Whether tiles have the swizzled layout that the unit reads: 128 bytes a row."""
        return self.kind == "warpgroup"


WARPS = Unit("warp", 2, 2, 2, 4, 3)
WARPGROUPS = Unit("warpgroup", 8, 1, 8, 4, 2)
"""One buffer is neither read nor filled: a warpgroup may still read it while another one waits."""


def select_unit(
    gemm: Contraction, is_vector_copied: bool, itemsize: int, shared_bytes: int
) -> tuple[Unit, int, int]:
    """Return the units for a contraction, and the rows and columns of a tile.

    `is_vector_copied` says whether both factors are copied in vectors, `shared_bytes` is the shared
    memory of a block where the device has warpgroups, 0 where it has none.
    """
    rows, columns = (iteration_count(group) for group in (gemm.rows, gemm.columns))
    if is_vector_copied and itemsize == 2 and rows is not None and columns is not None:
        high, most = thresholds.WARPGROUP_TILE
        broad = most if columns > most // 2 else most // 2
        tiles = ceil(rows / high) * ceil(columns / broad) * (iteration_count(gemm.both) or 1)
        fits = WARPGROUPS.shared_bytes(high, broad, itemsize) <= shared_bytes
        if (
            fits
            and tiles >= thresholds.MIN_OCCUPYING_TILES
            and min(rows, columns) > thresholds.TILE_SIDE
        ):
            return WARPGROUPS, high, broad
    return WARPS, *tile_extents(gemm)
