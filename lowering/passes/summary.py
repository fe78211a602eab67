"""What each statement of a program touches, found once: what the passes ask again and again.

A summary counts everything inside of a statement. It is found from the summaries of the statements
inside, so that a whole program takes one walk, however deep its loops are.

>>> from plusequals.lowering.ir import dtypes, expressions, loops, node
>>> from plusequals.lowering.ir.assignments import Access
>>> x, y = (node.Node(n, "xy"[n], (), dtypes.float32) for n in (0, 1))
>>> store = loops.Store(Access(y, ()), expressions.Read(x, ()))
>>> found = summaries((store,))[id(store)]
>>> sorted(found.reads), sorted(found.writes), [kind.__name__ for kind in found.kinds]
([0], [1], ['Store'])
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..ir.loops import Stmt
from ..ir.walk import bodies, own_reads, own_writes


@dataclass(frozen=True, slots=True)
class Summary:
    """The ids of the nodes that a statement reads and writes, and the kinds of statements in it."""

    reads: frozenset[int]
    """Targets that take part are read."""
    writes: frozenset[int]
    """Written, given storage or permuted."""
    kinds: frozenset[type]

    @property
    def touches(self) -> frozenset[int]:
        """The ids of the nodes that are read or written."""
        return self.reads | self.writes


def summaries(body: Iterable[Stmt]) -> dict[int, Summary]:
    """Return the summary of every statement, those inside others too, by the statement's `id`.

    It is true as long as the statements live.
    """
    found: dict[int, Summary] = {}
    for stmt in body:
        _add(stmt, found)
    return found


def summary(stmt: Stmt) -> Summary:
    """Return the summary of one statement."""
    return _add(stmt, {})


def _add(stmt: Stmt, found: dict[int, Summary]) -> Summary:
    known = found.get(id(stmt))
    if known is not None:
        return known
    written = {node.id for node in own_writes(stmt)}
    read = {node.id for node in own_reads(stmt)}
    kinds: set[type] = {type(stmt)}
    for body in bodies(stmt):
        for one in body:
            inner = _add(one, found)
            read |= inner.reads
            written |= inner.writes
            kinds |= inner.kinds
    new = found[id(stmt)] = Summary(frozenset(read), frozenset(written), frozenset(kinds))
    return new
