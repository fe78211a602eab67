"""Exact simplification of whole expressions, under the range facts of the enclosing loops.

`simplify_expr` applies the rules of `algebra` bottom-up, resolves `min`, `max`, `//` and `%` of
index expressions and comparisons of positions where their ranges decide, and drops selects and
conversions without effect. The result is bit-identical wherever the bounds hold.
"""

from __future__ import annotations

from dataclasses import replace

from . import dtypes, indexing
from .algebra import FALSE, RULES, TRUE, fold_constants
from .bounds import COMPARISONS, Bounds, as_index, difference
from .dtypes import DType
from .expressions import Apply, Cast, Const, Dynamic, Expr, Index, Position, Read, Select, rebuild
from .indexing import Affine, Quasi, Symbol, const
from .intervals import add_intervals, negate_interval
from .ops import OPS

_SAFE = 1 << 62
"""Positions below this can be added without wrapping."""


def simplify_expr(expr: Expr, bounds: Bounds) -> Expr:
    """Return the expression with every rule applied, subexpressions first."""
    match expr:
        case Const():
            return expr
        case Position(index):
            new = simplify_index(index, bounds)
            number = new.constant
            if number is not None and abs(number) < _SAFE:
                return Const(number, dtypes.int64)
            return expr if new is index else Position(new)
        case Select(test, yes, no):
            test = simplify_expr(test, bounds)
            if isinstance(test, Const):
                return simplify_expr(yes if test.value else no, bounds)
            yes = simplify_expr(yes, bounds.where(test))
            return _apply_rules(
                Select(test, yes, simplify_expr(no, bounds.where(test, False))), bounds
            )
        case _:
            return _apply_rules(simplify_children(expr, bounds), bounds)


def simplify_children(expr: Expr, bounds: Bounds) -> Expr:
    """Return the expression with its children and subscripts simplified."""
    new = rebuild(
        expr, lambda child: simplify_expr(child, bounds), lambda i: simplify_index(i, bounds)
    )
    if isinstance(new, Read) and any(isinstance(i, Dynamic) for i in new.index):
        return replace(new, index=tuple(as_static(i) for i in new.index))
    return new


def as_static(index: Index) -> Index:
    """Return a data-dependent subscript that reads nothing as an affine one."""
    affine = as_index(index.value) if isinstance(index, Dynamic) else None
    return index if affine is None else affine


def simplify_index(index: Affine, bounds: Bounds) -> Affine:
    """Return the index expression with every `Quasi` resolved that the bounds decide."""
    if not any(isinstance(atom, Quasi) for atom, _ in index.terms):
        return index
    out = const(index.offset)
    for atom, k in index.terms:
        value = (
            Affine(((atom, 1),), 0) if isinstance(atom, Symbol) else _simplify_quasi(atom, bounds)
        )
        out = out + value * k
    return out


def _simplify_quasi(quasi: Quasi, bounds: Bounds) -> Affine:
    left, right = simplify_index(quasi.left, bounds), simplify_index(quasi.right, bounds)
    match quasi.op:
        case "min" | "max":
            low, high = bounds.interval(left - right)
            below, above = (left, right) if quasi.op == "min" else (right, left)
            if high is not None and high <= 0:
                return below
            if low is not None and low >= 0:
                return above
        case "floordiv" | "mod":
            quotient = _constant_quotient(left, right, bounds)
            if quotient is not None:
                return const(quotient) if quasi.op == "floordiv" else left - right * quotient
        case "mul":
            pass
    return indexing.QUASI_BUILDERS[quasi.op](left, right)


def _constant_quotient(left: Affine, right: Affine, bounds: Bounds) -> int | None:
    """Return the floor of left / right where it is one number for all values, else None."""
    by = right.constant
    low, high = bounds.interval(left)
    if by is not None and by > 0:
        if low is None or high is None or low // by != high // by:
            return None
        return low // by
    inside = bounds.most(left - right)
    return 0 if low is not None and low >= 0 and inside is not None and inside < 0 else None


def _apply_rules(expr: Expr, bounds: Bounds) -> Expr:
    """Return the fixed point of the rules at the root of an expression."""
    while True:
        new = _apply_rule(expr, bounds)
        if new is None:
            return expr
        expr = new


def _apply_rule(expr: Expr, bounds: Bounds) -> Expr | None:
    match expr:
        case Apply(op, args, _):
            if all(isinstance(arg, Const) for arg in args):
                return fold_constants(expr)
            for rule in RULES.get(op.name, ()):
                new = rule(expr)
                if new is not None:
                    return new
            return (
                _decide_comparison(expr, bounds)
                or _fold_position(expr, bounds)
                or _narrow_comparison(expr)
            )
        case Cast():
            return _simplify_cast(expr)
        case Select():
            return _simplify_select(expr)
        case _:
            return None


# -------------------------------------------------------------------------------------- positions


