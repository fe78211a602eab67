"""How much work loops are taken to be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plusequals.lowering import thresholds
from plusequals.lowering.analysis.cost import (
    MAX_WORK,
    iteration_count,
    total_work,
    work_per_iteration,
)
from plusequals.lowering.analysis.expression_cost import cost
from plusequals.lowering.ir.assignments import Alloc, Break, Continue, Fault, Let, Permute, Print
from plusequals.lowering.ir.indexing import Affine, Symbol, const, evaluate, minimum, var
from plusequals.lowering.ir.instructions import CopyVector, MatMul, StoreVector
from plusequals.lowering.ir.loops import (
    Barrier,
    Check,
    Comment,
    Fill,
    For,
    If,
    LastBlock,
    Stmt,
    Store,
    Update,
    While,
)
from plusequals.lowering.ir.ops import OPS

from ..ir.build import ap, at, bool_, i64, node, num, read, rng, symbols

i, j, k, n, m = symbols("i j k n m")
X, Y, S = node(0, "x", 64), node(1, "y", 64), node(2, "s")
COPY = Store(at(Y, 0), read(X, 0))


P = node(5, "p", 64, dtype=i64)


def work_of_round(*body: Stmt) -> int:
    """Return the work of a round, which is a number."""
    work = work_per_iteration(loop(i, 0, 9, *body)).constant
    assert work is not None
    return work


def loop(symbol: Symbol, lo: Affine | int, hi: Affine | int, *body: Stmt, step: int = 1) -> For:
    ends = (const(end) if isinstance(end, int) else end for end in (lo, hi))
    return For(symbol, *ends, step, body)


def test_rounds_are_those_of_python() -> None:
    for lo, hi, step in ((0, 9, 1), (3, 9, 2), (9, 0, -1), (9, -2, -4), (0, 1, 5)):
        assert iteration_count(loop(i, lo, hi, step=step)).constant == len(range(lo, hi, step))
    assert evaluate(iteration_count(loop(i, 1, var(n), step=3)), {n: 9}) == 3
    assert total_work(loop(i, 5, 2, COPY)).constant == 0


def test_a_part_of_a_loop_is_taken_to_be_whole() -> None:
    for step in (1, 3, 32):
        last = minimum(var(n), var(m) + 100)
        rounds = len(range(0, 100, step))
        assert (
            total_work(loop(i, var(m), last, COPY, step=step)).constant
            == rounds * 2 * thresholds.SCALAR_WORK
        )


def test_work_is_the_sum_of_what_is_inside() -> None:
    assert work_per_iteration(loop(i, 0, 9, COPY)).constant == 2 * thresholds.SCALAR_WORK
    assert work_per_iteration(loop(i, 0, 9, COPY, COPY)).constant == 4 * thresholds.SCALAR_WORK
    assert (
        work_per_iteration(loop(i, 0, 9, Update(at(S), OPS["add"], read(X, i)))).constant
        == 2 * thresholds.SCALAR_WORK
    )
    assert (
        work_per_iteration(loop(i, 0, 9, loop(j, 0, 10, COPY))).constant
        == 21 * thresholds.SCALAR_WORK
    )
    assert work_per_iteration(loop(i, 0, 9, Fill(Y, num(0.0)))).constant == 64
    copy = CopyVector(at(Y, 0), read(X, i), 4, (-1, -1))
    store = StoreVector(at(Y, 0), -1, (read(X, i), read(X, i)))
    assert work_per_iteration(loop(i, 0, 9, copy)).constant == 4 * 2 * thresholds.SCALAR_WORK
    assert work_per_iteration(loop(i, 0, 9, store)).constant == 2 * 2 * thresholds.SCALAR_WORK
    assert (
        work_per_iteration(loop(i, 0, 9, LastBlock((COPY,)))).constant == 2 * thresholds.SCALAR_WORK
    )
    points = rng(j, 0, 2), rng(n, 0, 3), rng(m, 0, 4)
    product = MatMul(at(Y, j), read(X, j), read(X, m), points, "warp")
    assert work_per_iteration(loop(i, 0, 9, product)).constant == 24 * 5 * thresholds.SCALAR_WORK
    assert (
        work_per_iteration(loop(i, 0, 9, Print(("x",)))).constant
        == thresholds.PRINT_COST * thresholds.SCALAR_WORK
    )
    assert (
        work_per_iteration(loop(i, 0, 9, Print((read(X, i),)))).constant
        == (thresholds.PRINT_COST + 1) * thresholds.SCALAR_WORK
    )
    assert total_work(loop(i, 0, 9, loop(j, 0, 10, COPY))).constant == 189 * thresholds.SCALAR_WORK


def test_neighbours_stored_by_cheap_work_are_vectors() -> None:
    beside = Store(at(Y, i), read(X, i))
    assert work_per_iteration(loop(i, 0, 9, beside)).constant == 2
    assert (
        work_per_iteration(
            loop(i, 9, 0, Store(at(Y, var(i) * -1 + 9), read(X, i)), step=-1)
        ).constant
        == 2
    )
    table = node(6, "table", 64, 64)
    assert work_of_round(Store(at(table, read(P, 0), i), read(X, i))) == 3, "in a row of its own"
    for other in (
        Store(at(Y, var(i) * 2), read(X, i)),
        Store(at(Y, i), ap("exp", read(X, i))),
        Store(at(replace(Y, strides=(2,)), i), read(X, i)),
        Store(at(Y, read(P, i)), read(X, i)),
        Store(at(S), read(X, i)),
        If(num(True, bool_), (beside,)),
    ):
        assert work_of_round(other) >= thresholds.SCALAR_WORK
        assert work_of_round(beside, other) == work_of_round(beside, If(num(True, bool_), (other,)))


def test_a_loop_is_no_vector_from_a_call_of_the_library_on() -> None:
    assert cost(ap("exp", read(S))) == thresholds.LIBRARY_CALL_COST
    value = read(X, i)
    for _ in range(thresholds.LIBRARY_CALL_COST - 2):
        value = ap("neg", value)
    assert cost(value) == thresholds.LIBRARY_CALL_COST - 1
    assert work_of_round(Store(at(Y, i), value)) == thresholds.LIBRARY_CALL_COST
    assert (
        work_of_round(Store(at(Y, i), ap("neg", value)))
        == (thresholds.LIBRARY_CALL_COST + 1) * thresholds.SCALAR_WORK
    )


def test_loops_that_are_vectors_already_stay_cheap() -> None:
    body = Store(at(Y, var(i) * 2), read(X, i))
    assert work_of_round(body) == 2 * thresholds.SCALAR_WORK
    assert work_per_iteration(replace(loop(i, 0, 9, body), kind="vector")).constant == 2


def test_rows_of_a_tile_in_registers_are_computed_at_once() -> None:
    tile = replace(node(7, "tile", 6, 64), purpose="tile")
    term = ap("mul", read(X, 0), read(Y, j))
    for fused in (False, True):
        value = ap("fma", read(X, 0), read(Y, j), read(tile, 0, j)) if fused else term
        made = Store(at(tile, 0, j), value) if fused else Update(at(tile, 0, j), OPS["add"], value)
        row = replace(loop(j, 0, 64, made), kind="vector")
        assert work_of_round(row) == 64 // 4 + thresholds.SCALAR_WORK
        assert work_of_round(replace(row, hi=const(62))) == 64 // 4 + thresholds.SCALAR_WORK, (
            "the last is not full"
        )
        assert work_of_round(replace(row, kind="serial")) >= 64, "no vectors"
    strip = replace(node(8, "strip", 64), purpose="tile")
    down = Update(at(strip, j), OPS["add"], read(X, j))
    assert (
        work_of_round(replace(loop(j, 0, 64, down), kind="vector")) == 64 + thresholds.SCALAR_WORK
    )


def test_a_unit_has_one_element_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "REGISTER_TILE_BYTES_PER_UNIT", 1)
    tile = replace(node(7, "tile", 6, 64), purpose="tile")
    made = Update(at(tile, 0, j), OPS["add"], read(Y, j))
    assert work_of_round(replace(loop(j, 0, 64, made), kind="vector")) >= 64


def test_comments_and_what_ends_rounds_cost_nothing() -> None:
    beside = Store(at(Y, i), read(X, i))
    assert work_of_round(Comment("y = x"), beside) == 2
    assert work_of_round(COPY, Comment("y = x"), Continue(), Break()) == 2 * thresholds.SCALAR_WORK
    assert work_of_round(COPY, Permute((X, Y), (Y, X)), Barrier()) == 2 * thresholds.SCALAR_WORK


def test_an_element_that_is_added_to_is_read_and_written() -> None:
    assert work_of_round(Store(at(S), read(X, 0))) == thresholds.SCALAR_WORK, (
        "a scalar is in a register"
    )
    assert work_of_round(Update(at(S), OPS["add"], read(X, 0))) == 2 * thresholds.SCALAR_WORK
    assert work_of_round(Update(at(Y, 0), OPS["add"], read(X, 0))) == 4 * thresholds.SCALAR_WORK
    assert work_of_round(Update(at(Y, i), OPS["add"], read(X, i))) == 4


def test_what_is_tested_and_indexed_with_counts_too() -> None:
    test = ap("gt", read(X, 0), num(0.0))
    assert work_of_round(If(test, (COPY,))) == (cost(test) + 2) * thresholds.SCALAR_WORK
    assert work_of_round(Store(at(Y, 0), read(X, read(P, 0)))) == 3 * thresholds.SCALAR_WORK
    assert (
        work_of_round(Check(test, Fault("CD0602", "CdIndexError", "no")))
        == cost(test) * thresholds.SCALAR_WORK
    )


def test_a_search_for_the_fault_that_a_test_has_seen_is_rare() -> None:
    check = Check(ap("gt", read(X, i), num(0.0)), Fault("CD0602", "CdIndexError", "no"))

    def search(*body: Stmt) -> int:
        return work_of_round(If(num(True, bool_), (loop(j, 0, 64, *body),)))

    assert search(Store(at(S), read(X, i)), check) == 0
    assert search(COPY, check) > 64
    assert search(COPY) > 64


def test_whole_numbers_are_added_as_vectors() -> None:
    whole, real = node(6, "whole", dtype=i64), Update(at(S), OPS["max"], read(X, i))
    assert work_of_round(Update(at(whole), OPS["max"], read(P, i))) == 2
    assert work_of_round(real) == 2 * thresholds.SCALAR_WORK


def test_of_two_sides_the_dearer_one_counts() -> None:
    dear = Store(at(Y, 0), ap("exp", read(X, 0)))
    branch = If(num(True, bool_), (COPY,), (dear,))
    assert work_per_iteration(loop(i, 0, 9, branch)) == work_per_iteration(loop(i, 0, 9, dear))
    turned = If(num(True, bool_), (dear,), (COPY,))
    assert work_per_iteration(loop(i, 0, 9, turned)) == work_per_iteration(loop(i, 0, 9, dear))


def test_of_two_sides_both_count_where_the_call_decides() -> None:
    long = loop(j, 0, var(n), COPY)
    sides = ((long,), (COPY,)), ((COPY,), (long,))
    for then, other in sides:
        work = work_per_iteration(loop(i, 0, 9, If(num(True, bool_), then, other)))
        assert work == (var(n) * 2 + 1 + 2) * thresholds.SCALAR_WORK


def test_sizes_stay_symbols_and_inner_variables_do_not() -> None:
    assert (
        work_per_iteration(loop(i, 0, var(n), loop(j, 0, var(m), COPY)))
        == (var(m) * 2 + 1) * thresholds.SCALAR_WORK
    )
    triangle = loop(i, 0, var(n), loop(j, 0, var(i), COPY))
    assert work_per_iteration(triangle).symbols() == {n}
    assert evaluate(work_per_iteration(triangle), {n: 100}) == 101 * thresholds.SCALAR_WORK
    assert (
        work_per_iteration(loop(i, 0, 100, loop(j, var(i), 100, COPY))).constant
        == 101 * thresholds.SCALAR_WORK
    )
    assert (
        work_per_iteration(loop(i, 40, 100, loop(j, 0, var(i), COPY))).constant
        == 141 * thresholds.SCALAR_WORK
    )
    both = loop(j, 10, var(i), loop(k, 0, var(j), COPY))  # j is taken to be 40, i to be 70
    assert (
        work_per_iteration(loop(i, 40, 100, both)).constant
        == (60 * 81 + 1) * thresholds.SCALAR_WORK
    )


def test_loops_without_rounds_take_nothing_off() -> None:
    left = loop(j, 100, var(i), COPY)
    for known in (None, frozenset[Symbol]()):
        work = work_per_iteration(loop(i, var(n), var(m), loop(k, 0, 10, COPY), left), known)
        assert evaluate(work, {n: 0, m: 20}) == 22 * thresholds.SCALAR_WORK
        assert evaluate(work, {n: 0, m: 400}) == 222 * thresholds.SCALAR_WORK
    number = work_per_iteration(
        loop(i, 0, 9, loop(k, 0, 10, COPY), loop(j, 0, var(n), COPY)), frozenset()
    )
    assert evaluate(number, {n: -1000}) == 22 * thresholds.SCALAR_WORK
    assert evaluate(number, {n: 10}) == 42 * thresholds.SCALAR_WORK


def test_what_data_decides_is_guessed() -> None:
    count = read(node(3, "count", dtype=i64))
    body = loop(i, 0, 9, Let(k, count), loop(j, 0, var(k), COPY))
    assert (
        work_per_iteration(body).constant
        == (2 * thresholds.ASSUMED_SIZE + 1) * thresholds.SCALAR_WORK
    )
    endless = While((), num(True, bool_), (COPY,))
    assert work_per_iteration(endless).constant == 2 * thresholds.SCALAR_WORK
    assert (
        work_per_iteration(loop(i, 0, 9, endless)).constant
        == 2 * thresholds.ASSUMED_SIZE * thresholds.SCALAR_WORK
    )
    test = ap("gt", read(X, 0), num(0.0))
    asked = While((COPY,), test, (Store(at(S), read(X, 0)),))
    assert work_per_iteration(asked).constant == (2 + cost(test) + 1) * thresholds.SCALAR_WORK
    assert (
        work_per_iteration(loop(i, 0, 9, asked)).constant
        == (2 + cost(test) + 1) * thresholds.ASSUMED_SIZE * thresholds.SCALAR_WORK
    )


def test_numbers_stay_numbers() -> None:
    far = loop(i, 0, 2**62, loop(j, 0, 2**62, COPY))
    assert total_work(far).constant == MAX_WORK
    assert (
        total_work(loop(i, 0, MAX_WORK // 2 + 1, Store(at(Y, i), read(X, i)))).constant == MAX_WORK
    )
    assert (
        total_work(loop(i, 0, MAX_WORK // 2 - 1, Store(at(Y, i), read(X, i)))).constant
        == MAX_WORK - 2
    )
    every = total_work(loop(i, 0, 2**62, loop(j, 0, var(n), COPY)))
    assert evaluate(every, {n: 1}) == MAX_WORK * 3 * thresholds.SCALAR_WORK, (
        "the number is taken to be the largest"
    )
    assert work_per_iteration(loop(i, 0, 9, far, far)).constant == MAX_WORK


def test_rounds_of_run_time_sizes_are_none_below_zero() -> None:
    fewer = loop(i, 1, var(n), COPY)
    assert evaluate(total_work(fewer), {n: 0}) == 0
    assert evaluate(total_work(fewer), {n: 5}) == 8 * thresholds.SCALAR_WORK
    back = loop(i, var(n), var(m), COPY, step=-1)
    assert evaluate(total_work(back), {n: 2, m: 9}) == 0
    assert evaluate(total_work(back), {n: 9, m: 2}) == 14 * thresholds.SCALAR_WORK
    more = loop(i, 0, var(n) + 1, COPY)
    assert total_work(more) == (var(n) + 1) * (2 * thresholds.SCALAR_WORK), (
        "no more is asked of what is a size"
    )
    assert total_work(more, frozenset((n,))) == total_work(more)
    assert evaluate(total_work(more, frozenset((m,))), {n: -9}) == 0


def test_storage_costs_its_elements() -> None:
    made = node(4, "made", 3, n)
    assert work_per_iteration(loop(i, 0, 9, Alloc(made))) == var(n) * 3
    count = read(node(3, "count", dtype=i64))
    assert (
        work_per_iteration(loop(i, 0, 9, Let(n, count), Alloc(made))).constant
        == 3 * thresholds.ASSUMED_SIZE
    )
    assert work_per_iteration(loop(i, 0, 9, Alloc(S))).constant == 1
    fewer = node(4, "fewer", var(n) - 2 * thresholds.ASSUMED_SIZE)
    assert (
        work_per_iteration(loop(i, 0, 9, COPY, Let(n, count), Alloc(fewer))).constant
        == 2 * thresholds.SCALAR_WORK
    )
