"""Derivatives as functions under `@cd`: their specializations, their text."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd
from plusequals.base.diagnostic import CdTypeError

SCALE = np.array([1.0, 2.0, 3.0])


@cd
def loss(x: Any, w: Any, power: int = 2) -> Any:
    return np.sum((x * w * SCALE) ** power)


class Model:
    def __init__(self) -> None:
        self.w = np.array([0.5, 1.0, 2.0])
        self.rate = 0.25


@cd
def of_model(model: Any, x: Any) -> Any:
    return np.sum(model.w * x * x) * model.rate


def test_a_derivative_is_called_as_its_function_is() -> None:
    g = pe.gradient(loss, wrt="x")
    x, w = np.array([1.0, 2.0, 3.0]), np.ones(3)
    expected = 2 * x * (w * SCALE) ** 2
    np.testing.assert_allclose(g(x, w), expected)
    np.testing.assert_allclose(g(x, w=w, power=2), expected)
    np.testing.assert_allclose(g(x, w, 3), 3 * x**2 * (w * SCALE) ** 3)
    with pytest.raises(TypeError, match="is called with the wrong arguments"):
        g(x)


def test_sizes_become_dynamic() -> None:
    g = pe.gradient(cd(lambda x, y: np.sum(x * x * y)), wrt="x")
    for size in range(2, 12):
        x = np.arange(float(size))
        np.testing.assert_array_equal(g(x, x), 2 * x * x)
    assert "len(" in g.source or ".shape[0]" in g.source


def test_captured_arrays_and_attributes_are_inputs() -> None:
    model, x = Model(), np.array([1.0, 2.0, 3.0])
    g = pe.gradient(of_model, wrt="x")
    np.testing.assert_array_equal(g(model, x), 2 * model.w * x * 0.25)
    model.w = model.w * 2
    model.rate = 1.0
    np.testing.assert_array_equal(g(model, x), 2 * model.w * x)


def test_the_interpreter_and_the_text_give_the_same() -> None:
    g = pe.value_and_gradient(loss, wrt=("x", "w"))
    x, w = np.array([1.0, 2.0, 3.0]), np.array([0.5, -1.0, 0.25])
    value, (d_x, d_w) = g(x, w)
    for other in (g.on("numpy")(x, w), pe.cd_from_source(g.source, g.names)(x, w, 2)):
        again, *found = other if isinstance(other[1], np.ndarray) else (other[0], *other[1])
        assert again == pytest.approx(value, rel=1e-14)
        np.testing.assert_allclose(found[0], d_x, rtol=1e-14)
        np.testing.assert_allclose(found[1], d_w, rtol=1e-14)


def test_a_derivative_is_copied_and_pickled_with_its_function() -> None:
    g = pe.gradient(loss, wrt="x")
    assert copy.deepcopy(g) is g
    x = np.ones(3)
    again = pickle.loads(pickle.dumps(g))  # noqa: S301
    np.testing.assert_array_equal(again(x, x), g(x, x))


def test_a_derivative_without_words_for_its_text_runs() -> None:
    text = "def f(x, y):\n    return np.sum(round(y, 2) * x)\n"
    g = pe.gradient(pe.cd_from_source(text, {"np": np}, backend="numpy"), wrt="x")
    y = 1.234
    assert g(np.ones(2), y).tolist() == [1.23, 1.23]
    with pytest.raises(CdTypeError, match=r"CD0480.*has no text: .* no words for a statement"):
        _ = g.source
    with pytest.raises(CdTypeError, match="CD0480"):
        g.text(np.ones(2), y)
