"""Predicated reductions: where a test does not hold, the neutral element is added.

    for i:                              for i:
        if t[i]:                            s += x[i] if t[i] else -0.0
            s += x[i]                       n += int(t[i])
            n += 1

Precondition: a branch does nothing but update reductions in lanes and counters, costs little, and
its reads are in bounds where the test does not hold. Postcondition: each reduction is bit-identical
to that with a branch, for its terms keep their lanes.

>>> show(lambda program: mask_lanes(program, Target(schedule=True)),
...      "y[0] = x[x > 0.5].sum()", y="f32[1]", x="f32[9]")
y[0] = 0.0
for i in 0..9:
    y[0] += x[i] if x[i] > 0.5 else -0.0
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import reduce

from .. import thresholds
from ..analysis.expression_cost import cost
from ..analysis.guarded_reads import negate
from ..analysis.reductions import can_reassociate, predicate_update
from ..analysis.vectorizable import can_be_vector
from ..ir import dtypes
from ..ir.expressions import Apply, Cast, Const, Expr, Position, Read, reads, walk
from ..ir.indexing import Range
from ..ir.loops import Comment, For, If, Stmt, Store, Update
from ..ir.ops import OPS
from ..ir.walk import direct_writes, statements
from ..transform import if_convert

Body = tuple[Stmt, ...]


def predicate_sums(loop: For, domain: tuple[Range, ...]) -> For | None:
    """Return a loop whose branches only update reductions and counters, if-converted; None for
    others."""
    inside = [stmt for stmt in statements(loop.body) if not isinstance(stmt, Comment)]
    guarded = [s for s in _guarded(loop.body) if not isinstance(s, Comment)]
    updates = [stmt for stmt in guarded if not isinstance(stmt, If)]
    if not all(isinstance(stmt, If | Store | Update) for stmt in inside):
        return None
    if not any(isinstance(stmt, Update) for stmt in updates):
        return None
    terms = [term for stmt in updates if (term := _term(stmt)) is not None]
    tests = [stmt.test for stmt in guarded if isinstance(stmt, If)]
    accumulators = {node.id for stmt in updates for node in direct_writes(stmt)}
    fits = len(terms) == len(updates) and all(
        can_be_vector(if_convert.evaluate_eagerly(expr, domain))
        and if_convert.reads_in_bounds(expr, domain)
        for expr in (*terms, *tests)
    )
    is_separate = not any(
        read.node.id in accumulators for expr in (*terms, *tests) for read in reads(expr)
    )
    if (
        not fits
        or not is_separate
        or not _depend_on_data(tests)
        or sum(map(cost, terms)) > thresholds.MAX_PREDICATED_TERM_COST
    ):
        return None
    return replace(loop, body=tuple(_if_convert(loop.body, (), domain)))


def _guarded(body: Body) -> Iterator[Stmt]:
    """Yield the branches of a list of statements, and the statements inside of them."""
    for stmt in body:
        if isinstance(stmt, If):
            yield from statements((stmt,))


def _depend_on_data(tests: Iterable[Expr]) -> bool:
    """Whether tests depend on data and not on positions, by which loops can be split."""
    return all(
        reads(test) and not any(isinstance(part, Position) for part in walk(test))
        for test in tests
    )  # fmt: skip


def _term(stmt: Stmt) -> Expr | None:
    """Return the term that a statement adds to a reduction in lanes or a counter; None for
    others."""
    match stmt:
        case Update(access, op, value, None) if not access.index and op.name == "add":
            return value if _is_count(value) or _is_reduction(stmt) else None
        case Update(_, _, value, None):
            return value if _is_reduction(stmt) else None
        case Store(access, Apply(op, (Read() as old, value))) if not access.index:
            same = op.name == "add" and old.node == access.node
            return value if same and _is_count(value) else None
        case _:
            return None


def _is_reduction(stmt: Stmt) -> bool:
    """Whether a statement is a sum, product, maximum or minimum of floats in lanes."""
    if not isinstance(stmt, Update) or not stmt.over:
        return False
    return can_reassociate(stmt) and if_convert.is_number(stmt.access.node)


def _is_count(value: Expr) -> bool:
    """Whether a value is an integer one, or a test converted to an integer."""
    if value.dtype.kind not in "iu":
        return False
    return value == Const(1, value.dtype) or (
        isinstance(value, Cast) and value.value.dtype is dtypes.bool_
    )


def _if_convert(body: Body, tests: tuple[Expr, ...], domain: tuple[Range, ...]) -> Iterator[Stmt]:
    """Yield statements without branches, which add neutral elements where a test does not hold."""
    for stmt in body:
        if isinstance(stmt, If):
            test = if_convert.evaluate_eagerly(stmt.test, domain)
            yield from _if_convert(stmt.then, (*tests, test), domain)
            yield from _if_convert(stmt.orelse, (*tests, negate(test)), domain)
        elif tests and isinstance(stmt, Store | Update):
            yield _predicate(stmt, reduce(_conjunction, tests))
        else:
            yield stmt


def _conjunction(left: Expr, right: Expr) -> Expr:
    return Apply(OPS["bitand"], (left, right), dtypes.bool_)


def _predicate(stmt: Store | Update, test: Expr) -> Stmt:
    """Return a statement that adds its term where a test holds, and a neutral element elsewhere."""
    if isinstance(stmt, Store):
        assert isinstance(stmt.value, Apply), "it counts"
        old, value = stmt.value.args
        return replace(stmt, value=replace(stmt.value, args=(old, _predicate_count(value, test))))
    return (
        predicate_update(stmt, test)
        if _is_reduction(stmt)
        else replace(stmt, value=_predicate_count(stmt.value, test))
    )


def _predicate_count(value: Expr, test: Expr) -> Expr:
    """Return an integer that is the given one where a test holds, and zero elsewhere."""
    if isinstance(value, Cast):
        test = _conjunction(test, value.value)
    return Cast(test, value.dtype)
