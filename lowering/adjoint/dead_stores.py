"""Adjoint statements without those whose values nothing reads, and cotangents that begin as sums.

    d_x[i] = 0.0                            nothing reads `d_x` after it: left out
    d_y[i] += v[i]                          the first that is added to zeros: d_y[i] = v[i]
    d_x[i] = 0.0;  d_x[i] += v[i]           d_x[i] = v[i]

Only arrays that the adjoint has made are concerned: what the procedure itself computes stays, and
raises what it raised. Liveness is that of whole arrays.

Source: A. Aho, M. Lam, R. Sethi, J. Ullman, Compilers, 2nd ed., section 9.2.5. A pass.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from ...base.dataclass import dataclass
from ..ir.assignments import (
    Alloc,
    Assign,
    Block,
    Branch,
    Break,
    Continue,
    For,
    Permute,
    Statement,
    While,
)
from ..ir.expressions import Const
from ..ir.indexing import Affine
from ..ir.node import Node
from ..ir.ops import OPS
from ..ir.walk import direct_reads, direct_writes, statements

Body = tuple[Statement, ...]


def without_dead_stores(body: Body, made: Collection[int], kept: Iterable[Node]) -> Body:
    """Return the statements that are needed; `made` are the ids of arrays that the adjoint has
    made, which begin as zeros, and `kept` those that are read afterwards."""
    body = _with_first_sums(_with_sums_for_zeros(body, made), made)
    everything = frozenset(
        node.id for stmt in statements(body) for node in (*direct_reads(stmt), *_written(stmt))
    )
    stores = _Liveness(frozenset(made) - {node.id for node in kept}, everything)
    new, _ = stores.body(body, frozenset(node.id for node in kept) | (everything - set(made)))
    return new


@dataclass(frozen=True, slots=True)
class _Liveness:
    """A walk from the last statement to the first, with the arrays whose values are read later."""

    removable: frozenset[int]
    everything: frozenset[int]

    def body(self, body: Body, live: frozenset[int]) -> tuple[Body, frozenset[int]]:
        """Return the needed statements of a body, and what is live before it."""
        new: list[Statement] = []
        for stmt in reversed(body):
            kept, live = self.statement(stmt, live)
            new[:0] = kept
        return tuple(new), live

    def statement(self, stmt: Statement, live: frozenset[int]) -> tuple[Body, frozenset[int]]:
        """Return a statement where it is needed, and what is live before it."""
        reads = frozenset(node.id for node in direct_reads(stmt))
        match stmt:
            case Assign(target):
                node = target.node.id
                if stmt.pair is None and node in self.removable and node not in live:
                    return (), live
                before = live - {node} if _sets_all(stmt) else live | {node}
                return (stmt,), before | reads
            case Alloc(node):
                return (stmt,), live - {node.id}
            case For():
                body, before = self.repeated(stmt.body, live)
                return (replace(stmt, body=body),) if body else (), before | reads
            case While():
                inside = (*stmt.prelude, *stmt.body)
                _, before = self.repeated(inside, live | reads)
                prelude, _ = self.body(stmt.prelude, before | reads)
                body, _ = self.body(stmt.body, before | reads)
                return (replace(stmt, prelude=prelude, body=body),), before | reads
            case Branch():
                then, first = self.body(stmt.then, live)
                orelse, second = self.body(stmt.orelse, live)
                if not then and not orelse:
                    return (), live
                return (replace(stmt, then=then, orelse=orelse),), first | second | reads
            case Block():
                body, before = self.body(stmt.body, live)
                return (replace(stmt, body=body),) if body else (), before
            case Break() | Continue():
                return (stmt,), self.everything  # whatever follows where it goes
            case _:
                return (stmt,), live | reads | {node.id for node in _written(stmt)}

    def repeated(self, body: Body, live: frozenset[int]) -> tuple[Body, frozenset[int]]:
        """Return the needed statements of a loop, and what is live before it and each round."""
        while True:
            new, before = self.body(body, live)
            if before <= live:
                return new, live
            live = live | before


def _written(stmt: Statement) -> list[Node]:
    """Return what a statement itself writes or exchanges."""
    nodes = list(direct_writes(stmt))
    if isinstance(stmt, Permute):
        nodes += [*stmt.nodes, *stmt.sources]
    return nodes + [stmt.node] if isinstance(stmt, Alloc) else nodes


def _sets_all(stmt: Assign) -> bool:
    """Whether an assignment sets all elements of its target, whatever these were."""
    node, free = stmt.target.node, {r.symbol: r for r in stmt.free.ranges}
    if stmt.op is not None and not stmt.initialize or stmt.free.where is not None:
        return False
    if stmt.pair is not None or len(free) != len(stmt.target.index):
        return False
    symbols = [at.symbol if isinstance(at, Affine) else None for at in stmt.target.index]
    return len(set(symbols)) == len(symbols) and all(
        s in free and free[s].lo.constant == 0 and free[s].hi == extent
        for s, extent in zip(symbols, node.shape, strict=True)
        if s is not None
    ) and None not in symbols  # fmt: skip


def _as_assignment(stmt: Assign) -> Assign | None:
    """Return a sum that is added to zeros as an assignment; None for other statements."""
    if stmt.op is not OPS["add"] or stmt.initialize or stmt.pair is not None:
        return None
    if any(node == stmt.target.node for node in direct_reads(replace(stmt, op=None))):
        return None
    if stmt.reduced.ranges or stmt.reduced.where is not None:
        return replace(stmt, initialize=True)
    return replace(stmt, op=None)


def _with_sums_for_zeros(body: Body, made: Collection[int]) -> Body:
    """Return a body in which zeros that a sum is added to at once are that sum."""
    out: list[Statement] = []
    for given in body:
        stmt = _inside(given, made)
        before = out[-1] if out else None
        if (
            isinstance(stmt, Assign) and isinstance(before, Assign) and _is_zero(before)
            and before.target == stmt.target and before.free == stmt.free
            and stmt.target.node.id in made and (sums := _as_assignment(stmt)) is not None
        ):  # fmt: skip
            out[-1] = sums
        else:
            out.append(stmt)
    return tuple(out)


def _inside(stmt: Statement, made: Collection[int]) -> Statement:
    match stmt:
        case For(body=body) | Block(body=body):
            return replace(stmt, body=_with_sums_for_zeros(body, made))
        case Branch(then=then, orelse=orelse):
            first, second = (_with_sums_for_zeros(side, made) for side in (then, orelse))
            return replace(stmt, then=first, orelse=second)
        case _:
            return stmt


def _is_zero(stmt: Assign) -> bool:
    is_constant = isinstance(stmt.value, Const) and not stmt.value.value
    return is_constant and stmt.op is None and not stmt.reduced.ranges


def _with_first_sums(body: Body, made: Collection[int]) -> Body:
    """Return a body in which the first sum that is added to all elements of an array is assigned:
    they are zero before."""
    touched: set[int] = set()
    out: list[Statement] = []
    for stmt in body:
        if isinstance(stmt, Assign) and stmt.target.node.id in set(made) - touched:
            sums = _as_assignment(stmt)
            stmt = sums if sums is not None and _sets_all(sums) else stmt
        for inner in statements((stmt,)):
            if not isinstance(inner, Alloc):
                touched |= {node.id for node in (*direct_reads(inner), *_written(inner))}
        out.append(stmt)
    return tuple(out)
