"""Types of values: element types, weak (adapting) Python scalars, type promotion, conversions.

The functions here turn an operation on typed expressions into `Apply` with explicit `Cast`s, by
the promotion rules of NumPy 2. Float16 and bfloat16 are computed in float32; `Kind` names the
storage type.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import reduce as fold_left
from math import copysign, isnan
from typing import Any

import numpy as np

from ...base.dataclass import dataclass
from ...lowering.ir import dtypes
from ...lowering.ir.dtypes import DType, promote, promote_all
from ...lowering.ir.expressions import Apply, Cast, Const, Expr, Position, Select
from ...lowering.ir.indexing import Affine, const
from ...lowering.ir.ops import OPS, Op


@dataclass(frozen=True, slots=True)
class Kind:
    """An element type; `weak` for Python scalars, index and loop variables, which adapt."""

    dtype: DType
    weak: bool = False

    def __repr__(self) -> str:
        names = {"b": "bool", "i": "int", "f": "float", "c": "complex"}
        return f"Python {names[self.dtype.kind]}" if self.weak else self.dtype.name


class Unfit(TypeError):
    """A Python int is out of range of the integer type `dtype` that an operation casts it to."""

    def __init__(self, text: str, dtype: DType, value: int) -> None:
        super().__init__(text)
        self.dtype, self.value = dtype, value


class TooLarge(OverflowError):
    """A Python int is out of range of the integer type in which code computes."""

    def __init__(self, value: int, dtype: DType) -> None:
        super().__init__(f"{digits(value)} does not fit in {dtype}")
        self.value = value


WEAK_BOOL = Kind(dtypes.bool_, True)
WEAK_INT = Kind(dtypes.int64, True)
WEAK_FLOAT = Kind(dtypes.float64, True)
WEAK_COMPLEX = Kind(dtypes.complex128, True)
BOOL = Kind(dtypes.bool_)
WEAK_TYPES = (dtypes.bool_, dtypes.int64, dtypes.float64, dtypes.complex128)
"""The element types of Python's numbers."""


def kind_of_number(value: object) -> Kind | None:
    """Return the kind of a Python or NumPy scalar, None for anything else."""
    if isinstance(value, np.generic):
        dtype = dtypes.from_numpy(value.dtype)
        return None if dtype is None else Kind(dtype)
    match value:
        case bool():
            return WEAK_BOOL
        case int():
            return WEAK_INT
        case float():
            return WEAK_FLOAT
        case complex():
            return WEAK_COMPLEX
        case _:
            return None


def join(left: Kind, right: Kind) -> Kind:
    """Return the promoted kind of two operands, by NumPy 2's rules.

    >>> join(Kind(dtypes.float32), WEAK_FLOAT), join(Kind(dtypes.int32), WEAK_FLOAT)
    (float32, float64)
    >>> join(Kind(dtypes.float32), WEAK_COMPLEX), join(WEAK_INT, WEAK_FLOAT)
    (complex64, Python float)
    """
    if left == right:
        return left
    if left.weak and right.weak:
        order = "bifc"
        return max(left, right, key=lambda kind: order.index(kind.dtype.kind))
    if not left.weak and not right.weak:
        return Kind(promote(left.dtype, right.dtype))
    weak, strong = (left, right) if left.weak else (right, left)
    if dtypes.is_weaker(weak.dtype.kind, strong.dtype.kind):
        return strong
    if weak.dtype.kind == "c" and strong.dtype.kind == "f":
        return Kind(dtypes.complex128 if strong.dtype.bits == 64 else dtypes.complex64)
    return Kind(weak.dtype)


def join_all(kinds: Sequence[Kind]) -> Kind:
    """Return the promoted kind of several operands; weak ones are joined last.

    >>> join_all([Kind(dtypes.int8), WEAK_FLOAT, Kind(dtypes.float32)])
    float32
    """
    strong = [kind.dtype for kind in kinds if not kind.weak]
    common = [Kind(promote_all(*strong))] if strong else []
    return fold_left(join, [*common, *(kind for kind in kinds if kind.weak)])


def same_kind(source: Kind, target: DType) -> bool:
    """Whether a store may cast implicitly: NumPy's `same_kind` rule; integers wrap."""
    order = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
    return order[source.dtype.kind] <= order[target.kind]


