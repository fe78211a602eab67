"""Changing statements: every part is reached, and what stays the same stays the same object."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plusequals.lowering.ir import instructions, loops, rewrite
from plusequals.lowering.ir.assignments import (
    Alloc,
    Block,
    Branch,
    Break,
    Check,
    For,
    Let,
    Pair,
    Permute,
    Print,
    While,
)
from plusequals.lowering.ir.indexing import Symbol, const, var
from plusequals.lowering.ir.loops import AnyStatement
from plusequals.lowering.ir.ops import OPS
from plusequals.lowering.ir.printer import print_statement
from plusequals.lowering.ir.rewrite import Rewrite

from .build import (
    acc,
    aff,
    ap,
    at,
    best,
    num,
    over,
    pos,
    put,
    read,
    rng,
)
from .test_walk import COPY, FAULT, ROW, ROWS, TEST, I, J, N, T, W, X, Y, Z

EVERY: tuple[AnyStatement, ...] = (
    COPY,
    acc(at(Y, I), "add", read(X, I), over(ROWS, where=TEST), over(rng(J, 0, I))),
    best("argmin", at(X, 0), Pair(at(W), aff(I)), read(Y, I), over(), over(ROWS)),
    For(T, aff(0), var(N), 1, (COPY,)),
    While((Let(N, read(W)),), TEST, (COPY, Break())),
    Branch(TEST, (COPY,), (Break(),)),
    Block("text", (COPY,)),
    Let(N, read(W)),
    Alloc(ROW),
    Permute((X, Y), (Y, X)),
    Check(TEST, FAULT, (pos(I),), over(ROWS)),
    Print(("shown", read(W))),
    loops.For(T, aff(0), var(N), 1, (loops.Store(at(X, T), num(1.0)),)),
    loops.While((), TEST, (Break(),)),
    loops.If(TEST, (Break(),), (loops.Comment("c"),)),
    loops.Store(at(X, T), num(1.0)),
    loops.Update(at(X, read(W)), OPS["add"], read(Y, T)),
    loops.Update(at(X, T), OPS["add"], num(1.0), atomic=True),
    loops.Fill(X, num(0.0)),
    instructions.CopyVector(at(X, T), read(Y, T), 4, (-1, -1)),
    instructions.StoreVector(at(X, T), -1, (read(Y, T), read(Y, I))),
    instructions.MatMul(
        at(X, I),
        read(Y, I, N),
        read(Z, N, J),
        (rng(I, 0, 4), rng(J, 0, 4), rng(N, 0, 8)),
        "warp",
    ),
    loops.LastBlock((loops.Store(at(X, T), num(1.0)),)),
    instructions.AwaitProducts(X),
    loops.Check(TEST, FAULT, (read(W),)),
    loops.Comment("c"),
)


def test_map_statements_sees_inner_statements_first_and_may_drop_or_repeat() -> None:
    def change(statement: AnyStatement) -> tuple[AnyStatement, ...]:
        match statement:
            case Break():
                return ()
            case Branch(_, then, ()):
                return then
            case _:
                return (statement, statement) if statement is COPY else (statement,)

    body = (For(T, aff(0), aff(4), 1, (Branch(TEST, (COPY,), (Break(),)),)),)
    assert rewrite.map_statements(body, change) == (For(T, aff(0), aff(4), 1, (COPY, COPY)),)


@pytest.mark.parametrize("statement", EVERY, ids=lambda s: type(s).__name__)
def test_rewriting_nothing_changes_nothing(statement: AnyStatement) -> None:
    assert rewrite.rewrite((statement,), Rewrite()) == (statement,)


def test_a_program_in_which_nothing_changes_is_the_same_object() -> None:
    body = (loops.For(T, aff(0), aff(4), 1, (loops.Store(at(X, T), num(1.0)),)),)
    program = loops.Program("f", (), (X,), (), (loops.Kernel("f", body),))
    assert rewrite.map_kernels(program, lambda old: rewrite.rewrite(old, Rewrite())) is program
    assert rewrite.map_kernels(program, lambda _: ()).kernels[0].body == ()


@pytest.mark.parametrize("statement", EVERY, ids=lambda s: type(s).__name__)
def test_renaming_reaches_every_symbol_and_node(statement: AnyStatement) -> None:
    symbols_ = {s: Symbol(s.name.upper(), s.serial + 10) for s in (I, J, N, T)}
    nodes_ = {n.id: replace(n, label=n.label.upper()) for n in (X, Y, Z, W)}
    nodes_[ROW.id] = replace(ROW, label="ROW", shape=(var(symbols_[N]),))
    before = print_statement(statement)
    after = print_statement(rewrite.rename((statement,), symbols_, nodes_)[0])
    assert after.lower() == before.lower()
    assert not {"x", "y", "w", "i", "j", "n", "t", "row"} & _words(after)


def _words(text: str) -> set[str]:
    return set("".join(c if c.isalnum() else " " for c in text).split())


def test_substitution_reaches_bounds_subscripts_predicates_and_positions() -> None:
    body = (
        For(
            T, var(N), var(N) + 4, 1,
            (
                put(at(Y, aff(N) - 1), pos(N), rng(I, 0, N), where=ap("lt", pos(N), pos(I))),
                Check(ap("lt", pos(N), pos(T)), FAULT, (pos(N),)),
            ),
        ),
    )  # fmt: skip
    assert print_statement(rewrite.substitute(body, {N: const(7)})[0]).splitlines() == [
        "for t in 7..11:",
        "    y[6] = 7    for i in [0, 7) where 7 < i",
        "    check 7 < t else CdIndexError('CD0301', 'no', 7)",
    ]


def test_lists_are_changed_and_what_stays_is_the_same_object() -> None:
    loop = loops.For(I, const(0), const(9), 1, (COPY, COPY))
    assert rewrite.map_bodies(loop, list) is loop
    assert rewrite.map_bodies(COPY, lambda body: ()) is COPY
    assert rewrite.map_bodies(loop, lambda body: body[:1]) == replace(loop, body=(COPY,))
    assert rewrite.is_same_list([loop], (loop,)) and not rewrite.is_same_list(
        [loop], (replace(loop),)
    )
    assert not rewrite.is_same_list((), (loop,))


def test_a_value_is_not_captured_by_a_loop_inside() -> None:
    body = (loops.For(T, const(0), var(N), 1, (COPY,)),)
    (loop,) = rewrite.substitute(body, {N: var(T) + 1})
    assert isinstance(loop, loops.For)
    assert loop.hi == var(T) + 1 and loop.symbol not in (T, N)
