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
>>> solve([var(i) - 1 - var(j) * 2], [var(i) - 4, var(i) * -1 + 4])
'none'
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count
from math import gcd, inf
from typing import Literal, NamedTuple

from ..ir.indexing import Affine, Atom, Quasi, Symbol, const, evaluate, floordiv, var

Solution = dict[Symbol, int]
Row = tuple[int, ...]
"""An expression: what each symbol is multiplied by, one column a symbol, then the offset."""
Columns = dict[int, int]
"""The values of symbols, by their columns."""
ROWS = 160
"""With more inequalities than that at once it stays unclear."""
TRIES = 400
"""How many values are tried where the inequalities leave a choice that integers may not have."""


class _Step(NamedTuple):
    """A symbol that was taken out, and the inequalities that bound it."""

    column: int
    above: list[Row]
    """Those in which it has a positive factor: it is at least something."""
    below: list[Row]


class _Value(NamedTuple):
    """What a symbol is by an equation."""

    symbol: Symbol
    terms: list[tuple[Symbol, int]]
    offset: int

    def of(self, found: Solution) -> int:
        """Return the number that it is; symbols that may be anything are taken to be zero."""
        return self.offset + sum(k * found.setdefault(symbol, 0) for symbol, k in self.terms)


def solve(zero: Iterable[Affine], least: Iterable[Affine]) -> Solution | Literal["none", "unclear"]:
    """Return a solution of `zero == 0` and `least >= 0`, "none" where there surely is none.

    Of functions such as a minimum the bounds are known, of products of symbols nothing: with them
    it is unclear more often.
    """
    plain = _Plain()
    wanted = tuple(zero), tuple(least)
    equal = [plain(one) for one in wanted[0]]
    above = [plain(one) for one in wanted[1]]
    above += plain.bounds
    equal += plain.zeros
    opposite = {one * -1 for one in above}
    equal += [one for one in above if one in opposite]  # neither below zero nor above it
    table = _Table.of(equal, above)
    values = table.substituted()
    if values is None:
        return "none"
    steps = _eliminated(table.rows)
    if isinstance(steps, str):
        return steps
    search = _Search(steps)
    columns = search.run()
    if columns is None:
        return "unclear" if search.left < 0 else "none"
    found = {table.symbols[column]: number for column, number in columns.items()}
    for value in reversed(values):
        found[value.symbol] = value.of(found)
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
        self.zeros: list[Affine] = []
        self.bounds: list[Affine] = []

    def __call__(self, index: Affine) -> Affine:
        """Return the expression with every function replaced."""
        if all(isinstance(atom, Symbol) for atom, _ in index.terms):
            return index
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
                self.zeros.append(self(atom.left) - whole * by - one)
            case _:
                pass
        return name


