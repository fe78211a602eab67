"""Boxes around ranges."""

from __future__ import annotations

from hypothesis import given

from plusequals.dsl.instrument.rows import bounding_box, is_non_rectangular
from plusequals.lowering.ir.indexing import Range, Symbol, const, evaluate, mod, var
from tests.dsl.elaborate.points import nested_ranges, points

I, J = Symbol("i", 1), Symbol("j", 2)


@given(nested_ranges())
def test_every_point_lies_in_the_box(ranges: tuple[Range, ...]) -> None:
    axes = list(bounding_box(ranges))
    for point in points(ranges):
        for axis in axes:
            first, extent = evaluate(axis.first, {}), evaluate(axis.extent, {})
            assert 0 <= point[axis.symbol] - first < extent


def test_a_range_that_follows_another_is_uneven() -> None:
    square = (Range(I, const(0), const(9)), Range(J, const(0), const(9)))
    triangle = (square[0], Range(J, const(0), mod(var(I), const(4))))
    assert not is_non_rectangular(square) and is_non_rectangular(triangle)
    assert [axis.extent for axis in bounding_box(triangle)] == [const(9), const(3)]
