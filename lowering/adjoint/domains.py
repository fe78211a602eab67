"""The points over which contributions to cotangents are summed, and the tests that restrict them.

A sum over letters that its target does not have is written for each point of the target's letters,
also where it has no terms: subscripts that are valid where there are terms need a test there.

    z[i] = sum[j < i](x[j] * w[i - 1])       if 0 < i: d_w[i - 1] += sum[j < i](d_z[i] * x[j])
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from ..ir.assignments import Access, Assign
from ..ir.expressions import Cast, Dynamic, Expr, Position, reads
from ..ir.indexing import Affine, Range, Symbol, const, var
from ..ir.walk import free_symbols
from .kept import index_symbols, upper_bound
from .rules import NotDifferentiable, apply


def not_empty(reduced: Sequence[Range], free: Sequence[Range]) -> list[Expr]:
    """Return the tests that ranges which depend on free ones are not empty, where that is not
    known."""
    tests: list[Expr] = []
    letters = {r.symbol for r in free}
    for at, r in enumerate(reduced):
        size: Affine | None = r.hi - r.lo
        for other in reversed(reduced[:at]):
            size = None if size is None else _most(size, other)
        if size is None or not size.symbols() & letters or _is_positive(size, free):
            continue
        tests.append(apply("lt", Position(const(0)), Position(size)))
    return tests


def within_axes(target: Access, free: Sequence[Range]) -> list[Expr]:
    """Return the tests that subscripts are within their axes, where that is not known."""
    tests: list[Expr] = []
    for at, extent in zip(target.index, target.node.shape, strict=True):
        here = at.value if isinstance(at, Dynamic) else Position(at)
        if isinstance(at, Dynamic) or not _is_positive(at + 1, free):
            tests.append(apply("le", _of(const(0), here), here))
        if isinstance(at, Dynamic) or not _is_positive(extent - at, free):
            tests.append(apply("lt", here, _of(extent, here)))
    return tests


def _of(index: Affine, like: Expr) -> Expr:
    """Return an index expression in the type of another expression."""
    value = Position(index)
    return value if value.dtype == like.dtype else Cast(value, like.dtype)


def _most(index: Affine, over: Range) -> Affine | None:
    return upper_bound(index, over.symbol, over.lo, over.hi - 1)


def _is_positive(index: Affine, over: Sequence[Range]) -> bool:
    """Whether an index expression is proven to be positive over ranges."""
    negative: Affine | None = -index
    for r in reversed(over):
        negative = None if negative is None else _most(negative, r)
    return negative is not None and negative.constant is not None and negative.constant < 0


def parted(tests: Sequence[Expr], over: Sequence[Range]) -> tuple[list[Expr], list[Expr]]:
    """Return the tests that may be evaluated before the symbols of ranges, and the others."""
    inner = {r.symbol for r in over}
    first = list(takewhile(lambda test: not free_symbols(test) & inner, tests))
    later = tests[len(first) :]
    first += [test for test in later if not free_symbols(test) & inner and not reads(test)]
    return first, [test for test in later if test not in first]


def by_axis(ranges: Sequence[Range], target: Access) -> tuple[Range, ...]:
    """Return ranges in the order of the axes that they are subscripts of, as the loops over an
    array are; as they are where their ends depend on each other."""
    letters = {r.symbol for r in ranges}
    if any((r.lo.symbols() | r.hi.symbols()) & letters for r in ranges):
        return tuple(ranges)
    axes: dict[Symbol, int] = {}
    for axis, at in enumerate(target.index):
        for symbol in index_symbols(at):
            axes.setdefault(symbol, axis)
    return tuple(sorted(ranges, key=lambda r: axes.get(r.symbol, len(target.index))))


def independent(
    ranges: Sequence[Range], used: set[Symbol], stmt: Assign
) -> tuple[list[Range], list[Expr]]:
    """Return ranges of which those of `used` symbols depend on each other alone, as the target's
    have to, and the tests that restrict them to the given ones."""
    out = list(ranges)
    tests: list[Expr] = []
    for at, r in enumerate(ranges):
        others = [o for o in reversed(ranges[:at]) if o.symbol not in used]
        if r.symbol not in used or not any(
            o.symbol in r.lo.symbols() | r.hi.symbols() for o in others
        ):
            continue
        lo: Affine | None = -r.lo
        hi: Affine | None = r.hi
        for other in others:
            ends = other.lo, other.hi - 1
            lo = None if lo is None else upper_bound(lo, other.symbol, *ends)
            hi = None if hi is None else upper_bound(hi, other.symbol, *ends)
        if lo is None or hi is None:
            text = "a range that depends on another one in no linear way"
            raise NotDifferentiable(text, stmt.span)
        out[at] = Range(r.symbol, -lo, hi)
        here = Position(var(r.symbol))
        tests.append(apply("le", Position(r.lo), here))
        tests.append(apply("lt", here, Position(r.hi)))
    return out, tests
