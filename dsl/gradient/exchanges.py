"""Arrays that change places where a text cannot say it: on one side of a test.

There a name would be one of two arrays, which the language may refuse. Their elements are exchanged
instead, by copies.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...lowering.adjoint.kept import Names
from ...lowering.ir.assignments import Alloc, Block, Branch, Permute, Procedure, Statement
from ...lowering.ir.rewrite import map_bodies
from ...lowering.ir.walk import statements

_Body = tuple[Statement, ...]


def with_copies_under_tests(procedure: Procedure) -> Procedure:
    """Return the procedure in which no arrays change places under a test, but for those of sizes
    that a run computes, for which there is nothing to copy to before."""
    names = Names.above(procedure)
    sized = {stmt.node.id for stmt in statements(procedure.body) if isinstance(stmt, Alloc)}

    def changed(body: _Body, tested: bool) -> _Body:
        return tuple(new for stmt in body for new in statement(stmt, tested))

    def statement(stmt: Statement, tested: bool) -> Iterator[Statement]:
        if isinstance(stmt, Permute) and tested and not sized & {node.id for node in stmt.nodes}:
            yield from _copies(stmt, names)
            return
        # what a loop in it exchanges has one place again after the loop
        inside = isinstance(stmt, Branch) or tested and isinstance(stmt, Block)
        yield map_bodies(stmt, lambda body: changed(body, inside))

    body = changed(procedure.body, False)
    return replace(procedure, body=body, locals=(*procedure.locals, *names.nodes))


def _copies(stmt: Permute, names: Names) -> Iterator[Statement]:
    held = [names.array(f"{node.label}_held", node.shape, node.dtype) for node in stmt.sources]
    for copy, source in zip(held, stmt.sources, strict=True):
        yield names.copied(copy, source, span=stmt.span)
    for node, copy in zip(stmt.nodes, held, strict=True):
        yield names.copied(node, copy, span=stmt.span)
