"""Elementwise functions as handlers: ufuncs, Python's operators, casts, `where`, `clip`, powers."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import reduce as fold_left

import numpy as np

from ...lowering.diagnostic import CdTypeError, CdValueError
from ...lowering.ir import dtypes
from ...lowering.ir.assignments import Fault
from ...lowering.ir.dtypes import DType
from ...lowering.ir.expressions import Apply, Const, Domain, Expr, Position, Select, walk
from ...lowering.ir.indexing import Affine, const, floordiv, mod, multiply
from ...lowering.ir.indexing import maximum as index_max
from ...lowering.ir.indexing import minimum as index_min
from ...lowering.ir.ops import OPS
from .arrays import as_array, as_scalar, describe, elementwise, operate
from .context import error
from .site import (
    NONE,
    NOT_CONSTANT,
    ZERO,
    Body,
    Handler,
    Site,
    called,
    constant,
    dtype_of,
    folds,
    static_int,
    takes,
    with_out,
)  # fmt: skip
from .types import WEAK_COMPLEX, WEAK_FLOAT, WEAK_INT, Kind, apply, cast, join, truth
from .ufuncs import OPERATORS, Combine, Pair, combine_of, resolved, strong_of
from .values import Array, Group, Masked, Scalar, Static, Value

_LARGEST_PRODUCT = 8
"""Float powers up to this exponent are products."""
_MANY = 60
"""Expressions of more parts than this are stored before a power repeats them."""

PYTHON: dict[str, Callable[..., object]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "//": operator.floordiv, "%": operator.mod, "**": operator.pow, "&": operator.and_,
    "|": operator.or_, "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift,
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def ufunc_handler(ufunc: np.ufunc, python: bool = False) -> Handler:
    """Return the handler of a ufunc with `out=`; `python` keeps Python numbers what they are."""
    combine = combine_of(ufunc, python)

    def handle(site: Site, args: tuple[Value, ...], keywords: dict[str, Value]) -> Value:
        dtype = dtype_of(site, keywords.pop("dtype", NONE))
        if keywords or len(args) != ufunc.nin:
            what = f"the keyword {next(iter(keywords))!r}" if keywords else f"{len(args)} arguments"
            raise error(
                "CD0440", CdTypeError, f"`{ufunc.__name__}` with {what} is not supported", site.span,
                helps=("use `np.where(condition, ..., ...)` for `where=`",) if keywords else (),
            )  # fmt: skip
        if dtype is not None:
            args = tuple(converted(site, value, dtype) for value in args)
        if ufunc in (np.power, np.float_power):
            return power(site, args[0], args[1], ufunc, python)
        return elementwise(site.ctx, combine, args, site.span)

    return with_out(folds(ufunc, handle) if not python else handle, ufunc.nin)


def arithmetic(site: Site, symbol: str, left: Value, right: Value) -> Value:
    """Return `left symbol right` of Python's operators and comparisons, on any values.

    Numbers known now are computed now; integer index expressions stay index expressions.
    """
    folded = _folded(site, symbol, left, right)
    if folded is not None:
        return folded
    if symbol == "**":
        return power(site, left, right, np.power, True)
    return elementwise(site.ctx, combine_of(OPERATORS[symbol], True), (left, right), site.span)


def _folded(site: Site, symbol: str, left: Value, right: Value) -> Value | None:
    plain = constant(left), constant(right)
    if plain[0] is not NOT_CONSTANT and plain[1] is not NOT_CONSTANT:
        return called(site, PYTHON[symbol], plain)
    if symbol == "+" and isinstance(left, Group) and isinstance(right, Group):
        return Group(left.items + right.items, left.kind)
    if symbol == "*" and isinstance(left, Group) and isinstance(plain[1], int):
        return Group(left.items * plain[1], left.kind)
    a, b = weak_position(left), weak_position(right)
    index = None if a is None or b is None else _index_arithmetic(symbol, a, b)
    return None if index is None else Scalar(Position(index), WEAK_INT)


def weak_position(value: Value) -> Affine | None:
    """Return the index expression of a Python integer, None for any other value."""
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
    """Return the value cast to an element type, rounded to it."""
    return elementwise(
        site.ctx,
        lambda pair: (cast(cast(pair[0], dtype), dtype.compute), Kind(dtype, weak)),
        [value],
        site.span,
    )


# Powers


def power(site: Site, base: Value, exponent: Value, ufunc: np.ufunc, python: bool) -> Value:
    """Return `base ** exponent`: small integer powers are products, 0.5 a square root.

    CdValueError CD0450 for an integer to a negative integer power, while compiling or in the run.
    """
    number = constant(exponent)
    if isinstance(number, np.generic) and not isinstance(base, Array):
        number = NOT_CONSTANT
    kinds = tuple(_kind(site, value) for value in (base, exponent))
    all_weak = python and all(kind.weak for kind in kinds)
    try:
        result = join(*kinds).dtype if all_weak else resolved(ufunc, kinds)[-1]
    except TypeError as problem:
        raise error("CD0404", CdTypeError, str(problem), site.span) from None
    if result.kind in "iu" and isinstance(number, int | np.integer) and number < 0:
        if not all_weak:
            raise _negative_power(site)
        result = dtypes.float64
    whole = _whole(number)
    if whole is not None and 0 <= whole <= (62 if result.kind in "iu" else _LARGEST_PRODUCT):
        return _product(site, base, whole, Kind(result, all_weak))
    if whole == -1 and result.kind in "fc":
        return arithmetic(site, "/", Static(1), base)
    if number == 0.5 and result.kind == "f":
        return elementwise(site.ctx, combine_of(np.sqrt, python), [base], site.span)
    if result.kind == "i":
        _require_nonnegative(site, exponent)
    if all_weak:
        return elementwise(
            site.ctx, lambda *pairs: apply("pow", *pairs, to=Kind(result, True)),
            (base, exponent), site.span,
        )  # fmt: skip
    return elementwise(site.ctx, combine_of(ufunc), (base, exponent), site.span)


def _kind(site: Site, value: Value) -> Kind:
    if isinstance(value, Masked):
        return value.array.kind
    return as_array(site.ctx, value, site.span).kind


def _whole(number: object) -> int | None:
    """Return a constant exponent that is a whole number, else None."""
    if isinstance(number, bool | np.bool_) or not isinstance(
        number, int | float | np.integer | np.floating
    ):
        return None
    return int(number) if math.isfinite(number) and number == int(number) else None


def _product(site: Site, base: Value, exponent: int, kind: Kind) -> Value:
    if isinstance(base, Array) and exponent > 1 and sum(1 for _ in walk(base.body)) > _MANY:
        base = site.ctx.materialize(base, "base", site.span)
    dtype = kind.dtype.compute

    def combine(pair: Pair) -> Pair:
        return _repeated(cast(pair[0], dtype), exponent, dtype), kind

    return elementwise(site.ctx, combine, [base], site.span)


def _repeated(expr: Expr, exponent: int, dtype: DType) -> Expr:
    """Return the product of `exponent` factors by squaring.

    >>> x = Const(3.0, dtypes.float64)
    >>> _repeated(x, 2, dtypes.float64) == Apply(OPS["mul"], (x, x), dtypes.float64)
    True
    """
    if exponent == 0:
        return cast(Const(1, dtypes.int64), dtype)
    if exponent == 1:
        return expr
    half = _repeated(expr, exponent // 2, dtype)
    square = Apply(OPS["mul"], (half, half), dtype)
    return square if exponent % 2 == 0 else Apply(OPS["mul"], (square, expr), dtype)


_NO_NEGATIVE = "integers to negative integer powers are not allowed"


def _negative_power(site: Site) -> Exception:
    return error(
        "CD0450", CdValueError, _NO_NEGATIVE, site.span,
        helps=("make the base a float: `x.astype(float) ** -1`",),
    )  # fmt: skip


def _require_nonnegative(site: Site, exponent: Value) -> None:
    ctx = site.ctx
    array = exponent.array if isinstance(exponent, Masked) else as_array(ctx, exponent, site.span)
    if array.kind.dtype.kind != "i":
        return
    if isinstance(array.body, Position) and ctx.known.with_ranges(array.ranges).nonnegative(
        array.body.index
    ):
        return
    zero = cast(Position(const(0)), array.body.dtype)
    test = Apply(OPS["le"], (zero, array.body), dtypes.bool_)
    fault = Fault("CD0450", "CdValueError", f"{_NO_NEGATIVE}, and an exponent is {{0}}")
    over = Domain((*ctx.domain, *array.ranges))
    ctx.check(test, fault, (cast(array.body, dtypes.int64),), site.span, over)


# Choices and limits


def where(site: Site, condition: Value, x: Value = NONE, y: Value = NONE) -> Value:
    """Return `x` where the condition holds, else `y`. CdTypeError CD0551 for one argument."""
    if x == NONE or y == NONE:
        raise error(
            "CD0551", CdTypeError,
            "one-argument `where` gives a list whose length is known only at run time", site.span,
            helps=("use `np.where(condition, x, y)`, or a loop with `if`",),
        )  # fmt: skip
    return elementwise(site.ctx, select, [condition, x, y], site.span)


def select(test: Pair, yes: Pair, no: Pair) -> Pair:
    """Return the choice between two expressions, in their joined type."""
    kind = join(yes[1], no[1])
    dtype = kind.dtype.compute
    return Select(truth(test[0]), cast(yes[0], dtype), cast(no[0], dtype)), kind


def numpy_where(site: Site, condition: Value, x: Value = NONE, y: Value = NONE) -> Value:
    """Return `np.where`, whose numbers are NumPy scalars."""
    result = where(site, condition, x, y)
    return Scalar(result.expr, Kind(result.kind.dtype)) if isinstance(result, Scalar) else result


def clip(
    site: Site,
    a: Value,
    a_min: Value = NONE,
    a_max: Value = NONE,
    *,
    min: Value = NONE,
    max: Value = NONE,
) -> Value:
    """Return the values within limits, None for no limit."""
    low, high = (a_min if min == NONE else min), (a_max if max == NONE else max)
    for limit, ufunc in ((low, np.maximum), (high, np.minimum)):
        if limit != NONE:
            a = elementwise(site.ctx, combine_of(ufunc), [a, limit], site.span)
    return a


def select_list(site: Site, condlist: Value, choicelist: Value, default: Value = ZERO) -> Value:
    """Return `np.select`: the first choice whose condition holds."""
    tests = condlist.items if isinstance(condlist, Group) else ()
    choices = choicelist.items if isinstance(choicelist, Group) else ()
    if not tests or len(tests) != len(choices):
        raise error(
            "CD0448", CdValueError, "`np.select` takes two lists of one length", site.span
        )
    for test, choice in zip(reversed(tests), reversed(choices), strict=True):
        default = where(site, test, choice, default)
    return default


# Rounding and casts


def rounded(site: Site, a: Value, decimals: Value = ZERO) -> Value:
    """Return `np.round`: halves to even, to a number of decimals."""
    digits = static_int(site, decimals, "the number of decimals")
    kind = _kind(site, a).dtype.kind
    if kind in "iu" and digits < 0:
        raise error(
            "CD0449", CdTypeError, "integers are not rounded to tens here", site.span,
            helps=("convert first: `np.round(x.astype(float), -1)`",),
        )  # fmt: skip
    if kind in "iu":
        return elementwise(site.ctx, combine_of(np.positive), [a], site.span)
    if digits == 0:
        return elementwise(site.ctx, combine_of(np.rint), [a], site.span)

    def combine(pair: Pair) -> Pair:
        own = Kind(strong_of(pair[1]))
        return apply("round_to", pair, (Const(float(digits), own.dtype.compute), own), to=own)

    return elementwise(site.ctx, combine, [a], site.span)


def python_round(site: Site, number: Value, ndigits: Value = NONE) -> Value:
    """Return Python's `round`: an int without digits."""
    scalar = one_number(site, number, "round", "np.round")
    if ndigits != NONE:
        result = rounded(site, scalar, ndigits)
        assert isinstance(result, Scalar), "a rounded number is a number"
        return Scalar(result.expr, scalar.kind)
    if scalar.kind.dtype.kind in "biu":
        return scalar
    nearest, _ = apply("rint", (scalar.expr, scalar.kind))
    return Scalar(cast(nearest, dtypes.int64), WEAK_INT)


