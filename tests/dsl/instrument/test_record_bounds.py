"""How much a run records at most: exactly that where loops and sizes tell, else not known."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import plusequals as pe
from plusequals.dsl.instrument import record_bounds, recording
from plusequals.dsl.instrument.instrument import instrument
from plusequals.dsl.instrument.record_bounds import BufferSize, buffer_size
from plusequals.dsl.instrument.sites import TraceFilter

from ..tracing.functions import CALLS


def known(text: str, *arrays: Any, **wanted: Any) -> BufferSize | None:
    procedure = pe.cd_from_source(text, {"np": np}).procedure(*arrays)
    return buffer_size(instrument(procedure, TraceFilter(**wanted)).layout, {})


@pytest.mark.parametrize(
    ("body", "rows", "floats"),
    [
        ("x[i] += 1", 1, 20),
        ("for t in range(3):\n        x[i] += 1", 3, 60),
        ("for t in range(9, 0, -2):\n        x[i] += 1", 5, 100),
        ("for t in range(3):\n        for u in range(t):\n            x[i] += 1", 6, 120),
        ("if x[0] > 0:\n        x[i] += 1", 1, 20),
        ("while x[0] > 0:\n        x[i] -= 1", None, None),
        ("for t in range(n):\n        x[i] += 1", None, None),
    ],
)
def test_rounds_of_loops(body: str, rows: int | None, floats: int | None) -> None:
    found = known(f"def f(x, n):\n    {body}\n", np.zeros(10), 4)
    if rows is None:
        assert found is None
    else:
        assert found is not None and rows <= found.rows <= 2 * rows
        assert floats is not None and floats <= found.floats <= 2 * floats


@pytest.mark.parametrize("terms", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_what_is_recorded_fits(name: str, terms: bool) -> None:
    function, make = CALLS[name]
    given: list[tuple[Any, ...]] = []
    buffers = recording._allocate_buffers

    def noted(*args: Any) -> Any:
        given.append((args[2], found := buffers(*args)))
        return found

    with mock.patch.object(recording, "_allocate_buffers", noted), pe.trace(terms=terms) as trace:
        function.on("numpy")(*make())
    assert trace.dropped == 0
    for (asked, (table, floats, ints, _)), run in zip(given, trace.runs, strict=True):
        if asked is not None:
            assert (len(run.table), len(run.floats), len(run.ints)) <= asked.within(asked)
            assert (len(table), len(floats), len(ints)) == asked.within(asked)


def test_sizes_of_the_run_are_known_when_it_begins() -> None:
    f = pe.cd_from_source("def f(y, x):\n    y[i] = x[i] * 2\n")
    for n in range(2, 12):
        with pe.trace() as trace:
            f(np.zeros(n), np.ones(n))
        (run,) = trace.runs
        assert run.asked == 8 * (3 + 3 * n) and run.capacity == run.asked + 8


def test_rows_that_take_turns_need_room_for_one() -> None:
    text = "def f(y, x):\n    for t in range(5):\n        x[i] += 1\n    y[i] = x[i]\n"
    procedure = pe.cd_from_source(text).procedure(np.zeros(4), np.zeros(4))
    layout = instrument(procedure, TraceFilter(printed=True)).layout
    assert buffer_size(layout, {}) == BufferSize(6, 52, 0)
    assert buffer_size(layout, {}, one_by_one=True) == BufferSize(1, 12, 0)


def test_memory_that_is_left(tmp_path: Path) -> None:
    assert 0 < record_bounds.memory_left() < 1 << 50
    files = {
        "proc/meminfo": "MemTotal: 9000 kB\nMemAvailable: 5000 kB\n",
        "proc/self/cgroup": "0::/jobs/one\n",
        "sys/fs/cgroup/memory.max": "max\n",
        "proc/self/status": "Name: x\nVmSize: 600 kB\nVmData: 100 kB\n",
        "proc/self/limits": "Max data size  unlimited unlimited bytes\n",
    }
    steps = [
        ({}, 5000 << 10),
        ({"proc/self/limits": "Max address space  4096000 unlimited bytes\n"}, 3400 << 10),
        ({"sys/fs/cgroup/jobs/one/memory.max": "3000000\n",
          "sys/fs/cgroup/jobs/one/memory.current": "1000000\n",
          "sys/fs/cgroup/jobs/one/memory.stat": "anon 1\ninactive_file 500000\n"}, 2500000),
        ({"proc/self/limits": "Max data size  100 unlimited bytes\n"}, 0),
    ]  # fmt: skip
    for more, left in steps:
        files |= more
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        assert record_bounds.memory_left(str(tmp_path)) == left


def test_room_within_room() -> None:
    assert BufferSize(5, 0, 9).within(BufferSize(3, 7, 8)) == BufferSize(3, 1, 8)
    assert BufferSize(2, 10, 4).bytes(3) == 160
