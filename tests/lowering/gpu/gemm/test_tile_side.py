"""Loops that are counted as one."""

from __future__ import annotations

from plusequals.lowering.gpu.gemm.tile_side import Side
from plusequals.lowering.ir.fresh import Fresh
from plusequals.lowering.ir.indexing import Affine, Symbol, const, evaluate, var
from plusequals.lowering.ir.loops import For

from ...ir.build import symbols

I, J, N = symbols("i j n")


def side(*loops: tuple[Symbol, int, Affine]) -> Side:
    made = (For(symbol, const(lo), hi, 1, ()) for symbol, lo, hi in loops)
    return Side(tuple(made), Fresh(0, 9), "row")


def test_a_count_says_where_each_loop_is() -> None:
    two = side((I, 1, const(4)), (J, 0, const(5)))
    assert two.size == const(15)
    for count in range(15):
        found = two.values(const(count))
        assert (found[I], found[J]) == (const(1 + count // 5), const(count % 5))
    assert two.values_further(const(5), var(N))[J] == var(N), "the innermost goes on"


def test_one_loop_may_have_any_number_of_rounds() -> None:
    one = side((I, 2, var(N)))
    assert evaluate(one.size, {N: 9}) == 7 and one.values(var(J)) == {I: var(J) + 2}


def test_what_fits_needs_no_test() -> None:
    assert side((I, 0, const(128))).tests(var(J), 64) == []
    assert len(side((I, 0, const(120))).tests(var(J), 64)) == 1
    assert len(side((I, 0, var(N))).tests(var(J), 64)) == 1