def one_number(site: Site, value: Value, name: str, instead: str) -> Scalar:
    """Return a number. CdTypeError CD0552 where it is an array, naming what to write instead."""
    if isinstance(value, Array | Masked) and not (isinstance(value, Array) and value.rank == 0):
        raise error(
            "CD0552", CdTypeError, f"`{name}` takes one number, and is given {describe(value)}",
            site.span, helps=(f"for arrays: `{instead}`",),
        )  # fmt: skip
    return as_scalar(value, site.span, f"the argument of `{name}`")


def cast_handler(dtype: DType, function: Callable[..., object] | None = None) -> Handler:
    """Return the handler of an element type called as a function: `np.float32(e)`, `i32(e)`."""

    def body(site: Site, value: Value = ZERO) -> Value:
        return converted(site, value, dtype)

    handler = takes(dtype.name, body)
    return handler if function is None else folds(function, handler)


def python_cast(name: str, kind: Kind, instead: str) -> Body:
    """Return the meaning of `int`, `float` or `bool` on one number."""

    def body(site: Site, value: Value = ZERO) -> Value:
        scalar = one_number(site, value, name, instead)
        if scalar.kind.dtype.kind == "c":
            raise error("CD0404", CdTypeError, f"`{name}` of a complex number", site.span,
                        helps=("take `.real`",))  # fmt: skip
        return Scalar(cast(scalar.expr, kind.dtype), kind)

    return body


