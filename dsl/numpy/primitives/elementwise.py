"""Handlers of elementwise functions: ufuncs, Python's operators, casts, `where`, `clip`."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce as fold_left
from typing import TYPE_CHECKING

import numpy as np

from ....base.diagnostic import CdTypeError, CdValueError
from ....base.lazy_import import LazyModule
from ....lowering.ir import dtypes
from ....lowering.ir.dtypes import DType
from ....lowering.ir.expressions import Apply, Position, Read, Select
from ....lowering.ir.indexing import Affine, const, floordiv, mod, multiply
from ....lowering.ir.indexing import maximum as index_max
from ....lowering.ir.indexing import minimum as index_min
from ....lowering.ir.ops import OPS
from ...values.arrays import describe, elementwise, operate
from ...values.broadcasting import broadcast_to
from ...values.builder import error
from ...values.call_site import (  # fmt: skip
    NO,
    NONE,
    NOT_CONSTANT,
    YES,
    ZERO,
    Body,
    Handler,
    Site,
    array_of,
    called,
    constant,
    dtype_of,
    folds,
    is_none,
    items_of,
    static_bool,
    stored,
    with_out,
)
from ...values.fix_hints import FILL
from ...values.folding import PYTHON, fold
from ...values.memory_order import based, if_fortran
from ...values.types import WEAK_BOOL, WEAK_INT, Kind, cast, hold, join, join_all, truth
from ...values.values import Array, Group, Scalar, Static, Value
from .ufuncs import OPERATORS, Combine, Pair, combine_of, resolved, strong_of

if TYPE_CHECKING:
    from . import powers
else:  # imported at the first use
    powers = LazyModule(".powers", __package__)

MISSING = Static(None)
"""The default of a parameter for which None is a value."""

_LARGEST_BFLOAT16 = (2.0 - 2.0**-7) * 2.0**127


def ufunc_handler(ufunc: np.ufunc, python: bool = False) -> Handler:
    """Return the handler of a ufunc, with `out=` and `dtype=`.

    With `python` an operation on Python numbers alone gives a weakly typed Python number.
    """
    combine = combine_of(ufunc, python)

    def handle(site: Site, args: tuple[Value, ...], keywords: dict[str, Value]) -> Value:
        dtype = dtype_of(site, keywords.pop("dtype", NONE))
        if keywords or len(args) != ufunc.nin:
            what = f"the keyword {next(iter(keywords))!r}" if keywords else f"{len(args)} arguments"
            several = "one argument" if ufunc.nin == 1 else f"{ufunc.nin} arguments"
            shown = ", ".join("xyz"[: ufunc.nin])
            fix = f"`{ufunc.__name__}` takes {several}: `np.{ufunc.__name__}({shown})`"
            raise error(
                "CD0440", CdTypeError, f"`{ufunc.__name__}` with {what} is not supported",
                site.span,
                helps=("use `np.where(condition, ..., ...)` for `where=`" if keywords else fix,),
            )  # fmt: skip
        if dtype is not None:
            args = _cast_operands(site, ufunc, args, dtype)
        if ufunc in (np.power, np.float_power):
            return powers.power(site, args[0], args[1], ufunc, python)
        return elementwise(site.ctx, combine, args, site.span)

    return with_out(folds(ufunc, handle) if not python else handle, ufunc.nin)


def _cast_operands(
    site: Site, ufunc: np.ufunc, args: Sequence[Value], dtype: DType
) -> tuple[Value, ...]:
    """Return the operands cast to the types that NumPy computes in for a result of `dtype`.

    CdTypeError CD0404 where the ufunc has no such loop, or a cast would exceed `same_kind`.
    """
    kinds = [Kind(strong_of(powers.kind_of(site, value))) for value in args]
    wanted = (*(None,) * ufunc.nin, dtype.numpy)
    try:
        operand_types = [kind.dtype.numpy for kind in kinds]
        resolved_types = ufunc.resolve_dtypes(
            (*operand_types, None), signature=wanted, casting="same_kind"
        )
    except TypeError:
        shown = " and ".join(map(repr, kinds))
        text = f"`{ufunc.__name__}` with dtype={dtype.name} is not defined for {shown}"
        helps = ("convert its result: `.astype(...)`",)
        raise error("CD0404", CdTypeError, text, site.span, helps=helps) from None
    types = [dtypes.from_numpy(resolved_type) for resolved_type in resolved_types[:-1]]
    return tuple(
        value if to is None else converted(site, value, to)
        for value, to in zip(args, types, strict=True)
    )


def arithmetic(site: Site, symbol: str, left: Value, right: Value) -> Value:
    """Return `left symbol right` of Python's operators and comparisons, on any values.

    Static operands are folded; an affine index expression of Python integers stays one.
    """
    folded = _fold_operands(site, symbol, left, right)
    if folded is not None:
        return folded
    if symbol == "**":
        return powers.power(site, left, right, np.power, True)
    return elementwise(site.ctx, combine_of(OPERATORS[symbol], True), (left, right), site.span)


def _fold_operands(site: Site, symbol: str, left: Value, right: Value) -> Value | None:
    operands = constant(left), constant(right)
    if operands[0] is not NOT_CONSTANT and operands[1] is not NOT_CONSTANT:
        return called(site, PYTHON[symbol], operands)
    if symbol == "+" and isinstance(left, Group) and isinstance(right, Group):
        return Group(left.items + right.items, left.kind)
    if symbol == "*" and isinstance(left, Group) and isinstance(operands[1], int):
        return Group(fold(operator.mul, (left.items, operands[1])), left.kind)
    a, b = weak_position(left), weak_position(right)
    index = None if a is None or b is None else _index_arithmetic(symbol, a, b)
    return None if index is None else Scalar(Position(index), WEAK_INT)


def weak_position(value: Value) -> Affine | None:
    """Return the affine index expression of a weak (Python) integer, None for any other value."""
    match value:
        case Static(bool()):
            return None
        case Static(int() as number):
            return const(number)
        case Scalar(Position(index), kind) if kind.weak:
            return index
        case _:
            return None


def _index_arithmetic(symbol: str, left: Affine, right: Affine) -> Affine | None:
    hold(left, right)
    match symbol:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return multiply(left, right)
        case "//" if right.constant is not None and right.constant > 0:
            return floordiv(left, right)
        case "%" if right.constant is not None and right.constant > 0:
            return mod(left, right)
        case _:
            return None


def converted(site: Site, value: Value, dtype: DType, weak: bool = False) -> Value:
    """Return the value cast to an element type, rounded to its precision."""
    return elementwise(
        site.ctx,
        lambda pair: (cast(cast(pair[0], dtype), dtype.compute), Kind(dtype, weak)),
        [value],
        site.span,
    )


def where(site: Site, condition: Value, x: Value = NONE, y: Value = NONE) -> Value:
    """Return `x` where the condition holds, else `y`: a select. CdTypeError CD0551 without both."""
    if is_none(x) != is_none(y):
        raise error(
            "CD0440",
            CdTypeError,
            "`where` takes a condition alone, or with both choices",
            site.span,
            helps=("write both: `np.where(condition, x, y)`",),
        )
    if is_none(x):
        raise error(
            "CD0551", CdTypeError,
            "one-argument `where` gives a list whose length is known only at run time", site.span,
            helps=("choose between two values: `np.where(condition, x, y)`", FILL),
        )  # fmt: skip
    return elementwise(site.ctx, select, [condition, x, y], site.span)


def select(test: Pair, yes: Pair, no: Pair) -> Pair:
    """Return the select between two expressions, in their joined type."""
    kind = join(yes[1], no[1])
    dtype = kind.dtype.compute
    return Select(truth(test[0]), cast(yes[0], dtype), cast(no[0], dtype)), kind


def numpy_where(site: Site, condition: Value, x: Value = NONE, y: Value = NONE) -> Value:
    """Return `np.where`: an array, also of numbers (then without axes)."""
    return _as_new_array(where(site, condition, x, y))


def _as_new_array(result: Value) -> Value:
    """Return a computed number as an array without axes, whose type is no longer weak."""
    if not isinstance(result, Scalar):
        return result
    return Array((), (), result.expr, Kind(result.kind.dtype), copied=True)


def clip(
    site: Site,
    a: Value,
    a_min: Value = NONE,
    a_max: Value = NONE,
    *,
    min: Value = NONE,
    max: Value = NONE,
) -> Value:
    """Return `x.clip`: the values clamped between two limits, of which either may be None."""
    low, high = (a_min if is_none(min) else min), (a_max if is_none(max) else max)
    if is_none(low) and is_none(high):
        return elementwise(site.ctx, combine_of(np.positive), [a], site.span)
    if not is_none(low) and not is_none(high):
        low, high = (v if items_of(v) is None else array_of(site, v) for v in (low, high))
        a = _of_common_type(site, a, low, high)
    # of equal zeros, extremes give the first; NumPy's `clip` the limit, but of halves, and between
    # two limits of one element
    keeps = _is_one_element(low) and _is_one_element(high)
    for limit, ufunc in ((low, np.maximum), (high, np.minimum)):
        if not is_none(limit):
            first = keeps or powers.kind_of(site, a).dtype == dtypes.float16
            operands = [a, limit] if first else [limit, a]
            a = elementwise(site.ctx, combine_of(ufunc), operands, site.span)
    return a


def _is_one_element(limit: Value) -> bool:
    """Whether a limit of `clip` is a number, or an array of one element."""
    if isinstance(limit, Array):
        return all(extent.constant == 1 for extent in limit.shape)
    return not is_none(limit)


def _of_common_type(site: Site, a: Value, *limits: Value) -> Value:
    """Return the values in the common type of them and of both limits, where one limit after the
    other would give another: of int16, uint16 and float32 it is float32, and no int32 on the way.
    """
    kinds = [powers.kind_of(site, value) for value in (a, *limits)]
    common = join_all(kinds)
    if common.weak or join(join(kinds[0], kinds[1]), kinds[2]) == common:
        return a
    return converted(site, a, common.dtype)


def numpy_clip(
    site: Site,
    a: Value,
    a_min: Value = MISSING,
    a_max: Value = MISSING,
    *,
    min: Value = MISSING,
    max: Value = MISSING,
) -> Value:
    """Return `np.clip`, whose two limits are both given, as None for no limit, or by `min`, `max`.

    A number of Python that is clipped becomes one of NumPy before it meets the limits.
    CdTypeError CD0440 for one of two, CdValueError CD0440 for limits that are given twice.
    """
    positional = [limit is not MISSING for limit in (a_min, a_max)]
    by_name = [limit is not MISSING for limit in (min, max)]
    if positional == [True, True] and any(by_name):
        text = "`clip` is given its limits twice, in place and as `min=` or `max=`"
        helps = ("give them once: `np.clip(x, 0, 1)`",)
        raise error("CD0440", CdValueError, text, site.span, helps=helps)
    if any(positional) and not all(positional):
        missing = "a_max" if positional[0] else "a_min"
        helps = ("write both: `np.clip(x, 0, None)`, or name one: `np.clip(x, min=0)`",)
        raise error("CD0440", CdTypeError, f"`clip`: {missing} is missing", site.span, helps=helps)
    given = (a_min, a_max) if all(positional) else (min, max)
    limits = [NONE if limit is MISSING else limit for limit in given]
    kind = powers.kind_of(site, a)
    if kind.weak and not all(is_none(x) or powers.kind_of(site, x).weak for x in limits):
        a = converted(site, a, strong_of(kind))
    return clip(site, a, *limits)


def select_list(site: Site, condlist: Value, choicelist: Value, default: Value = ZERO) -> Value:
    """Return `np.select`: nested selects, of which the first condition that holds decides."""
    tests = condlist.items if isinstance(condlist, Group) else ()
    choices = choicelist.items if isinstance(choicelist, Group) else ()
    if not tests or len(tests) != len(choices):
        raise error(
            "CD0440",
            CdValueError,
            "`np.select` takes two lists of one length",
            site.span,
            helps=("give one choice for each condition: `np.select([x > 0], [x])`",),
        )
    for n, test in enumerate(tests):
        if powers.kind_of(site, test).dtype.kind != "b":
            text = f"condition {n} of `np.select` is no array of bools, and is {describe(test)}"
            helps = ("compare: `x > 0`, `x != 0`",)
            raise error("CD0440", CdTypeError, text, site.span, helps=helps)
    kinds = [powers.kind_of(site, choice) for choice in (*choices, default)]
    default = converted(site, default, strong_of(join_all(kinds)))
    for test, choice in zip(reversed(tests), reversed(choices), strict=True):
        default = where(site, test, choice, default)
    return replace(default, order=()) if isinstance(default, Array) else _as_new_array(default)


def real(site: Site, val: Value) -> Value:
    """Return the real part; of real values, the values themselves, of Python's bools ints."""
    kind = powers.kind_of(site, val)
    if kind == WEAK_BOOL:
        return converted(site, val, WEAK_INT.dtype, weak=True)
    if kind.dtype.kind != "c":
        return val
    return part_of(site, val, "real")


