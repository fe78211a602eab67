"""Intervals hold all results of arithmetic on what they hold."""

from __future__ import annotations

import random

import pytest

from plusequals.lowering.ir.intervals import (
    Interval,
    add_intervals,
    combine_bounds,
    floordiv,
    mod,
    multiply_intervals,
    negate_interval,
    tighter_lower,
    tighter_upper,
)


def _some(draw: random.Random) -> tuple[Interval, list[int]]:
    """Return an interval, of which a side may be open, and numbers in it."""
    low, width = draw.randint(-12, 12), draw.randint(0, 9)
    numbers = list(range(low, low + width + 1))
    sides = draw.choice([(low, low + width), (None, low + width), (low, None), (None, None)])
    if sides[0] is None:
        numbers += [low - 100, low - 31]
    if sides[1] is None:
        numbers += [low + width + 31, low + width + 100]
    return sides, numbers


def _holds(found: Interval, number: int) -> bool:
    low, high = found
    return (low is None or low <= number) and (high is None or number <= high)


BINARY = {
    "total": (add_intervals, lambda a, b: a + b),
    "product": (multiply_intervals, lambda a, b: a * b),
    "mod": (mod, lambda a, b: a % b),
    "floordiv": (floordiv, lambda a, b: a // b),
}


@pytest.mark.parametrize("name", BINARY)
def test_every_result_is_inside(name: str) -> None:
    of_intervals, of_numbers = BINARY[name]
    draw = random.Random(name)
    for _ in range(3000):
        (one, left), (other, right) = _some(draw), _some(draw)
        found = of_intervals(one, other)
        for a in left:
            for b in right:
                if b or name not in ("mod", "floordiv"):
                    assert _holds(found, of_numbers(a, b)), (one, other, a, b)


def test_both_ends_are_there_where_they_are_known() -> None:
    draw = random.Random(1)
    for _ in range(500):
        low, high = sorted(draw.randint(-20, 20) for _ in range(2))
        first, last = sorted(draw.randint(-20, 20) for _ in range(2))
        one, other = (low, high), (first, last)
        assert add_intervals(one, other) == (low + first, high + last)
        ends = [a * b for a in one for b in other]
        assert multiply_intervals(one, other) == (min(ends), max(ends))
        assert negate_interval(one) == (-high, -low)


def test_tighter_sides() -> None:
    assert [
        tighter_lower(1, 2),
        tighter_lower(None, 2),
        tighter_lower(1, None),
        tighter_lower(None, None),
    ] == [
        2,
        2,
        1,
        None,
    ]
    assert [
        tighter_upper(1, 2),
        tighter_upper(None, 2),
        tighter_upper(1, None),
        tighter_upper(None, None),
    ] == [
        1,
        2,
        1,
        None,
    ]
    assert [
        combine_bounds(min, 1, 2),
        combine_bounds(min, None, 2),
        combine_bounds(max, 1, None),
    ] == [1, None, None]
