"""Hoist: work that is the same in every round of a loop is done once, before the loop.

Moves what always happens in the body, reads nothing that the loop writes, and uses no symbol that
is bound in it. It has to be sure to run, or to read only elements that exist: then it may also be
computed for a loop without rounds, and for a side that no round chooses. In accumulations and on
sides only dear work and work on scalars moves: schedules recognise sums of products. Single loads
stay for the same reason.

>>> show(hoist, "y[i, j] = x[i, j] * exp(s[i])", y="f32[8, 9]", x="f32[8, 9]", s="f32[8]")
for i in 0..8:
    exp_s = exp(s[i])
    for j in 0..9:
        y[i, j] = x[i, j] * exp_s
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ...base.dataclass import dataclass
from ...base.diagnostic import NOWHERE, Span
from ..analysis.effects import summary
from ..ir.assignments import Access, Break, Continue, Let, Print
from ..ir.bounds import Bounds, bounds_of
from ..ir.expressions import Apply, Cast, Dynamic, Expr, Read, Select, reads, rebuild, walk
from ..ir.fresh import Fresh, fresh_for, label_of
from ..ir.indexing import Symbol
from ..ir.loops import Check, For, If, Program, Stmt, Store, Update, While
from ..ir.node import Node
from ..ir.rewrite import Rewrite, over_kernels, rebuild_statement, rename, with_bodies
from ..ir.walk import free_symbols, own, statements

Body = tuple[Stmt, ...]
_CHEAP = frozenset("neg abs add sub mul eq ne lt le gt ge and or logical_not bitand bitor".split())
"""Operations that cost no more than the load of a name."""


def hoist(program: Program) -> Program:
    """Return the program with invariant scalar work before the loops that repeat it."""
    fresh = fresh_for(program)
    known = bounds_of(parameter.node for parameter in program.parameters)
    own = frozenset(node.id for node in program.locals if not node.rank)
    body = tuple(stmt for kernel in program.kernels for stmt in kernel.body)
    uses = _Uses.of(body)
    once = frozenset(id for id in own if uses.writes[id] == 1)
    work = _Work(fresh, once, uses.reads)
    return fresh.declared(over_kernels(program, lambda body: _body(body, known, work)))


@dataclass(frozen=True, slots=True)
class _Uses:
    """How often each node, by id, is read and written."""

    reads: Counter[int]
    writes: Counter[int]

    @classmethod
    def of(cls, body: Body) -> _Uses:
        """Count in some statements."""
        mine = [own(stmt) for stmt in statements(body)]
        read = Counter([one.node.id for each in mine for one in each.found])
        return cls(read, Counter([node.id for each in mine for node in each.writes]))


@dataclass(frozen=True, slots=True)
class _Work:
    """What is the same for all loops of a program."""

    fresh: Fresh
    once: frozenset[int]
    """Scalars that one statement writes."""
    reads: Counter[int]
    """How often each node is read in the whole program."""


def _body(body: Body, known: Bounds, work: _Work) -> Body:
    out: list[Stmt] = []
    ready: list[Store] = []  # names that still have the value of their expression
    for stmt in body:
        match stmt:
            case For():
                inner = _body(stmt.body, known.inside(stmt), work)
                loop = _Loop.of(with_bodies(stmt, (inner,)), known, work, ready)
                out += loop.split()
                ready += [one for one in loop.before if one.access.node in work.fresh.nodes]
            case If(test, then, other):
                sides = (
                    _body(then, known.where(test), work),
                    _body(other, known.where(test, False), work),
                )
                out.append(with_bodies(stmt, sides))
            case While(prelude, _, inner):
                new = _body(prelude, known, work), _body(inner, known, work)
                out.append(with_bodies(stmt, new))
            case _:
                out.append(stmt)
        if ready:
            written = summary(stmt).writes
            ready = [one for one in ready if not written & _reads(one.value)]
    return tuple(out)


@dataclass(slots=True)
class _Loop:
    """A loop whose body is done, and what may leave it."""

    loop: For
    known: Bounds
    """What holds before the loop."""
    work: _Work
    written: set[int]
    bound: frozenset[Symbol]
    sure: bool
    """Whether the statement at hand runs at least once."""
    ready: list[Store]
    """What stands before the loop already."""
    before: list[Store]

    @classmethod
    def of(cls, loop: For, known: Bounds, work: _Work, ready: list[Store]) -> _Loop:
        """Return the loop with what is written and bound in it."""
        rounds = loop.hi - loop.lo if loop.step > 0 else loop.lo - loop.hi
        least = known.least(rounds)
        inside = summary(loop)
        bound, written = inside.bound, set(inside.writes)
        return cls(loop, known, work, written, bound, least is not None and least > 0, ready, [])

    def split(self) -> Body:
        """Return what comes before the loop, and the loop."""
        body: list[Stmt] = []
        named: dict[int, Node] = {}  # names of inner loops for what has one out here
        for old in self.loop.body:
            (stmt,) = rename((old,), {}, named) if named else (old,)
            if isinstance(stmt, Store) and self.is_name(stmt, body):
                node = stmt.access.node
                known = self.named(stmt.value) if node in self.work.fresh.nodes else None
                if known is None:
                    self.before.append(stmt)
                else:
                    named[node.id] = known
                self.written.discard(node.id)
                continue
            body.append(self.statement(stmt))
            if not summary(stmt).kinds.isdisjoint((Check, Break, Continue, While)):
                self.sure = False
        return (*self.before, with_bodies(self.loop, (tuple(body),)))

    def is_name(self, store: Store, earlier: list[Stmt]) -> bool:
        """Whether a store only names a value for the rest of the body, and may leave whole."""
        node, work = store.access.node, self.work
        if node in work.fresh.nodes:
            return self.may_leave(store.value, reads(store.value))
        if node.id not in work.once or not self.may_leave(store.value, reads(store.value)):
            return False
        inside = _Uses.of(self.loop.body).reads[node.id] == work.reads[node.id]
        return inside and not _Uses.of(tuple(earlier)).reads[node.id]

    def statement(self, stmt: Stmt) -> Stmt:
        """Return a statement of the body with names for what leaves the loop."""
        span = getattr(stmt, "span", NOWHERE)
        match stmt:
            case Store() | Let() | Print():
                return rebuild_statement(stmt, Rewrite(lambda e: self.expr(e, False, span)))
            case Update():
                return rebuild_statement(stmt, Rewrite(lambda e: self.expr(e, True, span)))
            case If() | Check():
                return replace(stmt, test=self.expr(stmt.test, False, span))
            case _:
                return stmt

    def expr(self, expr: Expr, costly: bool, span: Span) -> Expr:
        """Return an expression with the largest parts that may leave, and are worth it, named."""
        stays = isinstance(expr, Apply) and expr.op.name == "product"  # where it is added
        if isinstance(expr, Apply | Cast) and not stays:
            read = reads(expr)
            if self.may_leave(expr, read) and _is_work(expr, read, costly):
                return Read(self.name(expr, span), ())
        if isinstance(expr, Select):
            test = self.expr(expr.test, costly, span)
            return Select(test, self.side(expr.yes, span), self.side(expr.no, span))
        return rebuild(expr, lambda e: self.expr(e, costly, span), lambda index: index)

    def side(self, expr: Expr, span: Span) -> Expr:
        """Return what is evaluated in some rounds or in none, without dear work that may leave."""
        sure, self.sure = self.sure, False
        expr = self.expr(expr, True, span)
        self.sure = sure
        return expr

    def may_leave(self, expr: Expr, read: list[Read]) -> bool:
        """Whether an expression that does these reads has one value in all rounds, and can be had
        before them."""
        for one in read:
            if one.node.id in self.written:
                return False
        if not self.bound.isdisjoint(free_symbols(expr)):
            return False
        return self.sure or all(map(self.exists, read))

    def exists(self, read: Read) -> bool:
        """Whether the element that is read exists, also where the loop has no rounds."""
        for index, size in zip(read.index, read.node.shape, strict=True):
            if isinstance(index, Dynamic) or read.node.static_shape is None:
                return False
            low, high = self.known.least(index), self.known.most(index - size)
            if low is None or low < 0 or high is None or high >= 0:
                return False
        return True

    def named(self, expr: Expr) -> Node | None:
        """Return the local that holds a value before the loop already, None where there is none."""
        stores = (*self.ready, *self.before)
        return next((one.access.node for one in stores if one.value == expr), None)

    def name(self, expr: Expr, span: Span) -> Node:
        """Return the local that holds the value before the loop, made where there is none."""
        known = self.named(expr)
        if known is not None:
            return known
        local = self.work.fresh.scalar(label_of(expr), expr.dtype)
        self.before.append(Store(Access(local, ()), expr, span))
        return local


def _is_work(expr: Apply | Cast, read: list[Read], costly: bool) -> bool:
    """Whether an expression is more than a load, and dear or of scalars where that is asked for."""
    if expr.dtype.compute is not expr.dtype:
        return False
    if read and not costly:
        return True
    if not read and not free_symbols(expr):  # constants
        return False
    dear = any(isinstance(one, Apply) and one.op.name not in _CHEAP for one in walk(expr))
    return dear or bool(read) and not any(one.index for one in read)


def _reads(expr: Expr) -> frozenset[int]:
    return frozenset([one.node.id for one in reads(expr)])
