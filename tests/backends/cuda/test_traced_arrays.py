"""Traces of what is given arrays of a device: the records of the host, and nothing is moved."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.device_arrays.device_array import DeviceArray, offset_range
from plusequals.backends.device_arrays.foreign_arrays import as_placed as on_device
from plusequals.backends.gpu.device import OpenedDevice
from plusequals.base.diagnostic import CdError, CdValueError

from .foreign import Capsules, Theirs
from .on_cpu import Array, CpuDriver, backend, installed, needs_gxx

pytestmark = needs_gxx
WHOLE = np.arange(1.0, 101.0).reshape(10, 10)
SEEN: dict[str, Callable[[Array], Array]] = {
    "in C order": lambda a: a[:6],
    "transposed": lambda a: a[:6, :4].T,
    "backwards": lambda a: a[::-2, ::-3],
    "repeated": lambda a: np.broadcast_to(a[2, 1:6], (5, 5)),
    "none": lambda a: a[3:3],
}
SCALED = """def f(x):
    m[i] = max(x[i, j])
    y = x / m[:, None]
    return y, y.sum(axis=0), x.T
"""


@pytest.fixture
def driver() -> CpuDriver:
    return CpuDriver(seed=3)


@pytest.fixture
def device(driver: CpuDriver) -> Iterator[OpenedDevice]:
    with installed(backend(driver)) as made:
        yield made.opened(0)


def on(text: str, where: str = "cuda") -> Any:
    return pe.cd_from_source(text, {"np": np}, backend=where)


def traced(call: Callable[..., Any], *args: Any, **wanted: Any) -> tuple[pe.Trace, Any]:
    with pe.override(profile="strict"), pe.trace(**wanted) as trace:
        found = call(*args)
    return trace, found


def told(trace: pe.Trace) -> list[str]:
    return [*map(str, trace)]


@pytest.mark.parametrize("kind", [Theirs, Capsules])
@pytest.mark.parametrize("way", SEEN)
def test_the_records_are_those_of_the_host(device: OpenedDevice, way: str, kind: Any) -> None:
    see = SEEN[way]
    if way == "none":
        text = "def f(x):\n    return x * 2, x.sum()\n"
    else:
        text = SCALED
    here, want = traced(on(text, "numpy"), see(WHOLE))
    there, got = traced(on(text), kind(device, WHOLE, see=see))
    assert told(there) == told(here)
    for one, other in zip(got, want, strict=True):
        assert np.array_equal(np.asarray(one), other)
    if len(here):
        record = here[0]
        names = {"run": 0}
        ends = [str(t.why(record.array, record.index, **names)) for t in (here, there)]
        assert ends[0] == ends[1], "also what was given is known"


def test_what_is_written_is_written_in_place_and_results_stay(
    device: OpenedDevice, driver: CpuDriver
) -> None:
    n = 3000
    text = "def f(y, x):\n    y[i] += x[i] * 2\n    return y * 2, y.sum()\n"
    y, x = Theirs(device, np.ones(n)), Theirs(device, np.arange(float(n)))
    (here, _), f = traced(on(text, "numpy"), np.ones(n), np.arange(float(n))), on(text)
    driver.log.clear()
    there, (double, total) = traced(f, y, x)
    assert told(there) == told(here)
    assert np.array_equal(y.get(), 1 + 2 * np.arange(n))
    assert isinstance(double, DeviceArray) and np.array_equal(double.numpy(), 2 * y.get())
    assert total == y.get().sum()
    ups = [what[2] for what in driver.log if what[1] == "upload"]
    assert max(ups) < 8 * n, "what counts the records, and no array"


def test_streams_wait_as_without_a_trace(device: OpenedDevice, driver: CpuDriver) -> None:
    x, y = Theirs(device, np.ones(5)), Theirs(device, np.ones(5), stream=2)
    f = on("def f(y, x):\n    y[i] += x[i]\n")
    traced(f, y, x)
    driver.log.clear()
    traced(f, y, x)
    asked = [what[1:3] if what[1] == "lead" else what[1] for what in driver.log]
    asked = [what for what in asked if what in ("launch", "follow", ("lead", 77), ("lead", 2))]
    assert asked[:2] == ["follow", "follow"]
    assert sorted(asked[-2:], key=str) == [("lead", 2), ("lead", 77)]
    assert asked.count("launch") == len(asked) - 4 > 0


def test_a_failure_keeps_what_came_before_and_the_device_goes_on(device: OpenedDevice) -> None:
    text = "def f(y, x, k):\n    y[i] = 1\n    y[i] = x[k[i]]\n"
    told_by = []
    for name in ("cuda", "numpy"):
        y, k = np.zeros(5), np.array([0, 1, 9, 2, 8])
        args: tuple[Any, ...] = (y, np.arange(5.0), k)
        if name == "cuda":
            args = tuple(Theirs(device, one) for one in args)
        with pe.trace() as trace, pytest.raises(CdError, match="index 9"):
            on(text, name)(*args)
        told_by.append([*map(str, trace), trace.runs[0].error])
    assert told_by[0] == told_by[1]
    assert len(told_by[0]) == 6


def test_large_arguments_are_not_copied(
    device: OpenedDevice, driver: CpuDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plusequals.dsl.instrument.recording.MAX_ARGUMENT_BYTES", 400)
    f = on("def f(x):\n    return x + 1\n")
    f(Theirs(device, np.ones(3)))
    for see, is_kept in ((lambda a: a[:50], True), (lambda a: a[:100:2], False)):
        trace, _ = traced(f, Theirs(device, np.ones(100), see=see))
        assert bool(trace.runs[0].given) == is_kept, "a part is read as it lies, from end to end"


def test_checked_mode_and_compared(device: OpenedDevice) -> None:
    x = Theirs(device, WHOLE, see=SEEN["transposed"])
    f = on(SCALED)
    before = x.get()
    with pe.checked():
        f(x)
        zero = Theirs(device, np.zeros((4, 3)))
        with pytest.raises(CdError, match="CD0707|divi|NaN"):
            f(zero)
    found = pe.compare(f, (x,), backends=("numpy", "cuda", "cc"))
    assert found, str(found)
    assert len(found.traces[1]) == len(found.traces[0]) > 0
    kinds = [type(results[0]) for results in found.results]
    assert kinds == [np.ndarray, DeviceArray, np.ndarray]
    assert pe.bisect(f, (x,)) is None
    assert np.array_equal(x.get(), before)


def test_compared_are_copies_also_where_they_are_written(device: OpenedDevice) -> None:
    f = on("def f(p, k):\n    p[0][i] += p[1][k[i]]\n")
    y = Theirs(device, np.zeros(3))
    p, k = ([y, y], 5), Theirs(device, np.array([2, 1, 0]))
    found = pe.compare(f, (p[0], k), backends=("numpy", "cuda"))
    assert found, str(found)
    assert not y.get().any()
    assert pe.bisect(f, (p[0], k)) is None
    assert not y.get().any()
    between = Theirs(device, np.zeros(4), strides=(12,))
    with pytest.raises(CdValueError, match="CD0887"):
        pe.compare(f, ([between, between], k), backends=("numpy", "cuda"))


@pytest.mark.parametrize("printed", [False, True])
def test_the_text_log(device: OpenedDevice, tmp_path: Path, printed: bool) -> None:
    text = "def f(y, x):\n    y[i] += x[i]\n"
    lines = []
    for name in ("cuda", "cc"):
        y, x = np.zeros(3), np.arange(3.0)
        given = (Theirs(device, y), Theirs(device, x)) if name == "cuda" else (y, x)
        folder = tmp_path / name
        chosen = {"debug_log_by_printf": printed, "dump_dir": str(folder)}
        with pe.override(debug_log_from_routines=True, **chosen):
            on(text, name)(*given)
        lines.append((folder / "debug-calls-f.log").read_text().splitlines())
        if name == "cuda":
            address = on_device(given[0]).address  # type: ignore[union-attr]
            assert lines[0][0] == f"f64 *y &[3] = {address:#x}"
    assert lines[0][2:] == lines[1][2:]
    assert len(lines[0]) > 4


@pytest.mark.parametrize("threaded", [True, False])
def test_routines(device: OpenedDevice, driver: CpuDriver, threaded: bool) -> None:
    text = "def f(p, x, y):\n    p[i] += x[i]\n    y[i] = p[i] * 2\n    return y, x + 1, p.sum()\n"
    found = []
    for name in ("cuda", "cc"):
        p = pe.tensor("p", (4,), "float64", init=1.0)
        x: Any = np.arange(8.0)
        y: Any = np.zeros(4)
        stream = pe.device(name).stream(threaded)
        if name == "cuda":
            x, y = Theirs(device, x, see=lambda a: a[::2]), Theirs(device, y)
        else:
            x = x[::2]
        routine = on(text).compile(p, x, y).link(stream.context())
        routine(x, y)
        driver.log.clear()
        trace, (same, more, total) = traced(routine, x, y)
        assert same is y and total == 28.0
        found.append((told(trace), np.asarray(more).tolist(), p.numpy().tolist(), [*same.get()]
                      if name == "cuda" else [*same]))  # fmt: skip
        if name == "cuda":
            assert isinstance(more, DeviceArray)
            large = [what for what in driver.log if what[1] == "upload" and what[2] == 32]
            assert not large, "neither what is given nor the tensor's array is moved"
    assert found[0] == found[1]


def test_tensors_stay_on_the_device_while_a_trace_is_taken(
    device: OpenedDevice, driver: CpuDriver
) -> None:
    p = pe.tensor("p", (500,), "float64", init=1.0)
    stream = pe.device("cuda").stream()
    routine = on("def f(p):\n    p[i] = p[i] * 2 + 1\n").compile(p).link(stream.context())
    routine()
    stream.synchronize()
    driver.log.clear()
    with pe.trace(arrays="p", where="i == 3") as trace:
        routine()
        routine()
    assert not [what for what in driver.log if what[1] == "upload" and what[2] == 4000]
    assert [record.after for record in trace] == [7.0, 15.0]
    routine()
    assert np.array_equal(p.numpy(), np.full(500, 31.0))


def test_copies_of_arrays_on_a_device(device: OpenedDevice) -> None:
    whole = on("def f(x):\n    y = x + 1\n    return y, y[::-2, 1:]\n")(Theirs(device, WHOLE))
    for one, want in zip(whole, (WHOLE + 1, (WHOLE + 1)[::-2, 1:]), strict=True):
        for other in (one.copy(), copy.copy(one), copy.deepcopy([one])[0]):
            assert other.strides == one.strides and other.address != one.address
            on("def g(x):\n    x[i, j] += 1\n")(other)
            assert np.array_equal(other.numpy(), want + 1)
            assert np.array_equal(one.numpy(), want)
    used = device.pool.used
    del other
    assert device.pool.used < used, "a copy has memory of its own"
    assert offset_range((2, 3), None) == (0, 6) and offset_range((3, 2), (-4, 1)) == (-8, 2)
