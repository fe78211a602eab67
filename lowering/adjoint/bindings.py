"""Integers that adjoint statements bind again, under symbols of their own.

A loop of one iteration is replaced by its body, and then those of the forward statements and of the
adjoint ones would be bound in one scope.
"""

from __future__ import annotations

from ..ir.assignments import Alloc, Let, Statement
from ..ir.rewrite import map_bodies, rename
from ..ir.walk import direct_reads, direct_writes, statements
from .kept import Names

_Body = tuple[Statement, ...]


def with_own_symbols(body: _Body, names: Names) -> _Body:
    """Return a body whose integers have new symbols, but for those that sizes of arrays consist
    of."""
    inside = statements(body)
    nodes = [n for stmt in inside for n in (*direct_reads(stmt), *direct_writes(stmt))]
    nodes += [stmt.node for stmt in inside if isinstance(stmt, Alloc)]
    sizes = {symbol for node in nodes for extent in node.shape for symbol in extent.symbols()}

    def renamed(body: _Body) -> _Body:
        bound = [stmt.symbol for stmt in body if isinstance(stmt, Let)]
        new = {old: names.symbol(old.name) for old in bound if old not in sizes}
        body = rename(body, new, {}) if new else body
        return tuple(map_bodies(stmt, renamed) for stmt in body)

    return renamed(body)
