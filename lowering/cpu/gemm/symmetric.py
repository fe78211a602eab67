"""Symmetric contractions (syrk): one triangle is computed, the other one is copied from it.

Changes: a nest whose elements are the same with rows and columns interchanged, as in a product of a
matrix with its transpose, computes those up to the diagonal. `tile_products` then leaves out the
tiles above the diagonal, half of the work.

    for i in 0..n, j in 0..n:      c[i, j] = sum over k of a[i, k] * a[j, k]
    becomes
    for i in 0..n, j in 0..i + 1:  c[i, j] = sum over k of a[i, k] * a[j, k]
    for i in 0..n, j in i + 1..n:  c[i, j] = c[j, i]

Precondition: long sums of many rows, in a nest that only stores elements of an array that it does
not read. Postcondition: bit-identical, as products and sums of two numbers commute; the terms of
each element are added in their order.

>>> show(lambda program: mirror_triangles(program, Target(schedule=True)),
...      "c[i, j] = sum(a[i, k] * a[j, k])", c="f32[90, 90]", a="f32[90, 70]")
for i in 0..90:
    for j in 0..i + 1:
        c[i, j] = 0.0
        for k in 0..70:
            c[i, j] += a[i, k] * a[j, k]
for i in 0..90:
    for j in i + 1..90:
        c[i, j] = c[j, i]
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ... import thresholds
from ...ir.assignments import Access
from ...ir.decision import Decided, Decision, Reason
from ...ir.expressions import Apply, Cast, Const, Dynamic, Expr, Position, Read, Select, reads
from ...ir.indexing import Affine, Symbol, substitute, var
from ...ir.loops import Comment, For, Program, Stmt, Store, Update
from ...ir.rewrite import substitute as substituted
from ...ir.walk import expressions_of, statements
from ...target import Target
from ...transform.outermost import Body, OutermostRewriter

_COMMUTATIVE = frozenset(("add", "mul", "product", "eq", "ne", "and", "or"))
"""Commutative operations."""


class MirrorReason(Reason):
    """Why one triangle is copied from the other."""

    SAME = "it equals its transpose"


def mirror_triangles(program: Program, target: Target) -> Decided:
    """Return the program with triangles copied, and the decisions."""
    return _SymmetricContractions.on(program, target)


class _SymmetricContractions(OutermostRewriter):
    """The symmetric contractions of one program."""

    __slots__ = ()

    def nest(self, loop: For, outer: tuple[For, ...]) -> Body | None:
        """Return a triangle and its mirror image; None where a nest is no such contraction."""
        store = _element_store(loop)
        if store is None:
            return None
        (inner,) = (stmt for stmt in loop.body if isinstance(stmt, For))
        i, j = loop.symbol, inner.symbol
        exchanged = {i: var(j), j: var(i)}
        if _key(inner.body, {}) != _key(inner.body, exchanged):
            return None
        if not self.is_free((loop, inner), outer):
            return None  # a value that elements hand on is not the same in half as many
        node, index, span = store.access.node, store.access.index, store.span
        names = {i: self.fresh.symbol(i.name), j: self.fresh.symbol(j.name)}
        here = {old: var(new) for old, new in names.items()}
        there = {i: here[j], j: here[i]}
        copy = Store(Access(node, _at(index, here)), Read(node, _at(index, there)), span)
        triangle = replace(inner, hi=var(i) + 1)
        body = tuple(triangle if stmt is inner else stmt for stmt in loop.body)
        mirror = replace(inner, symbol=names[j], lo=here[i] + 1, body=(copy,))
        self.decisions.append(Decision("mirrored", MirrorReason.SAME, node, span=span))
        return replace(loop, body=body), replace(loop, symbol=names[i], body=(mirror,))


def _element_store(loop: For) -> Store | None:
    """Return the store of the elements of a nest of as many rows as columns that only accumulates;
    None where it is none."""
    inner = [stmt for stmt in loop.body if not isinstance(stmt, Comment)]
    if len(inner) != 1 or not isinstance(inner[0], For) or not _have_same_range(loop, inner[0]):
        return None
    inside = statements(inner[0].body)
    if not all(isinstance(stmt, Store | Update | For | Comment) for stmt in inside):
        return None
    symbols = {loop.symbol, inner[0].symbol}
    depth = [stmt for stmt in inside if isinstance(stmt, For)]
    counts = [(level.hi - level.lo).constant for level in depth]
    if (
        None in counts
        or not depth
        or prod(count or 0 for count in counts) < thresholds.MIN_SYMMETRIC_TERMS
    ):
        return None
    if any((level.lo.symbols() | level.hi.symbols()) & symbols for level in depth):
        return None
    updates = [stmt for stmt in inside if isinstance(stmt, Store | Update)]
    ranked = [stmt for stmt in updates if stmt.access.node.rank]
    if len({stmt.access for stmt in ranked}) != 1 or not isinstance(ranked[0], Store):
        return None
    store, node = ranked[0], ranked[0].access.node
    read_nodes = (
        read.node for stmt in updates for expr in expressions_of(stmt) for read in reads(expr)
    )
    if not any(store is stmt for stmt in inner[0].body) or node in read_nodes:
        return None
    subscripts = [
        at for at in store.access.index if not isinstance(at, Affine) or at.symbols() & symbols
    ]
    rows = [at.symbol for at in subscripts if isinstance(at, Affine)]
    return store if len(rows) == len(subscripts) == 2 and set(rows) == symbols else None


def _have_same_range(loop: For, inner: For) -> bool:
    """Whether two loops run through the same values, which are many."""
    trip_count = (loop.hi - loop.lo).constant
    headers = [(level.lo, level.hi, level.step, level.kind) for level in (loop, inner)]
    is_same = headers == [(loop.lo, loop.hi, 1, "serial")] * 2
    return is_same and trip_count is not None and trip_count >= thresholds.MIN_SYMMETRIC_ROWS


def _key(body: tuple[Stmt, ...], values: dict[Symbol, Affine]) -> object:
    """Return a key that is equal for statements that compute the same bits, but for where they
    store elements, with symbols replaced by values."""
    out: list[object] = []
    for stmt in substituted(body, values):
        match stmt:
            case For(symbol, lo, hi, step, inner):
                out.append((symbol, lo, hi, step, _key(inner, {})))
            case Store(access) | Update(access):
                op = stmt.op.name if isinstance(stmt, Update) else ""
                pair = stmt.pair if isinstance(stmt, Update) else None
                out.append((op, access.node, pair, *map(_expr_key, expressions_of(stmt))))
            case _:
                pass
    return tuple(out)


def _expr_key(expr: Expr) -> tuple[object, ...]:
    """Return a key that is equal for expressions that have the same bits."""
    match expr:
        case Const(value, dtype):
            return ("const", repr(value), dtype)
        case Position(index):
            return ("position", repr(index))
        case Read(node, index):
            subscripts = (
                _expr_key(at.value) if isinstance(at, Dynamic) else repr(at) for at in index
            )
            return ("read", node.id, *subscripts)
        case Cast(value, dtype):
            return ("cast", dtype, _expr_key(value))
        case Apply(op, (Position(index), Const(0)), dtype) if op.name in ("eq", "ne"):
            return (op.name, dtype, *sorted((repr(index), repr(index * -1))))
        case Apply(op, args, dtype):
            keys = [*map(_expr_key, args)]
            return (op.name, dtype, *(sorted(keys, key=repr) if op.name in _COMMUTATIVE else keys))
        case Select(test, yes, no):
            return ("select", *map(_expr_key, (test, yes, no)))
        case _:
            return ("other", id(expr))


def _at(index: tuple[Affine | Dynamic, ...], values: dict[Symbol, Affine]) -> tuple[Affine, ...]:
    plain = (at for at in index if isinstance(at, Affine))
    return tuple(substitute(at, values) for at in plain)
