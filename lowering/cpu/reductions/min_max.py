"""Greatest and least numbers in lanes: which terms they meet in which order says nothing.

Changes: lanes take as many neighbours at a time as there are lanes; the last ones are those before
the end, some of them once more. Of zeros the first one counts, which has the sign: it is looked for
where a zero was found.

    lane[l] = max(lane[l], x[l], x[l + L], ..., x[n - L + l])        0 <= l < L

Needs: a loop that does nothing but find extremes (`sums`). Guarantees: not a bit changes.

>>> from plusequals.lowering.cpu.reductions.lanes import lanes
>>> show(lanes, "y[i] = max(x[i, j])", y="f32[8]", x="f32[8, 5]")
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

from ...analysis.reductions import upper_half
from ...ir import dtypes
from ...ir.assignments import Access, Break
from ...ir.expressions import Apply, Const, Expr, Read, rebuild
from ...ir.indexing import Affine, const, var
from ...ir.loops import For, If, Stmt, Store, Update
from ...ir.node import Node
from ...ir.ops import OPS
from ...ir.rewrite import substitute
from .lane_statements import on_lanes
from .partials import Partials

Body = tuple[Stmt, ...]
FEW = 5
"""Of fewer terms the greatest is found one by one."""


def extremes(lanes: Partials, loop: For, updates: list[Update], most: int) -> Body:
    """Return what finds extremes among so many terms as a loop has, in `most` lanes or fewer;
    nothing where their number is unknown, or there are few."""
    count = (loop.hi - loop.lo).constant
    if count is None or count < FEW:
        return ()
    width = min(most, upper_half(count + 1))
    own = {id(one): lanes.arrays(one, 1, width)[0] for one in updates}

    def some(first: Affine, begins: bool = False) -> Stmt:
        lane = lanes.fresh.symbol("lane")
        body = on_lanes(loop.body, own, lambda _: var(lane))
        body = substitute(body, {loop.symbol: first + var(lane)})
        body = tuple(map(_begun, body)) if begins else body
        return For(lane, const(0), const(width), 1, body, "vector", loop.span)

    out: list[Stmt] = []
    if count < 2 * width:
        out.append(some(loop.lo, begins=True))
    else:
        out += (lanes.cleared(one, own[id(one)]) for one in updates)
        at = lanes.fresh.symbol(loop.symbol.name)
        whole = loop.lo + count // width * width
        out.append(For(at, loop.lo, whole, width, (some(var(at)),), span=loop.span))
    if count % width:
        out.append(some(loop.lo + count - width))
    found = (foremost(lanes, loop, one, own[id(one)]) for one in updates)
    return (*out, *(stmt for body in found for stmt in body))


def _begun(stmt: Stmt) -> Stmt:
    """Return what starts with the first term where nothing came before."""
    return Store(stmt.access, stmt.value, stmt.span) if isinstance(stmt, Update) else stmt


def foremost(lanes: Partials, loop: For, update: Update, node: Node) -> Body:
    """Return what puts the greatest or least of each lane together: of zeros it is the first that
    counts, which a loop has to look for."""
    found = lanes.fresh.scalar(f"{update.access.node.label}_found", node.dtype)
    here, zero = Read(found, ()), Const(0.0, node.dtype)

    def is_zero(value: Expr) -> Expr:
        return Apply(OPS["eq"], (value, zero), dtypes.bool_)

    names = {s.access.node.id: s.value for s in loop.body if isinstance(s, Store)}
    value = _inlined(update.value, names)
    taken = Store(Access(found, ()), value, update.span)
    look = If(is_zero(value), (taken, Break()), (), update.span)
    (*folds, last) = cast(tuple[Update, ...], lanes.folded(update, node))
    return (
        *folds,
        Store(Access(found, ()), last.value, update.span),
        If(is_zero(here), (replace(loop, body=(look,)),), (), update.span),
        replace(update, value=here, over=()),
    )


def _inlined(value: Expr, names: Mapping[int, Expr]) -> Expr:
    """Return a term of nothing that a round gives a name."""
    if isinstance(value, Read) and not value.index and value.node.id in names:
        return _inlined(names[value.node.id], names)
    return rebuild(value, lambda one: _inlined(one, names), lambda index: index)
