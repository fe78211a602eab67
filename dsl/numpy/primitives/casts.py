"""Conversions and rounding: `np.round`, dtypes called as functions, Python's number types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from ....base.diagnostic import CdTypeError
from ....base.lazy_import import LazyModule
from ....lowering.ir import dtypes
from ....lowering.ir.assignments import Fault
from ....lowering.ir.dtypes import DType
from ....lowering.ir.expressions import Apply, Const, Domain, Expr, Position
from ....lowering.ir.indexing import const
from ....lowering.ir.ops import OPS
from ...values.arrays import as_scalar, describe, elementwise
from ...values.builder import error
from ...values.byte_order import in_byte_order, is_swapped_dtype, numpy_dtype
from ...values.call_site import (
    LIBRARY,
    NONE,
    ZERO,
    Body,
    Handler,
    Site,
    array_of,
    constant,
    folds,
    integer_of,
    is_none,
    static_int,
    takes,
    text_of,
)
from ...values.memory_order import if_fortran
from ...values.types import (
    BOOL,
    WEAK_COMPLEX,
    WEAK_FLOAT,
    WEAK_INT,
    Kind,
    apply,
    cast,
    kind_of_number,
    truth,
)
from ...values.values import Array, Masked, Scalar, Static, Value
from .elementwise import converted
from .ufuncs import Pair, combine_of, strong_of

if TYPE_CHECKING:
    from . import powers
else:  # imported at first use
    powers = LazyModule(".powers", __package__)


def rounded(site: Site, a: Value, decimals: Value = ZERO) -> Value:
    """Return `np.round` to a number of decimals, ties to even, in the dtype of the operand.

    CdTypeError CD0449 for integers and negative `decimals`, CD0404 for decimals of bools.
    """
    kind = powers.kind_of(site, a).dtype.kind
    if kind == "f":
        places = integer_of(site, decimals, "the number of decimals")
        if places.constant is None:
            return _rounded_to(site, a, Position(places))
    digits = static_int(site, decimals, "the number of decimals")
    if kind in "iu" and digits < 0:
        raise error(
            "CD0449", CdTypeError, "integers are not rounded to tens here", site.span,
            helps=("convert first: `np.round(x.astype(float), -1)`",),
        )  # fmt: skip
    if kind == "b" and digits:
        text = "`round` to decimals is not defined for bools"
        raise error("CD0404", CdTypeError, text, site.span, helps=("a bool is whole already",))
    if kind in "iu":
        return elementwise(site.ctx, combine_of(np.positive), [a], site.span)
    if digits == 0:
        return elementwise(site.ctx, combine_of(np.rint), [a], site.span)
    return _rounded_to(site, a, Const(float(digits), dtypes.float64))


def _rounded_to(site: Site, a: Value, digits: Expr) -> Value:
    """Return `np.round` of floats to a number of decimals."""

    def combine(pair: Pair) -> Pair:
        result_kind = Kind(strong_of(pair[1]))
        if result_kind.dtype.kind == "c":
            raise TypeError(f"`round` to decimals is not defined for {result_kind}")
        wide = result_kind.dtype.compute
        places = Const(digits.value, wide) if isinstance(digits, Const) else cast(digits, wide)
        return apply("round_to", pair, (places, result_kind), to=result_kind)

    result = elementwise(site.ctx, combine, [a], site.span)
    if not isinstance(result, Array):
        return result
    return replace(result, order=if_fortran(site.ctx, array_of(site, a)))


def rounded_into(body: Body, out: DType) -> Body:
    """Return the body of `np.round` that writes an `out`: the scaled values are rounded there."""

    @wraps(body)
    def typed(site: Site, a: Value, decimals: Value = ZERO) -> Value:
        digits = static_int(site, decimals, "the number of decimals")
        element = strong_of(powers.kind_of(site, a))
        if not digits or out is element or element.kind != "f" or out.kind != "f":
            return body(site, a, decimals)
        scale, back = (np.multiply, np.divide) if digits > 0 else (np.divide, np.multiply)
        power = Static(10.0 ** abs(digits))
        scaled = elementwise(site.ctx, combine_of(scale), [a, power], site.span)
        whole = elementwise(
            site.ctx, combine_of(np.rint), [converted(site, scaled, out)], site.span
        )
        return elementwise(site.ctx, combine_of(back), [whole, power], site.span)

    return typed


def python_round(site: Site, number: Value, ndigits: Value = NONE) -> Value:
    """Return Python's `round` of a scalar: an int without `ndigits`, else a number of its kind.

    CdTypeError CD0552 for arrays, CD0404 for NumPy's bools and complex numbers, CD0449 for too many
    digits.
    """
    scalar = one_number(site, number, "round", "np.round")
    if scalar.kind.dtype.kind == "c":
        text, helps = "`round` is not defined for complex numbers", ("write `np.round(...)`",)
        raise error("CD0404", CdTypeError, text, site.span, helps=helps)
    if not is_none(ndigits) and scalar.kind == WEAK_FLOAT:
        return _round_decimal(site, scalar, ndigits)
    if not is_none(ndigits):
        result = rounded(site, scalar, ndigits)
        assert isinstance(result, Scalar), "a rounded number is a number"
        return Scalar(result.expr, scalar.kind)
    if scalar.kind == BOOL:
        text = "`round` is not defined for NumPy's bools"
        raise error("CD0404", CdTypeError, text, site.span, helps=("a bool is whole already",))
    if scalar.kind.dtype.kind in "biu":
        return Scalar(cast(scalar.expr, dtypes.int64), WEAK_INT)
    nearest, _ = apply("rint", (scalar.expr, scalar.kind))
    return Scalar(cast(nearest, dtypes.int64), WEAK_INT)


_EXACT_POWERS = 22
"""The powers of ten up to this exponent are exact in float64."""


def _round_decimal(site: Site, number: Scalar, ndigits: Value) -> Scalar:
    """Return a float rounded to decimals as Python does: correctly, from its exact value."""
    digits = static_int(site, ndigits, "the number of decimals")
    if abs(digits) > _EXACT_POWERS:
        text = f"`round` to {digits} decimals is not supported"
        helps = (f"up to {_EXACT_POWERS} decimals before and behind the point are",)
        raise error("CD0449", CdTypeError, text, site.span, helps=helps)
    digit_count = Const(float(digits), dtypes.float64)
    return Scalar(
        Apply(OPS["round_decimal"], (number.expr, digit_count), dtypes.float64), WEAK_FLOAT
    )


def one_number(site: Site, value: Value, name: str, instead: str) -> Scalar:
    """Return a value as a scalar. CdTypeError CD0552 for arrays, which suggests `instead`."""
    if isinstance(value, Array | Masked) and not (isinstance(value, Array) and value.rank == 0):
        raise error(
            "CD0552", CdTypeError, f"`{name}` takes one number, and is given {describe(value)}",
            site.span, helps=(f"for arrays: `{instead}`",),
        )  # fmt: skip
    return as_scalar(value, site.span, f"the argument of `{name}`")


def cast_handler(dtype: DType, function: Callable[..., object] | None = None) -> Handler:
    """Return the handler of a dtype called as a function: `np.float32(e)`, `i32(e)`."""

    def body(site: Site, value: Value = ZERO) -> Value:
        if function is not None and isinstance(value, Array) and value.kind == Kind(dtype):
            # NumPy's scalar types return such an argument itself
            return in_byte_order(site.ctx, value, False, site.span)
        return converted(site, value, dtype)

    handler = takes(dtype.name, body)
    return handler if function is None else folds(function, handler)


_CASTING = ("no", "equiv", "safe", "same_kind", "unsafe", "same_value")


def require_cast(site: Site, array: Array, dtype: DType, given: Value, casting: Value) -> None:
    """Reject (CdTypeError CD0405) a cast that the casting rule does not permit."""
    source = numpy_dtype(site.ctx, array, strong_of(array.kind))
    wanted: Any = constant(given) if is_swapped_dtype(given) else dtype.numpy
    rule: Any = text_of(site, casting, "casting", _CASTING)
    if rule == "same_value":
        text = "the rule 'same_value' is not part of the language"
    elif np.can_cast(source, wanted, rule):
        return
    else:
        text = f"{source} values are not cast to {dtype} under the rule {rule!r}"
    helps = ("leave `casting=` out to convert all values",)
    raise error("CD0405", CdTypeError, text, site.span, helps=helps)


def python_cast(name: str, kind: Kind, instead: str) -> Body:
    """Return the body of `int`, `float` or `bool` of a scalar.

    It raises CdTypeError CD0552 for arrays, and CD0404 for complex numbers: `bool` takes these, and
    arrays of one element.
    """

    def body(site: Site, value: Value = ZERO) -> Value:
        if name == "bool" and isinstance(value, Array):
            value = _only_element(value)
        scalar = one_number(site, value, name, instead)
        if name == "bool":
            return Scalar(truth(scalar.expr), kind)
        if scalar.kind.dtype.kind == "c":
            raise error("CD0404", CdTypeError, f"`{name}` of a complex number", site.span,
                        helps=("take `.real`",))  # fmt: skip
        require_int64(site, scalar, kind)
        return Scalar(cast(scalar.expr, kind.dtype), kind)

    return body


def _only_element(array: Array) -> Array:
    """Return the element of an array of one as one without axes, any other as it is."""
    if any(size.constant != 1 for size in array.shape):
        return array
    return Array((), (), array.at((const(0),) * array.rank), array.kind, copied=True)


def require_int64(site: Site, number: Scalar, kind: Kind) -> None:
    """Require, by a run-time check, that a uint64 that becomes Python's int has 64 bits and a sign.

    CdOverflowError CD0464 where it has not: Python's ints are int64 here.
    """
    if kind != WEAK_INT or number.kind.dtype is not dtypes.uint64:
        return
    if site.span.source.name == LIBRARY:
        return  # it takes the digits of numbers of any sign
    limit = Const(2**63 - 1, dtypes.uint64)
    test = Apply(OPS["le"], (cast(number.expr, dtypes.uint64), limit), dtypes.bool_)
    text = "{0} does not fit in an int, which has 64 bits here"
    helps = ("leave it a uint64: `np.uint64(x)`",)
    fault = Fault("CD0464", "CdOverflowError", text, helps)
    site.ctx.check(test, fault, (number.expr,), site.span, Domain(site.ctx.domain))


def python_complex(site: Site, real: Value = ZERO, imag: Value = NONE) -> Value:
    """Return Python's `complex(re, im)`, complex128: `re + im * 1j` by parts.

    Of an imaginary part that is NumPy's complex64, Python takes the real part. CdTypeError CD0552
    for arrays.
    """
    re = one_number(site, real, "complex", "x + 1j * y")
    if is_none(imag):
        return Scalar(cast(re.expr, dtypes.complex128), WEAK_COMPLEX)
    im = one_number(site, imag, "complex", "x + 1j * y")
    (first, first_imag), (second, second_imag) = _parts(re), _parts(im)
    if second_imag is not None and im.kind.dtype is not dtypes.complex64:
        first = Apply(OPS["sub"], (first, second_imag), dtypes.float64)
    if first_imag is not None:
        second = Apply(OPS["add"], (second, first_imag), dtypes.float64)
    return Scalar(Apply(OPS["complex"], (first, second), dtypes.complex128), WEAK_COMPLEX)


def _parts(number: Scalar) -> tuple[Expr, Expr | None]:
    """Return the real and the imaginary part of a number, None for that of a real one."""
    if number.kind.dtype.kind != "c":
        return cast(number.expr, dtypes.float64), None
    wide = cast(number.expr, dtypes.complex128)
    real, imag = (Apply(OPS[part], (wide,), dtypes.float64) for part in ("real", "imag"))
    return real, imag


def to_float(site: Site, values: tuple[Value, ...], name: str) -> tuple[Value, ...]:
    """Return the operands of a function of `math`: converted to Python floats if all are scalars.

    Elements in index notation and arrays keep their dtype, as the operands of NumPy's functions do.
    """
    is_elementwise = site.ctx.pointwise and not site.ctx.of_items
    if is_elementwise or not all(map(_is_number, values)):
        return values
    convert = python_cast(name, WEAK_FLOAT, "")
    return tuple(convert(site, value) for value in values)


def to_complex(site: Site, values: tuple[Value, ...], _: str) -> tuple[Value, ...]:
    """Return the operands of a function of `cmath` as complex; scalars as Python's complex."""
    is_elementwise = site.ctx.pointwise and not site.ctx.of_items
    if not is_elementwise and all(map(_is_number, values)):
        return tuple(python_complex(site, value) for value in values)
    kinds = [powers.kind_of(site, value) for value in values]
    complex_kinds = [
        Kind(dtypes.promote(kind.dtype, dtypes.complex64), kind.weak) for kind in kinds
    ]
    return tuple(
        converted(site, value, kind.dtype, kind.weak)
        for value, kind in zip(values, complex_kinds, strict=True)
    )


def _is_number(value: Value) -> bool:
    if isinstance(value, Static):
        return kind_of_number(value.value) is not None
    return isinstance(value, Scalar) or isinstance(value, Array) and value.rank == 0


def to_integer(op: str) -> Body:
    """Return the body of `math.floor`, `math.ceil` or `math.trunc`; the result is a Python int."""

    def body(site: Site, x: Value) -> Value:
        scalar = one_number(site, x, f"math.{op}", f"np.{op}")
        if scalar.kind.dtype.kind in "biu":
            return Scalar(cast(scalar.expr, dtypes.int64), WEAK_INT)
        integral, _ = apply(op, (scalar.expr, scalar.kind))
        return Scalar(cast(integral, dtypes.int64), WEAK_INT)

    return body