def python_complex(site: Site, real: Value = ZERO, imag: Value = NONE) -> Value:
    """Return Python's `complex(re, im)`."""
    re = one_number(site, real, "complex", "x + 1j * y")
    if imag == NONE:
        return Scalar(cast(re.expr, dtypes.complex128), WEAK_COMPLEX)
    im = one_number(site, imag, "complex", "x + 1j * y")
    expr, _ = apply("complex", (re.expr, re.kind), (im.expr, im.kind), to=WEAK_FLOAT)
    return Scalar(Apply(OPS["complex"], expr.args, dtypes.complex128)  # type: ignore[union-attr]
                  , WEAK_COMPLEX)  # fmt: skip


def to_integer(op: str) -> Body:
    """Return the meaning of `math.floor`, `math.ceil` or `math.trunc`: a Python int."""

    def body(site: Site, x: Value) -> Value:
        scalar = one_number(site, x, f"math.{op}", f"np.{op}")
        if scalar.kind.dtype.kind in "biu":
            return Scalar(cast(scalar.expr, dtypes.int64), WEAK_INT)
        whole, _ = apply(op, (scalar.expr, scalar.kind))
        return Scalar(cast(whole, dtypes.int64), WEAK_INT)

    return body


# Parts of complex numbers, logarithms, pairs


