"""Contributions to one cotangent on both sides of a sum, added up in one statement after it.

    d_x[i, j] = d_y[i, j] * g[j]                 s[i] = sum[j](d_y[i, j])
    s[i] = sum[j](d_y[i, j])                     d_x[i, j] = d_y[i, j] * g[j] + s[i]
    d_x[i, j] += s[i]

No iteration of the second statement can follow one of the first: the sum is not known there. Alone
the first would write an array that the second reads again. It is moved where what it reads is
unchanged, and where that is no more: two arrays, beside those that the second reads anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..ir.assignments import (
    Alloc,
    Assign,
    Break,
    Check,
    Continue,
    For,
    Let,
    Permute,
    Print,
    Procedure,
    Statement,
    While,
)
from ..ir.expressions import Domain, Expr, Read, reads
from ..ir.indexing import Affine, Symbol, var
from ..ir.node import Node
from ..ir.ops import OPS
from ..ir.rewrite import map_bodies, substitute_expr
from ..ir.walk import direct_reads, statements
from ..ir.walk import reads as read_nodes
from ..ir.walk import writes as written_nodes
from .rules import apply

Body = tuple[Statement, ...]


def with_joined_contributions(procedure: Procedure) -> Procedure:
    """Return a procedure that computes the same up to the order of sums of two terms."""
    return replace(procedure, body=_joined(procedure.body))


def _joined(body: Body) -> Body:
    out = [map_bodies(stmt, _joined) for stmt in body]
    at = 0
    while at < len(out):
        later = _second(out, at)
        if later is None:
            at += 1
            continue
        first, second = out[at], out[later]
        assert isinstance(first, Assign) and isinstance(second, Assign), "both are contributions"
        out[later] = _sum(first, second)
        del out[at]
    return tuple(out)


def _second(body: Sequence[Statement], at: int) -> int | None:
    """Return where the contribution is that another one can be added to; None for nowhere."""
    first = body[at]
    if not isinstance(first, Assign) or not _is_contribution(first):
        return None
    node, needed = first.target.node, set(direct_reads(first)) - {first.target.node}
    is_behind_sum = False
    for place, stmt in enumerate(body[at + 1 :], at + 1):
        if isinstance(stmt, Assign) and stmt.target.node == node:
            is_next = is_behind_sum and stmt.op is OPS["add"] and _is_contribution(stmt)
            return place if is_next and _fits(first, stmt) else None
        inside = statements((stmt,))
        if any(isinstance(s, Alloc | Break | Check | Continue | Let | Print) for s in inside):
            return None
        touched = {*read_nodes(inside), *written_nodes(inside)}
        if node in touched or needed & set(written_nodes(inside)):
            return None
        is_behind_sum |= any(_is_sum(s) for s in inside)
    return None


def _is_sum(stmt: Statement) -> bool:
    if isinstance(stmt, Assign):
        return bool(stmt.reduced.ranges)
    return isinstance(stmt, For | While | Permute)


def _is_contribution(stmt: Assign) -> bool:
    """Whether a statement assigns or adds to elements, each at one point, by a subscript each."""
    if stmt.op not in (None, OPS["add"]) or stmt.initialize or stmt.pair is not None:
        return False
    if stmt.reduced != Domain() or stmt.free.where is not None or not stmt.free.ranges:
        return False
    letters = _letters(stmt)
    ranges = {r.symbol for r in stmt.free.ranges}
    bounds = {s for r in stmt.free.ranges for s in r.lo.symbols() | r.hi.symbols()}
    if len(set(letters)) < len(stmt.target.index) or set(letters) != ranges or bounds & ranges:
        return False
    return all(read.node != stmt.target.node for read in reads(stmt.value))


def _letters(stmt: Assign) -> list[Symbol]:
    """Return the subscripts of the target that are symbols alone."""
    subscripts = [at for at in stmt.target.index if isinstance(at, Affine)]
    return [at.symbol for at in subscripts if at.symbol is not None]


def _fits(first: Assign, second: Assign) -> bool:
    """Whether two contributions are to the same elements, and the first one reads at most two
    arrays of all points that the second one does not."""
    ranges = {r.symbol: (r.lo, r.hi) for r in (*first.free.ranges, *second.free.ranges)}
    pairs = zip(_letters(first), _letters(second), strict=True)
    if any(ranges[one] != ranges[other] for one, other in pairs):
        return False
    if first.value.dtype != second.value.dtype:
        return False
    return len(_whole(first) - _whole(second)) <= 2


def _whole(stmt: Assign) -> set[Node]:
    """Return the arrays that a statement reads with as many axes as it has letters."""
    found = [read for read in reads(stmt.value) if isinstance(read, Read)]
    return {read.node for read in found if len(read.index) >= len(stmt.free.ranges)}


def _sum(first: Assign, second: Assign) -> Assign:
    """Return the second of two contributions with the first one added."""
    pairs = zip(_letters(first), _letters(second), strict=True)
    moved: Expr = substitute_expr(first.value, {one: var(other) for one, other in pairs})
    return replace(second, op=first.op, value=apply("add", moved, second.value))