def cast(expr: Expr, dtype: DType) -> Expr:
    """Return the expression cast to `dtype`; constants are folded where that is exact.

    Raises OverflowError for a Python int beyond a signed type.
    """
    if expr.dtype is dtype:
        value = expr.value if isinstance(expr, Const) else 0
        if dtype.kind == "i" and isinstance(value, int) and not fits(value, dtype):
            raise TooLarge(value, dtype)
        return expr
    if isinstance(expr, Const) and (folded := _fold_cast(expr, dtype)) is not None:
        return folded
    if isinstance(expr, Position) and expr.index.constant is not None:
        return cast(Const(expr.index.constant, dtypes.int64), dtype)
    if dtype.kind == "f" and isinstance(expr, Const) and not _is_in_range(expr):
        expr = cast(expr, dtypes.float64)  # 16-bit floats are rounded at run time
    return Cast(expr, dtype)


def _is_in_range(expr: Const) -> bool:
    """Whether a constant is within its type: a Python int may be beyond int64."""
    return not isinstance(expr.value, int) or fits(expr.value, expr.dtype)


def computed(expr: Expr, kind: Kind, dtype: DType) -> Expr:
    """Return an operand of a kind, cast to the compute type of `dtype`.

    For 16-bit floats it is rounded to 16 bits before, as NumPy converts operands.
    """
    is_exact = kind.dtype is dtype or not kind.weak and kind.dtype.bits <= 8
    if dtype.kind == "f" and dtype.bits == 16 and not is_exact:
        expr = cast(expr, dtype)
    return cast(expr, dtype.compute)


def apply(op: str | Op, *args: tuple[Expr, Kind], to: Kind | None = None) -> tuple[Expr, Kind]:
    """Return the operation on promoted operands and the kind of its result.

    Operands are promoted, raised to the weakest kind that the operation admits (`sqrt` of ints is
    float64), and computed in float32 where the element type has 16 bits.
    """
    row = OPS[op] if isinstance(op, str) else op
    if row.name in _NEGATED and to is None and (exact := compared_exactly(row, *args)):
        return exact
    kind = to or args[0][1]
    if to is None:
        for _, other_kind in args[1:]:
            kind = join(kind, other_kind)
    kind = admit(row, kind)
    dtype = kind.dtype.compute
    for expr, other_kind in args if row.result != "bool" else ():
        _require_in_range(expr, other_kind, kind)
    operands = tuple(computed(expr, other_kind, kind.dtype) for expr, other_kind in args)
    match row.result:
        case "bool":
            return Apply(row, operands, dtypes.bool_), Kind(dtypes.bool_, kind.weak)
        case "real" if kind.dtype.kind == "c":
            real = Kind(dtype.real, kind.weak)
            return Apply(row, operands, dtype.real), real
        case "unsigned" | "signed" | "float":
            prefix = "i" if row.result == "signed" else row.result[0]
            result_type = dtypes.BY_SHORT[f"{prefix}{dtype.bits}"]
            return Apply(row, operands, result_type), Kind(result_type, kind.weak)
        case "complex":
            result_type = dtypes.complex128 if dtype.bits == 64 else dtypes.complex64
            return Apply(row, operands, result_type), Kind(result_type, kind.weak)
        case _:
            return Apply(row, operands, dtype), kind


def _require_in_range(expr: Expr, kind: Kind, wanted: Kind) -> None:
    """Raise Unfit for a Python int that is out of range of the element type, as NumPy does."""
    value = expr.value if isinstance(expr, Const) else None
    if isinstance(expr, Position):
        value = expr.index.constant
    if not kind.weak or not isinstance(value, int) or isinstance(value, bool):
        return
    if not fits(value, wanted.dtype):
        raise Unfit(f"{digits(value)} does not fit in {wanted.dtype.name}", wanted.dtype, value)


def hold(*operands: Affine) -> None:
    """Require the constants among the operands of index arithmetic to fit int64.

    OverflowError where one does not, which becomes CD0461.
    """
    for index in operands:
        if index.constant is not None and not fits(index.constant, dtypes.int64):
            raise TooLarge(index.constant, dtypes.int64)


def fits(value: int, dtype: DType) -> bool:
    """Whether a Python int is in range of an element type; floats hold up to 2**1023, rounded."""
    if dtype.kind not in "iu":
        return dtype.kind == "b" or abs(value) < 2**1023
    lo = -(1 << (dtype.bits - 1)) if dtype.kind == "i" else 0
    return lo <= value < lo + (1 << dtype.bits)


def may_be_given(kind: type) -> bool:
    """Whether an attribute of this type may be a run-time value: Python ints, any floats."""
    return kind is int or issubclass(kind, float | np.floating)


