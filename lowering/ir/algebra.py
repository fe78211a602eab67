"""Exact algebraic rewrite rules: each simplifies one operation, bit-identical for every operand.

`RULES` lists for each operation the rules that are tried; a rule returns a simpler expression or
None. NaN, infinities, signed zeros and wrapping integers are operands like any other: `x * 1` is x,
`x + 0` stays for floats (it makes 0 of -0), `x * 0` is 0 for integers only. Constants are folded
only for operations that every machine rounds alike, and a NaN result is left to the machine.
Complex numbers are left alone: their products mix NaN of one part into the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import numpy as np

from ...base.lazy_import import LazyModule
from . import dtypes
from .expressions import Apply, Cast, Const, Expr
from .ops import OPS

if TYPE_CHECKING:
    from . import evaluate
else:  # what few programs need
    evaluate = LazyModule(".evaluate", __package__)

Rule = Callable[[Apply], Expr | None]
TRUE, FALSE = Const(True, dtypes.bool_), Const(False, dtypes.bool_)


_EXACT = frozenset(
    "neg abs sign floor ceil trunc rint sqrt recip relu logical_not invert isnan isinf isfinite "
    "signbit ordinal rank of_rank "
    "add sub mul div max min eq ne lt le gt ge and or bitand bitor bitxor shl shr".split()
)
"""Operations that every machine computes to the same bits."""


def fold_constants(expr: Apply | Cast) -> Const | None:
    """Return an operation on constants as a constant, None where the result depends on the
    machine."""
    if isinstance(expr, Apply):
        kinds = {arg.dtype.kind for arg in expr.args}
        exact = _EXACT | {"floordiv", "mod", "pow"} if kinds <= {"i", "u"} else _EXACT
        if expr.op.name not in exact or "c" in kinds:
            return None
        if expr.op.name in ("floordiv", "mod") and cast(Const, expr.args[1]).value == 0:
            return None
    if expr.dtype.kind == "c":
        return None
    with np.errstate(all="ignore"):
        value = evaluate.compile_value(expr)(evaluate.State(print)).item()
    if isinstance(value, float) and (math.isnan(value) or value == 0 and _is_extremum(expr)):
        return None
    return Const(value, expr.dtype)


def _is_extremum(expr: Apply | Cast) -> bool:
    """Whether an operation is a maximum or minimum: machines differ in which zero is the
    greater."""
    return isinstance(expr, Apply) and expr.op.name in ("max", "min")


def _is_number(expr: Expr, value: float, kinds: str = "iuf") -> bool:
    """Whether an expression is that number, with the same sign of zero."""
    return (
        isinstance(expr, Const)
        and expr.dtype.kind in kinds
        and expr.value == value
        and (expr.dtype.kind != "f" or math.copysign(1, cast(float, expr.value)) ==
             math.copysign(1, value))
    )  # fmt: skip


def _is_integer(expr: Expr) -> bool:
    return expr.dtype.kind in "iu"


def _zero(expr: Apply) -> Const:
    return Const(0, expr.dtype)


def add_zero(expr: Apply) -> Expr | None:
    """`x + 0` is x for integers; `x + -0.0` is x for floats."""
    left, right = expr.args
    neutral = 0 if _is_integer(left) else -0.0
    return left if _is_number(right, neutral) else right if _is_number(left, neutral) else None


def subtract_zero(expr: Apply) -> Expr | None:
    """`x - 0` is x, for floats as well."""
    left, right = expr.args
    return left if _is_number(right, 0) else None


def subtract_itself(expr: Apply) -> Expr | None:
    """`x - x` is 0 for integers; it may be NaN for floats."""
    return _zero(expr) if _is_integer(expr.args[0]) and expr.args[0] == expr.args[1] else None


def reassociate_constants(expr: Apply) -> Expr | None:
    """`(x + 2) + 3` is `x + 5`, and `(x * 2) * 3` is `x * 6`, for wrapping integers."""
    left, right = expr.args
    if not _is_integer(left):
        return None
    if isinstance(left, Const) and expr.op.name in ("add", "mul"):
        left, right = right, left
    match left, right:
        case Apply(op, (inner, Const() as first), _), Const() as second:
            pass
        case _:
            return None
    if expr.op.name == "mul" or op.name == "mul":
        total = fold_constants(Apply(OPS["mul"], (first, second), expr.dtype))
        fits = op.name == expr.op.name == "mul"
    else:
        same_sign = op.name == expr.op.name
        total = fold_constants(
            Apply(OPS["add" if same_sign else "sub"], (first, second), expr.dtype)
        )
        fits = op.name in ("add", "sub")
    return Apply(op, (inner, total), expr.dtype) if fits and total is not None else None


def multiply_by_one(expr: Apply) -> Expr | None:
    """`x * 1` is x."""
    left, right = expr.args
    return left if _is_number(right, 1) else right if _is_number(left, 1) else None


def multiply_by_zero(expr: Apply) -> Expr | None:
    """`x * 0` is 0 for integers; for floats it may be NaN or -0."""
    return _zero(expr) if any(_is_number(arg, 0, "iu") for arg in expr.args) else None


def divide_by_one(expr: Apply) -> Expr | None:
    """`x / 1` is x; so is `x // 1` for integers."""
    left, right = expr.args
    return left if _is_number(right, 1, "f" if expr.op.name == "div" else "iu") else None


def divide_by_power_of_two(expr: Apply) -> Expr | None:
    """`x / 4` is `x * 0.25`: both round the same value, as the reciprocal is exact."""
    left, right = expr.args
    if not isinstance(right, Const) or right.dtype.kind != "f":
        return None
    value = float(cast(float, right.value))
    limit = 120 if right.dtype.bits == 32 else 1000
    mantissa, exponent = math.frexp(value)
    if abs(mantissa) != 0.5 or abs(exponent) > limit or exponent == 1:
        return None
    return Apply(OPS["mul"], (left, Const(1 / value, right.dtype)), expr.dtype)


def remainder_by_one(expr: Apply) -> Expr | None:
    """`x % 1` is 0 for integers."""
    return _zero(expr) if _is_number(expr.args[1], 1, "iu") else None


def cancel_involution(expr: Apply) -> Expr | None:
    """`-(-x)`, `not not x`, `~~x` and `conj(conj(x))` are x (involutions)."""
    inner = expr.args[0]
    return inner.args[0] if isinstance(inner, Apply) and inner.op == expr.op else None


def drop_idempotent(expr: Apply) -> Expr | None:
    """`abs(abs(x))` is `abs(x)` (idempotence); the same for the roundings and for relu."""
    inner = expr.args[0]
    return inner if isinstance(inner, Apply) and inner.op == expr.op else None


def abs_of_neg(expr: Apply) -> Expr | None:
    """`abs(-x)` is `abs(x)`."""
    match expr.args[0]:
        case Apply(op, args, dtype) if op.name == "neg" and dtype.kind in "if":
            return Apply(expr.op, args, expr.dtype)
        case _:
            return None


def equal_operands(expr: Apply) -> Expr | None:
    """`max(x, x)`, `x and x`, `x & x` are x; the same for min, or, `|`."""
    return expr.args[0] if expr.args[0] == expr.args[1] else None


def compare_with_itself(expr: Apply) -> Expr | None:
    """`x == x` holds, except for floats, which may be NaN; `x < x` is false for any type.

    gcc applies that, too, and then takes `0 - y` for `-y`, see `behind_zero`.
    """
    if expr.args[0] != expr.args[1]:
        return None
    if expr.op.name in ("lt", "gt"):
        return FALSE
    if expr.args[0].dtype.kind not in "biu":
        return None
    return TRUE if expr.op.name in ("eq", "le", "ge") else FALSE


def compare_with_bool(expr: Apply) -> Expr | None:
    """`b == True` is b, `b != True` is `not b`."""
    for operand, constant in (expr.args, expr.args[::-1]):
        if isinstance(constant, Const) and constant.dtype == dtypes.bool_:
            if (expr.op.name == "eq") == bool(constant.value):
                return operand
            return Apply(OPS["logical_not"], (operand,), dtypes.bool_)
    return None


def negate_comparison(expr: Apply) -> Expr | None:
    """`not x == y` is `x != y`; `not x < y` is `x >= y` except for floats, which may be NaN."""
    names = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
    match expr.args[0]:
        case Apply(op, args, _) if op.name in names:
            if op.name in ("eq", "ne") or args[0].dtype.kind in "biu":
                return Apply(OPS[names[op.name]], args, dtypes.bool_)
        case _:
            pass
    return None


def logical_constants(expr: Apply) -> Expr | None:
    """`x and True` is x, `x and False` is False; the reverse for `or`."""
    neutral = expr.op.name == "and"
    for operand, constant in (expr.args, expr.args[::-1]):
        if isinstance(constant, Const):
            return operand if bool(constant.value) == neutral else constant
    return None


def bits_of_constants(expr: Apply) -> Expr | None:
    """`x | 0`, `x ^ 0` and `x & -1` are x; `x & 0` is 0; `x ^ x` is 0."""
    name, dtype = expr.op.name, expr.dtype
    full = True if dtype.kind == "b" else -1 if dtype.kind == "i" else (1 << dtype.bits) - 1
    if name == "bitxor" and expr.args[0] == expr.args[1]:
        return Const(False, dtype) if dtype.kind == "b" else _zero(expr)
    for operand, constant in (expr.args, expr.args[::-1]):
        if isinstance(constant, Const):
            if constant.value == (full if name == "bitand" else 0):
                return operand
            if name == "bitand" and constant.value == 0:
                return constant
    return None


def shift_by_zero(expr: Apply) -> Expr | None:
    """`x << 0` and `x >> 0` are x."""
    return expr.args[0] if _is_number(expr.args[1], 0, "iu") else None


def part_of_complex(expr: Apply) -> Expr | None:
    """The real part of `complex(a, b)` is a, the imaginary part is b."""
    match expr.args[0]:
        case Apply(op, (re, im), _) if op.name == "complex":
            return re if expr.op.name == "real" else im
        case _:
            return None


RULES: dict[str, tuple[Rule, ...]] = {
    "add": (add_zero, reassociate_constants),
    "sub": (subtract_zero, subtract_itself, reassociate_constants),
    "mul": (multiply_by_one, multiply_by_zero, reassociate_constants),
    "div": (divide_by_one, divide_by_power_of_two),
    "floordiv": (divide_by_one,),
    "mod": (remainder_by_one,),
    "neg": (cancel_involution,),
    "invert": (cancel_involution,),
    "conj": (cancel_involution,),
    "logical_not": (cancel_involution, negate_comparison),
    "abs": (drop_idempotent, abs_of_neg),
    "floor": (drop_idempotent,),
    "ceil": (drop_idempotent,),
    "trunc": (drop_idempotent,),
    "rint": (drop_idempotent,),
    "relu": (drop_idempotent,),
    "sat01": (drop_idempotent,),
    "max": (equal_operands,),
    "min": (equal_operands,),
    "fmax": (equal_operands,),
    "fmin": (equal_operands,),
    "eq": (compare_with_bool, compare_with_itself),
    "ne": (compare_with_bool, compare_with_itself),
    "lt": (compare_with_itself,),
    "le": (compare_with_itself,),
    "gt": (compare_with_itself,),
    "ge": (compare_with_itself,),
    "and": (logical_constants, equal_operands),
    "or": (logical_constants, equal_operands),
    "bitand": (bits_of_constants, equal_operands),
    "bitor": (bits_of_constants, equal_operands),
    "bitxor": (bits_of_constants,),
    "shl": (shift_by_zero,),
    "shr": (shift_by_zero,),
    "real": (part_of_complex,),
    "imag": (part_of_complex,),
}
