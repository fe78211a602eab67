"""Which arrays have cotangents."""

from __future__ import annotations

from plusequals.lowering.adjoint.activity import active_nodes, closure, differentiable_reads
from plusequals.lowering.ir.walk import expressions_of, statements

from .test_adjoint import case_of


def test_active_arrays_are_between_inputs_and_outputs() -> None:
    procedure = case_of("p = x * 2; q = y * 3; r = p + 1; return r").procedure
    nodes = {parameter.node.label: parameter.node for parameter in procedure.parameters}
    found = active_nodes(procedure.body, [nodes["x"], nodes["y"]], procedure.results)
    labels = {node.label for node in found.values()}
    assert "x" in labels and "y" not in labels and "q" not in labels


def test_tests_positions_and_integers_are_constants() -> None:
    procedure = case_of("return np.where(y > 0, x, x * k)").procedure
    exprs = [e for stmt in statements(procedure.body) for e in expressions_of(stmt)]
    labels = {read.node.label for e in exprs for read in differentiable_reads(e)}
    assert labels == {"x"}


def test_a_closure_is_what_edges_reach() -> None:
    assert closure({1}, [(2, 3), (1, 2), (4, 1)]) == {1, 2, 3}
