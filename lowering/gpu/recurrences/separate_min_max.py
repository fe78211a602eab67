"""Minimum and maximum kept by one `if`/`elif`, separated into two independent recurrences.

    for i: if x[i] > hi: hi = x[i] elif x[i] < lo: lo = x[i]
    becomes
    since = 0
    for i: if not hi < lo: break; the same; since = i + 1
    for i: if i >= since: if x[i] > hi: hi = x[i]
           if i >= since: if x[i] < lo: lo = x[i]

Where `hi` is not less than `lo` no term is beyond both, and it never becomes less again. Until then
the iterations are executed in order: one where both start with a term, and few where they start
with infinities. Precondition: iterations that do nothing else.

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
>>> separated = separate_extremes(program.kernels[0].body, facts_of(program), fresh_for(program))
>>> print_loops(tuple(stmt for stmt in separated if isinstance(stmt, For)))
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

from ...analysis.guarded_reads import negate
from ...analysis.linear_iteration import LinearIterations, linearize
from ...analysis.parallel_band import Facts, nest_loops, perfect_nest
from ...ir import dtypes
from ...ir.assignments import Access, Break
from ...ir.expressions import Apply, Const, Expr, Position, Read, reads
from ...ir.fresh import Fresh
from ...ir.indexing import substitute, var
from ...ir.loops import Comment, For, If, Stmt, Store
from ...ir.ops import OPS
from ...ir.rewrite import rename, with_bodies
from ...ir.walk import binds, bodies, statements, writes
from .arg_min_max import MIRRORED, ExtremeBranch, has_only_effect, match_extreme

Body = tuple[Stmt, ...]
Loops = tuple[For, ...]


def separate_extremes(body: Body, facts: Facts, fresh: Fresh) -> Body:
    """Return statements in which loops keep each of two extremes by a test of its own."""
    return tuple(rewritten for stmt in body for rewritten in _rewrite_statement(stmt, facts, fresh))


def _rewrite_statement(stmt: Stmt, facts: Facts, fresh: Fresh) -> Body:
    """Return the rewritten statement, or itself where it does not keep two extremes."""
    if isinstance(stmt, For):
        loops, body = perfect_nest(stmt)
        numbering = linearize(loops)
        is_serial = all(loop.kind == "serial" for loop in loops)
        pairs = [
            pair
            for nested in body
            if isinstance(nested, If) and (pair := _match_pair(nested, loops, body))
        ]
        if len(pairs) == 1 and numbering is not None and is_serial:
            targets = pairs[0][0].written | pairs[0][1].written
            if has_only_effect(loops, body, targets, facts):
                return _build_loops(numbering, body, pairs[0], targets, fresh)
    return (
        with_bodies(stmt, tuple(separate_extremes(part, facts, fresh) for part in bodies(stmt))),
    )


def _match_pair(stmt: If, loops: Loops, body: Body) -> tuple[ExtremeBranch, ExtremeBranch] | None:
    """Return the branches that keep the maximum and the minimum of one term, None for others."""
    bound = frozenset(s for nested in (*loops, *statements(body)) for s in binds(nested))
    others = [nested for nested in stmt.orelse if not isinstance(nested, Comment)]
    if len(others) != 1 or not isinstance(others[0], If):
        return None
    upper, lower = match_extreme(replace(stmt, orelse=()), bound), match_extreme(others[0], bound)
    if upper is None or lower is None or upper.term != lower.term or upper.written & lower.written:
        return None
    targets = upper.written | lower.written
    rest = tuple(nested for nested in body if nested is not stmt)
    if any(node.id in targets for node in writes(rest)):
        return None  # a value that is written elsewhere may be less again
    if any(read.node.id in targets for read in reads(upper.term)):
        return None  # the second test would see another term
    return (upper, lower) if MIRRORED[upper.test][0] == lower.test[0] else None


def _build_loops(
    numbering: LinearIterations,
    body: Body,
    pair: tuple[ExtremeBranch, ExtremeBranch],
    targets: frozenset[int],
    fresh: Fresh,
) -> Body:
    """Return the loop that runs until no term is beyond both, and the one for all other terms."""
    upper, lower = pair
    since = fresh.scalar("since", dtypes.int64)
    can_overlap = _overlap_test(upper, lower)
    exit_ = (If(negate(can_overlap), (Break(),)),)
    copy = _copy_nest(numbering.loops, body, targets, fresh)
    copy_numbering = linearize(copy[0])
    assert copy_numbering is not None, "copies are numbered as what they are copies of"
    first_nest: Body = (
        *exit_,
        *copy[1],
        Store(Access(since, ()), Position(copy_numbering.number + 1)),
    )
    for loop in reversed(copy[0]):
        first_nest = (replace(loop, body=first_nest), *(exit_ if loop is not copy[0][0] else ()))
    is_later = Apply(OPS["ge"], (Position(numbering.number), Read(since, ())), dtypes.bool_)
    branches = If(is_later, (upper.branch, lower.branch))
    original = next(
        stmt for stmt in body if isinstance(stmt, If) and stmt.then is upper.branch.then
    )
    rest = tuple(branches if stmt is original else stmt for stmt in body)
    return (
        Store(Access(since, ()), Const(0, dtypes.int64)),
        *first_nest,
        *nest_loops(numbering.loops, rest),
    )


def _overlap_test(upper: ExtremeBranch, lower: ExtremeBranch) -> Expr:
    """Return the test whether there are terms that both branches take."""
    best = (Read(upper.best.node, upper.best.index), Read(lower.best.node, lower.best.index))
    name = "le" if upper.test in ("ge", "le") and lower.test in ("ge", "le") else "lt"
    if upper.test in ("lt", "le"):
        best = best[::-1]
    return Apply(OPS[name], best, dtypes.bool_)


def _copy_nest(
    loops: Sequence[For], body: Body, targets: frozenset[int], fresh: Fresh
) -> tuple[Loops, Body]:
    """Return a copy of a nest with symbols and temporaries of its own."""
    copies = {node.id: fresh.like(node) for node in writes(body) if node.id not in targets}
    stmts = (*loops, *statements(body))
    names = {symbol: fresh.symbol(symbol.name) for stmt in stmts for symbol in binds(stmt)}
    values = {old: var(new) for old, new in names.items()}
    loops_copy = tuple(
        replace(loop, symbol=names[loop.symbol], lo=substitute(loop.lo, values),
                hi=substitute(loop.hi, values), body=())
        for loop in loops
    )  # fmt: skip
    return loops_copy, rename(body, names, copies)
