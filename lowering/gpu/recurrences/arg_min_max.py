"""Argmin and argmax recurrences: a branch that keeps an extreme, as an argmax reduction.

    for i: if t(i) > m: m = t(i); b = i
    becomes
    best, at = nothing
    for i: best, at argmax= t(i) at i                     terms that are NaN are skipped
    if at is found and best > m: m = best; b = at

Precondition: a comparison of a term that depends on neither `m` nor `b`. Of equal terms both keep
the first; `m` may be NaN, or exceed all terms, and stays then. Nests whose iterations have a linear
numbering are one reduction. Where the comparison is not strict, the last of equal terms is kept: it
is the first in reverse iteration order, if iterations do nothing else.

>>> program, _ = optimize(lowered('''
... m = x[0]
... for i in range(len(x)):
...     if x[i] > m:
...         m = x[i]
... y[0] = m
... ''', y="i64[1]", x="i64[900]"), Target("cuda"))
>>> reduced = rewrite_arg_min_max(program.kernels[0].body, facts_of(program), fresh_for(program))
>>> print_loops(tuple(stmt for stmt in reduced if isinstance(stmt, For)))
for i in 0..900:
    m_first, m_at argmax= x[i] at i
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ....base.dataclass import dataclass
from ...analysis.accumulators import zero_of
from ...analysis.conjunctions import conjunction, split_conjunction
from ...analysis.dependence import has_break
from ...analysis.linear_iteration import LinearIterations, linearize
from ...analysis.parallel_band import Facts, nest_loops, perfect_nest
from ...analysis.parallel_band import trip_count as trip_count_of
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
from ...ir.walk import (
    binds,
    bodies,
    direct_reads,
    direct_writes,
    free_symbols,
    statements,
    uses,
    writes,
)

Body = tuple[Stmt, ...]
Loops = tuple[For, ...]
MIRRORED = {"gt": "lt", "lt": "gt", "ge": "le", "le": "ge"}
LASTS = ("ge", "le")
"""Comparisons that keep the last of equal terms."""


@dataclass(frozen=True, slots=True)
class ExtremeBranch:
    """A branch that keeps the first, or the last, extreme of the terms so far."""

    branch: If
    best: Access
    term: Expr
    test: str
    position_stores: tuple[Store, ...]
    """The stores that keep its position."""

    @property
    def op(self) -> Op:
        """The reduction operation."""
        return ARGMAX if self.test in ("gt", "ge") else ARGMIN

    @property
    def written(self) -> frozenset[int]:
        """The ids of the nodes that the branch writes."""
        return frozenset(
            {self.best.node.id, *(store.access.node.id for store in self.position_stores)}
        )


def rewrite_arg_min_max(body: Body, facts: Facts, fresh: Fresh) -> Body:
    """Return statements in which loops that keep an extreme are reductions."""
    return tuple(rewritten for stmt in body for rewritten in _rewrite_statement(stmt, facts, fresh))


def _rewrite_statement(stmt: Stmt, facts: Facts, fresh: Fresh) -> Body:
    """Return the rewritten statement, or the statement itself where it keeps no extreme."""
    if isinstance(stmt, For):
        loops, inner = perfect_nest(stmt)
        body = _isolate_tests(inner, loops)
        extremes = _find_extremes(loops, body)
        rewritten = _rewrite_nest(loops, body, extremes, facts, fresh) if extremes else ()
        if rewritten:
            return rewritten
    return (
        with_bodies(stmt, tuple(rewrite_arg_min_max(part, facts, fresh) for part in bodies(stmt))),
    )


def _rewrite_nest(
    loops: Loops, body: Body, extremes: Sequence[ExtremeBranch], facts: Facts, fresh: Fresh
) -> Body:
    """Return the nests that replace one with extremes, none where it stays."""
    first_ones = [extreme for extreme in extremes if extreme.test not in LASTS]
    numbering = _static_numbering(loops)
    if numbering is not None and len(first_ones) == len(extremes):
        return _build_reduction_nest(numbering, body, extremes, facts, fresh)
    if has_only_effect(
        loops, body, frozenset().union(*(extreme.written for extreme in extremes)), facts
    ):
        nests: list[Stmt] = []
        for is_last in (False, True):
            selected = [extreme for extreme in extremes if (extreme.test in LASTS) == is_last]
            removed = {id(extreme.branch): () for extreme in extremes if extreme not in selected}
            normalized = selected and _normalize_loops(
                loops, _replace_branches(body, removed), is_last, extremes, fresh
            )
            numbering = _static_numbering(normalized[0]) if normalized else None
            if normalized and numbering is None:
                break
            if normalized and numbering is not None:
                nests += _build_reduction_nest(
                    numbering, normalized[1], _find_extremes(*normalized), facts, fresh
                )
        else:
            return tuple(nests)
    return (
        _build_reduction_nest(numbering, body, first_ones, facts, fresh)
        if first_ones and numbering is not None
        else ()
    )


def _static_numbering(loops: Loops) -> LinearIterations | None:
    """Return the linear numbering of loops in increasing order and static sizes, else None."""
    if any(loop.step < 0 or loop.kind != "serial" for loop in loops):
        return None
    numbering = linearize(loops)
    is_static = numbering is not None and all(size.constant is not None for size in numbering.sizes)
    return numbering if is_static else None


def has_only_effect(loops: Loops, body: Body, targets: frozenset[int], facts: Facts) -> bool:
    """Whether the iterations of a nest have no effect but to write `targets`, so that they may be
    executed in any order, and twice, but for that."""
    writable = facts.private(loops[-1]) | targets
    halts = Check, Print, Permute, Alloc
    if any(isinstance(stmt, halts) for stmt in statements(body)) or has_break(body):
        return False
    return all(node.id in writable for node in writes(body))


def _normalize_loops(
    loops: Loops, body: Body, is_last: bool, extremes: Sequence[ExtremeBranch], fresh: Fresh
) -> tuple[Loops, Body]:
    """Return a nest with normalized loops, reversed if `is_last`, and with its own temporaries."""
    targets = {number for extreme in extremes for number in extreme.written}
    copies = {node.id: fresh.like(node) for node in writes(body) if node.id not in targets}
    names = {s: fresh.symbol(s.name) for stmt in statements(body) for s in binds(stmt)}
    body = rename(body, names, copies)
    out: list[For] = []
    values: dict[Symbol, Affine] = {}
    for loop in loops:
        bounded = replace(loop, lo=substitute(loop.lo, values), hi=substitute(loop.hi, values))
        at, trip_count = fresh.symbol(loop.symbol.name), trip_count_of(bounded)
        position = trip_count - 1 - var(at) if is_last else var(at)
        values[loop.symbol] = bounded.lo + position * loop.step
        out.append(replace(bounded, symbol=at, lo=const(0), hi=trip_count, step=1, body=()))
    return tuple(out), substitute_in(body, values)


# ---------------------------------------------------------------- what a branch keeps


def _isolate_tests(body: Body, loops: Loops) -> Body:
    """Return a nest's body in which the test of a branch that keeps an extreme is its only one."""

    def isolate(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, If):
            return stmt
        stmt = with_bodies(stmt, tuple(_isolate_tests(part, loops) for part in bodies(stmt)))
        parts = split_conjunction(stmt.test)
        for at, part in enumerate(parts) if len(parts) > 1 and not stmt.orelse else ():
            bounds = ranges(loops)
            inner = replace(stmt, test=part)
            later = (read for conjunct in parts[at + 1 :] for read in reads(conjunct))
            is_safe = all(is_in_range(read.node, read.index, bounds) for read in later)
            if is_safe and match_extreme(inner, frozenset()) is not None:
                return replace(
                    stmt, test=conjunction((*parts[:at], *parts[at + 1 :])), then=(inner,)
                )
        return stmt

    return tuple(map(isolate, body))


