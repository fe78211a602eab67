"""Minima and maxima in SIMD lanes, in any order, with overlapping last steps.

Changes: lanes take as many adjacent terms at a time as there are lanes; the last step ends at the
last term, and some terms are taken twice. Of equal zeros the first one is the result, which has the
sign: a loop searches for it where the result is zero.

    lane[l] = max(lane[l], x[l], x[l + L], ..., x[n - L + l])        0 <= l < L

Precondition: a loop that does nothing but find extremes (`sums`). Postcondition: bit-identical.

>>> from plusequals.lowering.cpu.reductions.lanes import vectorize_reductions
>>> show(vectorize_reductions, "y[i] = max(x[i, j])", y="f32[8]", x="f32[8, 5]")
for i in 0..8:
    y[i] = -inf
    for lane in 0..4 vector:
        y_lanes[lane] = x[i, lane]
    for lane in 0..4 vector:
        y_lanes[lane] max= x[i, lane + 1]
    for lane in 0..2 vector:
        y_lanes[lane] max= y_lanes[lane + 2]
    y_lanes[0] max= y_lanes[1]
    y_found = y_lanes[0]
    if y_found == 0.0:
        for j in 0..5:
            if x[i, j] == 0.0:
                y_found = x[i, j]
                break
    y[i] max= y_found
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from ... import thresholds
from ...analysis.reductions import upper_half
from ...ir import dtypes
from ...ir.assignments import Access, Break
from ...ir.expressions import Apply, Const, Expr, Read, rebuild
from ...ir.indexing import Affine, const, var
from ...ir.loops import For, If, Stmt, Store, Update
from ...ir.node import Node
from ...ir.ops import OPS
from ...ir.rewrite import substitute
from .lane_statements import redirect_to_lanes
from .partials import Partials

Body = tuple[Stmt, ...]


def vectorize_extremes(lanes: Partials, loop: For, updates: list[Update], most: int) -> Body:
    """Return the loops that find the extremes of a static number of terms, in at most `most` lanes;
    none where the number is dynamic or small."""
    count = (loop.hi - loop.lo).constant
    if count is None or count < thresholds.MIN_VECTOR_MIN_MAX_TERMS:
        return ()
    width = min(most, upper_half(count + 1))
    arrays = {id(update): lanes.arrays(update, 1, width)[0] for update in updates}

    def step(first: Affine, is_first: bool = False) -> Stmt:
        lane = lanes.fresh.symbol("lane")
        body = redirect_to_lanes(loop.body, arrays, lambda _: var(lane))
        body = substitute(body, {loop.symbol: first + var(lane)})
        body = tuple(map(_initialize, body)) if is_first else body
        return For(lane, const(0), const(width), 1, body, "vector", loop.span)

    out: list[Stmt] = []
    if count < 2 * width:
        out.append(step(loop.lo, is_first=True))
    else:
        out += (lanes.initialize(update, arrays[id(update)]) for update in updates)
        at = lanes.fresh.symbol(loop.symbol.name)
        whole = loop.lo + count // width * width
        out.append(For(at, loop.lo, whole, width, (step(var(at)),), span=loop.span))
    if count % width:
        out.append(step(loop.lo + count - width))
    results = (combine_extremes(lanes, loop, update, arrays[id(update)]) for update in updates)
    return (*out, *(stmt for body in results for stmt in body))


def _initialize(stmt: Stmt) -> Stmt:
    """Return a store of the first term instead of an update, where no term came before."""
    return Store(stmt.access, stmt.value, stmt.span) if isinstance(stmt, Update) else stmt


def combine_extremes(lanes: Partials, loop: For, update: Update, node: Node) -> Body:
    """Return the statements that combine the lanes, with a search for the first of equal zeros."""
    extreme = lanes.fresh.scalar(f"{update.access.node.label}_found", node.dtype)
    here, zero = Read(extreme, ()), Const(0.0, node.dtype)

    def is_zero(value: Expr) -> Expr:
        return Apply(OPS["eq"], (value, zero), dtypes.bool_)

    names = {s.access.node.id: s.value for s in loop.body if isinstance(s, Store)}
    value = _inline(update.value, names)
    take = Store(Access(extreme, ()), value, update.span)
    search = If(is_zero(value), (take, Break()), (), update.span)
    (*folds, last) = cast(tuple[Update, ...], lanes.fold_lanes(update, node))
    return (
        *folds,
        Store(Access(extreme, ()), last.value, update.span),
        If(is_zero(here), (replace(loop, body=(search,)),), (), update.span),
        replace(update, value=here, over=()),
    )


def _inline(value: Expr, names: Mapping[int, Expr]) -> Expr:
    """Return a term with the iteration's scalars replaced by their definitions."""
    if isinstance(value, Read) and not value.index and value.node.id in names:
        return _inline(names[value.node.id], names)
    return rebuild(value, lambda operand: _inline(operand, names), lambda index: index)
