"""Operators on values: arithmetic, with folding of static operands."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ...base.diagnostic import CdError, CdOverflowError, CdTypeError, Span, class_of
from ...base.lazy_import import lazy_modules
from ...lowering.ir import dtypes
from ...lowering.ir.assignments import Fault
from ...lowering.ir.expressions import Apply, Const, Expr, Position
from ...lowering.ir.indexing import Affine, const, floordiv, mod, multiply
from ...lowering.ir.ops import OPS
from ..numpy import table
from ..values.arrays import describe, elementwise
from ..values.builder import Context, error
from ..values.call_site import Site, is_list, items_of
from ..values.folding import PYTHON, PYTHON_UNARY, fold
from ..values.types import (
    BOOL,
    WEAK_BOOL,
    WEAK_INT,
    Kind,
    apply,
    cast,
    hold,
    join,
    kind_of_number,
    negate,
)
from ..values.values import Array, Group, Handle, Masked, Opaque, Scalar, Static, Value
from .scope import Frame

if TYPE_CHECKING:
    from ..numpy.primitives import powers
    from . import truth
    from .captures import named_tuples
    from .conditions import identity
else:  # imported lazily: few programs need them
    powers, truth = lazy_modules(__package__, "..numpy.primitives.powers", ".truth")
    named_tuples, identity = lazy_modules(
        __package__, ".captures.named_tuples", ".conditions.identity"
    )

BINARY = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "//": "floordiv", "%": "mod", "**": "pow",
    "&": "bitand", "|": "bitor", "^": "bitxor", "<<": "shl", ">>": "shr",
}  # fmt: skip


_REAL = dtypes.float64
_LARGE = 2.0**62
_DIVISIONS = ("/", "//", "%")
"""Products of two integers below it fit in 64 bits."""


def value_of(value: Value) -> Value:
    """Return a rank-0 element as a number: `s = x[i]` with no axes left is a value."""
    if isinstance(value, Array) and value.rank == 0:
        return Scalar(value.body, value.kind)
    return value


def binary(frame: Frame, op: str, left: Value, right: Value, span: Span) -> Value:
    """Return `left op right`: folded where both are static, affine where both are indices."""
    ctx = frame.ctx
    refuse_overridden(op, left, right, span)
    if op == "@":
        return _apply_ufunc(np.matmul, Site(ctx, span), left, right)
    _refuse_none(frame, op, left, right, span)
    _refuse_run_time_texts(ctx, op, left, right, span)
    if isinstance(left, Static) and isinstance(right, Static):
        folded = now(PYTHON[op], (left.value, right.value), span)
        if not isinstance(folded.value, np.ndarray):  # a sequence and a number of NumPy's
            return folded
    if isinstance(left, Opaque) or isinstance(right, Opaque):
        if (flag_members := identity.flags(op, left, right)) is not None:
            return now(PYTHON[op], flag_members, span)
    _refuse_lists(op, left, right, span)
    if any(isinstance(side, Group) or is_range(side) for side in (left, right)):
        grouped = _combine_sequences(frame, op, left, right, span)
        if grouped is not None:
            return grouped
    if op == "**" and _is_small_power(ctx, left, right):
        square = binary(frame, "*", left, left, span)
        return square if right == Static(2) else binary(frame, "*", square, left, span)
    result = _combine_indices(op, left, right) or _elementwise_binary(ctx, op, left, right, span)
    _emit_guard(ctx, op, left, right, result, span)
    return result


def _elementwise_binary(ctx: Context, op: str, left: Value, right: Value, span: Span) -> Value:
    """Return an elementwise operation on two values with NumPy's typing rules."""
    if op == "**":
        squares = isinstance(right, Static) and type(right.value) is int and right.value == 2
        if squares and isinstance(left, Array) and left.kind == BOOL:
            return _apply_ufunc(np.square, Site(ctx, span), left)  # NumPy's fast power: int8
        is_bool = isinstance(left, Array) and left.kind == BOOL
        if is_bool and isinstance(right, Scalar) and right.kind == WEAK_INT:
            if (exponent := as_affine(right)) is not None:  # that of 2 has another type
                ctx.require_static_parameters(exponent)
        half = isinstance(right, Static) and type(right.value) is float and right.value == 0.5
        if half and isinstance(left, Array) and left.rank and left.kind.dtype.kind == "c":
            return _apply_ufunc(np.sqrt, Site(ctx, span), left)  # as NumPy, arrays only
        return powers.power(Site(ctx, span), left, right, np.power, python=True)
    name = BINARY[op]
    result = elementwise(ctx, lambda a, b: arithmetic(name, a, b), (left, right), span)
    if op in _DIVISIONS and isinstance(result, Array) and result.rank:
        ctx.guarded.add(result.body)  # NumPy's, which does not raise
    return result