def imag(site: Site, val: Value) -> Value:
    """Return the imaginary part, zeros for real values."""
    if powers.kind_of(site, val).dtype.kind != "c":
        zeros = _zero_like(site, val)
        why = "is the imaginary part of real numbers"
        if isinstance(val, Array) and isinstance(zeros, Scalar):
            return Array((), (), zeros.expr, zeros.kind, copied=True, sealed=why)
        if not isinstance(zeros, Array):
            return zeros
        return replace(zeros, sealed=why, order=if_fortran(site.ctx, array_of(site, val)))
    return part_of(site, val, "imag")


def _zero_like(site: Site, val: Value) -> Value:
    """Return a zero of the value's type for every element, also for infinities and NaN."""
    static = constant(val)
    if isinstance(static, int | float | np.generic):
        return Static(static.imag)

    def combine(pair: Pair) -> Pair:
        kind = WEAK_INT if pair[1] == WEAK_BOOL else pair[1]
        return cast(Position(const(0)), kind.dtype.compute), kind

    return elementwise(site.ctx, combine, [val], site.span)


def part_of(site: Site, val: Value, name: str) -> Value:
    """Return the real or imaginary part of complex values: a view where the array has storage.

    NumPy's is a view of a computed array, too, with gaps, which matters where layouts do.
    """
    if isinstance(val, Array):
        val = based(site.ctx, val, site.span)
    if not isinstance(val, Array) or val.element is None:
        return operate(site.ctx, name, [val], site.span)
    dtype = val.kind.dtype.real
    return replace(val, body=Apply(OPS[name], (val.body,), dtype), kind=Kind(dtype))


