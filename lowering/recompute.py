"""Rematerialization across procedures: a slice of one procedure recomputed in front of another.

    first:   t[i] = a[i] * 2             second:  z[i] = t[i] + 1
             y[i] = t[i]

    both:    t[i] = a[i] * 2
             z[i] = t[i] + 1

`backward_slice` computes a slice (Weiser, Program slicing, 1981): the statements of a procedure
that some of its nodes depend on, by reads and writes and by enclosing tests and loops; it is
flow-insensitive, so it takes too many rather than too few. Prints are dropped; checks are
repeated where they need no other statement.
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
from .ir.walk import binds, bodies, direct_reads, direct_writes, statements, uses, writes


@dataclass(frozen=True, slots=True)
class Slice:
    """A slice: the statements that some nodes depend on, and every node that these use."""

    body: tuple[Statement, ...]
    parameters: tuple[Parameter, ...]
    locals: tuple[Node, ...]
    """All other nodes, results among them: they start as zeros."""


def backward_slice(procedure: Procedure, wanted: Iterable[Node]) -> Slice:
    """Return the slice of a procedure that the final values of some nodes depend on."""
    marks = _Marks({node.id for node in wanted})
    body = _up_to_last_write(procedure.body, marks.nodes)
    marks = _close(body, marks)
    parameter_ids = {parameter.node.id for parameter in procedure.parameters}
    for check in (statement for statement in statements(body) if isinstance(statement, Check)):
        more = _close(body, marks.with_need(check))
        if more.nodes & parameter_ids <= marks.nodes:
            marks = more.keeping(check)
    nodes = (*procedure.locals, *procedure.results)
    return Slice(
        _prune(body, marks),
        tuple(parameter for parameter in procedure.parameters if parameter.node.id in marks.nodes),
        tuple(node for node in nodes if node.id in marks.nodes),
    )


def prepend_slice(
    what: Slice, why: str, procedure: Procedure, same: Mapping[int, Node]
) -> tuple[Procedure, tuple[Parameter, ...]]:
    """Return a procedure that runs a slice first, and the nodes of the slice that became new last
    parameters.

    `same` maps ids of nodes of the slice to nodes of the procedure that stand for them.
    """
    nodes, symbols = _fresh_names(what, procedure, same)
    added = tuple(
        Parameter(nodes[parameter.node.id], parameter.written)
        for parameter in what.parameters
        if parameter.node.id not in same
    )
    body = rewrite.rename(what.body, symbols, nodes)
    result = replace(
        procedure,
        parameters=(*procedure.parameters, *added),
        locals=(*procedure.locals, *(nodes[n.id] for n in what.locals if n.id not in same)),
        body=(Block(why, body, procedure.span), *procedure.body),
    )
    return result, added


@dataclass
class _Marks:
    """The slicing criterion so far: nodes, by id, and symbols; the statements in the slice, by
    id."""

    nodes: set[int]
    symbols: set[Symbol] = field(default_factory=set)
    statements: set[int] = field(default_factory=set)

    @property
    def size(self) -> int:
        return len(self.nodes) + len(self.symbols) + len(self.statements)

    def keeping(self, statement: Statement) -> _Marks:
        return _Marks(self.nodes, self.symbols, {*self.statements, id(statement)})

    def with_need(self, statement: Statement) -> _Marks:
        """Return these marks and what a statement itself reads and uses."""
        more = _Marks(set(self.nodes), set(self.symbols), set(self.statements))
        more.need(statement)
        return more

    def need(self, statement: Statement) -> None:
        self.nodes |= {node.id for node in (*direct_reads(statement), *direct_writes(statement))}
        self.symbols |= uses(statement)

    def visit(self, body: Iterable[Statement]) -> bool:
        """Mark the statements of a list that are in the slice; return whether any is."""
        return True in [self.visit_statement(statement) for statement in body]

    def visit_statement(self, statement: Statement) -> bool:
        match statement:
            case Check() | Print() | Break() | Continue():
                return False
            case For() | While() | Branch() | Block():
                is_needed = True in [self.visit(nested) for nested in bodies(statement)]
            case Let(symbol):
                is_needed = symbol in self.symbols
            case _:
                is_needed = any(node.id in self.nodes for node in direct_writes(statement))
        if is_needed:
            self.statements.add(id(statement))
            self.need(statement)
            if isinstance(statement, For | While):
                for nested in bodies(statement):
                    self.mark_jumps(nested)
        return is_needed

    def mark_jumps(self, body: Iterable[Statement]) -> bool:
        """Mark the jumps out of a loop in the slice, in its own body; return whether there are
        any."""
        any_jump = False
        for statement in body:
            match statement:
                case Break() | Continue():
                    is_jump = True
                case Branch() | Block():
                    is_jump = True in [self.mark_jumps(nested) for nested in bodies(statement)]
                case _:
                    is_jump = False
            if is_jump:
                self.statements.add(id(statement))
                self.need(statement)
            any_jump = any_jump or is_jump
        return any_jump


def _up_to_last_write(body: tuple[Statement, ...], nodes: set[int]) -> tuple[Statement, ...]:
    """Return the statements of a procedure up to the last write of some nodes."""
    positions = [
        at for at, statement in enumerate(body) if any(n.id in nodes for n in writes((statement,)))
    ]
    return body[: max(positions, default=-1) + 1]


def _close(body: tuple[Statement, ...], marks: _Marks) -> _Marks:
    """Return the transitive closure of marks."""
    before = -1
    while before != marks.size:
        before = marks.size
        marks.visit(body)
    return marks


def _prune(body: Iterable[Statement], marks: _Marks) -> tuple[Statement, ...]:
    """Return the statements in the slice, nested ones included."""
    return tuple(
        rewrite.with_bodies(statement, tuple(_prune(inner, marks) for inner in bodies(statement)))
        for statement in body
        if id(statement) in marks.statements
    )


def _fresh_names(
    what: Slice, procedure: Procedure, same: Mapping[int, Node]
) -> tuple[dict[int, Node], dict[Symbol, Symbol]]:
    """Return new nodes, by old ids, and new symbols that a procedure does not have."""
    parameters = [parameter.node for parameter in procedure.parameters]
    existing = (*parameters, *procedure.locals, *procedure.results)
    used_symbols = [x for node in existing for extent in node.shape for x in extent.symbols()]
    used_symbols += [x for statement in statements(procedure.body) for x in binds(statement)]
    serial = max((x.serial for x in used_symbols), default=-1)
    bound = dict.fromkeys(x for statement in statements(what.body) for x in binds(statement))
    symbols = {x: Symbol(x.name, serial + n) for n, x in enumerate(bound, 1)}
    last_id = max((node.id for node in existing), default=-1)
    values = {old: var(new) for old, new in symbols.items()}
    nodes = dict(same)
    for node in (*(parameter.node for parameter in what.parameters), *what.locals):
        if node.id not in same:
            last_id += 1
            shape = tuple(substitute(extent, values) for extent in node.shape)
            nodes[node.id] = replace(node, id=last_id, shape=shape)
    return nodes, symbols
