"""The tangent of a procedure: each statement after the one that propagates its derivative forward.

    x[I] += v(a[J], ...)  for p        t_x[I] += dv/da * t_a[J] + ...  for p;  then the statement
    m[i]  = max over k: v              the statement;  t_m[i] = the tangent of v where it is largest

Loops and tests stay as they are: nothing is kept, and nothing runs backward. Every array of floats
that depends on an input which is asked for, and on which an output depends, has a tangent of its
shape.

Source: A. Griewank, A. Walther, Evaluating Derivatives, 2nd ed., section 3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from ...base.dataclass import dataclass
from ..ir import dtypes
from ..ir.assignments import (
    Access,
    Alloc,
    Assign,
    Block,
    Branch,
    Break,
    Check,
    Continue,
    DerivativeRule,
    For,
    Let,
    Pair,
    Permute,
    Print,
    Procedure,
    Statement,
    While,
)
from ..ir.expressions import Apply, Cast, Const, Domain, Expr, Position, Read, Select, reads
from ..ir.node import Node
from ..ir.ops import OPS
from ..ir.walk import expressions_of, statements, writes
from .activity import active_nodes, differentiable_reads
from .derivative_rules import Operand, applied, require_closed, require_taken
from .exchanged import with_arguments_at_end
from .extremes import at_position, points_of, positioned
from .kept import Names
from .normalize import normalized
from .origins import with_origins
from .rules import NotDifferentiable, apply, number, partials, source_name
from .simplify import simplified

Body = tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Tangent:
    """A procedure that computes tangents of outputs beside what it computed before."""

    procedure: Procedure
    tangents: tuple[Node, ...]
    """The results that are the tangents of the outputs, in their order."""


def tangent(
    procedure: Procedure, inputs: Sequence[Node], outputs: Sequence[Node], given: Sequence[Node]
) -> Tangent:
    """Return the procedure with the tangents of outputs, from those of inputs.

    `given` are the parameters that hold the tangents of the inputs, in their order. Precondition:
    no `Reduce`. Postcondition: the results are those of the procedure, then the tangent of each
    output. Raises NotDifferentiable.
    """
    procedure, outputs = with_arguments_at_end(procedure, outputs)
    names = Names.above(procedure)
    body = with_origins(procedure.body, names, inputs)
    active = active_nodes(_with_exchanges(body), inputs, outputs)
    require_closed(body, active)
    body = normalized(body, names, active)
    written = writes(body)
    labels = {node.label for node in given}
    wanted = dict.fromkeys((*active.values(), *outputs))
    first: list[Statement] = []
    tangents: dict[int, Node] = {}
    for node, parameter in zip(inputs, given, strict=True):
        if node.id in tangents:
            raise NotDifferentiable("an argument that is asked for twice", procedure.span)
        tangents[node.id] = parameter
        is_kept = node not in written and node not in outputs and parameter not in written
        if not is_kept or parameter.dtype != node.dtype:
            now = names.array(f"t_{node.label}_now", node.shape, node.dtype)
            tangents[node.id] = now
            first += [*_allocated(now), names.copied(now, parameter)]
    for node in wanted:
        if node.id not in tangents:
            label = f"t_{node.label}{'_now' * (f't_{node.label}' in labels)}"
            tangents[node.id] = names.array(label, node.shape, node.dtype)
    results = tuple(tangents[node.id] for node in outputs)
    writer = _Writer(tangents, frozenset(active), names)
    tangent_body = writer.body(body)
    locals_ = tuple(node for node in names.nodes if node not in results)
    new = replace(
        procedure,
        locals=(*procedure.locals, *locals_),
        results=tuple(dict.fromkeys((*procedure.results, *results))),
        body=(*first, *tangent_body),
    )
    return Tangent(simplified(new), results)


def _allocated(node: Node) -> list[Statement]:
    return [Alloc(node)] if node.static_shape is None else []


def _with_exchanges(body: Body) -> Body:
    """Return a body with statements in which all arrays that change places depend on each other:
    all or none of them have a tangent."""
    exchanged = [stmt for stmt in statements(body) if isinstance(stmt, Permute)]
    return (*body, *(replace(s, nodes=s.nodes[1:] + s.nodes[:1]) for s in exchanged))


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes statements with their tangents."""

    tangents: Mapping[int, Node]
    active: frozenset[int]
    names: Names

    def body(self, body: Iterable[Statement]) -> Body:
        """Return the statements of a body with their tangents."""
        return tuple(new for stmt in body for new in self.statement(stmt))

    def statement(self, stmt: Statement) -> Body:
        """Return a statement and what computes its tangent, in the order in which they run."""
        match stmt:
            case Assign():
                return self.assign(stmt) if stmt.target.node.id in self.active else (stmt,)
            case For(body=body):
                return (replace(stmt, body=self.body(body)),)
            case While(prelude, _, body):
                return (replace(stmt, prelude=self.body(prelude), body=self.body(body)),)
            case Branch(_, then, orelse):
                return (replace(stmt, then=self.body(then), orelse=self.body(orelse)),)
            case Block(rule=rule) if rule and any(n.id in self.active for n in rule.outputs):
                return stmt, self.by_rule(stmt, rule)
            case Block():
                return (replace(stmt, body=self.body(stmt.body)),)
            case Alloc(node):
                return (stmt, Alloc(self.tangents[node.id])) if node.id in self.active else (stmt,)
            case Permute(nodes, sources):
                if not any(node.id in self.active for node in nodes):
                    return (stmt,)
                if not all(node.id in self.active for node in (*nodes, *sources)):
                    text = "an exchange of arrays of which some are inactive"
                    raise NotDifferentiable(text, stmt.span)
                moved = [tuple(self.tangents[n.id] for n in part) for part in (nodes, sources)]
                return stmt, replace(stmt, nodes=moved[0], sources=moved[1])
            case Let() | Check() | Print() | Break() | Continue():
                return (stmt,)

    def by_rule(self, stmt: Block, rule: DerivativeRule) -> Block:
        """Return the tangent of a block by its rule, which runs after it."""
        if rule.tangents is None:
            raise NotDifferentiable(
                f"a call of `{rule.name}`, whose `vjp_rule` has no transpose (write a `jvp_rule`),",
                stmt.span,
            )
        first: list[Statement] = []
        given: list[Node] = []
        require_taken(rule, rule.tangents, rule.inputs, self.active, stmt)
        for node in rule.inputs:
            if node.id in self.active:
                given.append(self.tangents[node.id])
                continue
            given.append(self.names.array(f"t_{node.label}", node.shape, node.dtype))  # zero
            first += _allocated(given[-1])
        operands = map(Operand, (*rule.inputs, *rule.outputs, *given))
        body, results = applied(rule.tangents, tuple(operands), self.names, {})
        last: list[Statement] = []
        for node, result in zip(rule.outputs, results, strict=True):
            if node.id in self.active:
                target = self.tangents[node.id]
                zero = number(0.0, target.dtype)
                names = self.names
                last.append(names.copied(target, result) if result else names.filled(target, zero))
        return replace(stmt, body=(*first, *body, *last), rule=None)

    def assign(self, stmt: Assign) -> Body:
        """Return an assignment to an array that has a tangent."""
        dtype = stmt.target.node.dtype
        if dtype.kind == "c" or dtype.bits == 16:
            raise NotDifferentiable(f"a value of {dtype}", stmt.span)
        value = self.derivative(stmt.value, stmt)
        target = replace(stmt.target, node=self.tangents[stmt.target.node.id])
        zero = number(0.0, dtype)
        if stmt.pair is not None:
            chosen = self.extreme(stmt, stmt.pair, target, value or zero)
            return *positioned(stmt), chosen
        if value is None and stmt.op is not None and not stmt.initialize:
            return (stmt,)
        return replace(stmt, target=target, value=value or zero), stmt

    def extreme(self, stmt: Assign, pair: Pair, target: Access, value: Expr) -> Assign:
        """Return the tangent of a maximum or minimum: of the value at the position of the best."""
        found = pair.access
        operands = [read.node for expr in expressions_of(stmt) for read in reads(expr)]
        if stmt.target.node in operands or found.node in operands:
            raise NotDifferentiable("an extreme of what it is assigned to", stmt.span)
        if points := points_of(stmt):
            at = Read(found.node, found.index)
            return replace(at_position(stmt, value, at, points), target=target)
        chosen: Expr = apply("eq", Read(found.node, found.index), Position(pair.position))
        if stmt.reduced.where is not None:
            chosen = Select(stmt.reduced.where, chosen, Const(False, dtypes.bool_))
        reduced = Domain(stmt.reduced.ranges, chosen)
        return replace(stmt, target=target, op=OPS["add"], value=value, pair=None, reduced=reduced)

    def derivative(self, expr: Expr, stmt: Assign) -> Expr | None:
        """Return the tangent of an expression, None where it is zero."""
        if not any(read.node.id in self.active for read in differentiable_reads(expr)):
            return None
        if expr.dtype.kind == "c" or expr.dtype.bits == 16:
            raise NotDifferentiable(f"a value of {expr.dtype}", stmt.span)
        match expr:
            case Read(node, index):
                return Read(self.tangents[node.id], index, expr.span)
            case Cast(value, dtype):
                inner = self.derivative(value, stmt)
                return None if inner is None else _inside(inner, lambda one: Cast(one, dtype))
            case Select(test, yes, no):
                sides = [self.derivative(side, stmt) for side in (yes, no)]
                zero = number(0.0, expr.dtype)
                return Select(test, sides[0] or zero, sides[1] or zero)
            case Apply():
                return self._of_operation(expr, stmt)
            case _:
                raise AssertionError(expr)

    def _of_operation(self, expr: Apply, stmt: Assign) -> Expr | None:
        derivatives = partials(expr)
        if derivatives is None:
            raise NotDifferentiable(f"`{source_name(expr.op.name)}`", stmt.span)
        total: Expr | None = None
        for arg, partial in zip(expr.args, derivatives, strict=True):
            inner = None if partial is None else self.derivative(arg, stmt)
            if partial is not None and inner is not None:
                term = _times(inner, partial)
                total = term if total is None else apply("add", total, term)
        return total


def _inside(tangent: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Return what a tangent becomes; the zero of a side that is not taken stays one, whatever it
    is multiplied by."""
    match tangent:
        case Select(test, yes, Const(0.0)):
            new = _inside(yes, change)
            return Select(test, new, number(0.0, new.dtype))
        case Select(test, Const(0.0), no):
            new = _inside(no, change)
            return Select(test, number(0.0, new.dtype), new)
        case _:
            return change(tangent)


def _times(tangent: Expr, factor: Expr) -> Expr:
    return _inside(tangent, lambda one: apply("mul", one, factor))
