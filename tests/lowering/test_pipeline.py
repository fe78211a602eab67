"""The pipeline shows every stage, and says of every node where it lives and why."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdValueError
from plusequals.lowering.ir import assignments as ir1
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.expressions import Const
from plusequals.lowering.ir.indexing import const, var
from plusequals.lowering.ir.loops import For
from plusequals.lowering.ir.walk import permuted_nodes
from plusequals.lowering.lower import lower
from plusequals.lowering.pipeline import PASSES, optimize
from plusequals.lowering.placement import place_nodes
from plusequals.lowering.target import HOST

from ..backends.codegen.programs import node, procedure, softmax, symbols


def test_the_observer_sees_every_stage_and_the_verifier_every_program() -> None:
    seen: list[str] = []
    checked: list[object] = []
    program = lower(softmax())
    final, _ = optimize(program, HOST, lambda name, _: seen.append(name), checked.append)
    assert seen == ["lower", *(step.name for step in PASSES)]
    assert checked[0] is program
    assert checked[-1] is final
    assert all(one is not other for one, other in pairwise(checked)), "what changed"


def test_one_may_stop_after_any_pass() -> None:
    names = ["lower", *(step.name for step in PASSES)]
    assert len(set(names)) == len(names)
    for name in names:
        seen: list[str] = []
        optimize(lower(softmax()), HOST, lambda stage, _, seen=seen: seen.append(stage),
                 stop_after=name)  # fmt: skip
        assert seen == names[: names.index(name) + 1]
    with pytest.raises(CdValueError, match="did you mean `simplify`") as caught:
        optimize(lower(softmax()), HOST, stop_after="simplfy")
    assert caught.value.code == "CD0823"


def test_every_node_has_a_place_and_a_reason() -> None:
    k, n = symbols("k n")
    x, y = node(0, "x", (4,)), node(1, "y", (4,))
    s, u, w = node(2, "s", ()), node(3, "u", ()), node(4, "w", (var(n),))
    swap = ir1.For(k, const(0), const(2), 1, (ir1.Permute((y, x), (x, y)),))
    nested = ir1.While((), Const(False, dtypes.bool_), (ir1.Permute((u, s), (s, u)),))
    program = lower(procedure("f", [(x, True)], [swap], [s, u, w], [y]))
    placement = place_nodes(program)
    where = [placement[one].where for one in (x, y, s, u, w)]
    assert where == ["parameter", "result", "register", "register", "runtime"]
    assert all(placement[one].why for one in (x, y, s, u, w))
    assert permuted_nodes(program) == {x.id, y.id}
    moved = lower(procedure("g", [], [nested], [s, u]))
    assert [place_nodes(moved)[one].where for one in (s, u)] == ["scratch", "scratch"]


def test_zeros_that_nothing_writes_are_no_result_of_loops() -> None:
    text = "def f(y):\n    t: f64[4]\n    for k in range(4):\n        y[k] = t[k] + t[3 - k]\n"
    before = lower(pe.cd_from_source(text).procedure(np.zeros(4)))
    (node,) = before.locals
    assert place_nodes(before)[node].why == "nothing writes it: only its zeros are read"
    for program, placement in (optimize(before, HOST), optimize(before, HOST, stop_after="lower")):
        assert not any(
            "after its loops" in placement[one].why for one in program.locals if one.id == node.id
        )


def test_the_short_pipeline_has_few_loops_more_than_the_whole_one() -> None:
    lines = [f"    a{k} = x * {k}.5 + a{k - 1}" for k in range(1, 40)]
    text = "\n".join(["def f(x):", "    a0 = x + 1", *lines, "    return a39"])
    function = pe.cd_from_source(text)
    program = lower(function.procedure(np.zeros(5)))
    whole, _ = optimize(program, HOST)
    short, _ = optimize(program, replace(HOST, short=True))
    loops, more = (
        sum(isinstance(stmt, For) for stmt in one.kernels[0].body) for one in (whole, short)
    )
    assert loops == 1 and more < 5
