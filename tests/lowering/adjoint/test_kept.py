"""What is kept for the adjoint statements: as little as is read again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd
from plusequals.lowering.adjoint.kept import Names, upper_bound
from plusequals.lowering.ir.indexing import Symbol, const, floordiv, minimum, multiply, var

from .differences import agree
from .test_adjoint import FUNCTIONS, case_of

KEPT = {
    "elementwise": [],  # nothing is overwritten
    "in place": [(6,)],  # the vector is smaller than three values for each of four points
    "matrices in a loop": [(3, 4, 6), (3, 4, 6), (3, 6, 6)],  # with an axis for the loop
    "a recurrence": [(5,)],  # one value of each iteration, not the array
    "a triangle": [(6, 5)],  # the longest inner loop
}


@pytest.mark.parametrize("name", KEPT)
def test_shapes_of_what_is_kept(name: str) -> None:
    made = case_of(FUNCTIONS[name]).adjoint.procedure
    kept = [node for node in made.locals if node.label.endswith("_kept")]
    assert sorted(node.static_shape or () for node in kept) == KEPT[name]


def test_a_test_that_is_kept_is_a_bool() -> None:
    case = case_of("""
        for t in range(3):
            a *= np.where(a <= 0.5, a + 2.0, a.any(axis=0, keepdims=True))
        return a""")
    kept = [n for n in case.adjoint.procedure.locals if n.label == "any_kept"]
    assert [node.dtype.kind for node in kept] == ["b"]
    assert agree(case)


def test_bounds_over_the_iterations_of_a_loop() -> None:
    i, n = Symbol("i", 1), Symbol("n", 2)
    last = var(n) - 1
    assert upper_bound(var(i) * 2 + 1, i, const(0), last) == var(n) * 2 - 1
    assert upper_bound(-var(i) + 5, i, const(0), last) == const(5)
    block = minimum(var(i) + 32, var(n)) - var(i)
    assert upper_bound(block, i, const(0), last) == minimum(const(32), var(n))
    assert upper_bound(minimum(var(i), const(3)) * -1, i, const(0), last) == const(0)
    assert upper_bound(floordiv(-var(i) - 1, const(-2)) + 1, i, const(0), const(4)) == const(3)
    assert upper_bound(multiply(var(i), var(n)), i, const(0), last) is None


def test_new_names_are_above_all_others() -> None:
    procedure = case_of(FUNCTIONS["a triangle"]).procedure
    names = Names.above(procedure)
    node = names.array("t", (const(3),), procedure.results[0].dtype)
    ids = [n.id for n in (*procedure.locals, *procedure.results)]
    assert node.id > max([p.node.id for p in procedure.parameters] + ids)
    assert names.symbol("i") != names.symbol("i")


def test_one_value_is_kept_once() -> None:
    @cd
    def f(p: Any, table: Any) -> Any:
        x = p[0]
        for _ in range(4):
            k = int(x)
            x = table[k] + (x - k) * (table[k + 1] - table[k])
        return x

    g = pe.gradient(f, wrt="p")
    table = np.arange(10.0) ** 1.1
    assert [one.name for one in g.kept(np.array([2.5]), table).arrays].count("k_kept") == 1
    step = 1e-6
    difference = f(np.array([2.5 + step]), table) - f(np.array([2.5 - step]), table)
    assert np.allclose(g(np.array([2.5]), table), difference / (2 * step))
