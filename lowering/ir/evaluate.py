"""What expressions, indices and domains are worth: the lower half of the interpreter.

Each is turned once into a Python function of the `State`, which is then called point by point.
An access outside its array is our bug and raises `CdInternalError`.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from ..dataclass import dataclass
from ..diagnostic import CdInternalError, Diagnostic
from .assignments import Access
from .dtypes import DType
from .expressions import (
    Apply,
    Cast,
    Const,
    Domain,
    Dynamic,
    Expr,
    Index,
    Position,
    Read,
    Reduce,
    Select,
)
from .indexing import Affine, Quasi, Symbol
from .node import Node
from .ops import Op, neutral_of

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class State:
    """What a running program knows: the array behind each node id, the number of each symbol."""

    show: Callable[[str], None]
    arrays: dict[int, Array] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    """By the `key` of each symbol: a text keeps its hash."""

    def array(self, node: Node) -> Array:
        """The array behind a node. Raises CdInternalError where it has no storage yet."""
        found = self.arrays.get(node.id)
        if found is None:
            raise broken(f"{node} has no storage")
        return found


def key(symbol: Symbol) -> str:
    """Return what a symbol is called in the numbers of a state."""
    return f"{symbol.name}.{symbol.serial}"


_LIMIT = 2**63
Eval = Callable[[State], Any]
Place = tuple[Array, tuple[int, ...]]


def broken(text: str) -> CdInternalError:
    """Return the error for a program that no lowering may produce."""
    return CdInternalError(Diagnostic("CD0991", f"an impossible program was interpreted: {text}"))


def value_of(expr: Expr) -> Eval:
    """Return the function from a state to the expression's value, a NumPy scalar of its dtype."""
    match expr:
        case Const(value, dtype):
            constant = dtype.numpy.type(value)
            return lambda state: constant
        case Read(node, index):
            return _element(Access(node, index))
        case Position(index):
            number = number_of(index)
            return lambda state: np.int64(number(state))
        case Apply(op, args, _):
            return _applied(meaning_of(op, args[0].dtype), [value_of(arg) for arg in args])
        case Cast(value, dtype):
            inner, convert = value_of(value), _conversion(value.dtype, dtype)
            return lambda state: convert(inner(state))
        case Select(test, yes, no):
            holds, if_so, if_not = value_of(test), value_of(yes), value_of(no)
            return lambda state: if_so(state) if holds(state) else if_not(state)
        case Reduce():
            return _reduce(expr)
        case _:
            assert_never(expr)


def _applied(meaning: Callable[..., Any], operands: list[Eval]) -> Eval:
    match operands:
        case [one]:
            return lambda state: meaning(one(state))
        case [left, right]:
            return lambda state: meaning(left(state), right(state))
        case [a, b, c]:
            return lambda state: meaning(a(state), b(state), c(state))
        case _:
            return lambda state: meaning(*[operand(state) for operand in operands])


def _reduce(expr: Reduce) -> Eval:
    points, value, position = points_of(expr.domain), value_of(expr.value), expr.position
    if position is not None:
        return _reduce_pair(expr.op, points, value, number_of(position))
    dtype, meaning = expr.dtype, meaning_of(expr.op, expr.dtype)
    neutral = dtype.numpy.type(neutral_of(expr.op, dtype.kind, dtype.bits))

    def evaluate(state: State) -> Any:
        total = neutral
        for _ in points(state):
            total = meaning(total, value(state))
        return total

    return evaluate


def _reduce_pair(
    op: Op, points: Callable[[State], Iterable[None]], value: Eval, position: Eval
) -> Eval:
    def evaluate(state: State) -> Any:
        best, found = None, -1
        for _ in points(state):
            candidate = value(state)
            if found < 0 or beats(op, candidate, best):
                best, found = candidate, position(state)
        return np.int64(found)

    return evaluate


def meaning_of(op: Op, dtype: DType) -> Callable[..., Any]:
    """Return the op's NumPy meaning, with three differences.

    NumPy raises on negative exponents of integers, rounds complex products once or twice as
    the processor has it, and makes a square root of the exponent 0.5 of a scalar.
    """
    if op.name in ("pow", "whole_pow", "half_pow") and dtype.kind == "f":
        return _real_power
    if op.name == "pow" and dtype.kind in "iu":
        return _integer_power
    if dtype.kind == "c":
        return _complex_product if op.name == "mul" else op.meaning
    return _OF_SCALARS.get(op.name, op.meaning)


