"""Lowering keeps the meaning: assignments, their loops and the C of those loops give the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plusequals.lowering.ir import assignments as ir1
from plusequals.lowering.ir import dtypes, loops
from plusequals.lowering.ir.assignments import Access, Pair, Procedure
from plusequals.lowering.ir.expressions import Cast, Const, Dynamic, Read, Select, conjuncts
from plusequals.lowering.ir.indexing import Symbol, const, minimum, mod, var
from plusequals.lowering.ir.interpret import run_procedure, run_program
from plusequals.lowering.ir.ops import PAIR_OPS
from plusequals.lowering.ir.verify import verify_procedure, verify_program
from plusequals.lowering.lower import lower

from ..backends.codegen.harness import COMPILER, compiled
from ..backends.codegen.programs import (
    apply,
    assign,
    at,
    node,
    number,
    over,
    position,
    procedure,
    read,
    softmax,
    symbols,
)

Array = np.ndarray[Any, Any]
i, j, k, t, n, i2, j2 = symbols("i j k t n i j")
F64, I64 = dtypes.float64, dtypes.int64
X = node(0, "x", (6,), F64)
A = node(1, "a", (6, 6), F64)
IDX = node(2, "idx", (6,), I64)


def agree(whole: Procedure, *arrays: Array) -> loops.Program:
    """Run a procedure in all three forms on copies of the arrays; return its loops."""
    program = lower(whole)
    verify_procedure(whole)
    verify_program(program)
    results = [np.zeros(r.static_shape or (), r.dtype.numpy) for r in whole.results]
    forms = [[a.copy() for a in (*arrays, *results)] for _ in range(3)]
    oracle = run_procedure(whole, forms[0], print)
    run_program(program, forms[1], print)
    if COMPILER is not None:
        assert compiled(program)(*forms[2]).status == 0
    else:
        forms.pop()
    assert all(final is given for final, given in zip(oracle, forms[0][len(arrays) :]))
    for form in forms[1:]:
        for wanted, got in zip(forms[0], form):
            np.testing.assert_array_equal(got, wanted)
    return program


def numbers(*shape: int) -> Array:
    return np.random.default_rng(7).integers(1, 9, shape).astype(float)


def test_a_shift_in_place_reads_the_old_values_through_an_array() -> None:
    value = apply("add", read(X, var(i) - 1), number(1, F64))
    stmt = assign("x[i] = x[i - 1] + 1", X, at(i), value, over((i, 1, 6)))
    program = agree(procedure("shift", [(X, True)], [stmt]), numbers(6))
    assert [made.label for made in program.locals] == ["x_new"]
    assert program.locals[0].static_shape == (5,)


def test_the_same_cell_is_read_in_place() -> None:
    value = apply("mul", read(X, i), apply("exp", read(X, i)))
    stmt = assign("x[i] = x[i] * exp(x[i])", X, at(i), value, over((i, 0, 6)))
    program = lower(procedure("same", [(X, True)], [stmt]))
    assert program.locals == ()


@pytest.mark.parametrize("op", ["add", "sub", "max"])
def test_an_accumulation_from_elsewhere_needs_no_more_than_its_cells(op: str) -> None:
    stmt = assign("x[i] += x[i - 1]", X, at(i), read(X, var(i) - 1), over((i, 1, 6)), op)
    program = agree(procedure("pull", [(X, True)], [stmt]), numbers(6))
    assert [made.label for made in program.locals] == ["x_new"]
    assert program.locals[0].static_shape == (5,)


def test_a_row_accumulated_from_its_neighbours_copies_no_other_row() -> None:
    value = apply("add", read(A, k, j), read(A, var(k) - 1, var(j) + 1))
    stmt = assign("a[k, j + 1] += a[k, j] + a[k - 1, j + 1]", A, at(k, var(j) + 1), value,
                  over((j, 0, 5)), "add")  # fmt: skip
    loop = ir1.For(k, const(1), const(6), 1, (stmt,))
    program = agree(procedure("sweep", [(A, True)], [loop]), numbers(6, 6))
    assert [made.static_shape for made in program.locals] == [(5,)]


def test_sums_of_other_cells_are_added_to_what_was_there() -> None:
    value = apply("mul", read(X, j), read(A, i, j))
    stmt = assign("x[i] += x[j] * a[i, j]", X, at(i), value, over((i, 0, 6)), "add",
                  reduced=over((j, 0, 6)))  # fmt: skip
    program = agree(procedure("pull", [(X, True), (A, False)], [stmt]), numbers(6), numbers(6, 6))
    assert [made.label for made in program.locals] == ["x_new"]


def test_accumulations_into_one_cell_read_a_copy() -> None:
    stmt = assign("x[i % 2] += x[i]", X, (mod(var(i), const(2)),), read(X, i), over((i, 0, 6)),
                  "add")  # fmt: skip
    program = agree(procedure("meet", [(X, True)], [stmt]), numbers(6))
    assert [made.label for made in program.locals] == ["x_old"]


@pytest.mark.parametrize("initialize", [True, False])
def test_a_reduction_of_the_cell_itself_goes_through_a_scalar(initialize: bool) -> None:
    value = apply("mul", read(X, i), read(A, i, j))
    stmt = assign("x[i] = sum(x[i] * a[i, j])", X, at(i), value, over((i, 0, 6)), "add",
                  initialize=initialize, reduced=over((j, 0, 6)))  # fmt: skip
    program = agree(procedure("own", [(X, True), (A, False)], [stmt]), numbers(6), numbers(6, 6))
    assert [made.rank for made in program.locals] == [0]


def test_a_transpose_in_place() -> None:
    stmt = assign("a[i, j] = a[j, i]", A, at(i, j), read(A, j, i), over((i, 0, 6), (j, 0, 6)))
    agree(procedure("transpose", [(A, True)], [stmt]), numbers(6, 6))


def test_elimination_needs_no_copy_where_rows_and_columns_stay_apart() -> None:
    scale = assign("a[i, k] /= a[k, k]", A, at(i, k), read(A, k, k), over((i, var(k) + 1, 6)),
                   "div")  # fmt: skip
    value = apply("mul", read(A, i2, k), read(A, k, j2))
    below = over((i2, var(k) + 1, 6), (j2, var(k) + 1, 6))
    update = assign("a[i, j] -= a[i, k] * a[k, j]", A, at(i2, j2), value, below, "sub")
    loop = ir1.For(k, const(0), const(6), 1, (scale, update))
    program = agree(procedure("lu", [(A, True)], [loop]), numbers(6, 6) + 9 * np.eye(6))
    assert program.locals == ()


def test_a_triangle_reads_what_other_points_write() -> None:
    stmt = assign("a[i, j] = a[j, i]", A, at(i, j), read(A, j, i), over((i, 0, 6), (j, var(i), 6)))
    program = agree(procedure("mirror", [(A, True)], [stmt]), numbers(6, 6))
    assert [made.label for made in program.locals] == ["a_old"]


def test_scattered_contributions_all_count_and_the_last_store_wins() -> None:
    place = (Dynamic(read(IDX, n)),)
    add = assign("x[idx[n]] += n", X, place, Cast(position(n), F64), over((n, 0, 6)), "add")
    idx = np.array([3, 1, 3, 3, 0, 1])
    agree(procedure("count", [(X, True), (IDX, False)], [add]), numbers(6), idx)
    last = assign("x[idx[n]] = x[n]", X, place, read(X, n), over((n, 0, 6)))
    agree(procedure("last", [(X, True), (IDX, False)], [last]), numbers(6), idx)


def test_an_index_array_that_writes_itself_is_copied() -> None:
    stmt = assign("idx[idx[n]] = n", IDX, (Dynamic(read(IDX, n)),), position(n), over((n, 0, 6)))
    program = agree(procedure("itself", [(IDX, True)], [stmt]), np.array([5, 4, 4, 0, 1, 2]))
    assert [made.label for made in program.locals] == ["idx_old"]


def test_predicates_read_the_state_before() -> None:
    own = apply("gt", read(X, i), number(3, F64))
    first = apply("gt", read(X, 0), number(0, F64))
    for test, copies in ((own, 0), (first, 1)):
        stmt = assign("if ...: x[i] = -x[i]", X, at(i), apply("neg", read(X, i)),
                      over((i, 0, 6), where=test))  # fmt: skip
        program = agree(procedure("masked", [(X, True)], [stmt]), numbers(6))
        assert len(program.locals) == copies


def test_predicates_stand_as_far_out_as_their_symbols_allow() -> None:
    outer = apply("gt", read(X, i), number(3, F64))
    inner = apply("gt", read(A, i, j), number(4, F64))
    both = Select(outer, inner, Const(False, dtypes.bool_))
    y = node(9, "y", (6, 6), F64)
    stmt = assign("y[i, j] = 1", y, at(i, j), number(1, F64),
                  over((i, 0, 6), (j, 0, 6), where=both))  # fmt: skip
    program = agree(procedure("guards", [(y, True), (X, False), (A, False)], [stmt]),
                    numbers(6, 6), numbers(6), numbers(6, 6))  # fmt: skip
    _, rows = program.kernels[0].body
    assert isinstance(rows, loops.For)
    (guard,) = rows.body
    assert isinstance(guard, loops.If)
    assert guard.test == outer
    assert list(conjuncts(apply("and", outer, inner))) == [outer, inner]


def test_a_reduced_range_may_depend_on_a_free_one() -> None:
    y = node(9, "y", (6,), F64)
    stmt = assign("y[i] = sum[k <= i](x[k])", y, at(i), read(X, k), over((i, 0, 6)), "add",
                  initialize=True, reduced=over((k, 0, var(i) + 1)))  # fmt: skip
    agree(procedure("cumsum", [(X, False)], [stmt], results=[y]), numbers(6))


@pytest.mark.parametrize("op", ["argmin", "argmax"])
def test_pairs_keep_the_first_best_and_the_first_nan(op: str) -> None:
    best, where = node(8, "best", (6,), F64), node(9, "where", (6,), I64)
    stmt = ir1.Assign(
        Access(best, at(i)), PAIR_OPS[op], True, read(A, i, j), over((i, 0, 6)),
        over((j, 0, 6)), Pair(Access(where, at(i)), var(j)),
    )  # fmt: skip
    data = numbers(6, 6)
    data[2, 3:] = np.nan
    data[4] = np.inf
    agree(procedure(op, [(A, False)], [stmt], results=[best, where]), data)


def test_time_steps_between_two_planes_need_no_copy() -> None:
    u = node(8, "u", (4, 6), F64)
    value = apply("add", read(u, t, var(i) - 1), read(u, t, var(i) + 1))
    step = assign("u[t + 1, i] = u[t, i - 1] + u[t, i + 1]", u, at(var(t) + 1, i), value,
                  over((i, 1, 5)))  # fmt: skip
    loop = ir1.For(t, const(0), const(3), 1, (step,))
    assert agree(procedure("steps", [(u, True)], [loop]), numbers(4, 6)).locals == ()


def test_rows_that_loops_around_keep_apart_need_no_copy() -> None:
    """Also where what they have in common starts at the smaller of two numbers."""
    u = node(8, "u", (6, 6), F64)
    for lo, hi, copies in ((var(k) + 1, const(6), 0), (const(0), const(6), 1)):
        start = minimum(var(t), const(4)) + var(j)
        value = read(u, k, start)
        step = assign("u[i, j:] += u[k, j:]", u, at(i, start), value, over((j, 0, 2)), "add")
        inner = ir1.For(i, lo, hi, 1, (step,))
        whole = ir1.For(t, const(0), const(3), 1, (ir1.For(k, const(0), const(6), 1, (inner,)),))
        made = agree(procedure("rows", [(u, True)], [whole]), numbers(6, 6))
        assert len(made.locals) == copies
        assert all(one.static_shape == (2,) for one in made.locals), "no more than is written"


def test_loops_leave_and_skip_and_count_down() -> None:
    total = node(7, "total", (), F64)
    skip = ir1.Branch(apply("eq", position(k), Const(3, I64)), (ir1.Continue(),), ())
    leave = ir1.Branch(apply("eq", position(k), Const(1, I64)), (ir1.Break(),), ())
    add = assign("total += x[k]", total, (), read(X, k), over(), "add")
    down = ir1.For(k, const(5), const(-1), -1, (skip, leave, add))
    agree(procedure("down", [(X, False)], [down], results=[total]), numbers(6))
    test = apply("lt", Read(total, ()), number(20, F64))
    until = ir1.While((add_first(total),), test, (add_first(total),))
    agree(procedure("until", [(X, False)], [until], results=[total]), numbers(6))


def add_first(total: Any) -> ir1.Assign:
    return assign("total += x[0]", total, (), read(X, 0), over(), "add")


def test_storage_of_run_time_size_grows_and_starts_as_zeros() -> None:
    size = Symbol("size", 50)
    w, total = node(7, "w", (var(size),), F64), node(8, "total", (), F64)
    fill = assign("w[i] += x[i]", w, at(i), read(X, i), over((i, 0, var(size))), "add")
    shift = assign("w[j] = w[j - 1]", w, at(j), read(w, var(j) - 1), over((j, 1, var(size))))
    add = assign("total += sum(w)", total, (), read(w, n), over(), "add",
                 reduced=over((n, 0, var(size))))  # fmt: skip
    body = (ir1.Let(size, position(var(k) + 1)), ir1.Alloc(w), fill, shift, add)
    loop = ir1.For(k, const(0), const(6), 1, body)
    agree(procedure("sizes", [(X, False)], [loop], [w], [total]), numbers(6))


def test_exchanged_arrays_end_where_the_caller_looks() -> None:
    u, v = node(7, "u", (6,), F64), node(8, "v", (600,), F64)
    big_u, big_x = node(7, "u", (600,), F64), node(0, "x", (600,), F64)
    for first, second, size in ((u, X, 6), (big_u, v, 600), (big_u, big_x, 600)):
        start = assign("u[i] = i", first, at(i), Cast(position(i), F64), over((i, 0, size)))
        grow = assign("v[j] = u[j] + 1", second, at(j), apply("add", read(first, j),
                      number(1, F64)), over((j, 0, size)))  # fmt: skip
        swap = ir1.Permute((first, second), (second, first))
        loop = ir1.For(k, const(0), const(3), 1, (grow, swap))
        given = [] if second is v else [(second, True)]
        kept = [v] if second is v else []
        whole = procedure("swap", given, [start, loop], kept, [first])
        agree(whole, *(numbers(size) for _ in given))


def test_a_statement_keeps_its_span_and_its_text() -> None:
    program = lower(softmax(2, 3))
    comments = [s.text for s in program.kernels[0].body if isinstance(s, loops.Comment)]
    assert comments[0] == "m[i] = max(x[i, j])"
    nest = program.kernels[0].body[1]
    assert isinstance(nest, loops.For)
    assert nest.span.text == comments[0]
    block = ir1.Block("stable part", softmax(2, 3).body[:1])
    texts = [s.text for s in lower(procedure("b", [], [block])).kernels[0].body
             if isinstance(s, loops.Comment)]  # fmt: skip
    assert texts == ["stable part", "m[i] = max(x[i, j])", "end stable part"]


def test_checks_over_a_domain_become_loops() -> None:
    fault = ir1.Fault("CD0301", "CdIndexError", "index {0}")
    test = apply("lt", read(IDX, n), Const(6, I64))
    check = ir1.Check(test, fault, (read(IDX, n),), over((n, 0, 6)))
    program = lower(procedure("checked", [(IDX, False)], [check]))
    (nest,) = program.kernels[0].body
    assert isinstance(nest, loops.For)
    assert nest.body == (loops.Check(test, fault, (read(IDX, n),)),)