def _find_extremes(loops: Loops, body: Body) -> list[ExtremeBranch]:
    """Return the branches of a nest that keep an extreme which nothing else in it uses."""
    bound = frozenset(symbol for stmt in statements(body) for symbol in binds(stmt))
    indices = frozenset(loop.symbol for loop in loops)
    out = []
    for branch in _branches(body):
        extreme = match_extreme(branch, bound | indices)
        if extreme is not None and _is_only_use(extreme, body, bound):
            out.append(extreme)
    return out


def _branches(body: Body) -> Iterator[If]:
    """Yield the branches that are executed at most once in each iteration."""
    for stmt in body:
        if isinstance(stmt, If):
            yield stmt
            for part in bodies(stmt):
                yield from _branches(part)


def match_extreme(stmt: If, bound: frozenset[Symbol]) -> ExtremeBranch | None:
    """Return the extreme of a branch, None for other branches; the locations it writes depend on
    nothing that is `bound` in the nest."""
    test, stores = stmt.test, [store for store in stmt.then if not isinstance(store, Comment)]
    if stmt.orelse or not isinstance(test, Apply) or test.op.name not in MIRRORED:
        return None
    (term, old), name = test.args, test.op.name
    if not _is_extreme_update(stores, old, term, bound):
        (old, term), name = test.args, MIRRORED[test.op.name]
    if not isinstance(old, Read) or not _is_extreme_update(stores, old, term, bound):
        return None
    if old.node.dtype is not term.dtype or term.dtype.kind not in "iuf":
        return None
    best = Access(old.node, old.index)
    others = [store for store in stores if isinstance(store, Store) and store.access != best]
    return ExtremeBranch(stmt, best, term, name, tuple(others))


