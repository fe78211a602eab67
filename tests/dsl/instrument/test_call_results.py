"""Checked mode in library calls: their results are checked, and errors name the user's line."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdError


def _run(text: str, backend: str, *arguments: object) -> object:
    function = pe.cd_from_source(f"def f(x, b):\n    {text}\n", {"np": np}, backend=backend)
    with pe.checked(overflow=True):
        return function(*arguments)


def _error(text: str, backend: str, *arguments: object) -> CdError:
    with pytest.raises(CdError) as caught:
        _run(text, backend, *arguments)
    return caught.value


_SORTED = ["np.sort(x)", "np.argsort(x)", "np.lexsort((b, x))", "np.median(x)"]


@pytest.mark.parametrize("text", [*_SORTED, "np.percentile(x, 30)", "np.isin(x, b)"])
@pytest.mark.parametrize("dtype", ["f8", "i8", "u8"])
@pytest.mark.parametrize("size", [3, 100])
def test_keys_may_wrap_around(text: str, dtype: str, size: int) -> None:
    x = np.random.default_rng(0).integers(0, 2**64 - 1, size, "u8")
    x = x / 2.0**64 if dtype == "f8" else x.view(dtype)
    x = x if dtype == "f8" or text.startswith(("np.sort", "np.a", "np.l", "np.i")) else x >> 2
    found = _run(f"return {text}", "numpy", x, x[::-1].copy())
    assert np.allclose(found, eval(text, {"np": np, "x": x, "b": x[::-1]}), rtol=1e-15)


@pytest.mark.parametrize(
    "text",
    ["np.sort(x)", "np.median(x)", "np.percentile(x, 30)", "np.partition(x, 1)", "np.unwrap(x)"],
)
def test_a_given_nan_is_no_error_in_a_call(text: str, backend: str) -> None:
    x = np.array([1.0, np.nan, 2.0])
    found = _run(f"return {text}", backend, x, x)
    assert np.array_equal(found, eval(text, {"np": np, "x": x}), equal_nan=True)


def test_a_nan_that_is_sorted_in_place_is_no_error(backend: str) -> None:
    x = np.array([[2.0, np.nan, 1.0], [3.0, 2.0, 1.0]])
    _run("for k in range(2):\n        x[k].sort()", backend, x, x)
    assert np.array_equal(x, [[1.0, 2.0, np.nan], [1.0, 2.0, 3.0]], equal_nan=True)


def test_a_nan_that_a_call_discards_is_no_error(backend: str) -> None:
    x, xp, fp = np.array([1.5]), np.array([1.0, 2.0]), np.array([-np.inf, 5.0])
    text = "return np.interp(x, b[0], b[1])"
    found = _run(text, backend, x, np.array([xp, fp]))
    assert np.array_equal(found, np.interp(x, xp, fp), equal_nan=True)


def _calls_that_make_nans() -> Iterator[tuple[str, np.ndarray, str]]:
    infinite = np.array([[1.0, np.inf], [np.inf, 1.0]])
    yield "return np.linalg.solve(x, x)", infinite, "CD0765"
    yield "return np.linalg.det(x)", np.array([[1, np.inf], [np.inf, np.inf]]), "CD0765"
    yield "return np.nancumsum(x)", np.array([1.0, np.inf, -np.inf]), "CD0765"
    yield (
        "for k in range(2):\n        x[k] = np.linalg.solve(x[k], x[k])",
        np.array([np.eye(2), infinite]),
        "CD0765",
    )
    yield "return np.unwrap(x, period=b[0, 0] - b[0, 0])", np.array([1.0, 2.0]), "CD0764"


@pytest.mark.parametrize(("text", "x", "code"), list(_calls_that_make_nans()))
def test_an_error_in_a_call_names_the_line_of_the_user(
    text: str, x: np.ndarray, code: str, backend: str
) -> None:
    why = _error(text, backend, x.copy(), np.eye(2))
    span = why.diagnostics[0].labels[0].span
    assert why.code == code and "library" not in str(why), why
    assert ", at k = 1" in str(why) or "for k" not in text
    assert span.text.startswith("np.") and span.line == 2 + text.count("\n"), why


@pytest.mark.parametrize("text", ["np.sort(x / b)", "np.median(x / b)", "np.interp(x / b, x, x)"])
def test_arguments_of_calls_are_checked(text: str, backend: str) -> None:
    why = _error(f"return {text}", backend, np.ones(3), np.array([1.0, 0.0, 1.0]))
    assert "at i = 1: x[i] = 1.0, b[i] = 0.0" in str(why)


@pytest.mark.parametrize("text", ["np.ediff1d(x)", "np.diff(x)", "np.unwrap(x, period=7)"])
def test_steps_of_integers_that_do_not_fit_are_errors(text: str, backend: str) -> None:
    x = np.array([-128, 127], np.int8)
    assert _error(f"return {text}", backend, x, x).code == "CD0766"


@pytest.mark.parametrize("shape", [(0, 1), (2, 0), (0,), (1, 1)])
def test_calls_on_arrays_without_elements_are_checked(shape: tuple[int, ...], backend: str) -> None:
    f = pe.cd_from_source(
        "def f(x):\n    x -= np.interp(x, [0, 1, 1], [1, 1, 1])\n", {"np": np}, backend=backend
    )
    x = np.zeros(shape)
    with pe.checked():
        f(x)
    np.testing.assert_array_equal(x, np.full(shape, -1.0))
