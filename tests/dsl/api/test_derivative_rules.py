"""Derivatives that the user writes, and what uses them."""

from __future__ import annotations

import pickle
import re
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd

X = np.linspace(-1.0, 1.0, 5)
W = np.linspace(1.0, 2.0, 5)


@cd
def softplus(x: Any) -> Any:
    y = np.log1p(np.exp(x))
    return y


@softplus.vjp_rule
def softplus_vjp(x: Any, d_y: Any) -> Any:
    return d_y / (1.0 + np.exp(-x))


@cd
def cubed(x: Any) -> Any:
    return np.sum(softplus(x) ** 3)


@cd
def rounded(x: Any) -> Any:
    y = np.round(x)
    return y


@rounded.vjp_rule
def rounded_vjp(d_y: Any) -> Any:
    return d_y


@cd
def quantized(x: Any) -> Any:
    return np.sum(rounded(3 * x) * x)


@cd
def two(x: Any, w: Any, n: Any) -> Any:
    s = x * w * n
    p = x + n * w
    return s, p


@two.jvp_rule
def two_jvp(x: Any, w: Any, n: Any, t_x: Any, t_w: Any) -> Any:
    return t_x * w * n + x * t_w * n, t_x + n * t_w


@cd
def product(x: Any, w: Any, n: Any) -> Any:
    a, b = two(x, w, n)
    return np.sum(a * b)


@cd
def root(a: Any) -> Any:
    r = 1.0
    while abs(r * r - a) > 1e-12:
        r = (r + a / r) / 2
    return r


@root.vjp_rule
def root_vjp(r: Any, d_r: Any) -> Any:
    return d_r / (2 * r)


@cd
def roots(v: Any) -> Any:
    total = 0.0
    for i in range(v.shape[0]):
        total += root(v[i]) * v[i]
    return total


class Model:
    def __init__(self) -> None:
        self.scale = 3.0

    @cd
    def squares(self, x: Any) -> Any:
        y = self.scale * x * x
        return y

    @squares.vjp_rule(wrt="x")
    def squares_vjp(self, x: Any, d_y: Any) -> Any:
        return 10.0 * self.scale * x * d_y

    @cd
    def loss(self, x: Any) -> Any:
        return np.sum(self.squares(x))


def differences(f: Any, x: Any, step: float = 1e-6) -> Any:
    """Return central differences of a function of an array."""
    found = np.zeros_like(x)
    for at in np.ndindex(x.shape):
        unit = np.zeros_like(x)
        unit[at] = step
        found[at] = (f(x + unit) - f(x - unit)) / (2 * step)
    return found


def sigmoid(x: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-x))


def test_calls_are_differentiated_by_the_rule() -> None:
    g = pe.gradient(cubed, wrt="x")
    assert np.allclose(g(X), 3 * np.log1p(np.exp(X)) ** 2 * sigmoid(X))
    assert "exp(-" in g.source, "the statements of the rule are in the text"


def test_the_function_itself_is_differentiated_by_the_rule() -> None:
    assert np.allclose(pe.vjp(softplus, wrt="x")(X, W), W * sigmoid(X))
    assert np.allclose(pe.vjp(Model().squares, wrt="x")(X, np.ones(5)), 30 * X)


def test_a_rule_stands_for_what_has_no_derivative() -> None:
    g = pe.gradient(quantized, wrt="x")
    assert np.allclose(g(X), np.round(3 * X) + 3 * X)


def test_a_rule_takes_what_the_function_computed() -> None:
    v = np.array([1.0, 2.0, 3.0, 5.0])
    assert np.allclose(pe.gradient(roots, wrt="v")(v), 1.5 * np.sqrt(v))


def test_a_forward_rule_is_transposed() -> None:
    d_x, d_w = pe.gradient(product, wrt=("x", "w"))(X, W, 3)
    assert np.allclose(d_x, differences(lambda x: float(product(x, W, 3)), X))
    assert np.allclose(d_w, differences(lambda w: float(product(X, w, 3)), W))


def test_a_reverse_rule_is_transposed() -> None:
    assert np.allclose(pe.jvp(softplus, wrt="x")(X, W), W * sigmoid(X))
    step, direction = 1e-6, np.ones(5)
    g = pe.gradient(cubed, wrt="x")
    second = (g(X + step) - g(X - step)) / (2 * step)
    assert np.allclose(pe.jvp(g, wrt="x")(X, direction), second)


def test_both_rules_are_used_where_both_are_given() -> None:
    @cd
    def f(x: Any) -> Any:
        y = 2 * x
        return y

    f.vjp_rule(lambda d_y: 5 * d_y)
    f.jvp_rule(lambda t_x: 7 * t_x)
    assert pe.vjp(f, wrt="x")(1.0, 1.0) == 5.0
    assert pe.jvp(f, wrt="x")(1.0, 1.0) == 7.0


