"""Buffers of a run: large enough, refused where there is no memory, and let go of afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.runtime.state import RUNTIME
from plusequals.base import settings
from plusequals.dsl.instrument import recording
from plusequals.dsl.instrument.sites import TraceFilter
from plusequals.dsl.tracing.trace import Trace
from plusequals.lowering.ir.assignments import Procedure


def fill(x: np.ndarray) -> pe.Trace:
    f = pe.cd_from_source("def f(x):\n    for t in range(50):\n        x[i] += t\n")
    with pe.trace() as trace:
        f(x)
    return trace


def test_what_has_no_room_is_counted() -> None:
    with mock.patch.object(recording, "_MAX_ROOM", (1 << 13, 100, 1 << 13)):
        trace = fill(np.zeros(10))
    assert (len(trace), trace.dropped) == (50, 450)
    assert "450 records were dropped" in str(trace)
    with mock.patch.object(recording, "_MAX_ROOM", (7, 1 << 13, 1 << 13)):
        trace = fill(np.zeros(10))
    assert (len(trace), trace.dropped) == (70, 430)


def test_less_is_asked_for_where_there_is_less() -> None:
    zeros, refused = np.zeros, []

    def scarce(shape: object, *rest: object) -> np.ndarray:
        if int(np.prod(shape)) > 1 << 20:
            refused.append(shape)
            raise MemoryError
        return zeros(shape, *rest)

    unknown = mock.patch.object(recording, "buffer_size", lambda *_: None)
    with mock.patch.object(recording.np, "zeros", scarce), unknown:
        trace = fill(zeros(10))
    assert refused and len(trace) == 500 and trace.dropped == 0
    with mock.patch.object(recording.np, "zeros", mock.Mock(side_effect=MemoryError)):
        with pytest.raises(MemoryError):
            recording._allocate_buffers(trace.runs[0].layout, 1)


def test_all_runs_of_a_trace_share_its_memory(backend: str) -> None:
    f = pe.cd_from_source("def f(x):\n    x[i] += 1\n    x[i] *= 2\n", backend=backend)
    with pe.trace() as whole:
        for _ in range(5):
            f(np.arange(9.0))
    one = whole.runs[0].nbytes
    assert whole.dropped == 0 and sum(run.nbytes for run in whole.runs) == 5 * one
    with pe.trace(memory=3 * one + 300) as trace:
        for _ in range(5):
            f(x := np.arange(9.0))
    assert sum(run.nbytes for run in trace.runs) <= 3 * one + 300
    count = len(trace)
    assert 0 < count < 90 and trace.dropped == 90 - count
    assert [*map(str, trace)] == [*map(str, whole)][:count]
    assert x.tolist() == [2.0 * n + 2 for n in range(9)], "what records nothing runs all the same"
    assert trace.runs[-1].full and "there was room for 0; `arrays=`" in str(trace)
    assert f"{90 - count:,} dropped" in repr(trace)
    with pe.trace(memory=0) as nothing:
        f(np.zeros(9))
    assert (len(nothing), nothing.dropped, nothing.runs[0].given) == (0, 18, {})


def test_what_data_decides_leaves_memory_to_others() -> None:
    text = "def f(y, n):\n    t = 0\n    while t < n:\n        y[i] += 1\n        t += 1\n"
    f = pe.cd_from_source(text, backend="numpy")
    with pe.trace(memory=1 << 14) as trace:
        for _ in range(2):
            f(np.zeros(4), 6)
        f(np.zeros(4), 300)
        f(np.zeros(4), 1)
    assert [bool(run.dropped) for run in trace.runs] == [False, False, True, True]
    assert sum(run.nbytes for run in trace.runs) <= 1 << 14


def test_a_quarter_of_what_is_free() -> None:
    f = pe.cd_from_source("def f(x):\n    x[i] += 1\n", backend="numpy")
    with mock.patch.object(recording, "memory_left", lambda: 4000), pe.trace() as trace:
        for _ in range(9):
            f(np.zeros(10))
    assert 0 < sum(run.nbytes for run in trace.runs) <= 1000 and trace.dropped


def test_records_stay_where_memory_runs_out() -> None:
    f = pe.cd_from_source("def f(x, n):\n    x[i] += n\n    return np.zeros((n, n))\n", {"np": np})
    x = np.zeros(3)
    with pe.trace() as trace, pytest.raises(MemoryError) as problem:
        f(x, 2)
        f(x, 10**9)
    assert isinstance(problem.value, pe.CdError)
    told = str(problem.value)
    assert "error[CD0705]" in told and "what it has recorded stays readable" in told
    assert "pe.trace(memory=...)" in told
    assert [r.after for r in trace if r.array == "x"][:3] == [2.0] * 3
    refused = mock.Mock(side_effect=MemoryError("no more"))
    with pe.trace() as none, mock.patch.object(recording.link.Callee, "__call__", refused):
        with pytest.raises(pe.CdError, match="CD0705.*for a run: no more"):
            f(x, 2)
    assert len(none) == 0


def test_arguments_are_kept_as_they_were() -> None:
    x = np.zeros(3)
    (run,) = fill(x).runs
    assert x.tolist() == [1225.0] * 3
    assert [array.tolist() for array in run.given.values()] == [[0.0] * 3]
    with mock.patch.object(recording, "MAX_ARGUMENT_BYTES", 8):
        assert fill(x).runs[0].given == {}


class Code:
    """A function that records, whose runs begin and end when a test says so."""

    def __init__(self, function: pe.CdFunction, *arguments: object) -> None:
        self.codes = function.compile(*arguments).codes
        self.arrays = arguments

    def begin(self, recorder: recording.Recorder) -> Callable[[], object]:
        return recorder.step(self.codes, tuple(map(np.array, self.arrays)), ("f", "numpy", ""))


@pytest.mark.parametrize("limit", [0, 2, 7, 100])
@pytest.mark.parametrize("order", [(2, 1, 0), (1, 0, 2)])
@pytest.mark.parametrize("wanted", [{}, {"where": "i != 1"}, {"sample": 2}, {"terms": True}])
def test_a_limit_keeps_the_first_in_program_order_whatever_ended_first(
    limit: int, order: tuple[int, ...], wanted: dict[str, object]
) -> None:
    text = "def f(x, y):\n    y[i] = x[i] * 2\n    y[i] += sum[j](x[j])\n    return y\n"
    f = pe.cd_from_source(text, backend="numpy")
    made = []
    everything = TraceFilter(**wanted)  # type: ignore[arg-type]
    for ask, most in ((everything, 1 << 40), (replace(everything, is_limited=True), limit)):
        recorder, code = recording.Recorder(ask, most), Code(f, np.arange(3.0), np.zeros(3))
        made.append(Trace(recorder))
        runs = [code.begin(recorder) for _ in order]
        with mock.patch.object(recording.Recorder, "_left", lambda own, _: own.limit):
            for number in order:  # as if all had begun before any of them ended
                runs[number]()
    every, some = made
    assert [str(r) for r in some] == [str(r) for r in every][:limit]
    counts = [len(x) + sum(len(x.terms(r)) for r in x) + x.dropped for x in made]
    assert len(some) == min(limit, len(every)) and counts[0] == counts[1]
    assert [len(some.terms(r)) for r in some] == [len(every.terms(r)) for r in every][:limit]


def test_a_call_that_is_traced_compiles_only_what_records(backend: str) -> None:
    @pe.cd
    def twice(x):
        return x * 2

    twice, x = twice.on(backend), np.ones(3)
    with mock.patch.object(RUNTIME, "compile", wraps=RUNTIME.compile) as compile_:
        for _ in range(2):
            with pe.trace() as trace:
                twice(x)
        assert compile_.call_count == 1
        assert len(trace) == 3
        twice(x)
        twice(x)
        assert compile_.call_count == 2


def test_what_is_refused_is_refused_in_a_trace() -> None:
    @pe.cd
    def f(y, x):
        t[i] = x[i] * 2
        memory(t, "virtual")
        for k in range(2):
            y[k] = t[k] + t[1 - k]
            t[k] = 1.0

    with pe.trace(), pytest.raises(pe.CdError) as refused:
        f(np.zeros(2), np.ones(2))
    with pytest.raises(pe.CdError) as plain:
        f(np.zeros(2), np.ones(2))
    assert str(refused.value) == str(plain.value)


@pytest.mark.parametrize(
    ("asked", "size", "effort"),
    [(0, 3, 0), (1, 3, 0), ("g", 3, 0), (0, 10**6, 0), (1, 10**6, "g"), (3, 10**6, "g")],
)
def test_what_records_is_compiled_with_little_effort(asked: Any, size: int, effort: Any) -> None:
    """Least where a call is soon done."""

    @pe.cd
    def twice(x):
        return x * 2

    efforts = []

    def build(procedure: Procedure) -> Procedure:
        now = settings.current()
        assert now.pipeline == ("short" if size == 3 else "whole")
        efforts.append(now.optimize)
        return procedure

    with pe.override(optimize=asked):
        procedure = twice.procedure(np.ones(size))
        made = recording.compile_recording(procedure, build, TraceFilter(), "cc")
    assert efforts == [effort] and made.layout
