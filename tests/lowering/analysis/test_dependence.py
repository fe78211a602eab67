"""Which loops may run in any order: one rule each."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plusequals.lowering.analysis import dependence
from plusequals.lowering.analysis.accesses import collect_accesses
from plusequals.lowering.analysis.dependence import (
    Dependent,
    find_dependence,
    has_break,
    has_carried_dependence,
    has_early_exit,
)
from plusequals.lowering.analysis.parallel_band import facts_of, find_band
from plusequals.lowering.ir.assignments import Alloc, Break, Continue, Fault, Let, Permute, Print
from plusequals.lowering.ir.bounds import Bounds
from plusequals.lowering.ir.indexing import (
    Affine,
    Range,
    Symbol,
    const,
    floordiv,
    multiply,
    var,
)
from plusequals.lowering.ir.loops import Check, Fill, For, If, Stmt, Store, Update, While
from plusequals.lowering.ir.ops import OPS
from plusequals.lowering.ir.walk import statements

from ..ir.build import ap, at, bool_, i64, node, num, pos, read, symbols
from ..shown import lowered

i, j, k, m, n = symbols("i j k m n")
X, Y, T, S, P = (
    node(0, "x", 64), node(1, "y", 64), node(2, "t", 64), node(3, "s"), node(4, "p", 64, dtype=i64),
)  # fmt: skip
GRID = node(5, "grid", 64, 64)
FAULT = Fault("CD0601", "CdIndexError", "out of range")
ONE = num(1.0)


def loop(symbol: Symbol, *body: Stmt, lo: int = 0, hi: int = 8, step: int = 1) -> For:
    return For(symbol, const(lo), const(hi), step, body)


def why(one: For) -> object:
    refusal = find_dependence(one)
    return None if refusal is None else refusal.reason


# ----------------------------------------------------------------------------- one rule each


def test_a_refusal_names_rounds_in_numbers() -> None:
    one = loop(i, Store(at(Y, var(i) + 2), read(Y, i)))
    assert str(find_dependence(one)) == (
        "two iterations use the same element: "
        "`y[i + 2]` in iteration i = 0 and `y[i]` in iteration i = 2"
    )
    down = For(i, const(7), const(-1), -2, (Store(at(Y, var(i) + 2), read(Y, i)),))
    assert str(find_dependence(down)).endswith(
        "`y[i]` in iteration i = 7 and `y[i + 2]` in iteration i = 5"
    )
    assert str(find_dependence(loop(i, Update(at(S), OPS["add"], ONE)))) == (
        "every iteration uses the same element: `s`"
    )


def test_rounds_far_enough_apart_do_not_meet() -> None:
    assert why(loop(i, Store(at(Y, var(i) + 8), read(Y, i)))) is None
    assert why(loop(i, Store(at(Y, var(i) + 7), read(Y, i)))) is Dependent.CELL
    assert why(loop(i, Store(at(Y, var(i) + 1), read(Y, i)), step=2)) is None


def test_sizes_are_unknowns() -> None:
    wide = node(6, "w", n, m)
    row = For(i, const(0), var(n), 1, (For(j, const(0), var(m), 1, (Store(at(wide, i, j), ONE),)),))
    assert why(row) is None
    halves = For(i, const(0), var(n), 1, (Store(at(wide, var(n) - 1 - var(i), i), ONE),))
    assert why(halves) is None
    mirrored = Store(at(wide, i, 0), read(wide, var(n) - 1 - var(i), 0))
    assert why(For(i, const(0), var(n), 1, (mirrored,))) is Dependent.CELL


def test_what_is_used_is_inside_of_its_array() -> None:
    for gap, reason in ((64, None), (63, Dependent.CELL), (-63, Dependent.CELL)):
        shifted = Store(at(X, i), read(X, var(i) + gap))
        assert why(For(i, const(0), var(n), 1, (shifted,))) is reason


def test_every_array_is_looked_at() -> None:
    fine, meets = Store(at(Y, i), ONE), Store(at(X, 0), ONE)
    assert why(loop(i, fine, meets)) is why(loop(i, meets, fine)) is Dependent.CELL


def test_both_axes_together_keep_rounds_apart() -> None:
    skewed = Store(at(GRID, var(i) + var(j), j), ONE)
    assert why(loop(i, loop(j, skewed))) is None
    assert why(loop(i, loop(j, Store(at(GRID, var(i) + var(j), 0), ONE)))) is Dependent.CELL


def test_elimination_of_a_matrix_is_independent_below_the_pivot() -> None:
    update = Update(at(GRID, i, j), OPS["sub"], ap("mul", read(GRID, i, k), read(GRID, k, j)))
    columns = For(j, var(k) + 1, const(64), 1, (update,))
    rows = For(i, var(k) + 1, const(64), 1, (columns,))
    assert why(rows) is None
    assert why(columns) is None
    assert why(loop(k, rows)) is Dependent.CELL


def test_a_test_of_positions_keeps_rounds_apart() -> None:
    below = If(ap("lt", pos(i), pos(4)), (Store(at(Y, i), read(Y, var(i) + 4)),))
    assert why(loop(i, below)) is None


def test_an_accumulation_over_rounds_is_refused() -> None:
    total = loop(i, Update(at(S), OPS["add"], read(X, i)))
    assert why(total) is Dependent.SCALAR
    assert find_dependence(total, privatized=frozenset({S.id})) is None


def test_a_variable_that_a_round_writes_is_refused_however_few_rounds_there_are() -> None:
    rest = For(i, const(0), floordiv(const(5) - var(k), const(32)), 1, (Store(at(S), read(X, i)),))
    refusal = find_dependence(rest, outer=(Range(k, const(0), const(3)),))
    assert refusal is not None and refusal.reason is Dependent.SCALAR


def test_data_that_decide_an_element_are_refused_unless_another_axis_is_enough() -> None:
    scattered = Store(at(Y, read(P, i)), ONE)
    assert why(loop(i, scattered)) is Dependent.UNCLEAR
    assert why(loop(i, Store(at(GRID, i, read(P, i)), ONE))) is None
    named = Let(k, read(P, i))
    assert why(loop(i, named, Store(at(Y, k), ONE))) is Dependent.UNCLEAR
    assert why(loop(i, named, Store(at(GRID, k, i), read(GRID, k, i)))) is None
    assert why(loop(i, named, Store(at(Y, i), read(X, k)))) is None


def test_a_break_of_an_inner_loop_is_the_rounds_own() -> None:
    store = Store(at(Y, i), ONE)
    leaves = If(ap("gt", read(X, i), ONE), (Break(),))
    assert why(loop(i, store, leaves)) is Dependent.JUMPS
    assert why(loop(i, loop(j, leaves), store)) is None
    assert why(loop(i, While((leaves,), num(True, bool_), ()), store)) is None
    assert why(loop(i, If(ap("gt", read(X, i), ONE), (Continue(),)), store)) is None


def test_what_is_printed_or_exchanged_keeps_its_order() -> None:
    assert why(loop(i, Print(("x",)))) is Dependent.PRINTS
    assert why(loop(i, Permute((X, Y), (Y, X)))) is Dependent.STORAGE
    assert why(loop(i, Fill(Y, ONE))) is Dependent.STORAGE
    assert why(loop(i, Alloc(node(9, "a", n)))) is Dependent.STORAGE
    assert find_dependence(loop(i, Alloc(node(9, "a", n))), frozenset({9})) is None
    assert why(loop(i, Store(at(Y, i), ONE), loop(j, Fill(Y, ONE)))) is Dependent.STORAGE


def test_a_check_goes_with_writes_that_nobody_sees() -> None:
    checked = Check(ap("lt", read(X, i), ONE), FAULT)
    assert why(loop(i, checked)) is None
    stored = loop(i, checked, Store(at(Y, i), read(X, i)))
    assert why(stored) is Dependent.CHECKS
    assert find_dependence(stored, unobservable=frozenset({Y.id})) is None


def test_what_is_known_around_the_loop_counts() -> None:
    shifted = loop(i, Store(at(Y, i), read(Y, var(i) + var(k))))
    assert why(shifted) is Dependent.CELL
    assert find_dependence(shifted, outer=(Range(k, const(8), const(9)),)) is None
    skewed = loop(i, Store(at(Y, var(i) * 2), read(Y, var(i) * 3 + var(k))))
    for lo, hi, free in ((13, 14, True), (13, 15, False), (12, 14, False)):
        assert (find_dependence(skewed, outer=(Range(k, const(lo), const(hi)),)) is None) is free


def test_what_may_be_the_same_is_unclear_and_what_is_has_iterations_in_numbers() -> None:
    once = Store(at(Y, 0), ONE)
    inside = While((once,), num(True, bool_), ())
    assert why(loop(i, inside)) is Dependent.UNCLEAR
    assert why(loop(i, loop(j, inside))) is Dependent.UNCLEAR
    assert why(loop(i, Let(k, read(P, i)), once)) is Dependent.CELL
    assert why(loop(i, If(ap("gt", read(X, i), ONE), (once,)))) is Dependent.UNCLEAR
    assert why(loop(i, If(ap("lt", pos(i), pos(4)), (once,)))) is Dependent.CELL
    assert why(loop(i, Store(at(Y, i), read(Y, read(P, i))))) is Dependent.UNCLEAR
    assert why(loop(i, Store(at(GRID, i, read(P, i)), read(GRID, read(P, i), i)))) is (
        Dependent.UNCLEAR
    )
    detail = str(find_dependence(loop(i, Store(at(GRID, read(P, i), 0), ONE))))
    assert detail == "two iterations may use the same element: `grid[..., 0]`"
    both = str(find_dependence(loop(i, Store(at(Y, read(P, i)), read(Y, i)))))
    assert both == "two iterations may use the same element: `y[i]` and `y[...]`"


def test_a_product_of_two_numbers_that_move_may_be_the_same() -> None:
    known = Bounds({n: (20, 30), i: (0, 7)})
    one = loop(i, Store(at(X, multiply(var(n) - var(i), var(i))), ONE))
    assert find_dependence(one, bounds=known) is not None
    assert (
        find_dependence(loop(i, Store(at(X, multiply(var(n), var(i))), ONE)), bounds=known) is None
    )


def test_an_index_named_in_a_round_is_another_in_the_next() -> None:
    named = Let(k, read(P, i))
    assert why(loop(i, named, Store(at(Y, k), read(Y, var(k) + 1)))) is Dependent.UNCLEAR
    assert why(loop(i, named, Store(at(Y, var(k) - var(i)), ONE))) is Dependent.UNCLEAR


def test_partners_excuse_what_meets_and_nothing_else() -> None:
    other = ap("bitxor", pos(i), num(4, i64))
    behind = ap("gt", other, pos(i))
    exchanged = (Store(at(S), read(X, i)), Store(at(X, i), read(X, other)),
                 Store(at(X, other), read(S)))  # fmt: skip
    assert find_dependence(loop(i, If(behind, exchanged)), frozenset({S.id})) is None
    assert why(loop(i, *exchanged[1:])) is not None
    far = Store(at(Y, i), ONE), Store(at(Y, var(i) + 8), ONE)
    assert why(loop(i, *far)) is None


def test_whether_one_place_overtakes_another() -> None:
    whole = loop(i, Store(at(Y, var(i) + 1), read(Y, i)), Store(at(Y, var(i) + 20), ONE))
    (ahead, here, far) = collect_accesses((whole,)).of(Y)
    if not ahead.writes:
        ahead, here = here, ahead
    assert has_carried_dependence(whole, ahead, here) and not has_carried_dependence(
        whole, here, ahead
    )
    assert not has_carried_dependence(whole, ahead, far) and not has_carried_dependence(
        whole, far, ahead
    )


def test_marks_may_be_set_in_any_order_but_not_looked_at() -> None:
    marks = replace(Y, purpose="marks")
    mark = Update(at(marks, read(P, i)), OPS["max"], ONE)
    assert why(loop(i, mark)) is None
    assert why(loop(i, mark, Store(at(X, i), read(marks, i)))) is Dependent.UNCLEAR
    assert why(loop(i, Store(at(marks, read(P, i)), ONE))) is Dependent.UNCLEAR


def test_an_iteration_that_ends_early() -> None:
    store, test = Store(at(Y, i), ONE), ap("gt", read(X, i), ONE)
    for jump, left in ((Break(), True), (Continue(), False)):
        for body in ((store, jump), (If(test, (store, jump)),), (If(test, (store,), (jump,)),)):
            assert has_early_exit(body) and has_break(body) is left
        inside = loop(j, If(test, (jump,))), While((jump,), num(True, bool_), ())
        assert not has_early_exit((store, *inside)) and not has_break((store, *inside))
    assert not has_early_exit(()) and not has_early_exit((If(test, (store,)),))


# ------------------------------------------------------------------------------- programs


def test_programs_of_the_language() -> None:
    rows = lowered("y[i] = max(x[i, j])", y="f32[8]", x="f32[8, 9]").kernels[0].body[-1]
    assert isinstance(rows, For)
    assert find_dependence(rows) is None
    assert why(next(s for s in rows.body if isinstance(s, For))) is Dependent.CELL
    steps = lowered("for t in range(8):\n    y += x", y="f32[9]", x="f32[9]").kernels[0].body[0]
    assert isinstance(steps, For)
    assert why(steps) is Dependent.CELL


@pytest.mark.parametrize(("step", "colours"), [(2, 2), (2, 3), (3, 3)])
def test_rows_of_one_colour_are_independent_where_neighbours_have_another(
    step: int, colours: int
) -> None:
    text = (
        f"for i in range(1, 19):\n    for j in range(1 + i % {colours}, 19, {step}):\n"
        "        u[i, j] = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]"
    )
    whole = lowered(text, u="f64[20, 20]").kernels[0].body
    (rows,) = [stmt for stmt in whole if isinstance(stmt, For)]
    assert (find_dependence(rows) is None) is (step == colours)


BOARD = """
for p in range(2):
    for i in range({n}):
        for j in range({n}):
            if (i + j) % 2 == p:
                y[i, j] = y[(i + 1) % {n}, j] + y[i, (j + {n} - 1) % {n}]
