"""The text of a derivative is read back: whatever its names are, and what it captures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd

X = np.array([0.25, -1.5, 0.75])


def read_back(g: Any, *args: Any, **keywords: Any) -> Any:
    """Return what the text gives, called as the derivative is, which has to be the same."""
    expected = g(*args, **keywords)
    found = pe.cd_from_source(g.source, g.names, backend="numpy")(*args, **keywords)
    several = isinstance(found, tuple)
    for one, other in zip(*((found, expected) if several else ([found], [expected])), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)
    return found


def function(text: str, **names: Any) -> Any:
    return pe.cd_from_source(text, {"np": np, **names}, backend="numpy")


WORDS = {
    "exp": ("def f(exp, x):\n    return np.sum(np.exp(exp * x))\n", (0.5, X), (X, X)),
    "sum": ("def f(sum, x):\n    y = sum @ x\n    return y @ y\n", (np.outer(X, X), X)),
    "rank": ("def f(rank, x):\n    return np.sort(x) @ rank\n", (X + 1, X)),
    "np": ("""
def f(np, x):
    s = 0.0
    for k in range(len(x)):
        s += np[k] * x[k] * x[k]
    return s
""", (X + 1, X)),
    "range": ("""
def f(range, x):
    s = 0.0
    for k, v in enumerate(x):
        s += range[k] * v * v
    return s
""", (X + 1, X)),
}  # fmt: skip


@pytest.mark.parametrize("name", WORDS)
def test_a_parameter_called_like_a_word_has_another_name(name: str) -> None:
    text, *kinds = WORDS[name]
    f = function(text)
    g = pe.gradient(f, wrt=(name, "x"))
    for args in kinds:
        read_back(g, *args)
        assert f"def f_gradient({name}_2, x):\n    # `{name}_2` is `{name}`, " in g.source
        caller = function(f"def h(a, b):\n    return g({name}=a, x=b)\n", g=g)
        for one, other in zip(caller(*args), g(*args), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-14)


def test_a_parameter_keeps_its_name_where_the_word_is_not_used() -> None:
    g = pe.gradient(function("def f(mean, x):\n    return np.sum(mean * x)\n"), wrt="x")
    read_back(g, X, X)
    assert g.source.startswith("def f_gradient(mean, x):\n    d_x")


def test_captured_names_called_like_words_and_letters() -> None:
    class Model:
        w = X + 2

    text = "def f(x):\n    y = np.exp(exp * x) * i.w\n    return np.sum(y * sum.w * d['max'])\n"
    g = pe.gradient(function(text, exp=X, i=Model(), sum=Model(), d={"max": X}), wrt="x")
    read_back(g, X)
    assert g.names["exp_2"] is X
    assert "# `exp_2` is `exp`, which is a word here" in g.source


def test_what_inlined_functions_capture_is_a_name_of_the_text() -> None:
    def scaled_by(x: Any) -> Any:
        return cd(lambda y: x * y)

    scale = np.array([2.0, 3.0])
    text = "def f(x):\n    return np.sum(scaled(x) * x) + other(x)[0]\n"
    f = function(text, scaled=scaled_by(scale), other=scaled_by(5.0 * scale))
    g = pe.gradient(f, wrt="x")
    x = np.array([1.0, 2.0])
    assert read_back(g, x).tolist() == [14.0, 12.0]
    assert g.source.startswith("def f_gradient(x):\n")
    assert g.names["x_2"] is scale
    step = cd(lambda x: x - g(x))
    assert step(x).tolist() == [-13.0, -10.0]
    scale *= 2
    assert step(x).tolist() == [-17.0, -22.0]


def test_a_captured_tensor_of_an_inlined_function_is_a_name_of_the_text() -> None:
    weight = pe.tensor("weight", (3,), dtype="float64", init=X)
    inner = function("def inner(x):\n    return weight * x\n", weight=weight)
    g = pe.gradient(function("def f(x):\n    return np.sum(inner(x) * x)\n", inner=inner), wrt="x")
    assert read_back(g, X).tolist() == (2 * X * X).tolist()
    assert g.names["weight"] is weight


def test_a_text_is_called_as_the_derivative_is() -> None:
    text = "def f(x, *rest, power=2, w=W, **more):\n"
    text += "    return np.sum(w * x**power * rest[1] * more['factor'])\n"
    g = pe.gradient(function(text, W=X), wrt="x")
    read_back(g, X, X, X + 1, factor=2.0)
    read_back(g, X, X, X + 1, power=3, w=X + 2, factor=2.0)
    assert g.source.startswith("def f_gradient(x, *rest, power=2, w=w_default, **more):\n")
    product = pe.vjp(function("def f(x, power=2):\n    y = x**power\n    return y\n"), wrt="x")
    read_back(product, X, d_y=X)
    assert product.source.startswith("def f_vjp(x, power=2, *, d_y):\n")
    caller = cd(lambda x: product(x, d_y=x))
    np.testing.assert_allclose(caller(X), 2 * X * X)


def test_names_are_those_of_the_text_that_was_asked_for_last() -> None:
    def scaled_by(x: Any) -> Any:
        return cd(lambda y: x * y)

    text = "def f(x, both):\n    y = scaled(x) if both else x\n    return np.sum(y * x)\n"
    g = pe.gradient(function(text, scaled=scaled_by(X)), wrt="x")
    g(X, True)
    g(X, False)
    again = pe.cd_from_source(g.text(X, True), g.names, backend="numpy")
    assert again(X, True).tolist() == g(X, True).tolist()


def test_a_cotangent_is_not_what_the_function_calls_so() -> None:
    product = pe.vjp(function("def f(x):\n    y = d_y * x\n    return y\n", d_y=X), wrt="x")
    assert read_back(product, X, X + 1).tolist() == (X * (X + 1)).tolist()
    assert product.source.startswith("def f_vjp(x, d2_y):\n")
    text = "def f(x):\n    d_y[i] = 2 * x[i]\n    y = d_y * x\n    return y\n"
    given = X + 1
    np.testing.assert_allclose(read_back(pe.vjp(function(text), wrt="x"), X, given), 4 * X * given)
    assert given.tolist() == (X + 1).tolist()
    inner = function("def inner(x):\n    return d_y * x\n", d_y=X)
    text = "def f(x):\n    y = inner(x)\n    return y\n"
    product = pe.vjp(function(text, inner=inner), wrt="x")
    assert read_back(product, X, given).tolist() == (X * given).tolist()
    assert product.source.startswith("def f_vjp(x, d_y):\n")
