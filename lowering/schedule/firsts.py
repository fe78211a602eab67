"""Loops that look for the first greatest term by a test: an argmax, and what is left to do behind.

    for i: if t(i) > m: m = t(i); b = i
    becomes
    best, at = nothing
    for i: best, at argmax= t(i) at i                     terms that are NaN are left out
    if at is found and best > m: m = best; b = at

Needs a test that is one for greater or less, of a term that needs neither `m` nor `b`. Of equal
terms the first is kept by both; `m` may be NaN, or greater than all terms, and stays then.

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

from ..dataclass import dataclass
from ..ir import dtypes
from ..ir.assignments import Access, Let, Pair
from ..ir.expressions import Apply, Const, Expr, Position, Read, reads
from ..ir.fresh import Fresh
from ..ir.indexing import var
from ..ir.loops import Comment, For, If, Stmt, Store, Update
from ..ir.node import Node
from ..ir.ops import ARGMAX, ARGMIN, OPS, Op
from ..ir.rewrite import map_statements, with_bodies
from ..ir.walk import own_reads, statements, uses, writes
from .tree import zero_of

MIRRORED = {"gt": "lt", "lt": "gt"}


@dataclass(frozen=True, slots=True)
class _First:
    """A branch that keeps the first best of all terms so far."""

    branch: If
    best: Node
    term: Expr
    test: str
    place: Store | None
    """What keeps where it was found."""

    @property
    def op(self) -> Op:
        return ARGMAX if self.test == "gt" else ARGMIN


def firsts(body: tuple[Stmt, ...], fresh: Fresh) -> tuple[Stmt, ...]:
    """Return statements in which loops that look for a first best term are reductions."""
    return map_statements(body, lambda stmt: _reduced(stmt, fresh))


def _reduced(loop: Stmt, fresh: Fresh) -> tuple[Stmt, ...]:
    """Return what takes the place of a statement: itself where it looks for nothing."""
    if not isinstance(loop, For) or loop.step < 0 or loop.kind != "serial":
        return (loop,)
    for stmt in loop.body:
        found = first_of(stmt) if isinstance(stmt, If) else None
        if found is not None and _is_alone(found, loop):
            return _made(found, loop, fresh)
    return (loop,)


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
    if len(others) > 1 or any(not isinstance(one.value, Position) for one in others):
        return None
    return _First(stmt, old.node, term, name, others[0] if others else None)


def _stores(stores: Sequence[Stmt], node: Node, term: Expr) -> bool:
    """Whether statements put a term into a scalar, and do nothing else but to fill scalars."""
    plain = all(isinstance(one, Store) and not one.access.index for one in stores)
    theirs = [one for one in stores if isinstance(one, Store) and one.access.node == node]
    return plain and [one.value for one in theirs] == [term]


def _is_alone(found: _First, loop: For) -> bool:
    """Whether nothing else in a loop uses what a branch keeps, and no term needs it."""
    kept = {found.best} | ({found.place.access.node} if found.place else set())
    if any(read.node in kept for read in reads(found.term)):
        return False
    if found.place is not None:
        named = {stmt.symbol for stmt in statements(loop.body) if isinstance(stmt, Let)}
        if named & uses(found.place):
            return False
    inside = {id(stmt) for stmt in statements((found.branch,))}
    rest = [stmt for stmt in statements(loop.body) if id(stmt) not in inside]
    return not any(kept & {*own_reads(stmt), *writes((stmt,))} for stmt in rest if _holds(stmt))


def _holds(stmt: Stmt) -> bool:
    """Whether a statement does something by itself, and not only those inside of it."""
    return not isinstance(stmt, For)


def _made(found: _First, loop: For, fresh: Fresh) -> tuple[Stmt, ...]:
    """Return the reduction in the place of a loop, and what takes its result."""
    label, dtype = found.best.label, found.term.dtype
    best, at = fresh.scalar(f"{label}_first", dtype), fresh.scalar(f"{label}_at", dtypes.int64)
    pair = Pair(Access(at, ()), var(loop.symbol))
    one: Stmt = Update(Access(best, ()), found.op, found.term, pair, span=found.branch.span)
    if dtype.kind == "f":
        there = Apply(OPS["eq"], (found.term, found.term), dtypes.bool_)
        one = If(there, (one,))
    body = tuple(one if stmt is found.branch else stmt for stmt in loop.body)
    starts = (
        Store(Access(best, ()), Const(zero_of(dtype), dtype)),
        Store(Access(at, ()), Const(-1, dtypes.int64)),
    )
    better = Apply(OPS[found.test], (Read(best, ()), Read(found.best, ())), dtypes.bool_)
    take: tuple[Stmt, ...] = (Store(Access(found.best, ()), Read(best, ()), found.branch.span),)
    if found.place is not None:
        take = (*take, found.place)
    found_some = Apply(OPS["ge"], (Read(at, ()), Const(0, dtypes.int64)), dtypes.bool_)
    ends: tuple[Stmt, ...] = (If(better, take),)
    if found.place is not None:
        ends = (Let(loop.symbol, Read(at, ())), *ends)
    return (*starts, with_bodies(loop, (body,)), If(found_some, ends))
