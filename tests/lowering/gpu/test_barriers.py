"""Barriers stand where they have to, and nowhere else."""

from __future__ import annotations

from plusequals.lowering.gpu.barriers import insert_barriers
from plusequals.lowering.ir.assignments import Access, Break, Continue
from plusequals.lowering.ir.expressions import Expr
from plusequals.lowering.ir.indexing import const, var
from plusequals.lowering.ir.loops import Barrier, For, If, LastBlock, LoopKind, Stmt, Store, While
from plusequals.lowering.ir.node import Node
from tests.backends.codegen.programs import apply, node, number, read, symbols

I, J = symbols("i j")
A, B, C = (node(k, "abc"[k], (8,)) for k in range(3))
S = node(4, "s", ())


def over(kind: LoopKind, *body: Stmt) -> For:
    return For(I, const(0), const(8), 1, body, kind)


def threads(target: Node, value: Expr) -> For:
    return over("thread", Store(Access(target, (var(I),)), value))


def shape(body: tuple[Stmt, ...]) -> list[object]:
    """Where the barriers are: `|`, other statements by a letter, lists for what is inside."""
    out: list[object] = []
    for stmt in body:
        match stmt:
            case Barrier():
                out.append("|")
            case For(kind="thread"):
                out.append("t")
            case For() as loop:
                out.append(shape(loop.body))
            case LastBlock(body=inner):
                out.append(shape(inner))
            case If() as test:
                out.append([shape(test.then), shape(test.orelse)])
            case While() as loop:
                out.append([shape(loop.prelude), shape(loop.body)])
            case _:
                out.append("s")
    return out


def test_between_a_write_and_a_read_or_another_write() -> None:
    write, other = threads(A, number(1.0)), threads(B, read(A, 0))
    assert shape(insert_barriers((write, other), frozenset())) == ["t", "|", "t"]
    assert shape(insert_barriers((write, write), frozenset())) == ["t", "|", "t"]
    assert shape(insert_barriers((other, write), frozenset())) == ["t", "|", "t"]


def test_none_between_what_has_nothing_to_do_with_each_other() -> None:
    one, other = threads(A, read(C, 0)), threads(B, read(C, 1))
    assert shape(insert_barriers((one, other), frozenset())) == ["t", "t"]
    assert shape(insert_barriers((one, threads(A, read(C, 0))), frozenset((A.id,)))) == ["t", "t"]


def test_what_all_threads_read_alike_waits_and_is_waited_for() -> None:
    take = Store(Access(S, ()), read(A, 0))
    body = (threads(A, number(1.0)), take, threads(A, number(2.0)))
    assert shape(insert_barriers(body, frozenset((S.id,)))) == ["t", "|", "s", "|", "t"]


def test_a_loop_is_its_own_neighbour() -> None:
    body = (over("serial", threads(A, read(B, 0)), threads(B, read(C, 0))),)
    assert shape(insert_barriers(body, frozenset())) == [["t", "|", "t", "|"]]
    quiet = (over("serial", threads(A, read(C, 0))),)
    assert shape(insert_barriers(quiet, frozenset())) == [["t", "|"]], (
        "the same element in two rounds"
    )
    assert shape(insert_barriers((threads(A, read(B, 0)),), frozenset(), loops=True)) == ["t", "|"]


def test_a_barrier_in_a_loop_is_enough_for_its_end() -> None:
    inner = (threads(A, number(1.0)), threads(B, read(A, 0)))
    body = (over("serial", *inner), threads(C, read(B, 0)))
    assert shape(insert_barriers(body, frozenset())) == [["t", "|", "t", "|"], "t"]


def test_tests_are_read_by_all_threads() -> None:
    test = apply("gt", read(A, 0), number(0.0))
    branch = If(test, (threads(A, number(0.0)),), (threads(B, number(0.0)),))
    assert shape(insert_barriers((threads(A, number(1.0)), branch), frozenset())) == [
        "t", "|", [["|", "t"], ["t"]],
    ]  # fmt: skip


def test_the_test_of_a_loop_waits_for_what_stands_before_it() -> None:
    test = apply("gt", read(A, 0), number(0.0))
    loop = While((threads(A, number(1.0)),), test, (threads(A, number(0.0)),))
    assert shape(insert_barriers((loop,), frozenset())) == [[["t", "|"], ["|", "t", "|"]]]
    after = (loop, threads(A, number(2.0)))
    assert shape(insert_barriers(after, frozenset()))[1:] == ["|", "t"], (
        "others may still look at the test"
    )


def test_the_last_block_does_its_body_once() -> None:
    last = LastBlock((threads(A, read(B, 0)), threads(B, read(A, 0))))
    assert shape(insert_barriers((threads(B, number(1.0)), last), frozenset())) == [
        "t", ["|", "t", "|", "t"],
    ]  # fmt: skip


def test_who_leaves_a_round_has_nothing_to_wait_for() -> None:
    for jump in (Break(), Continue()):
        leave = If(apply("gt", read(B, 0), number(0.0)), (jump,))
        loop = over("serial", threads(A, read(C, 0)), leave, threads(C, read(A, 0)))
        (made,) = insert_barriers((loop,), frozenset())
        assert isinstance(made, For)
        first, second, third, *_ = made.body
        assert isinstance(second, If) and second.then == (Barrier(), jump)
        assert isinstance(third, Barrier)
