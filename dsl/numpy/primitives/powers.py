"""Strength reduction of powers: integer exponents by repeated squaring, halves by square roots."""

from __future__ import annotations

import math
from typing import TypeGuard

import numpy as np

from ....base.diagnostic import CdTypeError, CdValueError
from ....lowering.ir import dtypes
from ....lowering.ir.assignments import Fault
from ....lowering.ir.dtypes import DType
from ....lowering.ir.expressions import Apply, Const, Domain, Expr, Position, walk
from ....lowering.ir.indexing import const
from ....lowering.ir.ops import OPS
from ...values.arrays import as_array, astype, elementwise
from ...values.builder import error
from ...values.call_site import NOT_CONSTANT, Site, constant  # fmt: skip
from ...values.types import Kind, apply, cast, join, truth
from ...values.values import Array, Masked, Static, Value
from .ufuncs import Pair, combine_of, resolved

_MAX_PRODUCT_EXPONENT = 8
"""Float powers up to this exponent are expanded into products."""
_MAX_SQUARING_EXPONENT = 64
"""Float powers up to this absolute exponent: repeated squaring in higher precision."""
_MAX_REPEATED_NODES = 60
"""A base of more nodes than this is stored before a product repeats it."""


def power(site: Site, base: Value, exponent: Value, ufunc: np.ufunc, python: bool) -> Value:
    """Return `base ** exponent`: small integer powers as products, the power 0.5 as a square root.

    CdValueError CD0450 for an integer to a negative integer power, at compile time or at run time.
    """
    number = constant(exponent)
    if isinstance(number, np.generic) and not isinstance(base, Array):
        number = NOT_CONSTANT
    kinds = tuple(kind_of(site, value) for value in (base, exponent))
    all_weak = python and all(kind.weak for kind in kinds)
    try:
        result = join(*kinds).dtype if all_weak else resolved(ufunc, kinds)[-1]
    except TypeError as problem:
        raise error("CD0404", CdTypeError, str(problem), site.span) from None
    if result.kind in "iu" and isinstance(number, int | np.integer) and number < 0:
        if not all_weak:
            raise _negative_power(site, base)
        result = dtypes.float64
    integral = _integral_value(number)
    if integral is not None and 0 <= integral <= (
        62 if result.kind in "iu" else _MAX_PRODUCT_EXPONENT
    ):
        return _product(site, base, integral, Kind(result, all_weak))
    if not all_weak and kinds[0].dtype is not result and result.kind in "fc":
        # the specializations below would take the type of the base alone
        base = astype(site.ctx, base, result, site.span)
    if integral == -1 and result.kind in "fc":
        return elementwise(site.ctx, combine_of(np.divide, python), [Static(1), base], site.span)
    if integral is not None and result.kind == "f" and abs(integral) <= _MAX_SQUARING_EXPONENT:
        return _constant_power(site, base, "whole_pow", integral, Kind(result, all_weak))
    if number == 0.5 and result.kind == "f":
        return _square_root(site, base, Kind(result, all_weak))
    if _is_half(number) and result.kind == "f":
        return _constant_power(site, base, "half_pow", number, Kind(result, all_weak))
    if result.kind == "i":
        require_nonnegative(site, base, exponent)
    if all_weak:
        return elementwise(
            site.ctx, lambda *pairs: apply("pow", *pairs, to=Kind(result, True)),
            (base, exponent), site.span,
        )  # fmt: skip
    return elementwise(site.ctx, combine_of(ufunc), (base, exponent), site.span)


def kind_of(site: Site, value: Value) -> Kind:
    """Return the kind of a value's elements."""
    if isinstance(value, Masked):
        return value.array.kind
    return as_array(site.ctx, value, site.span).kind


def _integral_value(number: object) -> int | None:
    """Return a static exponent with an integral value as an int, else None."""
    if isinstance(number, bool | np.bool_) or not isinstance(
        number, int | float | np.integer | np.floating
    ):
        return None
    return int(number) if math.isfinite(number) and number == int(number) else None


