"""Derivatives that the user wrote: of blocks, which are calls of a function with such a rule.

    y = f(x)                   adjoint: the statements of the rule, from x, y and d_y;
                               d_x += what it returns;  d_y = 0
                               tangent: the statements of the rule, from x, y and t_x;  t_y = ...

A block computes its outputs from its inputs, arrays of its own that hold copies. Its statements are
not differentiated, so they may be any that the language has.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from ...base.dataclass import dataclass
from ..ir.assignments import Alloc, Block, DerivativeRule, LinearMap, Procedure, Statement
from ..ir.expressions import Apply, Expr, Read, rebuild, walk
from ..ir.indexing import Affine, substitute, var
from ..ir.node import Node
from ..ir.ops import Op
from ..ir.rewrite import Rewrite, map_statements, rename, rewrite
from ..ir.walk import (
    binds,
    direct_reads,
    direct_writes,
    expressions_of,
    reads,
    statements,
    writes,
)
from .kept import Names
from .rules import BY_RULE, NotDifferentiable
from .simplify import simplified

Body = tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Operand:
    """The array that a rule reads, at the first subscripts `at`."""

    node: Node
    at: tuple[Affine, ...] = ()


def outside_rules(body: Body, change: Callable[[Body], Body]) -> Body:
    """Return a body that a function changed, which sees no statements inside of blocks with a
    rule."""
    inside: dict[int, Body] = {}

    def without(stmt: Statement) -> Body:
        if isinstance(stmt, Block) and stmt.rule is not None:
            inside[id(stmt.rule)] = stmt.body
            return (replace(stmt, body=()),)
        return (stmt,)

    def put_back(stmt: Statement) -> Body:
        if isinstance(stmt, Block) and stmt.rule is not None:
            return (replace(stmt, body=inside[id(stmt.rule)]),)
        return (stmt,)

    emptied = map_statements(body, without)
    return map_statements(change(emptied), put_back) if inside else change(body)


def by_rule(value: Expr, pairs: Sequence[tuple[Expr, Expr]]) -> Expr:
    """Return a value whose derivative is the sum of those of some operands, each times a factor."""
    args = (value, *(one for pair in pairs for one in pair))
    return Apply(Op(BY_RULE, len(args), "f", lambda value, *_: value), args, value.dtype)


def without_rule(value: Expr, name: str) -> Expr:
    """Return an operand that has no derivative, and what it is called in errors."""
    return Apply(Op(name, 1, "f", lambda value: value), (value,), value.dtype)


def uses_rules(procedure: Procedure) -> bool:
    """Whether some block or value has a rule."""
    inside = statements(procedure.body)
    return any(isinstance(s, Block) and s.rule is not None for s in inside) or any(
        isinstance(part, Apply) and part.op.name == BY_RULE
        for stmt in inside for value in expressions_of(stmt) for part in walk(value)
    )  # fmt: skip


def without_rules(procedure: Procedure) -> Procedure:
    """Return a procedure whose blocks and values have no rules; it computes nothing for these
    alone."""

    def plain(expr: Expr) -> Expr:
        new = rebuild(expr, plain, lambda index: index)
        return new.args[0] if isinstance(new, Apply) and new.op.name == BY_RULE else new

    def change(stmt: Statement) -> Body:
        if isinstance(stmt, Block) and stmt.rule is not None:
            return (replace(stmt, rule=None),)
        return (stmt,)

    if not uses_rules(procedure):
        return procedure
    body = map_statements(rewrite(procedure.body, Rewrite(plain)), change)
    return simplified(replace(procedure, body=body))


def differentiated(body: Sequence[Statement]) -> Iterator[Statement]:
    """Yield the statements that are differentiated: a block with a rule as a whole."""
    hidden: set[int] = set()
    for stmt in statements(body):
        if isinstance(stmt, Block) and stmt.rule is not None:
            hidden |= {id(one) for one in statements(stmt.body)}
        if id(stmt) not in hidden:
            yield stmt


def influences(block: Block, rule: DerivativeRule) -> Iterator[Node]:
    """Yield the arrays from which a block computes its outputs: its inputs, and what else it
    reads of floats."""
    yield from rule.inputs
    own = {*writes(block.body), *rule.inputs}
    yield from (n for n in reads(block.body) if n not in own and n.dtype.kind in "fc")


def require_closed(body: Body, active: Collection[int]) -> None:
    """Refuse blocks with a rule that depend on active arrays besides their inputs, or leave other
    arrays of floats behind than their outputs."""
    for stmt in statements(body):
        if not isinstance(stmt, Block) or (rule := stmt.rule) is None:
            continue
        for node in influences(stmt, rule):
            if node not in rule.inputs and node.id in active:
                text = f"`{node.label}`, which `{rule.name}` reads besides its arguments,"
                raise NotDifferentiable(text, stmt.span)
        own = {n for n in writes(stmt.body) if n.dtype.kind in "fc"}.difference(rule.outputs)
        inside = {id(one) for one in (stmt, *statements(stmt.body))}
        for other in statements(body):
            seen = () if id(other) in inside else (*direct_reads(other), *direct_writes(other))
            for node in () if isinstance(other, Alloc) else seen:
                if node in own and node not in rule.inputs:
                    text = f"`{node.label}`, which `{rule.name}` writes besides its results,"
                    raise NotDifferentiable(text, stmt.span)


def require_taken(
    rule: DerivativeRule,
    linear: LinearMap,
    vectors: Sequence[Node],
    active: Collection[int],
    stmt: Block,
) -> None:
    """Refuse a rule that takes no cotangent of an output that matters, or no tangent of such an
    input: it cannot be told from one that forgets it."""
    for node, ignored in zip(vectors, linear.ignored, strict=False):
        if ignored and node.id in active:
            text = f"`{node.label}`, whose derivative no parameter of a rule of `{rule.name}` is,"
            raise NotDifferentiable(text, stmt.span)


def outer_reads(linear: LinearMap) -> list[Node]:
    """Return the arrays that a rule reads besides its parameters: those that it captures."""
    procedure = linear.procedure
    own = {p.node for p in procedure.parameters}.union(procedure.locals, procedure.results)
    return [node for node in reads(procedure.body) if node not in own]


def applied(
    linear: LinearMap, operands: Sequence[Operand], names: Names, outer: Mapping[int, Operand]
) -> tuple[Body, tuple[Node | None, ...]]:
    """Return the statements of a rule for the arrays of a call, and its results, new arrays.

    An operand that the rule writes, or that has another type, is copied first. `outer` are the
    arrays that take the place of captured ones, by the `id` of these.
    """
    procedure = linear.procedure
    bound = {symbol for stmt in statements(procedure.body) for symbol in binds(stmt)}
    symbols = {symbol: names.symbol(symbol.name) for symbol in bound}
    values = {symbol: var(new) for symbol, new in symbols.items()}
    written = writes(procedure.body)
    instead: dict[int, Node] = {}
    parts = dict(outer)
    first: list[Statement] = []
    for parameter, operand in zip(procedure.parameters, operands, strict=True):
        formal = parameter.node
        if formal in written or formal.dtype != operand.node.dtype:
            instead[formal.id] = copy = names.array(formal.label, formal.shape, formal.dtype)
            first += [Alloc(copy)] if copy.static_shape is None else []
            first.append(names.copied(copy, operand.node, from_=operand.at))
        elif operand.at:
            parts[formal.id] = operand
        else:
            instead[formal.id] = operand.node
    for node in (*procedure.locals, *procedure.results):
        shape = tuple(substitute(extent, values) for extent in node.shape)
        instead[node.id] = names.array(node.label, shape, node.dtype)

    def read(expr: Expr) -> Expr:
        new = rebuild(expr, read, lambda index: index)
        if isinstance(new, Read) and new.node.id in parts:
            operand = parts[new.node.id]
            return Read(operand.node, (*operand.at, *new.index), new.span)
        return new

    body = rewrite(rename(procedure.body, symbols, instead), Rewrite(read))
    results = (None if node is None else instead[node.id] for node in linear.results)
    return (*first, *body), tuple(results)
