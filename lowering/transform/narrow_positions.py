"""Bitwidth reduction of positions: private integers that hold positions, as wide as other values.

    at: i64; at = i if x[i, j] > best else at   ->   at: i32; at = i32(i) if x[i, j] > best else at

Lanes are as wide as the widest value in them, so that a search among 32-bit numbers that keeps a
64-bit position has half as many lanes as it could, and converts its masks. The range of such an
integer is that of the loops and constants that it is assigned; it is as wide as that needs, and at
least as wide as the other values of the inner loops.

Precondition: scalars that only the loop accesses, and to which only positions and constants in a
static range are assigned. Postcondition: every value is the same.

>>> program = lowered('''
... for i in range(9):
...     at = 0
...     for j in range(70):
...         at = j if x[i, j] > 0 else at
...     y[i] = at
... ''', y="i64[9]", x="f32[9, 70]")
>>> (loop,) = program.kernels[0].body
>>> private = frozenset(node.id for node in program.locals)
>>> print_loops((narrow_positions(loop, private, fresh_for(program), Bounds({})),))
for i in 0..9:
    # for j in range(70)
    at = 0
    for j in 0..70:
        # at = j if x[i, j] > 0 else at
        at = i32(j) if x[i, j] > 0.0 else at
    # y[i] = at
    y[i] = i64(at)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..ir import dtypes
from ..ir.assignments import Access
from ..ir.bounds import Bounds
from ..ir.dtypes import DType
from ..ir.expressions import Cast, Const, Expr, Position, Read, Select, rebuild
from ..ir.fresh import Fresh
from ..ir.loops import For, Stmt, Store
from ..ir.node import Node
from ..ir.rewrite import Rewrite, map_statements, rebuild_statement
from ..ir.walk import direct_reads, direct_writes, statements

Body = tuple[Stmt, ...]
_NARROW = (dtypes.int16, dtypes.int32)


def narrow_positions(loop: For, private: frozenset[int], fresh: Fresh, bounds: Bounds) -> For:
    """Return a loop with its positions as narrow as they may be; the loop itself where none is.

    `private` are the ids of the nodes that nothing but the loop accesses, `bounds` the facts around
    it.
    """
    stores = tuple(_find_stores(loop, private, bounds))
    positions = _find_positions(loop, stores)
    if not positions:
        return loop
    inner = [stmt for stmt in statements(loop.body) if isinstance(stmt, For)]
    nodes = {
        node for stmt in statements(s for nest in inner for s in nest.body)
        for node in (*direct_reads(stmt), *direct_writes(stmt))
    }  # fmt: skip
    widths = [node.dtype.bits for node in nodes if node.id not in positions]
    ranges = [at for store, around in stores if store.access.node.id in positions
              for at in _intervals(store.value, around)]  # fmt: skip
    least, most = min(lo for lo, _ in ranges), max(hi for _, hi in ranges)
    if not any(node.id in positions for node in nodes):
        return loop
    for dtype in _NARROW:
        limit = 1 << dtype.bits - 1
        if dtype.bits >= max(widths, default=0) and -limit <= least and most < limit:
            narrow = {n.id: fresh.scalar(n.label, dtype) for n in positions.values()}
            return replace(loop, body=_narrowed(loop.body, narrow))
    return loop


def _find_stores(
    loop: For, private: frozenset[int], bounds: Bounds
) -> Iterator[tuple[Store, Bounds]]:
    """Yield the stores to private wide integers in a loop, each with the facts around it."""
    around = bounds.inside(loop)
    for stmt in loop.body:
        match stmt:
            case For():
                yield from _find_stores(stmt, private, around)
            case Store(Access(node, ())) if node.dtype is dtypes.int64 and node.id in private:
                yield stmt, around
            case _:
                pass


def _find_positions(loop: For, stores: tuple[tuple[Store, Bounds], ...]) -> dict[int, Node]:
    """Return the scalars that only hold positions and constants of a static range, by their ids."""
    writes = [node.id for stmt in statements(loop.body) for node in direct_writes(stmt)]
    targets = [store.access.node for store, _ in stores]
    ids = [node.id for node in targets]
    positions = {node.id: node for node in targets if writes.count(node.id) == ids.count(node.id)}
    while True:
        others = {
            store.access.node.id for store, around in stores
            if not _is_position(store.value, positions, around)
        }  # fmt: skip
        if others.isdisjoint(positions):
            return positions
        positions = {number: node for number, node in positions.items() if number not in others}


def _is_position(value: Expr, positions: dict[int, Node], bounds: Bounds) -> bool:
    match value:
        case Read(node, ()):
            return node.id in positions
        case Select(_, yes, no):
            return _is_position(yes, positions, bounds) and _is_position(no, positions, bounds)
        case Position(index):
            return None not in bounds.interval(index)
        case _:
            return isinstance(value, Const)


def _intervals(value: Expr, bounds: Bounds) -> Iterator[tuple[int, int]]:
    """Yield the ranges of the positions and constants in a value."""
    match value:
        case Select(_, yes, no):
            yield from _intervals(yes, bounds)
            yield from _intervals(no, bounds)
        case Position(index):
            least, most = bounds.interval(index)
            assert least is not None and most is not None, "it is of a static range"
            yield least, most
        case Const(number):
            yield int(number.real), int(number.real)
        case _:
            pass


def _narrowed(body: Body, narrow: dict[int, Node]) -> Body:
    """Return statements with narrow scalars for the positions among them."""

    def widened(expr: Expr) -> Expr:
        if isinstance(expr, Read) and expr.node.id in narrow:
            return Cast(Read(narrow[expr.node.id], (), expr.span), dtypes.int64)
        return rebuild(expr, widened, lambda index: index)

    def statement(stmt: Stmt) -> Body:
        if isinstance(stmt, Store) and stmt.access.node.id in narrow:
            node = narrow[stmt.access.node.id]
            return (replace(stmt, access=Access(node, ()), value=value(stmt.value, node.dtype)),)
        return (rebuild_statement(stmt, Rewrite(expr=widened)),)

    def value(expr: Expr, dtype: DType) -> Expr:
        match expr:
            case Read(node, ()):
                return Read(narrow[node.id], (), expr.span)
            case Select(test, yes, no):
                return Select(widened(test), value(yes, dtype), value(no, dtype))
            case Const(number):
                return Const(number, dtype)
            case Position(index) if index.constant is not None:
                return Const(index.constant, dtype)
            case _:
                return Cast(expr, dtype)

    return map_statements(body, statement)
