"""What loops and tests tell about index expressions, with the numbers worked out by hand."""

from __future__ import annotations

import pytest

from plusequals.lowering.ir.bounds import Bounds, Interval, as_index, bounds_of, difference
from plusequals.lowering.ir.expressions import Select
from plusequals.lowering.ir.indexing import (
    Affine,
    Range,
    Symbol,
    const,
    floordiv,
    maximum,
    minimum,
    mod,
    multiply,
    var,
)
from plusequals.lowering.ir.loops import For

from .build import ap, f32, i64, node, num, pos, read

i, j, n, u = Symbol("i", 0), Symbol("j", 1), Symbol("n", 2), Symbol("u", 3)
TRIANGLE = (
    Bounds({n: (0, None)})
    .inside(Range(i, const(0), const(10)))
    .inside(Range(j, var(i), var(n)))
)  # fmt: skip

CASES: list[tuple[Affine, Interval]] = [
    (const(3), (3, 3)),
    (var(i), (0, 9)),
    (var(i) * -2 + 1, (-17, 1)),
    (var(j), (0, None)),
    (var(j) - var(i), (0, None)),
    (var(j) - var(n), (None, -1)),
    (var(u), (None, None)),
    (var(u) - var(u), (0, 0)),
    (mod(var(u), const(4)), (0, 3)),
    (mod(var(i), const(100)), (0, 9)),
    (floordiv(var(i), const(4)), (0, 2)),
    (floordiv(var(i) - 20, const(4)), (-5, -3)),
    (floordiv(var(i), var(n) + 1), (0, 4)),  # n is 1 or more where j is bound
    (minimum(var(i), var(u)), (None, 9)),
    (maximum(var(i), var(u)), (0, None)),
    (minimum(var(i), var(i) * 2), (0, 9)),
    (multiply(var(i), var(n)), (0, None)),
    (mod(var(i), var(n)), (0, 9)),
]


@pytest.mark.parametrize("index,expected", CASES, ids=[repr(index) for index, _ in CASES])
def test_intervals(index: Affine, expected: Interval) -> None:
    assert TRIANGLE.interval(index) == expected
    assert (TRIANGLE.least(index), TRIANGLE.most(index)) == expected


def test_a_loop_downwards_goes_through_the_same_values() -> None:
    down = Bounds().inside(For(i, const(9), const(-1), -1, ()))
    assert down.interval(var(i)) == (0, 9)
    steps = Bounds().inside(For(i, const(0), const(10), 3, ()))
    assert steps.interval(var(i)) == (0, 9)


def test_tests_narrow_what_is_known() -> None:
    small = ap("lt", pos(i), num(4, i64))
    assert TRIANGLE.where(small).interval(var(i)) == (0, 3)
    assert TRIANGLE.where(small, False).interval(var(i)) == (4, 9)
    both = ap("and", small, ap("ge", pos(i), num(2, i64)))
    assert TRIANGLE.where(both).interval(var(i)) == (2, 3)
    assert TRIANGLE.where(both, False).interval(var(i)) == (0, 9)
    either = ap("or", small, ap("eq", pos(i), num(7, i64)))
    assert TRIANGLE.where(either, False).interval(var(i)) == (4, 9)
    assert TRIANGLE.where(ap("logical_not", small)).interval(var(i)) == (4, 9)
    chosen = Select(small, ap("gt", pos(var(i) * 2), num(3, i64)), num(False, small.dtype))
    assert TRIANGLE.where(chosen).interval(var(i)) == (2, 3)
    assert TRIANGLE.where(ap("eq", pos(u), num(5, i64))).interval(var(u)) == (5, 5)
    assert TRIANGLE.interval(var(i)) == (0, 9), "what was known before stays as it is"


def test_sizes_of_arguments_are_not_negative() -> None:
    known = bounds_of([node(0, "x", n, 4)])
    assert known.interval(var(n) + 1) == (1, None)


def test_only_integers_without_reads_are_indices() -> None:
    x = node(0, "x", dtype=f32)
    assert as_index(pos(i)) == var(i)
    assert as_index(num(3, i64)) == const(3)
    assert as_index(num(3.0, f32)) is None
    assert as_index(read(x)) is None
    assert difference(ap("lt", pos(i), pos(n))) == ("lt", var(n) - var(i))
    assert difference(ap("lt", read(x), read(x))) is None