def angle(site: Site, z: Value, deg: Value = NO) -> Value:
    """Return the argument of complex or real values, in radians, or in degrees with `deg`."""
    if powers.kind_of(site, z).dtype.kind == "c":
        result = operate(site.ctx, "angle", [z], site.span)
    else:
        result = elementwise(site.ctx, combine_of(np.arctan2), [ZERO, z], site.span)
    if not static_bool(site, deg, "deg"):
        return result
    return elementwise(site.ctx, combine_of(np.degrees), [result], site.span)


def logarithm(site: Site, x: Value, base: Value = NONE) -> Value:
    """Return `math.log(x)` or `math.log(x, base)`."""
    log = combine_of(np.log, True)
    result = elementwise(site.ctx, log, [x], site.span)
    if is_none(base):
        return result
    return arithmetic(site, "/", result, elementwise(site.ctx, log, [base], site.span))


def division_pair(site: Site, x: Value, y: Value) -> Value:
    """Return `divmod`: the floored quotient and the remainder, which has the sign of `y`."""
    return Group((arithmetic(site, "//", x, y), arithmetic(site, "%", x, y)))


def numpy_division_pair(site: Site, x: Value, y: Value) -> Value:
    """Return `np.divmod`, of Python's numbers those of NumPy."""
    ufuncs = (np.floor_divide, np.remainder)
    return Group(tuple(elementwise(site.ctx, combine_of(u), [x, y], site.span) for u in ufuncs))


