"""Results of sizes that the run decides, views, and what is nested come back the short way."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from typing import Any, NamedTuple

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


class Pair(NamedTuple):
    """What a function may make and return."""

    first: Any
    second: Any


def test_views_of_arguments_and_what_is_nested_come_back_as_the_long_way_has_them() -> None:
    x, z = np.arange(12.0).reshape(3, 4), np.array([1 + 2j, 3j])
    fixed = x.copy()
    fixed.flags.writeable = False
    for text, args in (
        ("def f(x):\n    return x[1:, ::-2]", (x,)),
        ("def f(x):\n    return x.T, x[:0], x.reshape(-1)[2:]", (x[:, ::-1],)),
        ("def f(x):\n    return x[1:]", (fixed,)),
        ("def f(z):\n    return z.real, (z * 2).imag, [z[1:]]", (z,)),
        ("def f(x, n):\n    return divmod(n, 3), (x + 1, (n,))", (x, 7)),
        ("def f(x, p):\n    return Pair(p.first * 2, x.sum()), p", (x, Pair(2.0, x))),
    ):
        f = pe.cd_from_source(text, {"Pair": Pair})
        (expected,) = (f.on("numpy")(*args),)
        for got in repeated(f, lambda f=f, args=args: f(*args)):
            _same(got, expected)


def _same(one: Any, other: Any) -> None:
    """Assert that two values are of one structure, and arrays views of the same or of none."""
    assert type(one) is type(other)
    if isinstance(one, tuple | list):
        for each, of_other in zip(one, other, strict=True):
            _same(each, of_other)
        return
    np.testing.assert_array_equal(one, other)
    if isinstance(one, np.ndarray) and one.size:
        assert (one.strides, one.flags.writeable) == (other.strides, other.flags.writeable)
        assert np.shares_memory(one, other) or one.base is not other.base or one.base is None
