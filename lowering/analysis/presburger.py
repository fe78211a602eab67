"""Integer solutions of linear equations and inequalities (quantifier-free Presburger arithmetic).

Equations go first: a symbol with the coefficient 1 or -1 is substituted, other coefficients are
reduced as in Euclid's algorithm. The inequalities that are left lose one symbol after the other
(Fourier-Motzkin elimination), tightened to integers on the way (W. Pugh, The Omega test, 1991).
"none" is sure; a solution has been verified. Analysis only.

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

from .. import thresholds
from ..ir.indexing import Affine, Atom, Quasi, Symbol, const, evaluate, floordiv, var

Solution = dict[Symbol, int]
Row = tuple[int, ...]
"""A linear expression: the coefficient of each symbol, one column a symbol, then the offset."""
Columns = dict[int, int]
"""Values of symbols, by their columns."""


class _Step(NamedTuple):
    """An eliminated symbol, and the inequalities that bound it."""

    column: int
    above: list[Row]
    """Those in which it has a positive coefficient: lower bounds."""
    below: list[Row]


class _Value(NamedTuple):
    """The value of a symbol by an equation."""

    symbol: Symbol
    terms: list[tuple[Symbol, int]]
    offset: int

    def of(self, solution: Solution) -> int:
        """Return the number; symbols that are free are set to zero."""
        return self.offset + sum(k * solution.setdefault(symbol, 0) for symbol, k in self.terms)


def solve(zero: Iterable[Affine], least: Iterable[Affine]) -> Solution | Literal["none", "unclear"]:
    """Return a solution of `zero == 0` and `least >= 0`, "none" where there surely is none.

    Functions such as a minimum are replaced by symbols with their bounds, products of symbols by
    free symbols: with them the answer is "unclear" more often.
    """
    linearize = _Linearizer()
    wanted = tuple(zero), tuple(least)
    equal = [linearize(expr) for expr in wanted[0]]
    above = [linearize(expr) for expr in wanted[1]]
    above += linearize.bounds
    equal += linearize.zeros
    opposite = {expr * -1 for expr in above}
    equal += [expr for expr in above if expr in opposite]  # neither below zero nor above it
    table = _Table.of(equal, above)
    values = table.substituted()
    if values is None:
        return "none"
    steps = _eliminate(table.rows)
    if isinstance(steps, str):
        return steps
    search = _Search(steps)
    columns = search.run()
    if columns is None:
        return "unclear" if search.left < 0 else "none"
    solution = {table.symbols[column]: number for column, number in columns.items()}
    for value in reversed(values):
        solution[value.symbol] = value.of(solution)
    if linearize.symbols and not _is_solution(solution, *wanted):
        return "unclear"
    return {symbol: solution[symbol] for symbol in solution if symbol.serial > _FRESH}


def _is_solution(solution: Solution, zero: Iterable[Affine], least: Iterable[Affine]) -> bool:
    """Whether numbers solve a system with its functions evaluated."""
    symbols = frozenset(s for expr in (*zero, *least) for s in expr.symbols())
    values = {symbol: solution.get(symbol, 0) for symbol in symbols}
    try:
        return all(evaluate(expr, values) == 0 for expr in zero) and all(
            evaluate(expr, values) >= 0 for expr in least
        )
    except ZeroDivisionError:
        return False


_FRESH = -(2**40)
"""Symbols with serials up to this are created here."""


class _Linearizer:
    """Replaces functions in index expressions by symbols, and collects bounds of these."""

    def __init__(self) -> None:
        self.symbols: dict[Atom, Symbol] = {}
        self.zeros: list[Affine] = []
        self.bounds: list[Affine] = []

    def __call__(self, index: Affine) -> Affine:
        """Return the expression with every function replaced by a symbol."""
        if all(isinstance(atom, Symbol) for atom, _ in index.terms):
            return index
        out = const(index.offset)
        for atom, factor in index.terms:
            name = atom if isinstance(atom, Symbol) else self.named(atom)
            out += var(name) * factor
        return out

    def named(self, atom: Quasi) -> Symbol:
        existing = self.symbols.get(atom)
        if existing is not None:
            return existing
        name = self.symbols[atom] = Symbol(atom.op, _FRESH - len(self.symbols))
        variable = var(name)
        divisor = atom.right.constant
        match atom.op:
            case "min":
                self.bounds += [self(atom.left) - variable, self(atom.right) - variable]
            case "max":
                self.bounds += [variable - self(atom.left), variable - self(atom.right)]
            case "floordiv" if divisor is not None and divisor > 0:
                rest = self(atom.left) - variable * divisor
                self.bounds += [rest, rest * -1 + (divisor - 1)]
            case "mod" if divisor is not None and divisor > 0:
                quotient = self(floordiv(atom.left, atom.right))
                self.bounds += [variable, variable * -1 + (divisor - 1)]
                self.zeros.append(self(atom.left) - quotient * divisor - variable)
            case _:
                pass
        return name


class _Table:
    """Equations and inequalities as rows of integers, columns in the order of the symbols'
    serials."""

    __slots__ = ("rows", "symbols", "zeros")

    def __init__(self, symbols: list[Symbol], zeros: list[Row], rows: list[Row]) -> None:
        self.symbols, self.zeros, self.rows = symbols, zeros, rows

    @classmethod
    def of(cls, zeros: Sequence[Affine], rows: Sequence[Affine]) -> _Table:
        """Return the table of expressions without functions."""
        used = {s for expr in (*zeros, *rows) for s, _ in expr.terms if isinstance(s, Symbol)}
        symbols = sorted(used, key=lambda symbol: (symbol.serial, symbol.name))
        column: dict[Atom, int] = {symbol: at for at, symbol in enumerate(symbols)}

        def row(expr: Affine) -> Row:
            numbers = [0] * len(symbols)
            for atom, k in expr.terms:
                numbers[column[atom]] = k
            return (*numbers, expr.offset)

        return cls(symbols, list(map(row, zeros)), list(map(row, rows)))

    def substituted(self) -> list[_Value] | None:
        """Eliminate symbols by the equations; return their values, in order, None where these
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
            nonzero = [(s, n) for s, n in zip(self.symbols, value, strict=False) if n]
            eliminated = self.symbols[at]
            values.append(
                _Value(
                    eliminated, [term for term in nonzero if term[0] is not eliminated], value[-1]
                )
            )
            self.zeros = [_substitute(equation, at, value) for equation in self.zeros]
            self.rows = [_substitute(inequality, at, value) for inequality in self.rows]
        self.narrow()
        return values

    def narrow(self) -> None:
        """Remove the symbols that no inequality has: half of them, once equations are solved."""
        columns = zip(*[row[:-1] for row in self.rows], strict=True)
        used = [at for at, column in enumerate(columns) if any(column)]
        self.symbols = [self.symbols[at] for at in used]
        self.rows = [(*[row[at] for at in used], row[-1]) for row in self.rows]

    def widen(self, fresh: Symbol) -> None:
        """Add a symbol that comes before all others."""
        self.symbols = [fresh, *self.symbols]
        self.zeros, self.rows = [(0, *row) for row in self.zeros], [(0, *row) for row in self.rows]