def test_what_calls_a_gradient_by_a_rule_is_differentiated() -> None:
    g = pe.gradient(cubed, wrt="x")

    @cd
    def norm(x: Any) -> Any:
        d = g(x)
        return np.sum(d * d)

    assert np.isclose(norm(X), np.sum(g(X) ** 2))
    n = pe.gradient(norm, wrt="x")
    assert np.allclose(n(X), 2 * g(X) * pe.jvp(g, wrt="x")(X, np.ones(5)))
    product = pe.jvp(n, wrt="x")(X, W)
    assert np.allclose(product, (n(X + 1e-6 * W) - n(X - 1e-6 * W)) / 2e-6, rtol=1e-6)
    slope = pe.value_and_gradient(cubed, wrt="x")

    @cd
    def both(x: Any) -> Any:
        value, d = slope(x)
        return value * np.sum(d)

    with pytest.raises(TypeError, match="CD0480.*is differentiated again here, and uses"):
        pe.gradient(both, wrt="x")(X)


def test_second_directions_have_names_of_their_own() -> None:
    @cd
    def cubes(x: Any) -> Any:
        return np.sum(x**3)

    twice = pe.jvp(pe.jvp(cubes, wrt="x"), wrt="x")
    assert list(twice.__signature__.parameters) == ["x", "t_x", "t2_x"]
    assert np.isclose(twice(X, np.ones(5), t2_x=W), np.sum(6 * X * W))


def test_arrays_of_loops_are_kept_for_the_rule() -> None:
    @cd
    def steps(x: Any, w: Any) -> Any:
        for _ in range(40):
            x = 0.4 * softplus(x * w)
        return np.sum(x * x)

    wanted = differences(lambda x: float(steps(x, W)), X)
    assert np.allclose(pe.gradient(steps, wrt="x")(X, W), wanted, rtol=1e-6, atol=1e-9)
    few = pe.gradient(steps, wrt="x", memory=6)
    assert np.array_equal(few(X, W), pe.gradient(steps, wrt="x")(X, W))


def test_sizes_that_are_known_at_run_time() -> None:
    g = pe.gradient(cubed, wrt="x")
    for n in (3, 4, 6, 7, 9):
        x = np.linspace(0.0, 1.0, n)
        assert np.allclose(g(x), 3 * np.log1p(np.exp(x)) ** 2 * sigmoid(x))


def test_captured_arrays_of_a_rule_are_those_of_the_call() -> None:
    scale = W.copy()

    @cd
    def scaled(x: Any) -> Any:
        y = x * scale
        return y

    @scaled.vjp_rule
    def scaled_vjp(d_y: Any) -> Any:
        return d_y * scale

    @cd
    def loss(x: Any) -> Any:
        return np.sum(scaled(x) ** 2)

    assert np.allclose(pe.gradient(loss, wrt="x")(X), 2 * X * scale**2)
    scale *= 2.0
    assert np.allclose(pe.gradient(loss, wrt="x")(X), 2 * X * scale**2)


def test_a_rule_that_is_replaced_is_used_at_once() -> None:
    @cd
    def f(x: Any) -> Any:
        y = 2 * x
        return y

    @cd
    def loss(x: Any) -> Any:
        return np.sum(f(x))

    g, direct = pe.gradient(loss, wrt="x"), pe.vjp(f, wrt="x")
    found = [g(X)[0]]
    for factor in (5.0, 7.0):
        f.vjp_rule(pe.cd_from_source(f"def rule(d_y):\n    return {factor} * d_y\n"))
        found += [g(X)[0], direct(X, np.ones(5))[0]]
    assert found == [2.0, 5.0, 5.0, 7.0, 7.0]


def test_methods_and_tensors() -> None:
    assert np.allclose(pe.gradient(Model().loss, wrt="x")(X), 30 * X)
    weights = pe.tensor("weights", (5,), dtype="float64", init=X)
    pe.backward(cubed)(weights)
    assert np.allclose(weights.grad[...], 3 * np.log1p(np.exp(X)) ** 2 * sigmoid(X))


def test_tuples_have_cotangents_of_their_items() -> None:
    @cd
    def mixed(params: Any) -> Any:
        y = params[0] * params[1]
        return y

    @mixed.vjp_rule
    def mixed_vjp(params: Any, d_y: Any) -> Any:
        return (d_y * params[1], d_y * params[0])

    @cd
    def loss(params: Any) -> Any:
        return np.sum(mixed(params))

    d_x, d_w = pe.gradient(loss, wrt="params")((X, W))
    assert np.array_equal(d_x, W) and np.array_equal(d_w, X)


def test_differences_tell_a_wrong_rule() -> None:
    report = str(pe.check_gradient(cubed, (X,), wrt="x"))
    assert float(report.split()[-1]) > 6
    with pytest.raises(ValueError, match="CD0485"):
        pe.check_gradient(quantized, (X,), wrt="x", digits=6)


