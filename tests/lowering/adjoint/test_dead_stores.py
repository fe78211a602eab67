"""Statements that nothing needs are left out of adjoints, and no others."""

from __future__ import annotations

from plusequals.lowering.adjoint.dead_stores import without_dead_stores
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.assignments import (
    Access,
    Assign,
    Branch,
    Break,
    For,
    Permute,
    Statement,
    While,
)
from plusequals.lowering.ir.expressions import Apply, Const, Domain, Expr, Read
from plusequals.lowering.ir.indexing import Range, Symbol, const, var
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.ops import OPS

A, B, C, X = (Node(at, name, (const(4),), dtypes.float64) for at, name in enumerate("abcx"))
MADE = {A.id, B.id, C.id}
I, T = Symbol("i", 1), Symbol("t", 2)
WHOLE = Domain((Range(I, const(0), const(4)),))
ZERO = Const(0.0, dtypes.float64)


def at(node: Node) -> Read:
    return Read(node, (var(I),))


def assign(node: Node, value: Expr, add: bool = False) -> Assign:
    return Assign(Access(node, (var(I),)), OPS["add"] if add else None, False, value, WHOLE)


def needed(*body: Statement) -> tuple[Statement, ...]:
    return without_dead_stores(body, MADE, (A,))


def loop(*body: Statement) -> For:
    return For(T, const(0), const(3), 1, body)


def test_what_nothing_reads_is_left_out() -> None:
    useful = assign(A, at(X))
    assert needed(assign(B, at(X)), useful, assign(C, at(A)), assign(B, ZERO)) == (useful,)


def test_what_the_procedure_writes_stays() -> None:
    own = assign(X, ZERO)
    assert needed(assign(A, at(X)), own) == (assign(A, at(X)), own)


def test_what_is_overwritten_before_it_is_read_is_left_out() -> None:
    first, second = assign(B, at(X)), assign(B, ZERO)
    after = assign(A, at(B))
    assert needed(first, second, after) == (second, after)
    part = Assign(Access(B, (var(I),)), None, False, ZERO, Domain((Range(I, const(0), const(3)),)))
    assert needed(first, part, after) == (first, part, after)


def test_what_the_next_round_reads_stays() -> None:
    read, zero = assign(A, at(B), add=True), assign(B, ZERO)
    fill = assign(B, at(X), add=True)
    body = (assign(B, at(X)), loop(fill, read, zero))
    assert needed(*body) == body
    assert needed(assign(B, at(X)), loop(zero, assign(C, at(B)), read)) == (loop(zero, read),)


def test_sides_of_a_test_are_needed_where_one_of_them_reads() -> None:
    test = Apply(OPS["gt"], (Read(X, (const(0),)), ZERO), dtypes.bool_)
    fill, read = assign(B, at(X)), assign(A, at(B))
    body = (fill, Branch(test, (read,), (assign(C, at(X)),)))
    assert needed(*body) == (fill, Branch(test, (read,), ()))
    assert needed(fill, Branch(test, (assign(C, at(B)),), ())) == ()


def test_arrays_that_change_places_are_live() -> None:
    body = (assign(B, at(X)), Permute((A, B), (B, A)))
    assert needed(*body) == body


def test_a_loop_that_is_left_early_keeps_what_it_has() -> None:
    test = Apply(OPS["gt"], (Read(X, (const(0),)), ZERO), dtypes.bool_)
    body = (loop(assign(B, at(X)), Branch(test, (Break(),), ()), assign(B, ZERO)), assign(A, at(B)))
    assert needed(*body) == body
    turns = (While((), test, (assign(B, at(C)), assign(C, at(X)))), assign(A, at(B)))
    assert needed(*turns) == turns


def test_first_sums_are_assigned() -> None:
    assert needed(assign(A, at(X), add=True)) == (assign(A, at(X)),)
    again = assign(A, at(X), add=True)
    assert needed(again, again) == (assign(A, at(X)), again)
    assert needed(loop(again)) == (loop(again),)
    itself = assign(A, Apply(OPS["mul"], (at(A), at(X)), dtypes.float64), add=True)
    assert needed(itself) == (itself,)


def test_zeros_that_a_sum_is_added_to_are_that_sum() -> None:
    start, zero = loop(assign(A, at(X), add=True)), assign(A, ZERO)
    assert needed(start, zero, assign(A, at(B), add=True))[-1] == assign(A, at(B))
