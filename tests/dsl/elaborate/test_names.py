"""What a bare name is: parameter, local, captured object, letter, word in this order, or none."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals import idx
from plusequals.base.diagnostic import CdError, CdNameError
from tests.compare import assert_same
from tests.language.ask import run

X = np.array([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("params", "body", "names", "expected"),
    [
        ("x, exp", "return x * exp", {}, X * 2.0),
        ("x, n", "exp = 3.0\nreturn x * exp", {}, X * 3.0),
        ("x, n", "return exp(x)", {"exp": lambda v: v + 1.0}, X + 1.0),
        ("x, n", "return exp(x)", {"exp": np.negative}, -X),
        ("x, n", "return exp(x)", {}, np.exp(X)),
        ("x, n", "y[k] = x[k] * n\nreturn y", {}, X * 2.0),
        ("x, k", "y[i] = x[i] * k\nreturn y", {}, X * 2.0),
        ("x, n", "y[rows] = x[rows]\nreturn y", {"rows": idx.i}, X),
    ],
)
def test_the_nearest_meaning_counts(
    params: str, body: str, names: dict[str, object], expected: np.ndarray
) -> None:
    assert_same(run("numpy", params, body, X, 2.0, **names), expected)


def test_a_letter_on_both_sides_is_one_index_and_inside_a_reduction_another() -> None:
    body = "y[i] = x[i] * sum[k](x[k])\ns = sum(x[i] * x[i])\nreturn y, s"
    assert_same(run("numpy", "x", body, X), (X * 6.0, np.float64(14.0)))


def test_letters_of_a_reduction_without_names_are_those_not_on_the_left() -> None:
    a = np.arange(6.0).reshape(2, 3)
    assert_same(run("numpy", "a", "y[i] = sum(a[i, j])\nreturn y", a), a.sum(1))
    assert_same(run("numpy", "a", "y[j] = sum(a[i, j])\nreturn y", a), a.sum(0))


def test_an_inner_function_sees_the_names_around_it() -> None:
    body = "k = 2.0\ndef g(v):\n    return v * k + w\nreturn g(x)"
    assert_same(run("numpy", "x", body, X, w=1.0), X * 2.0 + 1.0)


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ("return soft(x)", "CD0201", "`soft` is not defined"),
        ("length = 2.0\nreturn x * lenght", "CD0201", "did you mean `length`?"),
        ("return i", "CD0201", "index letters stand inside subscripts"),
        ("y = y + x\nreturn y", "CD0202", "read before it is assigned"),
        ("y[i] += x[i]\nreturn y", "CD0202|CD0205", "`y`"),
        ("return f(x)", "CD0430", "calls itself"),
    ],
)
def test_a_name_that_is_nothing_is_told_with_what_is_near(body: str, code: str, said: str) -> None:
    with pytest.raises(CdError, match=code) as caught:
        run("numpy", "x", body, X)
    assert said in str(caught.value)
    if code == "CD0201":
        assert isinstance(caught.value, CdNameError)
