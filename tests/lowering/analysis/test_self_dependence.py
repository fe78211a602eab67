"""Random statements on one array: whatever way they are lowered, they read the state before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plusequals as pe
from plusequals.lowering.analysis import self_dependence
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.assignments import Assign, For
from plusequals.lowering.ir.expressions import Const, Dynamic, Expr, Index
from plusequals.lowering.ir.indexing import Range, const, floordiv, multiply, var
from plusequals.lowering.ir.interpret import run_procedure, run_program
from plusequals.lowering.lower import lower

from ...backends.codegen.programs import apply, assign, at, node, over, procedure, read, symbols

t, i, j, k = symbols("t i j k")
I64 = dtypes.int64
X = node(0, "x", (6, 6), I64)


def index(draw: Any, letters: str) -> Index:
    """Return an index into an axis of 6 that stays inside: t and k are below 2, i and j below 4."""
    letter = {s.name: s for s in (t, i, j, k)}[draw(st.sampled_from(letters))]
    match draw(st.sampled_from(["shift", "shift", "back", "sum", "constant", "gather"])):
        case "shift":
            return var(letter) + draw(st.integers(0, 2))
        case "back":
            return var(letter) * -1 + 3
        case "sum":
            return var(letter) + var(t)
        case "constant":
            return const(draw(st.integers(0, 5)))
        case _:
            cell = read(X, letter, draw(st.integers(0, 5)))
            return Dynamic(apply("mod", cell, Const(6, I64)))


def value(draw: Any, letters: str) -> Expr:
    cells = [read(X, index(draw, letters), index(draw, letters)) for _ in range(2)]
    return apply("add", *cells)


def statement(draw: Any) -> Assign:
    """Return a statement on `x`: any place, reads, predicate, operator and reduction."""
    test = apply("lt", value(draw, "tij"), Const(9, I64)) if draw(st.booleans()) else None
    free = over((i, 0, 4), (j, 0, draw(st.sampled_from([const(4), var(i) + 1]))), where=test)
    op = draw(st.sampled_from([None, "add", "max", "mul"]))
    reduced = op is not None and draw(st.booleans())
    ends = draw(st.booleans()) and reduced
    place = (index(draw, "tij"), index(draw, "tij"))
    return assign(
        "x[...] = ...", X, place, value(draw, "tijk" if reduced else "tij"), free, op,
        reduced=over((k, 0, 2)) if reduced else over(), initialize=ends,
    )  # fmt: skip


@settings(max_examples=100)
@given(st.data())
def test_any_statement_reads_the_state_before(data: Any) -> None:
    loop = For(t, const(0), const(2), 1, (statement(data.draw),))
    whole = procedure("any", [(X, True)], [loop])
    start = np.random.default_rng(3).integers(0, 9, (6, 6))
    first, second = start.copy(), start.copy()
    run_procedure(whole, [first], print)
    run_program(lower(whole), [second], print)
    np.testing.assert_array_equal(second, first)


RANGES = (Range(i, const(1), const(5)), Range(j, const(0), var(i)))


@pytest.mark.parametrize(
    ("left", "right", "result"),
    [
        (at(var(t) + 1, i), at(t, i), True),
        (at(t, i), at(t, i), False),
        (at(i, 0), at(i, 7), True),
        (at(0, i), at(0, 0), True),
        (at(0, j), at(0, 5), True),
        (at(0, j), at(0, 3), False),
        (at(0, var(i) * -1), at(0, i), True),
        (at(Dynamic(read(X, 0, 0)), i), at(t, i), False),
        (at(0, var(i) * 6 + var(j) * 3), at(0, var(i) * 6 + var(j) * 3 + 1), True),
        (at(0, var(t) + var(i) * 4), at(0, var(t) + multiply(var(k), var(j)) * 2 + 3), True),
        (at(0, var(t) + var(i) * 4), at(0, var(k) + var(j) * 4 + 3), False),
        (at(0, var(i) * 4), at(0, var(j) * 3 + 1), False),
        (at(0, var(i) * 4), at(0, var(j) * 2 + 4), False),
    ],
)
def test_cells_are_apart_where_one_axis_says_so(left: Any, right: Any, result: bool) -> None:
    assert self_dependence.never_overlap(left, right, RANGES) is result


@pytest.mark.parametrize(
    ("place", "result"),
    [
        (at(i, j), True),
        (at(j, var(i) * 2 + 1), True),
        (at(i, var(i) + var(j)), False),
        (at(i, i), False),
        (at(i, Dynamic(read(X, 0, j))), False),
    ],
)
def test_an_index_is_injective_where_each_letter_stands_alone(place: Any, result: bool) -> None:
    assert self_dependence.is_injective(place, RANGES) is result


@pytest.mark.parametrize(
    ("place", "result"),
    [
        (at(i, multiply(var(j), var(k))), True),
        (at(i, multiply(var(k), var(j)) * 2 + var(j) + var(k)), True),
        (at(i, multiply(var(t), var(j))), False),
        (at(i, multiply(var(j), var(k)) - var(j)), False),
        (at(i, multiply(var(j), var(k)) * -1), False),
        (at(i, multiply(var(j), var(k) - 1)), False),
        (at(i, var(j) + floordiv(var(j), var(k))), False),
    ],
)
def test_steps_of_a_loop_that_counts_from_one_keep_cells_apart(place: Any, result: bool) -> None:
    assert self_dependence.is_injective(place, RANGES, {k}) is result


def test_steps_of_a_loop_need_no_copy() -> None:
    text = "def f(x):\n    for k in range(2, len(x)):\n        x[k::k] -= x[k::k] // k\n"
    function = pe.cd_from_source(text, backend="numpy")
    phi = np.arange(30)
    assert "_old" not in str(function.explain(phi).loops)
    function(phi)
    counted = [sum(np.gcd(n, m) == 1 for m in range(1, n + 1)) for n in (7, 11, 29)]
    assert [phi[n] for n in (7, 11, 29)] == counted


def test_symbols_are_found_inside_indices_and_predicates() -> None:
    expr = apply("add", read(X, i, Dynamic(read(X, j, 0))), read(X, 0, var(k) + 1))
    assert self_dependence.symbols_of(expr) == {i, j, k}
