"""How much work loops are taken to be."""

from __future__ import annotations

from plusequals.lowering.ir.assignments import Let, Print
from plusequals.lowering.ir.indexing import Affine, Symbol, const, evaluate, var
from plusequals.lowering.ir.loops import Fill, For, If, Stmt, Store, Update, While
from plusequals.lowering.ir.ops import OPS
from plusequals.lowering.passes.cost import UNKNOWN
from plusequals.lowering.schedule.effort import MOST, PRINTED, SCALAR, rounds_of, total_of, work_of

from ..ir.build import ap, at, bool_, i64, node, num, read, symbols

i, j, k, n, m = symbols("i j k n m")
X, Y, S = node(0, "x", 64), node(1, "y", 64), node(2, "s")
COPY = Store(at(Y, 0), read(X, 0))


def loop(symbol: Symbol, lo: Affine | int, hi: Affine | int, *body: Stmt, step: int = 1) -> For:
    ends = (const(end) if isinstance(end, int) else end for end in (lo, hi))
    return For(symbol, *ends, step, body)


def test_rounds_are_those_of_python() -> None:
    for lo, hi, step in ((0, 9, 1), (3, 9, 2), (9, 0, -1), (9, -2, -4), (0, 1, 5)):
        assert rounds_of(loop(i, lo, hi, step=step)).constant == len(range(lo, hi, step))
    assert evaluate(rounds_of(loop(i, 1, var(n), step=3)), {n: 9}) == 3
    assert total_of(loop(i, 5, 2, COPY)).constant == 0


def test_work_is_the_sum_of_what_is_inside() -> None:
    assert work_of(loop(i, 0, 9, COPY)).constant == 2 * SCALAR
    assert work_of(loop(i, 0, 9, COPY, COPY)).constant == 4 * SCALAR
    assert work_of(loop(i, 0, 9, Update(at(S), OPS["add"], read(X, i)))).constant == 2 * SCALAR
    assert work_of(loop(i, 0, 9, loop(j, 0, 10, COPY))).constant == 21 * SCALAR
    assert work_of(loop(i, 0, 9, Fill(Y, num(0.0)))).constant == 64
    assert work_of(loop(i, 0, 9, Print(("x",)))).constant == PRINTED * SCALAR
    assert total_of(loop(i, 0, 9, loop(j, 0, 10, COPY))).constant == 189 * SCALAR


def test_neighbours_stored_by_cheap_work_are_vectors() -> None:
    beside = Store(at(Y, i), read(X, i))
    assert work_of(loop(i, 0, 9, beside)).constant == 2
    assert work_of(loop(i, 9, 0, Store(at(Y, var(i) * -1 + 9), read(X, i)), step=-1)).constant == 2
    for other in (
        Store(at(Y, var(i) * 2), read(X, i)),
        Store(at(Y, i), ap("exp", read(X, i))),
        If(num(True, bool_), (beside,)),
    ):
        assert work_of(loop(i, 0, 9, other)).constant >= 2 * SCALAR


def test_of_two_sides_the_dearer_one_counts() -> None:
    dear = Store(at(Y, 0), ap("exp", read(X, 0)))
    branch = If(num(True, bool_), (COPY,), (dear,))
    assert work_of(loop(i, 0, 9, branch)) == work_of(loop(i, 0, 9, dear))


def test_sizes_stay_symbols_and_inner_variables_do_not() -> None:
    assert work_of(loop(i, 0, var(n), loop(j, 0, var(m), COPY))) == (var(m) * 2 + 1) * SCALAR
    triangle = loop(i, 0, var(n), loop(j, 0, var(i), COPY))
    assert work_of(triangle).symbols() == {n}
    assert evaluate(work_of(triangle), {n: 100}) == 101 * SCALAR
    assert work_of(loop(i, 0, 100, loop(j, var(i), 100, COPY))).constant == 101 * SCALAR


def test_loops_without_rounds_take_nothing_off() -> None:
    left = loop(j, 100, var(i), COPY)
    for known in (None, frozenset[Symbol]()):
        work = work_of(loop(i, var(n), var(m), loop(k, 0, 10, COPY), left), known)
        assert evaluate(work, {n: 0, m: 20}) == 22 * SCALAR
        assert evaluate(work, {n: 0, m: 400}) == 222 * SCALAR
    number = work_of(loop(i, 0, 9, loop(k, 0, 10, COPY), loop(j, 0, var(n), COPY)), frozenset())
    assert evaluate(number, {n: -1000}) == 22 * SCALAR
    assert evaluate(number, {n: 10}) == 42 * SCALAR


def test_what_data_decides_is_guessed() -> None:
    count = read(node(3, "count", dtype=i64))
    body = loop(i, 0, 9, Let(k, count), loop(j, 0, var(k), COPY))
    assert work_of(body).constant == (2 * UNKNOWN + 1) * SCALAR
    endless = While((), num(True, bool_), (COPY,))
    assert work_of(endless).constant == 2 * SCALAR
    assert work_of(loop(i, 0, 9, endless)).constant == 2 * UNKNOWN * SCALAR


def test_numbers_stay_numbers() -> None:
    far = loop(i, 0, 2**62, loop(j, 0, 2**62, COPY))
    assert total_of(far).constant == MOST
