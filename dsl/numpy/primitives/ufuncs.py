"""Ufuncs as operations of the IR, and type resolution of their operands and results.

NumPy itself resolves the types in which a ufunc computes (`resolve_dtypes`); operations on Python
scalars alone follow Python's rules, and their results stay weak.
"""

from __future__ import annotations

import cmath
import math
import operator
from collections.abc import Callable, Sequence
from functools import cache, reduce

import numpy as np

from ....base.diagnostic import CdTypeError
from ....lowering.ir import dtypes
from ....lowering.ir.dtypes import DType
from ....lowering.ir.expressions import Apply, Const, Expr
from ....lowering.ir.ops import OPS
from ...values.builder import error
from ...values.call_site import Site
from ...values.types import (
    BOOL,
    WEAK_FLOAT,
    Kind,
    Unfit,
    apply,
    cast,
    compared_exactly,
    computed,
    join,
    truth,
    whole_constant,
)

Pair = tuple[Expr, Kind]
Combine = Callable[..., Pair]
Rule = Callable[[tuple[Expr, ...], DType], Expr]
"""(operands of one type, type of the result) -> expression of the result."""

OP_OF: dict[np.ufunc, str] = {
    np.negative: "neg", np.absolute: "abs", np.fabs: "abs", np.sign: "sign", np.floor: "floor",
    np.ceil: "ceil", np.trunc: "trunc", np.rint: "rint", np.sqrt: "sqrt", np.cbrt: "cbrt",
    np.exp: "exp", np.exp2: "exp2", np.expm1: "expm1", np.log: "log", np.log2: "log2",
    np.log10: "log10", np.log1p: "log1p", np.sin: "sin", np.cos: "cos", np.tan: "tan",
    np.arcsin: "arcsin", np.arccos: "arccos", np.arctan: "arctan", np.sinh: "sinh",
    np.cosh: "cosh", np.tanh: "tanh", np.arcsinh: "arcsinh", np.arccosh: "arccosh",
    np.arctanh: "arctanh", np.invert: "invert", np.conjugate: "conj", np.isnan: "isnan",
    np.isinf: "isinf", np.isfinite: "isfinite", np.signbit: "signbit",
    np.add: "add", np.subtract: "sub", np.multiply: "mul", np.divide: "div",
    np.floor_divide: "floordiv", np.remainder: "mod", np.fmod: "fmod", np.power: "pow",
    np.float_power: "pow", np.maximum: "max", np.minimum: "min", np.fmax: "fmax",
    np.fmin: "fmin", np.arctan2: "arctan2", np.hypot: "hypot", np.copysign: "copysign",
    np.logaddexp: "logaddexp", np.heaviside: "heaviside", np.equal: "eq", np.not_equal: "ne",
    np.less: "lt", np.less_equal: "le", np.greater: "gt", np.greater_equal: "ge",
    np.logical_and: "and", np.logical_or: "or", np.logical_xor: "ne",
    np.logical_not: "logical_not", np.bitwise_and: "bitand", np.bitwise_or: "bitor",
    np.bitwise_xor: "bitxor", np.left_shift: "shl", np.right_shift: "shr",
    np.square: "square", np.reciprocal: "recip", np.positive: "positive",
    np.degrees: "degrees", np.rad2deg: "degrees", np.radians: "radians", np.deg2rad: "radians",
}  # fmt: skip

OPERATORS: dict[str, np.ufunc] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "//": np.floor_divide,
    "%": np.remainder, "**": np.power, "&": np.bitwise_and, "|": np.bitwise_or,
    "^": np.bitwise_xor, "<<": np.left_shift, ">>": np.right_shift, "==": np.equal,
    "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip
"""Python's binary operators and comparisons -> ufuncs."""

