"""Which side of a procedure is for whom: devices of many threads, or everything else.

    Branch(many): then | other      becomes      then, or other

Both sides leave the same in every array that is used behind them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .ir.assignments import Alloc, Branch, Procedure, Statement
from .ir.node import Node
from .ir.rewrite import map_statements
from .ir.walk import own_reads, own_writes, statements


def for_many(procedure: Procedure) -> Procedure:
    """Return a procedure for a device of many threads."""
    return _sided(procedure, many=True)


def for_few(procedure: Procedure) -> Procedure:
    """Return a procedure for a processor, or for an interpreter."""
    return _sided(procedure, many=False)


def _sided(procedure: Procedure, many: bool) -> Procedure:
    """Return a procedure with one side only, without what only the other uses."""
    if not any(isinstance(s, Branch) and s.many for s in statements(procedure.body)):
        return procedure

    def side(stmt: Statement) -> tuple[Statement, ...]:
        if isinstance(stmt, Branch) and stmt.many:
            return stmt.then if many else stmt.other
        return (stmt,)

    body = map_statements(procedure.body, side)
    unused = _nodes(procedure.body) - _nodes(body)
    kept = tuple(node for node in procedure.locals if node not in unused)
    return replace(procedure, body=body, locals=kept)


def _nodes(body: Iterable[Statement]) -> frozenset[Node]:
    """Return the arrays that statements use."""
    inside = statements(body)
    given = [stmt.node for stmt in inside if isinstance(stmt, Alloc)]
    return frozenset(given) | {n for s in inside for n in (*own_reads(s), *own_writes(s))}
