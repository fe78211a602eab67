"""Gradients held against differences: what the report says, and what it finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd


@cd
def loss(x: Any, w: Any, s: Any) -> Any:
    error = np.tanh(x @ w) - s
    return np.mean(error * error)


@cd
def rectified(x: Any) -> Any:
    return np.sum(np.maximum(x, 0.0))


@cd
def in_place(x: Any) -> Any:
    x *= x
    y[i] = x[i] * i
    return np.sum(y)


def arguments(rows: int = 4, dtype: str = "float64") -> tuple[Any, ...]:
    rng = np.random.default_rng(rows)
    return rng.random((rows, 5)).astype(dtype), rng.random((5, 3)).astype(dtype), 0.5


@pytest.mark.parametrize(("dtype", "digits"), [("float64", 8), ("float32", 2)])
def test_a_right_gradient_agrees_in_nearly_all_digits(dtype: str, digits: int) -> None:
    report = pe.check_gradient(loss, arguments(dtype=dtype), wrt=("x", "w"), digits=digits)
    assert report.digits >= digits
    assert [one.name for one in report.parameters] == ["x", "w"]
    assert [one.count for one in report.parameters] == [20, 15]
    assert report.disagreement == max(one.disagreement for one in report.parameters)


def test_large_arrays_are_checked_along_directions() -> None:
    report = pe.check_gradient(loss, arguments(30), wrt=("x", "w"), digits=8)
    assert [one.by_element for one in report.parameters] == [False, True]
    assert "8 directions" in str(report)


def test_numbers_and_empty_arrays_have_gradients() -> None:
    f = cd(lambda s, x: s * s + np.sum(x))
    report = pe.check_gradient(f, (0.75, np.zeros(0)), wrt=("s", "x"), digits=9)
    assert [one.count for one in report.parameters] == [1, 0]


def test_arguments_stay_as_they_are() -> None:
    x = np.array([0.5, -1.5, 2.0])
    assert pe.check_gradient(in_place, (x,), wrt="x", digits=9).digits > 9
    assert x.tolist() == [0.5, -1.5, 2.0]


def test_the_text_is_a_table() -> None:
    x = np.array([1.0, 3.0])
    f = cd(lambda x: x[0] * x[1])
    lines = str(pe.check_gradient(f, (x,), wrt="x")).split("\n")
    assert lines[0].split() == "parameter shape compared at gradient differences digits".split()
    assert lines[1].startswith("x          (2,)   2 elements  [")


def wrong(function: Any, wrt: Any) -> Any:
    """Return a gradient whose second element is wrong."""

    def call(*args: Any) -> Any:
        (found,) = pe.gradient(function, wrt)(*args)
        found[1] *= 1.001
        return (found,)

    return call


def test_the_first_disagreement_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    f = cd(lambda x: np.sum(x * x))
    monkeypatch.setattr("plusequals.dsl.api.gradient_check.gradient", wrong)
    x = np.array([1.0, 2.0, 3.0])
    report = pe.check_gradient(f, (x,), wrt="x")
    (one,) = report.parameters
    assert one.index == (1,) and abs(one.derivative - 4.004) < 1e-9 and one.reference == 4.0
    assert 2.9 < report.digits < 3.1
    with pytest.raises(ValueError, match=r"CD0485.*`x\[1\]` is 4\.004, differences give 4: 3\.0"):
        pe.check_gradient(f, (x,), wrt="x", digits=6)
    monkeypatch.setattr("plusequals.dsl.api.gradient_check._FEW", 1)
    with pytest.raises(ValueError, match="`x along direction 0`"):
        pe.check_gradient(f, (x,), wrt="x", digits=6)


def test_a_kink_is_no_disagreement_to_be_sure_of() -> None:
    x = np.array([1.0, 0.0])
    with pytest.raises(ValueError, match="is there a kink"):
        pe.check_gradient(rectified, (x,), wrt="x", digits=6)
    assert pe.check_gradient(rectified, (x + 1e-3,), wrt="x", digits=6).digits > 6


def test_arguments_come_in_a_tuple() -> None:
    no_tuple: Any = np.ones(2)
    with pytest.raises(TypeError, match="CD0875"):
        pe.check_gradient(rectified, no_tuple, wrt="x")


def test_what_is_constant_by_steps_is_told() -> None:
    @cd
    def steps(p: Any, q: Any) -> Any:
        return np.sum(np.round(p) * 2.0) + np.sum(q)

    report = str(pe.check_gradient(steps, (np.array([1.3, 7.2]), np.ones(2)), wrt=("p", "q")))
    assert "all derivatives in `p` are 0" in report