_OF_SCALARS: dict[str, Callable[..., Any]] = {
    "neg": operator.neg, "add": operator.add, "sub": operator.sub, "mul": operator.mul,
    "product": operator.mul, "div": operator.truediv, "eq": operator.eq, "ne": operator.ne,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "bitand": operator.and_, "bitor": operator.or_, "bitxor": operator.xor,
}  # fmt: skip
"""What computes the same of scalars without the search of a universal function for its loop."""


def _complex_product(a: Any, b: Any) -> Any:
    """Return a product of which every operation is rounded."""
    re, im, by_re, by_im = a.real, a.imag, b.real, b.imag
    return type(a)(complex(re * by_re - im * by_im, re * by_im + im * by_re))


def _real_power(base: Any, exponent: Any) -> Any:
    """Return C's `pow`, which of the infinity and the zero below 0 to the power 0.5 has no sign."""
    try:
        return type(base)(math.pow(base, exponent))
    except (ValueError, OverflowError):  # a value outside the reals or the range: NumPy names it
        return np.power(np.full(2, base), np.full(2, exponent))[0]


def _integer_power(base: Any, exponent: Any) -> Any:
    if exponent >= 0:
        return np.power(base, exponent)
    if base == 1 or (base == -1 and exponent % 2 == 0):
        return type(base)(1)
    return type(base)(-1 if base == -1 else 0)


def _conversion(source: DType, target: DType) -> Callable[[Any], Any]:
    """Return the conversion of a scalar of one type into another; see `Cast`."""
    numpy_type = target.numpy
    if target.kind == "b":
        return lambda value: np.bool_(value != 0)
    if source.kind == "c" and target.kind != "c":
        from_real = _conversion(source.real, target)
        return lambda value: from_real(value.real)
    if source.kind == "f" and target.kind in "iu":
        return lambda value: numpy_type.type(_saturate(float(value), target))
    return lambda value: value.astype(numpy_type)


def _saturate(value: float, target: DType) -> int:
    lo = 0 if target.kind == "u" else -(1 << (target.bits - 1))
    hi = lo + (1 << target.bits) - 1
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return hi if value > 0 else lo
    return min(max(int(value), lo), hi)


def points_of(domain: Domain) -> Callable[[State], Iterable[None]]:
    """Return a function that binds the domain's symbols to each of its points, in order."""
    ranges = [(key(r.symbol), number_of(r.lo), number_of(r.hi)) for r in domain.ranges]
    holds = None if domain.where is None else value_of(domain.where)

    if not ranges:
        return (
            (lambda state: _ONCE) if holds is None else lambda state: _ONCE if holds(state) else ()
        )

    def visit(state: State, depth: int) -> Iterator[None]:
        name, lo, hi = ranges[depth]
        numbers, is_last = state.numbers, depth == len(ranges) - 1
        for numbers[name] in range(lo(state), hi(state)):
            if not is_last:
                yield from visit(state, depth + 1)
            elif holds is None or holds(state):
                yield

    return lambda state: visit(state, 0)


_ONCE = (None,)


def place_of(access: Access) -> Callable[[State], Place]:
    """Return the function from a state to the array and the cell; raises where it leaves it."""
    return _found(access, "array, cell")


def _element(access: Access) -> Eval:
    return _found(access, "array[cell]")


def _found(access: Access, what: str) -> Callable[[State], Any]:
    """Return the function from a state to something of an array and a cell of it."""
    known: list[Any] = []
    written = [_written(index, known) for index in access.index]
    node = access.node

    def leaves(cell: tuple[int, ...], array: Array) -> CdInternalError:
        return broken(f"{node} of shape {array.shape} is accessed at {cell}")

    return _finder(tuple(written), what)(node, leaves, known)


