"""Which elements of a tile exist: tests that are zero or more for each, where not all rows have all
columns, as in a triangle. It changes nothing.

>>> from plusequals.lowering.ir.indexing import const, var
>>> from plusequals.lowering.ir.loops import For
>>> i, j = Symbol("i", 0), Symbol("j", 1)
>>> axes = [Axis((For(s, const(0), const(99), 1, ()),), (size,), (24,), size)
...         for s, size in ((i, 6), (j, 8))]
>>> at = [(axis, (var(s),)) for axis, s in zip(axes, (i, j))]
>>> lower = var(i) - var(j)
>>> reached([lower], at, 1), reached([lower], at, -1), reached([lower], at, 1, of_block=True)
([i - j + 5], [i - j - 7], [i - j + 23])
>>> reached([lower], [(axis, (const(n),)) for n, axis in enumerate(axes)], 1)
[]
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from ...ir import dtypes
from ...ir.expressions import Apply, Expr, Position
from ...ir.indexing import Affine, Symbol, substitute
from ...ir.ops import OPS
from .axes import At, Axis


def reached(
    tests: Sequence[Affine], starts: Sequence[tuple[Axis, At]], sign: int, of_block: bool = False
) -> list[Affine]:
    """Return tests where they are greatest (sign 1) or least in the tile, or the block, that starts
    there; those that hold in all of them are left out."""
    ends: dict[Symbol, tuple[Affine, int]] = {}
    for axis, at in starts:
        counts = axis.block if of_block else axis.box
        for loop, start, count in zip(axis.loops, at, counts, strict=True):
            ends[loop.symbol] = start, count - 1
    found: list[Affine] = []
    for test in tests:
        last = {s for s in ends if (test.coefficient(s) > 0) == (sign > 0)}
        values = {s: at + (more if s in last else 0) for s, (at, more) in ends.items()}
        found.append(substitute(test, values))
    return [one for one in found if one.constant is None or one.constant < 0]


def every(tests: Sequence[Affine]) -> Expr:
    """Return whether all of these are zero or more."""
    found: list[Expr] = []
    for test in tests:
        above = Affine(tuple((atom, k) for atom, k in test.terms if k > 0), max(test.offset, 0))
        found.append(Apply(OPS["le"], (Position(above - test), Position(above)), dtypes.bool_))
    return reduce(lambda one, other: Apply(OPS["and"], (one, other), dtypes.bool_), found)
