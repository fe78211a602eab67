"""The run-time library: who works, who waits, and what forks, signals and errors do to them."""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plusequals.backends.cc.backend import CompiledC
from plusequals.backends.cc.code import CompiledCode
from plusequals.backends.cc.loader import ffi
from plusequals.backends.cc.thread_pool import library_source
from plusequals.base import settings
from plusequals.base.diagnostic import CdValueError
from plusequals.lowering.ir.assignments import Procedure

from .. import procedures
from .forks import begun, status_of

ROOT = Path(__file__).parents[3]
SIZE = 1000
MANY = 4 << 20
"""Bytes of a temporary that is worth keeping."""


@pytest.fixture(autouse=True)
def library(shared: Path, cache_dir: Path) -> None:
    """The library is compiled once for all tests."""
    for path in shared.glob("v*/*.entry"):
        there = cache_dir / path.relative_to(shared)
        if not there.exists():
            there.write_bytes(path.read_bytes())
            there.chmod(path.stat().st_mode)


@pytest.fixture(autouse=True)
def eager() -> Iterator[None]:
    """Every loop is shared, however short."""
    with settings.override(schedule=True, threads=7, parallel_from=0):
        yield


def workers() -> int:
    """How many threads the process has."""
    return len(os.listdir("/proc/self/task"))


def scaled(code: CompiledCode) -> list[float]:
    y = np.zeros(SIZE)
    code.run((y, np.arange(float(SIZE))))
    return y.tolist()


def scale() -> Procedure:
    return procedures.scale(size=SIZE)


RIGHT = [2.0 * n for n in range(SIZE)]
needs_proc = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="no /proc here")


# --------------------------------------------------------------------------------- who works


@pytest.mark.parametrize("name", ["run", "part", "lib", "work", "shared", "threads"])
def test_a_function_may_have_any_name(cc: CompiledC, name: str) -> None:
    assert scaled(cc.compile(replace(scale(), name=name))) == RIGHT


def test_a_call_that_is_repeated_may_share_its_loops(cc: CompiledC) -> None:
    y = np.zeros(SIZE)
    call = cc.compile(scale()).bind((y, np.arange(float(SIZE))))
    for _ in range(3):
        y[:] = 0
        assert call() == () and y.tolist() == RIGHT


def test_a_loop_is_shared_by_as_many_threads_as_were_asked_for(cc: CompiledC) -> None:
    code = cc.compile(scale())
    assert code.source.asks
    assert code.parallel_limits == (7, 0)
    before = workers()
    assert scaled(code) == RIGHT
    assert workers() - before in (0, 6), "the workers stay, and are started only once"


@needs_proc
def test_workers_are_started_when_a_loop_needs_them_and_end_with_the_backend(
    cc: CompiledC,
) -> None:
    before = workers()
    codes = []
    for threads, more in ((1, 0), (2, 1), (7, 6), (2, 6)):
        with settings.override(threads=threads):
            codes.append(cc.compile(scale()))
            assert scaled(codes[-1]) == RIGHT
            assert workers() == before + more
    codes.clear()
    del cc
    gc.collect()
    assert workers() >= before  # the fixture still has the backend


@needs_proc
def test_the_library_takes_its_workers_with_it() -> None:
    before = workers()
    cc = CompiledC()
    code = cc.compile(scale())
    assert scaled(code) == RIGHT
    assert workers() == before + 6
    del cc, code
    gc.collect()
    assert workers() == before


@needs_proc
@needs_proc
def test_finalizers_of_what_goes_with_a_library_may_share_loops() -> None:
    said: list[Any] = []

    class Holder:
        """One of a circle that holds a backend and its code, whose workers have begun."""

        def __init__(self) -> None:
            self.made, self.itself = CompiledC(), self
            self.code = self.made.compile(scale())
            scaled(self.code)

        def __del__(self) -> None:
            said.append(scaled(self.code))

    before = workers()
    Holder()
    gc.collect()
    assert said == [RIGHT]
    ended = time.monotonic() + 10
    while workers() > before and time.monotonic() < ended:
        time.sleep(0.01)
    assert workers() == before


