"""What is recorded is what happens: on every backend, for every kind of statement, no bit more."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdError
from plusequals.dsl.instrument import work_estimate
from tests.programs.check import NAMES
from tests.programs.generate import generate
from tests.programs.outcomes import difference, run

from ..tracing.functions import CALLS


def traced(function: Any, arguments: tuple[Any, ...], backend: str) -> tuple[Any, pe.Trace]:
    with pe.trace() as trace:
        result = function.on(backend)(*arguments)
    return result, trace


WAYS = pytest.mark.parametrize("few", [-1, work_estimate.MAX_QUICK_POINTS], ids=["whole", "short"])
"""After all passes, and after those alone that decide bits, as functions are that are soon done."""


@WAYS
@pytest.mark.parametrize("name", CALLS)
def test_backends_record_the_same_bytes(
    name: str, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work_estimate, "MAX_QUICK_POINTS", few)
    function, make = CALLS[name]
    with pe.override(profile="strict"):
        (_, one), (_, other) = (traced(function, make(), backend) for backend in ("cc", "numpy"))
    for run_, theirs in zip(one.runs, other.runs, strict=True):
        np.testing.assert_array_equal(run_.table, theirs.table)
        np.testing.assert_array_equal(run_.floats, theirs.floats)
        np.testing.assert_array_equal(run_.ints, theirs.ints)
    assert str(one).replace(" on cc", "") == str(other).replace(" on numpy", "")


@WAYS
@pytest.mark.parametrize("seed", range(12))
def test_random_programs_compute_the_same_traced_or_not(
    seed: int, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work_estimate, "MAX_QUICK_POINTS", few)
    program = generate(random.Random(f"traced {seed}"))
    try:
        function = pe.cd_from_source(program.text, NAMES)
        function.specialise(*program.make().values())
    except CdError:
        return
    plain = run(program, lambda arguments: function(*arguments.values()))
    with pe.trace() as trace:
        seen = run(program, lambda arguments: function(*arguments.values()))
    assert difference(seen, plain, rtol=1e-5 if program.rounds else 0.0) is None
    assert len(list(trace)) == len(trace)


SUMS = {
    "columns": (
        "def f(y, x):\n    for j in range(y.shape[1]):\n        y[0, j] += x[:, 1] @ y[:, j]\n"
    ),
    "triangle": (
        "def f(y, x):\n    for i in range(len(y)):\n        for j in range(y.shape[1]):\n"
        "            y[i, j] += np.dot(x[i + 1:, i], y[i + 1:, j])\n"
    ),
    "rows": (
        "def f(y, x):\n    for i in range(len(y)):\n        for j in range(y.shape[1]):\n"
        "            y[i, j] = np.dot(x[i], x[j % 9])\n"
    ),
    "checks": (
        "def f(y, x):\n    z = x[:7, :4] - np.log(np.exp(x[:7, :4]).sum(1, keepdims=True))\n"
        "    w = np.eye(4)[K] * 0.9 + 0.025\n    return -(w * z).sum() / 7\n"
    ),
}


@pytest.mark.parametrize("text", SUMS.values(), ids=SUMS)
@pytest.mark.parametrize("columns", [3, 11, 37])
def test_sums_have_the_same_order_traced_or_not(text: str, columns: int) -> None:
    function = pe.cd_from_source(text, {**NAMES, "K": np.arange(7) % 4})
    draw = np.random.default_rng(1)
    x, y = draw.normal(size=(9, 9)), draw.normal(size=(9, columns))
    one, two = y.copy(), y.copy()
    plain = function(one, x)
    with pe.trace():
        seen = function(two, x)
    np.testing.assert_array_equal(one, two)
    assert plain == seen


def test_nothing_is_added_to_the_code_of_a_function_that_was_traced() -> None:
    function, make = CALLS["steps"]
    before = str(function.explain(*make()).code)
    traced(function, make(), "cc")
    assert str(function.explain(*make()).code) == before and "trace" not in before


def test_a_run_that_fails_keeps_what_came_before(backend: str) -> None:
    text = "def f(x, n):\n    x[i] += 1\n    x[0] = 5\n    x[n[0]] = 2\n"
    f = pe.cd_from_source(text, backend=backend)
    with pe.trace() as trace, pytest.raises(IndexError):
        f(np.zeros(3), np.array([7]))
    assert len(trace) == 4 and "out of range" in trace.runs[0].error
    assert "out of range" in str(trace)


def test_memory_that_was_asked_for_changes_nothing() -> None:
    text = """def f(x):
    t: f64[4]
    memory(t, "virtual")
    t[i] = x[i] * 2
    return t + 1
"""
    f = pe.cd_from_source(text, {"memory": pe.memory})
    with pe.trace() as trace:
        f(np.ones(4))
    assert [r.array for r in trace][:4] == ["t"] * 4
