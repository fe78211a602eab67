"""Runs of compiled kernels: arguments, results, faults, prints, and steps of the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdError

from .on_cpu import CpuDriver, backend, installed, needs_gxx

Array = np.ndarray[Any, Any]


def both(text: str, *arguments: Any, driver: CpuDriver | None = None) -> tuple[Any, Any]:
    """Return what a function gives on the device and interpreted, its arguments behind that."""
    out = []
    for name in ("cuda", "numpy"):
        own = [np.array(a, copy=True) if isinstance(a, np.ndarray) else a for a in arguments]
        with installed(backend(driver)):
            given = pe.cd_from_source(text, {"np": np}, backend=name)(*own)
        out.append([*(given if isinstance(given, tuple) else (given,)), *own])
    return out[0], out[1]


def assert_same(pair: tuple[Any, Any]) -> None:
    for one, other in zip(*pair, strict=True):
        assert np.asarray(one).dtype == np.asarray(other).dtype
        np.testing.assert_allclose(one, other, rtol=1e-6)


@needs_gxx
@pytest.mark.parametrize("n", [0, 1, 7, 300])
def test_written_arguments_and_results_come_back(n: int) -> None:
    text = "def f(y, x):\n    y[i] = x[i] * 2 + 1\n    return y.sum(), x[::-1]\n"
    x = np.arange(n, dtype=np.float64)
    assert_same(both(text, np.zeros(n), x))


@needs_gxx
def test_layouts_of_arguments() -> None:
    text = "def f(y, x):\n    y[i, j] += x[i, j]\n"
    base = np.arange(48.0).reshape(6, 8)
    for x in (base[::2, ::-1], base[:3].copy(), np.broadcast_to(base[:1], (3, 8)), base.T[:3, :]):
        room = np.zeros((6, 2 * x.shape[1]))
        made = []
        for name in ("cuda", "numpy"):
            held = room.copy()
            with installed():
                pe.cd_from_source(text, backend=name)(held[::-2, ::2][:3], x)
            made.append(held)
        assert np.array_equal(*made)


@needs_gxx
def test_a_failed_check_names_its_point_and_changes_nothing() -> None:
    text = "def f(y, x, k):\n    y[i] = 1\n    y[i] = x[k[i]]\n"
    y, x, k = np.zeros(5), np.arange(5.0), np.array([0, 1, 9, 2, 8])
    with installed(), pytest.raises(CdError) as caught:
        pe.cd_from_source(text, backend="cuda")(y, x, k)
    assert "index 9" in str(caught.value)
    assert "i = 2" in str(caught.value)
    assert not y.any()


@needs_gxx
@pytest.mark.parametrize(
    ("text", "n"),
    [("y[i] = x[k[i]]", 9000), ("y[0] = sum(x[k[i]])", 9000), ("y[i] = sum(x[k[i] + k[j]])", 400)],
)
def test_of_many_failures_the_first_is_told_whatever_the_order(text: str, n: int) -> None:
    y, x, k = np.zeros(n), np.arange(4.0), np.zeros(n, int)
    k[[n - 3, n // 2, 277, 300]] = 5, 6, 7, 8
    driver = CpuDriver()
    told = []
    with installed(backend(driver)):
        for name in ("cuda", "numpy"):
            function = pe.cd_from_source(f"def f(y, x, k):\n    {text}\n", backend=name)
            for driver.seed in (0, 1, 2):
                with pytest.raises(CdError) as caught:
                    function(y, x, k)
                told.append(str(caught.value))
    assert len(set(told)) == 1, told


@needs_gxx
def test_prints_come_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    text = "def f(x):\n    for t in range(3):\n        x[i] += 1\n        print('x', t, x[0])\n"
    for name in ("cuda", "numpy"):
        with installed():
            pe.cd_from_source(text, backend=name)(np.zeros(4))
    told = capsys.readouterr().out.splitlines()
    assert told[:3] == told[3:] == ["x 0 1.0", "x 1 2.0", "x 2 3.0"]


@needs_gxx
def test_loops_and_tests_that_depend_on_data() -> None:
    text = (
        "def f(x):\n    n = 0\n    while x.sum() > 1.0:\n        x[i] = x[i] / 2\n"
        "        n += 1\n        if n > 3:\n            break\n    return n\n"
    )
    assert_same(both(text, np.arange(9.0)))


@needs_gxx
def test_results_whose_size_is_data() -> None:
    text = "def f(x, n):\n    z = np.zeros(n[0])\n    z[:] = x.sum()\n    return z, z.sum()\n"
    for n in (0, 1, 5):
        assert_same(both(text, np.arange(4.0), np.array([n])))


@needs_gxx
def test_arrays_that_trade_places() -> None:
    text = (
        "def f(a, n):\n    b = a * 2\n    for t in range(n):\n        a, b = b, a + b\n"
        "    return a, b\n"
    )
    for n in (0, 1, 4):
        assert_same(both(text, np.arange(3.0), n))


@needs_gxx
def test_sizes_of_the_run() -> None:
    function = pe.cd_from_source("def f(y, x):\n    y[i] = sum(x[i, j])\n", backend="cuda")
    with installed():
        for n in (3, 4, 5, 6, 0):
            x, y = np.random.default_rng(n).random((n, 7)), np.empty(n)
            function(y, x)
            np.testing.assert_allclose(y, x.sum(1))


@needs_gxx
def test_memory_goes_back_after_a_run() -> None:
    driver = CpuDriver()
    made = backend(driver)
    function = pe.cd_from_source("def f(y, x):\n    y[i] = x[i] + 1\n", backend="cuda")
    with installed(made):
        for _ in range(3):
            function(np.zeros(100), np.ones(100))
    assert len([what for what in driver.log if what[1] == "allocate"]) == 3


@needs_gxx
def test_sums_whose_bounds_are_data() -> None:
    text = (
        "def f(x, ptr):\n    y = np.zeros(3)\n    for k in range(3):\n"
        "        y[k] = np.sum(x[ptr[k]:ptr[k + 1]] ** 2)\n    return y\n"
    )
    assert_same(both(text, np.arange(9.0), np.array([0, 2, 2, 9])))


@needs_gxx
@pytest.mark.parametrize(
    "text", ["y[i] = sum[k < i](x[k])", "y[i] = sum[k >= i](x[k])", "y[i] = max[k <= i](x[k])"]
)
def test_sums_of_parts_that_grow(text: str) -> None:
    assert_same(both(f"def f(y, x):\n    {text}\n    return y\n", np.zeros(9), np.arange(9.0)))


@needs_gxx
def test_few_columns_of_many_rows() -> None:
    x = np.random.default_rng(0).random((40_000, 3))
    text = "def f(x):\n    return x.mean(axis=0), x.argmax(axis=0), (x * x).sum(axis=0)\n"
    with installed():
        mean, at, squares = pe.cd_from_source(text).on("cuda")(x)
    np.testing.assert_allclose(mean, x.mean(axis=0), 1e-12)
    np.testing.assert_allclose(squares, (x * x).sum(axis=0), 1e-12)
    assert at.tolist() == x.argmax(axis=0).tolist()
