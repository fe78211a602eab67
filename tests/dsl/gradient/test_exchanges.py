"""Arguments that change places under a test: texts copy their elements."""

from __future__ import annotations

from typing import Any

import numpy as np

import plusequals as pe
from plusequals import cd

NESTED = """
def f(x, y, n):
    s = x[0]
    for t in range(2):
        k = 0
        while k < n - t and np.sum(x) > 0.1:
            k += 1
            x, y = y, x
            s = s * y[1] + x[0] * y[1]
    return s + x[1] * y[0]
"""
"""Iterations of the inner loop are flagged: there are as many as any of them makes."""


def test_texts_exchange_what_the_function_does() -> None:
    f = pe.cd_from_source(NESTED, {"np": np}, backend="numpy")
    g = pe.value_and_gradient(f, wrt=("x", "y"))
    for n in range(4):
        values = np.array([0.9, 0.4]), np.array([0.7, 1.2]), n
        found = g(*map(np.copy, values[:2]), n)
        assert "x_held" in g.source
        made = pe.cd_from_source(g.text(*values), g.names, backend="numpy")
        again = made(*map(np.copy, values[:2]), n)
        assert again[0] == found[0]
        for one, other in zip(again[1], found[1], strict=True):
            np.testing.assert_array_equal(one, other)


def test_what_changes_places_without_a_test_is_written_as_that() -> None:
    @cd(backend="numpy")
    def f(x: Any, y: Any) -> Any:
        for _ in range(3):
            x, y = y, x * 0.5
        return np.sum(x * y)

    text = pe.gradient(f, wrt="x").text(np.ones(2), np.ones(2))
    assert "_held" not in text


def test_cotangents_of_arguments_are_exchanged_on_one_side_of_an_early_return() -> None:
    text = """
def f(x, y, n):
    s = np.sum(np.sort(x))
    if s < 0.0:
        return s
    k = 0
    while k < n:
        k += 1
        x, y = y, x
    if s > 5.0:
        return s * x[0]
    return s + np.sum(x * x * y)
"""
    f = pe.cd_from_source(text, {"np": np}, backend="numpy")
    g = pe.gradient(f, wrt=("x", "y"))
    for n in range(3):
        values = np.array([0.9, 0.4]), np.array([0.7, 1.2])
        found = g(*map(np.copy, values), n)
        again = pe.cd_from_source(g.source, g.names, backend="numpy")(*map(np.copy, values), n)
        for one, other in zip(again, found, strict=True):
            np.testing.assert_array_equal(one, other)
