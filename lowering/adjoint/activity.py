"""Activity: the arrays through which inputs influence outputs smoothly, and so have cotangents.

Source: A. Griewank, A. Walther, Evaluating Derivatives, 2nd ed., section 6.2. Analysis only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

from ..ir.assignments import Assign, Block, Permute, Statement
from ..ir.expressions import Apply, Cast, Expr, Read, Select
from ..ir.node import Node
from .derivative_rules import differentiated, influences
from .rules import BY_RULE

Body = tuple[Statement, ...]


def active_nodes(body: Body, inputs: Sequence[Node], outputs: Sequence[Node]) -> dict[int, Node]:
    """Return the arrays of floats through which inputs influence the outputs, by their ids."""
    flows = [flow for stmt in differentiated(body) for flow in _flows(stmt)]
    varied = closure({n.id for n in inputs}, [(source, target) for source, target, _ in flows])
    useful = closure({n.id for n in outputs}, [(target, source) for source, target, _ in flows])
    nodes = {n.id: n for _, _, pair in flows for n in pair}
    nodes |= {n.id: n for n in (*inputs, *outputs)}
    return {number: nodes[number] for number in sorted(varied & useful)}


def closure(start: set[int], edges: Sequence[tuple[int, int]]) -> set[int]:
    """Return what is reached from some ids along edges, themselves included."""
    found, size = set(start), -1
    while len(found) != size:
        size = len(found)
        found |= {target for source, target in edges if source in found}
    return found


def _flows(stmt: Statement) -> Iterable[tuple[int, int, tuple[Node, Node]]]:
    """Yield from which nodes of floats to which a statement may carry derivatives."""
    match stmt:
        case Assign(target, _, _, value):
            if target.node.dtype.kind in "fc":
                for read in differentiable_reads(value):
                    yield read.node.id, target.node.id, (read.node, target.node)
        case Permute(nodes, sources):
            for node, source in zip(nodes, sources, strict=True):
                if node.dtype.kind in "fc":
                    yield source.id, node.id, (source, node)
        case Block(rule=rule) if rule is not None:
            for pair in product(influences(stmt, rule), rule.outputs):
                if all(node.dtype.kind in "fc" for node in pair):
                    yield pair[0].id, pair[1].id, pair
        case _:
            pass


def differentiable_reads(expr: Expr) -> list[Read]:
    """Return the reads of floats on which a value depends smoothly."""
    match expr:
        case Read(node, _):
            return [expr] if node.dtype.kind in "fc" else []
        case Apply(op, args) if op.name == BY_RULE:
            return [read for arg in args[1::2] for read in differentiable_reads(arg)]
        case Apply(op, args) if op.result != "bool":
            return [read for arg in args for read in differentiable_reads(arg)]
        case Cast(value, dtype) if dtype.kind in "fc" and value.dtype.kind in "fc":
            return differentiable_reads(value)
        case Select(_, yes, no):
            return [*differentiable_reads(yes), *differentiable_reads(no)]
        case _:
            return []
