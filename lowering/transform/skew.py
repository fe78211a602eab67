"""Loop skewing and interchange: the outer loop counts wavefronts, `skew * row + column`.

    for row in a..b: for column in c..d: body
    becomes
    for front in ..: for row in ..: body, with column = front - skew * row

The bounds of the columns may depend on the row, as in triangles; every point is executed once. With
a skew of 0 the loops are interchanged. The caller has to check that the order of points is legal.

>>> i, j, k = Symbol("i", 0), Symbol("j", 1), Symbol("k", 2)
>>> rows = For(i, const(0), const(9), 1, (), "serial")
>>> print_loops((skew_loops(rows, For(j, const(0), var(i), 1, ()), 0, k),))
for k in 0..8:
    for i in max(0, k + 1)..9:
        pass
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from ..analysis.parallel_band import substitute_symbol
from ..ir.indexing import Affine, Symbol, const, extremum_operands, floordiv, maximum, minimum, var
from ..ir.loops import For


def is_linear(rows: For, columns: For) -> bool:
    """Whether each bound of columns changes by the same number from row to row."""
    row = rows.symbol
    ends = (*extremum_operands(columns.lo, "max"), *extremum_operands(columns.hi, "min"))
    return all(row not in (end - var(row) * end.coefficient(row)).symbols() for end in ends)


def skew_loops(rows: For, columns: For, skew: int, front: Symbol) -> For:
    """Return two loops in each other skewed: the outer one over wavefronts `front = skew * row +
    column`."""
    first_fronts, last_fronts = [], []
    constraints: list[tuple[int, Affine]] = []
    for end in extremum_operands(columns.lo, "max"):
        by, rest = _slope(end, rows.symbol, skew)
        first_fronts.append(rest + (rows.lo if by >= 0 else rows.hi - 1) * by)
        constraints.append((by, var(front) - rest))
    for end in extremum_operands(columns.hi, "min"):
        by, rest = _slope(end, rows.symbol, skew)
        last_fronts.append(rest + (rows.hi - 1 if by >= 0 else rows.lo) * by)
        constraints.append((-by, rest - 1 - var(front)))
    lows, highs = [rows.lo], [rows.hi]
    for by, limit in constraints:  # the rows with `by * row <= limit`
        if by > 0:
            highs.append(floordiv(limit, const(by)) + 1)
        elif by < 0:
            lows.append(floordiv(limit, const(-by)) * -1)
    column = var(front) - var(rows.symbol) * skew
    body = substitute_symbol(columns.body, columns.symbol, column)
    points = replace(rows, lo=reduce(maximum, lows), hi=reduce(minimum, highs), body=body)
    lo, hi = reduce(maximum, first_fronts), reduce(minimum, last_fronts)
    return For(front, lo, hi, 1, (points,), span=rows.span)


def _slope(end: Affine, row: Symbol, skew: int) -> tuple[int, Affine]:
    """Return by how much the front of a bound of columns changes from row to row, and the rest."""
    by = end.coefficient(row)
    return by + skew, end - var(row) * by
