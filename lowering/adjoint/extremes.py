"""Positions of maxima and minima, without searches where another axis is contiguous.

    m[j], m_at[j] = argmax[r](x[r, j])      m[j] = max[r](x[r, j])
                                            m_at[j] = min[r](r if x[r, j] is m[j] else no position)

A search goes from element to element, and so do updates of the elements of windows, of which it is
not known that they are all different. Of few points each has a test and an update of its own:

    m[h, c], m_at[h, c] =                   m[h, c] = max[r in range(2)](x[2*h + r, c])
        argmax[r in range(2)]               m_at[h, c] = 0 if x[2*h, c] is m[h, c] else 1
            (x[2*h + r, c])                 d_x[2*h, c] += d_m[h, c] if m_at[h, c] == 0 else 0
                                            d_x[2*h + 1, c] += d_m[h, c] if m_at[h, c] == 1 else 0

All of this runs along the contiguous axis, in vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod

import numpy as np

from ..ir import dtypes
from ..ir.assignments import Access, Assign, Statement
from ..ir.expressions import Apply, Const, Domain, Expr, Position, Read, Select
from ..ir.indexing import Affine, Symbol, const, substitute
from ..ir.ops import OPS, PAIR_OPS
from ..ir.rewrite import substitute_expr
from ..ir.walk import free_symbols
from .rules import apply, number

MOST = 16
"""The largest number of points: each is compared, and has a statement of its own."""
Point = Mapping[Symbol, Affine]


def points_of(stmt: Assign) -> list[Point] | None:
    """Return the points of a maximum or minimum, in the order in which the first one wins; None
    where they are many, or another axis is not contiguous."""
    limits = [(r.lo.constant, r.hi.constant) for r in stmt.reduced.ranges]
    ranges = [range(lo, hi) for lo, hi in limits if lo is not None and hi is not None]
    if not _is_across(stmt) or len(ranges) < len(limits):
        return None
    if not 1 < prod(map(len, ranges)) <= MOST:
        return None
    symbols = [r.symbol for r in stmt.reduced.ranges]
    return [dict(zip(symbols, map(const, at), strict=True)) for at in product(*ranges)]


def _is_across(stmt: Assign) -> bool:
    """Whether a statement is the maximum or minimum of elements of an array, with its position,
    and these do not follow each other along the last axis."""
    value, target = stmt.value, stmt.target
    if stmt.pair is None or not stmt.initialize or stmt.reduced.where is not None:
        return False
    if not isinstance(value, Read) or value.node == target.node or not value.index:
        return False
    if value.dtype != target.node.dtype or value.dtype.kind != "f":
        return False
    if not all(isinstance(at, Affine) for at in (*value.index, *target.index)):
        return False
    symbols = {r.symbol for r in stmt.reduced.ranges}
    last = free_symbols(Read(value.node, value.index[-1:]))
    return symbols <= free_symbols(value) and bool(last) and last.isdisjoint(symbols)


def positioned(stmt: Assign) -> tuple[Assign, ...]:
    """Return a statement as it is; a maximum or minimum across the last axis without its position,
    then what finds this: the first element that it is, or the first that is no number."""
    if stmt.pair is None or not _is_across(stmt):
        return (stmt,)
    op = OPS["max" if stmt.op == PAIR_OPS["argmax"] else "min"]
    best = Read(stmt.target.node, stmt.target.index)
    found, points = stmt.pair.access, points_of(stmt)
    first = replace(stmt, op=op, pair=None)
    if points is None:
        none = Const(int(np.iinfo(np.int64).max), found.node.dtype)
        at = Select(_is_it(stmt.value, best), Position(stmt.pair.position), none)
        return first, replace(first, target=found, op=OPS["min"], value=at)
    value: Expr = _number(stmt, points[-1])
    for point in reversed(points[:-1]):
        here = substitute_expr(stmt.value, point)
        value = Select(_is_it(here, best), _number(stmt, point), value)
    return first, Assign(found, None, False, value, stmt.free, span=stmt.span)


def _is_it(here: Expr, best: Expr) -> Expr:
    return Apply(OPS["or"], (apply("eq", here, best), apply("ne", here, here)), dtypes.bool_)


def _number(stmt: Assign, point: Point) -> Const:
    """Return the position of a point, in the type of the array that has it."""
    assert stmt.pair is not None, "it has a position"
    at = substitute(stmt.pair.position, point).constant
    assert at is not None, "its ranges are known"
    return Const(at, stmt.pair.access.node.dtype)


def at_points(
    sums: Iterable[Statement], stmt: Assign, found: Expr, points: Sequence[Point]
) -> list[Statement]:
    """Return sums over all points of windows as statements for a point each, whose terms are zero
    where the position is another one."""
    symbols = {r.symbol for r in stmt.reduced.ranges}
    out: list[Statement] = []
    for one in sums:
        assert isinstance(one, Assign) and not one.reduced.ranges, "all letters are subscripts"
        ranges = tuple(r for r in one.free.ranges if r.symbol not in symbols)
        for point in points:
            where = None if one.free.where is None else substitute_expr(one.free.where, point)
            value = substitute_expr(one.value, point)
            zero = number(0.0, value.dtype)
            chosen = Select(apply("eq", found, _number(stmt, point)), value, zero)
            element = substitute_expr(Read(one.target.node, one.target.index), point)
            assert isinstance(element, Read), "an element stays one"
            target, free = Access(element.node, element.index), Domain(ranges, where)
            out.append(replace(one, target=target, value=chosen, free=free))
    return out


def at_position(stmt: Assign, value: Expr, found: Expr, points: Sequence[Point]) -> Assign:
    """Return the assignment of another value of the same points, at the position of the best."""
    whole = substitute_expr(value, points[-1])
    for point in reversed(points[:-1]):
        here = apply("eq", found, _number(stmt, point))
        whole = Select(here, substitute_expr(value, point), whole)
    return replace(stmt, op=None, initialize=False, pair=None, reduced=Domain(), value=whole)