_DIGITS = 2048
"""The most bits of integers written in decimal: Python may refuse from 640 digits on."""
_WITH_LITERALS: tuple[Any, ...] = (bool, complex, str, bytes)
_UNAMBIGUOUS = (bool, int, float, complex, str, bytes, slice, range, type(None), type(...))
"""Types whose texts are no other type's."""


def constant_text(value: object) -> str:
    """Return a text that is unique among constants of its type, whatever the `repr` of a subclass:
    of a number by its bits, of a member of an enumeration by its name."""
    match value:
        case Enum():
            base = _base_text(value)
            return f"<{type(value).__name__}.{value._name_}{base and f': {base}'}>"
        case slice():
            parts = value.start, value.stop, value.step
            return f"slice({', '.join(map(typed_text, parts))})"
        case _:
            return _base_text(value) or repr(value)


def typed_text(value: object) -> str:
    """Return a text that is unique among constants of all types, and tuples and sets of these; of
    other objects by their identity.

    >>> typed_text((1, None)), typed_text(slice(1, None)), typed_text(1) == typed_text(1.0)
    ('(1, None)', 'slice(1, None, None)', False)
    """
    kind = type(value)
    if isinstance(value, tuple | frozenset) and kind in (tuple, frozenset):
        texts = [*map(typed_text, value)]
        return f"({', '.join(texts)})" if kind is tuple else f"{{{', '.join(sorted(texts))}}}"
    text = constant_text(value)
    if kind in _UNAMBIGUOUS:
        return text
    if isinstance(value, np.generic) and kind is value.dtype.type:
        return f"{kind.__name__} {text}"
    is_known = isinstance(value, Enum) or _base_text(value)
    return f"{text} ({kind.__name__} {id(kind)}{'' if is_known else f', {id(value)}'})"


def _base_text(value: object) -> str:
    """Return what Python or NumPy writes for a number or text, empty for other objects."""
    if isinstance(value, float):
        return f"{'-' if isnan(value) and copysign(1, value) < 0 else ''}{float.__repr__(value)}"
    if isinstance(value, np.floating) and np.isnan(value):
        return "-nan" if np.signbit(value) else "nan"
    if isinstance(value, int) and not isinstance(value, bool):
        # Python refuses decimal digits of long ones
        return int.__repr__(value) if value.bit_length() <= _DIGITS else hex(value)
    if isinstance(value, np.generic):
        return str(value.dtype.type.__repr__(value))
    base = next((kind for kind in _WITH_LITERALS if isinstance(value, kind)), None)
    return "" if base is None else base.__repr__(value)


def digits(value: object) -> str:
    """Return an integer as text for users, a very long one in words."""
    long = isinstance(value, int) and abs(value) >= 2**256
    return "an integer of more than 77 digits" if long else str(value)


def compared_exactly(
    row: Op, left: tuple[Expr, Kind], right: tuple[Expr, Kind]
) -> tuple[Expr, Kind] | None:
    """Return a comparison by value of integers without a common integer type, as in NumPy.

    These are a Python int with integers of a type, and signed integers with uint64. None for other
    operands, which are compared in their promoted type.
    """
    kinds = [left[1], right[1]]
    if any(kind.dtype.kind not in "iu" for kind in kinds) or all(kind.weak for kind in kinds):
        return None
    for side, opposite in ((left, right), (right, left)):
        constant = whole_constant(side[0]) if side[1].weak else None
        if constant is not None and not fits(constant, dtypes.int64):
            return _compare_with_long(row, constant, opposite, side is left), BOOL
    wide = [kind.dtype is dtypes.uint64 for kind in kinds]
    if not any(wide):
        if not any(kind.weak for kind in kinds):
            return None
        sides = tuple(cast(expr, dtypes.int64) for expr, _ in (left, right))
        return Apply(row, sides, dtypes.bool_), BOOL
    if all(wide):
        return None
    signed = right if wide[0] else left
    # a negative number is less than every unsigned one, whichever side it is on
    answer = row.name in (("lt", "le", "ne") if signed is left else ("gt", "ge", "ne"))
    plain = Apply(row, tuple(cast(e, dtypes.uint64) for e, _ in (left, right)), dtypes.bool_)
    constant = whole_constant(signed[0])
    if constant is not None:
        return (plain if constant >= 0 else Const(answer, dtypes.bool_)), BOOL
    below = Apply(OPS["lt"], (signed[0], cast(ZERO, signed[0].dtype)), dtypes.bool_)
    return Select(below, Const(answer, dtypes.bool_), plain), BOOL