_PYTHON_FUNCTIONS: tuple[tuple[object, np.ufunc], ...] = (
    (operator.add, np.add),
    (operator.sub, np.subtract),
    (operator.mul, np.multiply),
    (operator.truediv, np.divide),
    (operator.floordiv, np.floor_divide),
    (operator.mod, np.remainder),
    (operator.pow, np.power),
    (operator.and_, np.bitwise_and),
    (operator.or_, np.bitwise_or),
    (operator.xor, np.bitwise_xor),
    (operator.lshift, np.left_shift),
    (operator.rshift, np.right_shift),
    (operator.neg, np.negative),
    (operator.pos, np.positive),
    (operator.invert, np.invert),
    (operator.inv, np.invert),
    (operator.abs, np.absolute),
    (operator.eq, np.equal),
    (operator.ne, np.not_equal),
    (operator.lt, np.less),
    (operator.le, np.less_equal),
    (operator.gt, np.greater),
    (operator.ge, np.greater_equal),
    (operator.not_, np.logical_not),
    (abs, np.absolute),
    (math.exp, np.exp),
    (math.exp2, np.exp2),
    (math.expm1, np.expm1),
    (math.log2, np.log2),
    (math.log10, np.log10),
    (math.log1p, np.log1p),
    (math.sqrt, np.sqrt),
    (math.cbrt, np.cbrt),
    (math.pow, np.float_power),
    (math.sin, np.sin),
    (math.cos, np.cos),
    (math.tan, np.tan),
    (math.asin, np.arcsin),
    (math.acos, np.arccos),
    (math.atan, np.arctan),
    (math.atan2, np.arctan2),
    (math.sinh, np.sinh),
    (math.cosh, np.cosh),
    (math.tanh, np.tanh),
    (math.asinh, np.arcsinh),
    (math.acosh, np.arccosh),
    (math.atanh, np.arctanh),
    (math.fabs, np.fabs),
    (math.fmod, np.fmod),
    (math.hypot, np.hypot),
    (math.copysign, np.copysign),
    (math.isnan, np.isnan),
    (math.isinf, np.isinf),
    (math.isfinite, np.isfinite),
    (math.degrees, np.degrees),
    (math.radians, np.radians),
    (cmath.exp, np.exp),
    (cmath.log10, np.log10),
    (cmath.sqrt, np.sqrt),
    (cmath.sin, np.sin),
    (cmath.cos, np.cos),
    (cmath.tan, np.tan),
    (cmath.sinh, np.sinh),
    (cmath.cosh, np.cosh),
    (cmath.tanh, np.tanh),
    (cmath.isnan, np.isnan),
    (cmath.isinf, np.isinf),
    (cmath.isfinite, np.isfinite),
)
PYTHON_NAMES: dict[object, np.ufunc] = dict(_PYTHON_FUNCTIONS)
"""Functions of Python's modules -> ufuncs; of Python numbers they give Python numbers."""

_PYTHON_DEFAULT = {
    "b": dtypes.bool_, "i": dtypes.int64, "f": dtypes.float64, "c": dtypes.complex128
}  # fmt: skip
_WEAK_TYPE: dict[str, type] = {"b": bool, "i": int, "f": float, "c": complex}
_LOGICAL = (np.logical_and, np.logical_or, np.logical_xor, np.logical_not)
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip


def combine_of(ufunc: np.ufunc, python: bool = False) -> Combine:
    """Return the function that applies a ufunc to (expression, kind) pairs.

    With `python` an operation on Python numbers alone gives a Python number, else a NumPy scalar.
    """

    def combine(*pairs: Pair) -> Pair:
        if ufunc in _LOGICAL:
            pairs = tuple((truth(expr), Kind(dtypes.bool_, kind.weak)) for expr, kind in pairs)
        if python and all(kind.weak for _, kind in pairs):
            return _apply_python(ufunc, pairs)
        if any(kind.dtype is dtypes.bfloat16 for _, kind in pairs):
            return _apply_bfloat16(ufunc, pairs)
        return _apply_numpy(ufunc, pairs)

    return combine


def _apply_numpy(ufunc: np.ufunc, pairs: Sequence[Pair]) -> Pair:
    types = resolved(ufunc, tuple(kind for _, kind in pairs))
    inputs, output = types[:-1], types[-1]
    compared = _compare_out_of_range(OP_OF[ufunc], pairs, inputs)
    if compared is not None:
        return Const(compared, dtypes.bool_), BOOL
    if OP_OF[ufunc] in _COMPARISONS:
        left, right = pairs
        by_value = compared_exactly(OPS[OP_OF[ufunc]], left, right)
        if by_value is not None:
            return by_value
    operands = []
    for (expr, kind), dtype in zip(pairs, inputs, strict=True):
        require_fit(expr, kind, dtype)
        operands.append(computed(expr, kind, dtype))
    return _result(OP_OF[ufunc], tuple(operands), output), Kind(output)


def _result(name: str, operands: tuple[Expr, ...], output: DType) -> Expr:
    rule = _RULES.get(name)
    if rule is not None:
        return rule(operands, output.compute)
    row = OPS[name]
    kind = operands[0].dtype.kind
    if kind not in row.admits:
        raise TypeError(f"`{name}` is not defined for {operands[0].dtype}")
    return Apply(row, operands, output.compute)


