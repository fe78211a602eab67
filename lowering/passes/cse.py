"""Common subexpression elimination, over statements and loop nests.

An expression that is surely evaluated is assigned to a scalar where it is evaluated first, if the
same value is needed again before anything that it reads is written: later in the statement, in the
statements after it, or inside of loops and branches among them. What is evaluated in one arm of a
select only may use such a scalar but creates none. Single loads stay: registers are the C
compiler's business, and schedules recognize products of loads.

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
from ..analysis.effects import summarize
from ..ir.assignments import Access
from ..ir.expressions import Apply, Cast, Dynamic, Expr, Read, Select, reads, rebuild, walk
from ..ir.fresh import Fresh, fresh_for, label_of
from ..ir.loops import Check, For, If, Program, Stmt, Store, While
from ..ir.node import Node
from ..ir.rewrite import Rewrite, map_kernels, rebuild_statement, with_bodies
from ..ir.walk import expressions_of, inside, statements

Body = tuple[Stmt, ...]


def cse(program: Program) -> Program:
    """Return the program with repeated scalar work done once."""
    fresh = fresh_for(program)
    new = map_kernels(program, lambda body: _eliminate(body, fresh))
    return fresh.declared(new)


def _eliminate(body: Body, fresh: Fresh) -> Body:
    """Return the body after two walks that number values alike: one counts, one assigns scalars."""
    repeated = _find_repeated(body)
    if not repeated.values:
        return body
    counting = _ValueNumbering(None, fresh, repeated)
    counting.block(body, {})
    if not counting.reused:
        return body
    return _ValueNumbering(counting.reused, fresh, repeated).block(body, {})


@dataclass(frozen=True, slots=True)
class _RepeatedValues:
    """Expressions worth a scalar that occur more than once, anywhere."""

    values: frozenset[Expr]
    users: frozenset[int]
    """The `id` of each statement with such an expression."""


def _find_repeated(body: Body) -> _RepeatedValues:
    users: dict[Expr, list[int]] = {}
    for stmt in statements(body):
        for value in (value for expr in expressions_of(stmt) for value in walk(expr)):
            if _computes(value):
                users.setdefault(value, []).append(id(stmt))
    repeated = (value for value, uses in users.items() if len(uses) > 1)
    values = frozenset(value for value in repeated if _is_worth_scalar(value))
    return _RepeatedValues(values, frozenset(user for value in values for user in users[value]))


@dataclass(slots=True)
class _Value:
    """An available value: its expression, the nodes that it reads, its number and its scalar."""

    expr: Expr
    reads: frozenset[int]
    number: int
    local: Node | None = None


_AvailableValues = dict[Expr, _Value]


@dataclass(slots=True)
class _ValueNumbering:
    """One walk over the statements in program order."""

    named: set[int] | None
    """The numbers of the values that get a scalar; None while counting."""
    fresh: Fresh
    repeated: _RepeatedValues
    reused: set[int] = field(default_factory=set)
    pending: list[Stmt] = field(default_factory=list)
    """Stores of scalars that have to precede the current statement."""
    count: int = 0

    def block(self, body: Body, outer: _AvailableValues) -> Body:
        """Return a list of statements; values that become available in it are dropped after it."""
        available = dict(outer)
        return tuple(new for stmt in body for new in self.statement(stmt, available))

    def statement(self, stmt: Stmt, available: _AvailableValues) -> Body:
        """Return a statement after the scalars that it needs, and drop what it overwrites."""
        written = summarize(stmt).writes
        if self.repeated.users.isdisjoint(map(id, (stmt, *inside(stmt)))):
            _invalidate(available, written)
            return (stmt,)
        match stmt:
            case For(body=body):
                _invalidate(available, written)
                return (with_bodies(stmt, (self.block(body, available),)),)
            case While(prelude, test, body):
                _invalidate(available, written)
                before = self.block(prelude, available)
                test = self.expr(test, available, False, stmt)
                return (replace(stmt, prelude=before, test=test, body=self.block(body, available)),)
            case If(test, then, orelse):
                test = self.expr(test, available, True, stmt)
                defined = self.defined()
                sides = self.block(then, available), self.block(orelse, available)
                _invalidate(available, written)
                return (*defined, replace(with_bodies(stmt, sides), test=test))
            case Check(test, _, values):
                test = self.expr(test, available, True, stmt)
                shown = tuple(self.expr(value, available, False, stmt) for value in values)
                return (*self.defined(), replace(stmt, test=test, values=shown))
            case _:
                by = Rewrite(lambda expr: self.expr(expr, available, True, stmt))
                stmt = rebuild_statement(stmt, by)
                _invalidate(available, written)
                return (*self.defined(), stmt) if self.pending else (stmt,)

    def defined(self) -> Body:
        """Return the pending stores and clear them."""
        done, self.pending = tuple(self.pending), []
        return done

    def expr(self, expr: Expr, available: _AvailableValues, sure: bool, stmt: Stmt) -> Expr:
        """Return an expression with scalars for available values; `sure`: it is always
        evaluated."""
        if expr not in self.repeated.values:
            return self.inside(expr, available, sure, stmt)
        earlier = available.get(expr)
        if earlier is not None and earlier.expr == expr:
            self.reused.add(earlier.number)
            return expr if earlier.local is None else Read(earlier.local, ())
        if earlier is not None or not sure:
            return self.inside(expr, available, sure, stmt)
        value = _Value(expr, _nodes_read(expr), self.count)
        self.count += 1
        new = self.inside(expr, available, sure, stmt)
        available[expr] = value
        if self.named is None or value.number not in self.named:
            return new
        value.local = self.fresh.scalar(label_of(expr), expr.dtype)
        span = getattr(stmt, "span", NOWHERE)
        self.pending.append(Store(Access(value.local, ()), new, span))
        return Read(value.local, ())

    def inside(self, expr: Expr, available: _AvailableValues, sure: bool, stmt: Stmt) -> Expr:
        """Return an expression with its subexpressions replaced."""
        if isinstance(expr, Select):
            test = self.expr(expr.test, available, sure, stmt)
            sides = (self.expr(side, available, False, stmt) for side in (expr.yes, expr.no))
            return Select(test, *sides)
        return rebuild(expr, lambda e: self.expr(e, available, sure, stmt), lambda index: index)


def _computes(expr: Expr) -> bool:
    """Whether an expression computes a value, or a subscript to read at."""
    if isinstance(expr, Read):
        return any(isinstance(i, Dynamic) for i in expr.index)
    if isinstance(expr, Apply):
        return expr.op.name != "product"  # it stays with its sum
    return isinstance(expr, Cast)


def _is_worth_scalar(expr: Expr) -> bool:
    """Whether an expression that computes is worth a scalar: it reads memory."""
    return expr.dtype.compute is expr.dtype and bool(_nodes_read(expr))


def _nodes_read(expr: Expr) -> frozenset[int]:
    return frozenset([read.node.id for read in reads(expr)])


def _invalidate(available: _AvailableValues, written: frozenset[int]) -> None:
    """Remove the values that read a node that is written, by ids."""
    for expr, value in list(available.items()) if written else ():
        if value.reads & written:
            del available[expr]
