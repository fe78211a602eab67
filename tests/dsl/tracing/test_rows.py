"""Which points of a statement a row holds: under tests, a limit, every n-th, all at once."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe

TEXT = """def f(x, y):
    y[i, j] = x[i, j] * 2 if j <= i else 0.0
    y[x > 4] = 7
    for n in range(3):
        if i < n:
            y[n, i] += 1
    z = y.sum(axis=0)
    return z
"""


def traced(backend: str, **wanted: object) -> pe.Trace:
    f = pe.cd_from_source(TEXT, backend=backend)
    with pe.trace(**wanted) as trace:
        f(np.arange(12.0).reshape(3, 4), np.zeros((3, 4)))
    return trace


@pytest.mark.parametrize(
    "wanted", [{"sample": 3}, {"where": "i != 1"}, {"where": "(i + 1) % 2 == 0", "sample": 2}, {}]
)
@pytest.mark.parametrize("limit", [0, 1, 4, 7, 13, 100])
def test_a_limit_keeps_all_that_it_could(wanted: dict, limit: int, backend: str) -> None:
    whole = [str(r) for r in traced(backend, **wanted)]
    trace = traced(backend, limit=limit, **wanted)
    assert [str(r) for r in trace] == whole[:limit]
    assert trace.dropped == max(len(whole) - limit, 0)
