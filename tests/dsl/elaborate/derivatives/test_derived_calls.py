"""Derivatives that are called inside of functions under `@cd`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd

SCALE = np.array([1.0, 2.0, 3.0])


@cd
def loss(w: Any, x: Any, rate: Any) -> Any:
    return np.sum((w * x * SCALE) ** 2) * rate


@cd
def polynomial(x: Any) -> Any:
    return x**4 - 3 * x * x


@cd
def powers(x: Any, n: Any) -> Any:
    r = 1.0
    for _ in range(n):
        r = r * x
    return r


@cd
def chosen(x: Any, n: Any) -> Any:
    return np.sum(x.reshape(n, -1)[0] * x[0])


@cd
def weighted(x: Any, y: Any) -> Any:
    return np.sum(np.sort(x) * y)


of_weighted = pe.gradient(weighted, wrt="x")


@cd
def weighted_twice(x: Any, y: Any) -> Any:
    return np.sum(of_weighted(x, y) * x) + np.sum(of_weighted(y, y) * x)


value_and_gradient = pe.value_and_gradient(loss, wrt="w")
first = pe.gradient(polynomial, wrt="x")
second = pe.gradient(first, wrt="x")
of_powers = pe.gradient(powers, wrt="x")
of_chosen = pe.gradient(chosen, wrt="x")
backward = pe.backward(loss)


@cd
def step(w: Any, x: Any, rate: Any) -> Any:
    value, d_w = value_and_gradient(w, x, 2.0)
    w -= rate * d_w
    return value


@cd
def newton(x: Any, n: Any) -> Any:
    for _ in range(n):
        x -= first(x) / second(x)
    return x


@cd
def train(w: Any, x: Any) -> Any:
    value = backward(w, x, 1.0)
    w.value -= 0.1 * w.grad
    return value


def test_a_step_of_descent_is_one_function() -> None:
    w, x = np.ones(3), np.arange(3.0)
    assert step(w, x, 0.1) == loss(np.ones(3), x, 2.0)
    np.testing.assert_allclose(w, 1 - 0.1 * 4.0 * (x * SCALE) ** 2, rtol=1e-14)
    assert "loss_gradient(...)" in step.explain(w, x, 0.1).code


def test_captured_arrays_are_those_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    for size in range(2, 8):
        monkeypatch.setattr(sys.modules[__name__], "SCALE", np.full(size, float(size)))
        w = np.ones(size)
        assert step(w, np.ones(size), 0.0) == pytest.approx(2.0 * size**3)


def test_second_derivatives_in_loops() -> None:
    assert newton(3.0, 20) == pytest.approx(np.sqrt(1.5), rel=1e-14)


def test_words_of_sorts_in_the_source_of_a_derivative_are_found() -> None:
    x, y = np.array([0.5, 0.2, 0.9]), np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(weighted_twice(x, y), np.sum([2.0, 1.0, 3.0] * x + [1, 2, 3] * x))
    found = pe.gradient(weighted_twice, wrt="x")(x, y)
    np.testing.assert_allclose(found, [3.0, 3.0, 6.0])


def test_run_time_integers_are_passed_on() -> None:
    f = cd(lambda x, n: of_powers(x, n))
    for n in range(6):
        assert f(1.5, n) == pytest.approx(n * 1.5 ** (n - 1) if n else 0.0, rel=1e-14)


def test_integers_that_decide_statements_are_refused_unless_static() -> None:
    assert cd(lambda x: of_chosen(x, 2))(np.ones(4)).tolist() == [3.0, 1.0, 0.0, 0.0]

    def looped(x: Any, n: Any) -> Any:
        r = 0.0
        for k in range(1, n):
            r += of_chosen(x, k)[0]
        return r

    with pytest.raises(TypeError, match="CD0480.*cannot be derived where n are no constants"):
        cd(looped)(np.ones(12), 4)


def test_gradients_of_tensors_are_written() -> None:
    w = pe.tensor("w", (3,), dtype="float64", init=np.ones(3))
    x = np.array([1.0, 0.5, 0.25])
    assert train(w, x) == loss(np.ones(3), x, 1.0)
    np.testing.assert_allclose(w.value, 1 - 0.2 * (x * SCALE) ** 2, rtol=1e-14)


SCRIPT = """
import numpy as np, plusequals as pe
from plusequals import cd
@cd
def loss(w): return np.sum(w * w) * {factor}
d_loss = pe.gradient(loss, wrt="w")
@cd
def step(w): return d_loss(w)
print(step(np.ones(2))[0])
"""


def test_another_process_derives_the_function_that_it_has(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    for factor in ("1.0", "1.0", "3.0"):
        path.write_text(SCRIPT.format(factor=factor), encoding="utf-8")
        ran = subprocess.run(
            [sys.executable, path], env=environment(tmp_path), capture_output=True, check=True,
            text=True,
        )  # fmt: skip
        assert float(ran.stdout) == 2 * float(factor)


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "PLUSEQUALS_CACHE_DIR": str(folder / "cache")}


def test_what_a_derivative_captures_is_compared_in_each_call() -> None:
    names: dict[str, Any] = {"np": np, "K": 2.0, "c": type("C", (), {"k": 2.0})()}
    names["helper"] = lambda x: x * x
    text = "def f(x):\n    return np.sum(helper(x)) * K * c.k\n"
    names["g"] = g = pe.gradient(pe.cd_from_source(text, names), wrt="x")
    step = pe.cd_from_source("def step(x):\n    return g(x)\n", names)
    x = np.ones(2)
    assert step(x)[0] == g(x)[0] == 8.0
    names["K"] = 3.0
    assert step(x)[0] == g(x)[0] == 12.0
    names["c"].k = 5.0
    assert step(x)[0] == g(x)[0] == 30.0
    names["helper"] = lambda x: x * x * x
    assert step(x)[0] == g(x)[0] == 45.0


def test_a_rule_that_is_replaced_reaches_functions_that_call_the_derivative() -> None:
    names: dict[str, Any] = {"np": np}
    f = names["f"] = pe.cd_from_source("def f(x):\n    y = 1.0 * x\n    return y\n")
    loss = pe.cd_from_source("def loss(x):\n    return np.sum(f(x))\n", names)
    names["g"] = pe.gradient(loss, wrt="x")
    step = pe.cd_from_source("def step(x):\n    return g(x)\n", names)
    found = [step(np.ones(2))[0]]
    for factor in (2.0, 5.0):
        f.vjp_rule(pe.cd_from_source(f"def rule(d_y):\n    return {factor} * d_y\n"))
        found.append(step(np.ones(2))[0])
    assert found == [1.0, 2.0, 5.0]


def test_a_test_that_is_known_at_run_time_only_is_refused() -> None:
    plain = cd(lambda x, negative: np.sum(-x * x) if negative else np.sum(x * x * x))
    g = pe.gradient(plain, wrt="x")
    caller = cd(lambda x, a: g(x, a > 2.0))
    with pytest.raises(TypeError, match="CD0480.*a test that is known at run time only"):
        caller(np.ones(2), 1.0)
    either = cd(lambda x, a: g(x, True) if a > 2.0 else g(x, False))
    assert np.array_equal(either(np.ones(2), 1.0), [3.0, 3.0])
