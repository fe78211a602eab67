"""What passes may do to loops that no program text reaches: built by hand, some of them run.

Whole arrays that are filled, reads that may be out of range, while loops, and the like.
"""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.lowering.analysis.accesses import collect_accesses, inner_tests
from plusequals.lowering.analysis.fusion import FusionRefusal
from plusequals.lowering.ir import loops
from plusequals.lowering.ir.assignments import Alloc, Break, Fault, Let, Permute
from plusequals.lowering.ir.decision import Reason
from plusequals.lowering.ir.expressions import Expr, Select
from plusequals.lowering.ir.indexing import Affine, Symbol, const, var
from plusequals.lowering.ir.loops import Check, Fill, For, If, Stmt, Store, Update, While
from plusequals.lowering.ir.ops import OPS
from plusequals.lowering.passes.contract_arrays import contract_arrays
from plusequals.lowering.passes.cse import cse
from plusequals.lowering.passes.dce import eliminate_dead_code
from plusequals.lowering.passes.fuse import FusionReason, fuse
from plusequals.lowering.passes.inline import StoredReason, virtualize
from plusequals.lowering.passes.licm import hoist
from plusequals.lowering.passes.search_to_gather import search_to_gather
from plusequals.lowering.passes.simplify import simplify

from ..ir.build import ap, at, i64, node, num, pos, program, read, symbols
from ..shown import after, lowered, text_of
from .agree import assert_agrees

i, j, k, n = symbols("i j k n")
X, Y, T, S = node(0, "x", 8), node(1, "y", 8), node(2, "t", 8), node(3, "s")
P = node(4, "p", 8, dtype=i64)
SIZE = node(5, "size", dtype=i64)
FAULT = Fault("CD0601", "CdIndexError", "out of range")


def loop(symbol: Symbol, *body: Stmt, lo: int = 0, hi: int = 8, step: int = 1) -> For:
    return For(symbol, const(lo), const(hi), step, body)


# ------------------------------------------------------------------------------------- hoist


@pytest.mark.parametrize(
    ("index", "exists"),
    [(const(0), True), (const(7), True), (const(8), False), (const(-1), False), (var(n), False)],
)
def test_an_element_leaves_a_loop_without_rounds_only_if_it_exists(
    index: Affine, exists: bool
) -> None:
    rounds = For(k, const(0), var(n), 1, (Store(at(Y, k), ap("exp", read(X, index))),))
    made = hoist(program((Y,), (X, SIZE), Let(n, read(SIZE)), rounds))
    text = text_of(made)
    assert ("exp_x = exp(" in text) is exists
    assert ("    y[k] = exp_x" in text) is exists


@pytest.mark.parametrize("first", [If(ap("gt", read(S), num(0.0)), (Break(),)),
                                   Check(ap("gt", read(S), num(0.0)), FAULT)])  # fmt: skip
def test_an_element_does_not_leave_before_what_may_leave(first: Stmt) -> None:
    work = ap("exp", read(X, var(n)))
    rounds = loop(k, first, Store(at(Y, k), work))
    assert "exp_x" not in text_of(hoist(program((Y,), (X, S, SIZE), Let(n, read(SIZE)), rounds)))
    rounds = loop(k, Store(at(Y, k), work), first)
    text = text_of(hoist(program((Y,), (X, S, SIZE), Let(n, read(SIZE)), rounds)))
    assert "exp_x = exp(x[n])" in text.split("for k")[0]


@pytest.mark.parametrize(("lo", "hi", "step", "leaves"),
                         [(7, -1, -1, True), (0, 8, 1, True), (3, 3, 1, False), (3, 4, -1, False),
                          (4, 3, 1, False), (3, 5, 2, True), (3, 2, -1, True)])  # fmt: skip
def test_it_is_known_which_loops_run(lo: int, hi: int, step: int, leaves: bool) -> None:
    rounds = loop(k, Store(at(Y, k), ap("exp", read(X, var(n)))), lo=lo, hi=hi, step=step)
    made = hoist(program((Y,), (X, SIZE), Let(n, read(SIZE)), rounds))
    assert ("exp_x" in text_of(made)) is leaves


def test_a_looked_up_element_stays_where_the_loop_may_not_run() -> None:
    value = ap("exp", read(X, read(P, 0)))
    rounds = For(k, const(0), var(n), 1, (Store(at(Y, k), value),))
    made = hoist(program((Y,), (X, P, SIZE), Let(n, read(SIZE)), rounds))
    assert "exp_x" not in text_of(made)