def _is_small_power(ctx: Context, left: Value, right: Value) -> bool:
    """Whether a Python integer that would be static in other specializations is squared or cubed:
    its products are checked."""
    if not (isinstance(right, Static) and type(right.value) is int and right.value in (2, 3)):
        return False
    return as_affine(left) is not None and isinstance(left, Scalar) and _is_parametric(ctx, left)


def _emit_guard(
    ctx: Context, op: str, left: Value, right: Value, result: Value, span: Span
) -> None:
    """Guard a division or product of run-time Python numbers: with constants, Python would have
    computed it exactly, or raised."""
    if not (ctx.given or ctx.sizes) or not isinstance(result, Scalar):
        return
    if not all(
        _is_python_number(operand) and _is_parametric(ctx, operand) for operand in (left, right)
    ):
        return
    if op in _DIVISIONS and isinstance(right, Scalar):
        if ctx.pointwise:
            ctx.unguarded |= {right.expr, result.expr}
        divisor = as_affine(right)
        if divisor is not None and ctx.assumptions.differ(divisor, const(0)):
            ctx.guarded.add(right.expr)
            return
        zero = cast(Position(const(0)), right.expr.dtype)
        suggestion = "test the divisor first, as `if n != 0:`"
        fault = Fault("CD0407", "CdValueError", "division by zero", (suggestion,))
        ctx.guard(right.expr, Apply(OPS["ne"], (right.expr, zero), BOOL.dtype), fault, span)
    elif op == "*" and isinstance(left, Scalar) and isinstance(right, Scalar):
        if result.kind.dtype.kind != "i":
            return
        product = Apply(OPS["mul"], (cast(left.expr, _REAL), cast(right.expr, _REAL)), _REAL)
        ends = ("gt", -_LARGE), ("lt", _LARGE)
        inside = (Apply(OPS[op], (product, Const(end, _REAL)), BOOL.dtype) for op, end in ends)
        text = f"`{span.text}` is too large for a whole number of 64 bits"
        fault = Fault("CD0461", "CdValueError", text, ("use a float, or a smaller number",))
        ctx.guard_product(result.expr, Apply(OPS["and"], tuple(inside), BOOL.dtype), fault, span)


def _is_parametric(ctx: Context, value: Value) -> bool:
    """Whether a number is computed from static values, and from run-time ones that would be static
    in other specializations, only."""
    return not isinstance(value, Scalar) or ctx.origins_of(value.expr) is not None


def _refuse_none(frame: Frame, op: str, left: Value, right: Value, span: Span) -> None:
    """Refuse (CD0402) an operation on None, naming its source."""
    if Static(None) not in (left, right):
        return
    operand = right if left == Static(None) else left
    written = re.findall(r"[^\W\d]\w*", span.text)
    named = [name for name in written if frame.names.get(name) == Static(None)]
    suggestion = "write a value instead of None"
    if named:
        suggestion = f"`{named[0]}` is None: pass a value, or test before: `if {named[0]} is None:`"
    raise error(
        "CD0402", CdTypeError, f"`{op}` is not defined for None and {describe(operand)}", span,
        helps=(suggestion,),
    )  # fmt: skip


def _refuse_lists(op: str, left: Value, right: Value, span: Span) -> None:
    """Refuse (CD0404) `+` and `*` of lists that are arrays here, which Python joins and repeats."""
    listed = any(isinstance(side, Array | Masked) and is_list(side) for side in (left, right))
    joins = op == "+" and listed and is_list(left) and is_list(right)
    number = any(isinstance(side, Scalar | Static) for side in (left, right))
    if joins or op == "*" and listed and number:
        verb, name = ("joins", "add") if op == "+" else ("repeats", "multiply")
        raise error(
            "CD0404", CdTypeError, f"`{op}` {verb} lists in Python, and a list is given here", span,
            helps=("pass arrays: `np.array([1.0, 2.0])`",
                   f"for the sum or product of elements, whatever is given: `np.{name}(x, y)`"),
        )  # fmt: skip


def _apply_ufunc(function: Callable[..., object], site: Site, *values: Value) -> Value:
    handler = table.lookup(function)
    assert handler is not None
    return handler(site, values, {})


def arithmetic(name: str, left: tuple[Expr, Kind], right: tuple[Expr, Kind]) -> tuple[Expr, Kind]:
    """Return an operation on two typed expressions; `+ * -` of NumPy bools are NumPy's."""
    kind = join(left[1], right[1])
    if kind == BOOL and name in ("add", "mul", "sub"):
        if name == "sub":
            raise TypeError("`-` is not defined for bools; use `^`")
        name = "or" if name == "add" else "and"
    return apply(name, left, right)


