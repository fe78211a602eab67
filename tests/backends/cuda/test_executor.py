"""One run of kernels: the log that a device prints while it goes on."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.cuda.backend import translate
from plusequals.backends.gpu.driver_protocol import DriverError, Properties
from plusequals.base.diagnostic import CdError
from plusequals.dsl.instrument.instrument import instrument
from plusequals.dsl.instrument.sites import TraceFilter
from plusequals.dsl.tracing.log import log_tree
from tests.dsl.tracing.functions import CALLS
from tests.dsl.tracing.test_log import logs, without_addresses

from .foreign import Theirs
from .on_cpu import CpuContext, CpuDriver, backend, installed, needs_gxx
from .test_nvrtc import needed, needs_nvrtc

ARCHITECTURES = ((8, 0), (9, 0), (10, 0))
PRINTED = {"debug_log_from_routines": True, "debug_log_by_printf": True, "profile": "strict"}
MANY = """
def f(y, x, n):
    y[:9] = x[:9] + x[1:10] * x[2:11] - x[3:12] / x[4:13] + x[5:14] * x[6:15] + x[7:16]
    for t in range(n):
        for u in range(2):
            if y[t] > u:
                y[t] -= u + t
"""


def printed(function: Any, name: str, folder: Path, *args: Any) -> str:
    """The text of the log of a call, without addresses."""
    with pe.override(**PRINTED, dump_dir=str(folder / name)):
        function.on(name)(*args)
    (text,) = logs(folder / name).values()
    return without_addresses(text)


@needs_gxx
@pytest.mark.parametrize("name", CALLS)
def test_the_log_that_a_device_prints_is_that_of_a_processor(name: str, tmp_path: Path) -> None:
    function, make = CALLS[name]
    with installed(backend(CpuDriver(seed=5))):
        here, there = (printed(function, one, tmp_path, *make()) for one in ("cuda", "cc"))
    assert here == there
    assert "COMMENT: end" in here


@needs_gxx
@pytest.mark.parametrize("dtype", ["float32", "int32", "complex64", "uint64"])
def test_lines_of_many_values_of_every_kind(dtype: str, tmp_path: Path) -> None:
    text = MANY if dtype != "complex64" else MANY.replace("y[t] > u", "y[t].real > u")
    text = text.replace("/", "*") if dtype in ("int32", "uint64") else text
    function = pe.cd_from_source(text, {"np": np})
    x = np.arange(1, 20).astype(dtype) * np.asarray(-1 if dtype == "int32" else 1, dtype)
    with installed(backend(CpuDriver(seed=5))):
        here, there = (
            printed(function, one, tmp_path, np.zeros_like(x), x.copy(), 3)
            for one in ("cuda", "cc")
        )
    assert here == there


@needs_gxx
def test_a_wait_follows_each_line_since_there_is_little_room_for_them(tmp_path: Path) -> None:
    function = pe.cd_from_source("def f(y, x):\n    y[i] = x[i] * 2\n", {"np": np})
    driver = CpuDriver()
    with installed(backend(driver)):
        printed(function, "cuda", tmp_path, np.zeros(5), np.ones(5))
    verbs = [what[1] for what in driver.log]
    last = len(verbs) - verbs[::-1].index("launch")
    assert "synchronize" in verbs[last:]
    assert verbs.count("synchronize") >= 6, "a row and five points"


@needs_gxx
def test_a_run_that_fails_has_printed_what_came_before(tmp_path: Path) -> None:
    f = pe.cd_from_source("def f(x, k):\n    x[i] = 1\n    x[i] = x[k[i]]\n", {"np": np})
    with installed(), pytest.raises(IndexError):
        printed(f, "cuda", tmp_path, np.zeros(2), np.array([1, 5]))
    (text,) = logs(tmp_path / "cuda").values()
    assert "x[1]{=0.0} = 1.0" in text
    assert "error: error[CD0601]" in text and text.endswith("COMMENT: end\n")


class Dying(CpuContext):
    """A device that is lost at a launch."""

    def launch(self, function: Any, *given: Any) -> None:
        super().launch(function, *given)
        if sum(what[1] == "launch" for what in self.driver.log) == 12:
            self.lost = True
        if getattr(self, "lost", False):
            raise DriverError("the device is lost")

    def download(self, *given: Any) -> None:
        if getattr(self, "lost", False):
            raise DriverError("the device is lost")
        super().download(*given)


class DyingDriver(CpuDriver):
    def open(self, device: int) -> CpuContext:
        return Dying(self, device)


@needs_gxx
def test_what_a_device_printed_before_it_was_lost_is_there(tmp_path: Path) -> None:
    f = pe.cd_from_source("def f(x):\n    x[i] = 1\n    x[i] += 2\n", {"np": np})
    with installed(backend(DyingDriver())), pytest.raises(CdError, match="CD0884"):
        printed(f, "cuda", tmp_path, np.zeros(3))
    (text,) = logs(tmp_path / "cuda").values()
    assert "x[2]{=0.0} = 1.0" in text and "x[2]{=1.0}" not in text
    assert "error: error[CD0884]" in text


@needs_gxx
def test_what_others_print_passes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    f = pe.cd_from_source("def f(x):\n    x[i] += 1\n    print(x[0])\n    x[i] *= 2\n", {"np": np})
    with installed():
        text = printed(f, "cuda", tmp_path, np.zeros(2))
    assert capfd.readouterr().out == "1.0\n"
    assert text.count("# x[i]") == 4


@needs_gxx
def test_runs_at_the_same_time_have_logs_of_their_own(tmp_path: Path) -> None:
    def work(number: int) -> None:
        f = pe.cd_from_source(f"def f{number}(x):\n    x[i] += {number}\n", {"np": np})
        f.on("cuda")(np.zeros(20))

    with installed(backend(CpuDriver())), pe.override(**PRINTED, dump_dir=str(tmp_path)):
        before = pe.cd_from_source("def g(x):\n    x[i] = 1\n").on("cuda")
        before(np.zeros(1))
        for number in range(4):
            work(number)
    found = logs(tmp_path)
    assert len(found) == 5
    for number in range(4):
        tree = log_tree(found[f"debug-calls-f{number}.log"].splitlines())
        assert len(tree[-1].inner) == 20, "one for each element"  # type: ignore[union-attr]


def test_routines_of_streams_print(tmp_path: Path) -> None:
    double = pe.cd_from_source("def double(p):\n    p[i] *= 2\n")
    with installed(), pe.override(**PRINTED, dump_dir=str(tmp_path)):
        p = pe.tensor("p", 2, dtype="float64", init=1.0)
        stream = pe.device("cuda").stream()
        double.compile(p).link(stream.context())()
        stream.synchronize()
    (text,) = logs(tmp_path).values()
    assert "p[1]{=1.0} = 2.0 = 1.0 * (2.0)" in text
    assert threading.active_count() >= 1


@needs_nvrtc
@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str)
def test_kernels_that_print_are_compiled_without_a_warning(
    architecture: tuple[int, int], tmp_path: Path
) -> None:
    function, make = CALLS["steps"]
    made = instrument(function.procedure(*make()), TraceFilter(printed=True))
    device = Properties("a device", architecture, 1, 1 << 30)
    text = translate(made.procedure, device).text.text
    assert 'printf("!@#%lld: %lld' in text and "logged(run, printed);" in text
    built = needed().build(text, device.target, tmp_path)
    assert "warning" not in built.log, built.log


SWAPS = {
    "names of arguments": """
