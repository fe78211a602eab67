"""Delinearization: a loop whose subscripts have a period, as one loop around another.

Changes: where a loop of `k*n` iterations, `k` static, uses `i % n` or `i // n`, it is strip-mined
by `n`, and each of the two loops knows one of both:

    for i in 0..3*n: y[i] = x[i % n] + z[i // n]

    for turn in 0..3:
        for i in 0..n: y[n*turn + i] = x[i] + z[turn]

What was a remainder has stride 1 then, so that the inner loop can be vectorized.

Precondition: loops that only store. Postcondition: bit-identical: the iterations are the same, in
their order.

>>> show(delinearize_loops, "y[i] = x[i % 30]", y="f32[90]", x="f32[30]")
for turn in 0..3:
    for i in 0..30:
        y[30*turn + i] = x[i]
"""

from __future__ import annotations

from collections.abc import Iterator

from ...base.dataclass import dataclass
from .. import thresholds
from ..ir.expressions import Expr, Position, Read, rebuild, walk
from ..ir.fresh import Fresh, fresh_for
from ..ir.indexing import QUASI_BUILDERS, Affine, Quasi, Symbol, const, multiply, var
from ..ir.loops import Comment, For, Program, Stmt, Store
from ..ir.rewrite import Rewrite, map_kernels, map_statements, rewrite
from ..ir.walk import expressions_of


def delinearize_loops(program: Program) -> Program:
    """Return the program with loops over a multiple of a period in two."""
    fresh = fresh_for(program)

    def delinearize(stmt: Stmt) -> tuple[Stmt, ...]:
        return (_strip_mine(stmt, fresh) if isinstance(stmt, For) else stmt,)

    return map_kernels(program, lambda body: map_statements(body, delinearize))


def _strip_mine(loop: For, fresh: Fresh) -> For:
    """Return a loop strip-mined by its period, again where the inner one has one; else the loop
    itself."""
    period = _period(loop)
    if period is None:
        return loop
    by, times = period
    turn, inside = fresh.symbol("turn"), fresh.symbol(loop.symbol.name)
    delinearized = _Delinearized(loop.symbol, by, var(turn), var(inside))
    body = rewrite(loop.body, Rewrite(delinearized.expr, delinearized.index))
    inner = _strip_mine(For(inside, const(0), by, 1, body, span=loop.span), fresh)
    return For(turn, const(0), const(times), 1, (inner,), span=loop.span)


def _period(loop: For) -> tuple[Affine, int] | None:
    """Return the longest period of a loop's subscripts, in iterations, and how often the loop has
    it."""
    if loop.kind != "serial" or loop.step != 1 or loop.lo != const(0):
        return None
    if not all(isinstance(stmt, Store | Comment) for stmt in loop.body):
        return None
    divisors = dict.fromkeys(by for stmt in loop.body for by in _find_divisors(stmt, loop.symbol))
    candidates = [(by, times) for by in divisors if (times := _exact_quotient(loop.hi, by)) > 1]
    return min(candidates, key=lambda candidate: candidate[1], default=None)


def _exact_quotient(whole: Affine, by: Affine) -> int:
    """Return the quotient of two trip counts, 0 where it is not whole or not static."""
    if by.constant is not None:
        trip_count = whole.constant or 0
        return (
            trip_count // by.constant
            if by.constant >= thresholds.MIN_DELINEARIZED_ITERATIONS
            and trip_count % by.constant == 0
            else 0
        )
    times = whole.terms[0][1] // by.terms[0][1] if whole.terms else 0
    return times if by * times == whole else 0


def _find_divisors(stmt: Stmt, symbol: Symbol) -> Iterator[Affine]:
    """Yield the divisors `n` of `i % n` and `i // n` in a statement, `i` being the symbol."""
    subscripts = [stmt.access.index] if isinstance(stmt, Store) else []
    for expr in expressions_of(stmt):
        for part in walk(expr):
            if isinstance(part, Position):
                subscripts.append((part.index,))
            elif isinstance(part, Read):
                subscripts.append(part.index)
    for index in (subscript for indices in subscripts for subscript in indices):
        if isinstance(index, Affine):
            yield from _divisors(index, symbol)


def _divisors(index: Affine, symbol: Symbol) -> Iterator[Affine]:
    for atom, _ in index.terms:
        if isinstance(atom, Quasi):
            if _is_division(atom, symbol):
                yield atom.right
            yield from _divisors(atom.left, symbol)
            yield from _divisors(atom.right, symbol)


def _is_division(atom: Quasi, symbol: Symbol) -> bool:
    return atom.op in ("mod", "floordiv") and atom.left == var(symbol)


@dataclass(frozen=True, slots=True)
class _Delinearized:
    """The rewriting of a symbol as `by * turn + inside`."""

    symbol: Symbol
    by: Affine
    turn: Affine
    inside: Affine

    def expr(self, expr: Expr) -> Expr:
        """Return an expression in terms of the two symbols."""
        return rebuild(expr, self.expr, self.index)

    def index(self, index: Affine) -> Affine:
        """Return an index expression in terms of the two symbols."""
        if self.symbol not in index.symbols():
            return index
        total = const(index.offset)
        for atom, factor in index.terms:
            total += self.atom(atom) * factor
        return total

    def atom(self, atom: Symbol | Quasi) -> Affine:
        """Return a symbol, or a quotient or remainder, in terms of the two symbols."""
        if isinstance(atom, Symbol):
            is_it = atom is self.symbol
            return multiply(self.turn, self.by) + self.inside if is_it else var(atom)
        if _is_division(atom, self.symbol) and atom.right == self.by:
            return self.inside if atom.op == "mod" else self.turn
        return QUASI_BUILDERS[atom.op](self.index(atom.left), self.index(atom.right))
