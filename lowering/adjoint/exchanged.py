"""Arguments that change places with other arrays: what they are at the end.

Where arrays change places, a name is another array afterwards, and how often they do is known at
run time only. What a caller sees is the array that it passed, whatever it is called at the end:

    for t in range(n):                  for t in range(n):
        x, y = y, x             ->          x, y = y, x
                                            of_x, of_y = of_y, of_x         numbers: 0, 1 at first
                                        if of_x == 0: x_argument[i] = x[i]
                                        if of_y == 0: x_argument[i] = y[i]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..ir import dtypes
from ..ir.assignments import (
    Access,
    Alloc,
    Assign,
    Branch,
    Permute,
    Procedure,
    Statement,
)
from ..ir.expressions import Const, Domain, Read
from ..ir.node import Node
from ..ir.rewrite import map_statements
from ..ir.walk import statements
from .activity import closure
from .kept import Names
from .rules import apply

Body = tuple[Statement, ...]


def with_arguments_at_end(
    procedure: Procedure, outputs: Sequence[Node]
) -> tuple[Procedure, tuple[Node, ...]]:
    """Return a procedure, and in the place of outputs that are parameters which change places with
    others, copies of what is in these parameters at its end."""
    exchanges = [stmt for stmt in statements(procedure.body) if isinstance(stmt, Permute)]
    pairs = [
        (a.id, b.id) for stmt in exchanges for a, b in zip(stmt.nodes, stmt.sources, strict=True)
    ]
    moved = {number for pair in pairs for number in pair}
    wanted = [p.node for p in procedure.parameters if p.node in outputs and p.node.id in moved]
    if not wanted:
        return procedure, tuple(outputs)
    names = Names.above(procedure)
    both_ways = [*pairs, *((b, a) for a, b in pairs)]
    nodes = {node.id: node for stmt in exchanges for node in (*stmt.nodes, *stmt.sources)}
    tracked = {n: nodes[n] for n in sorted(closure({node.id for node in wanted}, both_ways))}
    numbers = {n: names.array(f"of_{node.label}", (), dtypes.int64) for n, node in tracked.items()}
    first = [_set(numbers[n], Const(at, dtypes.int64)) for at, n in enumerate(tracked)]

    def with_numbers(stmt: Statement) -> Body:
        if isinstance(stmt, Permute) and stmt.nodes[0].id in tracked:
            return (stmt, *_exchanged(stmt, numbers, names))
        return (stmt,)

    last: list[Statement] = []
    copies: dict[int, Node] = {}
    for node in wanted:
        copies[node.id] = copy = names.array(f"{node.label}_argument", node.shape, node.dtype)
        last += [Alloc(copy)] if copy.static_shape is None else []
        at = Const(list(tracked).index(node.id), dtypes.int64)
        for n, place in tracked.items():
            test = apply("eq", Read(numbers[n], ()), at)
            last.append(Branch(test, (names.copied(copy, place),), ()))
    body = (*first, *map_statements(procedure.body, with_numbers), *last)
    new = replace(procedure, locals=(*procedure.locals, *names.nodes), body=body)
    return new, tuple(copies.get(node.id, node) for node in outputs)


def _set(node: Node, value: Const | Read) -> Statement:
    return Assign(Access(node, ()), None, False, value, Domain())


def _exchanged(stmt: Permute, numbers: dict[int, Node], names: Names) -> Iterator[Statement]:
    """Yield what exchanges the numbers of arrays as these are."""
    sides = zip(stmt.nodes, stmt.sources, strict=True)
    pairs = [(numbers[node.id], numbers[source.id]) for node, source in sides]
    held = [names.array(f"{source.label}_held", (), dtypes.int64) for _, source in pairs]
    for copy, (_, source) in zip(held, pairs, strict=True):
        yield _set(copy, Read(source, ()))
    for copy, (number, _) in zip(held, pairs, strict=True):
        yield _set(number, Read(copy, ()))
