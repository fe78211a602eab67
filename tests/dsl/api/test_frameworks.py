"""Functions under `@cd` in JAX and PyTorch, where these are installed."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from plusequals import cd
from plusequals.dsl.api.frameworks import _Kinds

RNG = np.random.default_rng(8)
X, W = RNG.random((3, 4)), RNG.random((4, 2))


@cd
def layer(x: Any, w: Any, k: Any) -> Any:
    y = np.tanh(x @ w) * k
    s = y.sum(axis=0)
    return y, s


@cd
def chosen(x: Any, i: Any) -> Any:
    return (x[i] * x[i]).sum()


@cd
def writes(x: Any) -> Any:
    x += 1.0
    return x.sum()


@pytest.fixture(scope="module")
def jax() -> Any:
    module = pytest.importorskip("jax")
    module.config.update("jax_enable_x64", True)
    return module


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch")


def test_jax_differentiates_compiles_and_maps(jax: Any) -> None:
    f = layer.jax()

    def ours(x: Any, w: Any) -> Any:
        y, s = f(x, w, 2.0)
        return (y * y).sum() + (s**3).sum()

    def theirs(x: Any, w: Any) -> Any:
        y = jax.numpy.tanh(x @ w) * 2.0
        return (y * y).sum() + (y.sum(axis=0) ** 3).sum()

    expected = jax.grad(theirs, (0, 1))(X, W)
    for found in (jax.grad(ours, (0, 1))(X, W), jax.jit(jax.grad(ours, (0, 1)))(X, W)):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
    many = RNG.random((5, 3, 4))
    mapped = jax.jit(jax.vmap(jax.grad(ours), (0, None)))(many, W)
    np.testing.assert_allclose(mapped, jax.vmap(jax.grad(theirs), (0, None))(many, W), rtol=1e-12)


def test_jax_gives_integers_no_derivative_and_conjugates_complex_ones(jax: Any) -> None:
    at = np.array([0, 2])
    found = jax.grad(lambda x: chosen.jax()(x, at))(np.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(found, [2.0, 0.0, 6.0])
    z = np.array([1 + 2j, 3 - 1j])
    ours = jax.grad(cd(lambda z: np.sum(np.abs(z) ** 2)).jax())(z)
    theirs = jax.grad(lambda z: jax.numpy.sum(jax.numpy.abs(z) ** 2))(z)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_torch_differentiates_and_compiles(torch: Any) -> None:
    f = layer.torch()

    def ours(x: Any, w: Any) -> Any:
        y, s = f(x, w, 2.0)
        return (y * y).sum() + (s**3).sum()

    def theirs(x: Any, w: Any) -> Any:
        y = torch.tanh(x @ w) * 2.0
        return (y * y).sum() + (y.sum(dim=0) ** 3).sum()

    def gradients(loss: Any) -> Any:
        x, w = (torch.tensor(v, requires_grad=True) for v in (X, W))
        loss(x, w).backward()
        return x.grad.numpy(), w.grad.numpy()

    compiled = torch.compile(ours, backend="aot_eager")
    for found in (gradients(ours), gradients(compiled)):
        for one, other in zip(found, gradients(theirs), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)


def test_torch_gives_integers_no_derivative(torch: Any) -> None:
    x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    chosen.torch()(x, torch.tensor([0, 2])).backward()
    np.testing.assert_array_equal(x.grad, [2.0, 0.0, 6.0])


def test_functions_that_write_are_refused(request: pytest.FixtureRequest) -> None:
    for name in ("jax", "torch"):
        if name in sys.modules:
            module = request.getfixturevalue(name)
            given = module.numpy.ones(2) if name == "jax" else module.ones(2)
            with pytest.raises(TypeError, match="it writes its arguments"):
                getattr(writes, name)()(given)


class Tensor:
    """An array of a framework that has types of its own."""

    def __init__(self, values: Any, dtype: str) -> None:
        self.values, self.dtype, self.shape = values, dtype, np.shape(values)

    def __array__(self, *_: Any, **__: Any) -> Any:
        return np.asarray(self.values)


def kinds(function: Any) -> Any:
    return _Kinds(function, lambda v: isinstance(v, Tensor), lambda kind: lambda *a: kind(a)[0], {})


def test_numbers_are_told_apart_as_they_are_written() -> None:
    f = kinds(cd(lambda x, k: x / (1.0 / (k + np.sum(x * 0.0)))))
    x = Tensor([1.0, 2.0], "float64")
    with np.errstate(all="ignore"):
        for k in (1.0, 1, True, 2.0, float("nan"), float("nan")):
            np.testing.assert_array_equal(f(x, k), np.array([1.0, 2.0]) * k)
        signed = kinds(cd(lambda x, k: np.copysign(x, k)))
        assert signed(x, 0.0).tolist() == [1.0, 2.0]
        assert signed(x, -0.0).tolist() == [-1.0, -2.0]
    assert len(f.known) == 5


def test_types_that_numpy_has_not_are_refused() -> None:
    with pytest.raises(TypeError, match=r"CD0486.*NumPy has no type torch.quint4x2"):
        kinds(chosen)(Tensor([1.0], "torch.quint4x2"), 0)


@pytest.mark.parametrize("name", ["jax", "torch"])
def test_a_framework_that_is_missing_is_told(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(TypeError, match=f"CD0486.*`{name}` is not installed"):
        getattr(layer, name)()
