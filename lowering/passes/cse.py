"""Common subexpressions: what was computed is not computed again.

An expression that is evaluated for sure gets a name where it is evaluated first, if the same value
is needed again before anything that it reads is written: later in the statement, in the statements
after it, or inside of loops and branches among them. What is evaluated only on one side of a choice
may use a name but gets none. Single loads stay: registers are the C compiler's business, and
schedules recognise products of loads.

>>> show(cse, '''
... y[i] = (x[i] + 1) * (x[i] + 1)
... ''', y="f32[8]", x="f32[8]")
for i in 0..8:
    total = x[i] + 1.0
    y[i] = total * total
"""

from __future__ import annotations

from dataclasses import field, replace

from ...base.dataclass import dataclass
from ...base.diagnostic import NOWHERE
from ..analysis.effects import summary
from ..ir.assignments import Access
from ..ir.expressions import Apply, Cast, Dynamic, Expr, Read, Select, reads, rebuild, walk
from ..ir.fresh import Fresh, fresh_for, label_of
from ..ir.loops import Check, For, If, Program, Stmt, Store, While
from ..ir.node import Node
from ..ir.rewrite import Rewrite, over_kernels, rebuild_statement, with_bodies
from ..ir.walk import expressions_of, inside, statements

Body = tuple[Stmt, ...]


def cse(program: Program) -> Program:
    """Return the program with repeated scalar work done once."""
    fresh = fresh_for(program)
    new = over_kernels(program, lambda body: _shared(body, fresh))
    return fresh.declared(new)


def _shared(body: Body, fresh: Fresh) -> Body:
    """Return the body after two walks that number values alike: one counts, one gives names."""
    repeated = _repeated(body)
    if not repeated.values:
        return body
    counting = _Walk(None, fresh, repeated)
    counting.block(body, {})
    if not counting.reused:
        return body
    return _Walk(counting.reused, fresh, repeated).block(body, {})


@dataclass(frozen=True, slots=True)
class _Repeated:
    """Expressions that are worth a name and are written more than once, wherever that is."""

    values: frozenset[Expr]
    users: frozenset[int]
    """The `id` of each statement with such an expression."""


def _repeated(body: Body) -> _Repeated:
    users: dict[Expr, list[int]] = {}
    for stmt in statements(body):
        for one in (one for expr in expressions_of(stmt) for one in walk(expr)):
            if _may_be_work(one):
                users.setdefault(one, []).append(id(stmt))
    twice = (one for one, met in users.items() if len(met) > 1)
    values = frozenset(one for one in twice if _is_work(one))
    return _Repeated(values, frozenset(user for one in values for user in users[one]))


@dataclass(slots=True)
class _Value:
    """A value that is available: its expression, what that reads, its number, and its name."""

    expr: Expr
    reads: frozenset[int]
    number: int
    local: Node | None = None


_Known = dict[Expr, _Value]


@dataclass(slots=True)
class _Walk:
    """One walk over the statements in program order."""

    named: set[int] | None
    """The numbers of the values that get a name; None while counting."""
    fresh: Fresh
    repeated: _Repeated
    reused: set[int] = field(default_factory=set)
    pending: list[Stmt] = field(default_factory=list)
    """Stores of names that have to come before the statement at hand."""
    count: int = 0

    def block(self, body: Body, outer: _Known) -> Body:
        """Return a list of statements; what becomes available in it is forgotten after it."""
        known = dict(outer)
        return tuple(new for stmt in body for new in self.statement(stmt, known))

    def statement(self, stmt: Stmt, known: _Known) -> Body:
        """Return a statement after the names that it needs, and forget what it overwrites."""
        written = summary(stmt).writes
        if self.repeated.users.isdisjoint(map(id, (stmt, *inside(stmt)))):
            _forget(known, written)
            return (stmt,)
        match stmt:
            case For(body=body):
                _forget(known, written)
                return (with_bodies(stmt, (self.block(body, known),)),)
            case While(prelude, test, body):
                _forget(known, written)
                before = self.block(prelude, known)
                test = self.expr(test, known, False, stmt)
                return (replace(stmt, prelude=before, test=test, body=self.block(body, known)),)
            case If(test, then, other):
                test = self.expr(test, known, True, stmt)
                defined = self.defined()
                sides = self.block(then, known), self.block(other, known)
                _forget(known, written)
                return (*defined, replace(with_bodies(stmt, sides), test=test))
            case Check(test, _, values):
                test = self.expr(test, known, True, stmt)
                shown = tuple(self.expr(value, known, False, stmt) for value in values)
                return (*self.defined(), replace(stmt, test=test, values=shown))
            case _:
                by = Rewrite(lambda expr: self.expr(expr, known, True, stmt))
                stmt = rebuild_statement(stmt, by)
                _forget(known, written)
                return (*self.defined(), stmt) if self.pending else (stmt,)

    def defined(self) -> Body:
        """Return the stores that are pending, which then no longer are."""
        done, self.pending = tuple(self.pending), []
        return done

    def expr(self, expr: Expr, known: _Known, sure: bool, stmt: Stmt) -> Expr:
        """Return an expression with names for what is available; `sure`: it is always evaluated."""
        if expr not in self.repeated.values:
            return self.inside(expr, known, sure, stmt)
        found = known.get(expr)
        if found is not None and found.expr == expr:
            self.reused.add(found.number)
            return expr if found.local is None else Read(found.local, ())
        if found is not None or not sure:
            return self.inside(expr, known, sure, stmt)
        value = _Value(expr, _reads(expr), self.count)
        self.count += 1
        new = self.inside(expr, known, sure, stmt)
        known[expr] = value
        if self.named is None or value.number not in self.named:
            return new
        value.local = self.fresh.scalar(label_of(expr), expr.dtype)
        span = getattr(stmt, "span", NOWHERE)
        self.pending.append(Store(Access(value.local, ()), new, span))
        return Read(value.local, ())

    def inside(self, expr: Expr, known: _Known, sure: bool, stmt: Stmt) -> Expr:
        """Return an expression with the names used inside of it."""
        if isinstance(expr, Select):
            test = self.expr(expr.test, known, sure, stmt)
            sides = (self.expr(side, known, False, stmt) for side in (expr.yes, expr.no))
            return Select(test, *sides)
        return rebuild(expr, lambda e: self.expr(e, known, sure, stmt), lambda index: index)


def _may_be_work(expr: Expr) -> bool:
    """Whether an expression computes, be it where to read."""
    if isinstance(expr, Read):
        return any(isinstance(i, Dynamic) for i in expr.index)
    if isinstance(expr, Apply):
        return expr.op.name != "product"  # it stays where it is added
    return isinstance(expr, Cast)


def _is_work(expr: Expr) -> bool:
    """Whether an expression that computes is worth a name: it does so from something in memory."""
    return expr.dtype.compute is expr.dtype and bool(_reads(expr))


def _reads(expr: Expr) -> frozenset[int]:
    return frozenset([one.node.id for one in reads(expr)])


def _forget(known: _Known, written: frozenset[int]) -> None:
    """Remove what reads something that is written, by the ids of nodes."""
    for expr, value in list(known.items()) if written else ():
        if value.reads & written:
            del known[expr]
