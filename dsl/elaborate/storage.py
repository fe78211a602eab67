"""Allocation of local arrays that are defined in loops, which may have no iteration.

An array of run-time size is allocated at its definition. The result of a loop without an iteration
is zeros (language, S5), so arrays defined in loops are also allocated before the loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...base.diagnostic import NOWHERE, CdNameError, Span
from ...base.lazy_import import LazyModule
from ...lowering.ir.assignments import Alloc, Let, Statement
from ...lowering.ir.indexing import Symbol
from ...lowering.ir.node import Node
from ...lowering.ir.rewrite import with_bodies
from ...lowering.ir.walk import bodies, direct_reads, direct_writes, statements
from ..values.builder import error

if TYPE_CHECKING:
    from ...lowering.ir import verify
else:  # few programs allocate
    verify = LazyModule("...lowering.ir.verify", __package__)

Body = tuple[Statement, ...]


def stored(
    body: Body, local: Sequence[Node], results: Sequence[Node], sizes: frozenset[Symbol],
    have: Iterable[Node],
) -> Body:  # fmt: skip
    """Return the body with an allocation of each local array before any statement that accesses it,
    and of each result in any case.

    `sizes` are the symbols bound on entry, `have` the arrays allocated on entry. Raises CdNameError
    CD0202 where the size of an array goes out of scope with a loop around its definition.
    """
    if not any(isinstance(inner, Let | Alloc) for inner in statements(body)):
        return body
    for statement, _ in verify.find_unbound(body, sizes, {}):
        raise _lifetime_error(_span_of(statement))
    allocated = frozenset(node.id for node in local if node.static_shape is not None)
    allocated |= {node.id for node in have}
    missing, surely = verify.find_unallocated(body, allocated)
    late = [
        node
        for node in results
        if node.id not in surely | allocated and _is_allocated_in(node, body)
    ]
    for node in dict.fromkeys((*(node for _, node in missing), *late)):
        body = _allocate_before_use(body, node, sizes)
    return body


def _is_allocated_in(node: Node, body: Body) -> bool:
    return any(
        isinstance(statement, Alloc) and statement.node == node for statement in statements(body)
    )


def _allocate_before_use(body: Body, node: Node, bound: frozenset[Symbol]) -> Body:
    """Return the body with an allocation before the first statement that mentions the array."""
    size_symbols = frozenset[Symbol]().union(*(extent.symbols() for extent in node.shape))
    for at, statement in enumerate(body):
        if isinstance(statement, Alloc) and statement.node == node:
            return body
        if _mentions(statement, node):
            if size_symbols <= bound:
                return (*body[:at], Alloc(node, _span_of(statement)), *body[at:])
            if any(_mentions(later, node) for later in body[at + 1 :]):
                return body  # its size is that of the last iteration: none, no size
            inner = tuple(
                _allocate_before_use(inner_body, node, bound) for inner_body in bodies(statement)
            )
            return (*body[:at], with_bodies(statement, inner), *body[at + 1 :])
        if isinstance(statement, Let):
            bound |= {statement.symbol}
    return body


def _mentions(statement: Statement, node: Node) -> bool:
    return any(
        node in direct_reads(inner)
        or node in direct_writes(inner)
        or isinstance(inner, Alloc)
        and inner.node == node
        for inner in statements((statement,))
    )


def _span_of(statement: object) -> Span:
    span: Span = getattr(statement, "span", NOWHERE)
    return span


def _lifetime_error(span: Span) -> Exception:
    return error(
        "CD0202", CdNameError,
        "this reads an array whose size was found in a loop that has ended", span,
        helps=("make it before the loop as large as it gets, and use parts of it",),
    )  # fmt: skip
