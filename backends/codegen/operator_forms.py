"""Operations with special spellings: powers of two, signed zeros, 16-bit floats. Analysis only.

>>> from ...lowering.ir.ops import OPS
>>> i = Position(const(7))
>>> is_power_of_two(Apply(OPS["mod"], (i, Const(8, dtypes.int64)), dtypes.int64))
True
"""

from __future__ import annotations

import math

from ...lowering.ir import dtypes
from ...lowering.ir.dtypes import DType
from ...lowering.ir.expressions import Apply, Cast, Const, Expr, Position, Read, Select
from ...lowering.ir.indexing import const
from ...lowering.ir.ops import OPS, Op


def is_power_of_two(expr: Apply) -> bool:
    """Whether an operation divides an integer by a constant power of two other than 1."""
    match expr:
        case Apply(Op(name="floordiv" | "mod"), (value, Const(int(divisor))), dtype):
            is_integer = dtype.kind in "iu" and value.dtype is dtype
            return is_integer and divisor > 1 and divisor & (divisor - 1) == 0
        case _:
            return False


def subtracted_from_zero(expr: Apply) -> Expr | None:
    """Return x of `0.0 - x`, also of `-x + 0.0` and `-x - -0.0`, None for other operations and
    where x is a plain element.

    gcc folds these to `-x` where it derives that x is no -0.0, which is wrong for x = 0.0.
    """
    if expr.dtype.kind != "f" or expr.op.name not in ("add", "sub"):
        return None
    left, right = expr.args
    takes_negative_zero = expr.op.name == "sub" and _is_zero(right, -1)
    if expr.op.name == "add" or takes_negative_zero:
        swapped = takes_negative_zero or _is_zero(right)
        left, right = (Const(0.0, expr.dtype), left) if swapped else (left, right)
        negated = _negated(right)
        if negated is None:
            return None
        right = negated
    return right if _is_zero(left) and not isinstance(right, Read) else None


def _negated(expr: Expr) -> Expr | None:
    """Return x of `-x`, which compilers also make of `x * -1` and `x / -1`, and of selects of it;
    None for other values."""
    match expr:
        case Apply(op, (x,)) if op.name == "neg":
            return x
        case Apply(op, (x, Const(-1.0))) if op.name in ("mul", "product", "div"):
            return x
        case Apply(op, (Const(-1.0), x)) if op.name in ("mul", "product"):
            return x
        case Select(_, yes, no) if _negated(yes) is not None or _negated(no) is not None:
            return Apply(OPS["neg"], (expr,), expr.dtype)
        case _:
            return None


def is_zero_product(expr: Apply) -> bool:
    """Whether an operation multiplies a float by a literal zero: gcc folds that to a literal zero
    where it derives that the other factor is not negative, which exposes `0.0 - x`."""
    zeros = (arg for arg in expr.args if isinstance(arg, Const))
    return expr.op.name == "mul" and expr.dtype.kind == "f" and any(a.value == 0 for a in zeros)


def _is_zero(expr: Expr, sign: int = 1) -> bool:
    """Whether an expression is the constant zero of a sign."""
    match expr:
        case Const(value):
            if isinstance(value, complex):
                return False
            return value == 0 and math.copysign(1, value) == sign
        case Cast(value):
            return _is_zero(value, sign)
        case Position(index):
            return index == const(0) and sign > 0
        case _:
            return False


def widen_operation(expr: Apply) -> Expr:
    """Return an operation on 16-bit floats as one on float32, its result rounded back."""
    compute = expr.args[0].dtype.compute
    args = tuple(Cast(arg, compute) for arg in expr.args)
    if expr.dtype.compute is expr.dtype:
        return Apply(expr.op, args, expr.dtype)
    return Cast(Apply(expr.op, args, compute), expr.dtype)


def intermediate_type(source: DType, to: DType, halves: frozenset[DType]) -> DType | None:
    """Return the intermediate type of a conversion, None where a direct one is right.

    Integers to float16 go through float32: an integer that float32 rounds overflows float16 either
    way, and compilers call a function for each direct conversion.
    """
    if source.kind == "c":
        return source.real
    if halves & {source, to} and dtypes.float32 not in (source, to):
        return dtypes.float32
    if source is dtypes.float16 and to.kind in "iuc":
        return dtypes.float32
    if source.kind in "iu" and to is dtypes.float16:
        return dtypes.float32
    return None


def is_int(expr: Expr) -> bool:
    """Whether the C text of an int64 expression may have type `int`: small constants only."""
    match expr:
        case Const():
            return True
        case Position(index):
            return index.constant is not None
        case Select(_, yes, no):
            return is_int(yes) and is_int(no)
        case _:
            return False
