"""Temporaries of one procedure computed again in another: what decides them is put in front.

    first:   t[i] = a[i] * 2             second:  z[i] = t[i] + 1
             y[i] = t[i]

    both:    t[i] = a[i] * 2
             z[i] = t[i] + 1

`deciding` takes from a procedure the statements that some of its nodes depend on, by what they read
and write and by the tests and loops around them; it looks at no order, so it takes too many rather
than too few. What is printed is not printed again; checks are made again where they need nothing
that is not there anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace

from ..base.dataclass import dataclass
from .ir import rewrite
from .ir.assignments import (
    Block,
    Branch,
    Break,
    Check,
    Continue,
    For,
    Let,
    Parameter,
    Print,
    Procedure,
    Statement,
    While,
)
from .ir.indexing import Symbol, substitute, var
from .ir.node import Node
from .ir.walk import binds, bodies, own_reads, own_writes, statements, uses, writes


@dataclass(frozen=True, slots=True)
class Deciding:
    """Statements that decide what nodes hold, and every node that these use."""

    body: tuple[Statement, ...]
    parameters: tuple[Parameter, ...]
    locals: tuple[Node, ...]
    """Everything else, results among it: it starts as zeros."""


def deciding(procedure: Procedure, wanted: Iterable[Node]) -> Deciding:
    """Return what a procedure does that decides what some of its nodes hold in the end."""
    marks = _Marks({node.id for node in wanted})
    body = _until_written(procedure.body, marks.nodes)
    marks = _closed(body, marks)
    given = {parameter.node.id for parameter in procedure.parameters}
    for check in (one for one in statements(body) if isinstance(one, Check)):
        more = _closed(body, marks.with_need(check))
        if more.nodes & given <= marks.nodes:
            marks = more.keeping(check)
    nodes = (*procedure.locals, *procedure.results)
    return Deciding(
        _pruned(body, marks),
        tuple(one for one in procedure.parameters if one.node.id in marks.nodes),
        tuple(node for node in nodes if node.id in marks.nodes),
    )


def in_front(
    what: Deciding, why: str, procedure: Procedure, same: Mapping[int, Node]
) -> tuple[Procedure, tuple[Parameter, ...]]:
    """Return a procedure that does something first, and what of it became new last parameters.

    `same` are nodes of the procedure that stand for nodes of what is put in front, by their ids.
    """
    nodes, symbols = _fresh(what, procedure, same)
    added = tuple(
        Parameter(nodes[one.node.id], one.written)
        for one in what.parameters
        if one.node.id not in same
    )
    body = rewrite.rename(what.body, symbols, nodes)
    made = replace(
        procedure,
        parameters=(*procedure.parameters, *added),
        locals=(*procedure.locals, *(nodes[n.id] for n in what.locals if n.id not in same)),
        body=(Block(why, body, procedure.span), *procedure.body),
    )
    return made, added


@dataclass
class _Marks:
    """What is needed so far: nodes, by id, and symbols; the statements that are kept, by id."""

    nodes: set[int]
    symbols: set[Symbol] = field(default_factory=set)
    kept: set[int] = field(default_factory=set)

    @property
    def size(self) -> int:
        return len(self.nodes) + len(self.symbols) + len(self.kept)

    def keeping(self, statement: Statement) -> _Marks:
        return _Marks(self.nodes, self.symbols, {*self.kept, id(statement)})

    def with_need(self, statement: Statement) -> _Marks:
        """Return these marks and what a statement itself reads and uses."""
        more = _Marks(set(self.nodes), set(self.symbols), set(self.kept))
        more.need(statement)
        return more

    def need(self, statement: Statement) -> None:
        self.nodes |= {node.id for node in (*own_reads(statement), *own_writes(statement))}
        self.symbols |= uses(statement)

    def visit(self, body: Iterable[Statement]) -> bool:
        """Mark what is kept of a list of statements; return whether anything is."""
        return True in [self.visit_one(statement) for statement in body]

    def visit_one(self, statement: Statement) -> bool:
        match statement:
            case Check() | Print() | Break() | Continue():
                return False
            case For() | While() | Branch() | Block():
                is_kept = True in [self.visit(one) for one in bodies(statement)]
            case Let(symbol):
                is_kept = symbol in self.symbols
            case _:
                is_kept = any(node.id in self.nodes for node in own_writes(statement))
        if is_kept:
            self.kept.add(id(statement))
            self.need(statement)
            if isinstance(statement, For | While):
                for one in bodies(statement):
                    self.leave(one)
        return is_kept

    def leave(self, body: Iterable[Statement]) -> bool:
        """Mark the ways out of a loop that is kept, in its own body; return whether there are."""
        found = False
        for statement in body:
            match statement:
                case Break() | Continue():
                    is_way = True
                case Branch() | Block():
                    is_way = True in [self.leave(one) for one in bodies(statement)]
                case _:
                    is_way = False
            if is_way:
                self.kept.add(id(statement))
                self.need(statement)
            found = found or is_way
        return found


def _until_written(body: tuple[Statement, ...], nodes: set[int]) -> tuple[Statement, ...]:
    """Return what a procedure does up to the last write of some nodes."""
    places = [at for at, one in enumerate(body) if any(n.id in nodes for n in writes((one,)))]
    return body[: max(places, default=-1) + 1]


def _closed(body: tuple[Statement, ...], marks: _Marks) -> _Marks:
    """Return marks with all that they need in turn."""
    before = -1
    while before != marks.size:
        before = marks.size
        marks.visit(body)
    return marks


def _pruned(body: Iterable[Statement], marks: _Marks) -> tuple[Statement, ...]:
    """Return the statements that are kept, those inside others too."""
    return tuple(
        rewrite.with_bodies(one, tuple(_pruned(inner, marks) for inner in bodies(one)))
        for one in body
        if id(one) in marks.kept
    )


def _fresh(
    what: Deciding, procedure: Procedure, same: Mapping[int, Node]
) -> tuple[dict[int, Node], dict[Symbol, Symbol]]:
    """Return new nodes, by old ids, and new symbols that a procedure does not have."""
    parameters = [one.node for one in procedure.parameters]
    there = (*parameters, *procedure.locals, *procedure.results)
    known = [x for node in there for extent in node.shape for x in extent.symbols()]
    known += [x for one in statements(procedure.body) for x in binds(one)]
    serial = max((x.serial for x in known), default=-1)
    bound = dict.fromkeys(x for one in statements(what.body) for x in binds(one))
    symbols = {x: Symbol(x.name, serial + n) for n, x in enumerate(bound, 1)}
    last = max((node.id for node in there), default=-1)
    values = {old: var(new) for old, new in symbols.items()}
    nodes = dict(same)
    for node in (*(one.node for one in what.parameters), *what.locals):
        if node.id not in same:
            last += 1
            shape = tuple(substitute(extent, values) for extent in node.shape)
            nodes[node.id] = replace(node, id=last, shape=shape)
    return nodes, symbols
