"""How large tiles and blocks are: what registers and caches hold, with little outside of a product.

No bit depends on it. It changes nothing.

>>> from plusequals.lowering.ir.fresh import fresh_for
>>> from plusequals.lowering.schedule.contraction import contraction
>>> program = lowered("c[i, j] = sum(a[i, k] * b[k, j])", c="f32[99, 99]", a="f32[99, 99]",
...                   b="f32[99, 99]")
>>> (nest,) = [stmt for stmt in program.kernels[0].body if type(stmt).__name__ == "For"]
>>> found = sizes(contraction(nest, fresh_for(program)), Target(vector_bits=256))
>>> found.rows, found.columns, found.row_block, found.column_block, found.depth
(6, 16, 102, 112, 99)
"""

from __future__ import annotations

from math import prod

from ..target import Target
from .contraction import Contraction
from .stage import Sizes, rounds_of

DEPTH, COLUMNS, ROWS = 512, 1024, 512
"""So many terms, columns and rows are in panels at a time, at most."""
BYTES = 2048
"""So much of a row is in a panel at a time, at most: those of a tile stay in the first cache."""
SUMS = 5 << 19
"""So many bytes of sums wait for further terms at a time, at most: each thread has its own."""
SMALL = 8192
"""Nests of fewer terms than that are left as they are."""


def sizes(found: Contraction, target: Target) -> Sizes | None:
    """Return the sizes for a contraction, None where tiles would not help."""
    nest = found.nest
    bits = max(nest.acc.dtype.bits, *(part.node.dtype.bits for part in found.parts))
    lanes = target.lanes(bits)
    inner = [rounds_of(k) for k in nest.depth[1:]]
    outer, rows, columns = map(rounds_of, (nest.depth[0], found.row, found.column))
    known = [size for size in (rows, columns, outer) if size is not None]
    if lanes < 2 or None in inner or 0 in known or 0 in inner:
        return None
    terms = prod(n for n in inner if n is not None)
    if len(known) == 3 and prod(known) * terms < SMALL or 1 in (rows, columns):
        return None
    height, width = _shape(rows, columns, lanes, target.vector_registers)
    size = bits // 8
    most = max(1, min(DEPTH, BYTES // size) // terms)
    depth = most if outer is None else outer if 2 * outer <= 3 * most else _part(outer, most)
    most = _fitting(target.l2_bytes // (2 * depth * terms * size), ROWS, height)
    row_block = _shared(rows, most, height, target.threads)
    held = outer is not None and outer * terms * size * width * 8 <= target.l3_bytes
    column_depth = outer if held and outer is not None else depth
    room = target.l3_bytes // (2 * column_depth * terms * size)
    room = room if depth == outer else min(room, SUMS // (row_block * size))
    column_block = _shared(columns, _fitting(room, COLUMNS, width), width, 1)
    return Sizes(height, width, row_block, column_block, depth, column_depth, terms)


def _shape(rows: int | None, columns: int | None, lanes: int, registers: int) -> tuple[int, int]:
    """Return how many rows and columns a tile has: of those that fill the registers the one that
    covers the least outside of the product.

    >>> _shape(1024, 1024, 16, 32), _shape(257, 129, 16, 32), _shape(64, None, 8, 16)
    ((12, 32), (8, 48), (4, 24))
    """
    shapes = [(12, 2), (8, 3)] if registers >= 32 else [(6, 2), (4, 3)]

    def covered(shape: tuple[int, int]) -> int:
        height, width = shape[0], shape[1] * lanes
        return _up(rows or height, height) * _up(columns or 6 * lanes, width)

    height, vectors = min(shapes, key=covered)
    return height, vectors * lanes


def _up(count: int, unit: int) -> int:
    """Return a count in whole units."""
    return -(-count // unit) * unit


def _fitting(room: int, most: int, unit: int) -> int:
    """Return how many rows or columns a block has for which there is that much room."""
    return max(unit, min(most, room) // unit * unit)


def _shared(count: int | None, most: int, unit: int, threads: int) -> int:
    """Return the size of equal blocks of a count, in whole units: some for each thread.

    >>> _shared(1024, 504, 12, 1), _shared(1024, 504, 12, 2), _shared(None, 504, 12, 2)
    (348, 264, 252)
    """
    if count is None:
        return max(unit, most // threads // unit * unit)
    return _up(-(-count // _up(-(-count // most), threads)), unit)


def _part(count: int, most: int) -> int:
    """Return the size of equal parts of a count that are at most so large, but for the last."""
    return -(-count // -(-count // most))
