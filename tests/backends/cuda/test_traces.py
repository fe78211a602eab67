"""Traces on a device that this processor plays: what the interpreter does, by all threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdError
from plusequals.dsl.instrument import recording
from tests.dsl.tracing.functions import CALLS, matrix, softmax
from tests.dsl.tracing.test_truth import records, train
from tests.dsl.tracing.watched import assert_same_records, watched
from tests.language import index_functions
from tests.language.examples import EXAMPLES, Example

from .on_cpu import CpuDriver, backend, installed, needs_gxx

pytestmark = needs_gxx
FEW = [example for example in EXAMPLES if example.case in ("f32", "plain", "i64")]


@contextmanager
def device(**made: Any) -> Iterator[CpuDriver]:
    """A device whose blocks and threads run in a random order."""
    driver = CpuDriver(**{"memory": 1 << 28, "seed": 5} | made)
    with installed(backend(driver)):
        yield driver


def traced(function: Callable[..., Any], name: str, *args: Any, **wanted: Any) -> pe.Trace:
    with pe.trace(**wanted) as trace:
        function.on(name)(*args)  # type: ignore[attr-defined]
    return trace


@pytest.mark.parametrize("name", CALLS)
def test_each_way_to_write_an_array(name: str) -> None:
    function, make = CALLS[name]
    with watched() as watch:
        function.on("numpy")(*make())
    with device(), pe.override(profile="strict"):
        trace = traced(function, "cuda", *make())
    assert_same_records(records(trace), watch.seen(trace))


@pytest.mark.parametrize("example", FEW, ids=repr)
def test_worked_examples(example: Example) -> None:
    function = getattr(index_functions, example.function)
    with watched() as watch:
        function.on("numpy")(*example.make())
    with device(), pe.override(profile="strict"):
        trace = traced(function, "cuda", *example.make())
    assert_same_records(records(trace), watch.seen(trace), example.rtol)


def test_tensors_and_their_routines() -> None:
    with watched() as watch:
        train("numpy")
    with device(), pe.trace() as trace:
        train("cuda")
    assert_same_records(records(trace), watch.seen(trace))


@pytest.mark.parametrize(
    "wanted",
    [
        {"sample": 3}, {"limit": 7}, {"where": "i > 0", "limit": 5}, {"terms": True},
        {"arrays": "y", "sample": 2, "limit": 4},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_asked_for_is_what_cc_records(wanted: dict[str, Any]) -> None:
    function, make = CALLS["steps"]
    with device(), pe.override(profile="strict"):
        here, there = (traced(function, name, *make(), **wanted) for name in ("cuda", "cc"))
    assert (len(here), here.dropped) == (len(there), there.dropped)
    assert [str(r) for r in here] == [str(r) for r in there]


def test_only_the_first_nan() -> None:
    function = pe.cd_from_source("def f(y, x):\n    y[i] = x[i] - 1\n    y[i] = sqrt(y[i])\n")
    x = np.array([2.0, 1.0, 0.0, -1.0])
    with device(), np.errstate(invalid="ignore"):
        here, there = (
            traced(function, name, np.zeros(4), x, first_nan=True) for name in ("cuda", "cc")
        )
    assert [str(r) for r in here] == [str(r) for r in there]
    assert len(here) == 2


@pytest.mark.parametrize("rows", [1, 5, 300])
def test_no_computed_bit_changes(rows: int) -> None:
    x = np.random.default_rng(rows).random((rows, 130)).astype(np.float32)
    text = (
        "def f(x):\n    m = x.mean(axis=1)\n    d[i, j] = x[i, j] - m[i]\n"
        "    v[j] = sum[i](d[i, j] * d[i, j])\n    return d, v, d.sum(), x.T @ d\n"
    )
    function = pe.cd_from_source(text, {"np": np})
    with device():
        plain = function.on("cuda")(x)
        with pe.trace() as trace:
            recorded = function.on("cuda")(x)
    for one, other in zip(plain, recorded, strict=True):
        assert one.tobytes() == other.tobytes()
    assert {r.after.item() for r in trace if r.array == "v"} == {v.item() for v in plain[1]}


def test_threads_of_many_blocks_record() -> None:
    n = 20_000
    function = pe.cd_from_source("def f(y, x):\n    y[i] = x[i] * 2\n", {"np": np})
    x = np.arange(n, dtype=np.float32)
    with device() as driver:
        trace = traced(function, "cuda", np.zeros(n, np.float32), x)
    assert len(trace) == n
    assert trace[n - 1].after == 2 * (n - 1)
    grids = [what[3][0] for what in driver.log if what[1] == "launch"]
    assert len([size for size in grids if size == -(-n // 256)]) == 3, "before, itself, after"


def test_small_loops_stay_in_one_kernel_with_all_its_threads() -> None:
    function = pe.cd_from_source(
        "def f(y, x):\n    for t in range(4):\n        y[i] += x[i] * t\n", {"np": np}
    )
    with device() as driver:
        trace = traced(function, "cuda", np.zeros(100), np.ones(100))
    assert len(trace) == 400
    launches = [what for what in driver.log if what[1] == "launch"]
    assert [what[4][0] for what in launches] == [128]


def test_a_run_that_fails_keeps_what_came_before() -> None:
    text = "def f(y, x, k):\n    y[i] = 1\n    z[i] = y[i] + 1\n    y[i] = x[k[i]]\n    y[i] = 3\n"
    function = pe.cd_from_source(text, {"np": np})
    told = []
    with device():
        for name in ("cuda", "cc"):
            with pe.trace() as trace, pytest.raises(CdError):
                function.on(name)(np.zeros(5), np.arange(5.0), np.array([0, 1, 9, 2, 8]))
            told.append([*map(str, trace), trace.runs[0].error])
    assert told[0] == told[1]
    assert len(told[0]) == 11


def test_questions_are_answered_as_elsewhere() -> None:
    x = matrix()
    x[1, 2] = np.nan
    with device(), pe.override(profile="strict"):
        here, there, other = (
            traced(softmax, name, given) for name, given in
            (("cuda", x), ("numpy", x), ("cuda", matrix()))
        )  # fmt: skip
        assert pe.compare(softmax, (matrix(),), backends=("numpy", "cuda"), rtol=1e-12)
    assert str(here.first_nonfinite()) == str(there.first_nonfinite())
    assert str(here.why("result", (1, 0))) == str(there.why("result", (1, 0)))
    assert [str(r) for r in here.where("i == 1")] == [str(r) for r in there.where("i == 1")]
    assert here.diff(there, rtol=1e-12) is None
    assert str(here.diff(other)) != "None"
    assert "on cuda" in str(here)


def test_only_what_was_recorded_is_copied() -> None:
    function = pe.cd_from_source("def f(y, x):\n    y[i] = x[i] * 2\n", {"np": np})
    with device(memory=1 << 24) as driver:
        trace = traced(function, "cuda", np.zeros(50), np.ones(50))
    copied = [what for what in driver.log if what[1] in ("upload", "download")]
    assert max(what[2] for what in copied) == 8 * 150, "before, x, after"
    taken = [what[2] for what in driver.log if what[1] == "allocate"]
    assert sum(taken) < 1 << 13, "what it records, and what it computes"
    assert (len(trace), trace.dropped) == (50, 0)


def test_what_has_no_room_on_a_device_is_counted() -> None:
    function = pe.cd_from_source("def f(y, x):\n    y[i] = x[i] * 2\n", {"np": np})
    n = 200_000
    with device(memory=1 << 24):
        trace = traced(function, "cuda", np.zeros(n, np.float32), np.ones(n, np.float32))
    assert (1 << 22) / 24 - 200 < len(trace) < (1 << 22) / 24
    assert trace.dropped == n - len(trace)
    assert [record.index for record in trace[-2:]] == [(len(trace) - 2,), (len(trace) - 1,)]
    lost = f"{trace.dropped} records were dropped: all of them take up to 4,800,024 bytes"
    assert lost in str(trace)


@pytest.mark.parametrize(
    "wanted", [{}, {"where": "i != 1"}, {"limit": 9}, {"terms": True}], ids=str
)
def test_what_fits_is_what_fits_on_cc(wanted: dict[str, Any]) -> None:
    function, make = CALLS["steps"]
    for name, size in (("floats", 30), ("ints", 20), ("floats", 77)):
        room = tuple(size if one == name else 1 << 13 for one in ("rows", "floats", "ints"))
        with device(), pe.override(profile="strict"), pytest.MonkeyPatch.context() as patch:
            patch.setattr(recording, "_MAX_ROOM", room)
            here, there = (traced(function, name, *make(), **wanted) for name in ("cuda", "cc"))
        assert (len(here), here.dropped) == (len(there), there.dropped)
        assert [str(r) for r in here] == [str(r) for r in there]


def test_a_large_routine_asks_for_what_it_records_and_no_more() -> None:
    text = "def f(y, x):\n    for t in range(20):\n        y[i, j] += x[i, j] * t\n"
    text += "    return y.sum()\n"
    function, x = pe.cd_from_source(text, {"np": np}), np.ones((16, 9), np.float32)
    with device(memory=1 << 28) as driver:
        trace = traced(function, "cuda", np.zeros((16, 9), np.float32), x)
    assert len(trace) == 20 * 144 + 1 and not trace.dropped
    assert max(what[2] for what in driver.log if what[1] == "allocate") <= 8 * 3 * 20 * 144 + 256


def test_where_data_decides_a_device_gives_a_part() -> None:
    text = "def f(y):\n    while y[0] < 50:\n        y[i] = y[i] * 2 + 1\n"
    function = pe.cd_from_source(text, {"np": np})
    with device(memory=1 << 40) as driver, pytest.MonkeyPatch.context() as patch:
        patch.setattr(recording, "_UNBOUNDED_BYTES", 1 << 20)
        trace = traced(function, "cuda", np.zeros(40))
    assert len(trace) == 6 * 40 and not trace.dropped
    assert sum(what[2] for what in driver.log if what[1] == "allocate") < 1 << 21


def test_the_room_of_a_recording() -> None:
    with device(memory=1 << 22, devices=3):
        assert recording._device_bytes("cuda:2") == (1 << 22) // recording.MEMORY_SHARE
        assert (
            recording._device_bytes("cc") == recording._device_bytes("numpy") == recording._NO_LIMIT
        )


def test_nothing_is_recorded_by_one_thread_that_could_be_by_many() -> None:
    function = pe.cd_from_source("def f(y, x):\n    y[i, j] = x[j, i] + 1\n", {"np": np})
    with device() as driver:
        traced(function, "cuda", np.zeros((70, 80)), np.ones((80, 70)))
    shapes = [what[3:5] for what in driver.log if what[1] == "launch"]
    threads = [grid[0] * grid[1] * block[0] for grid, block in shapes]
    assert [count for count in threads if count >= 70 * 80], threads
    alone = [count for count in threads if count == 1]
    assert len(alone) <= 3, "what is asked, the row, and the counts"
