"""Loops over lanes that are vectors, and arrays of lanes that are variables of vectors."""

from __future__ import annotations

from plusequals.backends.emit.held import plan_of, width_of
from plusequals.lowering.ir.assignments import Parameter
from plusequals.lowering.ir.expressions import Cast, Expr
from plusequals.lowering.ir.indexing import const
from plusequals.lowering.ir.loops import For, Kernel, Program, Stmt, Store, Update
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.ops import OPS

from ...lowering.ir.build import at, f64, num, read, symbols
from ...lowering.ir.build import node as array

(lane,) = symbols("lane")
X, W = array(0, "x", 96), array(1, "w", 96, dtype=f64)
SUMS = Node(2, "sums", (const(16),), f64, purpose="lanes")


def over(stmt: Stmt) -> For:
    return For(lane, const(0), const(16), 1, (stmt,), "vector")


def program(*body: Stmt) -> Program:
    parameters = Parameter(X, False), Parameter(W, True)
    return Program("f", parameters, (SUMS,), (), (Kernel("f", body),))


def wide() -> Expr:
    return Cast(read(X, lane), f64)


def test_the_widest_type_decides_how_many_lanes_a_vector_has() -> None:
    narrow, wider = over(Store(at(X, lane), read(X, lane))), over(Store(at(W, lane), wide()))
    assert (width_of(narrow, 256), width_of(wider, 256), width_of(narrow, 1024)) == (8, 4, 16)


def test_an_array_that_is_used_otherwise_too_is_no_variable() -> None:
    body = (
        over(Store(at(SUMS, lane), num(-0.0, f64))),
        over(Update(at(SUMS, lane), OPS["add"], wide())),
        over(Store(at(W, lane), read(SUMS, lane))),
    )
    assert plan_of(program(*body), 256).held == {SUMS.id: 4}
    assert plan_of(program(*body), 0).held == {}
    for more in (Store(at(W, 0), read(SUMS, 3)), over(Store(at(W, lane), read(SUMS, 3)))):
        assert plan_of(program(*body, more), 256).held == {}
