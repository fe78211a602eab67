"""Which arrays have cotangents."""

from __future__ import annotations

import pytest

from plusequals.lowering.adjoint.activity import active_nodes, differentiable_reads, refuse_orders
from plusequals.lowering.adjoint.rules import NotDifferentiable
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


def test_orders_of_inputs_are_refused() -> None:
    with pytest.raises(NotDifferentiable, match="a sort"):
        case_of("return np.sort(x)")
    procedure = case_of("return x * np.sort(np.arange(6.0)[::-1])").procedure
    refuse_orders(procedure.body, [procedure.parameters[0].node])
