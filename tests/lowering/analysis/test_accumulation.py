"""Nests that accumulate: their parts, and what is none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.lowering.analysis.accumulation import Accumulation, find_accumulation
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.fresh import fresh_for
from plusequals.lowering.ir.loops import Comment, For, If, Program, Stmt
from plusequals.lowering.ir.printer import print_expr, print_statement
from plusequals.lowering.passes.contract_arrays import contract_arrays
from plusequals.lowering.passes.simplify import simplify

from ..shown import lowered

ARRAYS = {
    "y": "f32[8, 9]", "a": "f32[8, 5]", "b": "f32[5, 9]", "v": "f32[9]", "n": "i64[8, 9]",
    "k": "i64[8, 5]",
}  # fmt: skip


def made(text: str) -> Program:
    return lowered(text, **{name: spec for name, spec in ARRAYS.items() if f"{name}[" in text})


def parts(program: Program, reorders: bool = False) -> Accumulation | None:
    nests = [stmt for stmt in program.kernels[0].body if isinstance(stmt, For)]
    assert len(nests) == 1
    return find_accumulation(nests[0], fresh_for(program), reorders)


def test_an_element_becomes_a_scalar_that_is_stored_at_the_end() -> None:
    found = parts(made("y[i, j] += a[i, k] * b[k, j]"))
    assert found is not None
    assert [loop.symbol.name for loop in (*found.outer_loops, *found.depth)] == ["i", "j", "k"]
    assert found.element is not None
    assert (found.element.node.label, found.acc.label, found.acc.rank) == ("y", "y_sum", 0)
    assert [stmt.access.node for stmt in found.start] == [found.acc]
    assert len(found.rest) == 1


def test_a_scalar_stays_itself() -> None:
    found = parts(contract_arrays(made("y[i, j] = sum(a[i, k] * b[k, j])")).program)
    assert found is not None
    assert found.element is None
    assert print_expr(found.start[0].value) == "0.0"
    assert found.update.access.node == found.acc
    assert (found.again, found.update.over) == ((), ())  # its order is decided


@pytest.mark.parametrize(
    ("body", "is_one"),
    [
        ("y[i, j] = sum(a[i, k] * b[k, j])", False),
        ("y[i, j] = max(a[i, k] * b[k, j])", True),
        ("y[i, j] += a[i, k] * b[k, j]", False),
        (
            "for i in range(8):\n    for j in range(9):\n        for k in range(5):\n"
            "            y[i, j] += a[i, k] * b[k, j]",
            True,
        ),
    ],
)
def test_sums_whose_order_is_free_are_left_where_another_pass_orders_them(
    body: str, is_one: bool
) -> None:
    program = contract_arrays(made(body)).program
    assert parts(program) is not None
    assert (parts(program, reorders=True) is not None) is is_one


AROUND = """for i in range(8):
    for j in range(9):
        {}
        for k in range(5):
            y[i, j] += a[i, k] * b[k, j] {}"""
ROWS = """for i in range(8):
    {}
    for j in range(9):
        for k in range(5):
            y[i, j] += a[i, k] * b[k, j]"""
PLAIN = ROWS.replace("    {}\n", "")
NONE = {
    "no floats": "n[i, j] = sum(k[i, l] + j)",
    "no terms": "y[i, j] = v[j]",
    "a term of the sum so far": (
        "for i in range(8):\n    for j in range(9):\n        for k in range(5):\n"
        "            y[i, j] += y[i, j] * b[k, j]"
    ),
    "a guard": "y[i, j] = sum[k, k != i](a[i, k] * b[k, j])",
    "a name with two values": AROUND.format("t = v[j]\n        q = t\n        t = q * 2", "* t"),
    "a name twice": AROUND.format("t = v[j]\n        t = 2 * v[j]", "* t"),
    "a test before": AROUND.format("if v[j] > 0:\n            y[i, j] = 0", ""),
    "a term before": AROUND.format("y[i, j] += 1", ""),
    "a value before made of the element": AROUND.format("y[i, j] = y[i, j] * 2", ""),
    "a name of what the element was": AROUND.format("t = y[i, j]", "")
    + "\n        y[i, j] = y[i, j] * t",
    "a name of what the row was": ROWS.format("p = y[i, 0] * 2") + "\n        y[i, j] += p",
    "a name of the last term": PLAIN.replace("            y", "            t = v[k]\n            y")
    + "\n        y[i, j] = y[i, j] * t",
    "a row before": ROWS.format("v[i] = 2"),
    "a test of rows": ROWS.format("if a[i, 0] > 1:\n        v[i] = 2"),
    "left early": PLAIN + "\n        if y[i, j] > 9:\n            break",
    "rows from the end": PLAIN.replace("range(8)", "range(7, -1, -1)"),
    "terms from the end": PLAIN.replace("range(5)", "range(4, -1, -1)"),
    "each second row": PLAIN.replace("range(8)", "range(0, 8, 2)"),
    "an element for each term": (
        "for j in range(9):\n    for k in range(5):\n        y[k, j] += a[0, k] * b[k, j]"
    ),
}


@pytest.mark.parametrize("name", NONE)
def test_what_is_none(name: str) -> None:
    assert parts(made(NONE[name])) is None


def test_what_a_name_holds_of_an_earlier_iteration_is_no_part_of_a_term() -> None:
    text = """def f(x, n):
    s = 0.0
    for r in range(40):
        for c in range(50):
            s += x[r, c]
            k = np.int64(np.isnan(s))
            n[0] += k
    return s
