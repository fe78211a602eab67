"""The text of gradients: whole for a small one, and the same numbers as the assignments give."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.dsl.gradient.source_text import RESERVED, source_text
from plusequals.dsl.numpy.table import WORDS
from tests.lowering.adjoint.test_adjoint import FUNCTIONS, case_of

DENSE = """
def dense_gradient(x, w, b):
    d_z = np.zeros((4, 3))
    d_total = np.zeros((4, 3))
    d_w = np.zeros((6, 3))
    d_b = np.zeros(3)
    total[i, j] = sum[k](x[i, k] * w[k, j])
"""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_text_computes_what_the_assignments_do(name: str) -> None:
    case = case_of(FUNCTIONS[name])
    rng = np.random.default_rng(3)
    given = [rng.standard_normal(node.static_shape) for node in case.outputs]
    expected = case.cotangents([np.asarray(one) for one in given])
    text = source_text(case.adjoint.procedure, "g", case.adjoint.cotangents)
    g = pe.cd_from_source(text, {"np": np}, backend="numpy")
    parameters = case.procedure.parameters
    values = [
        np.copy(value) if value.ndim or parameter.written else value.item()
        for value, parameter in zip(case.values, parameters, strict=True)
    ]
    found = g(*values, *(one if np.ndim(one) else float(one) for one in given))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_no_array_is_called_as_a_word_is() -> None:
    assert set(WORDS) <= RESERVED


def test_arrays_have_names_that_the_language_reads() -> None:
    text = """
def f(x, mod, pad, i, k):
    any_2 = np.any(x > 0.5)
    where = x * mod[0] + pad[1] * i
    for t in range(k):
        if k != 1:
            break
    else:
        where = where * 2.0
    return np.sum(where) if any_2 else 0.0
"""
    f = pe.cd_from_source(text, {"np": np}, backend="numpy")
    x = np.array([0.25, 0.75])
    with pe.override("numpy"):
        derived = pe.gradient(f, wrt=("x", "mod", "pad"))(x, np.ones(2), np.ones(2), 2.0, 1)
    assert [one.tolist() for one in derived] == [[2.0, 2.0], [2.0, 0.0], [0.0, 8.0]]


def test_guards_of_letters_are_written_once_and_equal_statements_are_not() -> None:
    text = """
def f(x, w):
    y = np.zeros(4)
    y[1:] += x[1:] * w[:-1] * x[:-1]
    y[1:] += w[:-1]
    y[1:] += w[:-1]
    return np.sum(y)
"""
    f = pe.cd_from_source(text, {"np": np}, backend="numpy")
    x, w = np.arange(1.0, 5.0), np.arange(4.0)
    with pe.override("numpy"):
        step = pe.gradient(f, wrt=("x", "w"))
        d_x, d_w = step(x, w)
    assert d_x.tolist() == [0.0, 3.0, 10.0, 6.0]
    assert d_w.tolist() == [4.0, 8.0, 14.0, 0.0]
    assert step.source.count("if i < 3:") == 1
    assert step.source.count("d_w[i] += 1.0") == 2


def test_sizes_of_a_call_are_those_of_arguments() -> None:
    text = """
def f(x):
    x[1:] += x[:-1] * 0.5
    x[:-1] *= x[1:]
    return np.sum(x * x)
"""
    f = pe.cd_from_source(text, {"np": np}, backend="numpy")
    with pe.override("numpy"):
        step = pe.gradient(f, wrt="x")
        for size in range(2, 8):
            given = np.linspace(0.5, 1.5, size)
            found = step(given.copy())
            for at in range(size):
                move = np.eye(size)[at] * 1e-6
                slope = (f(given + move) - f(given - move)) / 2e-6
                assert abs(slope - found[at]) < 1e-7
    assert "x.shape[0]" in step.source


def test_a_letter_has_the_range_of_its_array_where_tests_exclude_all_other_uses() -> None:
    divide = "a[i] /= 1.5 * ((2.0 if i > 0 else a[i]) if i > 2 else a[i])"
    text = f"def f(a):\n    {divide}\n    return np.sum(a * a)\n"
    f = pe.cd_from_source(text, {"np": np}, backend="numpy")
    g, a = pe.gradient(f, wrt="a"), np.arange(1.0, 6.0)
    found = g(a.copy())
    again = pe.cd_from_source(g.source, g.names, backend="numpy")(a.copy())
    np.testing.assert_array_equal(again, found)


def test_a_letter_is_bound_with_its_range_where_constants_exclude_its_uses() -> None:
    chosen = "np.where(np.where(2 != 1, 3, c) < 0, b[1:2] / 2.0, 0.5 * c)"
    text = f"def f(b, c):\n    v = np.expm1({chosen})\n    return np.sum(v * v)\n"
    f = pe.cd_from_source(text, {"np": np}, backend="numpy")
    g, given = pe.gradient(f, wrt=("b", "c")), (np.arange(3.0), np.array([[0.5], [0.25]]))
    found = g(*given)
    again = pe.cd_from_source(g.source, g.names, backend="numpy")(*given)
    for one, other in zip(again, found, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("op", ["//=", "%=", "*=", "-="])
def test_updates_over_an_axis_of_one_element_need_no_reduction(op: str) -> None:
    text = f"def f(x, n):\n    n[:, None] {op} np.fmax(n[2:3], 2)\n    return np.sum(x * x * n)\n"
    f = pe.cd_from_source(text, {"np": np}, backend="numpy")
    g, x, n = pe.gradient(f, wrt="x"), np.arange(4.0), np.array([7, 3, 5, 9])
    found = g(x, n.copy())
    again = pe.cd_from_source(g.source, g.names, backend="numpy")(x, n.copy())
    np.testing.assert_array_equal(again, found)
