"""Choices without branches: where both sides may be computed, and where one may not."""

from dataclasses import replace

from plusequals.backends.codegen.c_printer import print_program
from plusequals.backends.codegen.speculation import (
    Storage,
    analyze_storage,
    find_data_arrays,
    has_select,
    has_short_dependence,
    is_speculatable,
    may_be_vectorized,
)
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.assignments import Access, Break
from plusequals.lowering.ir.expressions import Cast, Const, Dynamic, Expr, Position, Read, Select
from plusequals.lowering.ir.indexing import const, var
from plusequals.lowering.ir.loops import Comment, For, If, Stmt, Store, Update
from plusequals.lowering.ir.ops import OPS
from plusequals.lowering.lower import lower
from plusequals.lowering.placement import place_nodes

from .programs import apply, assign, node, over, procedure, read, symbols

BOOL = dtypes.bool_
I, NUMBER = symbols("i number")
X = node(0, "x", (8,), dtypes.float32)
K = node(1, "k", (8,), dtypes.int64)
HELD = node(2, "held", (), BOOL)
OWN = node(3, "own", (8,), BOOL)
LATE = node(4, "late", (8,), dtypes.float32)

TOTAL = node(5, "total", (), dtypes.float32)
STORAGE = Storage(frozenset((HELD.id, TOTAL.id)), frozenset((LATE.id,)), frozenset((X.id, K.id)),
    frozenset((NUMBER,)))  # fmt: skip
ZERO = Const(0.0, dtypes.float32)
SHIFTED = Read(X, (var(I) - 1,))
ABOUT_DATA = apply("gt", read(X, I), ZERO)
ABOUT_INDEX = apply("gt", Position(var(I)), Const(0, dtypes.int64))


def picked(test: Expr, yes: Expr, no: Expr = ZERO) -> bool:
    return is_speculatable(test, yes, no, STORAGE)


def test_sides_are_computed_where_the_test_is_about_data() -> None:
    of_caller = apply("gt", read(K, I), Const(0, dtypes.int64))
    assert picked(ABOUT_DATA, SHIFTED) and picked(of_caller, SHIFTED)
    assert picked(ABOUT_DATA, apply("exp", read(X, I)), read(X, I))


def test_a_side_that_reads_is_not_computed_where_the_test_may_keep_it_in_range() -> None:
    assert not picked(ABOUT_INDEX, SHIFTED) and not picked(ABOUT_INDEX, ZERO, SHIFTED)
    for test in (Read(HELD, ()), read(OWN, I)):  # a pass may have kept a test of indices there
        assert not picked(test, SHIFTED)
        assert not picked(apply("and", test, ABOUT_DATA), SHIFTED)
        assert not picked(Select(test, ABOUT_DATA, Const(False, dtypes.bool_)), SHIFTED)
    assert picked(ABOUT_INDEX, Const(1.0, dtypes.float32))
    assert picked(ABOUT_INDEX, Cast(Read(HELD, ()), dtypes.float32))


def test_reads_at_indices_of_data_and_of_missing_memory_keep_their_branch() -> None:
    gathered = Read(X, (Dynamic(read(K, I)),))
    assert not picked(ABOUT_DATA, gathered) and not picked(ABOUT_DATA, apply("neg", gathered))
    assert not picked(ABOUT_DATA, read(LATE, I)) and picked(ABOUT_DATA, read(X, I))
    assert not picked(apply("gt", gathered, ZERO), read(X, I))
    assert not picked(ABOUT_DATA, Read(X, (var(NUMBER) + 1,)))


def test_a_branch_inside_stays_one_and_may_be_inside_of_a_choice() -> None:
    inside = Select(ABOUT_INDEX, SHIFTED, ZERO)
    assert picked(ABOUT_DATA, inside)
    assert not picked(ABOUT_DATA, Select(ABOUT_DATA, Read(X, (Dynamic(read(K, I)),)), ZERO))


def test_locals_are_about_data_where_all_that_decides_them_is() -> None:
    y, flags = (
        node(10, "y", (8,), dtypes.float32),
        [node(n, "f", (8,), BOOL) for n in range(11, 16)],
    )
    values = (
        ABOUT_DATA,  # of floats
        read(flags[0], I),  # of another such local
        ABOUT_INDEX,
        apply("and", read(flags[2], I), ABOUT_DATA),  # of one of an index
        Const(True, BOOL),  # decided by where it is stored
    )
    body = [assign("f", flag, (var(I),), v, over((I, 0, 8))) for flag, v in zip(flags, values)]
    body.append(assign("y", y, (var(I),), read(X, I), over((I, 0, 8))))
    given = procedure("f", [(y, True), (X, False), (K, False)], body, flags)
    known = {X.id, K.id, flags[0].id, flags[1].id}
    assert find_data_arrays(lower(given)) == known
    storage = analyze_storage(lower(given), frozenset((y.id,)), frozenset((X.id,)))
    assert (storage.variables, storage.late, storage.data) == ({y.id}, {X.id}, known)


