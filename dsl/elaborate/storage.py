"""Storage for arrays that loops make, where a loop may have no iteration.

An array whose size is a run-time size gets its storage where it is made. What a loop without an
iteration would have made is zeros (language, S5), so those get storage before the loop, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...base.diagnostic import NOWHERE, CdNameError, Span
from ...lowering.ir.assignments import Alloc, Let, Statement
from ...lowering.ir.indexing import Symbol
from ...lowering.ir.node import Node
from ...lowering.ir.rewrite import with_bodies
from ...lowering.ir.verify import find_unallocated, find_unbound
from ...lowering.ir.walk import bodies, own_reads, own_writes, statements
from ..values.builder import error

Body = tuple[Statement, ...]


def stored(
    body: Body, local: Sequence[Node], results: Sequence[Node], sizes: frozenset[Symbol],
    have: Iterable[Node],
) -> Body:  # fmt: skip
    """Return the body with storage for each local array before any statement that accesses it, and
    for each of the results in any case.

    `sizes` are the symbols that hold from the start, `have` the arrays that have storage from then
    on. Raises CdNameError CD0202 where the size of an array ends with a loop around what makes it.
    """
    if not any(isinstance(one, Let | Alloc) for one in statements(body)):
        return body
    for statement, _ in find_unbound(body, sizes, {}):
        raise _ends(_span(statement))
    given = frozenset(node.id for node in local if node.static_shape is not None)
    given |= {node.id for node in have}
    missing, surely = find_unallocated(body, given)
    late = [node for node in results if node.id not in surely | given and _is_made(node, body)]
    for node in dict.fromkeys((*(node for _, node in missing), *late)):
        body = _before(body, node, sizes)
    return body


def _is_made(node: Node, body: Body) -> bool:
    return any(isinstance(one, Alloc) and one.node == node for one in statements(body))


def _before(body: Body, node: Node, bound: frozenset[Symbol]) -> Body:
    """Return the body with storage for an array before the first statement that mentions it."""
    needed = frozenset[Symbol]().union(*(extent.symbols() for extent in node.shape))
    for place, statement in enumerate(body):
        if isinstance(statement, Alloc) and statement.node == node:
            return body
        if _mentions(statement, node):
            if needed <= bound:
                return (*body[:place], Alloc(node, _span(statement)), *body[place:])
            if any(_mentions(later, node) for later in body[place + 1 :]):
                return body  # its size is that of the last iteration: nothing where there is none
            inner = tuple(_before(one, node, bound) for one in bodies(statement))
            return (*body[:place], with_bodies(statement, inner), *body[place + 1 :])
        if isinstance(statement, Let):
            bound |= {statement.symbol}
    return body


def _mentions(statement: Statement, node: Node) -> bool:
    return any(
        node in own_reads(one)
        or node in own_writes(one)
        or isinstance(one, Alloc)
        and one.node == node
        for one in statements((statement,))
    )


def _span(statement: object) -> Span:
    found: Span = getattr(statement, "span", NOWHERE)
    return found


def _ends(span: Span) -> Exception:
    return error(
        "CD0202", CdNameError,
        "this reads an array whose size was found in a loop that has ended", span,
        helps=("make it before the loop as large as it gets, and use parts of it",),
    )  # fmt: skip