def _is_half(number: object) -> TypeGuard[float]:
    """Whether a static exponent is half an odd integer below the limit of repeated squaring."""
    if not isinstance(number, float | np.floating):
        return False
    twice = _integral_value(2 * number)
    return twice is not None and twice % 2 == 1 and abs(twice) < 2 * _MAX_SQUARING_EXPONENT


def _product(site: Site, base: Value, exponent: int, kind: Kind) -> Value:
    if (
        isinstance(base, Array)
        and exponent > 1
        and sum(1 for _ in walk(base.body)) > _MAX_REPEATED_NODES
    ):
        base = site.ctx.materialize(base, "base", site.span)
    dtype = kind.dtype.compute

    def combine(pair: Pair) -> Pair:
        return _power_by_squaring(cast(pair[0], dtype), exponent, dtype), kind

    return elementwise(site.ctx, combine, [base], site.span)


def _square_root(site: Site, base: Value, kind: Kind) -> Value:
    dtype = kind.dtype.compute
    return elementwise(
        site.ctx, lambda pair: (Apply(OPS["sqrt"], (cast(pair[0], dtype),), dtype), kind),
        [base], site.span,
    )  # fmt: skip


def _constant_power(site: Site, base: Value, op: str, exponent: float, kind: Kind) -> Value:
    dtype = kind.dtype.compute
    number = Const(float(exponent), dtype)

    def combine(pair: Pair) -> Pair:
        return Apply(OPS[op], (cast(pair[0], dtype), number), dtype), kind

    return elementwise(site.ctx, combine, [base], site.span)


def _power_by_squaring(expr: Expr, exponent: int, dtype: DType) -> Expr:
    """Return the product of `exponent` factors by repeated squaring.

    >>> x = Const(3.0, dtypes.float64)
    >>> _power_by_squaring(x, 2, dtypes.float64) == Apply(OPS["mul"], (x, x), dtypes.float64)
    True
    """
    if exponent == 0:
        return cast(Const(1, dtypes.int64), dtype)
    if exponent == 1:
        return expr
    half = _power_by_squaring(expr, exponent // 2, dtype)
    square = Apply(OPS["mul"], (half, half), dtype)
    return square if exponent % 2 == 0 else Apply(OPS["mul"], (square, expr), dtype)


_NO_NEGATIVE = "integers to negative integer powers are not allowed"


def _negative_power(site: Site, base: Value) -> Exception:
    return error(
        "CD0450", CdValueError, _NO_NEGATIVE, site.span, helps=(_float_base(site, base, " ** -1"),)
    )


def _float_base(site: Site, base: Value, rest: str = "") -> str:
    """Return the hint that shows an integer base as a float."""
    number, text = constant(base), site.span.text
    if type(number) is int and text.startswith(str(number)):
        return f"make the base a float: `{number}.0{text[len(str(number)) :]}`"
    return f"make the base a float: `x.astype(float){rest}`"


def require_nonnegative(site: Site, base: Value, exponent: Value) -> None:
    """Emit a run-time check (CdValueError CD0450) that an integer exponent is not negative.

    None is emitted for unsigned exponents, and for index expressions that are proven nonnegative.
    """
    ctx = site.ctx
    array = exponent.array if isinstance(exponent, Masked) else as_array(ctx, exponent, site.span)
    if array.kind.dtype.kind != "i":
        return
    if isinstance(array.body, Position) and ctx.assumptions.with_ranges(array.ranges).nonnegative(
        array.body.index
    ):
        return
    zero = cast(Position(const(0)), array.body.dtype)
    test = Apply(OPS["le"], (zero, array.body), dtypes.bool_)
    text = f"{_NO_NEGATIVE}, and an exponent is {{0}}"
    fault = Fault("CD0450", "CdValueError", text, (_float_base(site, base),))
    chosen = truth(exponent.where) if isinstance(exponent, Masked) else None
    domain = Domain((*ctx.domain, *array.ranges), chosen)
    ctx.check(test, fault, (cast(array.body, dtypes.int64),), site.span, domain)