def test_texts_have_the_statements_of_rules() -> None:
    g = pe.gradient(cubed, wrt="x")
    expected = g(X)
    assert np.array_equal(pe.cd_from_source(g.source, g.names)(X), expected)


def test_pickles_have_the_rules() -> None:
    f = pe.cd_from_source("def f(x):\n    y = 2 * x\n    return y\n")
    f.vjp_rule(pe.cd_from_source("def rule(d_y):\n    return 5.0 * d_y\n"))
    again = pickle.loads(pickle.dumps(pe.vjp(f, wrt="x")))  # noqa: S301
    assert again(1.0, 1.0) == 5.0
    plain = pe.cd_from_source("def f(x):\n    y = 2 * x\n    return y\n")
    again = pickle.loads(pickle.dumps(pe.vjp(plain, wrt="x")))  # noqa: S301
    assert again(1.0, 1.0) == 2.0


def refusal(text: str, rule: str, **options: Any) -> str:
    """Return what is said of a gradient of the sum of a function `f` with a rule."""
    names: dict[str, Any] = {"np": np, "scale": W}
    f = names["f"] = pe.cd_from_source(f"def f(x, n=1):\n    {text}\n", names)
    with pytest.raises(TypeError) as raised:
        f.vjp_rule(pe.cd_from_source(f"def rule({rule}\n", names), **options)
        loss = pe.cd_from_source("def loss(x):\n    return np.sum(f(x))\n", names)
        pe.gradient(loss, wrt="x")(X)
    return str(raised.value)


@pytest.mark.parametrize(
    ("text", "rule", "says"),
    [
        ("y = 2 * x; return y", "d_z): return d_z", "CD0487.*`d_z` is nothing that a rule of `f`"),
        ("x[0] = 1.0; y = x * x; return y", "d_y): return d_y, None", "CD0487.*writes `x`"),
        ("return x[1:]", "d_result): return d_result, None", "CD0487.*an array that it is given"),
        ("y = 2 * x; return y", "d_y): return np.sum(d_y), None", r"CD0487.*shape \(\) for `x`"),
        ("y = 2 * x; return y", "d_y): return d_y", "CD0487.*a tuple, an item for each of 2"),
        ("y = 2 * x; return y", "d_y): return None, None", "CD0480.*`x`, for which the `vjp_rule`"),
        ("y = 2 * x; return y", "d_y): return d_y + 1j, None", "CD0487.*returns complex numbers"),
    ],
)
def test_what_does_not_fit_is_refused(text: str, rule: str, says: str) -> None:
    assert re.search(says, refusal(text, rule))


def test_unknown_parameters_are_refused() -> None:
    with pytest.raises(TypeError, match="CD0487.*`softplus` has no parameter `z`"):
        softplus.vjp_rule(softplus_vjp, wrt="z")
    power = pe.cd_from_source("def power(x, n):\n    return x**n\n")
    rule = pe.cd_from_source("def rule(x, n, t_x):\n    return n * x**(n - 1) * t_x\n")
    with pytest.raises(TypeError, match="CD0487.*takes tangents of `x`, and `wrt` names `x`, `n`"):
        power.jvp_rule(rule, wrt=("x", "n"))
    power.jvp_rule(wrt="x")(rule)
    f = pe.cd_from_source("def f(x):\n    return np.sum(p(x, 3))\n", {"np": np, "p": power})
    assert np.allclose(pe.gradient(f, wrt="x")(X), 3 * X**2)
    assert np.allclose(pe.jvp(f, wrt="x")(X, W), np.sum(3 * X**2 * W))


@cd
def wave(x: Any, k: Any) -> Any:
    y = k * np.sin(x)
    return y


@wave.vjp_rule
def wave_vjp(x: Any, k: Any, d_y: Any) -> Any:
    return k * np.cos(x) * d_y, np.sum(np.sin(x) * d_y)


def test_the_tangent_of_a_constant_is_zero() -> None:
    @cd
    def loss(x: Any) -> Any:
        return np.sum(wave(x, 3.0) ** 2)

    g = pe.gradient(loss, wrt="x")
    assert np.allclose(g(X), 9 * np.sin(2 * X))
    assert np.allclose(pe.jvp(loss, wrt="x")(X, W), np.sum(9 * np.sin(2 * X) * W))
    assert np.allclose(pe.jvp(g, wrt="x")(X, W), 18 * np.cos(2 * X) * W)


def test_the_cotangent_of_a_constant_output_is_zero() -> None:
    @cd
    def both(x: Any) -> Any:
        y = x * x
        c = 2.0
        return y, c

    both.vjp_rule(pe.cd_from_source("def rule(x, d_y, d_c):\n    return 2 * x * d_y + d_c\n"))

    @cd
    def loss(x: Any) -> Any:
        y, c = both(x)
        return np.sum(y) * c

    assert np.allclose(pe.gradient(loss, wrt="x")(X), 4 * X)


