"""Integers that adjoint statements bind have symbols of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.lowering.ir.assignments import Let
from plusequals.lowering.ir.walk import statements

TEXT = """
def f(x, at, n):
    s = 0.1
    for t in range(n):
        s = s + x[at[t]] * x[at[t]] * s
        for u in range(1):
            x[at[u]] *= s
    return s
"""


@pytest.mark.parametrize("memory", [None, 1])
@pytest.mark.parametrize("n", [1, 3])
def test_no_integer_is_bound_twice(n: int, memory: int | None, backend: str) -> None:
    f = pe.cd_from_source(TEXT, {"np": np}, backend=backend)
    g = pe.gradient(f, wrt="x", memory=memory)
    given: tuple[Any, ...] = np.array([0.5, 2.0, 0.25]), np.array([1, 0, 1]), n
    found = g(given[0].copy(), *given[1:])  # verified after each pass
    body = g.matched(given[0].copy(), *given[1:])[0].specialization.typed.procedure.body
    bound = [stmt.symbol for stmt in statements(body) if isinstance(stmt, Let)]
    assert bound and len(set(bound)) == len(bound)
    again = pe.cd_from_source(g.source, g.names, backend="numpy")(given[0].copy(), *given[1:])
    np.testing.assert_allclose(again, found, rtol=1e-14)


def test_sizes_of_arrays_in_a_loop_of_one_iteration_have_symbols_of_their_own() -> None:
    text = (
        "def f(x):\n    s = 0.4\n    k = 1\n    for t in range(1, len(x), 2):\n"
        "        if s > 1.0:\n            k = k + 1\n        z = x[:k % 3 + 1] * x[k % 3]\n"
        "        s = s + np.sum(z * z)\n    return s\n"
    )
    f = pe.cd_from_source(text, {"np": np})
    pe.check_gradient(f, (np.array([1.5, 0.5, 2.0]),), wrt="x", digits=8)
