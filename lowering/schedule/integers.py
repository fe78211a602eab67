"""Whether linear equations and inequalities have a solution in integers, and one that they have.

Equations go first: a symbol with the coefficient 1 or -1 is replaced, other coefficients are made
smaller as in Euclid's algorithm. The inequalities that are left lose one symbol after the other
(Fourier and Motzkin), rounded to integers on the way. "none" is sure; a solution has been tried.
It changes nothing.

>>> i, j = Symbol("i", 0), Symbol("j", 1)
>>> solve([var(i) * 2 - var(j) * 4 - 1], [])
'none'
>>> solve([var(i) - var(j) * 3], [var(j) - 2, var(i) * -1 + 8])
{j.1: 2, i.0: 6}
>>> solve([], [var(i) * 2 - 1, var(i) * -2 + 1])
'none'
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count
from math import gcd
from typing import Literal, NamedTuple, cast

from ..ir.indexing import Affine, Atom, Quasi, Symbol, const, evaluate, floordiv, substitute, var

Solution = dict[Symbol, int]
ROWS = 160
"""With more inequalities than that at once it stays unclear."""
TRIES = 400
"""How many values are tried where the inequalities leave a choice that integers may not have."""


class _Step(NamedTuple):
    """A symbol that was taken out, and the inequalities that bound it."""

    symbol: Symbol
    above: list[Affine]
    """Those in which it has a positive factor: it is at least something."""
    below: list[Affine]


def solve(zero: Iterable[Affine], least: Iterable[Affine]) -> Solution | Literal["none", "unclear"]:
    """Return a solution of `zero == 0` and `least >= 0`, "none" where there surely is none.

    Of functions such as a minimum the bounds are known, of products of symbols nothing: with them
    it is unclear more often.
    """
    plain = _Plain()
    wanted = tuple(zero), tuple(least)
    zeros = [plain(one) for one in wanted[0]]
    rows = [plain(one) for one in wanted[1]]
    rows += plain.bounds
    values = _substituted(zeros, rows)
    if values is None:
        return "none"
    for symbol, value in values:
        rows = [substitute(row, {symbol: value}) for row in rows]
    steps = _eliminated(rows)
    if isinstance(steps, str):
        return steps
    search = _Search(steps)
    found = search.run()
    if found is None:
        return "unclear" if search.left < 0 else "none"
    for symbol, value in reversed(values):
        missing = value.symbols() - found.keys()
        found |= dict.fromkeys(missing, 0)
        found[symbol] = evaluate(value, found)
    if plain.symbols and not _solves(found, *wanted):
        return "unclear"
    return {symbol: found[symbol] for symbol in found if symbol.serial > _FRESH}


def _solves(found: Solution, zero: Iterable[Affine], least: Iterable[Affine]) -> bool:
    """Whether numbers solve a system, functions being what they are."""
    symbols = frozenset(s for one in (*zero, *least) for s in one.symbols())
    values = {symbol: found.get(symbol, 0) for symbol in symbols}
    try:
        return all(evaluate(one, values) == 0 for one in zero) and all(
            evaluate(one, values) >= 0 for one in least
        )
    except ZeroDivisionError:
        return False


_FRESH = -(2**40)
"""Symbols with serials up to this are made here."""


class _Plain:
    """Replaces functions in index expressions by symbols, and keeps what is known of these."""

    def __init__(self) -> None:
        self.symbols: dict[Atom, Symbol] = {}
        self.bounds: list[Affine] = []

    def __call__(self, index: Affine) -> Affine:
        """Return the expression with every function replaced."""
        out = const(index.offset)
        for atom, factor in index.terms:
            name = atom if isinstance(atom, Symbol) else self.named(atom)
            out += var(name) * factor
        return out

    def named(self, atom: Quasi) -> Symbol:
        known = self.symbols.get(atom)
        if known is not None:
            return known
        name = self.symbols[atom] = Symbol(atom.op, _FRESH - len(self.symbols))
        one = var(name)
        by = atom.right.constant
        match atom.op:
            case "min":
                self.bounds += [self(atom.left) - one, self(atom.right) - one]
            case "max":
                self.bounds += [one - self(atom.left), one - self(atom.right)]
            case "floordiv" if by is not None and by > 0:
                rest = self(atom.left) - one * by
                self.bounds += [rest, rest * -1 + (by - 1)]
            case "mod" if by is not None and by > 0:
                whole = self(floordiv(atom.left, atom.right))
                self.bounds += [one, one * -1 + (by - 1)]
                gap = self(atom.left) - whole * by - one
                self.bounds += [gap, gap * -1]
            case _:
                pass
        return name


def _substituted(zeros: list[Affine], rows: list[Affine]) -> list[tuple[Symbol, Affine]] | None:
    """Return symbols with what they are by the equations, in order; None where they contradict."""
    values: list[tuple[Symbol, Affine]] = []
    while zeros:
        row = zeros.pop()
        if not row.terms:
            if row.offset:
                return None
            continue
        common = gcd(*[k for _, k in row.terms])
        if row.offset % common:
            return None
        row = Affine(tuple((s, k // common) for s, k in row.terms), row.offset // common)
        atom, k = min(row.terms, key=lambda term: abs(term[1]))
        symbol = cast(Symbol, atom)
        if abs(k) == 1:
            value = (row - var(symbol) * k) * -k
        else:
            fresh = Symbol(symbol.name, _FRESH * 2 - len(values))
            others = tuple((s, n // k) for s, n in row.terms if s != symbol)
            value = var(fresh) - Affine(others, row.offset // k)
            zeros.append(row)
        values.append((symbol, value))
        zeros = [substitute(one, {symbol: value}) for one in zeros]
    return values


def _eliminated(rows: Iterable[Affine]) -> list[_Step] | Literal["none", "unclear"]:
    """Return the steps that took every symbol out of inequalities, in order."""
    steps: list[_Step] = []
    while True:
        kept = _tight(rows)
        if kept is None:
            return "none"
        if not kept:
            return steps
        if len(kept) > ROWS:
            return "unclear"
        step = min(_steps(kept), key=_pairs)
        steps.append(step)
        rest = [row for row in kept if not row.coefficient(step.symbol)]
        rows = rest + [
            low * -high.coefficient(step.symbol) + high * low.coefficient(step.symbol)
            for low in step.above
            for high in step.below
        ]


def _tight(rows: Iterable[Affine]) -> list[Affine] | None:
    """Return inequalities rounded to integers, the tightest of each slope; None if one is false."""
    tightest: dict[tuple[tuple[Atom, int], ...], int] = {}
    for row in rows:
        if not row.terms:
            if row.offset < 0:
                return None
            continue
        common = gcd(*[k for _, k in row.terms])
        terms = tuple((s, k // common) for s, k in row.terms)
        offset = row.offset // common
        tightest[terms] = min(offset, tightest.get(terms, offset))
    return [Affine(terms, offset) for terms, offset in tightest.items()]


def _steps(rows: Iterable[Affine]) -> Iterable[_Step]:
    """Return the step that would take each symbol out, in the order in which they appear."""
    found: dict[Symbol, _Step] = {}
    for row in rows:
        for atom, k in row.terms:
            symbol = cast(Symbol, atom)
            step = found.get(symbol)
            if step is None:
                step = found[symbol] = _Step(symbol, [], [])
            (step.above if k > 0 else step.below).append(row)
    return found.values()


def _pairs(step: _Step) -> int:
    return len(step.above) * len(step.below) - len(step.above) - len(step.below)


class _Search:
    """Tries values for the symbols of steps, the last first, small ones first."""

    def __init__(self, steps: Sequence[_Step]) -> None:
        self.steps = steps[::-1]
        self.left = TRIES

    def run(self, at: int = 0, found: Solution | None = None) -> Solution | None:
        """Return values that all inequalities admit; None where none was found."""
        found = found or {}
        if at == len(self.steps):
            return found
        for value in _between(*_interval(self.steps[at], found)):
            self.left -= 1
            if self.left < 0:
                return None
            done = self.run(at + 1, {**found, self.steps[at].symbol: value})
            if done is not None:
                return done
        return None


def _interval(step: _Step, found: Solution) -> tuple[int | None, int | None]:
    """Return the least and the greatest value of a symbol where the others have theirs."""
    lows = [-(number // k) for k, number in _apart(step.above, step.symbol, found)]
    highs = [number // -k for k, number in _apart(step.below, step.symbol, found)]
    return max(lows, default=None), min(highs, default=None)


def _apart(rows: Iterable[Affine], symbol: Symbol, found: Solution) -> Iterator[tuple[int, int]]:
    """Yield the factor of a symbol in each row, and what the rest is worth."""
    for row in rows:
        factor, rest = 0, row.offset
        for atom, k in row.terms:
            if atom == symbol:
                factor = k
            else:
                rest += k * found.get(cast(Symbol, atom), 0)
        yield factor, rest


def _between(lo: int | None, hi: int | None) -> Iterable[int]:
    """Return the numbers between bounds, the nearest to zero first where they are bounded."""
    if lo is None:
        return count(0 if hi is None else hi, -1)
    if hi is None:
        return count(lo)
    if lo < 0 < hi:
        return chain(range(hi + 1), range(-1, lo - 1, -1))
    return range(lo, hi + 1) if lo >= 0 else range(hi, lo - 1, -1)