def _is_extreme_update(
    stores: Sequence[Stmt], old: Expr, term: Expr, bound: frozenset[Symbol]
) -> bool:
    """Whether statements store a term in an element, and else only fill other elements."""
    if not isinstance(old, Read):
        return False
    best = Access(old.node, old.index)
    fills = [
        store for store in stores if isinstance(store, Store) and _is_invariant(store.access, bound)
    ]
    best_stores = [store for store in fills if store.access == best]
    is_distinct = all(
        store.access == best or store.access.node != best.node or _are_static(store.access, best)
        for store in fills
    )
    return (
        len(fills) == len(stores)
        and is_distinct
        and [store.value for store in best_stores] == [term]
    )


def _is_invariant(access: Access, bound: frozenset[Symbol]) -> bool:
    """Whether an element is the same one in each iteration."""
    return not any(isinstance(at, Dynamic) or at.symbols() & bound for at in access.index)


def _are_static(left: Access, right: Access) -> bool:
    """Whether the subscripts of two elements are static."""
    subscripts = (*left.index, *right.index)
    return all(isinstance(at, Affine) and at.constant is not None for at in subscripts)


def _is_only_use(extreme: ExtremeBranch, body: Body, bound: frozenset[Symbol]) -> bool:
    """Whether nothing else in an iteration uses what a branch keeps, no term depends on it, and
    what is kept can be recomputed."""
    if any(read.node.id in extreme.written for read in reads(extreme.term)):
        return False
    changed = {node.id for node in writes(body)}
    for store in extreme.position_stores:
        if bound & (uses(store) | free_symbols(store.value)):
            return False
        if any(read.node.id in changed for read in reads(store.value)):
            return False
    inside = {id(stmt) for stmt in statements((extreme.branch,))}
    rest = [stmt for stmt in statements(body) if id(stmt) not in inside]
    used = {node.id for stmt in rest for node in (*direct_reads(stmt), *direct_writes(stmt))}
    return not extreme.written & used


# ---------------------------------------------------------------- the reductions


def _build_reduction_nest(
    numbering: LinearIterations,
    body: Body,
    extremes: Sequence[ExtremeBranch],
    facts: Facts,
    fresh: Fresh,
) -> Body:
    """Return a nest of argmin and argmax reductions, between their initialization and their use."""
    starts, ends = list[Stmt](), list[Stmt]()
    replaced = dict[int, Body]()
    for extreme in extremes:
        start, update, end = _build_reduction(extreme, numbering, fresh)
        replaced[id(extreme.branch)] = (update,)
        starts, ends = [*starts, *start], [*ends, *end]
    inner = rewrite_arg_min_max(_replace_branches(body, replaced), facts, fresh)
    return (*starts, *nest_loops(numbering.loops, inner), *ends)


def _replace_branches(body: Body, replaced: Mapping[int, Body]) -> Body:
    """Return statements with branches replaced, by the `id` of these."""
    out: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, If) and id(stmt) not in replaced:
            stmt = with_bodies(
                stmt, tuple(_replace_branches(part, replaced) for part in bodies(stmt))
            )
        out += replaced.get(id(stmt), (stmt,))
    return tuple(out)


def _build_reduction(
    extreme: ExtremeBranch, numbering: LinearIterations, fresh: Fresh
) -> tuple[Body, Stmt, Body]:
    """Return the initialization of a reduction, its update in each iteration, and its use."""
    label, dtype = extreme.best.node.label, extreme.term.dtype
    best, at = fresh.scalar(f"{label}_first", dtype), fresh.scalar(f"{label}_at", dtypes.int64)
    pair = Pair(Access(at, ()), numbering.number)
    update: Stmt = Update(
        Access(best, ()), extreme.op, extreme.term, pair, span=extreme.branch.span
    )
    if dtype.kind == "f":
        is_number = Apply(OPS["eq"], (extreme.term, extreme.term), dtypes.bool_)
        update = If(is_number, (update,))
    starts = (
        Store(Access(best, ()), Const(zero_of(dtype), dtype)),
        Store(Access(at, ()), Const(-1, dtypes.int64)),
    )
    old = Read(extreme.best.node, extreme.best.index)
    is_better = Apply(OPS[extreme.test], (Read(best, ()), old), dtypes.bool_)
    stores: Body = (Store(extreme.best, Read(best, ()), extreme.branch.span),)
    lets: Body = ()
    if extreme.position_stores:
        lets, names = numbering.named(Read(at, ()), fresh)
        stores = (
            *stores,
            *(replace(p, value=substitute_expr(p.value, names)) for p in extreme.position_stores),
        )
    has_match = Apply(OPS["ge"], (Read(at, ()), Const(0, dtypes.int64)), dtypes.bool_)
    return starts, update, (If(has_match, (*lets, If(is_better, stores))),)
