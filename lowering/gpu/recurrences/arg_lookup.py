"""Loops that look for the place of the first best term, and look the best one up by it, as pivots.

    for i: if t(i) > t(p): p = i
    becomes
    best = t(p)                              where there is a round at all
    for i: if t(i) > best: best = t(i); p = i

which `firsts` makes a reduction of. Needs rounds that do nothing else, and a place that any of
their numbers may be: then what is checked of it need be only of the first one.

>>> program, _ = optimize(lowered('''
... p = k
... for i in range(1, 900):
...     if abs(x[i]) > abs(x[p]):
...         p = i
... y[0] = p
... ''', y="i64[1]", x="f64[900]", k="i64"), Target("cuda"))
>>> print_loops(pivots(program, fresh_for(program)).kernels[0].body[3:])
p_best = 0.0
for first in 0..1:
    let at = p
    check 0 <= at and at < 900 else CdIndexError('CD0601',
            'index {0} is out of range for axis 0 of `x` with size {1}', at, 900)
    p_best = abs(x[at])
for i in 1..900:
    if abs(x[i]) > p_best:
        p_best = abs(x[i])
        p = i
# y[0] = p
y[0] = p
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....base.dataclass import dataclass
from ...analysis.accumulators import zero_of
from ...analysis.parallel_band import rounds_of
from ...analysis.self_dependence import symbols_of
from ...analysis.subscripts import holds, ranges
from ...ir.assignments import Access, Let
from ...ir.expressions import Apply, Const, Expr, Position, Read, reads
from ...ir.fresh import Fresh
from ...ir.indexing import const, minimum, var
from ...ir.loops import Check, Comment, For, If, Program, Stmt, Store
from ...ir.rewrite import over_kernels, substitute_expr, with_bodies
from ...ir.walk import bodies
from .arg_min_max import MIRRORED

Body = tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class _Pivot:
    """What a loop looks for."""

    place: Let
    """The name of the best place so far."""
    checks: tuple[Check, ...]
    branch: If
    term: Expr
    old: Expr
    """The term at that place."""


def pivots(program: Program, fresh: Fresh) -> Program:
    """Return the program whose loops keep the best term that they look for, not its place alone."""

    def body(stmts: Sequence[Stmt], outer: tuple[For, ...]) -> Body:
        return tuple(made for stmt in stmts for made in statement(stmt, outer))

    def statement(stmt: Stmt, outer: tuple[For, ...]) -> Body:
        inside = outer
        if isinstance(stmt, For):
            inside = (*outer, stmt)
            found = _found(stmt, inside)
            if found is not None:
                return _kept(stmt, found, fresh)
        lists = tuple(body(part, inside) for part in bodies(stmt))
        return (stmt if lists == bodies(stmt) else with_bodies(stmt, lists),)

    return over_kernels(program, lambda stmts: body(stmts, ()))


def _found(loop: For, around: tuple[For, ...]) -> _Pivot | None:
    """Return what a loop looks for, None where it does anything else."""
    plain = [stmt for stmt in loop.body if not isinstance(stmt, Comment)]
    if len(plain) < 2 or loop.kind != "serial" or loop.step != 1:
        return None
    place, checks, branch = plain[0], plain[1:-1], plain[-1]
    if not isinstance(place, Let) or not isinstance(branch, If) or branch.other:
        return None
    then = [stmt for stmt in branch.then if not isinstance(stmt, Comment)]
    match branch.test, place.value, then:
        case Apply(op, (one, other)), Read(node, ()), [Store(Access(kept, ()), Position(at))] if (
            op.name in MIRRORED and node == kept and at == var(loop.symbol)
        ):
            here = {place.symbol: at}
        case _:
            return None
    term, old = (one, other) if substitute_expr(other, here) == one else (other, one)
    if substitute_expr(old, here) != term or term == old or term.dtype.kind not in "iuf":
        return None
    if any(read.node == node for read in reads(term)) or place.symbol in symbols_of(term):
        return None
    known, tests = ranges(around), [stmt for stmt in checks if isinstance(stmt, Check)]
    if len(tests) < len(checks):
        return None
    wanted = (part for one in tests for part in _parts(substitute_expr(one.test, here)))
    if not all(holds(part, known, ()) for part in wanted):
        return None
    return _Pivot(place, tuple(tests), branch, term, old)


def _parts(test: Expr) -> tuple[Expr, ...]:
    """Return the tests that all have to hold for one to hold."""
    match test:
        case Apply(op, args, _) if op.name == "and":
            return tuple(part for one in args for part in _parts(one))
        case _:
            return (test,)


def _kept(loop: For, found: _Pivot, fresh: Fresh) -> Body:
    """Return a loop that keeps the best term, behind what finds the first one."""
    kept = found.branch.then[-1]
    assert isinstance(kept, Store), "that is what was looked for"
    best = Access(fresh.scalar(f"{kept.access.node.label}_best", found.term.dtype), ())
    start = Store(best, found.old, found.branch.span)
    once = minimum(const(1), rounds_of(loop))
    first = For(fresh.symbol("first"), const(0), once, 1, (found.place, *found.checks, start))
    test = rewritten(found.branch.test, found.old, Read(best.node, ()))
    then = (Store(best, found.term, found.branch.span), kept)
    nothing = Store(best, Const(zero_of(found.term.dtype), found.term.dtype))
    branch = replace(found.branch, test=test, then=then)
    return nothing, first, replace(loop, body=(branch,))


def rewritten(test: Expr, old: Expr, new: Expr) -> Expr:
    """Return a comparison with another value in the place of one of its sides."""
    assert isinstance(test, Apply), "that is what was looked for"
    return replace(test, args=tuple(new if one == old else one for one in test.args))
