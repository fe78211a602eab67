"""Which elements exist: a tile without any is left out, and the tests in it are those of all."""

from __future__ import annotations

import itertools

import pytest

from plusequals.lowering.cpu.gemm.axes import Axis
from plusequals.lowering.cpu.gemm.partial_tiles import all_nonnegative, tile_bounds
from plusequals.lowering.ir.expressions import Apply, Expr, Position
from plusequals.lowering.ir.indexing import Affine, Symbol, const, evaluate, var
from plusequals.lowering.ir.loops import For

I, J = Symbol("i", 0), Symbol("j", 1)
TESTS: dict[str, tuple[Affine, ...]] = {
    "lower": (var(I) - var(J),),
    "strictly upper": (var(J) - var(I) - 1,),
    "a band": (var(I) - var(J) + 2, var(J) - var(I) + 3),
    "steep": (var(J) - var(I) * 3 + 4,),
    "a corner": (const(9) - var(I) - var(J),),
}


def holds(test: Expr, values: dict[Symbol, int]) -> bool:
    assert isinstance(test, Apply)
    left, right = test.args
    if isinstance(left, Position) and isinstance(right, Position) and test.op.name == "le":
        return evaluate(left.index, values) <= evaluate(right.index, values)
    assert test.op.name == "and"
    return holds(left, values) and holds(right, values)


@pytest.mark.parametrize("name", TESTS)
def test_tiles_that_are_left_out_have_none_and_full_ones_have_all(name: str) -> None:
    tests, sizes, counts = TESTS[name], (4, 8), (12, 16)
    axes = [
        Axis((For(s, const(0), const(count), 1, ()),), (size,), (count,), size)
        for s, size, count in zip((I, J), sizes, counts, strict=True)
    ]
    for starts in itertools.product(*[range(0, c, s) for c, s in zip(counts, sizes, strict=True)]):
        at = [(axis, (const(start),)) for axis, start in zip(axes, starts, strict=True)]
        spans = [range(start, start + size) for start, size in zip(starts, sizes, strict=True)]
        points = [dict(zip((I, J), point, strict=True)) for point in itertools.product(*spans)]
        exist = [all(evaluate(test, point) >= 0 for test in tests) for point in points]
        most, least = ([evaluate(one, {}) for one in tile_bounds(tests, at, n)] for n in (1, -1))
        assert all(one < 0 for one in (*most, *least)), "those that hold are left out"
        assert not most or not any(exist)
        assert bool(least) != all(exist)


@pytest.mark.parametrize("name", TESTS)
def test_the_tests_say_it_of_every_element(name: str) -> None:
    made = all_nonnegative(TESTS[name])
    for point in itertools.product(range(12), range(16)):
        values = dict(zip((I, J), point, strict=True))
        expected = all(evaluate(test, values) >= 0 for test in TESTS[name])
        assert holds(made, values) == expected
