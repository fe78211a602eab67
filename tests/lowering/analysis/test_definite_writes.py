"""What the first rounds of loops do: with jumps, names, and other loops around."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plusequals.lowering.analysis.definite_writes import (
    in_first_iterations,
    reaches_first_iteration,
)
from plusequals.lowering.ir.expressions import Dynamic, Position
from plusequals.lowering.ir.indexing import Range, Symbol, const, var
from plusequals.lowering.ir.loops import For, If
from plusequals.lowering.ir.walk import statements

from ..shown import lowered

I, J, N = Symbol("i", 90), Symbol("j", 91), Symbol("n", 92)


def loop_of(body: str) -> For:
    program = lowered(body, y="f32[8]", x="f32[8]", p="i64[8]")
    return next(stmt for stmt in program.kernels[0].body if isinstance(stmt, For))


JUMP = loop_of("for k in range(2, 7):\n    y[k] = x[k]\n    if x[k] > 2: break\n    y[k] += 1")
PLAIN = loop_of("for k in range(2, 7):\n    y[k] = x[k]")
PLACE = next(at for at, stmt in enumerate(JUMP.body) if isinstance(stmt, If))


def test_the_first_round_comes_to_what_no_jump_is_before() -> None:
    assert reaches_first_iteration(JUMP, PLACE, ()) and not reaches_first_iteration(
        JUMP, PLACE + 1, ()
    )
    assert not reaches_first_iteration(replace(JUMP, lo=const(7)), 0, ())
    some = replace(JUMP, lo=var(N))
    assert not reaches_first_iteration(some, 0, ()) and reaches_first_iteration(
        some, 0, (Range(N, const(0), const(7)),)
    )
    assert not reaches_first_iteration(some, 0, (Range(N, const(0), const(8)),))
    back = replace(JUMP, lo=const(7), hi=const(6), step=-2)
    assert reaches_first_iteration(back, 0, ()) and not reaches_first_iteration(
        replace(back, lo=const(6)), 0, ()
    )


def test_loops_that_say_which_cell_stay_where_they_are_not_left() -> None:
    inner = replace(PLAIN, symbol=J, lo=var(JUMP.symbol), hi=const(9))
    outer = replace(JUMP, body=(inner, *JUMP.body))
    found = in_first_iterations((outer, inner), (0, 0), (var(J) + var(JUMP.symbol),), ())
    assert found is not None
    (left,), index = found
    assert (left.symbol, left.lo, left.hi) == (J, const(2), const(9))
    assert index == (var(J) + 2,)
    assert in_first_iterations((PLAIN,), (0,), (var(PLAIN.symbol),), ()) is None, (
        "there is nothing new"
    )
    assert in_first_iterations((PLAIN,), (0,), (const(4),), ()) == ((), (const(4),))


def test_rounds_that_only_the_outer_loop_knows_of() -> None:
    inner = replace(JUMP, symbol=J, lo=const(0), hi=var(I))
    outer = replace(PLAIN, symbol=I, lo=const(0), body=(inner,))
    assert in_first_iterations((outer, inner), (0, 0), (), ()) is None, "the first has none"
    assert in_first_iterations((replace(outer, lo=const(1)), inner), (0, 0), (), ()) == ((), ())
    kept = in_first_iterations((replace(outer, lo=const(1)), inner), (0, 0), (var(I),), ())
    assert kept == ((), (const(1),)), "a loop with a jump in it is taken for one that may be left"
    last = replace(PLAIN, symbol=I, lo=const(1), body=(replace(inner, body=PLAIN.body),))
    (still,) = statements(last.body[:1])[:1]
    assert in_first_iterations((last, still), (0, 0), (var(I),), ()) is None, (
        "nothing is known of `i`"
    )


@pytest.mark.parametrize("index", [(Dynamic(Position(const(2))),), (var(N),)])
def test_what_data_says_is_another_cell_in_each_round(index: tuple[Dynamic]) -> None:
    loop = loop_of("for k in range(3):\n    a = p[k]\n    y[a] = 1\n    if x[k] > 2: break")
    names = [s for stmt in statements((loop,)) for s in (getattr(stmt, "symbol", None),) if s]
    here = tuple(var(names[-1]) if at == var(N) else at for at in index)
    assert in_first_iterations((loop,), (1,), here, ()) is None
    assert in_first_iterations((loop,), (1,), (const(1),), ()) is not None


def test_branches_are_not_looked_into() -> None:
    branch = next(stmt for stmt in JUMP.body if isinstance(stmt, If))
    assert in_first_iterations((JUMP, branch), (PLACE, 0), (), ()) is None
    assert in_first_iterations((), (), (), ()) is None