def now(function: Callable[..., object], args: tuple[object, ...], span: Span) -> Static:
    """Return what Python computes from static values; its exception becomes CD0407 at `span`."""
    try:
        return Static(fold(function, args))
    except CdError:
        raise
    except Exception as problem:  # a user's constants may raise anything
        text = _failure_text(function, args, problem)
        raise error("CD0407", class_of(problem), text, span) from None


def _repeat_items(items: tuple[Value, ...], times: int, span: Span) -> tuple[Value, ...]:
    try:
        sequence: tuple[Value, ...] = fold(operator.mul, (items, times))
    except OverflowError as problem:
        raise error("CD0407", CdOverflowError, f"{problem}", span) from None
    return sequence


def unary_now(op: str, operand: Value, span: Span) -> Value | None:
    """Return an operator on a static operand, None for other values."""
    match operand:
        case Static(inner):
            return now(PYTHON_UNARY[op], (inner,), span)
        case Opaque() if (flags := identity.flags(op, operand)) is not None:
            return now(PYTHON_UNARY[op], flags, span)
        case _:
            return None


def _failure_text(
    function: Callable[..., object], args: tuple[object, ...], problem: Exception
) -> str:
    """Return a message why Python computes nothing from static values."""
    shown = " and ".join(describe(Static(arg)) for arg in args) or "nothing"
    sign = next((sign for sign, candidate in PYTHON.items() if candidate is function), None)
    match problem:
        case KeyError():
            return (
                f"there is no item {problem.args[0]!r}" if problem.args else "there is no such item"
            )
        case IndexError():
            return f"there is no item at that position (here: {shown})"
        case ZeroDivisionError():
            return f"division by zero (here: {shown})"
        case TypeError() if function is operator.getitem:
            return f"{describe(Static(args[0]))} has no item {args[1]!r}"
        case TypeError() if sign is not None:
            return f"`{sign}` is not defined for {shown}"
        case _:
            return f"{problem} (here: {shown})"


def as_affine(value: Value) -> Affine | None:
    """Return an integer as an affine index expression, None where it is not one."""
    match value:
        case Static(inner) if isinstance(inner, int) and not isinstance(inner, bool):
            return const(inner)
        case Scalar(Position(index), kind) if kind.dtype is dtypes.int64:
            return index
        case _:
            return None


def _combine_indices(op: str, left: Value, right: Value) -> Value | None:
    """Return an integer operation as an affine index expression, None where it is not one."""
    a, b = as_affine(left), as_affine(right)
    if a is None or b is None or op not in ("+", "-", "*", "//", "%"):
        return None
    hold(a, b)
    match op:
        case "+":
            result = a + b
        case "-":
            result = a - b
        case "*":
            result = multiply(a, b)
        case _:
            if b.constant is None or b.constant <= 0:
                return None
            result = floordiv(a, b) if op == "//" else mod(a, b)
    kinds = [value.kind for value in (left, right) if isinstance(value, Scalar)]
    kind = kinds[0] if len(kinds) == 1 or kinds[0].weak is False else kinds[-1]
    return Scalar(Position(result), kind)


def _refuse_run_time_texts(ctx: Context, op: str, left: Value, right: Value, span: Span) -> None:
    """Refuse (CD0402) a text that is made of what the run computes.

    An integer parameter that a text is repeated by becomes static.
    """
    is_left = isinstance(left, Static) and isinstance(left.value, str)
    text, other = (left, right) if is_left else (right, left)
    if not (isinstance(text, Static) and isinstance(text.value, str)) or as_python(other):
        return
    if op == "%" and is_left:
        raise error(
            "CD0402", CdTypeError, "a text is put together by an f-string here, not by `%`", span,
            helps=('write the values into it: `f"mean {v:.3f}"`',),
        )  # fmt: skip
    if op == "*" and isinstance(other, Scalar) and other.kind.dtype.kind in "iu":
        if isinstance(other.expr, Position):
            ctx.require_static(other.expr.index)
        raise error(
            "CD0402", CdTypeError, "a text is repeated here only as often as is known when "
            "compiling", span, helps=("print the number, or one text in each iteration of a loop",),
        )  # fmt: skip