"""


@pytest.mark.parametrize(("n", "free"), [(8, True), (9, False), (64, True)])
def test_fields_of_one_colour_need_those_of_the_other(n: int, free: bool) -> None:
    program = lowered(BOARD.format(n=n), y=f"f32[{n}, {n}]")
    (outer,) = program.kernels[0].body
    own = frozenset(node.id for node in program.locals)
    assert isinstance(outer, For) and find_dependence(outer, own) is not None
    (rows,) = outer.body
    assert isinstance(rows, For)
    assert (find_dependence(rows, own) is None) is free


@pytest.mark.parametrize(("index", "least", "free"), [
    (multiply(var(k), var(i)), 1, True),
    (multiply(var(k), var(i)) * 2 + var(k) + 3, 5, True),
    (multiply(var(k), var(i)), 0, False),
    (multiply(var(k), var(i)) - var(i), 2, False),
    (multiply(var(k), multiply(var(i), var(i))), 2, False),
])  # fmt: skip
def test_rounds_are_apart_by_what_is_not_zero(index: Affine, least: int, free: bool) -> None:
    one = loop(i, Store(at(X, index), ONE))
    assert (find_dependence(one, bounds=Bounds({k: (least, 9)})) is None) is free
    inner = loop(i, loop(k, Store(at(X, index), ONE)))
    assert find_dependence(inner, bounds=Bounds({k: (least, 9)})) is not None


SIEVE = """
for i in range({}, 30):
    if y[i]:
        for j in range(i * {}, {}, i):
            y[j] = 0
