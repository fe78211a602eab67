"""Which points of a statement a row holds: under tests, a limit, every n-th, all at once."""

from __future__ import annotations

import functools

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


@functools.cache
def on(text: str, backend: str) -> pe.CdFunction:
    return pe.cd_from_source(text, {"np": np}, backend=backend)


def traced(backend: str, **wanted: object) -> pe.Trace:
    f = on(TEXT, backend)
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


NANS = """def f(x, y, k, c):
    for t in range(3):
        y[i, j] = y[j, i] + 1.0 if i < j else y[i, j] - x[i, j]
        y[y > 4] = 7
        y[k[i], i] += sqrt(y[i, i])
        c[i, j] = c[i, j] / (y[i, j] - 7) + k[0]
        y[i, j] = sqrt(y[i, j] - t * 4)
    z = np.sort(y, axis=1)
    return z
"""


@pytest.mark.parametrize("wanted", [{}, {"arrays": "y"}, {"where": "i != 0"}, {"arrays": "z"}])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_first_nan_is_what_a_full_trace_shows(seed: int, wanted: dict, backend: str) -> None:
    """Operands, old values and subscripts are those before the statement, though most are taken
    behind it."""
    f = on(NANS, backend)
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 9, (2, 4, 4)) * 1.0
    c = np.zeros((4, 4), complex) + (seed > 0)
    taken = []
    for first_nan in (False, True):
        with np.errstate(all="ignore"), pe.trace(first_nan=first_nan, **wanted) as trace:
            f(x, y.copy(), np.array([2, 0, 3, 1]), c.copy())
        taken.append(trace)
    whole, found = taken
    nans = [r for r in whole if r.after != r.after]
    assert nans, "else it shows nothing"
    first = [r for r in nans if r.order[:2] == nans[0].order[:2]]
    assert [str(r) for r in found] == [str(r) for r in first]
    assert found.dropped == 0
