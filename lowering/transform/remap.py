"""Other elements in the place of those that statements read and write; all else stays.

>>> program = lowered("y[i] = x[i] * 2", y="f32[8]", x="f32[8]")
>>> y, x = (p.node for p in program.parameters)
>>> turned = elsewhere(program.kernels[0].body, lambda node, index: (node, (const(0),)))
>>> print_loops(turned)
# y[i] = x[i] * 2
for i in 0..8:
    y[0] = x[0] * 2.0
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..ir.assignments import Access
from ..ir.expressions import Expr, Index, Read, rebuild
from ..ir.fresh import Fresh
from ..ir.indexing import Affine, Symbol, const, var
from ..ir.loops import Fill, For, Stmt, Store, Update
from ..ir.node import Node
from ..ir.rewrite import Rewrite, map_statements, rebuild_statement

Place = tuple[Node, tuple[Index, ...]]


def elsewhere(
    body: tuple[Stmt, ...], moved: Callable[[Node, tuple[Index, ...]], Place]
) -> tuple[Stmt, ...]:
    """Return statements whose accesses are what the function gives for node and index.

    A `Fill` of a node that moves becomes loops.
    """

    def of(expr: Expr) -> Expr:
        new = rebuild(expr, of, lambda index: index)
        if isinstance(new, Read):
            node, index = moved(new.node, new.index)
            same = node is new.node and index is new.index
            return new if same else replace(new, node=node, index=index)
        return new

    def access(one: Access) -> Access:
        return Access(*moved(one.node, one.index))

    def change(stmt: Stmt) -> tuple[Stmt, ...]:
        stmt = rebuild_statement(stmt, Rewrite(expr=of))
        match stmt:
            case Store():
                stmt = replace(stmt, access=access(stmt.access))
            case Update(pair=pair):
                stmt = replace(
                    stmt,
                    access=access(stmt.access),
                    pair=None if pair is None else replace(pair, access=access(pair.access)),
                )
            case Fill(node):
                filled = filling(stmt)
                if moved(node, tuple(map(var, _symbols(node))))[0] is not node:
                    return map_statements(filled, change)
            case _:
                pass
        return (stmt,)

    return map_statements(body, change)


def with_front(
    body: tuple[Stmt, ...], nodes: Sequence[Node], count: int, place: Affine, fresh: Fresh
) -> tuple[Stmt, ...]:
    """Return statements with arrays that have an axis in front, of a size, where they use a place
    of it."""
    made = {n.id: fresh.array(n.label, (count, *(n.static_shape or ())), n.dtype) for n in nodes}

    def moved(node: Node, index: tuple[Index, ...]) -> Place:
        return (node, index) if node.id not in made else (made[node.id], (place, *index))

    return elsewhere(body, moved)


def filling(stmt: Fill) -> tuple[Stmt, ...]:
    """Return the loops that store a value into every element."""
    symbols = _symbols(stmt.node)
    access = Access(stmt.node, tuple(map(var, symbols)))
    out: tuple[Stmt, ...] = (Store(access, stmt.value, stmt.span),)
    for symbol, extent in reversed([*zip(symbols, stmt.node.shape, strict=True)]):
        out = (For(symbol, const(0), extent, 1, out, "serial", stmt.span),)
    return out


def _symbols(node: Node) -> list[Symbol]:
    """Return a symbol for each axis."""
    return [Symbol("ijklmn"[axis % 6], -(2**22) - axis) for axis in range(node.rank)]