"""


def test_every_so_many_elements_are_crossed_out_at_once() -> None:
    program = lowered(SIEVE.format(2, "i", "len(y)"), y="i64[900]")
    facts = facts_of(program)
    (outer,) = program.kernels[0].body
    assert isinstance(outer, For) and not any(isinstance(s, Check) for s in statements((outer,)))
    inner = next(s for s in statements(outer.body) if isinstance(s, For))
    found = find_band(inner, facts)
    assert found is not None and found.free[0].symbol == inner.symbol


def test_every_so_many_elements_are_looked_at_where_they_may_not_be_there() -> None:
    program = lowered(SIEVE.format(2, "i", "len(y) + 1"), y="i64[900]")
    assert any(isinstance(stmt, Check) for stmt in statements(program.kernels[0].body))


def test_places_that_are_used_alike_are_asked_for_once() -> None:
    text = "for i in range(1, 8):\n" + "    y[i] = y[i] * x[i]\n    y[i] = y[i - 1]\n" * 9
    loop = lowered(text, y="f32[8]", x="f32[8]").kernels[0].body[0]
    assert isinstance(loop, For)
    (sites,) = (
        sites for sites in collect_accesses((loop,)).sites.values() if sites[0].node.label == "y"
    )
    found = list(dependence._representatives(sites))
    assert len(sites) == 36 and len(found) == 3  # y[i] read and written, y[i - 1] read
    assert [sites.index(site) for site in found] == [0, 1, 2]
    assert str(find_dependence(loop)).startswith("two iterations use the same element")