def loop(*body: Stmt, rounds: int = 8) -> For:
    return For(I, const(0), const(rounds), 1, body)


def test_loops_that_do_the_same_in_every_round_may_be_vectors() -> None:
    held = Access(HELD, ())
    take, use = Store(held, ABOUT_DATA), Store(Access(OWN, (var(I),)), Read(HELD, ()))
    inner = For(NUMBER, const(0), const(3), 1, (use,))
    total = Update(Access(TOTAL, ()), OPS["add"], read(X, I))
    for body in ((use,), (take, use), (take, inner), (total,), (Comment("told"), take)):
        assert may_be_vectorized(loop(*body), STORAGE)


def test_loops_with_tests_and_those_whose_rounds_need_others_are_none() -> None:
    take, use = Store(Access(HELD, ()), ABOUT_DATA), Store(Access(OWN, (var(I),)), Read(HELD, ()))
    long = For(NUMBER, const(0), const(100), 1, (use,))
    total = Update(Access(TOTAL, ()), OPS["add"], read(X, I))
    scattered = Update(Access(K, (Dynamic(read(K, I)),)), OPS["add"], read(K, I))
    told = Store(Access(LATE, (var(I),)), Read(TOTAL, ()))
    for body in (
        (use, take), (long,), (If(ABOUT_DATA, (use,), ()),), (scattered,), (total, told),
        (take, Break()),
    ):  # fmt: skip
        assert not may_be_vectorized(loop(*body), STORAGE)


def test_rounds_wait_for_what_one_of_the_last_few_has_written() -> None:
    a = node(20, "a", (8, 8), dtypes.float32)
    for written, read_, step, wait in (
        ((var(I), var(I)), (var(I) - 1, var(I) - 1), 1, True),
        ((var(I), const(2)), (var(I) - 3, const(2)), 1, True),
        ((const(1), var(I)), (const(1), var(I) + 2), -1, True),
        ((var(I), const(2)), (var(I) - 4, const(2)), 1, False),  # four at once do not meet
        ((var(I), const(2)), (var(I) - 1, const(3)), 1, False),
        ((var(I), const(2)), (var(I) + 1, const(2)), 1, False),  # written later
        ((var(I), const(2)), (var(I), const(2)), 1, False),
        ((var(I), var(I)), (var(I) - 1, var(I) - 2), 1, False),
        ((var(I) * 2, const(2)), (var(I) * 2 - 1, const(2)), 1, False),
        ((var(I), const(2)), (Dynamic(read(K, I)), const(2)), 1, False),
        ((var(I), const(2)), (var(I) - var(NUMBER), const(2)), 1, False),
    ):
        store = Store(Access(a, written), apply("add", Read(a, read_), ZERO))
        round_ = For(I, const(3), const(8), step, (store,))
        assert has_short_dependence(round_) is wait, (written, read_)
        assert may_be_vectorized(round_, STORAGE) is not wait


def test_choices_have_branches_unless_that_is_asked_for() -> None:
    y = node(10, "y", (8,), dtypes.float32)
    value = Select(ABOUT_DATA, read(X, I), ZERO)
    body = [assign("y", y, (var(I),), value, over((I, 0, 8)))]
    program = lower(procedure("f", [(y, True), (X, False)], body))
    placement = place_nodes(program)
    assert "x[i] > 0.0f ? x[i] : 0.0f;" in print_program(program, placement).text
    assert (
        "pick_f32(x[i] > 0.0f, x[i]" in print_program(program, replace(placement, picks=True)).text
    )


def test_what_takes_long_and_what_has_no_pick_keeps_its_branch() -> None:
    assert not picked(ABOUT_DATA, apply("mod", read(X, I), read(X, I)))
    assert not picked(ABOUT_DATA, apply("pow", read(K, I), read(K, I)), read(K, I))
    kinds = {d.short for d in dtypes.ALL if has_select(d)}
    assert kinds == {"bool", "f32", "f64", *(f"{s}{b}" for s in "iu" for b in (8, 16, 32, 64))}
