"""Blocks with derivatives of the user's in the assignments that are differentiated."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd
from plusequals.dsl.elaborate.normalize import build
from plusequals.dsl.specialize.specialization import SpecializationCache
from plusequals.lowering.adjoint.derivative_rules import (
    Operand,
    applied,
    differentiated,
    influences,
    outer_reads,
    outside_rules,
    require_closed,
    without_rules,
)
from plusequals.lowering.adjoint.kept import Names
from plusequals.lowering.adjoint.rules import NotDifferentiable
from plusequals.lowering.ir.assignments import Assign, Block, Procedure
from plusequals.lowering.ir.walk import reads, statements, writes

SCALE = np.array([2.0, 3.0, 4.0])


@cd
def scaled(x: Any) -> Any:
    t = np.sort(x)
    y = t * x
    return y


@scaled.vjp_rule
def scaled_vjp(x: Any, y: Any, d_y: Any) -> Any:
    d_y *= SCALE
    return d_y * x + y


@cd
def loss(x: Any) -> Any:
    return np.sum(scaled(x * x))


@pytest.fixture
def procedure() -> Procedure:
    """The assignments of `loss` with the rule of `scaled`."""
    definition = loss.definition
    cache = SpecializationCache(definition.surface, definition.around.lookup, None)
    cache.derives = ("cotangents",)
    return build(cache._elaborate({"x": np.ones(3)}, {}, frozenset(), {})[0].procedure)


def ruled(procedure: Procedure) -> Block:
    """Return the block with a rule."""
    found = [s for s in statements(procedure.body) if isinstance(s, Block) and s.rule]
    assert len(found) == 1
    return found[0]


def test_a_block_computes_its_outputs_from_its_inputs(procedure: Procedure) -> None:
    block = ruled(procedure)
    assert block.rule is not None and block.rule.tangents is None
    assert [node.label for node in block.rule.inputs] == ["x"]
    assert [node.label for node in block.rule.outputs] == ["y"]
    assert set(block.rule.outputs) <= set(writes(block.body))
    assert list(influences(block, block.rule)) == list(block.rule.inputs)
    assert {*block.rule.inputs, *block.rule.outputs} <= set(reads([block]))


def test_what_is_inside_is_not_differentiated(procedure: Procedure) -> None:
    block = ruled(procedure)
    inside = {id(stmt) for stmt in statements(block.body)}
    outside = {id(stmt) for stmt in differentiated(procedure.body)}
    assert inside and not inside & outside and id(block) in outside

    def emptied(body: tuple[Any, ...]) -> tuple[Any, ...]:
        assert not any(id(stmt) in inside for stmt in statements(body))
        return body

    same = outside_rules(procedure.body, emptied)
    assert [type(s) for s in statements(same)] == [type(s) for s in statements(procedure.body)]


def test_rules_leave_with_what_they_alone_need(procedure: Procedure) -> None:
    left = without_rules(procedure)
    assert not any(isinstance(s, Block) and s.rule for s in statements(left.body))
    assert without_rules(left) is left


def test_what_a_rule_writes_is_copied_and_its_locals_are_new(procedure: Procedure) -> None:
    rule = ruled(procedure).rule
    assert rule is not None and rule.cotangents is not None
    assert [n.label.split(":")[-1] for n in outer_reads(rule.cotangents)] == ["SCALE"]
    names = Names.above(procedure)
    operands = [Operand(node) for node in (*rule.inputs, *rule.outputs, *rule.outputs)]
    twice = [applied(rule.cotangents, operands, names, {}) for _ in range(2)]
    (first, (one,)), (second, (other,)) = twice
    assert one is not None and other is not None and one != other
    assert not set(writes(first)) & {*writes(second), *rule.inputs, *rule.outputs}
    assert isinstance(first[0], Assign) and set(reads(first[:1])) == set(rule.outputs)


def test_other_arrays_that_matter_are_refused(procedure: Procedure) -> None:
    block = ruled(procedure)
    require_closed(procedure.body, {node.id for node in reads(procedure.body)})
    inner = next(n for n in writes(block.body) if block.rule and n not in block.rule.outputs)
    outside = next(s for s in procedure.body if isinstance(s, Assign))
    names = Names.above(procedure)
    with pytest.raises(NotDifferentiable, match="which `scaled` writes besides its results"):
        require_closed((*procedure.body, names.copied(outside.target.node, inner)), ())


def test_the_derivative_is_that_of_the_rule() -> None:
    x = np.array([1.0, 2.0, 3.0])
    s = x * x
    d_s = SCALE * s + np.sort(s) * s
    assert np.allclose(pe.gradient(loss, wrt="x")(x), 2 * x * d_s)


def test_arrays_of_objects_that_the_function_reads_are_refused() -> None:
    @cd
    def weighted(model: Any, x: Any) -> Any:
        y = x * model.w
        return y

    weighted.vjp_rule(lambda d_y: d_y, wrt="x")

    @cd
    def total(model: Any, x: Any) -> Any:
        return np.sum(weighted(model, x))

    model = SimpleNamespace(w=np.ones(3))
    assert np.array_equal(pe.gradient(total, wrt="x")(model, np.ones(3)), np.ones(3))
    with pytest.raises(TypeError, match="CD0480.*which `weighted` reads besides its arguments"):
        pe.gradient(total, wrt="model.w")(model, np.ones(3))
