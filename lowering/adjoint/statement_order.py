"""The order of adjoint statements: sums over rows after all that is done row by row.

    d_x[i, j] = ...;  d_b[j] = sum[i](d_y[i, j]);  d_x[i, j] += ...

The sum over `i` needs all rows, so that what comes before it and what comes after it could not be
done for one row after the other. It is moved to the end where nothing in between has to do with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..ir.assignments import Assign, Procedure, Statement
from ..ir.expressions import Read, reads
from ..ir.indexing import Symbol
from ..ir.node import Node
from ..ir.walk import free_symbols, statements
from ..ir.walk import reads as read_nodes
from ..ir.walk import writes as written_nodes


def with_column_sums_last(procedure: Procedure) -> Procedure:
    """Return a procedure whose results that are sums over the first axis come last.

    Postcondition: bit-identical.
    """
    results = {node.id for node in procedure.results}
    body = list(procedure.body)
    for stmt in reversed(procedure.body):
        at = next(n for n, one in enumerate(body) if one is stmt)
        later = body[at + 1 :]
        if later and _is_column_sum(stmt, results) and _is_independent(stmt, later):
            body = [*body[:at], *later, stmt]
    return replace(procedure, body=tuple(body))


def _is_column_sum(stmt: Statement, results: set[int]) -> bool:
    """Whether a statement adds up elements of an array over its first axis, into a result."""
    if not isinstance(stmt, Assign) or stmt.target.node.id not in results or stmt.pair is not None:
        return False
    reduced = {r.symbol for r in stmt.reduced.ranges}
    points = reduced | {r.symbol for r in stmt.free.ranges}
    return bool(reduced and stmt.target.index) and any(
        points <= free_symbols(read) and len(read.index) > 1 and _begins_with(read, reduced)
        for read in reads(stmt.value)
    )


def _begins_with(read: Read, symbols: set[Symbol]) -> bool:
    first = Read(read.node, read.index[:1])
    return bool(free_symbols(first) & symbols)


def _is_independent(stmt: Statement, later: Sequence[Statement]) -> bool:
    """Whether later statements neither write what a statement reads, nor touch what it writes."""
    inside = statements(later)
    written = set(written_nodes(inside))
    own: set[Node] = set(written_nodes((stmt,)))
    touched = written | set(read_nodes(inside))
    return written.isdisjoint(read_nodes((stmt,))) and touched.isdisjoint(own)
