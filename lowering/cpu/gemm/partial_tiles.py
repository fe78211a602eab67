"""Bounds of affine tests over tiles and blocks, where not all elements exist, as in a triangle.

An element exists where all tests, affine in its row and column, are zero or more. Analysis only.

>>> from plusequals.lowering.ir.indexing import const, var
>>> from plusequals.lowering.ir.loops import For
>>> i, j = Symbol("i", 0), Symbol("j", 1)
>>> axes = [Axis((For(s, const(0), const(99), 1, ()),), (size,), (24,), size)
...         for s, size in ((i, 6), (j, 8))]
>>> at = [(axis, (var(s),)) for axis, s in zip(axes, (i, j))]
>>> lower = var(i) - var(j)
>>> tile_bounds([lower], at, 1), tile_bounds([lower], at, -1)
([i - j + 5], [i - j - 7])
>>> tile_bounds([lower], at, 1, of_block=True)
[i - j + 23]
>>> tile_bounds([lower], [(axis, (const(n),)) for n, axis in enumerate(axes)], 1)
[]
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from ...ir import dtypes
from ...ir.expressions import Apply, Expr, Position
from ...ir.indexing import Affine, Symbol, substitute
from ...ir.ops import OPS
from .axes import Axis, Point


def tile_bounds(
    tests: Sequence[Affine], starts: Sequence[tuple[Axis, Point]], sign: int, of_block: bool = False
) -> list[Affine]:
    """Return the maxima (sign 1) or minima of tests over the tile, or the block, that starts there,
    without those that hold in all of it."""
    ends: dict[Symbol, tuple[Affine, int]] = {}
    for axis, at in starts:
        counts = axis.block if of_block else axis.box
        for loop, start, count in zip(axis.loops, at, counts, strict=True):
            ends[loop.symbol] = start, count - 1
    bounds: list[Affine] = []
    for test in tests:
        last = {s for s in ends if (test.coefficient(s) > 0) == (sign > 0)}
        values = {s: at + (extent if s in last else 0) for s, (at, extent) in ends.items()}
        bounds.append(substitute(test, values))
    return [bound for bound in bounds if bound.constant is None or bound.constant < 0]


def all_nonnegative(tests: Sequence[Affine]) -> Expr:
    """Return whether all expressions are zero or more."""
    conditions: list[Expr] = []
    for test in tests:
        bound = Affine(tuple((atom, k) for atom, k in test.terms if k > 0), max(test.offset, 0))
        conditions.append(Apply(OPS["le"], (Position(bound - test), Position(bound)), dtypes.bool_))
    return reduce(lambda left, right: Apply(OPS["and"], (left, right), dtypes.bool_), conditions)
