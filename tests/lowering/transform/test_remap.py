"""Accesses that move, and all else that stays."""

from __future__ import annotations

from plusequals.lowering.ir.assignments import Access, Pair
from plusequals.lowering.ir.expressions import Dynamic, Index, Read
from plusequals.lowering.ir.indexing import Range, const, var
from plusequals.lowering.ir.instructions import AwaitProducts, CopyVector, MatMul, StoreVector
from plusequals.lowering.ir.loops import Fill, For, If, Stmt, Store, Update
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.ops import ARGMAX
from plusequals.lowering.ir.walk import reads, writes
from plusequals.lowering.transform.remap import Element, fill_loops, remap_accesses
from tests.backends.codegen.programs import apply, node, number, position, read, symbols

I, J = symbols("i j")
X, Y, Z = node(0, "x", (4, 5)), node(1, "y", (4, 5)), node(2, "z", (2, 4, 5))


def moved(one: Node, index: tuple[Index, ...]) -> Element:
    return (Z, (const(1), *index)) if one == X else (one, index)


def test_reads_and_writes_move_wherever_they_stand() -> None:
    inner = read(Y, Dynamic(read(X, 0, 1)), J)
    body: tuple[Stmt, ...] = (
        If(
            apply("gt", read(X, I, J), number(0.0)),
            (Store(Access(X, (var(I), var(J))), apply("add", read(X, I, J), inner)),),
        ),
    )
    made = remap_accesses(body, moved)
    assert {n.label for n in (*reads(made), *writes(made))} == {"y", "z"}


def test_both_places_of_a_pair_move() -> None:
    pair = Pair(Access(X, (var(I), const(0))), var(J))
    update = Update(Access(X, (var(I), const(1))), ARGMAX, read(Y, I, J), pair)
    (made,) = remap_accesses((update,), moved)
    assert isinstance(made, Update) and made.pair is not None
    assert made.access == Access(Z, (const(1), var(I), const(1)))
    assert made.pair.access == Access(Z, (const(1), var(I), const(0)))


def test_what_does_not_move_is_the_same() -> None:
    body: tuple[Stmt, ...] = (Store(Access(Y, (var(I), var(J))), position(I)), Fill(Y, number(1.0)))
    assert remap_accesses(body, moved) == body


def test_a_fill_of_what_moves_becomes_loops() -> None:
    (made,) = remap_accesses((Fill(X, number(1.0)),), moved)
    assert isinstance(made, For)
    assert writes((made,)) == (Z,)
    (plain,) = fill_loops(Fill(X, number(1.0)))
    assert isinstance(plain, For)
    assert writes((plain,)) == (X,)
    assert fill_loops(Fill(node(5, "s", ()), number(1.0)))[0] == Store(
        Access(node(5, "s", ()), ()), number(1.0)
    )
    assert isinstance(read(X, I, J), Read)


def test_vectors_move() -> None:
    at = (var(I), var(J))
    copy = CopyVector(Access(X, at), read(X, I, J), 4, (-1, -1))
    store = StoreVector(Access(X, at), -1, (read(X, I, J), number(1.0)))
    one, two, three = (Range(symbol, const(0), const(2)) for symbol in symbols("r s t"))
    product = MatMul(Access(X, at), read(X, I, J), read(X, J, I), (one, two, three), "warp")
    for one in remap_accesses((copy, store, product), moved):
        assert set(writes((one,))) == set(reads((one,))) == {Z}


def test_a_wait_for_products_moves() -> None:
    assert remap_accesses((AwaitProducts(X), AwaitProducts(Y)), moved) == (
        AwaitProducts(Z), AwaitProducts(Y),
    )  # fmt: skip
