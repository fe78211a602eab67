"""What passes without reasons of their own did is seen from outside, and said of the right line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plusequals.base.diagnostic import NOWHERE
from plusequals.lowering.ir.decision import Decision
from plusequals.lowering.passes.inferred_decisions import (
    NamingReason,
    ParallelReason,
    RemovalReason,
    first_writes,
    removed_stores,
    with_span,
)
from plusequals.lowering.pipeline import PASSES, optimize
from plusequals.lowering.target import HOST, Target

from ..shown import lowered

XY = {"y": "f32[8]", "x": "f32[8]"}
CASES = {
    "eliminate_dead_code": (
        "t[i] = exp(x[i])\ny[i] = x[i] + 1",
        ["2 `t` is not computed: " + str(RemovalReason.UNUSED)],
    ),
    "cse": (
        "y[i] = (x[i] + 1) * (x[i] + 1)",
        ["2 `x[i] + 1.0` is computed once, as `total`: " + str(NamingReason.SHARED)],
    ),
    "hoist": (
        "y[i] = 1.0\ny[i] = y[i] * sqrt(x[0])",
        ["3 `sqrt(x[0])` is computed before the loop, as `sqrt_x`: " + str(NamingReason.HOISTED)],
    ),
    "search_to_gather": (
        "y[i] = sum[c](where(c == 3, x[c], 0.0))",
        ["2 the loop is replaced by a lookup: " + str(RemovalReason.SEARCH)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_pass_is_told_of(name: str) -> None:
    body, expected = CASES[name]
    program = lowered(body, **XY)
    step = next(step for step in PASSES if step.name == name)
    after, decisions = step.run(program, HOST)
    spans = first_writes(after) | first_writes(program)
    assert [f"{with_span(one, spans).span.line} {one.sentence()}" for one in decisions] == expected
    assert step.run(after, HOST) == (after, ())


def test_a_parallel_loop_is_told_of() -> None:
    program = lowered("y[i] = x[i] + 1", **XY)
    eager = Target(threads=2, parallel_from=0, schedule=True)
    made = optimize(program, eager)[1].decisions[-1]
    assert (made.span.line, made.reason) == (2, ParallelReason.INDEPENDENT)
    assert made.sentence().startswith(
        "the iterations of the loop over `i` run on several threads: "
    )


def test_a_store_that_is_gone_is_told_of_where_its_array_is_not() -> None:
    program = lowered("y[i] = 0.0\ny[i] = x[i] + 1", **XY)
    (kernel,) = program.kernels
    first = next(n for n, stmt in enumerate(kernel.body) if hasattr(stmt, "symbol"))
    less = replace(kernel, body=kernel.body[:first] + kernel.body[first + 1 :])
    infer = removed_stores(RemovalReason.OVERWRITTEN)
    (made,) = infer(program, replace(program, kernels=(less,)))
    assert made.sentence() == f"this value of `y` is not stored: {RemovalReason.OVERWRITTEN}"
    assert made.span.line == 2


def test_places_that_are_given_stay() -> None:
    program = lowered("y[i] = x[i] + 1", **XY)
    spans = first_writes(program)
    y = program.parameters[0].node
    made = Decision("removed", RemovalReason.UNUSED, y)
    placed = with_span(made, spans)
    assert placed.span.line == 2
    assert with_span(placed, {}) is placed
    assert with_span(Decision("fused", RemovalReason.UNUSED), spans).span is NOWHERE
    assert with_span(made, {}).span is NOWHERE


def test_the_pipeline_tells_all_with_places() -> None:
    program = lowered(
        "t[i] = exp(x[i])\nu[i] = x[i] * 2\ny[i] = u[i] * sqrt(x[0])\ny[i] += u[i]", **XY
    )
    _, placement = optimize(program, HOST)
    told = {made.outcome: made for made in placement.decisions}
    assert told.keys() >= {"removed", "virtual", "hoisted", "fused"}
    assert all(made.span is not NOWHERE for made in placement.decisions)
    nodes = {node.label: node for node in program.locals}
    assert placement[nodes["t"]].where == "removed"
    assert str(placement[nodes["t"]]) == str(RemovalReason.UNUSED)
