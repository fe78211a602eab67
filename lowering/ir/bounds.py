"""Range analysis: intervals of index expressions under the enclosing loops and tests.

`Bounds` is an immutable set of facts that is extended inwards: `inside(range)` adds a loop
variable, `where(test)` the truth of a test. `least` and `most` are sound, not exact: None is an
unknown bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

from ...base.dataclass import dataclass
from .. import thresholds
from . import intervals
from .dtypes import DType
from .expressions import Apply, Cast, Const, Expr, Position, Select
from .indexing import Affine, Quasi, Range, Symbol, const, extremum_operands, var
from .intervals import UNKNOWN, Interval, combine_bounds, tighter_lower, tighter_upper
from .loops import For
from .node import Node

COMPARISONS = frozenset(("lt", "le", "gt", "ge", "eq", "ne"))
NON_WRAPPING = frozenset(("mod", "min", "max", "bitand"))
"""Operations whose result never exceeds the range of its type."""
UNBOUNDED_BITS = 64
"""From so many bits on the type is no bound."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Facts about the symbols at a program point."""

    intervals: Mapping[Symbol, Interval] = field(default_factory=dict)
    ranges: tuple[tuple[Symbol, Affine, Affine], ...] = ()
    """Loop variables, outermost first, with their least and greatest value."""
    _memo: dict[Quasi, Interval] = field(init=False, repr=False, compare=False)
    """Intervals of quasi-affine terms; memoized, as each part of a nested one is asked for
    repeatedly."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_memo", {})

    def inside(self, loop: For | Range) -> Bounds:
        """Return the facts inside a loop: there it has at least one iteration."""
        step = loop.step if isinstance(loop, For) else 1
        lo, last = loop.lo, last_value(loop.lo, loop.hi, step)
        if step < 0:
            lo, last = last, lo
        interval = (self.least(lo), self.most(last))
        facts = Bounds(
            {**self.intervals, loop.symbol: interval}, (*self.ranges, (loop.symbol, lo, last))
        )
        return facts._with_fact(last - lo) if lo.terms or last.terms else facts

    def where(self, test: Expr, holds: bool = True) -> Bounds:
        """Return the facts where a test holds (or does not): comparisons of positions."""
        bounds = self
        for fact in _facts_of(test, holds):
            bounds = bounds._with_fact(fact)
        return bounds

    def with_interval(self, symbol: Symbol, values: Interval) -> Bounds:
        """Return the facts where a symbol is in this interval."""
        return Bounds({**self.intervals, symbol: values}, self.ranges)

    def least(self, index: Affine) -> int | None:
        """Return a lower bound of the expression, None where none is known."""
        return self.interval(index)[0]

    def most(self, index: Affine) -> int | None:
        """Return an upper bound of the expression, None where none is known."""
        return self.interval(index)[1]

    def interval(self, index: Affine) -> Interval:
        """Return lower and upper bound, each None where it is unknown."""
        if index.constant is not None:
            return index.constant, index.constant
        lo, hi = self._interval_arithmetic(index)
        if len(index.terms) > 1 or any(isinstance(atom, Quasi) for atom, _ in index.terms):
            for least in self._extremes(index, -1):
                lo = tighter_lower(lo, self._interval_arithmetic(least)[0])
            for most in self._extremes(index, 1):
                hi = tighter_upper(hi, self._interval_arithmetic(most)[1])
        return lo, hi

    def value(self, expr: Expr) -> Interval:
        """Return the interval of an integer expression, as far as it is known.

        Where it may wrap around that is the interval of its type.
        """
        match expr:
            case Const(bool() | int() as number):
                return int(number), int(number)
            case Position(index):
                return self.interval(index)
            case Select(test, yes, no):
                if_true, if_false = self.where(test).value(yes), self.where(test, False).value(no)
                return combine_bounds(min, if_true[0], if_false[0]), combine_bounds(
                    max, if_true[1], if_false[1]
                )
            case Cast(inner, dtype) if inner.dtype.kind in "biu":
                return _wrap_to_type(self.value(inner), dtype)
            case Apply(op, args, dtype) if all(arg.dtype.kind in "iu" for arg in args):
                interval = _apply_operation(op.name, [self.value(arg) for arg in args])
                return interval if op.name in NON_WRAPPING else _wrap_to_type(interval, dtype)
            case _:
                return _interval_of_type(expr.dtype)

    def _extremes(self, index: Affine, sign: int) -> list[Affine]:
        """Return the expression with each loop variable replaced by the end that makes it extreme:
        one bound for each operand where that end is a minimum or maximum.

        A variable that also occurs inside of a `Quasi` is replaced outside only: still a bound.
        """
        candidates = [index]
        for symbol, lo, last in reversed(self.ranges):
            if not any(candidate.coefficient(symbol) for candidate in candidates):
                continue
            ends: list[Affine] = []
            for candidate in candidates:
                k = candidate.coefficient(symbol)
                rest = candidate - var(symbol) * k
                is_last = (k > 0) == (sign > 0)
                ends += [
                    rest + end * k for end in _end_candidates(last if is_last else lo, is_last)
                ]
            candidates = ends[: thresholds.MAX_END_CANDIDATES]
        return candidates

    def _interval_arithmetic(self, index: Affine) -> Interval:
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
        if atom not in self._memo:
            self._memo[atom] = self._quasi(atom)
        return self._memo[atom]

    def _quasi(self, atom: Quasi) -> Interval:
        left, right = self.interval(atom.left), self.interval(atom.right)
        match atom.op:
            case "min":
                return combine_bounds(min, left[0], right[0]), tighter_upper(left[1], right[1])
            case "max":
                return tighter_lower(left[0], right[0]), combine_bounds(max, left[1], right[1])
            case "mod":
                return intervals.mod(left, right)
            case "floordiv":
                return intervals.floordiv(left, right)
            case "mul":
                return intervals.multiply_intervals(left, right)

    def _with_fact(self, fact: Affine) -> Bounds:
        """Return the facts with one more: the expression is not negative."""
        new = dict(self.intervals)
        for atom, k in fact.terms:
            if isinstance(atom, Symbol):
                rest = self.most(fact - var(atom) * k)
                lo, hi = new.get(atom, UNKNOWN)
                if rest is not None and k > 0:
                    new[atom] = tighter_lower(lo, -(rest // k)), hi
                elif rest is not None:
                    new[atom] = lo, tighter_upper(hi, rest // -k)
        return Bounds(new, self.ranges)


def last_value(lo: Affine, hi: Affine, step: int) -> Affine:
    """Return the last value of a strided range; for a run-time length an upper bound of it.

    >>> last_value(const(0), const(10), 4), last_value(const(10), const(0), -4)
    (8, 2)
    """
    trip_count = (hi - lo if step > 0 else lo - hi).constant
    if trip_count is None or trip_count <= 0 or step in (1, -1):
        return hi - (1 if step > 0 else -1)
    return lo + (trip_count - 1) // abs(step) * step


def _end_candidates(end: Affine, is_last: bool) -> tuple[Affine, ...]:
    """Return the operands of an end of a range that is a minimum (or maximum), and the end
    itself."""
    if len(end.terms) != 1 or not isinstance(end.terms[0][0], Quasi):
        return (end,)
    operands = extremum_operands(end, "min" if is_last else "max")
    return operands if operands == (end,) else (*operands, end)


def bounds_of(parameters: Iterable[Node]) -> Bounds:
    """Return the facts that hold everywhere: sizes of arguments are not negative."""
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
        case Apply(op, (first, second), _) if op.name in COMPARISONS:
            left, right = as_index(first), as_index(second)
            return None if left is None or right is None else (op.name, right - left)
        case _:
            return None


def _facts_of(test: Expr, holds: bool) -> list[Affine]:
    """Return expressions that are not negative where the test holds, or where it does not."""
    match test:
        case Apply(op, (left, right), _) if op.name == ("and" if holds else "or"):
            return _facts_of(left, holds) + _facts_of(right, holds)
        case Apply(op, (inner,), _) if op.name == "logical_not":
            return _facts_of(inner, not holds)
        case Select(left, right, Const(False)) if holds:
            return _facts_of(left, True) + _facts_of(right, True)
        case _:
            comparison = difference(test)
    if comparison is None:
        return []
    name, gap = comparison
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


def _apply_operation(op: str, args: list[Interval]) -> Interval:
    """Return the interval of an integer operation, if nothing wraps around."""
    match op, args:
        case "add", (left, right):
            return intervals.add_intervals(left, right)
        case "sub", (left, right):
            return intervals.add_intervals(left, intervals.negate_interval(right))
        case "mul", (left, right):
            return intervals.multiply_intervals(left, right)
        case "neg", (operand,):
            return intervals.negate_interval(operand)
        case "mod", (left, right):
            return intervals.mod(left, right)
        case "floordiv", (left, right):
            return intervals.floordiv(left, right)
        case "min", (left, right):
            return combine_bounds(min, left[0], right[0]), tighter_upper(left[1], right[1])
        case "max", (left, right):
            return tighter_lower(left[0], right[0]), combine_bounds(max, left[1], right[1])
        case "bitand", (left, right):
            tops = [top for low, top in (left, right) if low is not None and low >= 0]
            return (0, tighter_upper(tops[0], tops[-1])) if tops else UNKNOWN
        case _:
            return UNKNOWN


def _interval_of_type(dtype: DType) -> Interval:
    """Return the interval of a type, as far as it is a bound."""
    match dtype.kind:
        case "b":
            return 0, 1
        case "u":
            return 0, 2**dtype.bits - 1 if dtype.bits < UNBOUNDED_BITS else None
        case "i" if dtype.bits < UNBOUNDED_BITS:
            return -(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1
        case _:
            return UNKNOWN


def _wrap_to_type(interval: Interval, dtype: DType) -> Interval:
    """Return the interval after conversion to a type: all of the type where values may not fit."""
    if dtype.kind not in "iu" or interval[0] is None or interval[1] is None:
        return _interval_of_type(dtype)
    low = -(2 ** (dtype.bits - 1)) if dtype.kind == "i" else 0
    fits = low <= interval[0] and interval[1] < low + 2**dtype.bits
    return interval if fits else _interval_of_type(dtype)
