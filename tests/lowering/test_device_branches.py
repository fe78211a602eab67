"""Sides for devices of many threads: who takes which, and what is left of the other."""

from __future__ import annotations

import numpy as np

import plusequals as pe
from plusequals.lowering.device_branches import select_cpu_branches, select_gpu_branches
from plusequals.lowering.ir.assignments import Branch, Procedure
from plusequals.lowering.ir.interpret import run_procedure
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.lower import lower

X = np.array([3.0, np.nan, -1.0, 2.0, -1.0])


def of(text: str) -> Procedure:
    return pe.cd_from_source(f"def f(y, x):\n    {text}\n", {"np": np}).procedure(X.copy(), X)


def labels(procedure: Procedure) -> set[str]:
    return {node.label for node in procedure.locals}


def test_each_side_leaves_the_same() -> None:
    procedure = of("y[:] = np.sort(x)")
    found = []
    for one in (procedure, select_cpu_branches(procedure), select_gpu_branches(procedure)):
        held = [np.zeros(5), X.copy()]
        run_procedure(one, held, print)
        found.append(held[0].tobytes())
    assert found == [np.sort(X).tobytes()] * 3


def test_neither_side_is_left_with_what_the_other_uses() -> None:
    procedure = of("y[:] = np.sort(x)")
    few, many = select_cpu_branches(procedure), select_gpu_branches(procedure)
    assert "half1" in labels(procedure) and "half1" in labels(many)
    assert "half1" not in labels(few)
    assert labels(few) != labels(many)
    for one in (few, many):
        assert not any(isinstance(s, Branch) and s.many for s in statements(one.body))


def test_a_program_is_for_few_unless_it_is_asked_for() -> None:
    procedure = of("y[:] = np.sort(x)")
    assert {n.label for n in lower(procedure).locals} >= labels(select_cpu_branches(procedure))
    assert "half1" not in {n.label for n in lower(procedure).locals}
    assert "half1" in {n.label for n in lower(select_gpu_branches(procedure)).locals}


def test_what_has_one_side_stays_as_it_is() -> None:
    procedure = of("y[:] = x + 1")
    assert (
        select_cpu_branches(procedure) is procedure and select_gpu_branches(procedure) is procedure
    )
