"""What values index expressions can take at a place, from the loops and tests around it.

`Bounds` is a value that grows on the way inwards: `inside(range)` knows a loop variable,
`where(test)` knows that a test holds. `least` and `most` are sound, not exact: None says that
nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field

from ..dataclass import dataclass
from .expressions import Apply, Const, Expr, Position, Select
from .indexing import Affine, Quasi, Range, Symbol, const, var
from .loops import For
from .node import Node

Interval = tuple[int | None, int | None]
UNKNOWN: Interval = (None, None)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is known of the symbols at a place."""

    intervals: Mapping[Symbol, Interval] = field(default_factory=dict)
    ranges: tuple[tuple[Symbol, Affine, Affine], ...] = ()
    """Loop variables, outermost first, with their least and greatest value."""

    def inside(self, loop: For | Range) -> Bounds:
        """Return what is known where the loop's variable is bound: there the loop has a round."""
        lo, last = loop.lo, loop.hi - 1
        if isinstance(loop, For) and loop.step < 0:
            lo, last = loop.hi + 1, loop.lo
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
            lo = _greater(lo, self._plain(self._extreme(index, -1))[0])
            hi = _smaller(hi, self._plain(self._extreme(index, 1))[1])
        return lo, hi

    def _extreme(self, index: Affine, sign: int) -> Affine:
        """Return the expression with each loop variable at the end that makes it extreme.

        A variable that also appears inside of a `Quasi` is replaced outside only: still a bound.
        """
        for symbol, lo, last in reversed(self.ranges):
            k = index.coefficient(symbol)
            if k:
                index = index - var(symbol) * k + (last if (k > 0) == (sign > 0) else lo) * k
        return index

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
        left, right = self.interval(atom.left), self.interval(atom.right)
        match atom.op:
            case "min":
                return _both(min, left[0], right[0]), _smaller(left[1], right[1])
            case "max":
                return _greater(left[0], right[0]), _both(max, left[1], right[1])
            case "mod":
                return _mod(left, right)
            case "floordiv":
                return _floordiv(left, right)
            case "mul":
                return _product(left, right)

    def _knowing(self, fact: Affine) -> Bounds:
        """Return what is known where the expression is not negative."""
        new = dict(self.intervals)
        for atom, k in fact.terms:
            if isinstance(atom, Symbol):
                rest = self.most(fact - var(atom) * k)
                lo, hi = new.get(atom, UNKNOWN)
                if rest is not None and k > 0:
                    new[atom] = _greater(lo, -(rest // k)), hi
                elif rest is not None:
                    new[atom] = lo, _smaller(hi, rest // -k)
        return Bounds(new, self.ranges)


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
        case Apply(op, (one, two), _) if op.name in ("lt", "le", "gt", "ge", "eq", "ne"):
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


def _mod(left: Interval, right: Interval) -> Interval:
    if right[0] is None or right[0] <= 0:
        return UNKNOWN
    top = None if right[1] is None else right[1] - 1
    if left[0] is not None and left[0] >= 0:
        top = _smaller(top, left[1])
    return 0, top


def _floordiv(left: Interval, right: Interval) -> Interval:
    if right[0] is None or right[0] <= 0:
        return UNKNOWN
    by = [right[0]] if right[1] is None else [right[0], right[1]]
    lo, hi = left
    low = None if lo is None else min(lo // b for b in by)
    high = None if hi is None else max(hi // b for b in by)
    if right[1] is None:  # the quotient goes to 0 or -1 as the divisor grows
        low = low if low is None or low < 0 else 0
        high = high if high is None or high >= 0 else -1
    return low, high


def _product(left: Interval, right: Interval) -> Interval:
    if None in left or None in right:
        if (left[0] or 0) >= 0 and (right[0] or 0) >= 0 and None not in (left[0], right[0]):
            return (left[0] or 0) * (right[0] or 0), None
        return UNKNOWN
    ends = [a * b for a in left for b in right if a is not None and b is not None]
    return min(ends), max(ends)


def _greater(one: int | None, two: int | None) -> int | None:
    """The tighter of two lower bounds."""
    return two if one is None else one if two is None else max(one, two)


def _smaller(one: int | None, two: int | None) -> int | None:
    """The tighter of two upper bounds."""
    return two if one is None else one if two is None else min(one, two)


def _both(choose: Callable[[int, int], int], one: int | None, two: int | None) -> int | None:
    """A bound that needs both sides to be known."""
    return None if one is None or two is None else choose(one, two)