def test_workers_are_woken_up_for_some_work_only_where_it_goes_on() -> None:
    y, cc, before = np.zeros(SIZE), CompiledC(), workers()
    with settings.override(parallel_from=800):
        call = cc.compile(scale()).bind((y, np.arange(float(SIZE))))
        call()
        assert (workers(), y.tolist()) == (before, RIGHT), "who sleeps would come too late"
        for _ in range(2000):
            call()
        assert workers() > before
    with settings.override(parallel_from=100):
        other = CompiledC()
        now = workers()
        other.compile(scale()).bind((y, np.arange(float(SIZE))))()
        assert workers() > now, "it is long enough for those who have to be woken up"
    assert y.tolist() == RIGHT


def test_little_work_is_not_shared(cc: CompiledC) -> None:
    before = workers()
    with settings.override(parallel_from=1_000_000):
        assert not cc.compile(scale()).source.asks
        assert cc.compile(procedures.scale(size=10**7)).source.asks
    assert workers() == before


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_every_round_is_run_once(cc: CompiledC, threads: int) -> None:
    with settings.override(schedule=True, threads=threads, parallel_from=40):
        code = cc.compile(procedures.counted())
        for size in (1, 2, 3, 5, 8, 13, 27, 28, 29, 64, 100, 1000, 5003, 70_001):
            y = np.zeros(size)
            for _ in range(3):
                code.run((y,))
            assert y.tolist() == [3.0] * size


def test_several_threads_at_once_get_what_they_would_get_alone(cc: CompiledC) -> None:
    codes = [cc.compile(procedures.scale(factor, SIZE)) for factor in (2.0, 3.0, 5.0)]
    x = np.arange(float(SIZE))

    def many(number: int) -> bool:
        y, code = np.zeros(SIZE), codes[number % 3]
        for _ in range(200):
            y[...] = 0
            code.run((y, x))
            if not np.array_equal(y, x * (2.0, 3.0, 5.0)[number % 3]):
                return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(many, range(4)))


def test_the_first_fault_in_order_is_raised_every_time(cc: CompiledC) -> None:
    code = cc.compile(procedures.roots(SIZE))
    y, x = np.zeros(SIZE), np.ones(SIZE)
    x[[300, 301, 650, 999]] = -1, -2, -3, -4
    for _ in range(50):
        with pytest.raises(CdValueError, match=re.escape("x is -1.0 at i = 300")):
            code.run((y, x))
    x[...] = 4
    code.run((y, x))
    assert (y == 2).all()


def test_the_text_is_the_same_for_every_number_of_threads(cc: CompiledC) -> None:
    with settings.override(threads=2):
        one = cc.compile(scale())
    assert cc.compile(scale()).text == one.text


# ------------------------------------------------------------------------------------- forks


def forked(child: Callable[[], bool]) -> bool:
    """Whether a forked child says so, within a minute."""
    pid = begun(child)
    status = status_of(pid, 60)
    if status is None:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return status == 0


def test_a_child_forked_before_between_and_after_uses_shares_its_loops(cc: CompiledC) -> None:
    code = cc.compile(scale())

    def child() -> bool:
        return all(scaled(code) == RIGHT for _ in range(20)) and workers() > 6

    assert forked(child)
    assert scaled(code) == RIGHT
    assert forked(child)
    assert forked(lambda: child() and forked(child))
    assert scaled(code) == RIGHT


def test_a_child_forked_while_a_loop_runs_is_whole_and_so_is_the_parent(cc: CompiledC) -> None:
    code = cc.compile(scale())
    stop, wrong = threading.Event(), []

    def busy() -> None:
        while not stop.is_set():
            if scaled(code) != RIGHT:
                wrong.append(1)

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        for _ in range(10):
            assert forked(lambda: all(scaled(code) == RIGHT for _ in range(5)))
    finally:
        stop.set()
        thread.join()
    assert not wrong
    assert scaled(code) == RIGHT


