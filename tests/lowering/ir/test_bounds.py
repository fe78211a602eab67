"""What loops and tests tell about index expressions, with the numbers worked out by hand."""

from __future__ import annotations

import random

import numpy as np
import pytest

from plusequals.lowering.ir.bounds import Bounds, as_index, bounds_of, difference
from plusequals.lowering.ir.dtypes import uint8 as u8
from plusequals.lowering.ir.evaluate import compile_value
from plusequals.lowering.ir.expressions import Cast, Select
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
from plusequals.lowering.ir.intervals import Interval
from plusequals.lowering.ir.loops import For

from .build import ap, f32, i32, i64, node, num, pos, read
from .random_expressions import COMPUTED, KNOWN, Maker, states

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


def test_whole_numbers_are_where_their_types_and_operations_put_them() -> None:
    byte, number = read(node(0, "b", dtype=u8)), read(node(1, "k", dtype=i64))
    known = TRIANGLE.value
    assert known(byte) == (0, 255) and known(number) == (None, None)
    assert known(Cast(byte, i64)) == known(Cast(Cast(byte, i32), i64)) == (0, 255)
    assert known(ap("mod", number, num(9, i64))) == (0, 8)
    assert known(ap("mod", number, number)) == (None, None)
    assert known(ap("bitand", number, num(15, i64))) == (0, 15)
    assert known(ap("bitand", number, num(-2, i64))) == (None, None)
    assert known(ap("max", num(0, i64), ap("min", number, num(8, i64)))) == (0, 8)
    assert known(ap("min", num(8, i64), ap("max", number, num(0, i64)))) == (0, 8)
    assert known(ap("floordiv", Cast(byte, i64), num(16, i64))) == (0, 15)
    assert known(ap("add", Cast(byte, i64), pos(i))) == (0, 264)
    assert known(ap("add", byte, num(1, u8))) == (0, 255), "it may wrap around"
    assert known(Cast(ap("sub", Cast(byte, i64), num(1, i64)), u8)) == (0, 255)
    assert known(ap("lt", number, num(1, i64))) == (0, 1)
    assert known(Select(ap("lt", pos(i), num(4, i64)), pos(i), num(20, i64))) == (0, 20)
    assert known(read(node(2, "x", dtype=f32))) == (None, None)
    assert TRIANGLE.with_interval(u, (3, None)).value(pos(u)) == (3, None)


def test_random_expressions_have_values_in_their_intervals() -> None:
    rng = random.Random(5)
    maker, points, told = Maker(rng), list(states(rng, 40)), 0
    with np.errstate(all="ignore"):
        for _ in range(3000):
            expr = maker.expression(rng.choice([t for t in COMPUTED if t.kind in "biu"]), 4)
            low, high = KNOWN.value(expr)
            told += low is not None or high is not None
            at = compile_value(expr)
            for state in rng.sample(points, 4):
                found = int(at(state))
                assert (low is None or low <= found) and (high is None or found <= high)
    assert told > 1000
