"""Expressions of index notation at one point, as NumPy scalars: the other half of the oracle."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

Letters = Mapping[str, int]
REDUCTIONS = ("sum", "prod", "max", "min", "any", "all", "mean", "argmax", "argmin")


class FirstZero:
    """An extreme of NumPy, of two zeros the first: which one NumPy returns depends on the machine,
    and for `fmax` and `fmin` on the position in the array."""

    def __init__(self, ufunc: np.ufunc) -> None:
        self._ufunc = ufunc

    def __call__(self, *operands: Any, **options: Any) -> Any:
        best = self._ufunc(*operands, **options)
        if options or len(operands) != 2:
            return best
        a, b = operands
        return np.where(np.equal(a, b), a, best).astype(best.dtype)[()]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ufunc, name)


def first_zero_of(reduction: Callable[..., Any]) -> Callable[..., Any]:
    """Return a reduction of NumPy to an extreme, of several zeros the first."""

    def reduced(array: Any, axis: Any = None, **options: Any) -> Any:
        best = reduction(array, axis=axis, **options)
        if options.keys() - {"keepdims"} or isinstance(axis, tuple):
            return best
        along = np.asarray(array) if axis is not None else np.ravel(array)
        equal = along == (best if axis is None or options else np.expand_dims(best, axis))
        first = np.expand_dims(np.argmax(equal, axis=axis or 0), axis or 0)
        found = np.take_along_axis(along, first, axis or 0).reshape(np.shape(best))
        return np.where(np.equal(best, 0), found, best).astype(np.result_type(best))[()]

    return reduced


def joined_extreme(choose: Callable[..., Any]) -> Callable[..., Any]:
    """Return Python's `max` or `min`, of several numbers in their joined type."""

    def chosen(*values: Any, **options: Any) -> Any:
        best = choose(*values, **options)
        numbers = len(values) > 1 and all(isinstance(v, int | float | np.number) for v in values)
        if not numbers or not any(isinstance(v, np.number) for v in values):
            return best
        return np.result_type(*values).type(best)

    return chosen


class FirstZeros:
    """NumPy with such extremes."""

    maximum, minimum = FirstZero(np.maximum), FirstZero(np.minimum)
    fmax, fmin = FirstZero(np.fmax), FirstZero(np.fmin)
    max, min, amax, amin, nanmax, nanmin = (
        staticmethod(first_zero_of(reduction))
        for reduction in (np.max, np.min, np.amax, np.amin, np.nanmax, np.nanmin)
    )

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


larger, smaller = FirstZeros.maximum, FirstZeros.minimum


def of_pythons(choose: Callable[..., Any]) -> Callable[..., Any]:
    """Return Python's `max` or `min` as the language has it: a NaN among the values wins."""

    def chosen(*values: Any) -> Any:
        items = list(values if len(values) > 1 else values[0])
        best = choose(items)
        return next((item for item in items if item != item), best)

    return chosen


_BINARY: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.Pow: operator.pow, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
}  # fmt: skip
_BY_SIGN = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
            "//": operator.floordiv, "%": operator.mod, "**": operator.pow,
            "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift,
            ">>": operator.rshift, "max": larger, "min": smaller}  # fmt: skip
