"""Strength reduction of powers: integer exponents by repeated squaring, halves by square roots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeGuard

import numpy as np

from ....base.diagnostic import CdTypeError, CdValueError
from ....lowering.ir import dtypes
from ....lowering.ir.assignments import Fault
from ....lowering.ir.dtypes import DType
from ....lowering.ir.expressions import Apply, Const, Domain, Expr, Position, Select, walk
from ....lowering.ir.indexing import const
from ....lowering.ir.ops import OPS, Op
from ...values.arrays import as_array, astype, elementwise
from ...values.builder import error
from ...values.call_site import NOT_CONSTANT, Site, constant  # fmt: skip
from ...values.types import Kind, apply, cast, join, truth
from ...values.values import Array, Masked, Scalar, Static, Value
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
    if result.kind == "f" and number == 0.5:
        as_root = _takes_root(site, base, exponent, kinds, result, ufunc, python)
        exact = as_root or kinds[0].dtype.kind in "biu"
        return _square_root(site, base, Kind(result, all_weak), exact)
    if _is_half(number) and result.kind == "f":
        return _constant_power(site, base, "half_pow", number, Kind(result, all_weak))
    if result.kind == "i":
        require_nonnegative(site, base, exponent)
    if all_weak:
        return elementwise(
            site.ctx, lambda *pairs: apply("pow", *pairs, to=Kind(result, True)),
            (base, exponent), site.span,
        )  # fmt: skip
    raised = elementwise(site.ctx, combine_of(ufunc), (base, exponent), site.span)
    is_float = result.kind == kinds[0].dtype.kind == kinds[1].dtype.kind == "f"
    if not (is_float and _takes_root(site, base, exponent, kinds, result, ufunc, python)):
        return raised
    half = elementwise(site.ctx, combine_of(np.equal, True), (exponent, Static(0.5)), site.span)
    root = _square_root(site, base, Kind(result), True)

    def select(test: Pair, yes: Pair, no: Pair) -> Pair:
        return Select(test[0], yes[0], no[0]), no[1]

    return elementwise(site.ctx, select, (half, root, raised), site.span)


def _takes_root(
    site: Site,
    base: Value,
    exponent: Value,
    kinds: Sequence[Kind],
    result: DType,
    ufunc: np.ufunc,
    python: bool,
) -> bool:
    """Whether NumPy takes the square root for the exponent 0.5: of arrays to the power of a number.

    Of numbers alone, and of arrays to the power of arrays, it takes C's `pow`; `float_power` always
    does. In index notation an element stands for its array.
    """
    if ufunc is np.float_power or result.bits == 16 and not (python and kinds[1].weak):
        return False
    stands_for_array = site.ctx.pointwise and not site.ctx.of_items
    if isinstance(exponent, Scalar) and stands_for_array and not exponent.kind.weak:
        return False
    if isinstance(exponent, Masked) or isinstance(exponent, Array) and exponent.rank:
        return False
    of_array = isinstance(base, Array | Masked) or stands_for_array and not kinds[0].weak
    return of_array or isinstance(exponent, Array) or not python


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


def _square_root(site: Site, base: Value, kind: Kind, exact: bool) -> Value:
    """Return square roots; unless `exact`, of -inf and -0.0 inf and 0.0, as C's `pow` has them."""
    dtype = kind.dtype.compute
    half = Const(0.5, dtype)

    def combine(pair: Pair) -> Pair:
        number = cast(pair[0], dtype)
        if exact or _is_unsigned(number):
            return Apply(OPS["sqrt"], (number,), dtype), kind
        return Apply(OPS["half_pow"], (number, half), dtype), kind

    return elementwise(site.ctx, combine, [base], site.span)


def _is_unsigned(expr: Expr) -> bool:
    """Whether a number is seen to have no sign: a sum or product of squares and sizes."""
    match expr:
        case Const(float() as value):
            return math.copysign(1.0, value) > 0
        case Apply(Op(name="mul"), (left, right)) if left == right:
            return True
        case Apply(Op(name="mul" | "add"), operands):
            return all(map(_is_unsigned, operands))
        case Apply(Op(name="abs")):
            return True
        case _:
            return False


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
