"""Split-k contractions: with few tiles and many terms, partial sums over chunks of the terms.

    for i, j: total = start[i, j]; for k in 0..K: total += a[i, k] * b[k, j]; rest
    becomes
    for g in 0..G: for i, j: part = 0; for k in 0..K/G: part += a[i, g*K/G + k] * b[g*K/G + k, j]
                             parts[g, i, j] = part
    for i, j: total = start[i, j]; for g in 0..G: total += parts[g, i, j]; rest

The first nest is a contraction with as many tiles as occupy a device, see `shared_tiles`, of the
larger size where few splits suffice for that; the second has independent points. G depends on sizes
only, so results are bit-identical on every device. Precondition: sums that are reassociable, or
exact in any order.

>>> program = lowered("c[i, j] = sum[k](a[i, k] * b[k, j])",
...     c="f32[64, 64]", a="f32[64, 4096]", b="f32[4096, 64]")
>>> program = optimize(program, Target("cuda"))[0]
>>> facts = facts_of(program)
>>> nest = find_band(program.kernels[0].body[1], facts)
>>> first, second = split_terms(nest, facts, fresh_for(program))
>>> (first.hi - first.lo).constant
16
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from ... import thresholds
from ...analysis.accumulators import is_reassociable, neutral_element
from ...analysis.parallel_band import (
    Band,
    Facts,
    nest_loops,
    perfect_nest,
    static_trip_count,
    substitute_symbol,
)
from ...ir.assignments import Access
from ...ir.expressions import Index, Read
from ...ir.fresh import Fresh
from ...ir.indexing import Symbol, const, var
from ...ir.loops import Comment, For, Stmt, Store, Update
from ...ir.node import Node
from ...ir.ops import OPS
from ...transform.remap import Element, remap_accesses
from .contraction import Contraction, iteration_count, match_contraction
from .shared_tiles import tile_extents


def split_terms(nest: Band, facts: Facts, fresh: Fresh) -> tuple[For, For] | None:
    """Return the nest of the partial sums and that of their combination; None without a gain."""
    gemm = match_contraction(nest)
    if gemm is None or not is_reassociable(
        OPS["add"], gemm.total.dtype, facts.exact or not gemm.counted
    ):
        return None
    count = count_splits(gemm)
    if count < 2:
        return None
    split, combine_split = fresh.symbol("part"), fresh.symbol("part")
    partial = fresh.scalar(f"{gemm.total.label}_part", gemm.total.dtype)
    shape = (count, *(static_trip_count(loop) or 0 for loop in nest.free))
    partials = fresh.array(f"{gemm.total.label}_parts", shape, gemm.total.dtype)
    position = tuple(var(loop.symbol) - loop.lo for loop in nest.free)
    (at,) = (n for n, stmt in enumerate(nest.inner) if isinstance(stmt, For))

    def redirect(node: Node, index: tuple[Index, ...]) -> Element:
        return (partial, ()) if node == gemm.total else (node, index)

    comments = tuple(stmt for stmt in nest.inner[:at] if isinstance(stmt, Comment))
    body = (
        *comments,
        Store(Access(partial, ()), neutral_element(OPS["add"], partial.dtype)),
        *remap_accesses(_terms_of_split(nest.inner[at], count, split, fresh), redirect),
        Store(Access(partials, (var(split), *position)), Read(partial, ())),
    )
    first = For(split, const(0), const(count), 1, nest_loops(nest.free, body))
    add = Update(
        Access(gemm.total, ()), OPS["add"], Read(partials, (var(combine_split), *position))
    )
    combine = For(combine_split, const(0), const(count), 1, (add,))
    (second,) = nest_loops(nest.free, (*nest.inner[:at], combine, *nest.inner[at + 1 :]))
    assert isinstance(second, For)
    facts.tell((first,), frozenset((partial.id,)))
    facts.tell((second,), nest.private)
    return first, second


def count_splits(gemm: Contraction) -> int:
    """Return the number of splits of equal size: 1 where there are enough tiles."""
    sizes = [iteration_count(group) for group in (gemm.rows, gemm.columns, gemm.both, gemm.terms)]
    first = static_trip_count(gemm.terms[0])
    if None in sizes or first is None:
        return 1
    rows, columns, both, terms = (size or 0 for size in sizes)
    high, broad = tile_extents(gemm)
    if (
        min(high, broad) == thresholds.TILE_SIDE < min(rows, columns)
        and gemm.total.dtype.bits <= 32
    ):
        least = ceil(thresholds.MIN_LARGE_TILE_ELEMENTS / (rows * columns * both))
        most = min(
            thresholds.MAX_LARGE_TILE_SPLITS, terms // thresholds.MIN_LARGE_TILE_SPLIT_TERMS, first
        )
        larger = next((count for count in range(least, most + 1) if first % count == 0), 1)
        if larger > 1:
            return larger
    tiles = max(1, ceil(rows / high) * ceil(columns / broad) * both)
    most = min(thresholds.MIN_OCCUPYING_TILES // tiles, terms // thresholds.MIN_SPLIT_TERMS, first)
    return next((count for count in range(most, 1, -1) if first % count == 0), 1)


def _terms_of_split(loop: Stmt, count: int, split: Symbol, fresh: Fresh) -> tuple[Stmt, ...]:
    """Return the loop over the terms of a split."""
    assert isinstance(loop, For)
    (first, *others), inner = perfect_nest(loop)
    size = (static_trip_count(first) or 0) // count
    symbol = fresh.symbol(first.symbol.name)
    value = first.lo + var(split) * size + var(symbol)
    body = substitute_symbol(nest_loops(others, inner), first.symbol, value)
    return (replace(first, symbol=symbol, lo=const(0), hi=const(size), body=body),)