@pytest.mark.parametrize(
    ("before", "after", "leaves"),
    [((), (), True), ((), (Store(at(Y, 0), read(S)),), False),
     ((Store(at(Y, k), read(S)),), (), False)],
)  # fmt: skip
def test_a_name_leaves_whole_if_only_the_rest_of_the_round_uses_it(
    before: tuple[Stmt, ...], after: tuple[Stmt, ...], leaves: bool
) -> None:
    name = Store(at(S), ap("exp", read(X, 0)))
    rounds = loop(k, *before, name, Store(at(Y, k), ap("mul", read(S), read(X, k))))
    data = [np.zeros(8, np.float32), np.ones(8, np.float32)]
    made = assert_agrees(program((Y,), (X,), rounds, *after, local=(S,)), hoist, data)
    assert (text_of(made).startswith("s = exp(x[0])\nfor")) is leaves


def test_work_stays_if_one_of_its_parts_changes() -> None:
    work = ap("exp", ap("add", read(X, 0), read(S)))
    rounds = loop(k, Store(at(Y, k), work), Store(at(S), num(2.0)))
    before = program((Y, S), (X,), rounds)
    assert hoist(before) == before
    rounds = loop(k, Store(at(Y, k), ap("exp", ap("add", read(X, 0), read(X, k)))))
    assert "exp_" not in text_of(hoist(program((Y,), (X,), rounds)))


# -------------------------------------------------------------------------------------- fuse


@pytest.mark.parametrize(
    ("index", "reason"),
    [("j", FusionReason.SHARED), ("95 - j", FusionRefusal.TILES), ("3", FusionRefusal.TILES)],
)
def test_what_needs_a_row_of_a_product_stays_behind_it(index: str, reason: Reason) -> None:
    body = f"t[n, j] = sum(x[n, i] * w[i, j])\nr[n, j] = max(t[n, {index}], 0)"
    sizes = {"x": "f32[32, 64]", "w": "f32[64, 96]", "r": "f32[32, 96]"}
    assert reason in [made.reason for made in fuse(lowered(body, **sizes)).decisions]
    assert ("r[n, j] =" in after(fuse, body, **sizes).split("for n")[1]) is (index == "j")


def test_a_scalar_that_is_seen_is_not_written_before_a_check() -> None:
    u, w = node(6, "u", 8), node(7, "w")
    checked = loop(k, Check(ap("lt", read(X, k), num(3.0)), FAULT), Store(at(T, k), read(X, k)))
    use = loop(j, Store(at(u, j), read(T, j)))
    for written, apart in (((w,), True), ((), False)):
        hidden = () if written else (w,)
        before = program(written, (X,), checked, Store(at(w), num(2.0)), use, local=(T, u, *hidden))
        assert (
            FusionRefusal.SEPARATED in [made.reason for made in fuse(before).decisions]
        ) is apart


# -------------------------------------------------------------------------------- virtualize


def test_a_filled_array_is_its_number_everywhere() -> None:
    use = loop(i, Store(at(Y, i), ap("add", read(T, i), read(T, read(P, i)))))
    before = program((Y,), (P,), Fill(T, num(2.0)), use, local=(T,))
    made = assert_agrees(before, virtualize, [np.ones(8, np.float32), np.arange(8)])
    assert text_of(made) == "for i in 0..8:\n    y[i] = 2.0 + 2.0"


def test_an_array_filled_in_a_loop_stays() -> None:
    body = (loop(k, Fill(T, num(2.0))), loop(i, Store(at(Y, i), read(T, i))))
    before = program((Y,), (), *body, local=(T,))
    assert virtualize(before).program == before


def test_storage_goes_with_the_array_and_no_other() -> None:
    other = node(6, "other", 8)
    body = (
        Alloc(T), Alloc(other), loop(i, Store(at(T, i), ap("exp", read(X, i)))),
        loop(i, Store(at(Y, i), read(T, i))), loop(j, Store(at(other, j), read(Y, j))),
        loop(j, Store(at(other, j), read(other, const(0)))),
        loop(j, Store(at(Y, j), read(other, j))),
    )  # fmt: skip
    made = virtualize(program((Y,), (X,), *body, local=(T, other))).program
    assert [stmt.node for stmt in made.kernels[0].body if isinstance(stmt, Alloc)] == [other]


def test_no_expression_grows_beyond_its_limit() -> None:
    lines = ["u0[i] = x[i] * 2"]
    lines += [f"u{m}[i] = u{m - 1}[i] + x[i] * {m + 1}" for m in range(1, 30)]
    body = "\n".join(lines) + "\ny[i] = u29[i]"
    made, decisions = virtualize(lowered(body, y="f32[8]", x="f32[8]"))
    assert [one.reason for one in decisions].count(StoredReason.LONG) == 1
    assert len(made.locals) == 1


