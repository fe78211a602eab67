"""Accesses remapped to other elements; all else in the statements stays as it is.

>>> program = lowered("y[i] = x[i] * 2", y="f32[8]", x="f32[8]")
>>> y, x = (p.node for p in program.parameters)
>>> remapped = remap_accesses(program.kernels[0].body, lambda node, index: (node, (const(0),)))
>>> print_loops(remapped)
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
from ..ir.instructions import AwaitProducts, CopyVector, MatMul, StoreVector
from ..ir.loops import Fill, For, Stmt, Store, Update
from ..ir.node import Node
from ..ir.rewrite import Rewrite, map_statements, rebuild_statement

Element = tuple[Node, tuple[Index, ...]]


def remap_accesses(
    body: tuple[Stmt, ...], moved: Callable[[Node, tuple[Index, ...]], Element]
) -> tuple[Stmt, ...]:
    """Return statements whose accesses are those that `moved` returns for node and index.

    A `Fill` of a node that is remapped becomes loops.
    """

    def remap_reads(expr: Expr) -> Expr:
        new = rebuild(expr, remap_reads, lambda index: index)
        if isinstance(new, Read):
            node, index = moved(new.node, new.index)
            same = node is new.node and index is new.index
            return new if same else replace(new, node=node, index=index)
        return new

    def remap_access(access: Access) -> Access:
        return Access(*moved(access.node, access.index))

    def change(stmt: Stmt) -> tuple[Stmt, ...]:
        stmt = rebuild_statement(stmt, Rewrite(expr=remap_reads))
        match stmt:
            case Store() | StoreVector():
                stmt = replace(stmt, access=remap_access(stmt.access))
            case CopyVector(target):
                stmt = replace(stmt, target=remap_access(target))
            case MatMul(accumulator):
                stmt = replace(stmt, accumulator=remap_access(accumulator))
            case Update(pair=pair):
                stmt = replace(
                    stmt,
                    access=remap_access(stmt.access),
                    pair=None if pair is None else replace(pair, access=remap_access(pair.access)),
                )
            case Fill(node):
                loops = fill_loops(stmt)
                if moved(node, tuple(map(var, _axis_symbols(node))))[0] is not node:
                    return map_statements(loops, change)
            case AwaitProducts(node):
                index: tuple[Index, ...] = tuple(map(var, _axis_symbols(node)))
                stmt = replace(stmt, node=moved(node, index)[0])
            case _:
                pass
        return (stmt,)

    return map_statements(body, change)


def add_leading_axis(
    body: tuple[Stmt, ...], nodes: Sequence[Node], count: int, position: Affine, fresh: Fresh
) -> tuple[Stmt, ...]:
    """Return statements whose accesses to `nodes` use new arrays with a leading axis of extent
    `count`, at the subscript `position` of it."""
    expanded = {
        n.id: fresh.array(n.label, (count, *(n.static_shape or ())), n.dtype) for n in nodes
    }

    def moved(node: Node, index: tuple[Index, ...]) -> Element:
        return (node, index) if node.id not in expanded else (expanded[node.id], (position, *index))

    return remap_accesses(body, moved)


def fill_loops(stmt: Fill) -> tuple[Stmt, ...]:
    """Return the loops that store a value into every element."""
    symbols = _axis_symbols(stmt.node)
    access = Access(stmt.node, tuple(map(var, symbols)))
    out: tuple[Stmt, ...] = (Store(access, stmt.value, stmt.span),)
    for symbol, extent in reversed([*zip(symbols, stmt.node.shape, strict=True)]):
        out = (For(symbol, const(0), extent, 1, out, "serial", stmt.span),)
    return out


def _axis_symbols(node: Node) -> list[Symbol]:
    """Return a symbol for each axis of a node."""
    return [Symbol("ijklmn"[axis % 6], -(2**22) - axis) for axis in range(node.rank)]