def _apply_bfloat16(ufunc: np.ufunc, pairs: Sequence[Pair]) -> Pair:
    kind = pairs[0][1]
    for _, next_kind in pairs[1:]:
        kind = Kind(dtypes.promote(strong_of(kind), strong_of(next_kind)))
        kind = Kind(dtypes.bfloat16) if all(_adapts_to_bfloat16(k) for _, k in pairs) else kind
    operands = tuple(computed(expr, operand_kind, kind.dtype) for expr, operand_kind in pairs)
    boolean = OPS[OP_OF[ufunc]].result == "bool" if OP_OF[ufunc] in OPS else False
    output = dtypes.bool_ if boolean else kind.dtype
    return _result(OP_OF[ufunc], operands, output), Kind(output)


def _adapts_to_bfloat16(kind: Kind) -> bool:
    return (
        kind.dtype is dtypes.bfloat16
        or kind.dtype.kind in "biu"
        or (kind.weak and kind.dtype.kind == "f")
    )


def strong_of(kind: Kind) -> DType:
    """Return the strong element type of a kind: Python's numbers are 64 bits wide."""
    return _PYTHON_DEFAULT[kind.dtype.kind] if kind.weak else kind.dtype


@cache
def resolved(ufunc: np.ufunc, kinds: tuple[Kind, ...]) -> tuple[DType, ...]:
    """Return the types of the operands and of the results, as NumPy chooses them.

    Raises TypeError where the ufunc has no meaning for such operands.

    >>> resolved(np.divide, (Kind(dtypes.int8), Kind(dtypes.int8)))
    (float64, float64, float64)
    """
    if all(kind.weak for kind in kinds):
        kinds = tuple(Kind(strong_of(kind)) for kind in kinds)
    operand_types = tuple(
        _WEAK_TYPE[kind.dtype.kind] if kind.weak and kind.dtype.kind != "b" else kind.dtype.numpy
        for kind in kinds
    )
    try:
        resolved_types = ufunc.resolve_dtypes((*operand_types, *(None,) * ufunc.nout))
    except TypeError:
        shown = " and ".join(map(repr, kinds))
        raise TypeError(f"`{ufunc.__name__}` is not defined for {shown}") from None
    types = tuple(dtypes.from_numpy(dtype) for dtype in resolved_types)
    if any(dtype is None for dtype in types):
        raise TypeError(f"`{ufunc.__name__}` is not defined for {kinds}")
    return tuple(dtype for dtype in types if dtype is not None)


def loop_dtype(site: Site, ufunc: np.ufunc, dtype: DType, out: DType | None = None) -> DType:
    """Return the type in which NumPy reduces or accumulates elements of a type into an `out`.

    CdTypeError CD0404 where there is no such loop.
    """
    if dtypes.bfloat16 in (dtype, out):
        return dtype if out is None else dtypes.promote(dtype, out)
    try:
        types = ufunc.resolve_dtypes(
            (None if out is None else out.numpy, dtype.numpy, None),
            casting="unsafe",
            reduction=True,
        )
    except TypeError:
        into = "" if out is None else f" into an `out` of {out}"
        text = f"`{ufunc.__name__}` does not combine {dtype} values{into}"
        helps = ("give an `out` of another type, or convert the values: `x.astype(...)`",)
        raise error("CD0404", CdTypeError, text, site.span, helps=helps) from None
    element = dtypes.from_numpy(types[-1])
    assert element is not None, "results of ufuncs of known types are of known types"
    return element


def _apply_python(ufunc: np.ufunc, pairs: Sequence[Pair]) -> Pair:
    """Return a pair by Python's arithmetic: bools count as ints, `/` and functions give floats."""
    name = OP_OF[ufunc]
    keeps = ufunc in _LOGICAL or name in ("bitand", "bitor", "bitxor", "eq", "ne")
    if not keeps:
        pairs = [(cast(e, dtypes.int64), Kind(dtypes.int64, True)) if k.dtype.kind == "b"
                 else (e, k) for e, k in pairs]  # fmt: skip
    if ufunc in (np.fabs, np.float_power):
        pairs = [(cast(e, dtypes.float64), WEAK_FLOAT) for e, _ in pairs]
    rule = _RULES.get(name)
    if rule is not None:
        wide = reduce(join, (kind for _, kind in pairs)).dtype
        whole = ufunc in (np.positive, np.square) or (wide.kind == "i" and name in _INTEGER_SAFE)
        dtype = wide if whole or wide.kind in "fc" else dtypes.float64
        output = _PYTHON_RESULT.get(name, dtype.real if name == "abs" else dtype)
        value = rule(tuple(cast(e, dtype) for e, _ in pairs), output)
        return value, Kind(value.dtype, True)
    return apply(name, *pairs)


_PYTHON_RESULT = {"isnan": dtypes.bool_, "isinf": dtypes.bool_, "isfinite": dtypes.bool_,
                  "signbit": dtypes.bool_}  # fmt: skip
