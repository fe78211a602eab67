"""Scalars whose values reach another iteration, or what comes after a loop.

A scalar that each iteration assigns before it reads it, and that nothing else reads, is a name for
a value of one iteration: lanes may each have one. Any other carries a value on:

    for t: { d = x[t];  s += d * d }            d is a name
    for t: last = x[t]                          last is carried to what reads it afterwards
    for t: s = s / 2 + x[t]                     s is carried from one iteration to the next

>>> program = lowered('''
... for t in range(9):
...     d = x[t] * 2
...     y[t] = d * d
...     last = x[t]
... y[0] = last
... ''', y="f32[9]", x="f32[9]")
>>> carried = carried_scalars(program)
>>> sorted(node.label for node in program.locals if not node.rank and node.id in carried)
['last']
"""

from __future__ import annotations

from collections.abc import Iterable

from ..ir.loops import For, If, Program, Stmt, Store, While
from ..ir.node import Node
from ..ir.walk import bodies, direct_reads, direct_writes, statements, writes


def carried_scalars(program: Program) -> frozenset[int]:
    """Return the ids of the scalars that may be read where no statement before, in the same list
    or around it and in the same iteration, assigned them; those that the caller reads included."""
    given = (parameter.node for parameter in program.parameters)
    carried = {node.id for node in (*program.results, *given) if not node.rank}
    for kernel in program.kernels:
        _visit(kernel.body, set(), carried)
    return frozenset(carried)


def stores_carried(body: Iterable[Stmt], carried: frozenset[int]) -> bool:
    """Whether statements store scalars that are carried; accumulators that they only update are
    for a reduction."""
    targets = (stmt.access.node for stmt in statements(body) if isinstance(stmt, Store))
    return any(not node.rank and node.id in carried for node in targets)


def _visit(body: Iterable[Stmt], defined: set[int], carried: set[int]) -> None:
    """Add the scalars that are read before they are assigned; `defined` are those that this
    iteration has assigned, which is updated."""
    for stmt in body:
        if isinstance(stmt, For | While):
            _forget(writes((stmt,)), defined)
        carried |= {
            node.id for node in direct_reads(stmt) if not node.rank and node.id not in defined
        }
        sides = [set(defined) for _ in bodies(stmt)]
        for inner, side in zip(bodies(stmt), sides, strict=True):
            _visit(inner, side, carried)
        if isinstance(stmt, If):
            defined |= sides[0] & sides[1]
        if isinstance(stmt, Store) and not stmt.access.node.rank:
            defined.add(stmt.access.node.id)
        elif not isinstance(stmt, If | For | While):
            _forget(() if isinstance(stmt, Store) else direct_writes(stmt), defined)


def _forget(nodes: Iterable[Node], defined: set[int]) -> None:
    defined.difference_update(node.id for node in nodes)
