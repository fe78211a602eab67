"""Integers that adjoint statements bind again, under symbols of their own.

A loop of one iteration is replaced by its body, and then those of the forward statements and of the
adjoint ones would be bound in one scope.
"""

from __future__ import annotations

from ..ir.assignments import Alloc, Let, Statement
from ..ir.indexing import substitute, var
from ..ir.rewrite import map_bodies, rename
from ..ir.walk import direct_reads, direct_writes, statements
from .kept import Names

_Body = tuple[Statement, ...]


def with_own_symbols(body: _Body, names: Names) -> _Body:
    """Return a body whose integers have new symbols, but for those that sizes of arrays consist
    of which are created elsewhere; the others get new arrays."""
    inside = statements(body)
    nodes = {n for stmt in inside for n in (*direct_reads(stmt), *direct_writes(stmt))}
    nodes |= {stmt.node for stmt in inside if isinstance(stmt, Alloc)}
    sized = {node: {s for extent in node.shape for s in extent.symbols()} for node in nodes}

    def renamed(body: _Body) -> _Body:
        bound = {stmt.symbol for stmt in body if isinstance(stmt, Let)}
        created = {s.node for s in statements(body) if isinstance(s, Alloc)} if bound else set()
        for node, symbols in sized.items():
            bound -= symbols if node not in created else set()
        new = {old: names.symbol(old.name) for old in sorted(bound, key=lambda s: s.serial)}
        values = {old: var(symbol) for old, symbol in new.items()}
        arrays = {
            node.id: names.array(
                node.label, [substitute(extent, values) for extent in node.shape], node.dtype
            )
            for node in sorted(created, key=lambda node: node.id) if sized[node] & new.keys()
        }  # fmt: skip
        sized.update({n: {s for e in n.shape for s in e.symbols()} for n in names.nodes})
        body = rename(body, new, arrays) if new else body
        return tuple(map_bodies(stmt, renamed) for stmt in body)

    return renamed(body)
