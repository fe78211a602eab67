"""Simplify: fewer operations for the same bits.

Changes expressions by the rules of `ir/algebra` and `ir/exact`, which are exact for every operand;
drops tests, checks and loops that constants or the ranges of loops decide, loops of one round,
rounds that check what the first has checked, and stores of what is there already.
Guarantees the same results, faults and prints in the same order.

>>> show(simplify, "y[i] = (x[i % 8] * 1.0 if i < 8 else 0.0) / 4.0", y="f32[8]", x="f32[8]")
for i in 0..8:
    y[i] = x[i] * 0.25
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..analysis.effects import sizes_use
from ..analysis.self_dependence import symbols_of
from ..ir import dtypes, rewrite
from ..ir.assignments import Access, Break, Continue, Let
from ..ir.bounds import Bounds, bounds_of
from ..ir.comments import headed
from ..ir.exact import simplified, simplified_index, static
from ..ir.expressions import Apply, Const, Expr, Position, Read
from ..ir.indexing import Affine
from ..ir.loops import Check, Comment, For, If, Program, Stmt, Store, Update, While
from ..ir.ops import OPS
from ..ir.rewrite import Rewrite


def simplify(program: Program) -> Program:
    """Return the program with simpler expressions, and without what they decide."""
    known = bounds_of(parameter.node for parameter in program.parameters)
    return rewrite.over_kernels(program, lambda body: _body(body, known))


def _body(body: Iterable[Stmt], known: Bounds) -> tuple[Stmt, ...]:
    out: list[Stmt | None] = []
    by = _by(known)
    for statement in body:
        out += _statement(statement, known, by) or (None,)
        match statement:
            case Check(test):  # nothing behind a check runs where it fails
                known = known.where(test)
            case Let(symbol, value):
                known = known.holding(symbol, known.value(value))
            case _:
                continue
        by = _by(known)
    return headed(out)


def _statement(statement: Stmt, known: Bounds, by: Rewrite) -> tuple[Stmt, ...]:
    """Return what is left of a statement: nothing, itself simpler, or what it surely does."""
    statement = _static(rewrite.rebuild_statement(statement, by))
    match statement:
        case For():
            return _loop(statement, known)
        case While(prelude, test, body):
            new = rewrite.with_bodies(statement, (_body(prelude, known), _body(body, known)))
            return () if not prelude and _decided(test) is False else (new,)
        case If():
            return _branch(statement, known)
        case Check(test) if _decided(test):
            return ()
        case Store(access, Read(node, index)) if node == access.node and index == access.index:
            return ()
        case _:
            return (statement,)


def _static(statement: Stmt) -> Stmt:
    """Return the statement with the subscripts of its target that read nothing made plain."""
    if not isinstance(statement, Store | Update):
        return statement
    if all(isinstance(i, Affine) for i in statement.access.index):
        return statement
    index = tuple(map(static, statement.access.index))
    return replace(statement, access=Access(statement.access.node, index))


def _loop(loop: For, known: Bounds) -> tuple[Stmt, ...]:
    """Return the loop, its body where it runs once, nothing where it does not run."""
    rounds = loop.hi - loop.lo if loop.step > 0 else loop.lo - loop.hi
    low, high = known.interval(rounds)
    if high is not None and high <= 0:
        return ()
    if low is not None and 1 <= low and high is not None and high <= abs(loop.step):
        if not any(map(_leaves, loop.body)) and not sizes_use(loop.body, frozenset({loop.symbol})):
            return _body(rewrite.substitute(loop.body, {loop.symbol: loop.lo}), known)
    body = _body(loop.body, known.inside(loop))
    if body and all(isinstance(s, Check | Comment) and _is_same(s, loop) for s in body):
        first = rewrite.substitute(body, {loop.symbol: loop.lo})
        ends = (loop.lo, loop.hi) if loop.step > 0 else (loop.hi, loop.lo)
        some = Apply(OPS["lt"], tuple(map(Position, ends)), dtypes.bool_)
        return first if low is not None and low >= 1 else (If(some, first, (), loop.span),)
    return (rewrite.with_bodies(loop, (body,)),) if body else ()


def _is_same(stmt: Check | Comment, loop: For) -> bool:
    """Whether a check asks the same in all rounds of a loop, so that only the first may fail."""
    return isinstance(stmt, Comment) or loop.symbol not in symbols_of(stmt.test)


def _branch(branch: If, known: Bounds) -> tuple[Stmt, ...]:
    decided = _decided(branch.test)
    if decided is not None:
        return _body(branch.then if decided else branch.other, known)
    then = _body(branch.then, known.where(branch.test))
    other = _body(branch.other, known.where(branch.test, False))
    return (rewrite.with_bodies(branch, (then, other)),) if then or other else ()


def _decided(test: Expr) -> bool | None:
    return bool(test.value) if isinstance(test, Const) else None


def _leaves(statement: Stmt) -> bool:
    """Whether a statement may leave the loop directly around it."""
    match statement:
        case Break() | Continue():
            return True
        case If(_, then, other):
            return any(map(_leaves, then + other))
        case _:
            return False


def _by(known: Bounds) -> Rewrite:
    """Return what simplifies the parts of the statements of a list."""
    return Rewrite(lambda expr: simplified(expr, known), lambda i: simplified_index(i, known))
