"""What points do, with the sum of each in front: what stood before it, or decided about it, moves.

    s = f(); total = 0; for k: total += ...; y = g(s, total)
    becomes
    total = 0; for k: total += ...; s = f(); y = g(s, total)

    if t: total = 0; for k: total += ...
    y = t ? g(total) : z
    becomes
    total = 0; for k: total += ...; y = t ? g(total) : z

Needs sums that use none of those scalars; a sum under a test may be made in any case where all it
reads is in range without the test too, and where nothing uses it but under the same test.

>>> program = lowered("y[i, j] = where(j <= i, max(a[i, k] * b[k, j]), 0)",
...     y="f32[64, 64]", a="f32[64, 64]", b="f32[64, 64]")
>>> program = optimize(program, Target("cuda"))[0]
>>> found = band(program.kernels[0].body[1], facts_of(program))
>>> [type(stmt).__name__ for stmt in found.inner]
['If', 'Comment', 'Store']
>>> [type(stmt).__name__ for stmt in bared(found.inner, found)]
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


def bared(body: Sequence[Stmt], found: Band) -> list[Stmt]:
    """Return what the points of a band do with the first sum in front, where it may be there."""
    at = next((n for n, stmt in enumerate(body) if isinstance(stmt, For | If)), None)
    if at is None:
        return [*body]
    before, rest = list(body[:at]), list(body[at + 1 :])
    match body[at]:
        case If(test, (Store() as start, For() as loop), ()) if _is_always_possible(
            test, start, loop, (*before, *rest), found
        ):
            sum_of: list[Stmt] = [start, loop]
        case For() as loop if before and isinstance(before[-1], Store):
            sum_of = [before.pop(), loop]
        case _:
            return [*body]
    made = {node.id for node in writes(sum_of)}
    used = {node.id for node in reads(sum_of)} | made
    for stmt in before:
        if not isinstance(stmt, Store) or stmt.access.node.rank:
            return [*body]
        if stmt.access.node.id in used or any(node.id in made for node in reads((stmt,))):
            return [*body]
    return [*sum_of, *before, *rest]


def _is_always_possible(
    test: Expr, start: Store, loop: For, others: Sequence[Stmt], found: Band
) -> bool:
    """Whether the sum of a loop may be made where its test does not hold: nobody sees it then."""
    total = start.access.node
    if total.rank or total.id not in found.private or set(writes((loop,))) != {total}:
        return False
    known = Bounds({})
    for one in found.free:
        known = known.inside(one)
    if not all(_is_in_range(read, known) for read in reads_of(start.value)):
        return False
    return _are_in_range(loop, known) and _is_only_used_where(test, total, others)


def _are_in_range(stmt: Stmt, known: Bounds) -> bool:
    """Whether all that loops and what they accumulate read is in range."""
    match stmt:
        case For(body=body):
            inside = known.inside(stmt)
            return all(_are_in_range(inner, inside) for inner in body)
        case Comment():
            return True
        case Update():
            exprs = expressions_of(stmt)
            return all(_is_in_range(read, known) for expr in exprs for read in reads_of(expr))
        case _:
            return False


def _is_in_range(read: Read, known: Bounds) -> bool:
    shape = read.node.static_shape
    if shape is None:
        return False
    for index, size in zip(read.index, shape, strict=True):
        if isinstance(index, Dynamic):
            return False
        low, high = known.interval(index)
        if low is None or high is None or low < 0 or high >= size:
            return False
    return True


def _is_only_used_where(test: Expr, total: Node, body: Sequence[Stmt]) -> bool:
    """Whether statements read a scalar only where a test holds, and never write it."""
    if total in writes(body):
        return False
    for stmt in statements(tuple(body)):
        for expr in expressions_of(stmt):
            if total in (read.node for read in _elsewhere(expr, test)):
                return False
    return True


def _elsewhere(expr: Expr, test: Expr) -> list[Read]:
    """Return what an expression reads, without what it reads only where a test holds."""
    match expr:
        case Select(same, _, no) if same == test:
            return [*reads_of(test), *_elsewhere(no, test)]
        case Read():
            return reads_of(expr)
        case _:
            return [read for child in children(expr) for read in _elsewhere(child, test)]
