"""Ranks beside which their origins are moved, and those for which no origins are known."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.lowering.adjoint.kept import Names
from plusequals.lowering.adjoint.origins import with_origins
from plusequals.lowering.adjoint.rules import NotDifferentiable
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.assignments import Access, Assign, For, Parameter, Procedure, Statement
from plusequals.lowering.ir.expressions import Apply, Const, Domain, Expr, Read
from plusequals.lowering.ir.indexing import Affine, Range, Symbol, const, var
from plusequals.lowering.ir.interpret import run_procedure
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.ops import OPS
from plusequals.lowering.ir.printer import print_statement
from plusequals.lowering.ir.verify import verify_procedure
from plusequals.lowering.ir.walk import direct_effects

from .test_adjoint import case_of

I, T = Symbol("i", 1), Symbol("t", 2)
X, Y = (Node(n, label, (const(4),), dtypes.float64) for n, label in enumerate("xy", 1))
R, Q = (Node(n, label, (const(4),), dtypes.int64) for n, label in enumerate("rq", 3))
HERE = Domain((Range(I, const(0), const(4)),))


def rank(value: Expr) -> Expr:
    return Apply(OPS["rank"], (value,), dtypes.int64)


def number(value: Expr) -> Expr:
    return Apply(OPS["of_rank"], (value,), dtypes.float64)


def at(node: Node, index: Affine = var(I)) -> Read:
    return Read(node, (index,))


def put(target: Read, value: Expr, over: Domain = HERE) -> Assign:
    return Assign(Access(target.node, target.index), None, False, value, over)


def procedure_of(*body: Statement) -> Procedure:
    return Procedure("f", (Parameter(X, False), Parameter(Y, True)), (R, Q), (), body)


def test_numbers_are_those_that_ranks_map_back_to() -> None:
    least = Apply(OPS["min"], (at(R), at(R, const(3) - var(I))), dtypes.int64)
    body = (put(at(R), rank(at(X))), put(at(Q), least), put(at(Y), number(at(Q))))
    given = procedure_of(*body)
    names = Names.above(given)
    made = with_origins(given.body, names, (X,))
    changed = Procedure("f", given.parameters, (*given.locals, *names.nodes), (), made)
    verify_procedure(changed)
    x = np.array([3.0, -0.0, 0.0, 2.0])
    found, expected = np.ones(4), np.ones(4)
    run_procedure(changed, (x, found), lambda text: None)
    run_procedure(given, (x, expected), lambda text: None)
    assert found.tobytes() == expected.tobytes()
    assert any(read.node.label == "numbers" for read in _reads(made[-1]))


def _reads(stmt: Statement) -> list[Read]:
    return list(direct_effects(stmt).all_reads)


def test_elements_that_are_never_set_come_from_no_number() -> None:
    first = put(at(R, const(1)), rank(at(X, const(2))), Domain())
    given = procedure_of(first, put(at(Y), number(at(R))))
    names = Names.above(given)
    made = with_origins(given.body, names, (X,))
    changed = Procedure("f", given.parameters, (*given.locals, *names.nodes), (), made)
    found = np.ones(4)
    run_procedure(changed, (np.full(4, 7.0), found), lambda text: None)
    assert found.tolist() == [0.0, 7.0, 0.0, 0.0]


MIXED = {
    "other iterations": (
        For(T, const(0), const(4), 1, (put(at(R, var(T)), rank(at(X, var(T))), Domain()),)),
        put(at(Y), number(at(R))),
    ),
    "several statements": (
        put(at(R), rank(at(X))),
        put(at(R, const(1)), rank(at(Y, const(0))), Domain()),
        put(at(Y), number(at(R))),
    ),
    "computed with": (
        put(at(R), rank(at(X))),
        put(at(Q), Apply(OPS["add"], (at(R), Const(1, dtypes.int64)), dtypes.int64)),
        put(at(Y), number(at(Q))),
    ),
}


@pytest.mark.parametrize("reason", MIXED)
def test_ranks_of_unknown_origin_are_refused(reason: str) -> None:
    given = procedure_of(*MIXED[reason])
    with pytest.raises(NotDifferentiable, match=reason):
        with_origins(given.body, Names.above(given), (X, Y))


def test_a_sort_of_constants_stays() -> None:
    procedure = case_of("return x * np.sort(np.arange(6.0)[::-1])").procedure
    made = with_origins(procedure.body, Names.above(procedure), (procedure.parameters[0].node,))
    assert not any("numbers" in print_statement(stmt) for stmt in made)
