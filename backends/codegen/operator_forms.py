"""What an operation is that is spelled in another way than its name says. It changes nothing.

>>> from ...lowering.ir.ops import OPS
>>> i = Position(Affine((), 7))
>>> is_power_of_two(Apply(OPS["mod"], (i, Const(8, dtypes.int64)), dtypes.int64))
True
"""

from __future__ import annotations

import math

from ...lowering.ir import dtypes
from ...lowering.ir.dtypes import DType
from ...lowering.ir.expressions import Apply, Cast, Const, Expr, Position, Read, Select
from ...lowering.ir.indexing import const
from ...lowering.ir.ops import Op


def is_power_of_two(expr: Apply) -> bool:
    """Whether an integer is divided by a power of two that is known, and not 1."""
    match expr:
        case Apply(Op(name="floordiv" | "mod"), (value, Const(int(by))), dtype):
            whole = dtype.kind in "iu" and value.dtype is dtype
            return whole and by > 1 and by & (by - 1) == 0
        case _:
            return False


def behind_zero(expr: Apply) -> Expr | None:
    """Return what is taken from a literal zero, None for other operations and plain elements.

    gcc takes `0.0 - x` for `-x` where it can tell that x is no -0.0; for 0.0 that is another zero.
    """
    if expr.dtype.kind != "f" or expr.op.name not in ("add", "sub"):
        return None
    left, right = expr.args
    if expr.op.name == "add":
        left, right = (right, left) if _is_zero(right) else (left, right)
        if not isinstance(right, Apply) or right.op.name != "neg":
            return None
        (right,) = right.args
    return right if _is_zero(left) and not isinstance(right, Read) else None


def is_zero_product(expr: Apply) -> bool:
    """Whether a float is multiplied by a literal zero: gcc makes a literal zero of that where it
    can tell that the other factor is not negative, and then sees something taken from it."""
    zeros = (arg for arg in expr.args if isinstance(arg, Const))
    return expr.op.name == "mul" and expr.dtype.kind == "f" and any(a.value == 0 for a in zeros)


def _is_zero(expr: Expr) -> bool:
    match expr:
        case Const(value):
            if isinstance(value, complex):
                return False
            return value == 0 and math.copysign(1, value) > 0
        case Cast(value):
            return _is_zero(value)
        case Position(index):
            return index == const(0)
        case _:
            return False


def widened(expr: Apply) -> Expr:
    """Return an operation on 16-bit floats as one on float, its result rounded back."""
    compute = expr.args[0].dtype.compute
    args = tuple(Cast(arg, compute) for arg in expr.args)
    if expr.dtype.compute is expr.dtype:
        return Apply(expr.op, args, expr.dtype)
    return Cast(Apply(expr.op, args, compute), expr.dtype)


def detour(source: DType, to: DType, halves: frozenset[DType]) -> DType | None:
    """Return the type to convert through first, None where one step is right.

    A whole number that float rounds is none of float16: both ways to it give an infinity. In one
    step compilers call a function for each.
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
    """Whether the C text of an int64 expression may be of type `int`: only small constants."""
    match expr:
        case Const():
            return True
        case Position(index):
            return index.constant is not None
        case Select(_, yes, no):
            return is_int(yes) and is_int(no)
        case _:
            return False
