"""Derivatives of all kinds, as users ask for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd
from plusequals.base.diagnostic import CdTypeError

RNG = np.random.default_rng(3)
X, W, T = RNG.random((3, 4)), RNG.random((4, 2)), RNG.random((3, 2))


@cd
def layer(x: Any, w: Any) -> Any:
    y = np.tanh(x @ w)
    s = y.sum(axis=0)
    return y, s


@cd
def updated(out: Any, x: Any) -> Any:
    out[i] = sin(x[i]) * x[wrap(i + 1)]
    x *= 2.0


@cd
def loss(w: Any, x: Any, t: Any) -> Any:
    error = x @ w - t
    return np.sum(error**4)


def test_products_with_a_jacobian_from_both_sides_are_equal() -> None:
    d_y, d_s, t_x, t_w = RNG.random((3, 2)), RNG.random(2), RNG.random((3, 4)), RNG.random((4, 2))
    d_x, d_w = pe.vjp(layer, wrt=("x", "w"))(X, W, d_y, d_s)
    t_y, t_s = pe.jvp(layer, wrt=("x", "w"))(X, W, t_x, t_w)
    assert d_x.shape == X.shape and t_s.shape == (2,)
    forward = (d_y * t_y).sum() + (d_s * t_s).sum()
    assert (d_x * t_x).sum() + (d_w * t_w).sum() == pytest.approx(forward, rel=1e-13)


def test_cotangents_and_tangents_are_given_by_name_too() -> None:
    g = pe.vjp(layer, wrt="x", outputs="s")
    by_position = g(X, W, np.ones(2))
    np.testing.assert_array_equal(by_position, g(X, w=W, d_s=np.ones(2)))
    assert "d_s" in g.source and g.source.startswith("def layer_vjp(x, w, d_s):")
    for given in [(X, W), (X, W, np.ones(2), np.ones(2))]:
        with pytest.raises(TypeError, match="is called with the wrong arguments"):
            g(*given)
    with pytest.raises(TypeError, match="no output `z`: there is `y`, `s`"):
        pe.vjp(layer, wrt="x", outputs="z")(X, W, 1.0)


def test_arguments_that_are_written_are_outputs_and_inputs() -> None:
    x = RNG.random(5)
    expected = np.cos(x) * np.roll(x, -1) + np.sin(np.roll(x, 1))
    out, given = np.zeros(5), x.copy()
    d_x = pe.vjp(updated, wrt="x")(out, given, np.ones(5), np.zeros(5))
    np.testing.assert_allclose(d_x, expected, rtol=1e-14)
    np.testing.assert_array_equal(given, 2 * x)
    np.testing.assert_array_equal(out, np.sin(x) * np.roll(x, -1))
    t_out = pe.jvp(updated, wrt="x", outputs="out")(np.zeros(5), x.copy(), np.ones(5))
    assert t_out.sum() == pytest.approx(expected.sum(), rel=1e-13)
    t_x = pe.jvp(updated, wrt="x", outputs="x")(np.zeros(5), x.copy(), np.ones(5))
    np.testing.assert_array_equal(t_x, np.full(5, 2.0))


def test_derivatives_have_derivatives() -> None:
    w, direction = RNG.random((4, 2)), RNG.random((4, 2))
    product = pe.jvp(pe.gradient(loss, wrt="w"), wrt="w")
    error = X @ w - T
    expected = X.T @ (12 * error**2 * (X @ direction))
    np.testing.assert_allclose(product(w, X, T, direction), expected, rtol=1e-12)
    assert product.source.startswith("def loss_gradient_jvp(w, x, t, t_w):")
    second = pe.gradient(pe.gradient(cd(lambda x: np.sin(x) * x), wrt="x"), wrt="x")
    assert second(0.7) == pytest.approx(2 * np.cos(0.7) - 0.7 * np.sin(0.7), rel=1e-14)


@cd
def fitted(w: Any, b: Any, x: Any, t: Any) -> Any:
    p[n] = sum(x[n, i] * w[i]) + b
    return np.mean((p - t) ** 2)


def tensors() -> tuple[Any, Any]:
    w = pe.tensor("w", (4,), dtype="float64", init=np.arange(4.0))
    return w, pe.tensor("b", (), dtype="float64", init=0.5)


def test_gradients_of_tensors_are_written_into_their_fields() -> None:
    w, b = tensors()
    step = pe.backward(fitted)
    expected = pe.gradient(fitted, wrt=("w", "b"))(np.arange(4.0), 0.5, X, T[:, 0])
    assert step(w, b, X, T[:, 0]) == fitted(w, b, X, T[:, 0])
    np.testing.assert_allclose(w.grad, expected[0], rtol=1e-14)
    assert float(b.grad[...]) == pytest.approx(expected[1], rel=1e-14)
    assert "    w.grad[i] = sum[n](d_total[n] * x[n, i])" in step.source
    pe.backward(fitted, wrt="w", accumulate=True)(w, b, X, T[:, 0])
    assert float(b.grad[...]) == pytest.approx(expected[1], rel=1e-14)
    np.testing.assert_allclose(w.grad, 2 * expected[0], rtol=1e-14)


def test_a_tensor_that_is_written_has_the_gradient_of_its_first_value() -> None:
    w, b = tensors()

    def squared(w: Any) -> Any:
        w *= 2.0
        return (w * w).sum()

    for accumulate, factor in ((False, 8), (True, 8 + 16)):
        before = np.array(w.value)
        pe.backward(cd(squared), accumulate=accumulate)(w)
        np.testing.assert_array_equal(w.value, 2 * before)
        np.testing.assert_array_equal(w.grad, factor * np.arange(4.0))


def test_a_step_with_gradients_is_recorded_in_a_plan() -> None:
    w, b = tensors()
    total, x, t = pe.tensor("total", (), dtype="float64"), np.copy(X), np.copy(T[:, 0])

    @cd
    def fit(total: Any, w: Any, b: Any, x: Any, t: Any) -> None:
        total[...] = fitted(w, b, x, t)

    @cd
    def descend(p: Any) -> None:
        p.value -= 0.1 * p.grad

    step = pe.backward(fit, loss="total")

    with pe.plan() as plan:
        step(total, w, b, x, t)
        descend(w)
        descend(b)
    plan.run()
    plan.run()
    by_hand, bias = np.arange(4.0), 0.5
    for _ in range(2):
        d_w, d_b = pe.gradient(fitted, wrt=("w", "b"))(by_hand, bias, x, t)
        by_hand, bias = by_hand - 0.1 * d_w, bias - 0.1 * d_b
    np.testing.assert_allclose(w.value, by_hand, rtol=1e-12)


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (cd(lambda w: w.T[1:]), (W,), "it returns a view, a part or a list"),
        (cd(lambda w: w.shape), (W,), "it returns and writes no floats"),
        (cd(lambda w: (w > 0).sum()), (W,), "it returns and writes no floats"),
    ],
)
def test_what_has_no_output_is_refused(function: Any, arguments: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        pe.vjp(function, wrt="w")(*arguments, 1.0)


def test_tensors_whose_gradients_the_function_uses_are_refused() -> None:
    w, _ = tensors()
    with pytest.raises(TypeError, match=r"`w.grad` is used by the function itself"):
        pe.backward(cd(lambda w: (w.value * w.grad).sum()))(w)
    with pytest.raises(TypeError, match="`v` is no tensor of floats that it reads"):
        pe.backward(cd(lambda w: (w * w).sum()), wrt="v")(w)


@cd
def network(params: Any, x: Any) -> Any:
    h = x
    for w, b in params:
        h = np.tanh(h @ w + b)
    return np.sum(h * h)


class Owner:
    def __init__(self) -> None:
        self.w = np.arange(3.0)


def test_tuples_and_lists_have_cotangents_of_their_form() -> None:
    params = [(RNG.random((4, 3)), RNG.random(3)), (RNG.random((3, 2)), RNG.random(2))]
    g = pe.value_and_gradient(network, wrt=("params", "x"))
    value, (d_params, d_x) = g(params, X)
    assert value == network(params, X) and isinstance(d_params, list)
    assert [tuple(one.shape for one in pair) for pair in d_params] == [
        ((4, 3), (3,)),
        ((3, 2), (2,)),
    ]
    alone = pe.gradient(network, wrt="params[1][0]")(params, X)
    np.testing.assert_allclose(alone, d_params[1][0], rtol=1e-14)
    again = pe.cd_from_source(g.source, g.names)(params, X)
    assert again[0] == value
    np.testing.assert_allclose(again[1][0][0][1], d_params[0][1], rtol=1e-14)
    np.testing.assert_allclose(again[1][1], d_x, rtol=1e-14)


def test_attributes_have_cotangents() -> None:
    f = cd(lambda model, x: np.sum(model.w * x * x))
    model, x = Owner(), np.array([1.0, 2.0, 3.0])
    d_w, d_x = pe.gradient(f, wrt=("model.w", "x"))(model, x)
    np.testing.assert_array_equal(d_w, x * x)
    np.testing.assert_array_equal(d_x, 2 * model.w * x)
    assert pe.jvp(f, wrt="model.w")(model, x, t_model_w=np.ones(3)) == 14.0
    with pytest.raises(TypeError, match="`model` is no array or run-time number"):
        pe.gradient(f, wrt="model")(model, x)


def test_cotangents_and_tangents_may_be_the_written_array() -> None:
    f = pe.cd_from_source("def f(x, y):\n    x[:] = x * x * y\n", {}, backend="numpy")
    given, y = np.array([1.0, 2.0]), np.array([0.5, 0.25])
    for derivative in (pe.vjp(f, wrt=("x", "y")), pe.jvp(f, wrt="x")):
        x = given.copy()
        np.testing.assert_array_equal(derivative(x, y, x), derivative(given.copy(), y, given))
        np.testing.assert_array_equal(x, given * given * y)
    with pytest.raises(CdTypeError, match="CD0480.*`y` is `x`, which is written"):
        pe.vjp(f, wrt=("x", "y"))(x, x, y)