def real(site: Site, val: Value) -> Value:
    """Return the real part; a real array is its own."""
    if _kind(site, val).dtype.kind != "c":
        return val
    return operate(site.ctx, "real", [val], site.span)


def imag(site: Site, val: Value) -> Value:
    """Return the imaginary part, zeros for real values."""
    if _kind(site, val).dtype.kind != "c":
        return arithmetic(site, "*", val, ZERO)
    return operate(site.ctx, "imag", [val], site.span)


def angle(site: Site, z: Value, deg: Value = NONE) -> Value:
    """Return the angle of complex or real values."""
    if _kind(site, z).dtype.kind == "c":
        result = operate(site.ctx, "angle", [z], site.span)
    else:
        result = elementwise(site.ctx, combine_of(np.arctan2), [ZERO, z], site.span)
    if deg in (NONE, Static(False)):
        return result
    return elementwise(site.ctx, combine_of(np.degrees), [result], site.span)


def logarithm(site: Site, x: Value, base: Value = NONE) -> Value:
    """Return `math.log(x)` or `math.log(x, base)`."""
    log = combine_of(np.log, True)
    result = elementwise(site.ctx, log, [x], site.span)
    if base == NONE:
        return result
    return arithmetic(site, "/", result, elementwise(site.ctx, log, [base], site.span))


