"""Interval arithmetic: the least and the greatest value of results of operations.

>>> add((2.0, 5.0), (-1.0, 1.0)), result("sqrt", [(4.0, 9.0)]), result("log", [(0.0, 9.0)])
((1.0, 6.0), (2.0, 3.0), None)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product

from ...lowering.ir.dtypes import DType

Interval = tuple[float, float]

ANY: Interval = (-math.inf, math.inf)
BOOLS: Interval = (0.0, 1.0)
INT64: Interval = (-(2.0**63), 2.0**63)
_LARGEST_EXPONENT = 709.0
"""Above it `exp` overflows."""
_TESTS = frozenset(
    "eq ne lt le gt ge and or logical_not isnan isinf isfinite signbit sat01".split()
)
_ANGLES = frozenset("sin cos tanh arctan arctan2 erf erfc angle sign".split())


def of_type(dtype: DType) -> Interval:
    """Return the interval of an integer type."""
    if dtype.kind == "i":
        return -(2.0 ** (dtype.bits - 1)), 2.0 ** (dtype.bits - 1)
    return 0.0, 2.0**dtype.bits


def hull(left: Interval, right: Interval) -> Interval:
    """Return the interval of values that are in either of two."""
    return min(left[0], right[0]), max(left[1], right[1])


def within(inner: Interval, outer: Interval) -> bool:
    """Whether an interval is part of another; at its ends, too, which floats round."""
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def clipped(values: Interval, ends: Interval) -> Interval:
    """Return an interval clipped to another: all of that one where they do not meet."""
    low, high = max(values[0], ends[0]), min(values[1], ends[1])
    return (low, high) if low <= high else ends


def may_be_zero(values: Interval) -> bool:
    """Whether an interval has 0."""
    return values[0] <= 0 <= values[1]


def add(left: Interval, right: Interval) -> Interval:
    """Return the interval of sums."""
    return left[0] + right[0], left[1] + right[1]


def times(left: Interval, right: Interval) -> Interval:
    """Return the interval of products."""
    corners = [x * y if x and y else 0.0 for x, y in product(left, right)]
    return min(corners), max(corners)


def quotient(name: str, left: Interval, right: Interval, is_whole: bool) -> Interval:
    """Return the interval of quotients or remainders; `is_whole`: by integers that are not 0."""
    if name in ("mod", "fmod"):
        most = max(map(abs, right))
        return (0.0, most) if name == "mod" and right[0] >= 0 else (-most, most)
    if not may_be_zero(right):
        corners = [_divided(x, y) for x, y in product(left, right)]
        found = min(corners), max(corners)
    elif is_whole:
        most = max(map(abs, left))
        found = -most, most
    else:
        found = ANY
    return _rounded(found) if name == "floordiv" else found


def _divided(x: float, y: float) -> float:
    return 0.0 if math.isinf(y) else x / y


def _rounded(values: Interval) -> Interval:
    """Return the interval of values that are rounded, in any way."""
    low, high = values
    return low if math.isinf(low) else math.floor(low), high if math.isinf(high) else math.ceil(
        high
    )


def result(name: str, operands: Sequence[Interval]) -> Interval | None:
    """Return the interval of the results of an operation of `OPS` other than a division, None where
    an operand may be outside of its domain, or a float overflow."""
    if name in _TESTS:
        return BOOLS
    if name in _ANGLES:
        return -4.0, 4.0
    try:
        if name in _MONOTONE:
            function, low, high = _MONOTONE[name]
            ((first, last),) = operands
            return (function(first), function(last)) if low <= first and last <= high else None
        return _RESULTS[name](*operands) if name in _RESULTS else ANY
    except OverflowError:
        return None


_TINY = 5e-324
"""The least float above 0."""
_MONOTONE: dict[str, tuple[Callable[[float], float], float, float]] = {
    "sqrt": (math.sqrt, 0.0, math.inf), "log": (math.log, _TINY, math.inf),
    "log2": (math.log2, _TINY, math.inf), "log10": (math.log10, _TINY, math.inf),
    "log1p": (math.log1p, math.nextafter(-1, 0), math.inf),
    "exp": (math.exp, -math.inf, _LARGEST_EXPONENT), "exp2": (lambda x: 2.0**x, -math.inf, 1023.0),
    "expm1": (math.expm1, -math.inf, _LARGEST_EXPONENT), "arcsin": (math.asin, -1.0, 1.0),
    "arccosh": (math.acosh, 1.0, math.inf),
    "arctanh": (math.atanh, math.nextafter(-1, 0), math.nextafter(1, 0)),
    "sinh": (math.sinh, -_LARGEST_EXPONENT, _LARGEST_EXPONENT),
}  # fmt: skip
"""Functions that rise, and the ends of their domains, in which floats do not overflow."""


def _power(base: Interval, exponent: Interval) -> Interval | None:
    if base[0] > 0 or base[0] == 0 and exponent[0] >= 0:
        corners = [x**y for x, y in product(base, exponent)]
        return min(corners), max(corners)
    is_defined = exponent[0] >= 0 or not may_be_zero(base)
    if exponent[0] != exponent[1] or not exponent[0].is_integer() or not is_defined:
        return None
    most = max(abs(x) ** exponent[0] for x in base)
    return -most, most


def _shifted(value: Interval, count: Interval) -> Interval | None:
    if count[0] < 0:
        return None
    return times(value, (2.0 ** count[0], 2.0 ** count[1]))


def _bits(*operands: Interval) -> Interval:
    """Return the interval of integers that have no more bits than the operands."""
    most = max(abs(end) for operand in operands for end in operand) + 1
    top = most if math.isinf(most) else 2.0 ** math.frexp(most)[1]
    return (-top if any(operand[0] < 0 for operand in operands) else 0.0), top


def _symmetric(*operands: Interval) -> Interval:
    most = sum(max(map(abs, operand)) for operand in operands)
    return -most, most


_RESULTS: dict[str, Callable[..., Interval | None]] = {
    "add": add, "sub": lambda x, y: (x[0] - y[1], x[1] - y[0]), "mul": times, "product": times,
    "neg": lambda x: (-x[1], -x[0]), "abs": lambda x: (
        0.0 if may_be_zero(x) else min(map(abs, x)), max(map(abs, x))
    ),
    "invert": lambda x: (-x[1] - 1, -x[0] - 1), "relu": lambda x: (max(x[0], 0.0), max(x[1], 0.0)),
    "floor": _rounded, "ceil": _rounded, "trunc": _rounded, "rint": _rounded,
    "max": lambda x, y: (max(x[0], y[0]), max(x[1], y[1])),
    "min": lambda x, y: (min(x[0], y[0]), min(x[1], y[1])),
    "fmax": hull, "fmin": hull, "copysign": lambda x, _: _symmetric(x), "hypot": _symmetric,
    "pow": _power, "whole_pow": _power, "half_pow": _power, "shl": _shifted,
    "shr": lambda x, count: None if count[0] < 0 else hull(x, (0.0, 0.0)),
    "bitand": _bits, "bitor": _bits, "bitxor": _bits,
    "arccos": lambda x: (0.0, 4.0) if within(x, (-1.0, 1.0)) else None,
    "cosh": lambda x: ANY if within(x, (-_LARGEST_EXPONENT, _LARGEST_EXPONENT)) else None,
    "recip": lambda x: (1 / x[1], 1 / x[0]) if x[0] > 0 else None,
    "recip_sqrt": lambda x: ANY if x[0] > 0 else None,
}  # fmt: skip
"""Other operations; the interval of those that are in no table is `ANY`."""