def parts_of(site: Site, x: Value) -> Value:
    """Return `np.modf`: the fractional and the integral part, both with the sign of `x`.

    The fractional part of an infinity is zero.
    """

    def as_float(pair: Pair) -> Pair:
        operand_dtype = pair[1].dtype
        dtype = (
            operand_dtype if operand_dtype is dtypes.bfloat16 else resolved(np.modf, (pair[1],))[-1]
        )
        return cast(cast(pair[0], dtype), dtype.compute), Kind(dtype)

    x = elementwise(site.ctx, as_float, [x], site.span)
    whole = elementwise(site.ctx, combine_of(np.trunc), [x], site.span)
    is_infinite = elementwise(site.ctx, combine_of(np.isinf), [x], site.span)
    fraction = where(site, is_infinite, Static(0.0), arithmetic(site, "-", x, whole))
    # the fraction of an integral value is 0.0 of either sign: it takes that of x
    return Group((elementwise(site.ctx, combine_of(np.copysign), [fraction, x], site.span), whole))


def infinite(sign: str) -> Body:
    """Return the handler of `np.isposinf` or `np.isneginf`, as `sign` is "+" or "-"."""

    def body(site: Site, x: Value) -> Value:
        if powers.kind_of(site, x).dtype.kind == "c":
            text = "complex infinities have no sign"
            helps = ("take a part: `.real`, `.imag`",)
            raise error("CD0404", CdTypeError, text, site.span, helps=helps)
        infinity = Static(float(f"{sign}inf"))
        return elementwise(site.ctx, combine_of(np.equal), [x, infinity], site.span)

    return body


