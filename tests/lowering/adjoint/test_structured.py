"""Loops whose iterations are known before them: no jumps, and no `while` of active arrays."""

from __future__ import annotations

import pytest

from plusequals.dsl.elaborate.normalize import build
from plusequals.lowering.adjoint.activity import active_nodes
from plusequals.lowering.adjoint.kept import Names
from plusequals.lowering.adjoint.structured import structured
from plusequals.lowering.ir.assignments import Break, Continue, Procedure, Statement, While
from plusequals.lowering.ir.printer import print_statement
from plusequals.lowering.ir.walk import bodies, statements, writes

from .programs import JUMPS, WHILES, function_of, values_of

PROGRAMS = {**JUMPS, **WHILES}


def made(body: str) -> tuple[Procedure, set[int], tuple[Statement, ...]]:
    """Return a procedure, its active arrays, and its statements with known iterations."""
    match, _ = function_of(body, "numpy").matched(*values_of(3))
    procedure = build(match.specialization.typed.procedure)
    stored = [p.node for p in procedure.parameters]
    active = set(active_nodes(procedure.body, stored, procedure.results))
    known = structured(procedure.body, Names.above(procedure), active, stored)
    return procedure, active, known.body


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_loop_of_active_arrays_jumps(name: str) -> None:
    _, active, body = made(PROGRAMS[name])
    for stmt in statements(body):
        if active & {node.id for node in writes((stmt,))}:
            assert not isinstance(stmt, While)
            assert not any(isinstance(s, Break | Continue) for b in bodies(stmt) for s in b)


@pytest.mark.parametrize("name", WHILES)
def test_counting_writes_copies_alone(name: str) -> None:
    procedure, _, body = made(WHILES[name])
    given = {node.id for node in writes(procedure.body)}
    for stmt in body:
        if any(isinstance(s, While) for s in statements((stmt,))):
            assert not given & {node.id for node in writes((stmt,))}


def test_a_while_whose_body_does_not_jump_needs_no_flag() -> None:
    _, _, body = made(WHILES["a while"])
    text = "\n".join(map(print_statement, body))
    assert "going" not in text and "in 0..count" in text


def test_counting_runs_what_decides_alone() -> None:
    _, _, body = made("n = 0\nwhile n < 9:\n    x = np.sin(x)\n    n += 1\nreturn np.sum(x)")
    (loop,) = (stmt for stmt in body if isinstance(stmt, While))
    assert {node.dtype.kind for node in writes((loop,))} == {"i"}
