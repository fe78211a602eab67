"""Code motion that brings a reduction to the front of a point: past scalars, and out of a test.

    s = f(); total = 0; for k: total += ...; y = g(s, total)
    becomes
    total = 0; for k: total += ...; s = f(); y = g(s, total)

    if t: total = 0; for k: total += ...
    y = t ? g(total) : z
    becomes
    total = 0; for k: total += ...; y = t ? g(total) : z

Precondition: the reduction uses none of those scalars; one under a test may be speculated where all
its reads are in range without the test, and where it is used under the same test only.

>>> program = lowered("y[i, j] = where(j <= i, max(a[i, k] * b[k, j]), 0)",
...     y="f32[64, 64]", a="f32[64, 64]", b="f32[64, 64]")
>>> program = optimize(program, Target("cuda"))[0]
>>> nest = find_band(program.kernels[0].body[1], facts_of(program))
>>> [type(stmt).__name__ for stmt in nest.inner]
['If', 'Comment', 'Store']
>>> [type(stmt).__name__ for stmt in move_sum_first(nest.inner, nest)]
['Store', 'For', 'Comment', 'Store']
"""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.parallel_band import Band
from ...ir.bounds import Bounds
from ...ir.expressions import Dynamic, Expr, Read, Select, children
from ...ir.expressions import reads as reads_of
from ...ir.loops import Comment, For, If, Stmt, Store, Update
from ...ir.node import Node
from ...ir.walk import expressions_of, reads, statements, writes


def move_sum_first(body: Sequence[Stmt], nest: Band) -> list[Stmt]:
    """Return the statements of a point with its first reduction in front, where that is legal."""
    at = next((n for n, stmt in enumerate(body) if isinstance(stmt, For | If)), None)
    if at is None:
        return [*body]
    before, rest = list(body[:at]), list(body[at + 1 :])
    match body[at]:
        case If(test, (Store() as start, For() as loop), ()) if _can_speculate(
            test, start, loop, (*before, *rest), nest
        ):
            sum_of: list[Stmt] = [start, loop]
        case For() as loop if before and isinstance(before[-1], Store):
            sum_of = [before.pop(), loop]
        case _:
            return [*body]
    outputs = {node.id for node in writes(sum_of)}
    touched = {node.id for node in reads(sum_of)} | outputs
    for stmt in before:
        if not isinstance(stmt, Store) or stmt.access.node.rank:
            return [*body]
        if stmt.access.node.id in touched or any(node.id in outputs for node in reads((stmt,))):
            return [*body]
    return [*sum_of, *before, *rest]


def _can_speculate(test: Expr, start: Store, loop: For, others: Sequence[Stmt], nest: Band) -> bool:
    """Whether a reduction is legal, and unobserved, where its test does not hold."""
    total = start.access.node
    if total.rank or total.id not in nest.private or set(writes((loop,))) != {total}:
        return False
    bounds = Bounds({})
    for parallel in nest.free:
        bounds = bounds.inside(parallel)
    if not all(_is_in_range(read, bounds) for read in reads_of(start.value)):
        return False
    return _has_reads_in_range(loop, bounds) and _is_used_only_under(test, total, others)


def _has_reads_in_range(stmt: Stmt, bounds: Bounds) -> bool:
    """Whether all reads of loops and of the terms that they accumulate are in range."""
    match stmt:
        case For(body=body):
            inner_bounds = bounds.inside(stmt)
            return all(_has_reads_in_range(inner, inner_bounds) for inner in body)
        case Comment():
            return True
        case Update():
            exprs = expressions_of(stmt)
            return all(_is_in_range(read, bounds) for expr in exprs for read in reads_of(expr))
        case _:
            return False


def _is_in_range(read: Read, bounds: Bounds) -> bool:
    shape = read.node.static_shape
    if shape is None:
        return False
    for index, size in zip(read.index, shape, strict=True):
        if isinstance(index, Dynamic):
            return False
        low, high = bounds.interval(index)
        if low is None or high is None or low < 0 or high >= size:
            return False
    return True


def _is_used_only_under(test: Expr, total: Node, body: Sequence[Stmt]) -> bool:
    """Whether statements read a scalar only under a test, and never write it."""
    if total in writes(body):
        return False
    for stmt in statements(tuple(body)):
        for expr in expressions_of(stmt):
            if total in (read.node for read in _reads_outside(expr, test)):
                return False
    return True


def _reads_outside(expr: Expr, test: Expr) -> list[Read]:
    """Return the reads of an expression, without those under a test."""
    match expr:
        case Select(same, _, no) if same == test:
            return [*reads_of(test), *_reads_outside(no, test)]
        case Read():
            return reads_of(expr)
        case _:
            return [read for child in children(expr) for read in _reads_outside(child, test)]
