"""Sums that are scattered to neighbours, as gathers: each element is updated once.

    d_x[i - 1] += a[i];  d_x[i + 1] += b[i]     for i in [1, n - 1)
    d_x[i] += (a[i + 1] if i < n - 2 else 0) + (b[i - 1] if i >= 2 else 0)     for i in [0, n)

The adjoint of a stencil adds to the same array at several distances. Shifted so that all of them
meet at one element, the sums need one pass over the array, whose guards hold but at its ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ...base.dataclass import dataclass
from ..ir import dtypes
from ..ir.assignments import Access, Assign, Statement
from ..ir.expressions import Apply, Domain, Expr, Position, Select, reads
from ..ir.indexing import Affine, Range, Symbol, var
from ..ir.ops import OPS
from ..ir.rewrite import substitute_expr
from .rules import apply, number


@dataclass(frozen=True, slots=True)
class _Sum:
    """A sum whose target's subscripts are distinct symbols and distances from them."""

    stmt: Assign
    symbols: tuple[Symbol | None, ...]
    distances: tuple[int, ...]
    fixed: tuple[Affine, ...]
    """The subscripts, without the distances."""


def gathered(stmts: Iterable[Statement]) -> list[Statement]:
    """Return statements of which sums to one array at several distances are one, at the place of
    the last of them: what the others read is computed by then.

    Precondition: they come from one statement, none of them writes again what an earlier one reads
    or writes, but for the sums, and these may be reordered.
    """
    given = list(stmts)
    found = [_sum_of(stmt) for stmt in given]
    groups: dict[object, list[int]] = {}
    for at, one in enumerate(found):
        if one is not None:
            key = one.stmt.target.node.id, one.symbols, one.fixed, one.stmt.free
            groups.setdefault(key, []).append(at)
    last = {group[-1]: [sums for n in group if (sums := found[n])] for group in groups.values()}
    out: list[Statement] = []
    for at, stmt in enumerate(given):
        if at in last:
            out += _merged(last[at])
        elif found[at] is None:
            out.append(stmt)
    return out


def _sum_of(stmt: Statement) -> _Sum | None:
    if not (isinstance(stmt, Assign) and stmt.op is OPS["add"] and not stmt.initialize):
        return None
    if stmt.pair is not None or stmt.reduced != Domain() or stmt.free.where is not None:
        return None
    if any(read.node == stmt.target.node for read in reads(stmt.value)):
        return None
    ranges = {r.symbol: r for r in stmt.free.ranges}
    symbols: list[Symbol | None] = []
    fixed: list[Affine] = []
    distances: list[int] = []
    for at in stmt.target.index:
        if not isinstance(at, Affine):
            return None
        plain = at - at.offset
        is_letter = plain.symbol in ranges
        if not is_letter and at.symbols() & ranges.keys():
            return None
        symbols.append(plain.symbol if is_letter else None)
        fixed.append(plain if is_letter else at)
        distances.append(at.offset if is_letter else 0)
    used = [symbol for symbol in symbols if symbol is not None]
    bounds = {s for r in stmt.free.ranges for s in r.lo.symbols() | r.hi.symbols()}
    if len(set(used)) < len(used) or set(used) != set(ranges) or bounds & ranges.keys():
        return None
    return _Sum(stmt, tuple(symbols), tuple(distances), tuple(fixed))


def _merged(sums: Sequence[_Sum]) -> Sequence[Statement]:
    """Return one statement for sums that differ in their distances alone."""
    if len({one.distances for one in sums}) < 2:
        return [one.stmt for one in sums]
    first = sums[0]
    lowest, highest = (
        {
            symbol: pick(one.distances[axis] for one in sums)
            for axis, symbol in enumerate(first.symbols) if symbol is not None
        }
        for pick in (min, max)
    )  # fmt: skip
    ranges = tuple(
        Range(r.symbol, r.lo + lowest[r.symbol], r.hi + highest[r.symbol])
        for r in first.stmt.free.ranges
    )
    whole: Expr | None = None
    for one in sums:
        term = _shifted(one, lowest, highest)
        whole = term if whole is None else apply("add", whole, term)
    assert whole is not None
    target = Access(first.stmt.target.node, first.fixed)
    return [replace(first.stmt, target=target, value=whole, free=Domain(ranges))]


def _shifted(one: _Sum, lowest: dict[Symbol, int], highest: dict[Symbol, int]) -> Expr:
    """Return the value of a sum at the element that it is added to, zero where there is none."""
    values: dict[Symbol, Affine] = {}
    tests: list[Expr] = []
    for axis, symbol in enumerate(one.symbols):
        if symbol is None:
            continue
        distance = one.distances[axis]
        values[symbol] = var(symbol) - distance
        (r,) = (r for r in one.stmt.free.ranges if r.symbol == symbol)
        here = Position(var(symbol))
        if distance > lowest[symbol]:
            tests.append(apply("ge", here, Position(r.lo + distance)))
        if distance < highest[symbol]:
            tests.append(apply("lt", here, Position(r.hi + distance)))
    value = substitute_expr(one.stmt.value, values)
    if not tests:
        return value
    whole = tests[0]
    for test in tests[1:]:
        whole = Apply(OPS["and"], (whole, test), dtypes.bool_)
    return Select(whole, value, number(0.0, value.dtype))