def division_pair(site: Site, x: Value, y: Value) -> Value:
    """Return `divmod`: the floor quotient and the remainder."""
    return Group((arithmetic(site, "//", x, y), arithmetic(site, "%", x, y)))


def parts_of(site: Site, x: Value) -> Value:
    """Return `np.modf`: the fractional and the whole part, both with the sign of `x`."""
    whole = elementwise(site.ctx, combine_of(np.trunc), [converted_float(site, x)], site.span)
    return Group((arithmetic(site, "-", x, whole), whole))


def fix(site: Site, x: Value) -> Value:
    """Return `np.fix`: rounded towards zero."""
    return elementwise(site.ctx, combine_of(np.trunc), [x], site.span)


def converted_float(site: Site, value: Value) -> Value:
    """Return integers as float64, everything else as it is."""
    if _kind(site, value).dtype.kind in "biu":
        return converted(site, value, dtypes.float64)
    return value


def isclose(
    site: Site,
    a: Value,
    b: Value,
    rtol: Value = Static(1e-5),  # noqa: B008
    atol: Value = Static(1e-8),  # noqa: B008
    equal_nan: Value = NONE,
) -> Value:
    """Return `np.isclose`."""
    a, b = converted_float(site, a), converted_float(site, b)

    def ufunc(which: np.ufunc, *values: Value) -> Value:
        return elementwise(site.ctx, combine_of(which), values, site.span)

    gap = ufunc(np.absolute, ufunc(np.subtract, a, b))
    limit = ufunc(np.add, atol, ufunc(np.multiply, rtol, ufunc(np.absolute, b)))
    near = ufunc(np.logical_and, ufunc(np.less_equal, gap, limit), ufunc(np.isfinite, b))
    result = ufunc(np.logical_or, near, ufunc(np.equal, a, b))
    if constant(equal_nan) is True:
        both = ufunc(np.logical_and, ufunc(np.isnan, a), ufunc(np.isnan, b))
        result = ufunc(np.logical_or, result, both)
    return result


def nan_to_num(site: Site, x: Value, copy: Value = NONE, nan: Value = Static(0.0)) -> Value:  # noqa: B008
    """Return `np.nan_to_num`: NaN becomes `nan`, infinities the largest numbers."""
    dtype = strong_of(_kind(site, x))
    if dtype.kind != "f":
        return x
    top = float(np.finfo(dtype.compute.numpy).max)
    limited = clip(site, x, Static(-top), Static(top))
    missing = elementwise(site.ctx, combine_of(np.isnan), [x], site.span)
    return where(site, missing, nan, limited)


def sinc(site: Site, x: Value) -> Value:
    """Return `np.sinc`: sin(pi x) / (pi x), and 1 at 0."""
    y = arithmetic(site, "*", Static(math.pi), converted_float(site, x))
    ratio = arithmetic(site, "/", elementwise(site.ctx, combine_of(np.sin), [y], site.span), y)
    return where(site, arithmetic(site, "==", x, ZERO), Static(1.0), ratio)


def extremum(site: Site, name: str, values: Sequence[Value]) -> Value:
    """Return the elementwise `max` or `min` of two or more values."""
    at = [weak_position(value) for value in values]
    if all(index is not None for index in at):
        pick = index_max if name == "max" else index_min
        return Scalar(Position(fold_left(pick, [i for i in at if i is not None])), WEAK_INT)
    combine: Combine = combine_of(np.maximum if name == "max" else np.minimum, True)
    result = values[0]
    for value in values[1:]:
        result = elementwise(site.ctx, combine, [result, value], site.span)
    return result


def word_handler(op: str) -> Handler:
    """Return the handler of a word that is an operation of the table and of nothing else."""

    def handle(site: Site, args: tuple[Value, ...], keywords: dict[str, Value]) -> Value:
        if keywords or len(args) != OPS[op].arity:
            raise error(
                "CD0440", CdTypeError, f"`{op}` takes {OPS[op].arity} arguments", site.span
            )
        return operate(site.ctx, op, args, site.span)

    return handle


