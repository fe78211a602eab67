"""Statements in the forms that have adjoints: updates are sums, extremes keep their positions.

x[I] *= v                        x[I] = x[I] * v
m[i] = max over k: x[i, k]       m[i], m_at[i] = argmax over k: x[i, k] at k
p = prod over k: x[k]            p = 1;  for k: p = p * x[k]
y[q[i]] = x[i]                   for i: y[q[i]] = x[i]
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ..analysis.self_dependence import is_injective
from ..ir import dtypes
from ..ir.assignments import Access, Alloc, Assign, Block, Branch, For, Pair, Statement, While
from ..ir.expressions import Apply, Domain, Dynamic, Read, reads
from ..ir.indexing import Affine, multiply, var
from ..ir.ops import OPS, PAIR_OPS, neutral_of
from .kept import Names, upper_bound
from .rules import NotDifferentiable, number

Body = tuple[Statement, ...]


def normalized(body: Body, names: Names, active: Collection[int]) -> Body:
    """Return statements whose updates are sums, and whose extremes keep where they are, where they
    write active arrays."""
    out: list[Statement] = []
    for stmt in body:
        match stmt:
            case Assign() if stmt.target.node.id in active:
                out += _normalized_assign(stmt, names)
            case For():
                out.append(replace(stmt, body=normalized(stmt.body, names, active)))
            case While():
                prelude = normalized(stmt.prelude, names, active)
                out.append(
                    replace(stmt, prelude=prelude, body=normalized(stmt.body, names, active))
                )
            case Branch():
                then, orelse = (normalized(b, names, active) for b in (stmt.then, stmt.orelse))
                out.append(replace(stmt, then=then, orelse=orelse))
            case Block():
                out.append(replace(stmt, body=normalized(stmt.body, names, active)))
            case _:
                out.append(replace(stmt))  # an object of its own: places are found by identity
    return tuple(out)


def _normalized_assign(stmt: Assign, names: Names) -> list[Statement]:
    op, target = stmt.op, stmt.target
    if op is None and target.node.dtype.kind in "fc":
        return _one_by_one(stmt)
    if op is None or op.name in ("add", "sub") or target.node.dtype.kind not in "fc":
        return [replace(stmt)]
    if not stmt.reduced.ranges and stmt.reduced.where is None and not stmt.initialize:
        old = Read(target.node, target.index)
        if is_injective(target.index, stmt.free.ranges):
            return [replace(stmt, op=None, value=Apply(op, (old, stmt.value), old.dtype))]
    is_extreme = op.name in ("max", "min") and bool(stmt.reduced.ranges)
    if is_extreme and stmt.initialize and stmt.pair is None:
        return _with_positions(stmt, names)
    if stmt.pair is not None and stmt.initialize:
        return [replace(stmt)]
    if stmt.pair is not None:
        raise NotDifferentiable("an extreme that goes on from an earlier one", stmt.span)
    return _sequential(stmt)


def _with_positions(stmt: Assign, names: Names) -> list[Statement]:
    """Return a maximum or minimum with the positions at which it was found."""
    found = names.array(f"{stmt.target.node.label}_at", stmt.target.node.shape, dtypes.int64)
    op = PAIR_OPS["argmax" if stmt.op == OPS["max"] else "argmin"]
    new = replace(stmt, op=op, pair=Pair(Access(found, stmt.target.index), _position(stmt)))
    return [new] if found.static_shape is not None else [Alloc(found), new]


def _position(stmt: Assign) -> Affine:
    """Return the number of a point of a reduction as the language numbers it: row-major, in a box
    from zero to the largest end of each range."""
    ranges = stmt.reduced.ranges
    position = var(ranges[0].symbol)
    for at, r in enumerate(ranges[1:], 1):
        end: Affine | None = r.hi
        for other in reversed(ranges[:at]):
            end = end and upper_bound(end, other.symbol, other.lo, other.hi - 1)
        if end is None or end.symbols() & set(stmt.free.symbols):
            raise NotDifferentiable("an extreme over ranges that depend on others", stmt.span)
        position = multiply(position, end) + var(r.symbol)
    return position


def _one_by_one(stmt: Assign) -> list[Statement]:
    """Return an assignment as it is where its points have elements of their own, else as loops."""
    if is_injective(stmt.target.index, stmt.free.ranges) and not stmt.reduced.ranges:
        return [replace(stmt)]
    _require_other_operands(stmt)
    step = replace(stmt, free=Domain(), reduced=Domain())
    return list(_nest(stmt.free, _nest(stmt.reduced, (step,), stmt), stmt))


def _require_other_operands(stmt: Assign) -> None:
    """Refuse a statement that reads its target as it was before all of its points: in loops over
    these it would read what earlier ones assigned."""
    exprs = [e for e in (stmt.value, stmt.free.where, stmt.reduced.where) if e is not None]
    exprs += [at.value for at in stmt.target.index if isinstance(at, Dynamic)]
    if any(r.node == stmt.target.node for e in exprs for r in reads(e)):
        raise NotDifferentiable("an array that is read while its elements change", stmt.span)


def _sequential(stmt: Assign) -> list[Statement]:
    """Return an accumulation as loops over its points, in order."""
    assert stmt.op is not None
    _require_other_operands(stmt)
    old = Read(stmt.target.node, stmt.target.index)
    value = Apply(stmt.op, (old, stmt.value), old.dtype)
    step: Statement = replace(
        stmt, op=None, initialize=False, value=value, free=Domain(), reduced=Domain()
    )
    inner = _nest(stmt.reduced, (step,), stmt)
    if not stmt.initialize:
        return list(_nest(stmt.free, inner, stmt))
    dtype = stmt.target.node.dtype
    start = number(float(neutral_of(stmt.op, dtype.kind, dtype.bits)), dtype)
    first = replace(stmt, op=None, initialize=False, value=start, free=Domain(), reduced=Domain())
    return list(_nest(stmt.free, (first, *inner), stmt))


def _nest(domain: Domain, body: Body, stmt: Assign) -> Body:
    if domain.where is not None:
        body = (Branch(domain.where, body, (), stmt.span),)
    for r in reversed(domain.ranges):
        body = (For(r.symbol, r.lo, r.hi, 1, body, stmt.span),)
    return body
