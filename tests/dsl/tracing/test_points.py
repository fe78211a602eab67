"""Records of one site as arrays: boxes, triangles, masks."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.dsl.tracing.points import evaluate_at_points, read_points
from plusequals.lowering.ir.indexing import (
    Affine,
    Symbol,
    const,
    evaluate,
    floordiv,
    maximum,
    minimum,
    mod,
    multiply,
    var,
)

I, J = Symbol("i", 1), Symbol("j", 2)
INDICES = [
    var(I) * 2 - var(J) + 1, minimum(var(I), var(J)), maximum(var(I), const(2)),
    floordiv(var(I) + 1, const(2)), mod(var(J) - 3, const(4)), multiply(var(I), var(J)),
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_index_expressions_of_arrays(index: Affine) -> None:
    i, j = np.arange(6), np.arange(6)[::-1]
    expected = [evaluate(index, {I: int(a), J: int(b)}) for a, b in zip(i, j, strict=True)]
    assert np.broadcast_to(evaluate_at_points(index, {I: i, J: j}), 6).tolist() == expected


def test_points_of_a_triangle_are_those_that_are_there(backend: str) -> None:
    f = pe.cd_from_source("def f(a):\n    if j <= i:\n        a[i, j] += 1\n", backend=backend)
    with pe.trace() as trace:
        f(np.zeros((4, 4)))
    assert [r.index for r in trace] == [(i, j) for i in range(4) for j in range(i + 1)]


def test_rows_of_different_lengths(backend: str) -> None:
    text = "def f(a):\n    for n in range(4):\n        a[n, :n] = n\n"
    f = pe.cd_from_source(text, backend=backend)
    with pe.trace() as trace:
        f(np.zeros((4, 4)))
    assert [r.index for r in trace] == [(n, i) for n in range(4) for i in range(n)]


def test_points_know_their_rows() -> None:
    f = pe.cd_from_source("def f(x):\n    for t in range(3):\n        x[i] = t\n")
    with pe.trace() as trace:
        f(np.zeros(2))
    (run,) = trace.runs
    points = read_points(run, run.layout.sites[0])
    assert points.row.tolist() == [0, 0, 1, 1, 2, 2] and points.number.tolist() == [0, 1] * 3
    assert points.column("after").tolist() == [0, 0, 1, 1, 2, 2] and len(points) == 6


def test_sizes_that_only_the_run_knows(backend: str) -> None:
    f = pe.cd_from_source("def f(x):\n    x[i] += i\n", backend=backend)
    for size in (3, 4, 5, 6):
        with pe.trace() as trace:
            f(np.zeros(size))
        assert [r.index for r in trace] == [(i,) for i in range(size)]
    assert f.specialise(np.zeros(9)) is f.specialise(np.zeros(8))
    assert trace.why("x", 5).record.at == {"i": 5} and "x[4] += 4" in str(trace.text(head=0))


def test_bounds_that_begin_anew(backend: str) -> None:
    text = "def f(a):\n    if j < i % 4:\n        a[i, j] += 1\n"
    f = pe.cd_from_source(text, backend=backend)
    with pe.trace() as trace:
        f(np.zeros((10, 10)))
    assert [r.index for r in trace] == [(i, j) for i in range(10) for j in range(i % 4)]
    assert len(trace) == len(list(trace))


def test_an_index_that_is_read_under_different_tests(backend: str) -> None:
    text = "def f(y, a, b, c, n):\n    y[i] = a[n[i]] if c[i] > 0 else b[n[i]]\n"
    f = pe.cd_from_source(text, backend=backend)
    with pe.trace() as trace:
        f(np.zeros(2), np.arange(3.0), np.arange(3.0) * 10, np.array([1, 0]), np.array([2, 1]))
    assert [r.operands[-1].text for r in trace] == ["a[2]", "b[1]"]
