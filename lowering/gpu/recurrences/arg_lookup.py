"""Argmin and argmax that look the best term up by its position, as a search for a pivot does.

    for i: if t(i) > t(p): p = i
    becomes
    best = t(p)                              if there is an iteration at all
    for i: if t(i) > best: best = t(i); p = i

which `arg_min_max` rewrites as a reduction. Precondition: iterations that do nothing else, and a
position that may be any of the loop's values: then only the checks of the first lookup are needed.

>>> program, _ = optimize(lowered('''
... p = k
... for i in range(1, 900):
...     if abs(x[i]) > abs(x[p]):
...         p = i
... y[0] = p
... ''', y="i64[1]", x="f64[900]", k="i64"), Target("cuda"))
>>> print_loops(rewrite_arg_lookups(program, fresh_for(program)).kernels[0].body[3:])
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
from ...analysis.parallel_band import trip_count
from ...analysis.self_dependence import symbols_of
from ...analysis.subscripts import is_implied, ranges
from ...ir.assignments import Access, Let
from ...ir.expressions import Apply, Const, Expr, Position, Read, reads
from ...ir.fresh import Fresh
from ...ir.indexing import const, minimum, var
from ...ir.loops import Check, Comment, For, If, Program, Stmt, Store
from ...ir.rewrite import map_kernels, substitute_expr, with_bodies
from ...ir.walk import bodies
from .arg_min_max import MIRRORED

Body = tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class _Pivot:
    """A loop that keeps the position of the best term."""

    lookup: Let
    """The symbol of the best position so far."""
    checks: tuple[Check, ...]
    branch: If
    term: Expr
    old: Expr
    """The term at that position."""


def rewrite_arg_lookups(program: Program, fresh: Fresh) -> Program:
    """Return the program whose loops carry the best term, too, not its position alone."""

    def rewrite_body(stmts: Sequence[Stmt], outer: tuple[For, ...]) -> Body:
        return tuple(result for stmt in stmts for result in rewrite_statement(stmt, outer))

    def rewrite_statement(stmt: Stmt, outer: tuple[For, ...]) -> Body:
        loops = outer
        if isinstance(stmt, For):
            loops = (*outer, stmt)
            pivot = _match_pivot(stmt, loops)
            if pivot is not None:
                return _carry_extreme(stmt, pivot, fresh)
        lists = tuple(rewrite_body(part, loops) for part in bodies(stmt))
        return (stmt if lists == bodies(stmt) else with_bodies(stmt, lists),)

    return map_kernels(program, lambda stmts: rewrite_body(stmts, ()))


def _match_pivot(loop: For, loops: tuple[For, ...]) -> _Pivot | None:
    """Return the pivot search of a loop, None where it does anything else."""
    stmts = [stmt for stmt in loop.body if not isinstance(stmt, Comment)]
    if len(stmts) < 2 or loop.kind != "serial" or loop.step != 1:
        return None
    lookup, checks, branch = stmts[0], stmts[1:-1], stmts[-1]
    if not isinstance(lookup, Let) or not isinstance(branch, If) or branch.orelse:
        return None
    then = [stmt for stmt in branch.then if not isinstance(stmt, Comment)]
    match branch.test, lookup.value, then:
        case Apply(op, (left, right)), Read(node, ()), [
            Store(Access(target, ()), Position(at))
        ] if op.name in MIRRORED and node == target and at == var(loop.symbol):
            at_iteration = {lookup.symbol: at}
        case _:
            return None
    term, old = (left, right) if substitute_expr(right, at_iteration) == left else (right, left)
    if substitute_expr(old, at_iteration) != term or term == old or term.dtype.kind not in "iuf":
        return None
    if any(read.node == node for read in reads(term)) or lookup.symbol in symbols_of(term):
        return None
    bounds, index_checks = ranges(loops), [stmt for stmt in checks if isinstance(stmt, Check)]
    if len(index_checks) < len(checks):
        return None
    conjuncts = (
        part
        for check in index_checks
        for part in _split_conjunction(substitute_expr(check.test, at_iteration))
    )
    if not all(is_implied(part, bounds, ()) for part in conjuncts):
        return None
    return _Pivot(lookup, tuple(index_checks), branch, term, old)


def _split_conjunction(test: Expr) -> tuple[Expr, ...]:
    """Return the conjuncts of a test."""
    match test:
        case Apply(op, args, _) if op.name == "and":
            return tuple(part for operand in args for part in _split_conjunction(operand))
        case _:
            return (test,)


def _carry_extreme(loop: For, pivot: _Pivot, fresh: Fresh) -> Body:
    """Return a loop that carries the best term, after the computation of the first one."""
    store = pivot.branch.then[-1]
    assert isinstance(store, Store), "that is what was looked for"
    best = Access(fresh.scalar(f"{store.access.node.label}_best", pivot.term.dtype), ())
    start = Store(best, pivot.old, pivot.branch.span)
    once = minimum(const(1), trip_count(loop))
    first = For(fresh.symbol("first"), const(0), once, 1, (pivot.lookup, *pivot.checks, start))
    test = replace_side(pivot.branch.test, pivot.old, Read(best.node, ()))
    then = (Store(best, pivot.term, pivot.branch.span), store)
    nothing = Store(best, Const(zero_of(pivot.term.dtype), pivot.term.dtype))
    branch = replace(pivot.branch, test=test, then=then)
    return nothing, first, replace(loop, body=(branch,))


def replace_side(test: Expr, old: Expr, new: Expr) -> Expr:
    """Return a comparison with one of its sides replaced."""
    assert isinstance(test, Apply), "that is what was looked for"
    return replace(test, args=tuple(new if operand == old else operand for operand in test.args))
