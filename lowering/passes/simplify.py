"""Algebraic simplification and constant folding, with range facts; bit-identical.

Changes expressions by the rules of `ir/algebra` and `ir/exact`, which are exact for every operand;
removes tests, checks and loops that constants or the ranges of loops decide, loops of one
iteration, iterations that repeat the check of the first, and stores of a value to where it was
read. Postcondition: the same results, faults and prints in the same order.

>>> show(simplify, "y[i] = (x[i % 8] * 1.0 if i < 8 else 0.0) / 4.0", y="f32[8]", x="f32[8]")
for i in 0..8:
    y[i] = x[i] * 0.25
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..analysis.effects import alloc_sizes_use
from ..analysis.self_dependence import symbols_of
from ..ir import dtypes, rewrite
from ..ir.assignments import Access, Break, Continue, Let
from ..ir.bounds import Bounds, bounds_of
from ..ir.comments import drop_removed
from ..ir.exact import as_static, simplify_expr, simplify_index
from ..ir.expressions import Apply, Const, Expr, Position, Read
from ..ir.indexing import Affine
from ..ir.loops import Check, Comment, For, If, Program, Stmt, Store, Update, While
from ..ir.ops import OPS
from ..ir.rewrite import Rewrite


def simplify(program: Program) -> Program:
    """Return the program with simplified expressions, and without statements that they decide."""
    bounds = bounds_of(parameter.node for parameter in program.parameters)
    return rewrite.map_kernels(program, lambda body: _simplify_body(body, bounds))


def _simplify_body(body: Iterable[Stmt], bounds: Bounds) -> tuple[Stmt, ...]:
    out: list[Stmt | None] = []
    by = _rewrite_under(bounds)
    for statement in body:
        out += _simplify_statement(statement, bounds, by) or (None,)
        match statement:
            case Check(test):  # nothing after a check runs where it fails
                bounds = bounds.where(test)
            case Let(symbol, value):
                bounds = bounds.with_interval(symbol, bounds.value(value))
            case _:
                continue
        by = _rewrite_under(bounds)
    return drop_removed(out)


def _simplify_statement(statement: Stmt, bounds: Bounds, by: Rewrite) -> tuple[Stmt, ...]:
    """Return what is left of a statement: nothing, itself simplified, or what it surely does."""
    statement = _with_affine_target(rewrite.rebuild_statement(statement, by))
    match statement:
        case For():
            return _simplify_loop(statement, bounds)
        case While(prelude, test, body):
            new = rewrite.with_bodies(
                statement, (_simplify_body(prelude, bounds), _simplify_body(body, bounds))
            )
            return () if not prelude and _constant_truth(test) is False else (new,)
        case If():
            return _simplify_branch(statement, bounds)
        case Check(test) if _constant_truth(test):
            return ()
        case Store(access, Read(node, index)) if node == access.node and index == access.index:
            return ()
        case _:
            return (statement,)


def _with_affine_target(statement: Stmt) -> Stmt:
    """Return the statement with the subscripts of its target that read nothing as affine ones."""
    if not isinstance(statement, Store | Update):
        return statement
    if all(isinstance(i, Affine) for i in statement.access.index):
        return statement
    index = tuple(map(as_static, statement.access.index))
    return replace(statement, access=Access(statement.access.node, index))


def _simplify_loop(loop: For, bounds: Bounds) -> tuple[Stmt, ...]:
    """Return the loop, its body where it runs once, nothing where it does not run."""
    trip_count = loop.hi - loop.lo if loop.step > 0 else loop.lo - loop.hi
    low, high = bounds.interval(trip_count)
    if high is not None and high <= 0:
        return ()
    if low is not None and 1 <= low and high is not None and high <= abs(loop.step):
        if not any(map(_has_jump, loop.body)) and not alloc_sizes_use(
            loop.body, frozenset({loop.symbol})
        ):
            return _simplify_body(rewrite.substitute(loop.body, {loop.symbol: loop.lo}), bounds)
    body = _simplify_body(loop.body, bounds.inside(loop))
    if body and all(isinstance(s, Check | Comment) and _is_invariant_check(s, loop) for s in body):
        first = rewrite.substitute(body, {loop.symbol: loop.lo})
        ends = (loop.lo, loop.hi) if loop.step > 0 else (loop.hi, loop.lo)
        is_not_empty = Apply(OPS["lt"], tuple(map(Position, ends)), dtypes.bool_)
        return first if low is not None and low >= 1 else (If(is_not_empty, first, (), loop.span),)
    return (rewrite.with_bodies(loop, (body,)),) if body else ()


def _is_invariant_check(stmt: Check | Comment, loop: For) -> bool:
    """Whether a check is loop-invariant, so that only the first iteration may fail."""
    return isinstance(stmt, Comment) or loop.symbol not in symbols_of(stmt.test)


def _simplify_branch(branch: If, bounds: Bounds) -> tuple[Stmt, ...]:
    decided = _constant_truth(branch.test)
    if decided is not None:
        return _simplify_body(branch.then if decided else branch.orelse, bounds)
    then = _simplify_body(branch.then, bounds.where(branch.test))
    orelse = _simplify_body(branch.orelse, bounds.where(branch.test, False))
    return (rewrite.with_bodies(branch, (then, orelse)),) if then or orelse else ()


def _constant_truth(test: Expr) -> bool | None:
    return bool(test.value) if isinstance(test, Const) else None


def _has_jump(statement: Stmt) -> bool:
    """Whether a statement may jump out of the loop directly around it."""
    match statement:
        case Break() | Continue():
            return True
        case If(_, then, orelse):
            return any(map(_has_jump, then + orelse))
        case _:
            return False


def _rewrite_under(bounds: Bounds) -> Rewrite:
    """Return the rewriting of expressions and subscripts under the facts of a list of
    statements."""
    return Rewrite(lambda expr: simplify_expr(expr, bounds), lambda i: simplify_index(i, bounds))