def test_a_rule_that_calls_its_function_has_derivatives_by_the_rule() -> None:
    @cd
    def steps(x: Any) -> Any:
        y = np.round(np.exp(x) * 1e6) / 1e6
        return y

    @steps.vjp_rule
    def steps_vjp(x: Any, d_y: Any) -> Any:
        return d_y * steps(x)

    @cd
    def loss(x: Any) -> Any:
        return np.sum(steps(x))

    g = pe.gradient(loss, wrt="x")
    second = pe.jvp(g, wrt="x")
    assert np.allclose(second(X, np.ones(5)), np.exp(X), rtol=1e-5)
    assert np.allclose(pe.vjp(g, wrt="x")(X, np.ones(5)), np.exp(X), rtol=1e-5)
    third = pe.jvp(second, wrt="x")(X, np.ones(5), np.ones(5))
    assert np.allclose(third, np.exp(X), rtol=1e-5)


@pytest.mark.parametrize(
    "rule",
    [
        "return np.clip(d_y, -1.0, 1.0) * x",
        "return d_y * np.minimum(1.0, 1.0 / np.sqrt(np.sum(d_y**2)))",
        "w = 1.0 * d_y\n    while np.max(np.abs(w)) > 1e-9:\n        w = w / 2\n    return w + d_y",
        "if np.max(np.abs(d_y)) > 0.0:\n        return x * d_y\n    return 0.0 * x",
    ],
)
def test_a_rule_that_is_not_linear_has_no_transpose(rule: str) -> None:
    names: dict[str, Any] = {"np": np}
    f = names["f"] = pe.cd_from_source("def f(x):\n    y = x * x\n    return y\n")
    f.vjp_rule(pe.cd_from_source(f"def rule(x, d_y):\n    {rule}\n", names))
    loss = pe.cd_from_source("def loss(x):\n    return np.sum(f(x))\n", names)
    assert np.all(np.isfinite(pe.gradient(loss, wrt="x")(W)))
    with pytest.raises(TypeError, match="CD0487.*not linear in `d_y`"):
        pe.jvp(loss, wrt="x")(W, W)


def test_a_parameter_without_a_derivative_is_no_constant() -> None:
    @cd
    def times(x: Any, w: Any) -> Any:
        y = x * w
        return y

    @times.vjp_rule(wrt="x")
    def times_vjp(w: Any, d_y: Any) -> Any:
        return d_y * w

    @cd
    def loss(x: Any, w: Any) -> Any:
        return np.sum(times(x, w) ** 2)

    assert np.allclose(pe.gradient(loss, wrt="x")(X, W), 2 * X * W * W)
    for derivative in (pe.gradient(loss, wrt="w"), pe.jvp(loss, wrt="w")):
        with pytest.raises(TypeError, match="CD0480.*`w`"):
            derivative(X, W, *([W] if "jvp" in repr(derivative) else []))


def test_defaults_of_the_function_reach_its_rule() -> None:
    @cd
    def power(x: Any, p: Any = 3.0) -> Any:
        y = x**p
        return y

    power.vjp_rule(lambda x, d_y, p=2.0: p * x ** (p - 1) * d_y, wrt="x")
    loss = cd(lambda x: np.sum(power(x)))
    assert np.allclose(pe.gradient(loss, wrt="x")(W), 3 * W**2)


def test_names_that_mean_two_things_are_refused() -> None:
    f = pe.cd_from_source("def f(x):\n    x = np.exp(x)\n    return x\n", {"np": np})
    with pytest.raises(TypeError, match="CD0487.*`x` is more than one thing"):
        f.vjp_rule(pe.cd_from_source("def rule(x, d_x):\n    return d_x * x\n"))
    g = pe.cd_from_source("def g(x, d_y):\n    y = x * d_y\n    return y\n")
    with pytest.raises(TypeError, match="CD0487.*`d_y` is more than one thing"):
        g.vjp_rule(pe.cd_from_source("def rule(x, d_y):\n    return d_y, x\n"))


def test_results_without_a_name_and_none_are_transposed() -> None:
    @cd
    def square(x: Any, n: Any) -> Any:
        return x**n

    @square.vjp_rule
    def square_vjp(x: Any, n: Any, d_result: Any) -> Any:
        return n * x ** (n - 1) * d_result, None

    loss = cd(lambda x: np.sum(square(x, 2)))
    assert np.allclose(pe.jvp(loss, wrt="x")(X, W), np.sum(2 * X * W))
    assert np.allclose(pe.jvp(pe.gradient(loss, wrt="x"), wrt="x")(X, W), 2 * W)
