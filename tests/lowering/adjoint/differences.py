"""Derivatives by adjoint procedures against central differences, along random directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from plusequals.dsl.elaborate.normalize import build
from plusequals.lowering.adjoint.adjoint import Adjoint, adjoint
from plusequals.lowering.adjoint.kept import Names
from plusequals.lowering.ir.assignments import Parameter, Procedure
from plusequals.lowering.ir.interpret import run_procedure
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.verify import verify_procedure

Arrays = list[np.ndarray]


@dataclass(frozen=True, slots=True)
class Derived:
    """A procedure and its adjoint, with values for its parameters."""

    procedure: Procedure
    adjoint: Adjoint
    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]
    values: Arrays

    def cotangents(self, given: Arrays) -> Arrays:
        """Return the cotangents of the inputs, from those of the outputs."""
        found = run(self.adjoint.procedure, [*self.values, *given])[1]
        return found[len(self.procedure.results) :]

    def moved(self, directions: Sequence[np.ndarray], step: float) -> Arrays:
        """Return the outputs where the inputs are moved along directions."""
        moves = {node.id: step * move for node, move in zip(self.inputs, directions, strict=True)}
        nodes = [parameter.node for parameter in self.procedure.parameters]
        values = [
            value + moves[node.id] if node.id in moves else value
            for node, value in zip(nodes, self.values, strict=True)
        ]
        after, results = run(self.procedure, values)
        at = dict(zip([node.id for node in nodes], after, strict=True))
        at |= dict(zip([node.id for node in self.procedure.results], results, strict=True))
        return [at[node.id] for node in self.outputs]


def derived(procedure: Procedure, values: Sequence[Any], with_adjoint: bool = True) -> Derived:
    """Return the adjoint of an elaborated procedure in all of its arrays of float64, from those
    that it writes or returns; without it the procedure alone."""
    built = build(procedure)
    inputs = tuple(p.node for p in built.parameters if p.node.dtype.name == "float64")
    written = tuple(p.node for p in built.parameters if p.written)
    outputs = tuple(n for n in (*written, *built.results) if n.dtype.name == "float64")
    seeded, given = with_parameters(built, outputs, "d")
    made = adjoint(seeded, inputs, outputs, given) if with_adjoint else Adjoint(built, ())
    verify_procedure(made.procedure)
    nodes = [parameter.node for parameter in built.parameters]
    arrays = [np.array(v, node.dtype.numpy) for node, v in zip(nodes, values, strict=True)]
    return Derived(built, made, inputs, outputs, arrays)


def with_parameters(
    procedure: Procedure, like: Sequence[Node], prefix: str
) -> tuple[Procedure, list[Node]]:
    """Return the procedure with further parameters, of the types and shapes of some nodes."""
    names = Names.above(procedure)
    nodes = [names.array(f"{prefix}_{node.label}", node.shape, node.dtype) for node in like]
    further = (Parameter(node, False) for node in nodes)
    return replace(procedure, parameters=(*procedure.parameters, *further)), nodes


def agree(case: Derived, seed: int = 0, step: float = 1e-6, rtol: float = 1e-5) -> bool:
    """Whether the cotangents give the derivative along a random direction that differences give."""
    rng = np.random.default_rng(seed)
    given = [rng.standard_normal(node.static_shape) for node in case.outputs]
    directions = [rng.standard_normal(node.static_shape) for node in case.inputs]
    pairs = zip(case.cotangents([np.asarray(one) for one in given]), directions, strict=True)
    along = sum(float((one * move).sum()) for one, move in pairs)
    ends = zip(given, case.moved(directions, step), case.moved(directions, -step), strict=True)
    expected = sum(float((one * (high - low)).sum()) for one, high, low in ends) / (2 * step)
    return abs(along - expected) <= rtol * max(1.0, abs(expected))


def run(procedure: Procedure, values: Sequence[np.ndarray]) -> tuple[Arrays, Arrays]:
    """Return the parameters after a run of the interpreter, and the results."""
    arrays = [np.array(value) for value in values]
    results = [np.zeros(n.static_shape or (), n.dtype.numpy) for n in procedure.results]
    found = run_procedure(procedure, (*arrays, *results), lambda text: None)
    return arrays, list(found)
