"""Loops that keep the greatest and the least by one test or the other: each by itself.

    for i: if x[i] > hi: hi = x[i] elif x[i] < lo: lo = x[i]
    becomes
    since = 0
    for i: if not hi < lo: break; the same; since = i + 1
    for i: if i >= since: if x[i] > hi: hi = x[i]
           if i >= since: if x[i] < lo: lo = x[i]

Where `hi` is not less than `lo` no term is beyond both, and they never come to be less again. Until
then, which is the first round where both start with a term, and few later where they start with
infinities, rounds are done in their order. Needs rounds that do nothing else.

>>> program, _ = optimize(lowered('''
... hi = x[0]
... lo = x[0]
... for i in range(len(x)):
...     if x[i] > hi:
...         hi = x[i]
...     elif x[i] < lo:
...         lo = x[i]
... y[0] = hi - lo
... ''', y="f32[1]", x="f32[900]"), Target("cuda"))
>>> made = sided(program.kernels[0].body, facts_of(program), fresh_for(program))
>>> print_loops(tuple(stmt for stmt in made if isinstance(stmt, For)))
for i in 0..900:
    if not hi < lo:
        break
    if x[i] > hi:
        # hi = x[i]
        hi = x[i]
    elif x[i] < lo:
        # lo = x[i]
        lo = x[i]
    since = i + 1
for i in 0..900:
    if i >= since:
        if x[i] > hi:
            # hi = x[i]
            hi = x[i]
        if x[i] < lo:
            # lo = x[i]
            lo = x[i]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...analysis.guarded_reads import negated
from ...analysis.linear_iteration import Numbered, numbered
from ...analysis.parallel_band import Facts, around, nest_of
from ...ir import dtypes
from ...ir.assignments import Access, Break
from ...ir.expressions import Apply, Const, Expr, Position, Read
from ...ir.fresh import Fresh
from ...ir.indexing import substitute, var
from ...ir.loops import Comment, For, If, Stmt, Store
from ...ir.ops import OPS
from ...ir.rewrite import rename, with_bodies
from ...ir.walk import binds, bodies, statements, writes
from .arg_min_max import MIRRORED, First, first_of, is_bare

Body = tuple[Stmt, ...]
Loops = tuple[For, ...]


def sided(body: Body, facts: Facts, fresh: Fresh) -> Body:
    """Return statements in which loops keep each of two extremes by a test of its own."""
    return tuple(made for stmt in body for made in _apart(stmt, facts, fresh))


def _apart(stmt: Stmt, facts: Facts, fresh: Fresh) -> Body:
    """Return what takes the place of a statement: itself where it keeps no two extremes."""
    if isinstance(stmt, For):
        loops, body = nest_of(stmt)
        order = numbered(loops)
        serial = all(loop.kind == "serial" for loop in loops)
        found = [pair for one in body if isinstance(one, If) and (pair := _pair(one, loops, body))]
        if len(found) == 1 and order is not None and serial:
            kept = found[0][0].kept | found[0][1].kept
            if is_bare(loops, body, kept, facts):
                return _made(order, body, found[0], kept, fresh)
    return (with_bodies(stmt, tuple(sided(part, facts, fresh) for part in bodies(stmt))),)


def _pair(stmt: If, loops: Loops, body: Body) -> tuple[First, First] | None:
    """Return the branches that keep the greatest and the least of one term, None for others."""
    bound = frozenset(s for one in (*loops, *statements(body)) for s in binds(one))
    others = [one for one in stmt.other if not isinstance(one, Comment)]
    if len(others) != 1 or not isinstance(others[0], If):
        return None
    one, two = first_of(replace(stmt, other=()), bound), first_of(others[0], bound)
    if one is None or two is None or one.term != two.term or one.kept & two.kept:
        return None
    return (one, two) if MIRRORED[one.test][0] == two.test[0] else None


def _made(
    order: Numbered, body: Body, pair: tuple[First, First], kept: frozenset[int], fresh: Fresh
) -> Body:
    """Return the loop that goes on until no term is beyond both, and the one for all others."""
    one, two = pair
    since = fresh.scalar("since", dtypes.int64)
    crossed = _crossed(one, two)
    over = (If(negated(crossed), (Break(),)),)
    first = _copied(order.loops, body, kept, fresh)
    start = numbered(first[0])
    assert start is not None, "copies are numbered as what they are copies of"
    made: Body = (*over, *first[1], Store(Access(since, ()), Position(start.number + 1)))
    for loop in reversed(first[0]):
        made = (replace(loop, body=made), *(over if loop is not first[0][0] else ()))
    is_later = Apply(OPS["ge"], (Position(order.number), Read(since, ())), dtypes.bool_)
    later = If(is_later, (one.branch, two.branch))
    whole = next(stmt for stmt in body if isinstance(stmt, If) and stmt.then is one.branch.then)
    rest = tuple(later if stmt is whole else stmt for stmt in body)
    return (Store(Access(since, ()), Const(0, dtypes.int64)), *made, *around(order.loops, rest))


def _crossed(one: First, two: First) -> Expr:
    """Return whether there are numbers that both branches take."""
    best = (Read(one.best.node, one.best.index), Read(two.best.node, two.best.index))
    name = "le" if one.test in ("ge", "le") and two.test in ("ge", "le") else "lt"
    if one.test in ("lt", "le"):
        best = best[::-1]
    return Apply(OPS[name], best, dtypes.bool_)


def _copied(
    loops: Sequence[For], body: Body, kept: frozenset[int], fresh: Fresh
) -> tuple[Loops, Body]:
    """Return a nest with names and temporaries of its own."""
    copies = {node.id: fresh.like(node) for node in writes(body) if node.id not in kept}
    inside = (*loops, *statements(body))
    names = {symbol: fresh.symbol(symbol.name) for stmt in inside for symbol in binds(stmt)}
    values = {old: var(new) for old, new in names.items()}
    made = tuple(
        replace(loop, symbol=names[loop.symbol], lo=substitute(loop.lo, values),
                hi=substitute(loop.hi, values), body=())
        for loop in loops
    )  # fmt: skip
    return made, rename(body, names, copies)
