"""Functions with derivative rules that are called at index letters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdTypeError

X, W = np.array([0.5, 1.25, 0.75]), np.array([0.5, -1.0, 2.0])


def ruled(text: str, rule: str, kind: str = "vjp_rule", wrt: str | None = None) -> dict[str, Any]:
    """Return the names around a function `f` with a rule, which may call it."""
    names: dict[str, Any] = {"np": np}
    names["f"] = f = pe.cd_from_source(text, names, backend="numpy")
    getattr(f, kind)(pe.cd_from_source(rule, names, backend="numpy"), wrt=wrt)
    return names


def function(text: str, names: dict[str, Any]) -> Any:
    return pe.cd_from_source(text, names, backend="numpy")


PRODUCT = "def f(a, b):\n    return a * b * b\n"
BOTH = "def rule(a, b, d_result):\n    return 10 * b * b * d_result, 20 * a * b * d_result\n"
FORWARD = "def rule(a, b, t_a, t_b):\n    return t_a * 10 * b * b - -t_b * (20 * a * b)\n"


@pytest.mark.parametrize("rule", [BOTH, FORWARD])
def test_both_rules_give_the_partial_derivatives(rule: str) -> None:
    names = ruled(PRODUCT, rule, "vjp_rule" if rule is BOTH else "jvp_rule")
    f = function("def g(x, w):\n    y[i, j] = f(x[i], w[j])\n    return np.sum(y)\n", names)
    d_x, d_w = pe.gradient(f, wrt=("x", "w"))(X, W)
    np.testing.assert_allclose(d_x, 10 * np.sum(W * W) * np.ones(3))
    np.testing.assert_allclose(d_w, 20 * np.sum(X) * W)
    tangent = pe.jvp(f, wrt=("x", "w"))(X, W, X, W)
    assert np.isclose(tangent, d_x @ X + d_w @ W)


def test_guards_reductions_and_loops_around_a_call() -> None:
    names = ruled(PRODUCT, BOTH)
    text = "def g(x, w):\n    y[i] = f(x[i], w[i + 1]) if i < 2 else 0.0\n    return np.sum(y)\n"
    d_x, d_w = pe.gradient(function(text, names), wrt=("x", "w"))(X, W)
    assert d_x.tolist() == [10.0, 40.0, 0.0]
    assert d_w.tolist() == [0.0, 20 * X[0] * W[1], 20 * X[1] * W[2]]
    text = "def g(x, w):\n    return max[i](f(x[i], w[i]) * w[i])\n"
    assert pe.gradient(function(text, names), wrt="x")(X, W).tolist() == [0.0, 0.0, 80.0]
    text = "def g(x, w):\n    for t in range(2):\n        x[i] = f(x[i], w[i])\n"
    text += "    return np.sum(x)\n"
    found = pe.gradient(function(text, names), wrt="x")(X.copy(), W)
    np.testing.assert_allclose(found, 100 * W**4)
    text = "def g(x):\n    y = np.array([f(v, v) for v in x])\n    return np.sum(y)\n"
    found = pe.gradient(function(text, names), wrt="x")(X)
    np.testing.assert_allclose(found, 30 * X * X)


def test_a_rule_that_calls_its_function_and_further_derivatives() -> None:
    rule = "def rule(a, result, d_result):\n    return 10 * result * d_result\n"
    for text in (rule, rule.replace("10 * result", "10 * f(a)")):
        names = ruled("def f(a):\n    return np.exp(a)\n", text)
        g = pe.gradient(function("def g(x):\n    return sum[i](f(x[i]))\n", names), wrt="x")
        ones = np.ones(3)
        np.testing.assert_allclose(g(X), 10 * np.exp(X))
        second = pe.jvp(g, wrt="x")
        np.testing.assert_allclose(second(X, ones), 100 * np.exp(X))
        third = pe.jvp(second, wrt="x")(X, ones, ones)
        np.testing.assert_allclose(third, 1000 * np.exp(X))
        assert "by_rule" not in g.source
        names["h"] = pe.gradient(names["f"], wrt="a")
        f = function("def g(x):\n    y[i] = h(x[i])\n    return np.sum(y)\n", names)
        np.testing.assert_allclose(pe.gradient(f, wrt="x")(X), 100 * np.exp(X))


def test_several_outputs() -> None:
    text = "def f(a):\n    u = a * a\n    v = a * a * a\n    return u, v\n"
    rule = "def rule(a, u, d_u, d_v):\n    return 20 * a * d_u + 30 * u * d_v\n"
    names = ruled(text, rule)
    f = function("def g(x):\n    y[i] = f(x[i])[0] * f(x[i])[1]\n    return np.sum(y)\n", names)
    g = pe.gradient(f, wrt="x")
    np.testing.assert_allclose(g(X), 50 * X**4)
    u, v, d_u, d_v = X**2, X**3, 20 * X, 30 * X**2  # what the rule says of `u` is true in it, too
    second = d_v * 20 * X + v * 20 + 2 * 30 * u * d_u
    np.testing.assert_allclose(pe.jvp(g, wrt="x")(X, np.ones(3)), second)


def test_what_a_rule_has_no_derivative_for_is_refused() -> None:
    text, rule = "def f(a, n):\n    return a**n\n", "def rule(a, n, t_a):\n    return n * t_a\n"
    names = ruled(text, rule, "jvp_rule", "a")
    f = function("def g(x, w):\n    y[i] = f(x[i], w[i])\n    return np.sum(y)\n", names)
    assert pe.gradient(f, wrt="x")(X, W).tolist() == W.tolist()
    with pytest.raises(CdTypeError, match="CD0480.*`n` of `f` has no derivative"):
        pe.gradient(f, wrt="w")(X, W)
    with pytest.raises(CdTypeError, match="CD0480.*`n` of `f` has no derivative"):
        pe.jvp(f, wrt="w")(X, W, W)
    text = "def f(a):\n    return a * w[0]\n"
    names = ruled(text, "def rule(a, d_result):\n    return d_result * w[0]\n")
    names["w"] = pe.tensor("w", (3,), dtype="float64", init=W)
    f = function("def g(x):\n    y[i] = f(x[i])\n    return np.sum(y)\n", names)
    np.testing.assert_allclose(pe.gradient(f, wrt="x")(X), W[0])
    with pytest.raises(CdTypeError, match="CD0480.*of `f` has no derivative"):
        pe.backward(f)(X)


@pytest.mark.parametrize(
    "rule",
    [
        "np.clip(d_result, -1.0, 1.0) * a",
        "d_result + 1.0",
        "a * d_result if d_result > 0.0 else 0.0",
        "d_result * d_result",
        "a / d_result",
    ],
)
def test_a_rule_that_is_no_sum_of_multiples_is_refused(rule: str) -> None:
    names = ruled("def f(a):\n    return a * a\n", f"def rule(a, d_result):\n    return {rule}\n")
    f = function("def g(x):\n    y[i] = f(x[i])\n    return np.sum(y)\n", names)
    with pytest.raises(CdTypeError, match="CD0487.*no sum of multiples of `d_result`"):
        pe.gradient(f, wrt="x")(X)


def test_arrays_and_complex_numbers_at_letters_are_refused() -> None:
    rule = "def rule(a, x, d_result):\n    return d_result * x[0], None\n"
    names = ruled("def f(a, x):\n    return a * x[0]\n", rule)
    f = function("def g(x):\n    y[i] = f(x[i], x)\n    return np.sum(y)\n", names)
    with pytest.raises(CdTypeError, match="CD0487.*something else there than real numbers"):
        pe.gradient(f, wrt="x")(X)
    names = ruled("def f(a):\n    return a * a\n", "def rule(a, d_result):\n    return d_result\n")
    f = function("def g(x):\n    y[i] = f(x[i])\n    return np.abs(np.sum(y))\n", names)
    with pytest.raises(CdTypeError, match="CD0487.*something else there than real numbers"):
        pe.gradient(f, wrt="x")(X + 1j)
