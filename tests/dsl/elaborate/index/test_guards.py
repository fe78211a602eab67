"""Guards: what a test is for all points when the `if` is reached, it stays for all statements."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.lowering.ir.assignments import Alloc
from tests.compare import assert_same
from tests.language.ask import program, run

from ..scenes import found, typed

HELPERS = "def head():\n    return x[0]\ndef above(k):\n    return x[k] > 1.5\n"
ONE = np.array([1.0, 1, 1])
TWICE = "x[i] = 0\n    y[i] = 1"
ON_ENTRY = {
    f"if x.sum() > 0 and i >= 0:\n    {TWICE}": ONE,
    f"if i >= 0 and x.sum() > 0:\n    {TWICE}": ONE,
    f"if np.max(x) > i:\n    {TWICE}": ONE,
    f"if i < int(x.max()):\n    {TWICE}": ONE,
    f"if i < 2 * x.min() + 1 - x[0]:\n    {TWICE}": [1.0, 1, 0],
    f"if x[0] > 0 and i >= 0:\n    {TWICE}": ONE,
    f"if head() > 0 and i >= 0:\n    {TWICE}": ONE,
    f"if not x.sum() < 0 < i:\n    {TWICE}": ONE,
    f"if above(i):\n    {TWICE}\nelse:\n    y[i] = 3": [3.0, 1, 1],
    f"if head() > 0 and i > 0:\n    {TWICE}\nelse:\n    y[i] = 5": [5.0, 1, 1],
    "if x[i] > 1.5:\n    if i >= 0:\n        x[i] = 0\n        y[i] = 1": [0.0, 1, 1],
    "if x[i] > 1.5:\n    with comment('c'):\n        x[i] = 0\n        y[i] = 1": [0.0, 1, 1],
    "if x[i] > 1.5:\n    if i > 1:\n        x[i] = 0\n    else:\n        y[i] = 2\n    y[i] += 1": [
        0.0, 3, 1,
    ],
}  # fmt: skip


@pytest.mark.parametrize(("body", "expected"), ON_ENTRY.items())
def test_statements_inside_do_not_change_the_test(
    body: str, expected: object, backend: str
) -> None:
    text = f"{HELPERS}{body}\nreturn y"
    y = run(backend, "x, y", text, np.array([1.0, 2, 3]), np.zeros(3))
    assert_same(y, np.array(expected))


def test_in_a_loop_the_test_is_that_of_each_iteration(backend: str) -> None:
    guarded = "if x.sum() > 3 * t and i >= t:\n        x[i] -= 1\n        y[i] += 1"
    body = f"for t in range(3):\n    {guarded}"
    x, y = np.array([1.0, 2, 3]), np.zeros(3)
    run(backend, "x, y", body, x, y)
    assert (x.tolist(), y.tolist()) == ([0, 1, 2], [1, 1, 1])


def test_a_check_that_another_operand_prevents_is_not_made() -> None:
    f = pe.cd_from_source(
        program(
            "x, y, n", "if n < len(x) and x[n] > 0 and i > 0:\n    x[i] = 0\n    y[i] = 1\nreturn y"
        )
    )
    for size in (2, 3, 4, 5, 6):
        assert f(np.full(size, 1.0), np.zeros(size), 1).tolist() == [0, *[1] * (size - 1)]
        assert f(np.full(size, 1.0), np.zeros(size), size).tolist() == [0] * size


@pytest.mark.parametrize("test", ["i > 0 and i < len(x) - 1", "abs(i - 1) < 2 and n > 3", "i > n"])
def test_a_test_without_arrays_needs_no_memory(test: str) -> None:
    body = f"if {test}:\n    x[i] = 0\n    y[i] = 1"
    procedure = typed("x, y, n", body, np.ones(5), np.ones(5), 2).procedure
    assert not procedure.locals and not found(procedure, Alloc)
