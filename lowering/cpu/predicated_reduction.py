"""Sums under a test: where it does not hold, they add what changes no sum.

    for i:                              for i:
        if t[i]:                            s += x[i] if t[i] else -0.0
            s += x[i]                       n += int(t[i])
            n += 1

Needs: what a test guards does nothing but add up in lanes and count, costs little, and reads inside
of arrays where the test does not hold. Guarantees: each sum has the bits of the branch, for its
terms keep their lanes.

>>> show(lambda program: masks(program, Target(schedule=True)),
...      "y[0] = x[x > 0.5].sum()", y="f32[1]", x="f32[9]")
y[0] = 0.0
for i in 0..9:
    y[0] += x[i] if x[i] > 0.5 else -0.0
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import reduce

from ..analysis.expression_cost import cost
from ..analysis.guarded_reads import negated
from ..analysis.reductions import chosen, is_regrouped
from ..analysis.vectorizable import can_be_vector
from ..ir import dtypes
from ..ir.expressions import Apply, Cast, Const, Expr, Position, Read, reads, walk
from ..ir.indexing import Range
from ..ir.loops import Comment, For, If, Stmt, Store, Update
from ..ir.ops import OPS
from ..ir.walk import own_writes, statements
from ..transform import if_convert

Body = tuple[Stmt, ...]
DEAR = 64
"""What a test guards may cost so much at most, in additions, to be done where it does not hold."""


def summed(loop: For, known: tuple[Range, ...]) -> For | None:
    """Return a loop whose branches only add up and count, without them; None for others."""
    inside = [stmt for stmt in statements(loop.body) if not isinstance(stmt, Comment)]
    guarded = [s for s in _guarded(loop.body) if not isinstance(s, Comment)]
    added = [stmt for stmt in guarded if not isinstance(stmt, If)]
    if not all(isinstance(stmt, If | Store | Update) for stmt in inside):
        return None
    if not any(isinstance(stmt, Update) for stmt in added):
        return None
    terms = [term for stmt in added if (term := _term(stmt)) is not None]
    tests = [stmt.test for stmt in guarded if isinstance(stmt, If)]
    taken = {node.id for stmt in added for node in own_writes(stmt)}
    fits = len(terms) == len(added) and all(
        can_be_vector(if_convert.eager(one, known)) and if_convert.is_inside(one, known)
        for one in (*terms, *tests)
    )
    alone = not any(read.node.id in taken for one in (*terms, *tests) for read in reads(one))
    if not fits or not alone or not _is_up_to_data(tests) or sum(map(cost, terms)) > DEAR:
        return None
    return replace(loop, body=tuple(_straight(loop.body, (), known)))


def _guarded(body: Body) -> Iterator[Stmt]:
    """Yield the branches of a list of statements, and what is inside."""
    for stmt in body:
        if isinstance(stmt, If):
            yield from statements((stmt,))


def _is_up_to_data(tests: Iterable[Expr]) -> bool:
    """Whether tests ask for data, and not for where they stand, which loops can be cut by."""
    return all(
        reads(test) and not any(isinstance(part, Position) for part in walk(test))
        for test in tests
    )  # fmt: skip


def _term(stmt: Stmt) -> Expr | None:
    """Return what a statement adds to a sum in lanes or to a count; None for other statements."""
    match stmt:
        case Update(access, op, value, None) if not access.index and op.name == "add":
            return value if _is_count(value) or _is_sum(stmt) else None
        case Update(_, _, value, None):
            return value if _is_sum(stmt) else None
        case Store(access, Apply(op, (Read() as old, value))) if not access.index:
            same = op.name == "add" and old.node == access.node
            return value if same and _is_count(value) else None
        case _:
            return None


def _is_sum(stmt: Stmt) -> bool:
    """Whether it is a sum, product, maximum or minimum of floats in lanes."""
    if not isinstance(stmt, Update) or not stmt.over:
        return False
    return is_regrouped(stmt) and if_convert.is_number(stmt.access.node)


def _is_count(value: Expr) -> bool:
    """Whether a value is the number one, or a test as a number, of whole numbers."""
    if value.dtype.kind not in "iu":
        return False
    return value == Const(1, value.dtype) or (
        isinstance(value, Cast) and value.value.dtype is dtypes.bool_
    )


def _straight(body: Body, tests: tuple[Expr, ...], known: tuple[Range, ...]) -> Iterator[Stmt]:
    """Yield statements without branches, which do nothing where a test does not hold."""
    for stmt in body:
        if isinstance(stmt, If):
            test = if_convert.eager(stmt.test, known)
            yield from _straight(stmt.then, (*tests, test), known)
            yield from _straight(stmt.other, (*tests, negated(test)), known)
        elif tests and isinstance(stmt, Store | Update):
            yield _chosen(stmt, reduce(_both, tests))
        else:
            yield stmt


def _both(one: Expr, two: Expr) -> Expr:
    return Apply(OPS["bitand"], (one, two), dtypes.bool_)


def _chosen(stmt: Store | Update, test: Expr) -> Stmt:
    """Return a statement that adds what it adds where a test holds, and else nothing."""
    if isinstance(stmt, Store):
        assert isinstance(stmt.value, Apply), "it counts"
        old, value = stmt.value.args
        return replace(stmt, value=replace(stmt.value, args=(old, _counted(value, test))))
    return chosen(stmt, test) if _is_sum(stmt) else replace(stmt, value=_counted(stmt.value, test))


def _counted(value: Expr, test: Expr) -> Expr:
    """Return the number one where a test holds, and what is counted is counted."""
    if isinstance(value, Cast):
        test = _both(test, value.value)
    return Cast(test, value.dtype)