def f(u, v):
    for t in range(3):
        v[1:-1] = u[:-2] + u[2:]
        u, v = v, u
""",
    "an array that an argument takes": """
def f(out, a):
    u, v = a.copy(), a.copy()
    for t in range(3):
        v[1:-1] = u[:-2] + u[2:]
        u, v = v, u
    out[...] = u
""",
}


@needs_gxx
@pytest.mark.parametrize("name", SWAPS)
def test_what_trades_places_ends_in_the_array_of_the_caller(name: str) -> None:
    one, other = (np.arange(k, k + 40.0) for k in (1, 7))
    here, there = (one.copy(), other.copy()), (one.copy(), other.copy())
    with installed(backend(CpuDriver(seed=3))) as made:
        function = pe.cd_from_source(SWAPS[name]).on("cuda")
        function(*there)
        placed = [Theirs(made.opened(0), array) for array in (one, other)]
        function(*placed)
        found = [array.get() for array in placed]
    pe.cd_from_source(SWAPS[name]).on("numpy")(*here)
    for expected, *results in zip(here, there, found, strict=True):
        for result in results:
            np.testing.assert_array_equal(result, expected)


@needs_gxx
@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_arguments_that_trade_places_come_back_as_they_are_called(rounds: int) -> None:
    text = (
        f"def f(u, v):\n    for t in range({rounds}):\n        v[1:] = u[:-1]\n"
        "        u, v = v, u\n    return u * 1\n"
    )
    plain: dict[str, Any] = {}
    exec(text, plain)
    with installed():
        mine, pythons = ([np.arange(4.0), np.arange(4.0) * 3 + 1] for _ in range(2))
        got = pe.cd_from_source(text, backend="cuda")(*mine)
    assert np.array_equal(got, plain["f"](*pythons))
    for one, other in zip(mine, pythons, strict=True):
        assert np.array_equal(one, other)