def _combine_sequences(
    frame: Frame, op: str, left: Value, right: Value, span: Span
) -> Value | None:
    """Return `+` and `*` of sequences with Python's meaning; None where NumPy's applies."""
    a, b = items_of(left), items_of(right)
    if (is_range(left) or is_range(right)) and is_sequence(left) and is_sequence(right):
        raise error(
            "CD0404", CdTypeError,
            f"`{op}` is not defined for {describe(left)} and {describe(right)}", span,
            helps=("make a list or an array of the range: `list(range(n))`, `np.arange(n)`",),
        )  # fmt: skip
    if op == "+" and a is not None and b is not None:
        if (kind := sequence_kind(left)) == sequence_kind(right):
            return Group((*a, *b), kind)
        raise error(
            "CD0404", CdTypeError,
            f"`+` is not defined for {describe(left)} and {describe(right)}", span,
            helps=("make both tuples, or both lists: `(*a, *b)`",),
        )  # fmt: skip
    if op == "*" and isinstance(left, Group):
        return _repeated(frame, left, right, span)
    if op == "*" and isinstance(right, Group):
        return _repeated(frame, right, left, span)
    if any(map(_is_python_number, (left, right))):
        raise error(
            "CD0404", CdTypeError,
            f"`{op}` is not defined for {describe(left)} and {describe(right)}", span,
            helps=("make an array of the items first: `np.array([1, 2]) * x`",),
        )  # fmt: skip
    return None


def _repeated(frame: Frame, sequence: Group, times: Value, span: Span) -> Value | None:
    """Return a sequence times a number, Python's or NumPy's: its items repeated; None for the
    product with an array, which is elementwise.

    CdTypeError CD0404 for what is no whole number, CD0410 for one that only run time knows.
    """
    match times:
        case Static(int() | np.integer() as n):
            return Group(_repeat_items(sequence.items, int(n), span), sequence.kind)
        case Scalar(_, kind) if kind.weak or kind.dtype.kind in "iu":
            at = as_affine(times)
            if at is not None:
                frame.ctx.require_static(at)
            raise error(
                "CD0410", CdTypeError, "a tuple or list is repeated a whole number of times "
                f"known when compiling, not {describe(times)}", span,
                helps=("to multiply each element, make an array: `np.array([1, 2]) * x`",),
            )  # fmt: skip
        case Scalar() | Static():
            raise error(
                "CD0404", CdTypeError,
                f"`*` repeats {describe(sequence)}, and is given {describe(times)}", span,
                helps=("to multiply each element, make an array: `np.array([1, 2]) * x`",),
            )  # fmt: skip
        case _:
            return None


def sequence_kind(value: Value) -> str:
    """Return `tuple` or `list`: the type of a display or a static sequence."""
    static = value.value if isinstance(value, Static) else None
    return value.kind if isinstance(value, Group) else "list" if type(static) is list else "tuple"


def is_numpy(value: Value) -> bool:
    """Whether a value is an array or a number of NumPy's, which make an array of a list beside."""
    match value:
        case Array() | Masked():
            return not is_list(value)
        case Scalar(_, kind):
            return not kind.weak
        case Static(inner):
            return isinstance(inner, np.generic)
        case _:
            return isinstance(value, Handle)


def is_sequence(value: Value) -> bool:
    """Whether a value is a list, tuple or range of Python's."""
    return is_range(value) or is_list(value)


def is_range(value: Value) -> bool:
    """Whether a value is a range that is known when compiling."""
    return isinstance(value, Static) and isinstance(value.value, range)


def _is_python_number(value: Value) -> bool:
    """Whether a value is a number that does not convert a tuple operand to an array."""
    match value:
        case Static(inner):
            return kind_of_number(inner) is not None and not isinstance(inner, np.generic)
        case Scalar(_, kind):
            return kind.weak
        case _:
            return False


def inverted(pair: tuple[Expr, Kind]) -> tuple[Expr, Kind]:
    """Return `~x`: the negation of a NumPy bool, the bits of an integer inverted."""
    if pair[1] == BOOL:
        return negate(pair[0]), BOOL
    return apply("invert", pair, to=WEAK_INT if pair[1] == WEAK_BOOL else pair[1])


def positive(pair: tuple[Expr, Kind]) -> tuple[Expr, Kind]:
    """Return `+x`: the number itself, an int of a Python bool."""
    if pair[1] == BOOL:
        raise TypeError("`+` is not defined for bools; convert them: `x.astype(int)`")
    return (cast(pair[0], WEAK_INT.dtype), WEAK_INT) if pair[1] == WEAK_BOOL else pair


def refuse_overridden(op: str, left: Value, right: Value, span: Span) -> None:
    """Refuse (CD0402) an operator that the class of a named tuple overrides."""
    if isinstance(left, Group) or isinstance(right, Group):
        items = right.items if op in ("in", "not in") and isinstance(right, Group) else ()
        named_tuples.require_plain_operator(op, left, (right, *items), span)


def as_python(value: Value) -> Static | None:
    """Return a wholly static value as a Python object, None otherwise."""
    match value:
        case Static():
            return value
        case Group(items, kind):
            inner = [as_python(item) for item in items]
            if all(item is not None for item in inner):
                objects = [item.value for item in inner if item is not None]
                return Static(tuple(objects) if kind == "tuple" else objects)
    return None
