"""What values index expressions can take at a place, from the loops and tests around it.

`Bounds` is a value that grows on the way inwards: `inside(range)` knows a loop variable,
`where(test)` knows that a test holds. `least` and `most` are sound, not exact: None says that
nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

from ...base.dataclass import dataclass
from . import intervals
from .dtypes import DType
from .expressions import Apply, Cast, Const, Expr, Position, Select
from .indexing import Affine, Quasi, Range, Symbol, const, sides, var
from .intervals import UNKNOWN, Interval, both, greater, smaller
from .loops import For
from .node import Node

COMPARED = frozenset(("lt", "le", "gt", "ge", "eq", "ne"))
CHOSEN = frozenset(("mod", "min", "max", "bitand"))
"""What gives no number that its type does not have."""
MOST_ENDS = 16
"""So many bounds of an expression are compared."""
WIDE = 64
"""Of numbers of so many bits nothing is known from their type."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is known of the symbols at a place."""

    intervals: Mapping[Symbol, Interval] = field(default_factory=dict)
    ranges: tuple[tuple[Symbol, Affine, Affine], ...] = ()
    """Loop variables, outermost first, with their least and greatest value."""
    _found: dict[Quasi, Interval] = field(init=False, repr=False, compare=False)
    """The intervals of what was asked for before: each part of a nested one is, several times."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_found", {})

    def inside(self, loop: For | Range) -> Bounds:
        """Return what is known where the loop's variable is bound: there the loop has a round."""
        step = loop.step if isinstance(loop, For) else 1
        lo, last = loop.lo, last_of(loop.lo, loop.hi, step)
        if step < 0:
            lo, last = last, lo
        interval = (self.least(lo), self.most(last))
        known = Bounds(
            {**self.intervals, loop.symbol: interval}, (*self.ranges, (loop.symbol, lo, last))
        )
        return known._knowing(last - lo) if lo.terms or last.terms else known

    def where(self, test: Expr, holds: bool = True) -> Bounds:
        """Return what is known where a test holds (or does not): comparisons of positions."""
        known = self
        for fact in _facts(test, holds):
            known = known._knowing(fact)
        return known

    def holding(self, symbol: Symbol, values: Interval) -> Bounds:
        """Return what is known where a symbol has one of these values."""
        return Bounds({**self.intervals, symbol: values}, self.ranges)

    def least(self, index: Affine) -> int | None:
        """Return a number that the expression is never below, None where nothing is known."""
        return self.interval(index)[0]

    def most(self, index: Affine) -> int | None:
        """Return a number that the expression is never above, None where nothing is known."""
        return self.interval(index)[1]

    def interval(self, index: Affine) -> Interval:
        """Return least and greatest value as far as they are known."""
        if index.constant is not None:
            return index.constant, index.constant
        lo, hi = self._plain(index)
        if len(index.terms) > 1 or any(isinstance(atom, Quasi) for atom, _ in index.terms):
            for least in self._extremes(index, -1):
                lo = greater(lo, self._plain(least)[0])
            for most in self._extremes(index, 1):
                hi = smaller(hi, self._plain(most)[1])
        return lo, hi

    def value(self, expr: Expr) -> Interval:
        """Return least and greatest value of a whole number, as far as they are known.

        What may wrap around is as large as its type.
        """
        match expr:
            case Const(bool() | int() as number):
                return int(number), int(number)
            case Position(index):
                return self.interval(index)
            case Select(test, yes, no):
                one, two = self.where(test).value(yes), self.where(test, False).value(no)
                return both(min, one[0], two[0]), both(max, one[1], two[1])
            case Cast(inner, dtype) if inner.dtype.kind in "biu":
                return _wrapped(self.value(inner), dtype)
            case Apply(op, args, dtype) if all(arg.dtype.kind in "iu" for arg in args):
                found = _computed(op.name, [self.value(arg) for arg in args])
                return found if op.name in CHOSEN else _wrapped(found, dtype)
            case _:
                return _of(expr.dtype)

    def _extremes(self, index: Affine, sign: int) -> list[Affine]:
        """Return the expression with each loop variable at the end that makes it extreme: a bound
        for each of several that are the end together.

        A variable that also appears inside of a `Quasi` is replaced outside only: still a bound.
        """
        found = [index]
        for symbol, lo, last in reversed(self.ranges):
            if not any(one.coefficient(symbol) for one in found):
                continue
            ends: list[Affine] = []
            for one in found:
                k = one.coefficient(symbol)
                rest = one - var(symbol) * k
                is_last = (k > 0) == (sign > 0)
                ends += [rest + end * k for end in _ends(last if is_last else lo, is_last)]
            found = ends[:MOST_ENDS]
        return found

    def _plain(self, index: Affine) -> Interval:
        lo: int | None = index.offset
        hi: int | None = index.offset
        for atom, k in index.terms:
            low, high = self._atom(atom)
            if k < 0:
                low, high = high, low
            lo = None if lo is None or low is None else lo + k * low
            hi = None if hi is None or high is None else hi + k * high
        return lo, hi

    def _atom(self, atom: Symbol | Quasi) -> Interval:
        if isinstance(atom, Symbol):
            return self.intervals.get(atom, UNKNOWN)
        if atom not in self._found:
            self._found[atom] = self._quasi(atom)
        return self._found[atom]

    def _quasi(self, atom: Quasi) -> Interval:
        left, right = self.interval(atom.left), self.interval(atom.right)
        match atom.op:
            case "min":
                return both(min, left[0], right[0]), smaller(left[1], right[1])
            case "max":
                return greater(left[0], right[0]), both(max, left[1], right[1])
            case "mod":
                return intervals.mod(left, right)
            case "floordiv":
                return intervals.floordiv(left, right)
            case "mul":
                return intervals.product(left, right)

    def _knowing(self, fact: Affine) -> Bounds:
        """Return what is known where the expression is not negative."""
        new = dict(self.intervals)
        for atom, k in fact.terms:
            if isinstance(atom, Symbol):
                rest = self.most(fact - var(atom) * k)
                lo, hi = new.get(atom, UNKNOWN)
                if rest is not None and k > 0:
                    new[atom] = greater(lo, -(rest // k)), hi
                elif rest is not None:
                    new[atom] = lo, smaller(hi, rest // -k)
        return Bounds(new, self.ranges)


def last_of(lo: Affine, hi: Affine, step: int) -> Affine:
    """Return the last value of a range in steps, or of a dynamic length the last that it may have.

    >>> last_of(const(0), const(10), 4), last_of(const(10), const(0), -4)
    (8, 2)
    """
    rounds = (hi - lo if step > 0 else lo - hi).constant
    if rounds is None or rounds <= 0 or step in (1, -1):
        return hi - (1 if step > 0 else -1)
    return lo + (rounds - 1) // abs(step) * step


def _ends(end: Affine, is_last: bool) -> tuple[Affine, ...]:
    """Return what the end of a range is the least, or the greatest of, and the end itself."""
    if len(end.terms) != 1 or not isinstance(end.terms[0][0], Quasi):
        return (end,)
    some = sides(end, "min" if is_last else "max")
    return some if some == (end,) else (*some, end)


def bounds_of(parameters: Iterable[Node]) -> Bounds:
    """Return what is known everywhere: sizes of arguments are not negative."""
    extents = (extent.symbol for node in parameters for extent in node.shape)
    return Bounds({symbol: (0, None) for symbol in extents if symbol is not None})


def as_index(expr: Expr) -> Affine | None:
    """Return an int64 expression that reads no array as an index expression, else None."""
    match expr:
        case Position(index):
            return index
        case Const(int() as value, dtype) if dtype.name == "int64":
            return const(value)
        case _:
            return None


def difference(test: Expr) -> tuple[str, Affine] | None:
    """Return a comparison of positions as `0 op right - left`; None for all other tests."""
    match test:
        case Apply(op, (one, two), _) if op.name in COMPARED:
            left, right = as_index(one), as_index(two)
            return None if left is None or right is None else (op.name, right - left)
        case _:
            return None


def _facts(test: Expr, holds: bool) -> list[Affine]:
    """Return expressions that are not negative where the test holds, or where it does not."""
    match test:
        case Apply(op, (left, right), _) if op.name == ("and" if holds else "or"):
            return _facts(left, holds) + _facts(right, holds)
        case Apply(op, (inner,), _) if op.name == "logical_not":
            return _facts(inner, not holds)
        case Select(left, right, Const(False)) if holds:
            return _facts(left, True) + _facts(right, True)
        case _:
            found = difference(test)
    if found is None:
        return []
    name, gap = found
    if not holds:
        opposite = {"lt": "ge", "ge": "lt", "le": "gt", "gt": "le", "eq": "ne", "ne": "eq"}
        name = opposite[name]
    match name:
        case "lt":
            return [gap - 1]
        case "le":
            return [gap]
        case "gt":
            return [-gap - 1]
        case "ge":
            return [-gap]
        case "eq":
            return [gap, -gap]
        case _:
            return []


def _computed(op: str, args: list[Interval]) -> Interval:
    """Return the results of an operation on whole numbers, if nothing wraps around."""
    match op, args:
        case "add", (left, right):
            return intervals.total(left, right)
        case "sub", (left, right):
            return intervals.total(left, intervals.negative(right))
        case "mul", (left, right):
            return intervals.product(left, right)
        case "neg", (one,):
            return intervals.negative(one)
        case "mod", (left, right):
            return intervals.mod(left, right)
        case "floordiv", (left, right):
            return intervals.floordiv(left, right)
        case "min", (left, right):
            return both(min, left[0], right[0]), smaller(left[1], right[1])
        case "max", (left, right):
            return greater(left[0], right[0]), both(max, left[1], right[1])
        case "bitand", (left, right):
            tops = [top for low, top in (left, right) if low is not None and low >= 0]
            return (0, smaller(tops[0], tops[-1])) if tops else UNKNOWN
        case _:
            return UNKNOWN


def _of(dtype: DType) -> Interval:
    """Return all values of a type, as far as they say something."""
    match dtype.kind:
        case "b":
            return 0, 1
        case "u":
            return 0, 2**dtype.bits - 1 if dtype.bits < WIDE else None
        case "i" if dtype.bits < WIDE:
            return -(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1
        case _:
            return UNKNOWN


def _wrapped(found: Interval, dtype: DType) -> Interval:
    """Return the values of a type that is given others: all of them, where these may not fit."""
    if dtype.kind not in "iu" or found[0] is None or found[1] is None:
        return _of(dtype)
    low = -(2 ** (dtype.bits - 1)) if dtype.kind == "i" else 0
    fits = low <= found[0] and found[1] < low + 2**dtype.bits
    return found if fits else _of(dtype)
