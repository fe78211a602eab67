"""Alpha-equivalence: whether programs are equal up to the serials of symbols and ids of nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from . import indexing, rewrite, walk
from .assignments import Procedure
from .indexing import Symbol, var
from .loops import AnyStatement, Program
from .node import Node

P = TypeVar("P", Procedure, Program)


def alpha_equal(left: P, right: P, *, names: bool = True) -> bool:
    """Whether two procedures (or programs) are equal up to serials and ids.

    Spans are never compared. With `names=False` the names of the function, of symbols and of nodes
    are not compared either, only the structure.
    """
    return canonical(left, names=names) == canonical(right, names=names)


def canonical(program: P, *, names: bool = True) -> P:
    """Return the program with symbols and nodes numbered from 0 in the order of their
    declaration."""
    body = _statements_of(program)
    declared = tuple(p.node for p in program.parameters) + program.locals + program.results
    symbols: dict[Symbol, Symbol] = {}
    for symbol in _declared_symbols(declared, body):
        name = symbol.name if names else "s"
        symbols.setdefault(symbol, Symbol(name, len(symbols)))
    nodes = {
        node.id: _renumber(node, number, symbols, names) for number, node in enumerate(declared)
    }
    new = replace(
        program,
        name=program.name if names else "",
        parameters=tuple(replace(p, node=nodes[p.node.id]) for p in program.parameters),
        locals=tuple(nodes[node.id] for node in program.locals),
        results=tuple(nodes[node.id] for node in program.results),
    )
    if isinstance(new, Procedure):
        return replace(new, body=rewrite.rename(new.body, symbols, nodes))
    kernels = (
        replace(k, name=k.name if names else "", body=rewrite.rename(k.body, symbols, nodes))
        for k in new.kernels
    )
    return replace(new, kernels=tuple(kernels))


def _statements_of(program: Procedure | Program) -> tuple[AnyStatement, ...]:
    if isinstance(program, Procedure):
        return program.body
    return tuple(statement for kernel in program.kernels for statement in kernel.body)


def _declared_symbols(declared: tuple[Node, ...], body: tuple[AnyStatement, ...]) -> list[Symbol]:
    """The symbols in the shapes of nodes, then those that statements bind, in program order."""
    sizes = [e.symbol for node in declared for e in node.shape if e.symbol is not None]
    return sizes + [symbol for s in walk.statements(body) for symbol in walk.binds(s)]


def _renumber(node: Node, number: int, symbols: dict[Symbol, Symbol], names: bool) -> Node:
    values = {old: var(new) for old, new in symbols.items()}
    shape = tuple(indexing.substitute(extent, values) for extent in node.shape)
    return replace(node, id=number, label=node.label if names else "", shape=shape)