def _compare_with_long(row: Op, number: int, operand: tuple[Expr, Kind], is_left: bool) -> Expr:
    """Return a comparison of a Python int beyond int64 with integers of a type."""
    expr, kind = operand
    if fits(number, kind.dtype):
        constant = Const(number, kind.dtype)
        sides = (constant, expr) if is_left else (expr, constant)
        return Apply(row, sides, dtypes.bool_)
    is_less = (number < 0) == is_left  # whether the left side is less than the right one
    return Const(row.name in (("lt", "le", "ne") if is_less else ("gt", "ge", "ne")), dtypes.bool_)


def whole_constant(expr: Expr) -> int | None:
    """Return the value of a constant integer expression, None for other expressions."""
    match expr:
        case Position(index):
            return index.constant
        case Const(int() as value, _) if not isinstance(value, bool):
            return value
        case _:
            return None


def admit(row: Op, kind: Kind) -> Kind:
    """Return the kind, or the one that NumPy promotes it to, for an operation.

    Raises TypeError where the operation is not defined for the kind.
    """
    if kind.dtype.kind in row.admits:
        return kind
    if kind.dtype.kind == "b" and "i" in row.admits and "f" in row.admits:
        if row.name == "neg" and not kind.weak:
            raise TypeError("`-` is not defined for bools; use `~`")
        return WEAK_INT if kind.weak else Kind(dtypes.int8)
    if kind.dtype.kind in "biu" and "f" in row.admits:
        if kind.weak:
            return WEAK_FLOAT
        small = {} if row.name == "div" else {8: dtypes.float16, 16: dtypes.float32}
        return Kind(small.get(kind.dtype.bits, dtypes.float64))
    raise TypeError(f"`{SIGNS.get(row.name, row.name)}` is not defined for {kind}")


def truth(expr: Expr) -> Expr:
    """Return the expression as a bool: itself, or `!= 0`."""
    return cast(expr, dtypes.bool_)


def both(*tests: Expr | None) -> Expr | None:
    """Return the conjunction of tests, None where all are None or constant true."""
    out: Expr | None = None
    for test in tests:
        if test is None or test == TRUE:
            continue
        out = test if out is None else Apply(OPS["and"], (out, test), dtypes.bool_)
    return out


def any_of(*tests: Expr) -> Expr:
    """Return the disjunction of one or more tests."""
    return fold_left(lambda left, right: Apply(OPS["or"], (left, right), dtypes.bool_), tests)


def negate(test: Expr) -> Expr:
    """Return the negation of a bool expression; integer comparisons are inverted."""
    match test:
        case Const(value, _):
            return Const(not value, dtypes.bool_)
        case Apply(Op(name="logical_not"), (inner,), _):
            return inner
        case Apply(op, (left, right), _) if op.name in _NEGATED and left.dtype.kind in "biu":
            return Apply(OPS[_NEGATED[op.name]], (left, right), dtypes.bool_)
        case _:
            return Apply(OPS["logical_not"], (test,), dtypes.bool_)


SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "pow": "**",
    "whole_pow": "**", "half_pow": "**",
    "bitand": "&", "bitor": "|", "bitxor": "^", "shl": "<<", "shr": ">>", "invert": "~",
    "neg": "-", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=",
}  # fmt: skip
"""The notation of operators in source, where it is not their name."""
TRUE = Const(True, dtypes.bool_)
FALSE = Const(False, dtypes.bool_)
ZERO = Position(const(0))
_NEGATED = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}


def number(value: bool | int | float | complex, kind: Kind) -> Expr:
    """Return a constant of a kind; integers become index expressions, so that they fold."""
    if kind.dtype is dtypes.int64 and isinstance(value, int) and abs(value) < 2**62:
        return Position(const(int(value)))
    return Const(bool(value) if kind.dtype is dtypes.bool_ else value, kind.dtype)


def _fold_cast(expr: Const, dtype: DType) -> Const | None:
    value = expr.value
    match dtype.kind:
        case "b":
            return Const(bool(value), dtype)
        case "f" if not isinstance(value, complex) and dtype.bits >= 32:
            return Const(float(dtype.numpy.type(value)), dtype)
        case "c":
            return Const(complex(dtype.numpy.type(value)), dtype)
        case "i" | "u" if isinstance(value, bool | int):
            lo = -(2 ** (dtype.bits - 1)) if dtype.kind == "i" else 0
            return Const((int(value) - lo) % 2**dtype.bits + lo, dtype)
        case _:
            return None