@pytest.mark.parametrize("repeats", [False, True])
def test_a_while_loop_writes_its_cells_again(repeats: bool) -> None:
    new = Store(at(X, i), ap("add", read(T, i), num(1.0)))
    step = Store(at(S), ap("add", read(S), num(1.0)))
    body: tuple[Stmt, ...] = (loop(i, new), step)
    if repeats:
        body = (While((), ap("lt", read(S), num(3.0)), body),)
    first = loop(i, Store(at(T, i), ap("mul", read(X, i), num(2.0))))
    before = program((X,), (), Store(at(S), num(0.0)), first, *body, local=(T, S))
    made = assert_agrees(before, virtualize, [np.arange(8, dtype=np.float32)])
    assert (T in made.locals) is repeats


# ---------------------------------------------------------------------------- cse and simplify


def test_what_a_while_loop_computes_first_is_shared_with_its_test_and_body() -> None:
    work = ap("mul", read(X, 0), read(X, 1))
    rounds = While(
        (Store(at(Y, 0), work), Store(at(Y, 1), work)),
        ap("lt", ap("add", work, read(S)), num(3.0)),
        (Store(at(Y, 2), work), Store(at(Y, 3), work), Store(at(S), num(9.0))),
    )
    before = program((Y, S), (X,), rounds)
    made = assert_agrees(
        before, cse, [np.zeros(8, np.float32), np.zeros((), np.float32), np.ones(8, np.float32)]
    )
    assert text_of(made).count("x[0] * x[1]") < text_of(before).count("x[0] * x[1]")


def test_the_parts_of_a_while_loop_are_simplified() -> None:
    same = ap("mul", read(X, 0), num(1.0))
    never = ap("lt", num(2.0), num(1.0))
    rounds = While((Store(at(Y, 0), same),), ap("lt", same, num(3.0)), (Store(at(Y, 1), same),))
    text = text_of(simplify(program((Y,), (X,), rounds)))
    assert "* 1.0" not in text
    assert text.count("x[0]") == 3
    kept = While((Store(at(Y, 0), same),), never, (Store(at(Y, 1), same),))
    assert "y[0] = x[0]" in text_of(simplify(program((Y,), (X,), kept)))
    gone = While((), never, (Store(at(Y, 1), same),))
    assert text_of(simplify(program((Y,), (X,), gone))) == "pass"


def test_loops_that_turn_by_what_is_read_stay() -> None:
    for rounds in (For(k, const(0), var(n), 1, (Store(at(Y, 0), num(1.0)),)),
                   For(k, var(n), const(0), 1, (Store(at(Y, 0), num(1.0)),)),
                   For(k, const(0), var(n), -1, (Store(at(Y, 0), num(1.0)),))):  # fmt: skip
        made = simplify(program((Y,), (SIZE,), Let(n, read(SIZE)), rounds))
        assert "for k in" in text_of(made)


@pytest.mark.parametrize(("lo", "hi", "step", "rounds"), [
    (5, 5, 1, 0), (5, 6, 1, 1), (5, 7, 2, 1), (5, 8, 2, 2), (5, 4, -1, 1), (5, 5, -1, 0),
    (5, 3, -2, 1), (5, 2, -2, 2), (5, 3, 1, 0), (3, 5, -1, 0),
])  # fmt: skip
def test_loops_of_one_round_lose_their_loop(lo: int, hi: int, step: int, rounds: int) -> None:
    before = program((Y,), (), loop(k, Store(at(Y, k), num(1.0)), lo=lo, hi=hi, step=step))
    text = text_of(assert_agrees(before, simplify, [np.zeros(8, np.float32)]))
    assert text == {0: "pass", 1: "y[5] = 1.0"}.get(rounds, text_of(before))


def test_places_that_read_nothing_become_plain() -> None:
    place = at(Y, ap("add", pos(k), num(0, i64)))
    for stmt in (Store(place, num(1.0)), Update(place, OPS["add"], num(1.0))):
        (made,) = simplify(program((Y,), (), loop(k, stmt))).kernels[0].body
        assert isinstance(made, For)
        assert getattr(made.body[0], "access", None) == at(Y, k)


# ------------------------------------------------------------------------- gather and shrink


@pytest.mark.parametrize(("op", "looks"), [("add", True), ("max", False), ("mul", False)])
def test_only_sums_are_looked_up(op: str, looks: bool) -> None:
    numbers = node(6, "numbers", 8, dtype=i64)
    found = ap("eq", pos(k), read(numbers, 1))
    value = Select(found, num(-3, i64), num(0, i64))
    before = program((P,), (numbers,), loop(k, Update(at(P, 0), OPS[op], value)))
    made = assert_agrees(before, search_to_gather, [np.full(8, -5), np.full(8, 3)])
    assert (made != before) is looks


def test_a_loop_that_fills_an_array_has_no_register() -> None:
    before = program((Y,), (), loop(k, Fill(Y, num(1.0))))
    assert contract_arrays(before).program == before


# -------------------------------------------------------------------------------------- dead


