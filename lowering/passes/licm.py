"""Loop-invariant code motion, for scalar expressions.

Moves what every iteration of the body executes, reads nothing that the loop writes, and uses no
symbol bound in it. It has to be sure to run, or to read only elements that exist: then it may also
be computed for a loop without iterations, and for an arm of a select that no iteration chooses
(speculation). In accumulations and arms only expensive work and work on scalars moves: schedules
recognize sums of products. Single loads stay for the same reason.

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
from ..analysis.effects import summarize
from ..ir.assignments import Access, Break, Continue, Let, Print
from ..ir.bounds import Bounds, bounds_of
from ..ir.expressions import Apply, Cast, Dynamic, Expr, Read, Select, reads, rebuild, walk
from ..ir.fresh import Fresh, fresh_for, label_of
from ..ir.indexing import Symbol
from ..ir.loops import Check, For, If, Program, Stmt, Store, Update, While
from ..ir.node import Node
from ..ir.rewrite import Rewrite, map_kernels, rebuild_statement, rename, with_bodies
from ..ir.walk import direct_effects, free_symbols, statements

Body = tuple[Stmt, ...]
_CHEAP = frozenset("neg abs add sub mul eq ne lt le gt ge and or logical_not bitand bitor".split())
"""Operations that cost no more than the load of a scalar."""


def hoist(program: Program) -> Program:
    """Return the program with invariant scalar work before the loops that repeat it."""
    fresh = fresh_for(program)
    bounds = bounds_of(parameter.node for parameter in program.parameters)
    scalars = frozenset(node.id for node in program.locals if not node.rank)
    body = tuple(stmt for kernel in program.kernels for stmt in kernel.body)
    uses = _Uses.of(body)
    written_once = frozenset(id for id in scalars if uses.writes[id] == 1)
    context = _Context(fresh, written_once, uses.reads)
    return fresh.declared(map_kernels(program, lambda body: _hoist_in(body, bounds, context)))


@dataclass(frozen=True, slots=True)
class _Uses:
    """How often each node, by id, is read and written."""

    reads: Counter[int]
    writes: Counter[int]

    @classmethod
    def of(cls, body: Body) -> _Uses:
        """Count the accesses in some statements."""
        by_statement = [direct_effects(stmt) for stmt in statements(body)]
        read = Counter([load.node.id for accesses in by_statement for load in accesses.all_reads])
        return cls(
            read, Counter([node.id for accesses in by_statement for node in accesses.writes])
        )


@dataclass(frozen=True, slots=True)
class _Context:
    """What all loops of a program share."""

    fresh: Fresh
    written_once: frozenset[int]
    """Scalars that one statement writes."""
    reads: Counter[int]
    """How often each node is read in the whole program."""


def _hoist_in(body: Body, bounds: Bounds, context: _Context) -> Body:
    out: list[Stmt] = []
    available: list[Store] = []  # scalars that still hold their expression
    for stmt in body:
        match stmt:
            case For():
                inner = _hoist_in(stmt.body, bounds.inside(stmt), context)
                loop = _HoistingLoop.of(with_bodies(stmt, (inner,)), bounds, context, available)
                out += loop.split()
                available += [
                    store for store in loop.before if store.access.node in context.fresh.nodes
                ]
            case If(test, then, orelse):
                sides = (
                    _hoist_in(then, bounds.where(test), context),
                    _hoist_in(orelse, bounds.where(test, False), context),
                )
                out.append(with_bodies(stmt, sides))
            case While(prelude, _, inner):
                new = _hoist_in(prelude, bounds, context), _hoist_in(inner, bounds, context)
                out.append(with_bodies(stmt, new))
            case _:
                out.append(stmt)
        if available:
            written = summarize(stmt).writes
            available = [store for store in available if not written & _nodes_read(store.value)]
    return tuple(out)


@dataclass(slots=True)
class _HoistingLoop:
    """A loop whose body is done, and what may be hoisted out of it."""

    loop: For
    bounds: Bounds
    """The facts that hold before the loop."""
    context: _Context
    written: set[int]
    bound: frozenset[Symbol]
    is_sure: bool
    """Whether the current statement runs at least once."""
    available: list[Store]
    """The scalars that are available before the loop already."""
    before: list[Store]

    @classmethod
    def of(
        cls, loop: For, bounds: Bounds, context: _Context, available: list[Store]
    ) -> _HoistingLoop:
        """Return the loop with what is written and bound in it."""
        trip_count = loop.hi - loop.lo if loop.step > 0 else loop.lo - loop.hi
        least = bounds.least(trip_count)
        effects = summarize(loop)
        bound, written = effects.bound, set(effects.writes)
        return cls(
            loop, bounds, context, written, bound, least is not None and least > 0, available, []
        )

    def split(self) -> Body:
        """Return the hoisted stores, and the loop."""
        body: list[Stmt] = []
        named: dict[int, Node] = {}  # scalars of inner loops that have one out here
        for stmt_before in self.loop.body:
            (stmt,) = rename((stmt_before,), {}, named) if named else (stmt_before,)
            if isinstance(stmt, Store) and self.is_hoistable_store(stmt, body):
                node = stmt.access.node
                existing = (
                    self.find_scalar(stmt.value) if node in self.context.fresh.nodes else None
                )
                if existing is None:
                    self.before.append(stmt)
                else:
                    named[node.id] = existing
                self.written.discard(node.id)
                continue
            body.append(self.statement(stmt))
            if not summarize(stmt).kinds.isdisjoint((Check, Break, Continue, While)):
                self.is_sure = False
        return (*self.before, with_bodies(self.loop, (tuple(body),)))

    def is_hoistable_store(self, store: Store, earlier: list[Stmt]) -> bool:
        """Whether a store only names a value for the rest of the body, and may be hoisted whole."""
        node, context = store.access.node, self.context
        if node in context.fresh.nodes:
            return self.is_invariant(store.value, reads(store.value))
        if node.id not in context.written_once or not self.is_invariant(
            store.value, reads(store.value)
        ):
            return False
        inside = _Uses.of(self.loop.body).reads[node.id] == context.reads[node.id]
        return inside and not _Uses.of(tuple(earlier)).reads[node.id]

    def statement(self, stmt: Stmt) -> Stmt:
        """Return a statement of the body with scalars for what is hoisted."""
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

    def expr(self, expr: Expr, only_expensive: bool, span: Span) -> Expr:
        """Return an expression with its largest parts that may be hoisted, and are worth it,
        replaced by scalars."""
        stays = isinstance(expr, Apply) and expr.op.name == "product"  # it stays with its sum
        if isinstance(expr, Apply | Cast) and not stays:
            read = reads(expr)
            if self.is_invariant(expr, read) and _is_worth_hoisting(expr, read, only_expensive):
                return Read(self.scalar_for(expr, span), ())
        if isinstance(expr, Select):
            test = self.expr(expr.test, only_expensive, span)
            return Select(test, self.arm(expr.yes, span), self.arm(expr.no, span))
        return rebuild(expr, lambda e: self.expr(e, only_expensive, span), lambda index: index)

    def arm(self, expr: Expr, span: Span) -> Expr:
        """Return an arm, which some iterations or none evaluate, without expensive work that may be
        hoisted."""
        sure, self.is_sure = self.is_sure, False
        expr = self.expr(expr, True, span)
        self.is_sure = sure
        return expr

    def is_invariant(self, expr: Expr, read: list[Read]) -> bool:
        """Whether an expression that does these reads is loop-invariant, and safe to evaluate
        before the loop."""
        for load in read:
            if load.node.id in self.written:
                return False
        if not self.bound.isdisjoint(free_symbols(expr)):
            return False
        return self.is_sure or all(map(self.is_in_bounds, read))

    def is_in_bounds(self, read: Read) -> bool:
        """Whether the element that is read exists, also where the loop has no iterations."""
        for index, size in zip(read.index, read.node.shape, strict=True):
            if isinstance(index, Dynamic) or read.node.static_shape is None:
                return False
            low, high = self.bounds.least(index), self.bounds.most(index - size)
            if low is None or low < 0 or high is None or high >= 0:
                return False
        return True

    def find_scalar(self, expr: Expr) -> Node | None:
        """Return the local that holds a value before the loop already, None where there is none."""
        stores = (*self.available, *self.before)
        return next((store.access.node for store in stores if store.value == expr), None)

    def scalar_for(self, expr: Expr, span: Span) -> Node:
        """Return the local that holds the value before the loop, created where there is none."""
        existing = self.find_scalar(expr)
        if existing is not None:
            return existing
        local = self.context.fresh.scalar(label_of(expr), expr.dtype)
        self.before.append(Store(Access(local, ()), expr, span))
        return local


def _is_worth_hoisting(expr: Apply | Cast, read: list[Read], only_expensive: bool) -> bool:
    """Whether an expression is more than a load, and expensive or of scalars where that is
    required."""
    if expr.dtype.compute is not expr.dtype:
        return False
    if read and not only_expensive:
        return True
    if not read and not free_symbols(expr):  # constants
        return False
    is_expensive = any(
        isinstance(operand, Apply) and operand.op.name not in _CHEAP for operand in walk(expr)
    )
    return is_expensive or bool(read) and not any(load.index for load in read)


def _nodes_read(expr: Expr) -> frozenset[int]:
    return frozenset([read.node.id for read in reads(expr)])
