"""The checks that know scopes, each on a broken program, and how problems are told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plusequals.base.diagnostic import CdInternalError, Source, Span
from plusequals.lowering.ir import instructions, loops, verify
from plusequals.lowering.ir.assignments import (
    Alloc,
    Block,
    Branch,
    Break,
    Continue,
    For,
    Let,
    Permute,
    Procedure,
    While,
)
from plusequals.lowering.ir.expressions import Reduce
from plusequals.lowering.ir.loops import AnyStatement
from plusequals.lowering.ir.ops import OPS

from .build import (
    acc,
    aff,
    ap,
    at,
    f32,
    i64,
    node,
    num,
    over,
    pos,
    procedure,
    program,
    put,
    read,
    red,
    rng,
    symbols,
)

I, J, N, T, E = symbols("i j n t e")
X, Y, W = node(0, "x", 4), node(1, "y", 4), node(2, "w", dtype=i64)
ROW, SIZED = node(3, "row", N), node(4, "sized", E)
TEST = ap("lt", read(W), num(3, i64))
ROWS = rng(I, 0, 4)
TOUCH = acc(at(ROW, 0), "add", num(1.0), over())
LET = Let(N, read(W))


def body(*statements: AnyStatement) -> Procedure:
    """Statements on `y` and `w` (written), `x` and `sized` (given), and `row` (local)."""
    return procedure((Y, W), (X, SIZED), *statements, local=(ROW,))


def complaint(p: Procedure) -> str:
    with pytest.raises(CdInternalError) as caught:
        verify.verify_procedure(p)
    assert caught.value.code == "CD0901"
    return str(caught.value)


def test_sound_programs_pass() -> None:
    p = body(
        LET,
        Alloc(ROW),
        For(T, aff(0), aff(N), 1, (
            put(at(ROW, T), read(X, T)),
            Branch(TEST, (Break(),), (Continue(),)),
        )),
        While((Let(J, read(W)),), ap("lt", pos(J), num(3, i64)), (
            put(at(W), ap("add", pos(J), num(1, i64))),
        )),
        red(at(Y, I), "add", read(SIZED, J), over(ROWS), over(rng(J, I, E))),
    )  # fmt: skip
    assert verify.verify_procedure(p) is None
    store = loops.Store(at(Y, I), read(X, I))
    whole = program((Y,), (X,), loops.For(I, aff(0), aff(4), 1, (store,)))
    assert verify.verify_program(whole) is None


@pytest.mark.parametrize(
    ("statements", "wanted"),
    [
        ((put(at(Y, I), num(1.0)),), "symbol i is used before it is bound"),
        ((put(at(Y, 0), read(X, I), rng(J, 0, I)),), "symbol i is used before it is bound"),
        ((put(at(Y, 0), num(1.0), rng(J, I, 4), ROWS),), "symbol i is used before it is bound"),
        ((acc(at(Y, J), "add", num(1.0), over(), over(rng(J, 0, 4))),), "symbol j is used"),
        ((For(T, aff(T), aff(4), 1, ()),), "symbol t is used before it is bound"),
        ((Branch(TEST, (LET,), ()), put(at(W), pos(N))), "symbol n is used"),
        ((put(at(W), pos(N)), LET), "symbol n is used before it is bound"),
        ((While((), ap("lt", pos(N), num(1, i64)), (LET,)),), "symbol n is used"),
        ((For(I, aff(0), aff(4), 1, (put(at(Y, I), num(1.0), ROWS),)),), "symbol i is bound again"),
        ((LET, LET), "symbol n is bound again in its own scope"),
        ((Alloc(ROW),), "symbol n is used before it is bound"),
    ],
)
def test_symbols_are_bound(statements: tuple[AnyStatement, ...], wanted: str) -> None:
    assert f"symbols are bound: {wanted}" in complaint(body(*statements))


def test_nodes_are_declared_once() -> None:
    stranger = node(9, "z", 4)
    assert "node z#9 is not declared" in complaint(body(put(at(Y, 0), read(stranger, 0))))
    other = replace(X, dtype=i64)
    assert "x#0 is not declared, or" in complaint(body(put(at(W), read(other, 0))))
    twice = procedure((Y,), (Y,))
    assert "two nodes have the same id" in complaint(twice)


def test_only_writable_nodes_are_written() -> None:
    assert "written nodes are writable: parameter x#0" in complaint(body(put(at(X, 0), num(1.0))))
    assert verify.verify_procedure(body(Permute((X, Y), (Y, X)))) is None


@pytest.mark.parametrize("jump", [Break(), Continue()])
def test_jumps_are_in_loops(jump: AnyStatement) -> None:
    problem = complaint(body(Block("b", (Branch(TEST, (jump,), ()),))))
    assert "jumps are in loops: there is no loop around it" in problem


@pytest.mark.parametrize(
    "statements",
    [
        (TOUCH,),
        (LET, Branch(TEST, (Alloc(ROW),), ()), TOUCH),
        (LET, For(T, aff(0), aff(N), 1, (Alloc(ROW),)), TOUCH),
        (LET, For(T, aff(0), aff(4), -1, (Alloc(ROW),)), TOUCH),
        (LET, For(T, aff(0), aff(4), 1, (Branch(TEST, (Break(),), ()), Alloc(ROW))), TOUCH),
        (LET, While((TOUCH,), TEST, (Alloc(ROW),))),
        (LET, put(at(Y, 0), read(ROW, 0)), Alloc(ROW)),
    ],
)
def test_storage_comes_first(statements: tuple[AnyStatement, ...]) -> None:
    assert "storage comes first: row#3 has no storage yet" in complaint(body(*statements))


def test_storage_on_every_path_is_enough() -> None:
    both = Branch(TEST, (Alloc(ROW),), (Block("b", (Alloc(ROW),)),))
    assert verify.verify_procedure(body(LET, both, TOUCH)) is None
    sure = For(T, aff(4), aff(0), -1, (Alloc(ROW),))
    assert verify.verify_procedure(body(LET, sure, TOUCH)) is None


def test_result_without_storage_at_the_end() -> None:
    r = node(8, "r", N)
    p = procedure((), (W,), LET, Branch(TEST, (Alloc(r),), ()), results=(r,))
    assert "storage comes first: result r#8 may have no storage" in complaint(p)


def test_result_of_the_size_of_an_argument_needs_no_storage() -> None:
    r = node(8, "r", E)
    p = procedure((), (SIZED,), put(at(r, I), read(SIZED, I), rng(I, 0, E)), results=(r,))
    assert verify.verify_procedure(p) is None


def test_reductions_are_admitted_before_build_only() -> None:
    value = Reduce(OPS["add"], over(ROWS), read(X, I), f32)
    p = body(put(at(Y, 0), value))
    assert "no reduce" in complaint(p)
    assert verify.verify_procedure(p, built=False) is None


def test_parallel_loops_do_not_nest() -> None:
    grid = node(8, "grid", 4, 4)
    inner = loops.For(J, aff(0), aff(4), 1, (loops.Store(at(grid, I, J), num(1.0)),), "parallel")
    made = program((grid,), (), loops.For(I, aff(0), aff(4), 1, (inner,)))
    verify.verify_program(made)
    nested = program((grid,), (), loops.For(I, aff(0), aff(4), 1, (inner,), "parallel"))
    with pytest.raises(CdInternalError) as caught:
        verify.verify_program(nested)
    (problem,) = caught.value.diagnostics
    assert problem.message == (
        "f: parallel loops do not nest: it is inside of the parallel loop over i,"
        " in `for j in 0..4 parallel:`"
    )


def test_last_blocks_follow_blocks() -> None:
    grid = node(8, "grid", 4)
    blocks = loops.For(J, aff(0), aff(4), 1, (loops.Store(at(grid, J), num(1.0)),), "block")
    last = loops.LastBlock((loops.Store(at(grid, 0), num(2.0)),))
    verify.verify_program(program((grid,), (), loops.For(I, aff(0), aff(4), 1, (blocks, last))))
    for wrong in ((last,), (loops.For(I, aff(0), aff(4), 1, (last, blocks)),)):
        with pytest.raises(CdInternalError, match="no loop over blocks before it"):
            verify.verify_program(program((grid,), (), *wrong))


def test_products_are_awaited() -> None:
    total = node(8, "total", 4)
    four = rng(I, 0, 4), rng(J, 0, 4), rng(T, 0, 4)
    for unit, wait, is_sound in (
        ("warpgroup", True, True), ("warpgroup", False, False), ("warp", False, True),
    ):  # fmt: skip
        add = instructions.MatMul(at(total, J), read(X, I), read(X, T), four, unit)
        waits = (instructions.AwaitProducts(total),) if wait else ()
        made = program((total, Y), (X,), add, add, *waits, loops.Store(at(Y, 0), read(total, 0)))
        if is_sound:
            verify.verify_program(made)
            continue
        with pytest.raises(CdInternalError, match="may not be there"):
            verify.verify_program(made)


def test_a_statement_that_is_new_is_looked_at() -> None:
    fine = loops.Store(at(Y, 0), num(1.0))
    check = verify.Verifier()
    check(program((Y,), (X,), fine))
    check(program((Y,), (X,), fine, fine))
    wrong = program((Y,), (X,), fine, loops.Store(at(Y, 0, 0), num(1.0)))
    for _ in range(2):  # what is wrong stays so
        with pytest.raises(CdInternalError, match="has 2 indices"):
            check(wrong)
    with pytest.raises(CdInternalError, match="not declared"):
        check(program((X,), (X,), fine))


def test_a_sound_statement_is_looked_at_where_it_stands_now() -> None:
    store = loops.Store(at(Y, I), read(X, I))
    loop = loops.For(I, aff(0), aff(4), 1, (store,))
    other = loops.For(J, aff(0), aff(4), 1, (loop,))
    check = verify.Verifier()
    check(program((Y,), (X,), loop))
    check(program((Y,), (X,), other))
    with pytest.raises(CdInternalError, match="symbol i is used before it is bound"):
        check(program((Y,), (X,), store))
    with pytest.raises(CdInternalError, match="symbol i is bound again"):
        check(program((Y,), (X,), loops.For(I, aff(0), aff(4), 1, (loop,))))
    with pytest.raises(CdInternalError, match="written but not declared as written"):
        check(program((), (X, Y), loop))


def test_every_problem_is_told_with_its_statement_and_place() -> None:
    span = Span(Source("demo.py", 3, "y[0] = x[i]"), 3, 0, 3, 11)
    first = replace(put(at(Y, 0), read(X, I)), span=span)
    second = loops.Store(at(X, 0, 0), num(1.0))
    broken = program((Y,), (X,), first, second, name="demo")
    with pytest.raises(CdInternalError) as caught:
        verify.verify_program(broken)
    messages = [problem.message for problem in caught.value.diagnostics]
    assert messages == [
        "demo: symbols are bound: symbol i is used before it is bound, in `y[0] = x[i]`",
        "demo: written nodes are writable: parameter x#0 is written but not declared as written,"
        " in `x[0, 0] = 1.0`",
        "demo: ranks match: x#0 of rank 1 has 2 indices, in `x[0, 0] = 1.0`",
    ]
    assert "demo.py:3:1" in str(caught.value)
