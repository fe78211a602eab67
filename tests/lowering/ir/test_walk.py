"""Looking at statements of both IRs."""

from __future__ import annotations

from plusequals.lowering.ir import loops, walk
from plusequals.lowering.ir.assignments import (
    Alloc,
    Branch,
    Break,
    Check,
    Fault,
    For,
    Let,
    Pair,
    Permute,
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
    best,
    f32,
    i64,
    node,
    num,
    over,
    pos,
    put,
    read,
    red,
    rng,
    symbols,
)

I, J, N, T = symbols("i j n t")
X, Y, Z = node(0, "x", 4), node(1, "y", 4), node(2, "z", 4)
W = node(3, "w", dtype=i64)
ROW = node(4, "row", N)
ROWS = rng(I, 0, 4)
COPY = put(at(Y, I), read(X, I), ROWS)
TEST = ap("lt", read(W), num(3, i64))
FAULT = Fault("CD0301", "CdIndexError", "no")


def nodes(body: tuple[AnyStatement, ...], which: str) -> list[str]:
    return [n.label for n in getattr(walk, which)(body)]


def test_statements_come_parents_first() -> None:
    inner = Branch(TEST, (COPY,), (Break(),))
    body = (For(T, aff(0), aff(4), 1, (inner,)), Let(N, read(W)))
    kinds = [type(s).__name__ for s in walk.statements(body)]
    assert kinds == ["For", "Branch", "Assign", "Break", "Let"]
    assert sum(1 for _ in walk.statements(body)) == 5


def test_reads_and_writes() -> None:
    gather = put(at(Y, read(W)), read(X, I), ROWS)
    assert (nodes((gather,), "reads"), nodes((gather,), "writes")) == (["w", "x"], ["y"])
    assert nodes((red(at(Y, I), "add", read(X, I), over(ROWS), over()),), "reads") == ["x"]
    assert nodes((acc(at(Y, I), "add", read(X, I), over(ROWS)),), "reads") == ["x", "y"]
    pair = best("argmax", at(X, 0), Pair(at(W), aff(I)), read(Y, I), over(), over(ROWS))
    assert (nodes((pair,), "reads"), nodes((pair,), "writes")) == (["y"], ["x", "w"])
    update = loops.Update(at(X, T), OPS["add"], num(1.0))
    assert (nodes((update,), "reads"), nodes((update,), "writes")) == (["x"], ["x"])
    moved = Permute((X, Y), (Y, X))
    assert (nodes((moved,), "reads"), nodes((moved,), "writes")) == (["y", "x"], ["x", "y"])
    loop = While((Alloc(ROW),), TEST, (loops.Fill(Z, num(0.0)),))
    assert (nodes((loop,), "reads"), nodes((loop,), "writes")) == (["w"], ["row", "z"])


def test_free_symbols_know_what_binds() -> None:
    total = Reduce(OPS["add"], over(rng(J, I, N)), ap("mul", read(X, J), read(Y, T)), f32)
    assert walk.free_symbols(total) == {I, N, T}
    assert walk.uses(put(at(Y, I), total, ROWS)) == {N, T}
    assert walk.binds(put(at(Y, I), total, ROWS)) == (I, J)
    triangle = acc(at(Y, I), "add", read(X, J), over(ROWS), over(rng(J, 0, I)))
    assert walk.uses(triangle) == set()
    reduced = acc(at(Y, J), "add", read(X, J), over(ROWS), over(rng(J, 0, I)))
    assert walk.uses(reduced) == {J}
    assert walk.uses(Check(TEST, FAULT, (pos(I), pos(T)), over(ROWS))) == {T}


def test_inside_is_all_but_the_statement_itself() -> None:
    inner = loops.For(J, aff(0), aff(3), 1, (COPY,))
    loop = loops.For(I, aff(0), aff(3), 1, (inner, COPY))
    assert walk.inside(loop) == (inner, COPY, COPY) == tuple(walk.statements((loop,))[1:])
    assert walk.inside(loop) is walk.inside(loop), "it is found once"
    assert walk.inside(COPY) == ()
