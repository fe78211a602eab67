"""Traces with too little room: the first records of the program are there, the rest is counted."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdIndexError
from plusequals.dsl.instrument import recording
from plusequals.dsl.instrument.record_bounds import BufferSize

TEXT = """def f(x, y, n):
    y[i, j] = x[i, j] * 2 if j <= i else 0.0
    y[x > 4] = 7
    k[i, j] = i if x[i, j] > 4 else j
    for n in range(3):
        if i < n:
            y[n, i] += 1
    z = y.sum(axis=0) + k[0, 1] + n
    return z
"""
ENDLESS = """def f(y, n):
    t = 0
    while t < n:
        y[i] = y[i] * 2 + 1
        t += 1
"""


def given() -> tuple[Any, ...]:
    return np.arange(12.0).reshape(3, 4), np.zeros((3, 4)), 2


@functools.cache
def on(text: str, backend: str) -> pe.CdFunction:
    return pe.cd_from_source(text, {"np": np}, backend=backend)


def traced(text: str, backend: str, *args: Any, **wanted: Any) -> pe.Trace:
    f = on(text, backend)
    with pe.trace(**wanted) as trace:
        f(*args)
    return trace


def scarce(**sizes: int) -> Any:
    room = tuple(sizes.get(name, 1 << 13) for name in ("rows", "floats", "ints"))
    return mock.patch.object(recording, "_MAX_ROOM", room)


@pytest.mark.parametrize(
    "wanted",
    [{}, {"sample": 3}, {"where": "i != 1"}, {"arrays": ("y", "z")}, {"limit": 9},
     {"where": "(i + 1) % 2 == 0", "sample": 2, "limit": 4}],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("name", ["floats", "ints", "rows"])
def test_the_first_that_fit_are_there(wanted: dict[str, Any], name: str, backend: str) -> None:
    limit = wanted.get("limit", 1 << 40)
    every = [*map(str, traced(TEXT, backend, *given(), **{**wanted, "limit": None}))]
    seen = set()
    for size in (1, 2, 3, 5, 11, 17, 30, 47, 64, 100, 150):
        with scarce(**{name: size}):
            trace = traced(TEXT, backend, *given(), **wanted)
        count = len(trace)
        assert [*map(str, trace)] == every[:count]
        assert count <= limit and trace.dropped == len(every) - count
        seen.add(count)
    assert len(seen) > 2 or "limit" in wanted, "what fits is no matter of whole rows"
    assert max(seen) == min(len(every), limit)


def test_a_row_that_is_larger_than_all_room_is_there_in_part(backend: str) -> None:
    text = "def f(y, x):\n    y[i, j] = x[j, i] + 1\n    y[i, j] *= 2\n"
    with scarce(floats=100):
        trace = traced(text, backend, np.zeros((7, 11)), np.ones((11, 7)))
    assert [record.index for record in trace] == [divmod(n, 11) for n in range(33)]
    assert trace.dropped == 2 * 77 - 33
    assert (
        "121 records were dropped: all of them take up to 3,128 bytes, and there was room for"
        in str(trace)
    )
    assert "121 more were dropped" in trace.to_html()


def test_nothing_smaller_comes_behind_what_was_dropped(backend: str) -> None:
    text = "def f(y, k):\n    y[i] = 1.0\n    k[i] = 3\n    y[i] = 2.0\n"
    with scarce(floats=9):
        trace = traced(text, backend, np.zeros(6), np.zeros(2, np.int64))
    assert [record.array for record in trace] == ["y"] * 4
    assert trace.dropped == 2 + 2 + 6


def test_where_data_decides_how_much_it_is(backend: str) -> None:
    with scarce(floats=25):
        trace = traced(ENDLESS, backend, np.zeros(4), 5)
    assert [record.index for record in trace if record.array == "y"] == [
        (n % 4,) for n in range(12)
    ]
    assert trace.runs[0].full and "; `arrays=` and `statements=` record less" in str(trace)
    whole = traced(ENDLESS, backend, np.zeros(4), 5)
    assert not whole.runs[0].full and not whole.dropped
    assert len(trace) + trace.dropped == len(whole)


@pytest.mark.parametrize("size", [4, 7, 9, 30, 1000])
def test_the_first_nan_or_nothing(size: int, backend: str) -> None:
    text = "def f(y, x):\n    y[i] = x[i] - 1\n    y[i] = sqrt(y[i])\n    y[i] = sqrt(y[i] - 3)\n"
    x = np.array([2.0, 1.0, 5.0, -1.0])
    with np.errstate(invalid="ignore"):
        whole = traced(text, backend, np.zeros(4), x, first_nan=True)
        with scarce(floats=size):
            trace = traced(text, backend, np.zeros(4), x, first_nan=True)
    assert [*map(str, whole)] == ["y[3] = np.sqrt(y[3]{=-2.0}) -2.0 -> nan"] or len(whole) == 1
    if len(trace):
        assert [*map(str, trace)] == [*map(str, whole)]
    else:
        assert size < 12 and trace.dropped, "a later NaN is not taken for the first one"


def test_terms_go_with_their_records(backend: str) -> None:
    text = "def f(y, x):\n    y[i] = sum[j](x[i, j])\n    y[i] *= 2\n"
    x = np.arange(12.0).reshape(3, 4)
    whole = traced(text, backend, np.zeros(3), x, terms=True)
    everything = len(whole) + sum(len(whole.terms(r)) for r in whole)
    for size in (1, 6, 7, 13, 14, 15, 16, 17, 21, 30):
        with scarce(floats=size):
            trace = traced(text, backend, np.zeros(3), x, terms=True)
        assert [*map(str, trace)] == [*map(str, whole)][: len(trace)]
        if not len(trace):
            assert trace.dropped == everything
        for one, other in zip(trace, whole, strict=False):
            assert [*map(str, trace.terms(one))] == [*map(str, whole.terms(other))]


def test_questions_say_what_is_missing(backend: str) -> None:
    text = "def f(y, x):\n    y[i] = x[i] + 1\n    z[i] = y[i] * 2\n    y[i] = z[i] / x[i]\n"
    x = np.array([1.0, 2.0, 4.0, 8.0, 0.0])
    with np.errstate(divide="ignore"):
        whole = traced(text, backend, np.zeros(5), x)
        with scarce(floats=22):
            trace = traced(text, backend, np.zeros(5), x)
    assert (len(trace), trace.dropped) == (7, 8)
    told = str(trace.why("y", 1))
    assert "y[1] = x[1]{=2.0} + 1" in told
    assert "(8 later records of the run were dropped, which may have written it again)" in told
    assert "were dropped" not in str(whole.why("y", 1))
    with pytest.raises(CdIndexError, match="8 records of the run were dropped, which may"):
        trace.why("z", 4)
    assert trace.first_nonfinite() is None and whole.first_nonfinite() is not None
    assert trace.diff(whole) is None and whole.diff(trace) is None
    with np.errstate(divide="ignore"):
        other = traced(text, backend, np.zeros(5), x + np.eye(5)[4])
        with scarce(floats=8):
            start = traced(text, backend, np.zeros(5), x + np.eye(5)[4])
    assert str(trace.diff(other)).startswith("y[4] differs: 1.0 (first) against 2.0")
    assert trace.diff(start) is None, "the one that differs is not there"


def test_a_comparison_counts_what_it_saw() -> None:
    f = pe.cd_from_source("def f(y, x):\n    y[i] = x[i] + 1\n    y[i] *= 2\n")
    with scarce(floats=21):
        found = pe.compare(f, (np.zeros(5), np.ones(5)))
    assert found and str(found) == (
        "numpy and cc agree in 8 assignments; up to 2 more were dropped"
    )


def test_the_text_log_says_it(tmp_path: Path) -> None:
    f = pe.cd_from_source("def f(y, x):\n    y[i] = x[i] + 1\n")
    with scarce(floats=7), pe.override(debug_log_from_routines=True, dump_dir=str(tmp_path)):
        f(np.zeros(5), np.ones(5))
    lines = (tmp_path / "debug-calls-f.log").read_text().splitlines()
    assert lines[-2].startswith("3 records were dropped: all of them take") and len(lines) == 9


def test_how_room_is_shared_out() -> None:
    whole = BufferSize(10, 1000, 500)
    assert whole.reduced_to(whole.bytes(4), 4) is whole
    for most in (0, 100, 999, 5000, 12_000):
        less = whole.reduced_to(most, 4)
        assert less.bytes(4) <= most and all(one <= all_ for one, all_ in zip(less, whole))
    assert BufferSize(1, 600_000, 0).reduced_to(1 << 20, 3) == BufferSize(1, (1 << 17) - 3, 0)
    assert BufferSize(10**6, 10, 10).reduced_to(1 << 20, 3).rows > 40_000