def fix(site: Site, x: Value) -> Value:
    """Return `np.fix`: the values rounded towards zero."""
    return elementwise(site.ctx, combine_of(np.trunc), [x], site.span)


def converted_float(site: Site, value: Value) -> Value:
    """Return bools and integers as float64, values of any other type unchanged."""
    if powers.kind_of(site, value).dtype.kind in "biu":
        return converted(site, value, dtypes.float64)
    return value


def isclose(
    site: Site,
    a: Value,
    b: Value,
    rtol: Value = Static(1e-5),
    atol: Value = Static(1e-8),
    equal_nan: Value = NO,
) -> Value:
    """Return `np.isclose`: `|a - b| <= atol + rtol * |b|`, for finite `b`, or `a == b`."""
    a, b = converted_float(site, a), converted_float(site, b)

    def ufunc(which: np.ufunc, *values: Value) -> Value:
        return elementwise(site.ctx, combine_of(which), values, site.span)

    gap = ufunc(np.absolute, ufunc(np.subtract, a, b))
    limit = ufunc(np.add, atol, ufunc(np.multiply, rtol, ufunc(np.absolute, b)))
    is_near = ufunc(np.logical_and, ufunc(np.less_equal, gap, limit), ufunc(np.isfinite, b))
    result = ufunc(np.logical_or, is_near, ufunc(np.equal, a, b))
    if static_bool(site, equal_nan, "equal_nan"):
        both_nan = ufunc(np.logical_and, ufunc(np.isnan, a), ufunc(np.isnan, b))
        result = ufunc(np.logical_or, result, both_nan)
    return result


