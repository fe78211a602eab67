"""What has to hold for the integers that an expression computes to fit their types.

    fitting(expr)      of integers made of integers: sums, products, powers, shifts, casts
    float_casts(expr)  of integers made of floats
    guarded(expr)      the parts of an expression, each with the test under which it is evaluated

Each test is an expression itself, that says nothing where its part is not evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...lowering.ir import dtypes
from ...lowering.ir.dtypes import DType
from ...lowering.ir.expressions import Apply, Cast, Const, Expr, Position, Select, children
from ...lowering.ir.indexing import const
from ...lowering.ir.ops import OPS
from ..values.types import TRUE, negate

FALSE = Const(False, dtypes.bool_)


def fitting(expr: Expr) -> Iterator[Expr]:
    """Yield what has to hold for the integers in an expression to fit their types."""
    match expr:
        case Apply(op, (left, right), dtype) if op.name in ("add", "sub", "mul"):
            if dtype.kind in "iu":
                yield _fits(op.name, left, right, expr)
        case Apply(op, (left, right), dtype) if op.name == "shl":
            inside = _and(
                _compare("ge", right, Const(0, right.dtype)),
                _compare("lt", right, Const(dtype.bits, right.dtype)),
            )
            kept_bits = _same(Apply(OPS["shr"], (expr, right), dtype), left)
            yield either(_same(left, Const(0, left.dtype)), _and(inside, kept_bits))
        case Apply(op, (left, right), dtype) if op.name == "floordiv" and dtype.kind == "i":
            if not isinstance(right, Const) or right in (Const(-1, dtype), Position(const(-1))):
                is_least = _same(left, Const(_least(dtype), dtype))
                minus_one = _same(right, Const(-1, dtype))
                yield negate(_and(is_least, minus_one))
        case Apply(op, (left, right), dtype) if op.name == "pow" and dtype.kind in "iu":
            yield _power_fits(left, right, dtype)
        case Apply(op, (value,), dtype) if op.name == "abs" and value.dtype.kind == "i":
            yield _compare("ne", value, Const(_least(value.dtype), value.dtype))
        case Apply(op, (value,), dtype) if op.name == "neg" and dtype.kind in "iu":
            kept = "ne" if dtype.kind == "i" else "eq"
            yield _compare(kept, value, Const(_least(dtype), dtype))
        case Cast(value, dtype) if dtype.kind in "iu" and value.dtype.kind in "iu":
            wide = (value.dtype.kind, value.dtype.bits)
            if wide > (dtype.kind, dtype.bits) or value.dtype.kind != dtype.kind:
                back = Cast(expr, value.dtype)
                yield _and(_same(back, value), _same(_negative(expr), _negative(value)))
        case _:
            pass
    for guard, child in guarded(expr):
        for test in fitting(child):
            yield test if guard is None else Select(guard, test, TRUE)


def _fits(name: str, left: Expr, right: Expr, whole: Expr) -> Expr:
    """Return whether a sum, difference or product is the exact one."""
    dtype = whole.dtype
    if dtype.bits < 64:
        wide = (Cast(left, dtypes.int64), Cast(right, dtypes.int64))
        exact = Apply(OPS[name], wide, dtypes.int64)
        return _same(Cast(whole, dtypes.int64), exact)
    zero = Const(0, dtype)
    if name == "mul":
        back = Apply(OPS["floordiv"], (whole, left), dtype)
        nothing = _same(left, zero)
        is_least = _and(_same(left, Const(-1, dtype)), _same(whole, right))
        fine = _same(back, right)
        if dtype.kind == "i":
            fine = _and(fine, either(negate(is_least), _same(right, zero)))
        return either(nothing, fine)
    if dtype.kind == "u":
        return _compare("ge", left, right) if name == "sub" else _compare("ge", whole, left)
    other = right if name == "add" else Apply(OPS["invert"], (right,), dtype)
    turned = [Apply(OPS["bitxor"], (side, whole), dtype) for side in (left, other)]
    return _compare("ge", Apply(OPS["bitand"], (turned[0], turned[1]), dtype), zero)


def float_casts(expr: Expr) -> Iterator[Expr]:
    """Yield what has to hold for floats that become integers to fit their types."""
    if isinstance(expr, Cast) and expr.dtype.kind in "iu" and expr.value.dtype.kind in "fc":
        yield _float_fits(expr.value, expr.dtype)
    for guard, child in guarded(expr):
        for test in float_casts(child):
            yield test if guard is None else Select(guard, test, TRUE)


def _float_fits(value: Expr, dtype: DType) -> Expr:
    """Return whether a float, rounded towards zero, is an integer of a type; NaN is none.

    Powers of two are exact in float64; less by one they are so up to 2**53. Below -2**63 the next
    number is further away than 1. Of a complex number the real part is what is cast.
    """
    if value.dtype.kind == "c":
        value = Apply(OPS["real"], (value,), value.dtype.real)
    wide, least = Cast(value, dtypes.float64), float(_least(dtype))
    low = ("ge", least) if dtype is dtypes.int64 else ("gt", least - 1)
    above = _compare(low[0], wide, Const(low[1], dtypes.float64))
    limit = float(2 ** (dtype.bits - (dtype.kind == "i")))
    return _and(above, _compare("lt", wide, Const(limit, dtypes.float64)))


def _power_fits(left: Expr, right: Expr, dtype: DType) -> Expr:
    """Return whether an integer power is the exact one, as its size in float64 tells.

    The limits are powers of two, of which float64 knows every one. No other power of integers lies
    within a trillionth of 2**63 or 2**64: next to them are 3037000499**2 and 4294967295**2. Powers
    that make the least number of a type have odd exponents.
    """
    limit = float(2 ** (dtype.bits - (dtype.kind == "i")))
    sides = (Cast(left, dtypes.float64), Cast(right, dtypes.float64))
    size = Apply(OPS["abs"], (Apply(OPS["pow"], sides, dtypes.float64),), dtypes.float64)
    fits = _compare("lt", size, Const(limit * (1 - 1e-12), dtypes.float64))
    if dtype.kind == "u":
        return fits
    is_least = _compare("lt", size, Const(limit * (1 + 1e-12), dtypes.float64))
    return either(fits, _and(_negative(left), is_least))


def guarded(expr: Expr) -> Iterator[tuple[Expr | None, Expr]]:
    """Yield the children of an expression, each with the test under which it is evaluated."""
    match expr:
        case Select(test, yes, no):
            yield from ((None, test), (test, yes), (negate(test), no))
        case Apply(op, (left, right), _) if op.name in ("and", "or"):
            yield from ((None, left), (left if op.name == "and" else negate(left), right))
        case _:
            yield from ((None, child) for child in children(expr))


def _least(dtype: DType) -> int:
    """Return the least number of an integer type."""
    return -(2 ** (dtype.bits - 1)) if dtype.kind == "i" else 0


def _negative(expr: Expr) -> Expr:
    """Return whether a number is below zero."""
    zero = Const(0, expr.dtype)
    return _compare("lt", expr, zero) if expr.dtype.kind == "i" else FALSE


def _compare(op: str, left: Expr, right: Expr) -> Expr:
    return Apply(OPS[op], (left, right), dtypes.bool_)


def _same(left: Expr, right: Expr) -> Expr:
    return _compare("eq", left, right)


def _and(one: Expr, other: Expr) -> Expr:
    return Apply(OPS["and"], (one, other), dtypes.bool_)


def either(one: Expr, other: Expr) -> Expr:
    """Return whether one of two tests holds."""
    return Apply(OPS["or"], (one, other), dtypes.bool_)
