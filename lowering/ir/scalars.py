"""Scalar semantics of operations and conversions, on NumPy scalars; the interpreter uses it."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .dtypes import DType
from .ops import Op


def scalar_function(op: Op, dtype: DType) -> Callable[..., Any]:
    """Return the NumPy function of an op, with three differences.

    NumPy raises on negative exponents of integers, rounds complex products once or twice depending
    on the processor, and computes a square root for the exponent 0.5 of a scalar.
    """
    if op.name in ("pow", "whole_pow", "half_pow") and dtype.kind == "f":
        return _real_power
    if op.name == "pow" and dtype.kind in "iu":
        return _integer_power
    if dtype.kind == "c":
        return _complex_product if op.name == "mul" else op.meaning
    return _OF_SCALARS.get(op.name, op.meaning)


_OF_SCALARS: dict[str, Callable[..., Any]] = {
    "neg": operator.neg, "add": operator.add, "sub": operator.sub, "mul": operator.mul,
    "product": operator.mul, "div": operator.truediv, "eq": operator.eq, "ne": operator.ne,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "bitand": operator.and_, "bitor": operator.or_, "bitxor": operator.xor,
    "and": operator.and_, "or": operator.or_, "logical_not": operator.invert,
    "invert": operator.invert, "abs": operator.abs,
}  # fmt: skip
"""What computes the same of scalars without the search of a universal function for its loop."""


def _complex_product(a: Any, b: Any) -> Any:
    """Return a product in which every operation is rounded."""
    re, im, by_re, by_im = a.real, a.imag, b.real, b.imag
    return type(a)(complex(re * by_re - im * by_im, re * by_im + im * by_re))


def _real_power(base: Any, exponent: Any) -> Any:
    """Return C's `pow`: -inf and -0.0 to the power 0.5 are inf and 0.0."""
    try:
        return type(base)(math.pow(base, exponent))
    except (ValueError, OverflowError):  # a value outside the reals or the range: NumPy defines it
        return np.power(np.full(2, base), np.full(2, exponent))[0]


def _integer_power(base: Any, exponent: Any) -> Any:
    if exponent >= 0:
        return np.power(base, exponent)
    if base == 1 or (base == -1 and exponent % 2 == 0):
        return type(base)(1)
    return type(base)(-1 if base == -1 else 0)


def conversion_function(source: DType, target: DType) -> Callable[[Any], Any]:
    """Return the conversion of a scalar from one type to another; see `Cast`."""
    numpy_type = target.numpy
    if target.kind == "b":
        return lambda value: np.bool_(value != 0)
    if source.kind == "c" and target.kind != "c":
        from_real = conversion_function(source.real, target)
        return lambda value: from_real(value.real)
    if source.kind == "f" and target.kind in "iu":
        return lambda value: numpy_type.type(_saturate(float(value), target))
    once = source.kind == "f" or target.bits == 64  # no rounding by a Python float between
    if target.kind == "f" and once and numpy_type.isbuiltin == 1:
        convert: Callable[[Any], Any] = numpy_type.type
        return convert
    return lambda value: value.astype(numpy_type)


def _saturate(value: float, target: DType) -> int:
    lo = 0 if target.kind == "u" else -(1 << (target.bits - 1))
    hi = lo + (1 << target.bits) - 1
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return hi if value > 0 else lo
    return min(max(int(value), lo), hi)


def is_better(op: Op, candidate: Any, best: Any) -> bool:
    """Whether the candidate replaces the best so far; the first NaN is best of all, as in NumPy."""
    if best != best:
        return False
    if candidate != candidate:
        return True
    return bool(candidate < best if op.name == "argmin" else candidate > best)


def better_function(op: Op) -> Callable[..., tuple[Any, Any]]:
    """Return the function from the best so far, its position or -1, and a candidate to the
    better."""

    def better(best: Any, best_position: Any, value: Any, position: int) -> tuple[Any, Any]:
        return (
            (value, position)
            if best_position < 0 or is_better(op, value, best)
            else (best, best_position)
        )

    return better
