"""The interpreter against NumPy and against the texts of both IRs, on small hand-built programs."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from plusequals.base.diagnostic import CdIndexError, CdInternalError, Source, Span
from plusequals.lowering.ir import assignments, dtypes, instructions, loops
from plusequals.lowering.ir.assignments import (
    Alloc,
    Block,
    Branch,
    Break,
    Check,
    Continue,
    Fault,
    For,
    Let,
    Pair,
    Permute,
    Print,
    Procedure,
    While,
)
from plusequals.lowering.ir.expressions import Cast, Dynamic, Select
from plusequals.lowering.ir.interpret import run_procedure, run_program
from plusequals.lowering.ir.ops import OPS, PAIR_OPS

from .build import (
    acc,
    aff,
    ap,
    at,
    best,
    bool_,
    f32,
    i32,
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


def silent(text: str) -> None:
    raise AssertionError(f"nothing should be printed, got {text!r}")


def run(p: Procedure | loops.Program, *arrays: np.ndarray) -> list[np.ndarray]:
    """The arrays after the run, copied before it."""
    mine = [array.copy() for array in arrays]
    (run_procedure if isinstance(p, Procedure) else run_program)(p, mine, silent)
    return mine


def test_softmax() -> None:
    i, j, k = symbols("i j k")
    y, x, m = node(0, "y", 4, 5), node(1, "x", 4, 5), node(2, "m", 4)
    e, s = node(3, "e", 4, 5), node(4, "s", 4)
    rows, cells = rng(i, 0, 4), rng(j, 0, 5)
    p = procedure(
        (y,), (x,),
        red(at(m, i), "max", read(x, i, j), over(rows), over(cells)),
        put(at(e, i, j), ap("exp", ap("sub", read(x, i, j), read(m, i))), rows, cells),
        red(at(s, i), "add", read(e, i, k), over(rows), over(rng(k, 0, 5))),
        put(at(y, i, j), ap("div", read(e, i, j), read(s, i)), rows, cells),
        local=(m, e, s),
    )  # fmt: skip
    given = np.random.default_rng(0).standard_normal((4, 5)).astype("float32")
    out, _ = run(p, np.zeros_like(given), given)
    wanted = np.exp(given - given.max(1, keepdims=True))
    np.testing.assert_allclose(out, wanted / wanted.sum(1, keepdims=True), rtol=1e-6)


def test_matrix_product_accumulates_on_what_is_there() -> None:
    i, j, k = symbols("i j k")
    c, a, b = node(0, "c", 2, 3), node(1, "a", 2, 4), node(2, "b", 4, 3)
    value = ap("mul", read(a, i, k), read(b, k, j))
    free = over(rng(i, 0, 2), rng(j, 0, 3))
    p = procedure((c,), (a, b), acc(at(c, i, j), "add", value, free, over(rng(k, 0, 4))))
    left = np.arange(8, dtype="float32").reshape(2, 4)
    right = np.arange(12, dtype="float32").reshape(4, 3)
    out, _, _ = run(p, np.full((2, 3), 100, "float32"), left, right)
    np.testing.assert_array_equal(out, 100 + left @ right)


def test_sums_are_in_program_order_in_the_type_of_the_node() -> None:
    (i,) = symbols("i")
    s, x = node(0, "s"), node(1, "x", 3)
    p = procedure((s,), (x,), red(at(s), "add", read(x, i), over(), over(rng(i, 0, 3))))
    values = np.array([1e8, 1.0, -1e8], "float32")
    assert run(p, np.array(7, "float32"), values)[0] == 0.0  # the 1 is lost, the 7 forgotten


def test_histogram_counts_duplicates() -> None:
    (n,) = symbols("n")
    h, x, w = node(0, "h", 3), node(1, "x", 5, dtype=i64), node(2, "w", 5)
    p = procedure((h,), (x, w), acc(at(h, read(x, n)), "add", read(w, n), over(rng(n, 0, 5))))
    bins, weights = np.array([2, 0, 2, 2, 0]), np.array([1, 2, 3, 4, 5], "float32")
    assert run(p, np.zeros(3, "float32"), bins, weights)[0].tolist() == [7, 0, 8]


def test_scatter_of_duplicates_keeps_the_last() -> None:
    (n,) = symbols("n")
    h, x, w = node(0, "h", 3), node(1, "x", 4, dtype=i64), node(2, "w", 4)
    p = procedure((h,), (x, w), put(at(h, read(x, n)), read(w, n), rng(n, 0, 4)))
    out = run(p, np.zeros(3, "float32"), np.array([1, 1, 0, 1]), np.float32([1, 2, 3, 4]))[0]
    assert out.tolist() == [3, 4, 0]


def test_assignment_reads_the_state_before_it() -> None:
    (i,) = symbols("i")
    x = node(0, "x", 5)
    shifted = ap("add", read(x, aff(i) - 1), num(1.0))
    p = procedure((x,), (), put(at(x, i), shifted, rng(i, 1, 5)))
    assert run(p, np.arange(5, dtype="float32"))[0].tolist() == [0, 1, 2, 3, 4]


def test_accumulated_value_reads_the_old_target() -> None:
    (i,) = symbols("i")
    x = node(0, "x", 4)
    p = procedure((x,), (), acc(at(x, i), "add", read(x, aff(i) - 1), over(rng(i, 1, 4))))
    assert run(p, np.ones(4, "float32"))[0].tolist() == [1, 2, 2, 2]


def test_domain_may_be_triangular_empty_and_have_holes() -> None:
    i, j = symbols("i j")
    y, x = node(0, "y", 4), node(1, "x", 4)
    below = over(rng(j, 0, i), where=ap("gt", read(x, j), num(0.0)))
    p = procedure((y,), (x,), red(at(y, i), "add", read(x, j), over(rng(i, 0, 4)), below))
    out = run(p, np.full(4, 9, "float32"), np.float32([1, -2, 3, 4]))[0]
    assert out.tolist() == [0, 1, 1, 4]


def test_where_of_the_free_domain_leaves_other_cells_alone() -> None:
    (i,) = symbols("i")
    x = node(0, "x", 4)
    guard = ap("lt", read(x, i), num(0.0))
    p = procedure((x,), (), put(at(x, i), num(0.0), rng(i, 0, 4), where=guard))
    assert run(p, np.float32([1, -1, 2, -2]))[0].tolist() == [1, 0, 2, 0]


@pytest.mark.parametrize(
    ("op", "values", "wanted"),
    [
        ("argmin", [3, 1, 2, 1], 1),
        ("argmax", [3, 1, 3, 2], 0),
        ("argmin", [3, np.nan, 1, np.nan], 1),
        ("argmax", [np.nan, 9, 1, np.nan], 0),
        ("argmin", [np.inf, np.inf, np.inf, np.inf], 0),
        ("argmax", [0.0, -0.0, 0.0, 0.0], 0),
    ],
)
def test_pairs_find_the_first_best_as_numpy_does(op: str, values: list[float], wanted: int) -> None:
    (i,) = symbols("i")
    v, at_, x = node(0, "v"), node(1, "at", dtype=i64), node(2, "x", 4)
    pair = Pair(at(at_), aff(i))
    p = procedure((v, at_), (x,), best(op, at(v), pair, read(x, i), over(), over(rng(i, 0, 4))))
    given = np.float32(values)
    value, place, _ = run(p, np.array(5, "float32"), np.array(7, "int64"), given)
    assert place == wanted == getattr(np, op)(given)
    np.testing.assert_array_equal(value, given[wanted])


def test_pair_of_nothing_is_at_minus_one() -> None:
    (i,) = symbols("i")
    v, at_, x = node(0, "v"), node(1, "at", dtype=i64), node(2, "x", 4)
    none = over(rng(i, 2, 2))
    p = procedure(
        (v, at_), (x,), best("argmin", at(v), Pair(at(at_), aff(i)), read(x, i), over(), none)
    )
    assert run(p, np.zeros((), "f"), np.zeros((), "q"), np.zeros(4, "f"))[1] == -1


def test_pair_accumulates_on_what_was_found() -> None:
    (i,) = symbols("i")
    v, at_, x = node(0, "v"), node(1, "at", dtype=i64), node(2, "x", 2)
    pair = Pair(at(at_), aff(i) + 10)
    s = best("argmin", at(v), pair, read(x, i), over(), over(rng(i, 0, 2)))
    p = procedure((v, at_), (x,), assignments.Assign(s.target, s.op, False, s.value, s.free,
                                                     s.reduced, s.pair))  # fmt: skip
    value, place, _ = run(p, np.array(2, "float32"), np.array(3, "int64"), np.float32([2, 1]))
    assert (value, place) == (1, 11)


def test_for_runs_in_order_down_too_and_break_and_continue_leave_it() -> None:
    (t,) = symbols("t")
    x = node(0, "x", 6, dtype=i64)
    step = acc(at(x, t), "add", pos(t), over())
    skip = Branch(ap("eq", pos(t), num(4, i64)), (Continue(),), ())
    leave = Branch(ap("lt", pos(t), num(2, i64)), (Break(),), ())
    p = procedure((x,), (), For(t, aff(5), aff(-1), -1, (skip, leave, step)))
    assert run(p, np.zeros(6, "int64"))[0].tolist() == [0, 0, 2, 3, 0, 5]


def test_recurrence_through_a_for_sees_earlier_rounds() -> None:
    (t,) = symbols("t")
    x = node(0, "x", 5, dtype=i64)
    fib = ap("add", read(x, aff(t) - 1), read(x, aff(t) - 2))
    p = procedure((x,), (), For(t, aff(2), aff(5), 1, (put(at(x, t), fib),)))
    assert run(p, np.array([1, 1, 0, 0, 0]))[0].tolist() == [1, 1, 2, 3, 5]


def test_while_evaluates_its_prelude_before_every_test() -> None:
    (half,) = symbols("half")
    n, steps = node(0, "n", dtype=i64), node(1, "steps", dtype=i64)
    prelude = (Let(half, ap("floordiv", read(n), num(2, i64))),)
    body = (put(at(n), pos(half)), acc(at(steps), "add", num(1, i64), over()))
    p = procedure((n, steps), (), While(prelude, ap("gt", pos(half), num(0, i64)), body))
    assert run(p, np.array(20), np.array(0)) == [1, 4]


def test_alloc_gives_run_time_shapes_and_zeros_each_time() -> None:
    t, n, i = symbols("t n i")
    y, row = node(0, "y", 4), node(1, "row", n)
    body = (
        Let(n, ap("add", pos(t), num(1, i64))),
        Alloc(row),
        acc(at(row, i), "add", num(1.0), over(rng(i, 0, n))),
        acc(at(y, t), "add", read(row, i), over(), over(rng(i, 0, n))),
    )
    p = procedure((y,), (), For(t, aff(0), aff(4), 1, body), local=(row,))
    assert run(p, np.zeros(4, "float32"))[0].tolist() == [1, 2, 3, 4]


def test_result_of_run_time_shape_is_handed_over() -> None:
    n, i = symbols("n i")
    size, r = node(0, "size", dtype=i64), node(1, "r", n, dtype=i64)
    p = procedure(
        (), (size,), Let(n, read(size)), Alloc(r), put(at(r, i), pos(i), rng(i, 0, n)),
        results=(r,),
    )  # fmt: skip
    (out,) = run_procedure(p, [np.array(3), None], silent)
    assert out.tolist() == [0, 1, 2]


def test_sizes_are_read_off_the_arguments() -> None:
    n, i = symbols("n i")
    y, x = node(0, "y", n), node(1, "x", n)
    p = procedure((y,), (x,), put(at(y, i), ap("neg", read(x, i)), rng(i, 0, n)))
    assert run(p, np.zeros(2, "f"), np.ones(2, "f"))[0].tolist() == [-1, -1]
    with pytest.raises(CdInternalError, match="has shape"):
        run(p, np.zeros(2, "f"), np.ones(3, "f"))


def test_permute_exchanges_arrays_and_copies_no_argument() -> None:
    a, b, r = node(0, "a", 2), node(1, "b", 2), node(2, "r")
    p = procedure(
        (a, b), (),
        Permute((a, b), (b, a)),
        put(at(a, 0), num(7.0)),
        put(at(r), read(b, 0)),
        results=(r,),
    )  # fmt: skip
    first, second, out = run(p, np.float32([1, 2]), np.float32([3, 4]), np.zeros((), "f"))
    assert (first.tolist(), second.tolist(), out) == ([1, 2], [7, 4], 1)


def test_permuted_results_come_back_in_the_callers_arrays() -> None:
    a, b = node(0, "a"), node(1, "b")
    p = procedure(
        (), (), put(at(a), num(1.0)), put(at(b), num(2.0)), Permute((a, b), (b, a)), results=(a, b)
    )
    assert run(p, np.array(9, "float32"), np.array(9, "float32")) == [2, 1]


def test_locals_and_results_start_as_zeros() -> None:
    t, r = node(0, "t"), node(1, "r", 2)
    p = procedure((), (), acc(at(r, 0), "add", read(t), over()), local=(t,), results=(r,))
    assert run(p, np.float32([5, 5]))[0].tolist() == [0, 0]


def test_failed_check_raises_its_fault_at_the_first_point() -> None:
    i, j = symbols("i j")
    x = node(0, "x", 4, dtype=i64)
    line = "y[i] = t[x[i]]"
    span = Span(Source("demo.py", 12, line), 12, 9, 12, 13)
    fault = Fault("CD0301", "CdIndexError", "index {0} at i = {1} leaves 0..3", ("use clamp",))
    bad = Check(ap("lt", read(x, i), num(3, i64)), fault, (read(x, i), pos(i)),
                over(rng(j, 0, 1), rng(i, 0, 4)), span)  # fmt: skip
    p = procedure((x,), (), bad, put(at(x, 0), num(0, i64)))
    given = np.array([1, 2, 7, 9])
    with pytest.raises(CdIndexError) as caught:
        run_procedure(p, [given], silent)
    assert isinstance(caught.value, IndexError)
    assert str(caught.value) == (
        "error[CD0301]: index 7 at i = 2 leaves 0..3\n"
        " --> demo.py:12:10\n"
        "12 | y[i] = t[x[i]]\n"
        "   |          ^^^^\n"
        "  = help: use clamp"
    )
    assert given[0] == 1


def test_print_shows_python_spellings() -> None:
    shown: list[str] = []
    pieces = ("x =", num(0.5), " ", num(3, i32), " ", num(True, bool_), num(1j, dtypes.complex64))
    run_procedure(procedure((), (), Block("talk", (Print(pieces),))), [], shown.append)
    assert shown == ["x =0.5 3 True1j\n"]


def test_access_outside_an_array_is_an_internal_error() -> None:
    (i,) = symbols("i")
    x = node(0, "x", 3)
    p = procedure((x,), (), put(at(x, aff(i) - 1), num(0.0), rng(i, 0, 3)))
    with pytest.raises(CdInternalError, match="accessed at"):
        run(p, np.zeros(3, "f"))


def test_select_evaluates_only_the_chosen_side() -> None:
    (i,) = symbols("i")
    y, x = node(0, "y", 3), node(1, "x", 3)
    inside = ap("gt", pos(i), num(0, i64))
    value = Select(inside, read(x, aff(i) - 1), num(-1.0))
    p = procedure((y,), (x,), put(at(y, i), value, rng(i, 0, 3)))
    assert run(p, np.zeros(3, "f"), np.float32([5, 6, 7]))[0].tolist() == [-1, 5, 6]


@pytest.mark.parametrize("op", ["max", "min"])
def test_max_and_min_propagate_nan(op: str) -> None:
    (i,) = symbols("i")
    s, x = node(0, "s"), node(1, "x", 3)
    p = procedure((s,), (x,), red(at(s), op, read(x, i), over(), over(rng(i, 0, 3))))
    assert np.isnan(run(p, np.zeros((), "f"), np.float32([1, np.nan, 2]))[0])


def test_bfloat16_is_computed_in_float32_and_rounded_at_the_store() -> None:
    (i,) = symbols("i")
    x = node(0, "x", 3, dtype=dtypes.bfloat16)
    third = ap("div", Cast(read(x, i), f32), num(3.0))
    p = procedure((x,), (), put(at(x, i), Cast(third, dtypes.bfloat16), rng(i, 0, 3)))
    given = np.array([1, 2, 5], ml_dtypes.bfloat16)
    wanted = (given.astype("f") / np.float32(3)).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(run(p, given)[0], wanted)


def test_program_statements_see_each_other() -> None:
    (i,) = symbols("i")
    x, s, a = node(0, "x", 4), node(1, "s"), node(2, "a", dtype=i64)
    p = program(
        (x, s, a), (),
        loops.Comment("a recurrence: no snapshot here"),
        loops.For(
            i, aff(1), aff(4), 1,
            (loops.Store(at(x, i), ap("add", read(x, aff(i) - 1), num(1.0))),), "vector",
        ),
        loops.Store(at(a), num(-1, i64)),
        loops.For(
            i, aff(0), aff(4), 1,
            (
                loops.If(ap("eq", pos(i), num(3, i64)), (Break(),), ()),
                loops.Update(at(s), PAIR_OPS["argmax"], read(x, i), Pair(at(a), aff(i))),
            ),
        ),
        loops.Update(at(x, 3), OPS["mul"], read(s)),
    )  # fmt: skip
    x_out, s_out, a_out = run(p, np.zeros(4, "f"), np.zeros((), "f"), np.zeros((), "q"))
    assert (x_out.tolist(), s_out, a_out) == ([0, 1, 2, 6], 2, 2)


def test_program_fill_while_let_and_check() -> None:
    (n,) = symbols("n")
    x, k = node(0, "x", 2, 2), node(1, "k", dtype=i64)
    fault = Fault("CD0500", "CdValueError", "k became {0}")
    body = (
        loops.Check(ap("lt", pos(n), num(3, i64)), fault, (pos(n),)),
        loops.Update(at(k), OPS["add"], num(1, i64)),
    )
    p = program(
        (x, k), (),
        loops.Fill(x, num(2.5)),
        loops.While((Let(n, read(k)),), ap("ne", pos(n), num(2, i64)), body),
    )  # fmt: skip
    filled, last = run(p, np.zeros((2, 2), "f"), np.array(0))
    assert (filled.tolist(), last) == ([[2.5, 2.5], [2.5, 2.5]], 2)
    with pytest.raises(ValueError, match="k became 3"):
        run(p, np.zeros((2, 2), "f"), np.array(3))


def test_vectors_follow_each_other_along_an_axis() -> None:
    x, y = node(0, "x", 4, 2), node(1, "y", 3, 4)
    one, two = num(1.0), num(2.0)
    p = program(
        (x, y), (),
        instructions.CopyVector(at(x, 0, 1), read(y, 1, 0), 4, (-2, -1)),
        instructions.StoreVector(at(y, 0, 2), -1, (one, two)),
    )  # fmt: skip
    copied, stored = run(p, np.zeros((4, 2), "f"), np.arange(12, dtype="f").reshape(3, 4))
    assert copied.tolist() == [[0, 4], [0, 5], [0, 6], [0, 7]]
    assert stored[0].tolist() == [0, 1, 1, 2]
    outside = program((x, y), (), instructions.CopyVector(at(x, 1, 1), read(y, 1, 0), 4, (-2, -1)))
    with pytest.raises(CdInternalError, match="is accessed at"):
        run(outside, np.zeros((4, 2), "f"), np.zeros((3, 4), "f"))


def test_products_of_tiles_are_added() -> None:
    total, a, b = node(0, "total", 2, 3), node(1, "a", 2, 4), node(2, "b", 4, 3)
    i, j, k = symbols("i j k")
    over_ = rng(i, 0, 2), rng(j, 0, 3), rng(k, 0, 4)
    product = instructions.MatMul(at(total, i, j), read(a, i, k), read(b, k, j), over_, "warp")
    p = program((total,), (a, b), product, instructions.AwaitProducts(total))
    first, second = np.arange(8, dtype="f").reshape(2, 4), np.arange(12, dtype="f").reshape(4, 3)
    (sums, *_) = run(p, np.ones((2, 3), "f"), first, second)
    assert sums.tolist() == (first @ second + 1).tolist()


def test_dynamic_target_is_found_in_the_state_before() -> None:
    p_ = node(0, "p", 3, dtype=i64)
    (i,) = symbols("i")
    target = assignments.Access(p_, (Dynamic(read(p_, i)),))
    p = procedure((p_,), (), put(target, pos(i), rng(i, 0, 3)))
    assert run(p, np.array([1, 2, 0]))[0].tolist() == [2, 0, 1]
