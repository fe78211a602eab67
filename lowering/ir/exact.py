"""Exact simplification of whole expressions, with what the loops around them tell.

`simplified` applies the rules of `algebra` from the inside out, resolves `min`, `max`, `//` and
`%` of index expressions and comparisons of positions where their ranges decide, and drops choices
and conversions that change nothing. The result has the same bits wherever the bounds hold.
"""

from __future__ import annotations

from dataclasses import replace

from . import dtypes, indexing
from .algebra import FALSE, RULES, TRUE, folded
from .bounds import COMPARED, Bounds, as_index, difference
from .dtypes import DType
from .expressions import Apply, Cast, Const, Dynamic, Expr, Index, Position, Read, Select, rebuild
from .indexing import Affine, Quasi, Symbol, const
from .intervals import negative, total
from .ops import OPS

_SAFE = 1 << 62
"""Positions below this can be added to one another without wrapping."""


def simplified(expr: Expr, known: Bounds) -> Expr:
    """Return the expression with every rule applied, inner expressions first."""
    match expr:
        case Const():
            return expr
        case Position(index):
            new = simplified_index(index, known)
            number = new.constant
            if number is not None and abs(number) < _SAFE:
                return Const(number, dtypes.int64)
            return expr if new is index else Position(new)
        case Select(test, yes, no):
            test = simplified(test, known)
            if isinstance(test, Const):
                return simplified(yes if test.value else no, known)
            yes = simplified(yes, known.where(test))
            return _settled(Select(test, yes, simplified(no, known.where(test, False))), known)
        case _:
            return _settled(rebuilt(expr, known), known)


def rebuilt(expr: Expr, known: Bounds) -> Expr:
    """Return the expression with its children and subscripts simplified."""
    new = rebuild(
        expr, lambda child: simplified(child, known), lambda i: simplified_index(i, known)
    )
    if isinstance(new, Read) and any(isinstance(i, Dynamic) for i in new.index):
        return replace(new, index=tuple(static(i) for i in new.index))
    return new


def static(index: Index) -> Index:
    """Return a data-dependent index that turned out to read nothing as a plain one."""
    found = as_index(index.value) if isinstance(index, Dynamic) else None
    return index if found is None else found


def simplified_index(index: Affine, known: Bounds) -> Affine:
    """Return the index expression with every `Quasi` resolved that the bounds decide."""
    if not any(isinstance(atom, Quasi) for atom, _ in index.terms):
        return index
    out = const(index.offset)
    for atom, k in index.terms:
        one = Affine(((atom, 1),), 0) if isinstance(atom, Symbol) else _quasi(atom, known)
        out = out + one * k
    return out


def _quasi(quasi: Quasi, known: Bounds) -> Affine:
    left, right = simplified_index(quasi.left, known), simplified_index(quasi.right, known)
    match quasi.op:
        case "min" | "max":
            low, high = known.interval(left - right)
            below, above = (left, right) if quasi.op == "min" else (right, left)
            if high is not None and high <= 0:
                return below
            if low is not None and low >= 0:
                return above
        case "floordiv" | "mod":
            found = _quotient(left, right, known)
            if found is not None:
                return const(found) if quasi.op == "floordiv" else left - right * found
        case "mul":
            pass
    return indexing.BUILDERS[quasi.op](left, right)


def _quotient(left: Affine, right: Affine, known: Bounds) -> int | None:
    """Return the floor of left / right where it is one number for all values, else None."""
    by = right.constant
    low, high = known.interval(left)
    if by is not None and by > 0:
        if low is None or high is None or low // by != high // by:
            return None
        return low // by
    inside = known.most(left - right)
    return 0 if low is not None and low >= 0 and inside is not None and inside < 0 else None


def _settled(expr: Expr, known: Bounds) -> Expr:
    """Return what is left after applying rules at the top until none fits."""
    while True:
        new = _once(expr, known)
        if new is None:
            return expr
        expr = new


def _once(expr: Expr, known: Bounds) -> Expr | None:
    match expr:
        case Apply(op, args, _):
            if all(isinstance(arg, Const) for arg in args):
                return folded(expr)
            for rule in RULES.get(op.name, ()):
                new = rule(expr)
                if new is not None:
                    return new
            return _proven(expr, known) or _position(expr, known) or _narrow(expr)
        case Cast():
            return _cast(expr)
        case Select():
            return _select(expr)
        case _:
            return None


# -------------------------------------------------------------------------------------- positions


def _proven(test: Apply, known: Bounds) -> Expr | None:
    """A comparison of whole numbers that loops around it, or their types, decide."""
    found = difference(test)
    if found is not None:
        name, (low, high) = found[0], known.interval(found[1])
    elif test.op.name in COMPARED and test.args[0].dtype.kind in "iu":
        if test.args[0].dtype is not test.args[1].dtype:
            return None
        left, right = map(known.value, test.args)
        name, (low, high) = test.op.name, total(right, negative(left))
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


def _narrow(test: Apply) -> Expr | None:
    """A comparison of whole numbers in the type that they were converted from."""
    if test.op.name not in COMPARED:
        return None
    sources = {arg.value.dtype for arg in test.args if isinstance(arg, Cast)}
    source, wide = next(iter(sources), test.args[0].dtype), test.args[0].dtype
    if len(sources) != 1 or {source.kind, wide.kind} - {"i", "u"} or not _keeps(source, wide):
        return None
    args: list[Expr] = []
    for arg in test.args:
        match arg:
            case Cast(value):
                args.append(value)
            case Const(number) if (small := folded(Cast(arg, source))) and small.value == number:
                args.append(small)
            case _:
                return None
    return replace(test, args=tuple(args))


def _position(expr: Apply, known: Bounds) -> Expr | None:
    """Integer arithmetic on positions that cannot wrap, as one position."""
    args = [as_index(arg) for arg in expr.args]
    if expr.dtype != dtypes.int64 or None in args:
        return None
    found = _affine(expr.op.name, [arg for arg in args if arg is not None])
    if found is None:
        return None
    low, high = known.interval(found)
    if low is None or high is None or low < -_SAFE or high > _SAFE:
        return None
    return Position(simplified_index(found, known))


def _affine(name: str, args: list[Affine]) -> Affine | None:
    match name, args:
        case "add", [left, right]:
            return left + right
        case "sub", [left, right]:
            return left - right
        case "neg", [one]:
            return -one
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


def _cast(expr: Cast) -> Expr | None:
    value, out = expr.value, expr.dtype
    if value.dtype == out:
        return value
    match value:
        case Const():
            return folded(expr)
        case Select(test, Const() as yes, Const() as no):
            one, two = folded(Cast(yes, out)), folded(Cast(no, out))
            return None if one is None or two is None else Select(test, one, two)
        case Cast(inner, middle) if _keeps(inner.dtype, middle) and _direct(inner.dtype, out):
            narrow = middle.kind == "f" and inner.dtype.kind in "iu" and out.kind in "iu"
            if narrow and not _keeps(inner.dtype, out):
                return None  # through a float it saturates, directly it wraps
            return Cast(inner, out)
        case _:
            return None


def _direct(source: DType, target: DType) -> bool:
    """Whether a conversion may be made of two: not for the 16-bit floats, nor for complex."""
    return all(d.kind in "biu" or d.kind == "f" and d.bits >= 32 for d in (source, target))


def _keeps(source: DType, target: DType) -> bool:
    """Whether every value of the first type is one of the second."""
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


# ----------------------------------------------------------------------------------------- choice


def _select(expr: Select) -> Expr | None:
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
