"""Stages held against each other: what counts as another result."""

from __future__ import annotations

import numpy as np

import plusequals as pe
from plusequals.dsl.tracing.bisect import find_first_change


def test_errors_count_as_results(backend: str) -> None:
    f = pe.cd_from_source("def f(x, n):\n    x[n] = 1\n", backend=backend)
    x = np.zeros(3)
    assert pe.bisect(f, (x, 1)) is None and pe.bisect(f, (x, 9)) is None
    assert x.tolist() == [0.0] * 3


def test_prints_are_not_repeated(capsys: object) -> None:
    f = pe.cd_from_source("def f(x):\n    print(x[0])\n    x[i] = x[i] * 2\n", backend="numpy")
    match, arguments = f.matched(np.ones(2))
    assert find_first_change(match, arguments, 0.0, 0.0) is None


def test_results_of_shapes_that_the_run_decides() -> None:
    f = pe.cd_from_source("def f(n):\n    return np.zeros(n) + 1\n", {"np": np})
    assert pe.bisect(f, (3,)) is None
