"""Target selection of branches: code for devices of many threads (GPUs), or for everything else.

    Branch(many): then | other      becomes      then, or other

Both arms leave the same values in every array that is used after them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .ir.assignments import Alloc, Branch, Procedure, Statement
from .ir.node import Node
from .ir.rewrite import map_statements
from .ir.walk import direct_reads, direct_writes, statements


def select_gpu_branches(procedure: Procedure) -> Procedure:
    """Return a procedure specialized for a device of many threads (GPU)."""
    return _select_arms(procedure, many=True)


def select_cpu_branches(procedure: Procedure) -> Procedure:
    """Return a procedure specialized for a CPU, or for an interpreter."""
    return _select_arms(procedure, many=False)


def _select_arms(procedure: Procedure, many: bool) -> Procedure:
    """Return a procedure with one arm only, without the locals that only the other uses."""
    if not any(isinstance(s, Branch) and s.many for s in statements(procedure.body)):
        return procedure

    def select(stmt: Statement) -> tuple[Statement, ...]:
        if isinstance(stmt, Branch) and stmt.many:
            return stmt.then if many else stmt.orelse
        return (stmt,)

    body = map_statements(procedure.body, select)
    unused = _nodes_used(procedure.body) - _nodes_used(body)
    locals_ = tuple(node for node in procedure.locals if node not in unused)
    return replace(procedure, body=body, locals=locals_)


def _nodes_used(body: Iterable[Statement]) -> frozenset[Node]:
    """Return the arrays that statements use."""
    inside = statements(body)
    allocated = [stmt.node for stmt in inside if isinstance(stmt, Alloc)]
    return frozenset(allocated) | {n for s in inside for n in (*direct_reads(s), *direct_writes(s))}