_COMPARE: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
_UNARY: dict[type[ast.AST], Callable[[Any], Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: operator.not_,
    ast.Invert: operator.invert,
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs, "sqrt": np.sqrt, "floor": np.floor, "ceil": np.ceil, "sign": np.sign,
    "f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "range": range,
    "len": len,
}  # fmt: skip


class Unknown(Exception):
    """Something that this oracle does not know."""


@dataclass(frozen=True, slots=True)
class _Outside:
    """A subscript that is brought into range: `clamp`, `wrap` or `pad`."""

    how: str
    index: int
    fill: Any = 0


Run = Callable[[Mapping[str, Any], Letters, Any], Any]
"""Gives the value of an expression for variables, a point, and the statement it stands in."""


def evaluate(node: ast.expr, state: Mapping[str, Any], point: Letters, statement: Any) -> Any:
    """Return the value of an expression at a point. Raises Unknown, IndexError."""
    return _prepared(node)(state, point, statement)


def _prepared(node: ast.expr) -> Run:
    """Return an expression as a function, made once: it is evaluated at many points."""
    run: Run | None = getattr(node, "run", None)
    if run is None:
        run = node.run = _as_function(node)
    return run


def _as_function(node: ast.expr) -> Run:
    match node:
        case ast.Constant(value):
            return lambda state, point, of: value
        case ast.Name(id=name):
            return partial(_named, name)
        case ast.BinOp(left, op, right):
            binary, one, other = _BINARY[type(op)], _prepared(left), _prepared(right)
            return lambda state, point, of: binary(one(state, point, of), other(state, point, of))
        case ast.UnaryOp(op, operand):
            unary, inner = _UNARY[type(op)], _prepared(operand)
            return lambda state, point, of: unary(inner(state, point, of))
        case ast.BoolOp(op=op, values=values):
            join, items = all if isinstance(op, ast.And) else any, [_prepared(v) for v in values]
            return lambda state, point, of: join(item(state, point, of) for item in items)
        case ast.Compare(left, ops, comparators):
            return _comparison([_COMPARE[type(op)] for op in ops], [left, *comparators])
        case ast.IfExp(test, yes, no):
            return _selection(test, yes, no)
        case ast.Subscript(value=ast.Name(id=name), slice=index):
            subs = index.elts if isinstance(index, ast.Tuple) else [index]
            runs = [_prepared(sub) for sub in subs]
            return lambda state, point, of: _element(
                state[name], [run(state, point, of) for run in runs]
            )
        case ast.Call(func=ast.Name(id="where"), args=[test, yes, no]):
            return _selection(test, yes, no)
        case ast.Call():
            words = {n.id for a in node.args for n in ast.walk(a) if isinstance(n, ast.Name)}
            return partial(_called, node, words <= {"abs"})
    raise Unknown(ast.unparse(node))


def _named(name: str, state: Mapping[str, Any], point: Letters, statement: Any) -> Any:
    if name in point:
        return point[name]
    return float("inf") if name == "inf" else state[name]


def _comparison(signs: list[Callable[[Any, Any], Any]], sides: list[ast.expr]) -> Run:
    runs = [_prepared(side) for side in sides]

    def run(state: Mapping[str, Any], point: Letters, statement: Any) -> Any:
        parts = [side(state, point, statement) for side in runs]
        results = [sign(a, b) for sign, a, b in zip(signs, parts, parts[1:])]
        return results[0] if len(results) == 1 else all(results)

    return run


def _selection(test: ast.expr, yes: ast.expr, no: ast.expr) -> Run:
    decides, one, other = _prepared(test), _prepared(yes), _prepared(no)
    return lambda state, point, of: _select(
        bool(decides(state, point, of)), lambda: one(state, point, of),
        lambda: other(state, point, of),
    )  # fmt: skip


def _called(
    node: ast.Call, is_constant: bool, state: Mapping[str, Any], point: Letters, statement: Any
) -> Any:
    def of(part: ast.expr) -> Any:
        return _prepared(part)(state, point, statement)

    match node:
        case ast.Call(func=ast.Subscript(value=ast.Name(id=name), slice=binders), args=[expr]):
            parts = list(binders.elts) if isinstance(binders, ast.Tuple) else [binders]
            return statement.reduce(name, expr, parts, state, point)
        case ast.Call(func=ast.Name(id=name), args=[expr]) if name in REDUCTIONS:
            return statement.reduce(name, expr, None, state, point)
        case ast.Call(func=ast.Name(id=("max" | "min") as name), args=args):
            values = [of(arg) for arg in args]
            best = values[0]
            if is_constant:
                return (max if name == "max" else min)(values)  # as Python, when compiling
            if all(type(value) in (int, float) for value in values):
                kind = float if float in map(type, values) else int
                return kind((max if name == "max" else min)(values))  # one type for all points
            for value in values[1:]:
                best = (larger if name == "max" else smaller)(best, value)
            return best
        case ast.Call(func=ast.Name(id=("clamp" | "wrap" | "pad") as name), args=args):
            return _Outside(name, *(of(arg) for arg in args))
        case ast.Call(func=ast.Name(id=name), args=args) if name in _FUNCTIONS:
            values = [of(arg) for arg in args]
            result = _FUNCTIONS[name](*values)
            cast = name in ("f32", "f64", "i32", "i64")
            weak = not cast and all(type(value) in (int, float, complex) for value in values)
            return result.item() if weak and isinstance(result, np.generic) else result
    raise Unknown(ast.unparse(node))


def _select(test: bool, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    """Return one of two values in the type of both."""
    value = yes() if test else no()
    try:
        other = no() if test else yes()
    except IndexError:
        return value
    if type(value) in (int, float, bool) and type(other) in (int, float, bool):
        joined = np.result_type(type(value), type(other))
        return joined.type(value).item()
    return np.result_type(value, other).type(value)


def _element(array: np.ndarray, subs: list[Any]) -> Any:
    """Return an element; a subscript never wraps."""
    place = []
    for extent, sub in zip(array.shape, subs, strict=True):
        index = sub.index if isinstance(sub, _Outside) else sub
        match sub:
            case _Outside("clamp"):
                index = min(max(index, 0), extent - 1)
            case _Outside("wrap"):
                index %= extent
            case _Outside("pad", _, fill) if not 0 <= index < extent:
                return array.dtype.type(fill)
        if not 0 <= index < extent:
            raise IndexError(f"{index} in {array.shape}")
        place.append(int(index))
    return array[tuple(place)]


def stored(old: Any, op: str | None, value: Any, dtype: np.dtype) -> Any:
    """Return what an element becomes."""
    made = value if op is None else _BY_SIGN[op](old, value)
    return np.asarray(made).astype(dtype)[()]


def reduce_values(name: str, found: list[tuple[tuple[int, ...], Any]]) -> Any:
    """Return the reduction of values in their order."""
    values = [value for _, value in found]
    if name in ("any", "all"):
        return np.bool_((any if name == "any" else all)(bool(v) for v in values))
    if not values:
        raise Unknown("the type of a reduction of nothing")
    dtype = np.result_type(*{type(v): v for v in values}.values())
    if name in ("argmax", "argmin"):
        best = getattr(np, name)(np.array(values, dtype))
        return np.int64(found[int(best)][0][-1])
    if name in ("max", "min") and len({type(v) for v in values} | {int, float}) == 2:
        return (max if name == "max" else min)(values)  # still a Python number
    if name in ("max", "min"):
        total = dtype.type(values[0])
        for value in values[1:]:
            total = (larger if name == "max" else smaller)(total, dtype.type(value))
        return total
    if name in ("sum", "prod") and all(type(v) in (int, float) for v in values):
        number = sum(values) if name == "sum" else math.prod(values)  # still a Python number
        if not -(2**63) <= number < 2**63:
            raise Unknown("an integer of more than 64 bits")
        return number
    if name == "mean" and all(type(v) in (int, float) for v in values):
        return sum(map(float, values)) / len(values)  # still a Python number
    wide = _accumulated(dtype)
    if name == "mean" and wide.kind in "iu":
        wide = np.dtype(np.float64)
    total = wide.type(1 if name == "prod" else 0)
    for value in values:
        total = total * wide.type(value) if name == "prod" else total + wide.type(value)
    if name == "mean":
        return total / wide.type(len(values))
    return total


def _accumulated(dtype: np.dtype) -> np.dtype:
    """Return the type that a sum is made in."""
    if dtype.kind == "b" or dtype.kind == "i":
        return np.dtype(np.int64)
    return np.dtype(np.uint64) if dtype.kind == "u" else dtype
