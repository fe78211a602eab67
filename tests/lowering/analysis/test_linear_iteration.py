"""Numbers of the rounds of loops: in the order of the program, and back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from plusequals.lowering.analysis.linear_iteration import linearize
from plusequals.lowering.ir.indexing import Symbol, const, evaluate, var
from plusequals.lowering.ir.loops import For
from tests.backends.codegen.programs import symbols

I, J, K, N = symbols("i j k n")
NESTS = [
    (For(I, const(3), const(9), 1, ()),),
    (For(I, const(9), const(-4), -2, ()),),
    (For(I, const(-2), const(3), 1, ()), For(J, const(1), const(6), 2, ())),
    (For(I, const(0), const(5), 1, ()), For(J, var(I), const(7), 1, ()),
     For(K, const(4), const(0), -1, ())),
    (For(I, const(6), const(0), -1, ()), For(J, const(-3), var(I) * 2 - 3, 1, ())),
    (For(I, const(0), var(N), 1, ()), For(J, const(0), var(N), 1, ())),
]  # fmt: skip


def rounds(loops: tuple[For, ...], values: dict[Symbol, int]) -> Iterator[dict[Symbol, int]]:
    """Yield what the variables are in all rounds, in order."""
    if not loops:
        yield values
        return
    first, *rest = loops
    for at in range(evaluate(first.lo, values), evaluate(first.hi, values), first.step):
        yield from rounds(tuple(rest), {**values, first.symbol: at})


@pytest.mark.parametrize("loops", NESTS)
def test_numbers_grow_and_say_which_round_it_is(loops: tuple[For, ...]) -> None:
    found = linearize(loops)
    assert found is not None
    at, last = Symbol("at", -9), -1
    for values in rounds(loops, {N: 5}):
        number = evaluate(found.number, values)
        assert number > last
        last = number
        back = [evaluate(one, {at: number, N: 5}) for one in found.delinearize(var(at))]
        assert back == [values[loop.symbol] for loop in loops]
    assert last >= 0


def test_loops_that_may_be_of_any_length_have_none() -> None:
    assert linearize((For(I, const(0), var(N), 1, ()), For(J, const(0), var(I), 1, ()))) is None
    assert linearize((For(I, const(0), const(9), 1, ()), For(J, var(I), const(0), -1, ()))) is None
