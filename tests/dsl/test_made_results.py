"""Results that compiled code has made, of sizes that the run decides, come back the short way."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plusequals as pe

pytestmark = pytest.mark.usefixtures("short_way")


def made(text: str) -> Any:
    return pe.cd_from_source(textwrap.dedent(text), {"np": np})


def repeated(function: Any, call: Callable[[], Any]) -> list[Any]:
    """What several calls return, for which there is a plan."""
    call(), call(), call()
    assert len(function._plans) == 1
    return [call() for _ in range(3)]


@pytest.mark.parametrize("size", [0, 1, 7, 400, 513, 6000])
def test_results_of_sizes_that_the_run_decides(size: int) -> None:
    """Small ones are copied into arrays, the memory of others becomes that of an array."""
    text = """
        def f(x, n):
            y = x[:n[0]]
            return y.copy(), 5, y > 2, np.zeros((int(n[0]), 0)), y[:, None] * x[:2]
    """
    f, x, n = made(text), np.arange(6000.0), np.array([size])
    expected = (x[:size], 5, x[:size] > 2, np.zeros((size, 0)), x[:size, None] * x[:2])
    results = repeated(f, lambda: f(x, n))
    for got in results:
        for mine, wanted in zip(got, expected, strict=True):
            np.testing.assert_array_equal(mine, wanted)
            if isinstance(mine, np.ndarray):
                assert mine.dtype == wanted.dtype and mine.flags.c_contiguous
                assert mine.flags.writeable and mine.flags.aligned
    if size:
        results[0][0][0] = 9
        assert results[1][0][0] == x[0] == 0


def test_memory_of_such_results_is_given_back() -> None:
    f, x, n = made("def f(x, n):\n    return x[:n[0]] + 1"), np.ones(1000), np.array([999])
    kept = [one.base for one in repeated(f, lambda: f(x, n))]
    assert [type(owner).__name__ for owner in kept] == ["PyCapsule"] * len(kept)
    count = sys.getrefcount(x.dtype)
    for _ in range(50):
        f(x, n)
    assert sys.getrefcount(x.dtype) < count + 9, "each array counts once, until it is gone"


def test_no_memory_for_such_a_result() -> None:
    f, n = made("def f(n):\n    return np.zeros(n[0])"), np.array([3])
    repeated(f, lambda: f(n))
    n[0] = 2**60
    with pytest.raises(pe.CdError, match="not enough memory"):
        f(n)
    n[0] = 2
    np.testing.assert_array_equal(f(n), [0, 0])
