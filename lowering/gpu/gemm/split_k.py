"""Contractions with few tiles and many terms: their terms in parts, for all of a device.

    for i, j: total = start[i, j]; for k in 0..K: total += a[i, k] * b[k, j]; rest
    becomes
    for g in 0..G: for i, j: part = 0; for k in 0..K/G: part += a[i, g*K/G + k] * b[g*K/G + k, j]
                             parts[g, i, j] = part
    for i, j: total = start[i, j]; for g in 0..G: total += parts[g, i, j]; rest

The first nest is a contraction with as many tiles as a device has work for, see `device_tiles`, of
the larger size where few parts suffice for that; the second has independent points. G depends on
sizes only, so every device gives the same bits. Needs sums whose order is left open, or that are
exact in any.

>>> program = lowered("c[i, j] = sum[k](a[i, k] * b[k, j])",
...     c="f32[64, 64]", a="f32[64, 4096]", b="f32[4096, 64]")
>>> program = optimize(program, Target("cuda"))[0]
>>> facts = facts_of(program)
>>> first, second = divided(band(program.kernels[0].body[1], facts), facts, fresh_for(program))
>>> (first.hi - first.lo).constant
16
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from ...analysis.accumulators import is_apart, neutral
from ...analysis.parallel_band import Band, Facts, around, nest_of, trips, with_value
from ...ir.assignments import Access
from ...ir.expressions import Index, Read
from ...ir.fresh import Fresh
from ...ir.indexing import Symbol, const, var
from ...ir.loops import Comment, For, Stmt, Store, Update
from ...ir.node import Node
from ...ir.ops import OPS
from ...transform.remap import Place, elsewhere
from .contraction import SIDE, Contraction, contraction, points_of
from .shared_tiles import ENOUGH, LARGE, extents

TERMS = 256
"""A part has at least so many terms."""
FEW, LONG = 8, 512
"""Into at most so many parts, of at least so many terms, it is worth while to cut what would else
have small tiles: large ones compute twice as fast, and each part is written and read once."""


def divided(found: Band, facts: Facts, fresh: Fresh) -> tuple[For, For] | None:
    """Return the nest of the parts and that of what is done with them; None where it is no gain."""
    what = contraction(found)
    if what is None or not is_apart(OPS["add"], what.total.dtype, facts.exact or not what.counted):
        return None
    count = parts_of(what)
    if count < 2:
        return None
    group, other = fresh.symbol("part"), fresh.symbol("part")
    part = fresh.scalar(f"{what.total.label}_part", what.total.dtype)
    shape = (count, *(trips(loop) or 0 for loop in found.free))
    parts = fresh.array(f"{what.total.label}_parts", shape, what.total.dtype)
    places = tuple(var(loop.symbol) - loop.lo for loop in found.free)
    (at,) = (n for n, stmt in enumerate(found.inner) if isinstance(stmt, For))

    def moved(node: Node, index: tuple[Index, ...]) -> Place:
        return (part, ()) if node == what.total else (node, index)

    comments = tuple(stmt for stmt in found.inner[:at] if isinstance(stmt, Comment))
    body = (
        *comments,
        Store(Access(part, ()), neutral(OPS["add"], part.dtype)),
        *elsewhere(_some(found.inner[at], count, group, fresh), moved),
        Store(Access(parts, (var(group), *places)), Read(part, ())),
    )
    first = For(group, const(0), const(count), 1, around(found.free, body))
    add = Update(Access(what.total, ()), OPS["add"], Read(parts, (var(other), *places)))
    whole = For(other, const(0), const(count), 1, (add,))
    (second,) = around(found.free, (*found.inner[:at], whole, *found.inner[at + 1 :]))
    assert isinstance(second, For)
    facts.tell((first,), frozenset((part.id,)))
    facts.tell((second,), found.private)
    return first, second


def parts_of(what: Contraction) -> int:
    """Return into how many parts of the same size terms are cut: 1 where there are enough tiles."""
    sizes = [points_of(group) for group in (what.rows, what.columns, what.both, what.terms)]
    first = trips(what.terms[0])
    if None in sizes or first is None:
        return 1
    rows, columns, both, terms = (size or 0 for size in sizes)
    high, broad = extents(what)
    if min(high, broad) == SIDE < min(rows, columns) and what.total.dtype.bits <= 32:
        least = ceil(LARGE / (rows * columns * both))
        most = min(FEW, terms // LONG, first)
        larger = next((count for count in range(least, most + 1) if first % count == 0), 1)
        if larger > 1:
            return larger
    tiles = max(1, ceil(rows / high) * ceil(columns / broad) * both)
    most = min(ENOUGH // tiles, terms // TERMS, first)
    return next((count for count in range(most, 1, -1) if first % count == 0), 1)


def _some(loop: Stmt, count: int, group: Symbol, fresh: Fresh) -> tuple[Stmt, ...]:
    """Return the loop over the terms of a part of that number."""
    assert isinstance(loop, For)
    (first, *others), inner = nest_of(loop)
    size = (trips(first) or 0) // count
    symbol = fresh.symbol(first.symbol.name)
    value = first.lo + var(group) * size + var(symbol)
    body = with_value(around(others, inner), first.symbol, value)
    return (replace(first, symbol=symbol, lo=const(0), hi=const(size), body=body),)
