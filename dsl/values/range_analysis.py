"""Range analysis of integers: symbolic bounds and facts, and proofs of `e >= 0` for affine `e`.

`Assumptions` holds the inclusive bounds of each symbol (which may use symbols bound further out)
and affine facts from enclosing conditions. A lower bound is computed by eliminating symbols, the
innermost first, each by the bound that minimizes the expression: exact for affine bounds of nested
loops.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import assert_never

from ...base.dataclass import dataclass
from ...lowering.ir.expressions import Apply, Const, Expr, Position, Select, walk
from ...lowering.ir.indexing import (
    Affine,
    Quasi,
    Range,
    Symbol,
    const,
    floordiv,
    mod,
    multiply,
    substitute,
    var,
)
from ...lowering.ir.indexing import maximum as index_max
from ...lowering.ir.indexing import minimum as index_min
from ...lowering.ir.ops import Op

_FUEL = 200
"""Substitutions per proof; beyond it the answer is `not proven`, which is conservative."""


@dataclass(frozen=True)
class Assumptions:
    """Assumptions: inclusive bounds of symbols (None: unbounded), and expressions that are >= 0."""

    bounds: Mapping[Symbol, tuple[Affine | None, Affine | None]] = field(default_factory=dict)
    facts: tuple[Affine, ...] = ()
    proven: dict[Affine, bool] = field(default_factory=dict, compare=False, repr=False)
    """Memo of `nonnegative`: whether an expression is proven to be >= 0."""

    def with_ranges(self, ranges: Iterable[Range]) -> Assumptions:
        """Return these assumptions, and that the symbol of each range is within the range."""
        added = {r.symbol: (r.lo, r.hi - 1) for r in ranges}
        return Assumptions({**self.bounds, **added}, self.facts)

    def with_bounds(self, symbol: Symbol, lo: Affine | None, hi: Affine | None) -> Assumptions:
        """Return these assumptions and the inclusive bounds of one more symbol."""
        return Assumptions({**self.bounds, symbol: (lo, hi)}, self.facts)

    def with_facts(self, *facts: Affine) -> Assumptions:
        """Return these assumptions, and that each given expression is >= 0."""
        return Assumptions(self.bounds, self.facts + facts)

    def assuming(self, test: Expr) -> Assumptions:
        """Return these assumptions and the integer facts that hold where a test does."""
        facts = list(facts_of(test))
        for part in _nonzero_differences(test):
            for gap in (part, -part):
                if self.nonnegative(gap):
                    facts.append(gap - 1)
        return self.with_facts(*facts)

    def nonnegative(self, e: Affine) -> bool:
        """Whether `e >= 0` is proven."""
        answer = self.proven.get(e)
        if answer is None:
            answer = self.proven[e] = self._is_nonnegative(e)
        return answer

    def _is_nonnegative(self, e: Affine) -> bool:
        if self._at_least(e, 0):
            return True
        if any(self._at_least(e - fact, 0) for fact in self.facts):
            return True
        pairs = ((f, g) for n, f in enumerate(self.facts) for g in self.facts[n + 1 :])
        return any(self._at_least(e - f - g, 0) for f, g in pairs)

    def less(self, left: Affine, right: Affine) -> bool:
        """Whether `left < right` is proven."""
        return self.nonnegative(right - left - 1)

    def equal(self, left: Affine, right: Affine) -> bool:
        """Whether `left == right` is proven."""
        if left == right:
            return True
        return self.nonnegative(left - right) and self.nonnegative(right - left)

    def differ(self, left: Affine, right: Affine) -> bool:
        """Whether `left != right` is proven."""
        if not (left - right).terms:
            return left != right
        # contradictory facts, those of dead code, prove both of these
        return self.less(left, right) != self.less(right, left)

    def minimum(self, left: Affine, right: Affine) -> Affine:
        """Return min(left, right), simplified to one side where the order is proven."""
        if self.nonnegative(right - left):
            return left
        return right if self.nonnegative(left - right) else index_min(left, right)

    def maximum(self, left: Affine, right: Affine) -> Affine:
        """Return max(left, right), simplified to one side where the order is proven."""
        if self.nonnegative(left - right):
            return left
        return right if self.nonnegative(right - left) else index_max(left, right)

    def _at_least(self, e: Affine, bound: int) -> bool:
        lower = _lower_bound(e, self, [_FUEL])
        return lower is not None and lower >= bound


def facts_of(test: Expr) -> tuple[Affine, ...]:
    """Return affine expressions that are >= 0 where the test holds: from its syntax, incomplete."""
    match test:
        case Apply(Op(name="and"), (left, right), _):
            return facts_of(left) + facts_of(right)
        case Select(first, second, Const(False, _)):
            return facts_of(first) + facts_of(second)
        case Apply(op, (Position(left), Position(right)), _):
            gap = right - left
            match op.name:
                case "lt":
                    return (gap - 1,)
                case "le":
                    return (gap,)
                case "gt":
                    return (-gap - 1,)
                case "ge":
                    return (-gap,)
                case "eq":
                    return (gap, -gap)
                case _:
                    return ()
        case _:
            return ()


def _nonzero_differences(test: Expr) -> list[Affine]:
    """Return the differences that are nonzero where a test holds."""
    match test:
        case Apply(Op(name="and"), (left, right), _) | Select(left, right, Const(False, _)):
            return _nonzero_differences(left) + _nonzero_differences(right)
        case Apply(Op(name="ne"), (Position(left), Position(right)), _):
            return [left - right]
        case _:
            return []


def factors(e: Affine) -> Iterator[Affine]:
    """Yield both factors of each product of symbols in an expression: `n` and `i` of `n*i + 1`."""
    for atom, _ in e.terms:
        if isinstance(atom, Quasi) and atom.op == "mul":
            yield from (atom.left, atom.right)


def says_of_indices(test: Expr) -> bool:
    """Whether a test compares index expressions, so that it may restrict the domain."""
    return any(
        isinstance(part, Apply) and all(isinstance(arg, Position) for arg in part.args)
        for part in walk(test)
    )


def smallest(e: Affine, assumptions: Assumptions) -> int | None:
    """Return the greatest proven constant lower bound of an expression, None for none."""
    return _lower_bound(e, assumptions, [_FUEL])


def largest(e: Affine, assumptions: Assumptions) -> int | None:
    """Return the least proven constant upper bound of an expression, None for none."""
    lower = _lower_bound(-e, assumptions, [_FUEL])
    return None if lower is None else -lower


def extreme(e: Affine, ranges: tuple[Range, ...], upwards: bool) -> Affine:
    """Return an upper (`upwards`) or lower bound of `e` with the symbols of `ranges` eliminated.

    Innermost ranges go first. Exact where bounds are affine; a `min`, a quotient or the like is
    bounded by interval arithmetic on its operands, which need not be tight.
    """
    for r in reversed(ranges):
        if r.symbol in e.symbols():
            e = _eliminate(e, r, upwards)
    return e


def _eliminate(e: Affine, r: Range, upwards: bool) -> Affine:
    """Return an upper or lower bound of an expression over one range."""
    total = const(e.offset)
    for atom, factor in e.terms:
        high = (factor > 0) == upwards
        match atom:
            case Quasi() if r.symbol in atom.left.symbols() | atom.right.symbols():
                value = _eliminate_in_quasi(atom, r, high)
            case Symbol() if atom == r.symbol:
                value = r.hi - 1 if high else r.lo
            case _:
                value = Affine(((atom, 1),), 0)
        total += value * factor
    return total


def _eliminate_in_quasi(quasi: Quasi, r: Range, upwards: bool) -> Affine:
    (left, low), (right, least) = (
        (_eliminate(side, r, upwards), _eliminate(side, r, not upwards))
        for side in (quasi.left, quasi.right)
    )
    by, zero = quasi.right.constant, const(0)
    pick = index_max if upwards else index_min
    match quasi.op:
        case "min":
            return index_min(left, right)
        case "max":
            return index_max(left, right)
        case "mul":
            products = [multiply(a, b) for a in (left, low) for b in (right, least)]
            return functools.reduce(pick, products)
        case "floordiv" if by is not None:
            return floordiv(left if by > 0 else low, quasi.right)
        case "floordiv":  # |quotient| <= |dividend|
            return pick(pick(left, -low), zero)
        case "mod" if by is not None:
            ends = [floordiv(side, quasi.right).constant for side in (left, low)]
            if by > 0 and ends[0] is not None and ends[0] == ends[1]:
                return mod(left, quasi.right)  # no wraparound within the range
            return const(max(by - 1, 0) if upwards else min(by + 1, 0))
        case "mod":
            return pick(right - 1 if upwards else right + 1, zero)
        case _:
            assert_never(quasi.op)


def corner(e: Affine, ranges: tuple[Range, ...], upwards: bool) -> dict[Symbol, Affine]:
    """Return the vertex of `ranges` (outermost first) that maximizes or minimizes an affine `e`."""
    point: dict[Symbol, Affine] = {}
    for r in reversed(ranges):
        high = (e.coefficient(r.symbol) > 0) == upwards and e.coefficient(r.symbol) != 0
        value = r.hi - 1 if high else r.lo
        point[r.symbol] = value
        e = substitute(e, {r.symbol: value})
    for r in ranges:
        point[r.symbol] = substitute(point[r.symbol], point)
    return point


def _lower_bound(e: Affine, assumptions: Assumptions, fuel: list[int]) -> int | None:
    """Return a proven lower bound of `e`, None for none; `fuel` is shared by the whole search."""
    if not e.terms:
        return e.offset
    if fuel[0] <= 0:
        return None
    fuel[0] -= 1
    quasis = [(atom, factor) for atom, factor in e.terms if isinstance(atom, Quasi)]
    for atom, factor in quasis:
        most = (
            _blocked_upper_bound(atom, assumptions, fuel)
            if factor < 0 and atom.op == "mul"
            else None
        )
        if most is not None:
            return _lower_bound(e + (most - Affine(((atom, 1),), 0)) * factor, assumptions, fuel)
    if quasis:  # those where one side is enough last: per side of the others
        atom, factor = min(quasis, key=lambda quasi: _is_one_side_enough(*quasi))
        rest = e - Affine(((atom, 1),), 0) * factor
        return _quasi_lower_bound(atom, factor, rest, assumptions, fuel)
    symbol = max(e.symbols(), key=lambda s: s.serial)
    lo, hi = assumptions.bounds.get(symbol, (None, None))
    bound = lo if e.coefficient(symbol) > 0 else hi
    if bound is None or symbol in bound.symbols():
        return None
    return _lower_bound(e + (bound - var(symbol)) * e.coefficient(symbol), assumptions, fuel)


def _is_one_side_enough(quasi: Quasi, factor: int) -> bool:
    """Whether a lower bound of either operand gives one of `factor * quasi`."""
    return quasi.op in ("min", "max") and (quasi.op == "max") == (factor > 0)


def _quasi_lower_bound(
    atom: Quasi, factor: int, rest: Affine, assumptions: Assumptions, fuel: list[int]
) -> int | None:
    """Return a lower bound of `factor * atom + rest`."""
    left, right = atom.left, atom.right
    match atom.op:
        case "min" | "max":
            sides = [
                _lower_bound(side * factor + rest, assumptions, fuel) for side in (left, right)
            ]
            proven = [side for side in sides if side is not None]
            if _is_one_side_enough(atom, factor):
                return max(proven, default=None)
            return min(proven) if len(proven) == 2 else None
        case "floordiv" if right.constant is not None and right.constant > 0:
            by = right.constant
            quotient = (left - (by - 1)) if factor > 0 else left
            scaled = _lower_bound(quotient * factor + rest * by, assumptions, fuel)
            return None if scaled is None else -((-scaled) // by)
        case "mod" if right.constant is not None and right.constant > 0:
            return _lower_bound(
                rest + (0 if factor > 0 else factor * (right.constant - 1)), assumptions, fuel
            )
        case "mul":
            least = _product_lower_bound(left, right, factor, assumptions, fuel)
            below = None if least is None else _lower_bound(rest, assumptions, fuel)
            return None if below is None or least is None else below + least
        case _:
            return None


def _product_lower_bound(
    left: Affine, right: Affine, factor: int, assumptions: Assumptions, fuel: list[int]
) -> int | None:
    """Return a lower bound of `factor * left * right`."""
    lows = [_lower_bound(side, assumptions, fuel) for side in (left, right)]
    if lows[0] is None or lows[1] is None:
        return None
    if factor > 0 and min(lows[0], lows[1]) >= 0:  # needs no upper bounds
        return factor * lows[0] * lows[1]
    highs = [_lower_bound(-side, assumptions, fuel) for side in (left, right)]
    if highs[0] is None or highs[1] is None:
        return None
    return min(a * b * factor for a in (lows[0], -highs[0]) for b in (lows[1], -highs[1]))


def _blocked_upper_bound(
    product: Quasi, assumptions: Assumptions, fuel: list[int]
) -> Affine | None:
    """Return the upper bound `e + c * d` of `d * j` where `j <= e // d + c` and `d >= 1`.

    None for other products.
    """
    for by, side in ((product.left, product.right), (product.right, product.left)):
        _, most = assumptions.bounds.get(side.symbol, (None, None)) if side.symbol else (None, None)
        match most:
            case Affine(((Quasi("floordiv", whole, right), 1),), more) if right == by:
                least = _lower_bound(by, assumptions, fuel)
                return None if least is None or least < 1 else whole + by * more
            case _:
                pass
    return None
