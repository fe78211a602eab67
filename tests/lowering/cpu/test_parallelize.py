"""Which loops become parallel."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plusequals.base.diagnostic import CdInternalError
from plusequals.lowering.cpu.parallelize import is_worth_sharing, parallelize, thread_privates
from plusequals.lowering.ir.assignments import Alloc
from plusequals.lowering.ir.indexing import const, var
from plusequals.lowering.ir.loops import For, If, Program, Store, Update, While
from plusequals.lowering.ir.ops import OPS
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.pipeline import PASSES, optimize
from plusequals.lowering.target import Target

from ..ir.build import ap, at, bool_, node, num, program, read, symbols
from ..shown import lowered, text_of

i, j, k, n = symbols("i j k n")
X, Y, T, S = node(0, "x", 64), node(1, "y", 64), node(2, "t", 64), node(3, "s")
EAGER = Target(threads=4, parallel_from=0, schedule=True)


def heads(made: Program) -> list[str]:
    """The variables of the parallel loops."""
    return [
        stmt.symbol.name for kernel in made.kernels for stmt in statements(kernel.body)
        if isinstance(stmt, For) and stmt.kind == "parallel"
    ]  # fmt: skip


def optimized(body: str, target: Target = EAGER, **arrays: str) -> Program:
    return optimize(lowered(body, **arrays), target)[0]


def test_without_a_schedule_or_threads_nothing_changes() -> None:
    made = lowered("y[i] = x[i] + 1", y="f32[900]", x="f32[900]")
    assert parallelize(made, replace(EAGER, schedule=False)) is made
    assert parallelize(made, replace(EAGER, threads=1)) is made
    assert heads(parallelize(made, EAGER)) == ["i"]
    assert heads(parallelize(made, replace(EAGER, threads=2))) == ["i"]


def test_it_is_the_last_pass() -> None:
    assert PASSES[-1].name == "parallelize"


def test_the_outermost_loop_is_taken_and_none_inside_of_it() -> None:
    made = optimized("y[i, j] = sum(x[i, k] * x[k, j])", y="f32[9, 9]", x="f32[9, 9]")
    assert heads(made) == ["i"]


def test_steps_in_time_are_parallel_in_space() -> None:
    text = "for t in range(9):\n    y[1:-1] = (x[:-2] + x[2:]) * 0.5\n    x[1:-1] = y[1:-1]"
    made = optimized(text, y="f32[90]", x="f32[90]")
    assert set(heads(made)) and "t" not in heads(made)


def test_a_branch_is_looked_into() -> None:
    loop = For(i, const(0), const(64), 1, (Store(at(Y, i), read(X, i)),))
    made = program((Y,), (X, S), If(ap("gt", read(S), num(0.0)), (loop,)))
    assert heads(parallelize(made, EAGER)) == ["i"]


def test_the_body_of_a_while_loop_is_looked_into() -> None:
    loop = For(i, const(0), const(64), 1, (Store(at(Y, i), read(X, i)),))
    made = program((Y,), (X, S), While((loop,), ap("gt", read(S), num(0.0)), ()))
    assert heads(parallelize(made, EAGER)) == ["i"]


def test_little_work_stays_alone() -> None:
    loop = For(i, const(0), const(64), 1, (Store(at(Y, i), read(X, i)),))
    made = program((Y,), (X,), loop)
    assert heads(parallelize(made, replace(EAGER, parallel_from=129))) == []
    assert heads(parallelize(made, replace(EAGER, parallel_from=128))) == ["i"]
    assert not is_worth_sharing(replace(loop, hi=const(1)), 0)
    assert is_worth_sharing(replace(loop, hi=const(2)), 4) and not is_worth_sharing(
        replace(loop, hi=const(2)), 5
    )
    assert is_worth_sharing(loop, 128) and not is_worth_sharing(loop, 129)
    assert is_worth_sharing(replace(loop, hi=var(n)), 10**9), "the call decides"


def test_an_accumulation_into_one_cell_stays_in_order() -> None:
    loop = For(i, const(0), const(64), 1, (Update(at(S), OPS["add"], read(X, i)),))
    assert heads(parallelize(program((S,), (X,), loop), EAGER)) == []


def test_storage_of_run_time_size_is_not_shared_out() -> None:
    made = node(9, "m", n)
    loop = For(i, const(0), const(64), 1, (Alloc(made), Store(at(Y, i), read(X, i))))
    assert heads(parallelize(program((Y,), (X,), loop, local=(made,)), EAGER)) == []


def test_each_thread_has_its_own_temporaries() -> None:
    inner = For(j, const(0), const(64), 1, (Store(at(T, j), ap("mul", read(S), read(X, j))),))
    last = Store(at(Y, i), read(T, i))
    loop = For(i, const(0), const(64), 1, (Store(at(S), read(X, i)), inner, last))
    made = program((Y,), (X,), loop, local=(S, T))
    assert thread_privates(made) == set()
    shared, placement = optimize(made, EAGER)
    assert heads(shared) == ["i"]
    assert all(placement[one].where == "private" for one in shared.locals)
    assert not placement.memory.arena and not placement.memory.stack


def test_temporaries_that_are_too_large_for_each_thread_are_kept_once() -> None:
    large, column = node(2, "t", 1 << 20), For(j, const(0), const(1 << 20), 1, (
        Store(at(node(2, "t", 1 << 20), j), read(X, i)),))  # fmt: skip
    loop = For(i, const(0), const(64), 1, (column, Store(at(Y, i), read(large, i))))
    made = parallelize(program((Y,), (X,), loop, local=(large,)), EAGER)
    assert heads(made) == ["i"], "four megabytes are not too much"
    larger = node(2, "t", (1 << 20) + 1)
    column = replace(column, body=(Store(at(larger, j), read(X, i)),))
    loop = For(i, const(0), const(64), 1, (column, Store(at(Y, i), read(larger, i))))
    assert heads(parallelize(program((Y,), (X,), loop, local=(larger,)), EAGER)) == ["j"]
    byte = node(2, "t", (4 << 20) + 1, dtype=bool_)
    column = replace(column, body=(Store(at(byte, j), num(True, bool_)),))
    loop = For(i, const(0), const(64), 1, (column, Store(at(Y, i), read(byte, i))))
    assert heads(parallelize(program((Y,), (X,), loop, local=(byte,)), EAGER)) == ["j"]


def test_one_iteration_is_not_shared_but_what_is_inside() -> None:
    inner = For(j, const(0), const(64), 1, (Store(at(Y, j), read(X, j)),))
    assert heads(
        parallelize(program((Y,), (X,), For(i, const(0), const(1), 1, (inner,))), EAGER)
    ) == ["j"]


def test_what_is_known_around_a_loop_counts() -> None:
    inner = For(j, const(0), const(8), 1, (Store(at(Y, j), read(Y, var(j) + var(k))),))
    made = program((Y,), (X,), For(k, const(8), const(20), 1, (inner,)))
    assert heads(parallelize(made, EAGER)) == ["j"]


def test_a_temporary_that_an_iteration_takes_over_keeps_the_order() -> None:
    loop = For(i, const(0), const(64), 1, (Store(at(Y, i), read(S)), Store(at(S), read(X, i))))
    assert heads(parallelize(program((Y,), (X,), loop, local=(S,)), EAGER)) == []


def test_softmax_runs_over_its_rows() -> None:
    made = optimized(
        "m[i] = max(x[i, j]); e[i, j] = exp(x[i, j] - m[i]); y[i, j] = e[i, j] / sum[k](e[i, k])",
        y="f32[40, 50]", x="f32[40, 50]",
    )  # fmt: skip
    assert text_of(made).count("parallel") == 1
    assert text_of(made).startswith("for i in 0..40 parallel:")


def test_what_is_inside_of_little_work_is_not_asked_in_the_run() -> None:
    table = node(4, "z", 64, 64)
    inner = For(j, const(0), var(i) + 1, 1, (Store(at(table, i, j), read(X, j)),))
    loop = For(i, const(0), const(64), 1, (inner,))
    for least, expected in ((0, ["i"]), (1 << 30, [])):
        target = replace(EAGER, parallel_from=least)
        assert heads(parallelize(program((table,), (X,), loop), target)) == expected


def test_a_parallel_loop_inside_of_one_that_becomes_parallel_is_serial_again() -> None:
    grid = node(0, "grid", 64, 8)
    inner = For(j, const(0), const(8), 1, (Store(at(grid, i, j), num(1.0)),), "parallel")
    tested = If(ap("gt", num(1.0), num(0.0)), (inner,))
    lanes = For(k, const(0), const(8), 1, (Store(at(grid, i, k), num(2.0)),), "vector")
    made = program((grid,), (), For(i, const(0), const(64), 1, (tested, lanes)))
    assert heads(made) == ["j"]
    (outer,) = parallelize(made, EAGER).kernels[0].body
    serial = replace(tested, then=(replace(inner, kind="serial"),))
    assert outer == For(i, const(0), const(64), 1, (serial, lanes), "parallel")


def test_nested_parallel_loops_have_no_private_arrays() -> None:
    grid = node(0, "grid", 64, 8)
    inner = For(j, const(0), const(8), 1, (Store(at(grid, i, j), num(1.0)),), "parallel")
    made = program((grid,), (), For(i, const(0), const(64), 1, (inner,), "parallel"))
    with pytest.raises(CdInternalError, match="loop over i shares its arrays with another one"):
        thread_privates(made)
