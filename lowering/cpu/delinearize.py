"""Loops that read the same elements again and again, as one loop around another.

Changes: where a loop asks for its symbol modulo a number, or for how often that is in it, and has a
whole multiple of so many rounds, it becomes two loops, of which each knows one of both:

    for i in 0..3*n: y[i] = x[i % n] + z[i // n]

    for turn in 0..3:
        for i in 0..n: y[n*turn + i] = x[i] + z[turn]

Elements that were somewhere lie side by side then, so that they become vectors.

Needs: loops that only store. Guarantees: not a bit changes: the rounds are the same, in their
order.

>>> show(periods, "y[i] = x[i % 30]", y="f32[90]", x="f32[30]")
for turn in 0..3:
    for i in 0..30:
        y[30*turn + i] = x[i]
"""

from __future__ import annotations

from collections.abc import Iterator

from ...base.dataclass import dataclass
from ..ir.expressions import Expr, Position, Read, rebuild, walk
from ..ir.fresh import Fresh, fresh_for
from ..ir.indexing import BUILDERS, Affine, Quasi, Symbol, const, multiply, var
from ..ir.loops import Comment, For, Program, Stmt, Store
from ..ir.rewrite import Rewrite, map_statements, over_kernels, rewrite
from ..ir.walk import expressions_of

LEAST = 16
"""So many rounds at least has a loop inside another one: vectors of neighbours."""


def periods(program: Program) -> Program:
    """Return the program with loops that ask for what is left of their symbol as two."""
    fresh = fresh_for(program)

    def parted(stmt: Stmt) -> tuple[Stmt, ...]:
        return (_parted(stmt, fresh) if isinstance(stmt, For) else stmt,)

    return over_kernels(program, lambda body: map_statements(body, parted))


def _parted(loop: For, fresh: Fresh) -> For:
    """Return a loop as two where it has a period, as often as that is so; else itself."""
    period = _period(loop)
    if period is None:
        return loop
    by, times = period
    turn, inside = fresh.symbol("turn"), fresh.symbol(loop.symbol.name)
    parts = _Parts(loop.symbol, by, var(turn), var(inside))
    body = rewrite(loop.body, Rewrite(parts.expr, parts.index))
    inner = _parted(For(inside, const(0), by, 1, body, span=loop.span), fresh)
    return For(turn, const(0), const(times), 1, (inner,), span=loop.span)


def _period(loop: For) -> tuple[Affine, int] | None:
    """Return after how many rounds at most a loop starts over, and how often it does."""
    if loop.kind != "serial" or loop.step != 1 or loop.lo != const(0):
        return None
    if not all(isinstance(stmt, Store | Comment) for stmt in loop.body):
        return None
    asked = dict.fromkeys(by for stmt in loop.body for by in _asked(stmt, loop.symbol))
    found = [(by, times) for by in asked if (times := _times(loop.hi, by)) > 1]
    return min(found, key=lambda one: one[1], default=None)


def _times(whole: Affine, by: Affine) -> int:
    """Return how often a number of rounds is in another one, 0 where that is not whole or clear."""
    if by.constant is not None:
        rounds = whole.constant or 0
        return rounds // by.constant if by.constant >= LEAST and rounds % by.constant == 0 else 0
    times = whole.terms[0][1] // by.terms[0][1] if whole.terms else 0
    return times if by * times == whole else 0


def _asked(stmt: Stmt, symbol: Symbol) -> Iterator[Affine]:
    """Yield by what a statement divides a symbol, to know how often it is in it or what is left."""
    places = [stmt.access.index] if isinstance(stmt, Store) else []
    for expr in expressions_of(stmt):
        for part in walk(expr):
            if isinstance(part, Position):
                places.append((part.index,))
            elif isinstance(part, Read):
                places.append(part.index)
    for index in (one for place in places for one in place):
        if isinstance(index, Affine):
            yield from _divisors(index, symbol)


def _divisors(index: Affine, symbol: Symbol) -> Iterator[Affine]:
    for atom, _ in index.terms:
        if isinstance(atom, Quasi):
            if _is_asked(atom, symbol):
                yield atom.right
            yield from _divisors(atom.left, symbol)
            yield from _divisors(atom.right, symbol)


def _is_asked(atom: Quasi, symbol: Symbol) -> bool:
    return atom.op in ("mod", "floordiv") and atom.left == var(symbol)


@dataclass(frozen=True, slots=True)
class _Parts:
    """A symbol that is `by * turn + inside`."""

    symbol: Symbol
    by: Affine
    turn: Affine
    inside: Affine

    def expr(self, expr: Expr) -> Expr:
        """Return an expression in terms of the parts."""
        return rebuild(expr, self.expr, self.index)

    def index(self, index: Affine) -> Affine:
        """Return an index in terms of the parts."""
        if self.symbol not in index.symbols():
            return index
        total = const(index.offset)
        for atom, factor in index.terms:
            total += self.atom(atom) * factor
        return total

    def atom(self, atom: Symbol | Quasi) -> Affine:
        """Return a symbol, or what is asked of some, in terms of the parts."""
        if isinstance(atom, Symbol):
            is_it = atom is self.symbol
            return multiply(self.turn, self.by) + self.inside if is_it else var(atom)
        if _is_asked(atom, self.symbol) and atom.right == self.by:
            return self.inside if atom.op == "mod" else self.turn
        return BUILDERS[atom.op](self.index(atom.left), self.index(atom.right))