class _Table:
    """Equations and inequalities as rows of numbers, symbols in the order of their serials."""

    __slots__ = ("rows", "symbols", "zeros")

    def __init__(self, symbols: list[Symbol], zeros: list[Row], rows: list[Row]) -> None:
        self.symbols, self.zeros, self.rows = symbols, zeros, rows

    @classmethod
    def of(cls, zeros: Sequence[Affine], rows: Sequence[Affine]) -> _Table:
        """Return the table of expressions in which there are only symbols."""
        used = {s for one in (*zeros, *rows) for s, _ in one.terms if isinstance(s, Symbol)}
        symbols = sorted(used, key=lambda symbol: (symbol.serial, symbol.name))
        column: dict[Atom, int] = {symbol: at for at, symbol in enumerate(symbols)}

        def row(one: Affine) -> Row:
            numbers = [0] * len(symbols)
            for atom, k in one.terms:
                numbers[column[atom]] = k
            return (*numbers, one.offset)

        return cls(symbols, list(map(row, zeros)), list(map(row, rows)))

    def substituted(self) -> list[_Value] | None:
        """Take symbols out by the equations; return what they are, in order, None where these
        contradict."""
        values: list[_Value] = []
        while self.zeros:
            *terms, offset = row = self.zeros.pop()
            common = gcd(*terms)
            if not common or offset % common:
                if offset:
                    return None
                continue
            row = tuple(number // common for number in row)
            at = min((c for c, k in enumerate(terms) if k), key=lambda c: abs(terms[c]))
            k = row[at]
            if abs(k) == 1:
                value = tuple(number * -k for number in row)
            else:
                self.zeros.append(row)
                self.widen(Symbol(self.symbols[at].name, _FRESH * 2 - len(values)))
                at, value = at + 1, (1, *(-(number // k) for number in row))
            others = [(s, n) for s, n in zip(self.symbols, value, strict=False) if n]
            mine = self.symbols[at]
            values.append(_Value(mine, [one for one in others if one[0] is not mine], value[-1]))
            self.zeros = [_replaced(one, at, value) for one in self.zeros]
            self.rows = [_replaced(one, at, value) for one in self.rows]
        self.narrow()
        return values

    def narrow(self) -> None:
        """Leave out the symbols that no inequality has: half of them, once equations are solved."""
        columns = zip(*[row[:-1] for row in self.rows], strict=True)
        used = [at for at, column in enumerate(columns) if any(column)]
        self.symbols = [self.symbols[at] for at in used]
        self.rows = [(*[row[at] for at in used], row[-1]) for row in self.rows]

    def widen(self, fresh: Symbol) -> None:
        """Add a symbol that comes before all others."""
        self.symbols = [fresh, *self.symbols]
        self.zeros, self.rows = [(0, *one) for one in self.zeros], [(0, *one) for one in self.rows]


def _replaced(row: Row, at: int, value: Row) -> Row:
    """Return a row with what a symbol is in its place; the factor of that is -1 in its value."""
    k = row[at]
    return tuple([a + k * b for a, b in zip(row, value, strict=True)]) if k else row


def _eliminated(rows: Iterable[Row]) -> list[_Step] | Literal["none", "unclear"]:
    """Return the steps that took every symbol out of inequalities, in order."""
    steps: list[_Step] = []
    kept: list[Row] = []
    while True:
        tight = _tight(kept, rows)
        if tight is None:
            return "none"
        if not tight:
            return steps
        if len(tight) > ROWS:
            return "unclear"
        at = _cheapest(tight)
        above, below = [r for r in tight if r[at] > 0], [r for r in tight if r[at] < 0]
        steps.append(_Step(at, above, below))
        kept = [row for row in tight if not row[at]]
        rows = [_joined(low, -high[at], high, low[at]) for low in above for high in below]


def _joined(one: Row, by: int, other: Row, times: int) -> Row:
    return tuple([a * by + b * times for a, b in zip(one, other, strict=True)])


def _tight(kept: Iterable[Row], rows: Iterable[Row]) -> list[Row] | None:
    """Return inequalities rounded to integers, as those that are `kept` are, the tightest of each
    slope; None if one is false."""
    tightest = {row[:-1]: row[-1] for row in kept}
    for row in rows:
        terms, offset = row[:-1], row[-1]
        common = gcd(*terms)
        if common > 1:
            terms, offset = tuple([k // common for k in terms]), offset // common
        if common:
            tightest[terms] = min(offset, tightest.get(terms, offset))
        elif offset < 0:
            return None
    return [(*terms, offset) for terms, offset in tightest.items()]


def _cheapest(rows: Sequence[Row]) -> int:
    """Return the column whose symbol is taken out with the fewest new rows; of several the one
    that is used first."""
    fewest, earliest, found = inf, len(rows), -1
    for at, column in enumerate(zip(*[row[:-1] for row in rows], strict=True)):
        some = len(rows) - column.count(0)
        if some:
            above = len([k for k in column if k > 0])
            new = above * (some - above) - some
            if new <= fewest:
                first = next(number for number, k in enumerate(column) if k)
                if new < fewest or first < earliest:
                    fewest, earliest, found = new, first, at
    return found


class _Search:
    """Tries values for the symbols of steps, the last first, small ones first."""

    def __init__(self, steps: Sequence[_Step]) -> None:
        self.steps = steps[::-1]
        self.left = TRIES

    def run(self, at: int = 0, found: Columns | None = None) -> Columns | None:
        """Return values that all inequalities admit; None where none was found."""
        found = found or {}
        if at == len(self.steps):
            return found
        for value in _between(*_interval(self.steps[at], found)):
            self.left -= 1
            if self.left < 0:
                return None
            done = self.run(at + 1, {**found, self.steps[at].column: value})
            if done is not None:
                return done
        return None


def _interval(step: _Step, found: Columns) -> tuple[int | None, int | None]:
    """Return the least and the greatest value of a symbol where the others have theirs."""
    lows = [-(number // k) for k, number in _apart(step.above, step.column, found)]
    highs = [number // -k for k, number in _apart(step.below, step.column, found)]
    return max(lows, default=None), min(highs, default=None)


def _apart(rows: Iterable[Row], at: int, found: Columns) -> Iterator[tuple[int, int]]:
    """Yield the factor of a symbol in each row, and what the rest is worth."""
    for row in rows:
        yield row[at], row[-1] + sum(row[c] * number for c, number in found.items())


def _between(lo: int | None, hi: int | None) -> Iterable[int]:
    """Return the numbers between bounds, the nearest to zero first where they are bounded."""
    if lo is None:
        return count(0 if hi is None else hi, -1)
    if hi is None:
        return count(lo)
    if lo < 0 < hi:
        return chain(range(hi + 1), range(-1, lo - 1, -1))
    return range(lo, hi + 1) if lo >= 0 else range(hi, lo - 1, -1)