def _decide_comparison(test: Apply, bounds: Bounds) -> Expr | None:
    """Decide a comparison of integers by the enclosing loops, or by their types."""
    comparison = difference(test)
    if comparison is not None:
        name, (low, high) = comparison[0], bounds.interval(comparison[1])
    elif test.op.name in COMPARISONS and test.args[0].dtype.kind in "iu":
        if test.args[0].dtype is not test.args[1].dtype:
            return None
        left, right = map(bounds.value, test.args)
        name, (low, high) = test.op.name, add_intervals(right, negate_interval(left))
    else:
        return None
    below = high is not None and high < 0
    above = low is not None and low > 0
    at_most, at_least = high is not None and high <= 0, low is not None and low >= 0
    true = {"lt": above, "le": at_least, "gt": below, "ge": at_most,
            "eq": low == high == 0, "ne": below or above}  # fmt: skip
    false = {"lt": at_most, "le": below, "gt": at_least, "ge": above,
             "eq": below or above, "ne": low == high == 0}  # fmt: skip
    return TRUE if true[name] else FALSE if false[name] else None


def _narrow_comparison(test: Apply) -> Expr | None:
    """Return a comparison of integers in the type that they were converted from."""
    if test.op.name not in COMPARISONS:
        return None
    sources = {arg.value.dtype for arg in test.args if isinstance(arg, Cast)}
    source, wide = next(iter(sources), test.args[0].dtype), test.args[0].dtype
    if len(sources) != 1 or {source.kind, wide.kind} - {"i", "u"} or not _is_lossless(source, wide):
        return None
    args: list[Expr] = []
    for arg in test.args:
        match arg:
            case Cast(value):
                args.append(value)
            case Const(number) if (
                small := fold_constants(Cast(arg, source))
            ) and small.value == number:
                args.append(small)
            case _:
                return None
    return replace(test, args=tuple(args))


def _fold_position(expr: Apply, bounds: Bounds) -> Expr | None:
    """Return integer arithmetic on positions that cannot wrap as one position."""
    args = [as_index(arg) for arg in expr.args]
    if expr.dtype != dtypes.int64 or None in args:
        return None
    affine = _affine_operation(expr.op.name, [arg for arg in args if arg is not None])
    if affine is None:
        return None
    low, high = bounds.interval(affine)
    if low is None or high is None or low < -_SAFE or high > _SAFE:
        return None
    return Position(simplify_index(affine, bounds))


def _affine_operation(name: str, args: list[Affine]) -> Affine | None:
    match name, args:
        case "add", [left, right]:
            return left + right
        case "sub", [left, right]:
            return left - right
        case "neg", [operand]:
            return -operand
        case "mul", [left, right] if None in (left.constant, right.constant):
            return None if left.terms and right.terms else indexing.multiply(left, right)
        case "floordiv" | "mod", [left, Affine((), by)] if by > 0:
            return (indexing.floordiv if name == "floordiv" else indexing.mod)(left, const(by))
        case "max", [left, right]:
            return indexing.maximum(left, right)
        case "min", [left, right]:
            return indexing.minimum(left, right)
        case _:
            return None


# ------------------------------------------------------------------------------------ conversions


def _simplify_cast(expr: Cast) -> Expr | None:
    value, out = expr.value, expr.dtype
    if value.dtype == out:
        return value
    match value:
        case Const():
            return fold_constants(expr)
        case Select(test, Const() as yes, Const() as no):
            if_true, if_false = fold_constants(Cast(yes, out)), fold_constants(Cast(no, out))
            return None if if_true is None or if_false is None else Select(test, if_true, if_false)
        case Cast(inner, middle) if _is_lossless(inner.dtype, middle) and _is_direct(
            inner.dtype, out
        ):
            narrow = middle.kind == "f" and inner.dtype.kind in "iu" and out.kind in "iu"
            if narrow and not _is_lossless(inner.dtype, out):
                return None  # through a float it saturates, directly it wraps
            return Cast(inner, out)
        case _:
            return None


def _is_direct(source: DType, target: DType) -> bool:
    """Whether one conversion may replace two: not for the 16-bit floats, nor for complex."""
    return all(d.kind in "biu" or d.kind == "f" and d.bits >= 32 for d in (source, target))


def _is_lossless(source: DType, target: DType) -> bool:
    """Whether a conversion is lossless: every value of the first type is one of the second."""
    digits = {16: 11, 32: 24, 64: 53}
    match source.kind, target.kind:
        case ("b", "i" | "u" | "f") | ("b", "b"):
            return True
        case ("i", "i") | ("u", "u"):
            return source.bits <= target.bits
        case "u", "i":
            return source.bits < target.bits
        case (("i" | "u"), "f"):
            return target is not dtypes.bfloat16 and source.bits <= digits[target.bits]
        case "f", "f":
            return source.bits >= 32 and source.bits <= target.bits
        case _:
            return False


# ---------------------------------------------------------------------------------------- selects


def _simplify_select(expr: Select) -> Expr | None:
    test, yes, no = expr.test, expr.yes, expr.no
    match test:
        case Const(value):
            return yes if value else no
        case Apply(op, (inner,), _) if op.name == "logical_not":
            return Select(inner, no, yes)
        case _:
            pass
    if yes == no:
        return yes
    if isinstance(yes, Select) and yes.test == test:
        return Select(test, yes.yes, no)
    if isinstance(no, Select) and no.test == test:
        return Select(test, yes, no.no)
    match yes, no:
        case Const(True), Const(False) if yes.dtype == dtypes.bool_:
            return test
        case Const(False), Const(True) if yes.dtype == dtypes.bool_:
            return Apply(OPS["logical_not"], (test,), dtypes.bool_)
        case _:
            return None