def nan_to_num(
    site: Site,
    x: Value,
    copy: Value = YES,
    nan: Value = Static(0.0),
    posinf: Value = NONE,
    neginf: Value = NONE,
) -> Value:
    """Return `np.nan_to_num`: NaN becomes `nan`, an infinity `posinf` or `neginf`.

    Infinities become by default the largest finite numbers of their type. The result is a new
    array; with `copy=False`, `x` itself, written in place; of an array without axes, a scalar.
    CdValueError CD0453 for `copy=False` of a number, of which NumPy makes an array.
    """
    copies = static_bool(site, copy, "copy")
    if not copies and isinstance(x, Scalar | Static):
        text, helps = f"{describe(x)} cannot be had without a copy", ("leave `copy=False` out",)
        raise error("CD0453", CdValueError, text, site.span, helps=helps)
    numbers = _replace_nonfinite(site, x, nan, posinf, neginf)
    if copies or not isinstance(x, Array) or x.view is None:
        return numbers
    if x.rank:
        return stored(site, x, numbers) if x.kind.dtype.kind in "fc" else x
    if not isinstance(numbers, Scalar) or x.kind.dtype.kind not in "fc":
        return numbers
    node = site.ctx.variable("number", numbers, site.span)
    number = Scalar(Read(node, ()), numbers.kind)
    stored(site, x, number)
    return number


def _replace_nonfinite(site: Site, x: Value, nan: Value, posinf: Value, neginf: Value) -> Value:
    """Return the values with NaN and infinities replaced, in the strong type of `x`."""
    dtype = strong_of(powers.kind_of(site, x))
    if dtype.kind == "c":
        parts = [
            _replace_nonfinite(site, part(site, x), nan, posinf, neginf) for part in (real, imag)
        ]
        return operate(site.ctx, "complex", parts, site.span)
    x = converted(site, x, dtype)
    if dtype.kind != "f":
        return converted(site, x, dtype)
    largest = _LARGEST_BFLOAT16 if dtype is dtypes.bfloat16 else float(np.finfo(dtype.name).max)
    limited = clip(site, x, Static(-largest), Static(largest))
    for sign, replacement in (("+", posinf), ("-", neginf)):
        if not is_none(replacement):
            limited = where(
                site, infinite(sign)(site, x), converted(site, _over(site, replacement, x), dtype),
                limited,
            )  # fmt: skip
    is_nan = elementwise(site.ctx, combine_of(np.isnan), [x], site.span)
    return where(site, is_nan, converted(site, _over(site, nan, x), dtype), limited)


def _over(site: Site, replacement: Value, x: Value) -> Value:
    """Return replacements broadcast to the shape of the values, which they must not extend.

    CdTypeError CD0405 for complex ones: the parts are replaced by real numbers.
    """
    given = array_of(site, replacement)
    if given.kind.dtype.kind == "c":
        text = f"`nan_to_num` puts real numbers in place of others, and is given {describe(given)}"
        helps = ("take a part: `.real`, `.imag`",)
        raise error("CD0405", CdTypeError, text, site.span, helps=helps)
    if not given.rank:
        return replacement
    return broadcast_to(site.ctx, given, array_of(site, x).shape, site.span)


def sinc(site: Site, x: Value) -> Value:
    """Return `np.sinc`: sin(pi x) / (pi x), whose value at 0 is 1."""
    y = arithmetic(site, "*", Static(math.pi), converted_float(site, x))
    ratio = arithmetic(site, "/", elementwise(site.ctx, combine_of(np.sin), [y], site.span), y)
    return where(site, arithmetic(site, "==", x, ZERO), Static(1.0), ratio)


def extremum(site: Site, name: str, values: Sequence[Value]) -> Value:
    """Return the elementwise `max` or `min` of two or more values."""
    positions = [index for value in values if (index := weak_position(value)) is not None]
    if len(positions) == len(values):
        hold(*positions)
        choose = index_max if name == "max" else index_min
        return Scalar(Position(fold_left(choose, positions)), WEAK_INT)
    combine: Combine = combine_of(np.maximum if name == "max" else np.minimum, True)
    result = values[0]
    for value in values[1:]:
        result = elementwise(site.ctx, combine, [result, value], site.span)
    return result


def word_handler(op: str) -> Handler:
    """Return the handler of a word of the language that denotes the operation `op` of `OPS`."""

    def handle(site: Site, args: tuple[Value, ...], keywords: dict[str, Value]) -> Value:
        if keywords or len(args) != OPS[op].arity:
            raise error("CD0440", CdTypeError, f"`{op}` takes {OPS[op].arity} arguments", site.span)
        return operate(site.ctx, op, args, site.span)

    return handle
