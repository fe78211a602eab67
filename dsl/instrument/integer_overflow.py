"""Overflow tests of integer arithmetic and of casts to integers.

    fitting(expr)      tests of integer operations: sums, products, powers, shifts, casts
    float_casts(expr)  tests of casts from floats
    guarded(expr)      the operands of an expression, each with the test under which it is evaluated

Each test is an expression itself, which is true where its part is not evaluated.
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


def overflow_tests(expr: Expr) -> Iterator[Expr]:
    """Yield the tests that the integers computed in an expression fit their types."""
    match expr:
        case Apply(op, (left, right), dtype) if op.name in ("add", "sub", "mul"):
            if dtype.kind in "iu":
                yield _fits(op.name, left, right, expr)
        case Apply(op, (left, right), dtype) if op.name == "shl":
            in_range = _conjunction(
                _compare("ge", right, Const(0, right.dtype)),
                _compare("lt", right, Const(dtype.bits, right.dtype)),
            )
            is_reversible = _equal(Apply(OPS["shr"], (expr, right), dtype), left)
            yield disjunction(
                _equal(left, Const(0, left.dtype)), _conjunction(in_range, is_reversible)
            )
        case Apply(op, (left, right), dtype) if op.name == "floordiv" and dtype.kind == "i":
            if not isinstance(right, Const) or right in (Const(-1, dtype), Position(const(-1))):
                is_least = _equal(left, Const(_min_value(dtype), dtype))
                minus_one = _equal(right, Const(-1, dtype))
                yield negate(_conjunction(is_least, minus_one))
        case Apply(op, (left, right), dtype) if op.name == "pow" and dtype.kind in "iu":
            yield _power_fits(left, right, dtype)
        case Apply(op, (value,), dtype) if op.name == "abs" and value.dtype.kind == "i":
            yield _compare("ne", value, Const(_min_value(value.dtype), value.dtype))
        case Apply(op, (value,), dtype) if op.name == "neg" and dtype.kind in "iu":
            op_name = "ne" if dtype.kind == "i" else "eq"
            yield _compare(op_name, value, Const(_min_value(dtype), dtype))
        case Cast(value, dtype) if dtype.kind in "iu" and value.dtype.kind in "iu":
            source_kind = (value.dtype.kind, value.dtype.bits)
            if source_kind > (dtype.kind, dtype.bits) or value.dtype.kind != dtype.kind:
                back = Cast(expr, value.dtype)
                yield _conjunction(_equal(back, value), _equal(_negative(expr), _negative(value)))
        case _:
            pass
    for guard, child in guarded_operands(expr):
        for test in overflow_tests(child):
            yield test if guard is None else Select(guard, test, TRUE)


def _fits(name: str, left: Expr, right: Expr, whole: Expr) -> Expr:
    """Return the test that a sum, difference or product did not wrap around."""
    dtype = whole.dtype
    if dtype.bits < 64:
        wide = (Cast(left, dtypes.int64), Cast(right, dtypes.int64))
        exact = Apply(OPS[name], wide, dtypes.int64)
        return _equal(Cast(whole, dtypes.int64), exact)
    zero = Const(0, dtype)
    if name == "mul":
        back = Apply(OPS["floordiv"], (whole, left), dtype)
        is_zero = _equal(left, zero)
        wraps_least = _conjunction(_equal(left, Const(-1, dtype)), _equal(whole, right))
        divides = _equal(back, right)
        if dtype.kind == "i":
            divides = _conjunction(divides, disjunction(negate(wraps_least), _equal(right, zero)))
        return disjunction(is_zero, divides)
    if dtype.kind == "u":
        return _compare("ge", left, right) if name == "sub" else _compare("ge", whole, left)
    operand = right if name == "add" else Apply(OPS["invert"], (right,), dtype)
    sign_changes = [Apply(OPS["bitxor"], (side, whole), dtype) for side in (left, operand)]
    return _compare("ge", Apply(OPS["bitand"], (sign_changes[0], sign_changes[1]), dtype), zero)


def float_cast_tests(expr: Expr) -> Iterator[Expr]:
    """Yield the tests that floats cast to integers fit the integer types."""
    if isinstance(expr, Cast) and expr.dtype.kind in "iu" and expr.value.dtype.kind in "fc":
        yield _float_fits(expr.value, expr.dtype)
    for guard, child in guarded_operands(expr):
        for test in float_cast_tests(child):
            yield test if guard is None else Select(guard, test, TRUE)


def _float_fits(value: Expr, dtype: DType) -> Expr:
    """Return the test that a float, truncated, fits an integer type; NaN does not.

    Powers of two are exact in float64; minus one they are exact up to 2**53. Below -2**63 the next
    float64 is further away than 1. Of a complex number the real part is cast.
    """
    if value.dtype.kind == "c":
        value = Apply(OPS["real"], (value,), value.dtype.real)
    wide, least = Cast(value, dtypes.float64), float(_min_value(dtype))
    low = ("ge", least) if dtype is dtypes.int64 else ("gt", least - 1)
    above = _compare(low[0], wide, Const(low[1], dtypes.float64))
    limit = float(2 ** (dtype.bits - (dtype.kind == "i")))
    return _conjunction(above, _compare("lt", wide, Const(limit, dtypes.float64)))


def _power_fits(left: Expr, right: Expr, dtype: DType) -> Expr:
    """Return the test that an integer power did not wrap around, by its magnitude in float64.

    The limits are powers of two, which are exact in float64. No other power of integers is within
    a relative distance of 1e-12 of 2**63 or 2**64: the nearest are 3037000499**2 and
    4294967295**2. Powers equal to the least number of a type have odd exponents.
    """
    limit = float(2 ** (dtype.bits - (dtype.kind == "i")))
    sides = (Cast(left, dtypes.float64), Cast(right, dtypes.float64))
    size = Apply(OPS["abs"], (Apply(OPS["pow"], sides, dtypes.float64),), dtypes.float64)
    fits = _compare("lt", size, Const(limit * (1 - 1e-12), dtypes.float64))
    if dtype.kind == "u":
        return fits
    is_least = _compare("lt", size, Const(limit * (1 + 1e-12), dtypes.float64))
    return disjunction(fits, _conjunction(_negative(left), is_least))


def guarded_operands(expr: Expr) -> Iterator[tuple[Expr | None, Expr]]:
    """Yield the operands of an expression, each with the test under which it is evaluated."""
    match expr:
        case Select(test, yes, no):
            yield from ((None, test), (test, yes), (negate(test), no))
        case Apply(op, (left, right), _) if op.name in ("and", "or"):
            yield from ((None, left), (left if op.name == "and" else negate(left), right))
        case _:
            yield from ((None, child) for child in children(expr))


def _min_value(dtype: DType) -> int:
    """Return the least number of an integer type."""
    return -(2 ** (dtype.bits - 1)) if dtype.kind == "i" else 0


def _negative(expr: Expr) -> Expr:
    """Return the test whether a number is negative."""
    zero = Const(0, expr.dtype)
    return _compare("lt", expr, zero) if expr.dtype.kind == "i" else FALSE


def _compare(op: str, left: Expr, right: Expr) -> Expr:
    return Apply(OPS[op], (left, right), dtypes.bool_)


def _equal(left: Expr, right: Expr) -> Expr:
    return _compare("eq", left, right)


def _conjunction(left: Expr, right: Expr) -> Expr:
    return Apply(OPS["and"], (left, right), dtypes.bool_)


def disjunction(left: Expr, right: Expr) -> Expr:
    """Return the disjunction of two tests."""
    return Apply(OPS["or"], (left, right), dtypes.bool_)