def _substitute(row: Row, at: int, value: Row) -> Row:
    """Return a row with the value of a symbol substituted; the symbol's coefficient in the value is
    -1."""
    k = row[at]
    return tuple([a + k * b for a, b in zip(row, value, strict=True)]) if k else row


def _eliminate(rows: Iterable[Row]) -> list[_Step] | Literal["none", "unclear"]:
    """Return the steps that eliminate every symbol from inequalities, in order
    (Fourier-Motzkin)."""
    steps: list[_Step] = []
    untouched: list[Row] = []
    while True:
        tight = _tighten(untouched, rows)
        if tight is None:
            return "none"
        if not tight:
            return steps
        if len(tight) > thresholds.MAX_INEQUALITIES:
            return "unclear"
        at = _choose_column(tight)
        above, below = [r for r in tight if r[at] > 0], [r for r in tight if r[at] < 0]
        steps.append(_Step(at, above, below))
        untouched = [row for row in tight if not row[at]]
        rows = [_combine(low, -high[at], high, low[at]) for low in above for high in below]


def _combine(left: Row, by: int, right: Row, times: int) -> Row:
    return tuple([a * by + b * times for a, b in zip(left, right, strict=True)])


def _tighten(tight: Iterable[Row], rows: Iterable[Row]) -> list[Row] | None:
    """Return inequalities tightened to integers (as those in `tight` are), the strictest of each
    slope; None if one is false."""
    tightest = {row[:-1]: row[-1] for row in tight}
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


def _choose_column(rows: Sequence[Row]) -> int:
    """Return the column whose elimination adds the fewest rows; of several the one that is used
    first."""
    fewest, earliest, best = inf, len(rows), -1
    for at, column in enumerate(zip(*[row[:-1] for row in rows], strict=True)):
        nonzero = len(rows) - column.count(0)
        if nonzero:
            above = len([k for k in column if k > 0])
            added = above * (nonzero - above) - nonzero
            if added <= fewest:
                first = next(number for number, k in enumerate(column) if k)
                if added < fewest or first < earliest:
                    fewest, earliest, best = added, first, at
    return best


class _Search:
    """Enumerates values of the symbols of steps, in the reverse order of elimination, small ones
    first."""

    def __init__(self, steps: Sequence[_Step]) -> None:
        self.steps = steps[::-1]
        self.left = thresholds.MAX_INTEGER_TRIES

    def run(self, at: int = 0, chosen: Columns | None = None) -> Columns | None:
        """Return values that satisfy all inequalities; None where none was found."""
        chosen = chosen or {}
        if at == len(self.steps):
            return chosen
        for value in _between(*_interval(self.steps[at], chosen)):
            self.left -= 1
            if self.left < 0:
                return None
            result = self.run(at + 1, {**chosen, self.steps[at].column: value})
            if result is not None:
                return result
        return None


def _interval(step: _Step, chosen: Columns) -> tuple[int | None, int | None]:
    """Return the least and the greatest value of a symbol where the others are fixed."""
    lows = [-(number // k) for k, number in _split_rows(step.above, step.column, chosen)]
    highs = [number // -k for k, number in _split_rows(step.below, step.column, chosen)]
    return max(lows, default=None), min(highs, default=None)


def _split_rows(rows: Iterable[Row], at: int, chosen: Columns) -> Iterator[tuple[int, int]]:
    """Yield the coefficient of a symbol in each row, and the value of the rest."""
    for row in rows:
        yield row[at], row[-1] + sum(row[c] * number for c, number in chosen.items())


def _between(lo: int | None, hi: int | None) -> Iterable[int]:
    """Return the numbers between bounds, the nearest to zero first where they are bounded."""
    if lo is None:
        return count(0 if hi is None else hi, -1)
    if hi is None:
        return count(lo)
    if lo < 0 < hi:
        return chain(range(hi + 1), range(-1, lo - 1, -1))
    return range(lo, hi + 1) if lo >= 0 else range(hi, lo - 1, -1)