def test_filled_and_allocated_arrays_that_nobody_reads_go() -> None:
    other = node(6, "other", 8)
    body = (Alloc(T), Fill(T, num(1.0)), Alloc(other), Fill(other, num(2.0)),
            loop(i, Store(at(Y, i), read(other, i))))  # fmt: skip
    made = eliminate_dead_code(program((Y,), (), *body, local=(T, other)))
    assert made.locals == (other,)
    assert made.kernels[0].body == body[2:]


def test_a_negated_branch_is_turned_back() -> None:
    test = ap("logical_not", ap("lt", read(S), num(0.0)))
    for inner in (test, ap("lt", read(S), num(0.0))):
        branch = If(inner, (Store(at(T, 0), num(1.0)),), (Store(at(Y, 0), num(2.0)),))
        text = text_of(eliminate_dead_code(program((Y,), (S,), branch, local=(T,))))
        wanted = "if s < 0.0:" if inner is test else "if not s < 0.0:"
        assert text == f"{wanted}\n    y[0] = 2.0"


# ------------------------------------------------------------------------------------- access


def covered(*body: Stmt) -> bool:
    return not collect_accesses(body).is_read_before_written(T)


def test_whole_arrays_are_covered_where_they_surely_are_filled() -> None:
    use = loop(i, Store(at(Y, i), read(T, i)))
    test = ap("gt", read(S), num(0.0))
    assert covered(Fill(T, num(1.0)), use)
    assert covered(Alloc(T), use)
    assert not covered(If(test, (Fill(T, num(1.0)),)), use)
    assert covered(loop(k, Fill(T, num(1.0))), use)
    some_rounds = For(k, const(0), var(Symbol("n", 50)), 1, (Fill(T, num(1.0)),))
    assert not covered(some_rounds, use), "there may be none"
    assert covered(If(test, (Fill(T, num(1.0)), use)))
    assert not covered(use, Fill(T, num(1.0)))
    assert not covered(Permute((T, X), (X, T)), use)
    assert covered(Fill(T, num(1.0)), Permute((X, T), (T, X)))
    some = For(i, const(1), const(8), 1, (Store(at(T, i), num(1.0)),))
    assert not covered(some, Permute((X, T), (T, X))), "a move needs all of it"


def test_a_while_loop_may_not_run() -> None:
    use = loop(i, Store(at(Y, i), read(T, i)))
    write = loop(i, Store(at(T, i), num(1.0)))
    test = ap("lt", read(S), num(3.0))
    assert not covered(While((), test, (write,)), use)
    assert covered(While((), test, (write, use)))
    assert not covered(loop(i, If(test, (Break(),)), Store(at(T, i), num(1.0))), use)


def test_an_update_needs_what_was_there() -> None:
    use = loop(i, Store(at(Y, i), read(T, i)))
    assert not covered(loop(i, Update(at(T, i), OPS["add"], num(1.0))), use)
    moved = collect_accesses((Permute((T, X), (X, T)),))
    assert [site.kind for site in moved.of(T)] == ["update"]
    assert moved.is_written(X) and moved.of(T)[0].route == ((0, 0),)


def test_tests_of_both_sides_are_known() -> None:
    test: Expr = ap("lt", pos(k), num(4, i64))
    branch = If(test, (Store(at(T, k), num(1.0)),), (Store(at(Y, k), read(T, k)),))
    sites = collect_accesses((loop(k, branch),))
    assert sites.of(T)[0].tests == (test,)
    assert sites.of(Y)[0].tests == (ap("logical_not", test),)
    assert inner_tests(sites.of(Y)[0], 1) == (ap("logical_not", test),)
    assert inner_tests(sites.of(Y)[0], 2) == inner_tests(sites.of(T)[0], 2) == ()
    assert sites.of(Y)[0].route == ((0, 0), (0, 1), (0, 0)), "the second list of the branch"


def test_a_guard_that_changes_between_covers_nothing() -> None:
    test = ap("gt", read(S), num(0.0))
    write, use = If(test, (Store(at(T, 0), num(1.0)),)), If(test, (Store(at(Y, 0), read(T, 0)),))
    change = Store(at(S), num(2.0))
    assert covered(write, use)
    assert not covered(write, change, use)
    assert covered(change, write, use)
    assert covered(write, use, change)
    inside = If(test, (Store(at(T, 0), num(1.0)), change))
    assert not covered(inside, use)


def test_statements_are_where_they_stand() -> None:
    body = (loops.Comment("first"), loop(i, Store(at(T, i), read(X, i))), Store(at(S), read(T, 0)))
    found = collect_accesses(body)
    assert [site.route for site in found.of(T)] == [((1, 0), (0, 0)), ((2, 0),)]
    assert found.last_use(T) == ((2, 0),)
    assert found.of(node(9, "stranger")) == ()
