"""Gradients as users ask for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd


@cd
def loss(x: Any, w: Any, b: Any, target: Any) -> Any:
    error = np.tanh(x @ w + b) - target
    return np.mean(error * error)


def arguments(rows: int = 4) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(rows)
    return rng.random((rows, 5)), rng.random((5, 3)), rng.random(3), rng.random((rows, 3))


def differences(at: int, values: tuple[Any, ...]) -> np.ndarray:
    out = np.zeros(np.shape(values[at]))
    for index in np.ndindex(*out.shape):
        ends = []
        for step in (1e-6, -1e-6):
            moved = [np.copy(value) for value in values]
            moved[at][index] += step
            ends.append(loss(*moved))
        out[index] = (ends[0] - ends[1]) / 2e-6
    return out


@pytest.mark.parametrize("rows", [1, 4, 7])
def test_gradients_are_those_of_differences(rows: int) -> None:
    values = arguments(rows)
    d_w, d_b = pe.gradient(loss, wrt=("w", "b"))(*values)
    np.testing.assert_allclose(d_w, differences(1, values), atol=1e-8)
    np.testing.assert_allclose(d_b, differences(2, values), atol=1e-8)


def test_one_name_gives_an_array_and_several_a_tuple() -> None:
    values = arguments()
    alone = pe.gradient(loss, wrt="w")(*values)
    (found,) = pe.gradient(loss, wrt=("w",))(*values)
    np.testing.assert_array_equal(alone, found)
    value, both = pe.value_and_gradient(loss, wrt=("w", "b"))(*values)
    assert value == loss(*values)
    np.testing.assert_array_equal(both[0], alone)


def test_the_source_is_a_function_of_the_language() -> None:
    g = pe.gradient(loss, wrt="b")
    with pytest.raises(ValueError, match="has no source yet"):
        _ = g.source
    text = g.text(*arguments())
    assert text == g.source and "d_b[j] = sum[i](" in text
    again = pe.cd_from_source(text, {"np": np})
    np.testing.assert_array_equal(again(*arguments()), g(*arguments()))


@pytest.mark.parametrize(
    ("function", "wrt", "message"),
    [
        (lambda x: x, "x", "of a `@cd` function"),
        (loss, "v", "no parameter `v`"),
        (cd(lambda x: np.sign(x * 2j)[0].real), "x", "has no derivative here"),
        (cd(lambda x: x * 2), "x", "does not return one number"),
        (cd(lambda x: np.argmax(x)), "x", "a number of int64"),
        (cd(lambda x: x.sum() * 1.0), "x", "`x` is of int64"),
    ],
)
def test_what_has_no_gradient_is_refused(function: Any, wrt: str, message: str) -> None:
    given = np.arange(3) if message.endswith("of int64`") or "`x` is of" in message else np.ones(3)
    with pytest.raises(TypeError, match=message):
        pe.gradient(function, wrt=wrt)(given)


def test_what_the_function_raises_is_raised() -> None:
    f = cd(guarded)
    assert pe.gradient(f, wrt="x")(np.ones(3)).tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(AssertionError):
        pe.gradient(f, wrt="x")(-np.ones(3))
    with pytest.raises(ValueError, match="too large"):
        pe.gradient(f, wrt="x")(np.full(3, 10.0))


def guarded(x: Any) -> Any:
    assert x[0] > 0
    if x.max() > 5:
        raise ValueError("too large")
    return (x * x).sum()


def test_a_singular_matrix_raises_as_the_function_does() -> None:
    f = cd(lambda a: np.linalg.inv(a).sum())
    with pytest.raises(ValueError, match="singular matrix"):
        pe.gradient(f, wrt="a")(np.zeros((2, 2)))
