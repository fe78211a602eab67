"""What derivatives keep, as a report."""

from __future__ import annotations

from typing import Any

import numpy as np

import plusequals as pe
from plusequals import cd

X = np.random.default_rng(2).random(10)


@cd
def heat(x: Any, k: Any, steps: int) -> Any:
    for _ in range(steps):
        x[1:-1] += k * (x[2:] - 2 * x[1:-1] + x[:-2]) * x[1:-1]
    return (x * x).sum()


def test_all_states_are_kept_without_memory() -> None:
    found = pe.gradient(heat, wrt="x").kept(X, 0.1, 1000)
    (one,) = found.arrays
    assert (one.name, one.shape, one.dtype, one.bytes) == ("x_kept", (1000, 10), "float64", 80_000)
    assert one.line is not None and not one.is_checkpoint and found.bytes == 80_000
    assert str(found).splitlines() == [
        "array   shape       type     bytes   line",
        f"x_kept  (1000, 10)  float64  80,000  {one.line}",
        "total                        80,000",
    ]


def test_states_that_are_held_at_once_with_memory() -> None:
    for steps, most in ((10_000, 70), (1000, 64), (65, 30)):
        found = pe.gradient(heat, wrt="x", memory=64).kept(X, 0.1, steps)
        assert found.bytes <= most * X.nbytes
        assert [one.shape[1:] for one in found.arrays] == [(10,)] * len(found.arrays)
    found = pe.gradient(heat, wrt="x", keep="recompute").kept(X, 0.1, 10_000)
    assert found.bytes == 2 * 100 * X.nbytes
    assert sorted(one.is_checkpoint for one in found.arrays) == [False, True]


def test_sizes_that_are_known_at_run_time_are_those_of_the_call() -> None:
    g = pe.gradient(heat, wrt="x", memory=64)
    for steps in (3, 5, 7, 11, 13, 17):
        g(X.copy(), 0.1, steps)
    assert "length = " in g.source
    assert g.kept(X, 0.1, 10_000).bytes <= 70 * X.nbytes
    assert g.kept(X, 0.1, 17).bytes <= 20 * X.nbytes


def test_arrays_of_the_function_are_no_part_of_it() -> None:
    def loss(x: Any) -> Any:
        y_kept = x * 2.0
        return (y_kept * y_kept).sum()

    assert pe.gradient(cd(loss), wrt="x").kept(X).arrays == ()


def test_loops_that_keep_all_states_are_named() -> None:
    def loss(x: Any, n: Any) -> Any:
        s = 1.0
        if x[0] > 0.0:
            z = np.zeros(n)
            z[:2] = x[:2]
            for _ in range(30):
                z = z * s
                s = s * 0.9 + 0.01 * np.sum(z * z)
        return s

    g = pe.gradient(cd(loss), wrt="x", memory=2)
    for n in (3, 4, 5, 6, 7):
        g(X, n)
    found = g.kept(X, 8)
    assert found.whole and "keeps all states: `" in str(found)
