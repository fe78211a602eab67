"""Loops over lanes that are vectors, and arrays of lanes that are variables of vectors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plusequals.backends.codegen.vector_variables import (
    VectorPlan,
    is_unrolled,
    plan_vectors,
    variable_count,
    vector_width,
)
from plusequals.lowering.ir.assignments import Parameter
from plusequals.lowering.ir.expressions import Cast, Expr
from plusequals.lowering.ir.indexing import const, var
from plusequals.lowering.ir.loops import (
    Comment,
    Fill,
    For,
    If,
    Kernel,
    Program,
    Stmt,
    Store,
    Update,
    While,
)
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.ops import OPS

from ...lowering.ir.build import at, bool_, f32, f64, num, read, symbols
from ...lowering.ir.build import node as array

lane, i, j, n = symbols("lane i j n")
X, W = array(0, "x", 96), array(1, "w", 96, dtype=f64)
SUMS = Node(2, "sums", (const(16),), f64, purpose="lanes")
TILE = Node(3, "tile", (const(3), const(16)), f64, purpose="tile")


def over(stmt: Stmt) -> For:
    return For(lane, const(0), const(16), 1, (stmt,), "vector")


def program(*body: Stmt) -> Program:
    parameters = Parameter(X, False), Parameter(W, True)
    return Program("f", parameters, (SUMS,), (), (Kernel("f", body),))


def wide() -> Expr:
    return Cast(read(X, lane), f64)


def test_the_widest_type_decides_how_many_lanes_a_vector_has() -> None:
    narrow, wider = over(Store(at(X, lane), read(X, lane))), over(Store(at(W, lane), wide()))
    assert (vector_width(narrow, 256), vector_width(wider, 256), vector_width(narrow, 1024)) == (
        8,
        4,
        16,
    )


def test_an_array_that_is_used_otherwise_too_is_no_variable() -> None:
    body = (
        over(Store(at(SUMS, lane), num(-0.0, f64))),
        over(Update(at(SUMS, lane), OPS["add"], wide())),
        over(Store(at(W, lane), read(SUMS, lane))),
    )
    assert plan_vectors(program(*body), 256).held == {SUMS.id: 4}
    assert plan_vectors(program(*body), 0) == VectorPlan(0)
    for more in (Store(at(W, 0), read(SUMS, 3)), over(Store(at(W, lane), read(SUMS, 3)))):
        assert plan_vectors(program(*body, more), 256).held == {}


COPY = Store(at(X, lane), read(X, lane))


@pytest.mark.parametrize(
    ("changes", "lanes"),
    [
        ({}, 8),
        ({"hi": const(24)}, 8),
        ({"hi": const(4)}, 4),
        ({"hi": const(2)}, 2),
        ({"hi": const(1)}, 0),
        ({"hi": const(0)}, 0),
        ({"hi": const(6)}, 0),
        ({"hi": const(3)}, 0),
        ({"hi": const(12)}, 0),
        ({"hi": var(n)}, 0),
        ({"lo": const(8)}, 0),
        ({"step": 2}, 0),
        ({"kind": "serial"}, 0),
        ({"body": (Comment("nothing"),)}, 0),
        ({"body": (COPY, Fill(X, num(0.0)))}, 0),
        ({"body": (Comment("a copy"), COPY)}, 8),
    ],
)
def test_a_power_of_two_that_divides_the_number_of_lanes(
    changes: dict[str, Any], lanes: int
) -> None:
    assert vector_width(replace(over(COPY), **changes), 256) == lanes


@pytest.mark.parametrize(
    ("changes", "unrolled"),
    [
        ({}, True),
        ({"kind": "serial"}, False),
        ({"lo": const(3), "hi": const(35)}, True),
        ({"lo": const(3), "hi": const(36)}, False),
        ({"hi": const(0)}, True),
        ({"step": 2}, False),
        ({"lo": var(n), "hi": var(n) + 2}, False),
        ({"hi": var(n)}, False),
    ],
)
def test_loops_of_few_iterations_are_written_out(changes: dict[str, Any], unrolled: bool) -> None:
    loop = For(i, const(0), const(4), 1, (), "unrolled")
    assert is_unrolled(replace(loop, **changes)) is unrolled


ZERO, ADD = (
    over(Store(at(SUMS, lane), num(0.0, f64))),
    over(Update(at(SUMS, lane), OPS["add"], wide())),
)
DONE = over(Store(at(W, lane), read(SUMS, lane)))


def around(*body: Stmt, **changes: Any) -> For:
    return replace(For(i, const(0), const(3), 1, body), **changes)


def home_of(plan: VectorPlan) -> list[int]:
    """The lists in which `sums` is declared, by their `id`s."""
    return [place for place, nodes in plan.homes.items() if SUMS in nodes]


def test_a_variable_is_declared_in_the_innermost_list_with_all_its_uses() -> None:
    loop = around(ZERO, Comment("then"), around(ADD), DONE)
    for outer in (loop, replace(loop, kind="parallel"), around(loop, kind="parallel")):
        plan = plan_vectors(program(Comment("here"), outer), 256)
        assert plan.held == {SUMS.id: 4} and plan.homes == {id(loop.body): (SUMS,)}
    apart = program(ZERO, around(ADD), DONE)
    assert home_of(plan_vectors(apart, 256)) == [id(apart.kernels[0].body)]


@pytest.mark.parametrize("kind", ["While", "unrolled"])
def test_lists_that_are_not_written_as_one_declare_nothing(kind: str) -> None:
    inside = (ZERO, ADD, DONE)
    loop: Stmt = around(*inside, kind="unrolled")
    if kind == "While":
        loop = While(inside, num(True, bool_), ())
    test = If(num(True, bool_), (loop,))
    for where in (test, around(test, kind="serial")):
        plan = plan_vectors(program(where), 256)
        assert plan.homes == {id(test.then): (SUMS,)}


def test_what_two_parallel_loops_use_is_an_array() -> None:
    plan = plan_vectors(program(around(ZERO, kind="parallel"), around(DONE, kind="parallel")), 256)
    assert plan.held == {} and plan.homes == {}


def rows(at_row: Any, kind: str = "unrolled", hi: Any = 3, lanes: int = 16) -> Program:
    store = replace(over(Store(at(TILE, at_row, lane), num(0.0, f64))), hi=const(lanes))
    return program(For(i, const(0), const(hi), 1, (store,), kind))  # type: ignore[arg-type]


def test_rows_of_a_tile_are_variables_at_fixed_places() -> None:
    assert plan_vectors(rows(i), 256).held == {TILE.id: 4}
    assert plan_vectors(rows(2), 256).held == {TILE.id: 4}
    assert plan_vectors(rows(i, "serial"), 256).held == {}
    assert plan_vectors(rows(j), 256).held == {}
    assert plan_vectors(rows(i, hi=33), 256).held == {}
    assert plan_vectors(rows(i, lanes=8), 256).held == {}
    fill = Fill(TILE, num(0.0, f64))
    for whole in (fill, over(fill), around(fill)):
        filled = program(whole, *rows(2).kernels[0].body)
        assert plan_vectors(filled, 256).held == {}
    assert plan_vectors(rows(read(W, 0)), 256).held == {}
    beside = Store(at(TILE, 0, 1), num(0.0, f64))
    assert plan_vectors(program(beside), 256).held == {}
    assert plan_vectors(program(over(Store(at(TILE, lane, 1), num(0.0, f64)))), 256).held == {}
    assert (variable_count(TILE, 4), variable_count(SUMS, 4), variable_count(TILE, 16)) == (
        12,
        4,
        3,
    )


def test_uses_of_different_widths_need_an_array() -> None:
    narrow = Node(4, "narrow", (const(16),), f64, purpose="lanes")
    store = Store(at(narrow, lane), num(0.0, f64))
    single = Store(at(X, lane), num(0.0))
    assert plan_vectors(program(over(store), over(store)), 256).held == {narrow.id: 4}
    short = replace(narrow, dtype=f32)
    wide_too = replace(over(Store(at(W, lane), num(0.0, f64))), body=(
        Store(at(short, lane), num(0.0)), Store(at(W, lane), num(0.0, f64))))  # fmt: skip
    thin = over(Store(at(short, lane), num(0.0)))
    assert plan_vectors(program(thin), 256).held == {short.id: 8}
    assert plan_vectors(program(wide_too), 256).held == {short.id: 4}
    assert plan_vectors(program(thin, wide_too), 256).held == {}
    mixed = replace(over(store), body=(store, single))
    assert plan_vectors(program(mixed), 512).held == {narrow.id: 8}
    plain = Node(4, "plain", (const(16),), f64)
    assert plan_vectors(program(over(Store(at(plain, lane), num(0.0, f64)))), 256).held == {}
