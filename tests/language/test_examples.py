"""The worked examples of the language page give what NumPy says, on every backend."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe

from ..compare import assert_same, run_on
from . import index_functions
from .examples import EXAMPLES, Example


@pytest.mark.parametrize("example", EXAMPLES, ids=repr)
def test_example_agrees_with_numpy(example: Example, backend: str) -> None:
    plain, compiled = example.make(), example.make()
    expected = example.reference(*plain)
    got = run_on(backend, getattr(index_functions, example.function), *compiled)
    assert_same(got, expected, example.rtol)
    assert_same(compiled, plain, example.rtol, "arguments")


def test_every_worked_example_is_covered() -> None:
    with_tensors = {"sgd", "merge_grad", "set_grad", "get_grad", "set_velocity", "get_velocity"}
    written = {name for name, value in vars(index_functions).items() if isinstance(value, type(
        index_functions.softmax))}  # fmt: skip
    assert written - with_tensors == {example.function for example in EXAMPLES}


def test_sgd_updates_value_and_velocity(backend: str) -> None:
    value, grad, velocity = np.random.default_rng(0).random((3, 4, 5))
    p = pe.tensor("p", (4, 5), dtype="float64", init=value, fields=("vel",))
    run_on(backend, index_functions.set_grad, p, grad)
    run_on(backend, index_functions.set_velocity, p, velocity)
    run_on(backend, index_functions.sgd, p, 0.1, 0.9, 0.01)
    expected = 0.9 * velocity + grad + 0.01 * value
    seen = np.zeros((4, 5))
    run_on(backend, index_functions.get_velocity, seen, p)
    assert_same(seen, expected)
    assert_same(p.numpy(), value - 0.1 * expected)
