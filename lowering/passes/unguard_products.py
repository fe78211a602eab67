"""Speculative products: guards of sums of products dropped where the difference is unobservable.

Changes: a nest that only accumulates products of rows and columns, into a temporary that nothing
else writes, drops a guard that depends on each element.

    for i: for j: if m[i, j]: t[i, j] = 0; for k: t[i, j] += a[i, k] * b[k, j]
    becomes
    for i: for j: t[i, j] = 0; for k: t[i, j] += a[i, k] * b[k, j]

A product of matrices that skips none of its elements is tiled, which takes a fraction of the time;
what follows on its elements, as a select among them, is done to those of a tile.

Precondition: a large product of real numbers, all of whose factors are in bounds without the guard;
each read of the array surely sees what the nest has just computed, so that nobody sees the elements
that it skipped: neither the zeros that arrays start from, nor what an earlier iteration left there.
Postcondition: elements that are read are bit-identical.

>>> show(unguard_products, "y[i, j] = where(j <= i, sum(a[i, k] * b[k, j]), 0)",
...      y="f32[64, 64]", a="f32[64, 64]", b="f32[64, 64]")
for i in 0..64:
    for j in 0..64:
        total[i, j] = 0.0
        for k in 0..64:
            total[i, j] += a[i, k] * b[k, j]
for i in 0..64:
    for j in 0..64:
        y[i, j] = total[i, j] if j <= i else 0.0
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial

from ...base.dataclass import dataclass
from ..analysis.accesses import Accesses, collect_accesses, common_depth
from ..analysis.product_loops import tiled_symbols
from ..analysis.self_dependence import is_injective
from ..analysis.subscripts import is_in_range, ranges
from ..ir import dtypes
from ..ir.assignments import Alloc
from ..ir.expressions import Expr, reads
from ..ir.loops import Check, Comment, For, If, Program, Stmt, Store, Update, While
from ..ir.node import Node
from ..ir.rewrite import map_bodies, map_kernels
from ..ir.walk import direct_writes, expressions_of, free_symbols, statements

Body = tuple[Stmt, ...]
_REALS = (dtypes.float32, dtypes.float64)


def unguard_products(program: Program) -> Program:
    """Return the program in which products of matrices skip no elements they need not skip."""
    all_statements = [stmt for kernel in program.kernels for stmt in statements(kernel.body)]
    locals_ = {node.id for node in program.locals if node.rank and node.request is None}
    write_counts = Counter(
        node.id
        for stmt in all_statements
        if not isinstance(stmt, Alloc)
        for node in direct_writes(stmt)
    )
    writers = {number: count for number, count in write_counts.items() if number in locals_}
    body = tuple(stmt for kernel in program.kernels for stmt in kernel.body)
    context = _Context(writers, cache(partial(collect_accesses, body)))
    return map_kernels(program, partial(_unguard_body, context=context))


@dataclass(frozen=True, slots=True)
class _Context:
    """The context of a statement."""

    writers: Mapping[int, int]
    """How many statements write each array that is local to the program."""
    accesses: Callable[[], Accesses]
    """All accesses of the program; computed on first use."""
    loops: tuple[For, ...] = ()
    tests: tuple[Expr, ...] = ()
    """The checks that precede it."""

    def hides_skipped(self, node: Node) -> bool:
        """Whether nobody sees the elements of an array that its only store skips: within an
        iteration of the loops around all accesses it stores each element at most once, before any
        read of it."""
        sites = tuple(s for s in self.accesses().of(node) if s.index is not None)  # no `Alloc`
        accesses = self.accesses().only(node, sites)
        depth = min(common_depth(sites[0].route, site.route) for site in sites)
        for site in sites:
            inner = site.inside[depth:]
            if site.kind == "write" and (
                any(isinstance(stmt, While) for stmt in inner)
                or not is_injective(site.index or (), ranges(inner))
            ):
                return False
        return all(accesses.is_covered(site, depth) for site in sites if site.reads)

    def is_in_bounds(self, body: Body) -> bool:
        """Whether all reads of the statements are surely in bounds."""
        for stmt in body:
            if isinstance(stmt, For):
                if not replace(self, loops=(*self.loops, stmt)).is_in_bounds(stmt.body):
                    return False
                continue
            domain = ranges(self.loops)
            all_reads = [read for value in expressions_of(stmt) for read in reads(value)]
            if not all(is_in_range(r.node, r.index, domain, self.tests) for r in all_reads):
                return False
        return True


def _unguard_body(body: Body, context: _Context) -> Body:
    out: list[Stmt] = []
    for stmt in body:
        out.append(_unguard_statement(stmt, context))
        if isinstance(stmt, Check):
            context = replace(context, tests=(*context.tests, stmt.test))
    return tuple(out)


def _unguard_statement(stmt: Stmt, context: _Context) -> Stmt:
    if isinstance(stmt, For):
        context = replace(context, loops=(*context.loops, stmt))
        if (unguarded := _without_guards(stmt, context)) is not None:
            return unguarded
    return map_bodies(stmt, partial(_unguard_body, context=context))


def _without_guards(loop: For, context: _Context) -> For | None:
    """Return an innermost loop over elements without the guards around its accumulation."""
    body = [stmt for stmt in loop.body if not isinstance(stmt, Comment)]
    tests: list[If] = []
    while len(body) == 1 and isinstance(body[0], If) and not body[0].orelse:
        tests.append(body[0])
        body = [stmt for stmt in body[0].then if not isinstance(stmt, Comment)]
    if not tests or not all(loop.symbol in free_symbols(branch.test) for branch in tests):
        return None
    match body:
        case [Store(target) as start, For() as terms] if context.writers.get(target.node.id) == 2:
            unguarded = replace(loop, body=tests[-1].then)
        case _:
            return None
    if not _only_accumulates(terms, target.node) or not context.is_in_bounds((start, terms)):
        return None
    if not context.hides_skipped(target.node):
        return None
    nest = unguarded
    for enclosing in reversed(context.loops[:-1]):
        nest = replace(enclosing, body=(nest,))
    return unguarded if loop.symbol in tiled_symbols(nest) else None


def _only_accumulates(stmt: Stmt, node: Node) -> bool:
    """Whether loops do nothing but add to the elements of an array of real numbers."""
    match stmt:
        case For(body=body):
            return all(_only_accumulates(inner, node) for inner in body)
        case Update(access):
            return access.node == node and node.dtype in _REALS
        case _:
            return isinstance(stmt, Comment)