"""
    x, n = np.arange(2000.0).reshape(40, 50), np.zeros(1, np.int64)
    x[39, 46] = np.nan
    assert np.isnan(pe.cd_from_source(text, {"np": np})(x, n)) and n[0] == 4


NAMES = """for i in range(8):
    p = a[i, 0] * 2
    q = p + 1
    for j in range(9):
        r = v[j] * 3
        for k in range(5):
            y[i, j] += q * r * b[k, j]
        y[i, j] = y[i, j] + q"""


def test_the_definitions_that_a_body_uses_are_in_order_and_split_by_what_they_depend_on() -> None:
    found = parts(made(NAMES))
    assert found is not None
    assert [loop.symbol.name for loop in (*found.outer_loops, *found.depth)] == ["i", "j", "k"]
    assert [name.access.node.label for name in found.names] == ["p", "q"]
    i = found.outer_loops[0].symbol
    assert [print_statement(s) for s in found.rest if not isinstance(s, Comment)] == [
        "y[i, j] = y_sum", "y[i, j] = y[i, j] + q"
    ]  # fmt: skip
    outer, inner = found.named(found.rest, frozenset({i}))
    assert (outer, [name.access.node.label for name in inner]) == ((), ["p", "q"])
    outer, inner = found.named(found.rest, frozenset({found.outer_loops[1].symbol}))
    assert ([name.access.node.label for name in outer], inner) == (["p", "q"], ())
    outer, inner = found.named(found.rest, frozenset())
    assert ([name.access.node.label for name in outer], inner) == (["p", "q"], ())
    assert found.named((), frozenset({i})) == ((), ())


def test_a_test_of_the_sum_may_follow_the_terms() -> None:
    found = parts(made(PLAIN + "\n        if y[i, j] > 9:\n            y[i, j] = 9"))
    assert found is not None
    assert isinstance(found.rest[-1], If)


@pytest.mark.parametrize("level", range(3))
@pytest.mark.parametrize("body", [(), (Comment("nothing"),)])
def test_loops_without_statements_are_none(body: tuple[Stmt, ...], level: int) -> None:
    program = made(PLAIN)

    def emptied(loop: For, depth: int) -> For:
        if depth == 0:
            return replace(loop, body=body)
        (inner,) = (stmt for stmt in loop.body if isinstance(stmt, For))
        return replace(loop, body=(emptied(inner, depth - 1),))

    (nest,) = (stmt for stmt in program.kernels[0].body if isinstance(stmt, For))
    assert find_accumulation(emptied(nest, level), fresh_for(program)) is None


def test_an_element_that_data_choose_is_none() -> None:
    types = {"z": "f32[256, 9]", "u": "u8[8]", "a": "f32[8, 5]", "b": "f32[5, 9]"}
    program = simplify(lowered("z[u[i], j] += a[i, k] * b[k, j]", **types))
    assert parts(program) is None


def test_sums_of_whole_numbers_are_taken_where_their_type_is_asked_for() -> None:
    program = made(NONE["no floats"])
    (nest,) = (stmt for stmt in program.kernels[0].body if isinstance(stmt, For))
    found = find_accumulation(nest, fresh_for(program), True, frozenset((dtypes.int64,)))
    assert found is not None, "their order changes nothing"


STORED_BEFORE = """for i in range(8):
    for j in range(9):
        y[i, j] = v[j]
        {more}
        for k in range(5):
            {inner}
            y[i, j] += a[i, k] * b[k, j]"""


@pytest.mark.parametrize(
    ("more", "inner", "is_one"),
    [
        ("t = v[j]", "u = b[k, j]", True),
        ("y[i, j] = v[j] + 1", "u = b[k, j]", False),
        ("t = v[j]", "n[i, j] = 2", False),
        ("n[i, j] = 2", "u = b[k, j]", False),
        ("t = v[j]", "if v[j] > 0:\n                n[i, j] = 2", False),
    ],
)
def test_only_one_store_of_the_element_and_scalars_stand_before_the_terms(
    more: str, inner: str, is_one: bool
) -> None:
    found = parts(made(STORED_BEFORE.format(more=more, inner=inner)))
    assert (found is not None) is is_one
    if found is not None:  # the stored value starts the sum
        assert print_expr(found.start[-1].value) == "v[j]"
        assert [stmt.access.node.label for stmt in found.start] == ["t", "y_sum"]
        assert [stmt.access.node.label for stmt in found.again] == ["t"]


@pytest.mark.parametrize("kind", ["vector", "parallel"])
@pytest.mark.parametrize("level", range(3))
def test_loops_that_are_scheduled_are_none(kind: Any, level: int) -> None:
    program = made("y[i, j] += a[i, k] * b[k, j]")

    def scheduled(loop: For, depth: int) -> For:
        if depth == 0:
            return replace(loop, kind=kind)
        body = tuple(scheduled(s, depth - 1) if isinstance(s, For) else s for s in loop.body)
        return replace(loop, body=body)

    (nest,) = (stmt for stmt in program.kernels[0].body if isinstance(stmt, For))
    assert find_accumulation(nest, fresh_for(program)) is not None
    assert find_accumulation(scheduled(nest, level), fresh_for(program)) is None
