"""How tests run a function on a backend, copy its arguments, and compare what came out."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from plusequals.base import settings


def run_on(backend: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return `function(*args, **kwargs)` with that backend as the default device."""
    with settings.override(backend):
        return function(*args, **kwargs)


def copied(value: Any) -> Any:
    """Return a deep copy whose arrays keep their memory layout and what they share."""
    return copy.deepcopy(value)


def assert_same(got: Any, expected: Any, rtol: float = 1e-9, where: str = "result") -> None:
    """Compare values, dtypes and shapes, through tuples and dictionaries.

    Integers and bools are compared exactly, floats relative to the largest finite value of their
    array, NaN and infinities by place. Raises AssertionError.
    """
    if isinstance(expected, dict):
        assert got.keys() == expected.keys(), where
        for key in expected:
            assert_same(got[key], expected[key], rtol, f"{where}[{key!r}]")
    elif isinstance(expected, tuple | list):
        assert isinstance(got, tuple | list) and len(got) == len(expected), where
        for n, (one, other) in enumerate(zip(got, expected)):
            assert_same(one, other, rtol, f"{where}[{n}]")
    elif expected is None or isinstance(expected, str):
        assert got == expected, where
    else:
        _assert_arrays(np.asarray(got), np.asarray(expected), rtol, where)


def _assert_arrays(got: np.ndarray, expected: np.ndarray, rtol: float, where: str) -> None:
    assert got.dtype == expected.dtype, f"{where}: dtype {got.dtype}, not {expected.dtype}"
    assert got.shape == expected.shape, f"{where}: shape {got.shape}, not {expected.shape}"
    if expected.dtype.kind not in "fc":
        np.testing.assert_array_equal(got, expected, err_msg=where)
        return
    finite = np.abs(expected[np.isfinite(expected)])
    largest = float(finite.max()) if finite.size else 0.0
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=rtol * largest, err_msg=where)
