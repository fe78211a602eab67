"""Loops that look for the best term by a test: an argmax, and what is left to do behind.

    for i: if t(i) > m: m = t(i); b = i
    becomes
    best, at = nothing
    for i: best, at argmax= t(i) at i                     terms that are NaN are left out
    if at is found and best > m: m = best; b = at

Needs a test that is one for greater or less, of a term that needs neither `m` nor `b`. Of equal
terms the first is kept by both; `m` may be NaN, or greater than all terms, and stays then. Loops in
each other whose rounds can be numbered look together. Where the test takes equal ones, too, the
last of them is kept: it is the first of the rounds from the last to the first, which do nothing
else.

>>> program, _ = optimize(lowered('''
... m = x[0]
... for i in range(len(x)):
...     if x[i] > m:
...         m = x[i]
... y[0] = m
... ''', y="i64[1]", x="i64[900]"), Target("cuda"))
>>> found = firsts(program.kernels[0].body, facts_of(program), fresh_for(program))
>>> print_loops(tuple(stmt for stmt in found if isinstance(stmt, For)))
for i in 0..900:
    m_first, m_at argmax= x[i] at i
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ....base.dataclass import dataclass
from ...analysis.accumulators import zero_of
from ...analysis.conjunctions import every, parts_of
from ...analysis.dependence import is_left
from ...analysis.linear_iteration import Numbered, numbered
from ...analysis.parallel_band import Facts, around, nest_of, rounds_of
from ...analysis.subscripts import is_in_range, ranges
from ...ir import dtypes
from ...ir.assignments import Access, Alloc, Pair, Permute, Print
from ...ir.expressions import Apply, Const, Dynamic, Expr, Read, reads
from ...ir.fresh import Fresh
from ...ir.indexing import Affine, Symbol, const, substitute, var
from ...ir.loops import Check, Comment, For, If, Stmt, Store, Update
from ...ir.ops import ARGMAX, ARGMIN, OPS, Op
from ...ir.rewrite import rename, substitute_expr, with_bodies
from ...ir.rewrite import substitute as substitute_in
from ...ir.walk import binds, bodies, free_symbols, own_reads, own_writes, statements, uses, writes

Body = tuple[Stmt, ...]
Loops = tuple[For, ...]
MIRRORED = {"gt": "lt", "lt": "gt", "ge": "le", "le": "ge"}
LASTS = ("ge", "le")
"""Tests that take the last of equal terms."""


@dataclass(frozen=True, slots=True)
class First:
    """A branch that keeps the first best of all terms so far, or the last."""

    branch: If
    best: Access
    term: Expr
    test: str
    places: tuple[Store, ...]
    """What keeps where it was found."""

    @property
    def op(self) -> Op:
        """What finds the best term of all."""
        return ARGMAX if self.test in ("gt", "ge") else ARGMIN

    @property
    def kept(self) -> frozenset[int]:
        """The ids of what the branch fills."""
        return frozenset({self.best.node.id, *(one.access.node.id for one in self.places)})


def firsts(body: Body, facts: Facts, fresh: Fresh) -> Body:
    """Return statements in which loops that look for a best term are reductions."""
    return tuple(made for stmt in body for made in _reduced(stmt, facts, fresh))


def _reduced(stmt: Stmt, facts: Facts, fresh: Fresh) -> Body:
    """Return what takes the place of a statement: itself where it looks for nothing."""
    if isinstance(stmt, For):
        loops, whole = nest_of(stmt)
        body = _narrowed(whole, loops)
        found = _found(loops, body)
        made = _made(loops, body, found, facts, fresh) if found else ()
        if made:
            return made
    return (with_bodies(stmt, tuple(firsts(part, facts, fresh) for part in bodies(stmt))),)


def _made(loops: Loops, body: Body, found: Sequence[First], facts: Facts, fresh: Fresh) -> Body:
    """Return the nests in the place of one that looks for something, none where it stays."""
    plain = [one for one in found if one.test not in LASTS]
    order = _order(loops)
    if order is not None and len(plain) == len(found):
        return _looking(order, body, found, facts, fresh)
    if is_bare(loops, body, frozenset().union(*(one.kept for one in found)), facts):
        parts: list[Stmt] = []
        for is_last in (False, True):
            part = [one for one in found if (one.test in LASTS) == is_last]
            others = {id(one.branch): () for one in found if one not in part}
            turned = part and _turned(loops, _with(body, others), is_last, found, fresh)
            order = _order(turned[0]) if turned else None
            if turned and order is None:
                break
            if turned and order is not None:
                parts += _looking(order, turned[1], _found(*turned), facts, fresh)
        else:
            return tuple(parts)
    return _looking(order, body, plain, facts, fresh) if plain and order is not None else ()


def _order(loops: Loops) -> Numbered | None:
    """Return loops with numbers that are known to grow, None where they have none."""
    if any(loop.step < 0 or loop.kind != "serial" for loop in loops):
        return None
    order = numbered(loops)
    known = order is not None and all(size.constant is not None for size in order.sizes)
    return order if known else None


def is_bare(loops: Loops, body: Body, kept: frozenset[int], facts: Facts) -> bool:
    """Whether rounds of a nest do nothing but to fill what is kept, so that they may be done in
    any order, and twice, but for that."""
    own = facts.private(loops[-1]) | kept
    halts = Check, Print, Permute, Alloc
    if any(isinstance(stmt, halts) for stmt in statements(body)) or is_left(body):
        return False
    return all(node.id in own for node in writes(body))


def _turned(
    loops: Loops, body: Body, is_last: bool, found: Sequence[First], fresh: Fresh
) -> tuple[Loops, Body]:
    """Return a nest whose loops count from zero, from the last round on where that `is_last`, with
    temporaries of its own."""
    kept = {number for one in found for number in one.kept}
    copies = {node.id: fresh.like(node) for node in writes(body) if node.id not in kept}
    names = {s: fresh.symbol(s.name) for stmt in statements(body) for s in binds(stmt)}
    body = rename(body, names, copies)
    out: list[For] = []
    values: dict[Symbol, Affine] = {}
    for loop in loops:
        here = replace(loop, lo=substitute(loop.lo, values), hi=substitute(loop.hi, values))
        at, rounds = fresh.symbol(loop.symbol.name), rounds_of(here)
        place = rounds - 1 - var(at) if is_last else var(at)
        values[loop.symbol] = here.lo + place * loop.step
        out.append(replace(here, symbol=at, lo=const(0), hi=rounds, step=1, body=()))
    return tuple(out), substitute_in(body, values)


# ---------------------------------------------------------------- what a branch keeps


def _narrowed(body: Body, loops: Loops) -> Body:
    """Return the body of a nest in which a branch that keeps something asks for nothing else."""

    def change(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, If):
            return stmt
        stmt = with_bodies(stmt, tuple(_narrowed(part, loops) for part in bodies(stmt)))
        parts = parts_of(stmt.test)
        for at, part in enumerate(parts) if len(parts) > 1 and not stmt.other else ():
            known = ranges(loops)
            inner = replace(stmt, test=part)
            later = (read for one in parts[at + 1 :] for read in reads(one))
            sure = all(is_in_range(read.node, read.index, known) for read in later)
            if sure and first_of(inner, frozenset()) is not None:
                return replace(stmt, test=every((*parts[:at], *parts[at + 1 :])), then=(inner,))
        return stmt

    return tuple(map(change, body))


def _found(loops: Loops, body: Body) -> list[First]:
    """Return the branches of a nest that keep something, which nothing else in it uses."""
    bound = frozenset(symbol for stmt in statements(body) for symbol in binds(stmt))
    letters = frozenset(loop.symbol for loop in loops)
    out = []
    for branch in _branches(body):
        found = first_of(branch, bound | letters)
        if found is not None and _is_alone(found, body, bound):
            out.append(found)
    return out


def _branches(body: Body) -> Iterator[If]:
    """Yield the branches that are asked at most once in each round."""
    for stmt in body:
        if isinstance(stmt, If):
            yield stmt
            for part in bodies(stmt):
                yield from _branches(part)


def first_of(stmt: If, bound: frozenset[Symbol]) -> First | None:
    """Return what a branch keeps, None where it does something else; places of what it keeps need
    nothing that is `bound` in the nest."""
    test, stores = stmt.test, [one for one in stmt.then if not isinstance(one, Comment)]
    if stmt.other or not isinstance(test, Apply) or test.op.name not in MIRRORED:
        return None
    (term, old), name = test.args, test.op.name
    if not _stores(stores, old, term, bound):
        (old, term), name = test.args, MIRRORED[test.op.name]
    if not isinstance(old, Read) or not _stores(stores, old, term, bound):
        return None
    if old.node.dtype is not term.dtype or term.dtype.kind not in "iuf":
        return None
    best = Access(old.node, old.index)
    others = [one for one in stores if isinstance(one, Store) and one.access != best]
    return First(stmt, best, term, name, tuple(others))


def _stores(stores: Sequence[Stmt], old: Expr, term: Expr, bound: frozenset[Symbol]) -> bool:
    """Whether statements put a term into an element, and do nothing else but to fill others."""
    if not isinstance(old, Read):
        return False
    best = Access(old.node, old.index)
    plain = [one for one in stores if isinstance(one, Store) and _is_fixed(one.access, bound)]
    theirs = [one for one in plain if one.access == best]
    apart = all(
        one.access == best or one.access.node != best.node or _are_numbers(one.access, best)
        for one in plain
    )
    return len(plain) == len(stores) and apart and [one.value for one in theirs] == [term]


def _is_fixed(access: Access, bound: frozenset[Symbol]) -> bool:
    """Whether an element is the same one in each round."""
    return not any(isinstance(at, Dynamic) or at.symbols() & bound for at in access.index)


def _are_numbers(one: Access, other: Access) -> bool:
    """Whether it is written where two elements are."""
    places = (*one.index, *other.index)
    return all(isinstance(at, Affine) and at.constant is not None for at in places)


def _is_alone(found: First, body: Body, bound: frozenset[Symbol]) -> bool:
    """Whether nothing else in a round uses what a branch keeps, no term needs it, and what is kept
    can be found again."""
    if any(read.node.id in found.kept for read in reads(found.term)):
        return False
    changed = {node.id for node in writes(body)}
    for one in found.places:
        if bound & (uses(one) | free_symbols(one.value)):
            return False
        if any(read.node.id in changed for read in reads(one.value)):
            return False
    inside = {id(stmt) for stmt in statements((found.branch,))}
    rest = [stmt for stmt in statements(body) if id(stmt) not in inside]
    used = {node.id for stmt in rest for node in (*own_reads(stmt), *own_writes(stmt))}
    return not found.kept & used


# ---------------------------------------------------------------- the reductions


def _looking(
    order: Numbered, body: Body, found: Sequence[First], facts: Facts, fresh: Fresh
) -> Body:
    """Return a nest that looks for best terms, between what starts that and what takes them."""
    starts, ends = list[Stmt](), list[Stmt]()
    changed = dict[int, Body]()
    for branch in found:
        start, one, end = _reduction(branch, order, fresh)
        changed[id(branch.branch)] = (one,)
        starts, ends = [*starts, *start], [*ends, *end]
    inner = firsts(_with(body, changed), facts, fresh)
    return (*starts, *around(order.loops, inner), *ends)


def _with(body: Body, changed: Mapping[int, Body]) -> Body:
    """Return statements with others in the place of branches, by the `id` of these."""
    out: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, If) and id(stmt) not in changed:
            stmt = with_bodies(stmt, tuple(_with(part, changed) for part in bodies(stmt)))
        out += changed.get(id(stmt), (stmt,))
    return tuple(out)


def _reduction(found: First, order: Numbered, fresh: Fresh) -> tuple[Body, Stmt, Body]:
    """Return what starts a reduction, what each round does for it, and what takes its result."""
    label, dtype = found.best.node.label, found.term.dtype
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
    old = Read(found.best.node, found.best.index)
    better = Apply(OPS[found.test], (Read(best, ()), old), dtypes.bool_)
    take: Body = (Store(found.best, Read(best, ()), found.branch.span),)
    lets: Body = ()
    if found.places:
        lets, names = order.named(Read(at, ()), fresh)
        take = (*take, *(replace(p, value=substitute_expr(p.value, names)) for p in found.places))
    found_some = Apply(OPS["ge"], (Read(at, ()), Const(0, dtypes.int64)), dtypes.bool_)
    return starts, one, (If(found_some, (*lets, If(better, take))),)
