"""Interval arithmetic on integers; None is an unbounded side. Sound, not exact.

>>> add_intervals((0, 7), (1, None)), negate_interval((0, None))
((1, None), (None, 0))
>>> tighter_lower(None, 3), combine_bounds(min, 3, None)
(3, None)
"""

from __future__ import annotations

from collections.abc import Callable

Interval = tuple[int | None, int | None]
UNKNOWN: Interval = (None, None)


def add_intervals(left: Interval, right: Interval) -> Interval:
    """Return the interval of sums."""
    low = None if left[0] is None or right[0] is None else left[0] + right[0]
    return low, None if left[1] is None or right[1] is None else left[1] + right[1]


def negate_interval(interval: Interval) -> Interval:
    """Return the interval of negated values."""
    low, high = interval
    return None if high is None else -high, None if low is None else -low


def mod(left: Interval, right: Interval) -> Interval:
    """Return the interval of remainders by a positive divisor: 0 or more.

    >>> mod((-5, 100), (1, 9)), mod((0, 3), (8, 8)), mod((0, 3), (None, 8))
    ((0, 8), (0, 3), (None, None))
    """
    if right[0] is None or right[0] <= 0:
        return UNKNOWN
    top = None if right[1] is None else right[1] - 1
    if left[0] is not None and left[0] >= 0:
        top = tighter_upper(top, left[1])
    return 0, top


def is_empty(interval: Interval) -> bool:
    """Whether no number is in an interval, as where facts of unreachable code contradict.

    >>> is_empty((1, 0)), is_empty((1, None))
    (True, False)
    """
    low, high = interval
    return low is not None and high is not None and low > high


def floordiv(left: Interval, right: Interval) -> Interval:
    """Return the interval of quotients by a positive divisor, rounded down.

    >>> floordiv((-5, 100), (2, 4)), floordiv((3, 9), (2, None))
    ((-3, 50), (0, 4))
    >>> floordiv((3, 9), (1, 0)) == UNKNOWN
    True
    """
    if right[0] is None or right[0] <= 0 or is_empty(right):
        return UNKNOWN
    divisors = [right[0]] if right[1] is None else [right[0], right[1]]
    lo, hi = left
    low = None if lo is None else min(lo // b for b in divisors)
    high = None if hi is None else max(hi // b for b in divisors)
    if right[1] is None:  # the quotient goes to 0 or -1 as the divisor grows
        low = low if low is None or low < 0 else 0
        high = high if high is None or high >= 0 else -1
    return low, high


def multiply_intervals(left: Interval, right: Interval) -> Interval:
    """Return the interval of products.

    >>> multiply_intervals((-5, 3), (2, 4)), multiply_intervals((1, None), (2, 4))
    ((-20, 12), (2, None))
    >>> multiply_intervals((None, 1), (2, 4))
    (None, None)
    """
    if None in left or None in right:
        if (left[0] or 0) >= 0 and (right[0] or 0) >= 0 and None not in (left[0], right[0]):
            return (left[0] or 0) * (right[0] or 0), None
        return UNKNOWN
    ends = [a * b for a in left for b in right if a is not None and b is not None]
    return min(ends), max(ends)


def tighter_lower(left: int | None, right: int | None) -> int | None:
    """Return the tighter of two lower bounds."""
    return right if left is None else left if right is None else max(left, right)


def tighter_upper(left: int | None, right: int | None) -> int | None:
    """Return the tighter of two upper bounds."""
    return right if left is None else left if right is None else min(left, right)


def combine_bounds(
    choose: Callable[[int, int], int], left: int | None, right: int | None
) -> int | None:
    """Return a bound that needs both operands to be bounded."""
    return None if left is None or right is None else choose(left, right)
