"""Equal extents under one name: what the program means stays, and what can be seen does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from plusequals.base.diagnostic import CdError
from plusequals.lowering.ir.assignments import Alloc, Fault, Parameter, Print
from plusequals.lowering.ir.dtypes import float32 as f32
from plusequals.lowering.ir.dtypes import int64 as i64
from plusequals.lowering.ir.expressions import Expr
from plusequals.lowering.ir.indexing import var
from plusequals.lowering.ir.interpret import run_program
from plusequals.lowering.ir.loops import Check, For, Program, Stmt, Store
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.passes.equal_sizes import unify_extents

from ..ir.build import aff, ap, at, node, num, pos, program, read, symbols

m, n, p, i, j = symbols("m n p i j")
X, Y, Z = node(0, "x", m), node(1, "y", n), node(2, "z", p)
E = node(3, "e", m)
FAULT = Fault("CD0301", "CdShapeError", "sizes {0} and {1} differ")


def loop(symbol: Any, size: Any, target: Node, value: Expr) -> For:
    return For(symbol, aff(0), aff(size), 1, (Store(at(target, symbol), value),))


def same(one: Any, other: Any) -> Check:
    return Check(ap("eq", pos(one), pos(other)), FAULT, (pos(one), pos(other)))


def whole(*body: Stmt) -> Program:
    made = program((Y,), (X, Z), *body, local=(E,))
    verify_program(made)
    return made


def unified(before: Program) -> Program:
    (kernel,) = before.kernels
    body, temporaries = unify_extents(kernel.body, before.parameters, before.locals)
    now = replace(before, kernels=(replace(kernel, body=body),), locals=temporaries)
    verify_program(now)
    return now


def after(before: Program) -> tuple[Stmt, ...]:
    return unified(before).kernels[0].body


FIRST, SECOND = loop(i, m, E, read(X, i)), loop(j, n, Y, read(E, j))
LAST = loop(j, n, Y, num(2))
COMPUTED = (Alloc(E), FIRST, same(m, n), SECOND)


def test_a_check_moves_in_front_of_temporaries_and_both_loops_have_one_name() -> None:
    check, alloc, first, second = after(whole(*COMPUTED))
    assert check == same(m, n)
    assert isinstance(alloc, Alloc) and alloc.node.id == E.id
    assert isinstance(first, For) and isinstance(second, For)
    assert first.hi == second.hi == var(n), "the name of the array that is written"


def test_temporaries_that_are_used_after_the_check_only_are_renamed() -> None:
    before = whole(*COMPUTED)
    (kernel,) = before.kernels
    body, (temporary,) = unify_extents(kernel.body, before.parameters, before.locals)
    assert temporary.shape == (var(n),) and temporary.id == E.id
    assert body[1] == Alloc(temporary)
    seen = (Alloc(E), FIRST, Print(("hello",)), same(m, n), SECOND)
    assert unify_extents(seen, before.parameters, before.locals)[1] == (E,)


def test_equal_offsets_of_extents_are_equal_extents() -> None:
    shifted = same(aff(m) - 1, aff(n) - 1)
    first, _, loop_over_m, _ = after(whole(Alloc(E), FIRST, shifted, SECOND))
    assert isinstance(loop_over_m, For)
    assert first == shifted and loop_over_m.hi == var(n)


@pytest.mark.parametrize("size", [0, 1, 2, 7])
def test_the_numbers_stay(size: int) -> None:
    before = whole(*COMPUTED)
    now = unified(before)
    x = np.arange(size, dtype=np.float32) + 1
    for each in (before, now):
        y = np.zeros(size, np.float32)
        run_program(each, [y, x, np.zeros(3, np.float32)], print)
        np.testing.assert_array_equal(y, x)
    assert now.kernels != before.kernels


def test_sizes_that_differ_are_told_before_anything_is_written() -> None:
    now, y = unified(whole(*COMPUTED)), np.ones(3, np.float32)
    with pytest.raises(CdError, match="sizes 2 and 3 differ"):
        run_program(now, [y, np.zeros(2, np.float32), y.copy()], print)
    assert (y == 1).all()


SEEN: dict[str, Stmt] = {
    "a result": loop(i, n, Y, num(1)),
    "a print": Print(("hello",)),
    "a check": Check(ap("lt", pos(m), num(5, i64)), FAULT, (pos(m), pos(n))),
}


@pytest.mark.parametrize("kind", SEEN)
def test_no_check_moves_across_what_can_be_seen(kind: str) -> None:
    first, second, *_ = after(whole(SEEN[kind], same(m, n), LAST))
    assert (first, second) == (SEEN[kind], same(m, n))


def test_what_is_before_a_check_that_stays_keeps_its_names() -> None:
    early = loop(i, n, Y, num(1))
    first, _, last = after(whole(early, same(n, p), loop(j, p, Y, num(2))))
    assert isinstance(last, For)
    assert first == early and last.hi == var(n)


def test_a_second_check_of_the_same_sizes_goes_and_chains_end_at_one_name() -> None:
    body = after(whole(same(m, p), same(p, n), same(n, m), loop(j, p, Y, num(2))))
    *checks, last = body
    assert len(checks) == 2 and isinstance(last, For)
    assert last.hi == var(n)


def test_extents_that_a_loop_decides_are_left_alone() -> None:
    inner = For(i, aff(0), aff(3), 1, (same(m, n),))
    body = (same(m, i), inner, SECOND)
    assert unify_extents(body, (Parameter(X, False), Parameter(Y, True)), ()) == (body, ())


def test_a_check_that_is_of_more_than_two_names_is_left_alone() -> None:
    body = (same(aff(m) + 1, n), LAST)
    assert after(whole(*body)) == body


def test_a_check_that_tells_an_element_waits_for_it() -> None:
    told = Check(ap("eq", pos(m), pos(n)), FAULT, (read(E, 0), pos(n)))
    body = (Alloc(E), FIRST, told, SECOND)
    assert after(whole(*body)) == body


def test_constants_are_no_names() -> None:
    fixed = node(4, "w", 3, dtype=f32)
    body = (same(3, n), SECOND)
    assert unify_extents(body, (Parameter(fixed, False), Parameter(Y, True)), (E,)) == (body, (E,))