_INTEGER_SAFE = frozenset(
    ("abs", "floor", "ceil", "trunc", "conj", "isnan", "isinf", "isfinite", "signbit",
     "add", "sub", "mul", "fmax", "fmin", "max", "min")
)  # fmt: skip


def require_fit(expr: Expr, kind: Kind, dtype: DType) -> None:
    """Refuse (Unfit) a Python integer out of the range of the integer type that it adapts to."""
    value = _weak_integer(expr, kind)
    if value is not None and dtype.kind in "iu" and not _is_representable(value, dtype):
        raise Unfit(f"Python integer {value} is out of bounds for {dtype}", dtype, value)


def _weak_integer(expr: Expr, kind: Kind) -> int | None:
    return whole_constant(expr) if kind.weak and kind.dtype.kind == "i" else None


def _is_representable(value: int, dtype: DType) -> bool:
    lo = 0 if dtype.kind == "u" else -(1 << (dtype.bits - 1))
    return lo <= value < lo + (1 << dtype.bits)


def _compare_out_of_range(name: str, pairs: Sequence[Pair], inputs: Sequence[DType]) -> bool | None:
    """Return the static outcome of a comparison with a Python integer out of the other's range."""
    if name not in _COMPARISONS:
        return None
    for at, ((expr, kind), dtype) in enumerate(zip(pairs, inputs, strict=True)):
        value = _weak_integer(expr, kind)
        if value is not None and dtype.kind in "iu" and not _is_representable(value, dtype):
            inside = 0
            sides = (inside, value) if at == 1 else (value, inside)
            return _COMPARISONS[name](*sides)
    return None


# Rules for operations that depend on the kind of the operands.


def _typed_constant(value: float, dtype: DType) -> Const:
    return Const(float(dtype.numpy.type(value)), dtype)


def _rule_by_kind(kinds: str, name: str, otherwise: Rule) -> Rule:
    """Return the table's operation, or `otherwise` for operands of the given kinds."""

    def rule(operands: tuple[Expr, ...], output: DType) -> Expr:
        if operands[0].dtype.kind in kinds:
            return otherwise(operands, output)
        if operands[0].dtype.kind not in OPS[name].admits:
            raise TypeError(f"`{name}` is not defined for {operands[0].dtype}")
        return Apply(OPS[name], operands, output)

    return rule


def _identity(operands: tuple[Expr, ...], output: DType) -> Expr:
    return cast(operands[0], output)


def _constant_rule(value: bool) -> Rule:
    return lambda operands, output: Const(value, dtypes.bool_)


def _operation_rule(name: str) -> Rule:
    return lambda operands, output: Apply(OPS[name], operands, output)


def _is_negative(operands: tuple[Expr, ...], output: DType) -> Expr:
    zero = cast(Const(0, dtypes.int64), operands[0].dtype)
    return Apply(OPS["lt"], (operands[0], zero), dtypes.bool_)


def _square(operands: tuple[Expr, ...], output: DType) -> Expr:
    return Apply(OPS["mul"], (operands[0], operands[0]), output)


def _refusal_rule(text: str) -> Rule:
    def rule(operands: tuple[Expr, ...], output: DType) -> Expr:
        raise TypeError(text)

    return rule


def _scaling_rule(factor: float) -> Rule:
    return lambda operands, output: Apply(
        OPS["mul"], (cast(operands[0], output), _typed_constant(factor, output)), output
    )


_RULES: dict[str, Rule] = {
    "add": _rule_by_kind("b", "add", _operation_rule("or")),
    "mul": _rule_by_kind("b", "mul", _operation_rule("and")),
    "abs": _rule_by_kind("bu", "abs", _identity),
    "floor": _rule_by_kind("biu", "floor", _identity),
    "ceil": _rule_by_kind("biu", "ceil", _identity),
    "trunc": _rule_by_kind("biu", "trunc", _identity),
    "conj": _rule_by_kind("biuf", "conj", _identity),
    "isnan": _rule_by_kind("biu", "isnan", _constant_rule(False)),
    "isinf": _rule_by_kind("biu", "isinf", _constant_rule(False)),
    "isfinite": _rule_by_kind("biu", "isfinite", _constant_rule(True)),
    "signbit": _rule_by_kind("biu", "signbit", _is_negative),
    "fmax": _rule_by_kind("biu", "fmax", _operation_rule("max")),
    "fmin": _rule_by_kind("biu", "fmin", _operation_rule("min")),
    "positive": _identity,
    "square": _square,
    "recip": _rule_by_kind(
        "biu", "recip", _refusal_rule("the reciprocal of integers is 0 or 1: use 1/x")
    ),
    "degrees": _scaling_rule(180.0 / math.pi),
    "radians": _scaling_rule(math.pi / 180.0),
}