# ----------------------------------------------------------------------------------- signals


def long_call(cache: Path, name: str, what: str) -> subprocess.Popen[str]:
    """A process that has a call ready which takes for ever."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.backends.cc.long_calls", str(cache), name, what],
        cwd=ROOT, text=True, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize(
    ("name", "way"),
    [
        *((name, "interrupted") for name in ("steps", "sum_of", "search", "shared")),
        *((name, "short") for name in ("steps", "search", "shared")),  # `sum_of` is of one `n`
    ],
)
def test_ctrl_c_ends_a_long_call(cache_dir: Path, name: str, way: str) -> None:
    with long_call(cache_dir, name, way) as process:
        assert process.stdout is not None
        for _ in range(2):
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "interrupted\n"
        rest = process.stdout.read()
    whole = {"steps": [1.998046875] * 2, "sum_of": [5.0, 0.0], "search": [0.0, 10.0]}
    assert rest == f"{whole.get(name, whole['steps'])}\n"
    assert process.returncode == 0


def test_a_handler_that_raises_nothing_does_not_end_a_call_and_another_error_does(
    cache_dir: Path,
) -> None:
    with long_call(cache_dir, "steps", "handled") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "set\n"
        for _ in range(2):
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        process.send_signal(signal.SIGUSR1)
        assert process.stdout.read() == "heard 2\n"
    assert process.returncode == 0


def lending(cc: CompiledC) -> tuple[Callable[[int], Any], Callable[[Any], None]]:
    """Return what lends storage to generated code, and what takes it back."""
    table = cc.threads().table(1, 0)
    lend = ffi.cast("void *(*)(int64_t)", table[4])
    return lend, ffi.cast("void (*)(void *)", table[5])


def test_what_a_call_had_is_lent_to_later_ones(cc: CompiledC) -> None:
    lend, give_back = lending(cc)
    first, second = lend(MANY), lend(MANY)
    assert first != second and ffi.NULL not in (first, second)
    assert int(ffi.cast("intptr_t", first)) % 64 == 0
    give_back(second)
    assert lend(MANY - MANY // 8) == second, "little of it is wasted"
    larger = lend(2 * MANY)
    assert larger not in (first, second)
    for storage in (larger, second, first):
        give_back(storage)
    assert {lend(MANY), lend(MANY)} == {first, second}
    for storage in (first, second):
        give_back(storage)
    assert lend(1 << 62) == ffi.NULL, "there is not so much"
    again = lend(MANY)
    assert again != ffi.NULL, "what was kept was given back before"
    give_back(again)


def test_small_storage_does_not_age_what_is_large(cc: CompiledC) -> None:
    lend, give_back = lending(cc)
    large = lend(MANY)
    give_back(large)
    for size in (0, 1, 1000):
        for _ in range(100):
            give_back(lend(size))
    assert lend(MANY) == large
    give_back(large)


@needs_proc
def test_not_everything_is_kept_for_later_calls(cc: CompiledC) -> None:
    lend, give_back = lending(cc)

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = resident()
    storages = [lend(16 * MANY) for _ in range(4)]
    for storage in storages:
        ffi.memmove(storage, bytes(16 * MANY), 16 * MANY)
    assert resident() - before > 60 * MANY
    for storage in storages:
        give_back(storage)
    assert resident() - before < 36 * MANY, "so much is kept"
    for _ in range(100):  # what nobody wants for a while is let go
        give_back(lend(MANY // 2))
    assert resident() - before < 4 * MANY


def test_the_library_can_be_made_without_threads(tmp_path: Path, real_compiler: str) -> None:
    """Where there are none its text is still C, and runs loops alone."""
    text = library_source().text.replace("__has_include(<pthread.h>)", "0")
    (tmp_path / "alone.c").write_text(text)
    command = [real_compiler, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function",
               "-c", "-o", str(tmp_path / "alone.o"), str(tmp_path / "alone.c")]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
