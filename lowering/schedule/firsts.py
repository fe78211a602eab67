"""Loops that look for the first greatest term by a test: an argmax, and what is left to do behind.

    for i: if t(i) > m: m = t(i); b = i
    becomes
    best, at = nothing
    for i: best, at argmax= t(i) at i                     terms that are NaN are left out
    if at is found and best > m: m = best; b = at

Needs a test that is one for greater or less, of a term that needs neither `m` nor `b`. Of equal
terms the first is kept by both; `m` may be NaN, or greater than all terms, and stays then. Loops in
each other whose rounds can be numbered look together.

>>> program, _ = optimize(lowered('''
... m = x[0]
... for i in range(len(x)):
...     if x[i] > m:
...         m = x[i]
... y[0] = m
... ''', y="i64[1]", x="i64[900]"), Target("cuda"))
>>> found = firsts(program.kernels[0].body, fresh_for(program))
>>> print_loops(tuple(stmt for stmt in found if isinstance(stmt, For)))
for i in 0..900:
    m_first, m_at argmax= x[i] at i
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..dataclass import dataclass
from ..ir import dtypes
from ..ir.assignments import Access, Pair
from ..ir.expressions import Apply, Const, Expr, Position, Read, reads
from ..ir.fresh import Fresh
from ..ir.loops import Comment, For, If, Stmt, Store, Update
from ..ir.node import Node
from ..ir.ops import ARGMAX, ARGMIN, OPS, Op
from ..ir.rewrite import substitute_expr, with_bodies
from ..ir.walk import binds, bodies, own_reads, own_writes, statements, uses
from .nests import around, nest_of
from .numbered import Numbered, numbered
from .tree import zero_of

MIRRORED = {"gt": "lt", "lt": "gt"}


@dataclass(frozen=True, slots=True)
class _First:
    """A branch that keeps the first best of all terms so far."""

    branch: If
    best: Node
    term: Expr
    test: str
    places: tuple[Store, ...]
    """What keeps where it was found."""

    @property
    def op(self) -> Op:
        return ARGMAX if self.test == "gt" else ARGMIN


def firsts(body: tuple[Stmt, ...], fresh: Fresh) -> tuple[Stmt, ...]:
    """Return statements in which loops that look for a first best term are reductions."""
    return tuple(made for stmt in body for made in _reduced(stmt, fresh))


def _reduced(stmt: Stmt, fresh: Fresh) -> tuple[Stmt, ...]:
    """Return what takes the place of a statement: itself where it looks for nothing."""
    starts, ends = list[Stmt](), list[Stmt]()
    if isinstance(stmt, For):
        loops, body = nest_of(stmt)
        order = _order(loops)
        for branch in body if order is not None else ():
            found = first_of(branch) if isinstance(branch, If) else None
            if found is not None and order is not None and _is_alone(found, body):
                start, one, end = _made(found, order, fresh)
                body = tuple(one if part is branch else part for part in body)
                starts, ends = [*starts, *start], [*ends, *end]
        if starts:
            (stmt,) = around(loops, firsts(body, fresh))
            return (*starts, stmt, *ends)
    return (with_bodies(stmt, tuple(firsts(part, fresh) for part in bodies(stmt))),)


def _order(loops: tuple[For, ...]) -> Numbered | None:
    """Return loops with numbers that are known to grow, None where they have none."""
    if any(loop.step < 0 or loop.kind != "serial" for loop in loops):
        return None
    order = numbered(loops)
    known = order is not None and all(size.constant is not None for size in order.sizes)
    return order if known else None


def first_of(stmt: If) -> _First | None:
    """Return what a branch keeps, None where it does something else."""
    test, stores = stmt.test, [one for one in stmt.then if not isinstance(one, Comment)]
    if stmt.other or not isinstance(test, Apply) or test.op.name not in MIRRORED:
        return None
    (term, old), name = test.args, test.op.name
    if not isinstance(old, Read) or old.node.rank or not _stores(stores, old.node, term):
        (old, term), name = test.args, MIRRORED[test.op.name]
    if not isinstance(old, Read) or old.node.rank or not _stores(stores, old.node, term):
        return None
    if old.node.dtype is not term.dtype or term.dtype.kind not in "iuf":
        return None
    others = [one for one in stores if isinstance(one, Store) and one.access.node != old.node]
    if any(not isinstance(one.value, Position | Const) for one in others):
        return None
    return _First(stmt, old.node, term, name, tuple(others))


def _stores(stores: Sequence[Stmt], node: Node, term: Expr) -> bool:
    """Whether statements put a term into a scalar, and do nothing else but to fill scalars."""
    plain = all(isinstance(one, Store) and not one.access.index for one in stores)
    theirs = [one for one in stores if isinstance(one, Store) and one.access.node == node]
    return plain and [one.value for one in theirs] == [term]


def _is_alone(found: _First, body: tuple[Stmt, ...]) -> bool:
    """Whether nothing else in a round uses what a branch keeps, and no term needs it."""
    kept = {found.best, *(one.access.node for one in found.places)}
    if any(read.node in kept for read in reads(found.term)):
        return False
    named = {symbol for stmt in statements(body) for symbol in binds(stmt)}
    if any(named & uses(one) for one in found.places):
        return False
    inside = {id(stmt) for stmt in statements((found.branch,))}
    rest = [stmt for stmt in statements(body) if id(stmt) not in inside]
    return not any(kept & {*own_reads(stmt), *own_writes(stmt)} for stmt in rest)


def _made(
    found: _First, order: Numbered, fresh: Fresh
) -> tuple[tuple[Stmt, ...], Stmt, tuple[Stmt, ...]]:
    """Return what starts a reduction, what each round does for it, and what takes its result."""
    label, dtype = found.best.label, found.term.dtype
    best, at = fresh.scalar(f"{label}_first", dtype), fresh.scalar(f"{label}_at", dtypes.int64)
    pair = Pair(Access(at, ()), order.number)
    one: Stmt = Update(Access(best, ()), found.op, found.term, pair, span=found.branch.span)
    if dtype.kind == "f":
        there = Apply(OPS["eq"], (found.term, found.term), dtypes.bool_)
        one = If(there, (one,))
    starts = (
        Store(Access(best, ()), Const(zero_of(dtype), dtype)),
        Store(Access(at, ()), Const(-1, dtypes.int64)),
    )
    better = Apply(OPS[found.test], (Read(best, ()), Read(found.best, ())), dtypes.bool_)
    take: tuple[Stmt, ...] = (Store(Access(found.best, ()), Read(best, ()), found.branch.span),)
    lets: tuple[Stmt, ...] = ()
    if found.places:
        lets, names = order.named(Read(at, ()), fresh)
        take = (*take, *(replace(p, value=substitute_expr(p.value, names)) for p in found.places))
    found_some = Apply(OPS["ge"], (Read(at, ()), Const(0, dtypes.int64)), dtypes.bool_)
    return starts, one, (If(found_some, (*lets, If(better, take))),)