def _written(index: Index, known: list[Any]) -> str:
    """Return the Python of an index, with `?` for each of what is known, which is added."""
    terms = () if isinstance(index, Dynamic) else index.terms
    if isinstance(index, Dynamic) or not all(isinstance(atom, Symbol) for atom, _ in terms):
        known.append(_subscript(index))
        return "?(state)"
    parts = []
    for symbol, factor in terms:
        assert isinstance(symbol, Symbol)
        known += (key(symbol),) if factor == 1 else (key(symbol), factor)
        parts.append("numbers[?]" if factor == 1 else "numbers[?] * ?")
    if index.offset or not parts:
        known.append(index.offset)
        parts.append("?")
    return " + ".join(parts)


@functools.cache
def _finder(indices: tuple[str, ...], what: str) -> Callable[..., Callable[[State], Any]]:
    """Return the maker of functions that find what they return at indices written in Python.

    One text does for all accesses of a form, so that few are compiled.
    """
    numbers = itertools.count()
    held = [re.sub(r"\?", lambda _: f"k{next(numbers)}", index) for index in indices]
    at = range(len(held))
    cell, size = (f"({''.join(f'{of}{n}, ' for n in at)})" for of in "cs")
    found = "".join(f"\n        c{n} = {index}" for n, index in enumerate(held))
    within = " and ".join(f"0 <= c{n} < s{n}" for n in at) or True
    wrapped = "".join(f"\n            c{n} = wrapped(c{n})" for n in at)
    names = "".join(f"k{n}, " for n in range(next(numbers)))
    text = f"""\
def made(node, leaves, known):
    key, ({names}) = node.id, known
    def find(state):
        numbers, array = state.numbers, state.arrays.get(key)
        if array is None:
            array = state.array(node)
        {size} = array.shape{found}
        if not ({within}):{wrapped}
            if not ({within}):
                raise leaves({cell}, array)
        return {what.replace("cell", cell)}
    return find
"""
    scope: dict[str, Any] = {"wrapped": _wrapped}
    exec(text, scope)  # noqa: S102 - the text above, of which the parts are written here
    made: Callable[..., Callable[[State], Any]] = scope["made"]
    return made


def _subscript(index: Index) -> Callable[[State], int]:
    if isinstance(index, Dynamic):
        value = value_of(index.value)
        return lambda state: int(value(state))
    return number_of(index)


def number_of(index: Affine) -> Callable[[State], int]:
    """Return the function from a state to the number of an index expression, of 64 bits."""
    exact = _sum(index)
    match index.terms:
        case [] | [(Symbol(), 1)] if not index.offset:
            return exact
        case _:
            return lambda state: _wrapped(exact(state))


def _wrapped(number: int) -> int:
    """Return what is left of a number in 64 bits, as C's arithmetic has it."""
    if -_LIMIT <= number < _LIMIT:
        return number
    return (number + _LIMIT) % (2 * _LIMIT) - _LIMIT


def _sum(index: Affine) -> Callable[[State], int]:
    terms = [(_atom(atom), factor) for atom, factor in index.terms]
    offset = index.offset
    match terms:
        case []:
            return lambda state: offset
        case [(atom, 1)] if offset == 0:
            return atom
        case [(atom, factor)]:
            return lambda state: offset + factor * atom(state)
        case [(left, by), (right, times)]:
            return lambda state: offset + by * left(state) + times * right(state)
        case _:
            return lambda state: offset + sum([factor * atom(state) for atom, factor in terms])


def _atom(atom: Symbol | Quasi) -> Callable[[State], int]:
    if isinstance(atom, Symbol):
        name = key(atom)
        return lambda state: state.numbers[name]
    left, right = number_of(atom.left), number_of(atom.right)
    match atom.op:
        case "min":
            return lambda state: min(left(state), right(state))
        case "max":
            return lambda state: max(left(state), right(state))
        case "floordiv":
            return lambda state: left(state) // by if (by := right(state)) else 0
        case "mod":
            return lambda state: left(state) % by if (by := right(state)) else 0
        case "mul":
            return lambda state: left(state) * right(state)
        case _:
            assert_never(atom.op)


def beats(op: Op, candidate: Any, best: Any) -> bool:
    """Whether the candidate replaces the best so far; the first NaN is best of all, as in NumPy."""
    if best != best:
        return False
    if candidate != candidate:
        return True
    return bool(candidate < best if op.name == "argmin" else candidate > best)
