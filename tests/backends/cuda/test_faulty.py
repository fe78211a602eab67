"""Every verb fails at every call of a run: codes are right, nothing leaks, the next one works."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.cuda import launch_sequence
from plusequals.backends.cuda.backend import CompiledCuda
from plusequals.backends.gpu import staging
from plusequals.backends.gpu.driver_protocol import OutOfMemory
from plusequals.base.diagnostic import CdError
from plusequals.lowering import thresholds

from .faulty import VERBS, FaultyDriver
from .foreign import Theirs
from .on_cpu import backend, installed, needs_gxx

pytestmark = [needs_gxx, pytest.mark.usefixtures("young")]
Run = Callable[[], None]
"""Does something and asserts that all of its numbers are right."""
MOST = 40


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "MAX_DIRECT_UPLOAD", 64)
    monkeypatch.setattr(staging, "MAX_BUFFER_BYTES", 1 << 12)
    monkeypatch.setattr(launch_sequence, "MAX_KEPT_BYTES", 1 << 10)
    for name, value in (
        ("MIN_COLUMN_TERMS", 1 << 11),
        ("COLUMN_REDUCTION_THREADS", 500),
        ("MIN_COLUMN_TERMS_PER_THREAD", 7),
    ):
        monkeypatch.setattr(thresholds, name, value)


@pytest.fixture
def made() -> Iterator[CompiledCuda]:
    with installed(backend(FaultyDriver())) as made:
        yield made


def on(text: str) -> Any:
    return pe.cd_from_source(text, {"np": np}, backend="cuda")


def of_the_host(made: CompiledCuda) -> Run:
    f = on("def f(y, x, k):\n    y[i] = x[k[i]] + 1\n    return y * 2, y.sum()\n")
    x, k = np.arange(900.0), np.arange(900)[::-1].copy()

    def run() -> None:
        y = np.zeros((900, 2))[:, 1]
        twice, total = f(y, x, k)
        assert np.array_equal(y, x[::-1] + 1)
        assert np.array_equal(twice, 2 * y) and total == y.sum()

    return run


def of_others(made: CompiledCuda) -> Run:
    f, device = on("def f(y, x):\n    y[i] = x[i] + 1\n    return y * 2\n"), made.opened(0)
    x, y = (Theirs(device, np.arange(900.0), stream=70 + k) for k in range(2))

    def run() -> None:
        first = f(y, x)
        got = f(y, first)
        assert np.array_equal(got.numpy(), (4 * np.arange(900.0)) + 6)

    return run


def of_streams(made: CompiledCuda) -> Run:
    step = pe.cd_from_source("def f(p):\n    p[i] = p[i] * 2\n    p.grad[i] = p[i] + 1\n")
    merge = pe.cd_from_source("def g(p):\n    p.grad += p.grad.merge\n")

    def run() -> None:
        p = pe.tensor("p", (900,), "float64", init=1.0)
        streams = [pe.device(name).stream(threaded=False) for name in ("cuda:0", "cuda:1")]
        code = step.compile(p)
        one, two = (code.link(stream.context()) for stream in streams)
        into = merge.compile(p).link(one.context)
        one(), two()
        two.context.merge_into(into, p.grad)
        into()
        assert np.array_equal(p.grad.numpy(), np.full(900, 6.0))

    return run


def of_temporaries(made: CompiledCuda) -> Run:
    f = pe.cd_from_source(
        "def f(p):\n    m, k = np.zeros(40), np.zeros(900)\n    m[3::2] = p[0]\n"
        "    k[4::2] = p[1]\n    p[:] = m[7:10] + k[7:10]\n", {"np": np}
    )  # fmt: skip

    def run() -> None:
        p, want = pe.tensor("p", (3,), "float64", init=1.0), np.ones(3)
        with pe.override(pipeline="short"):
            routine = f.compile(p).link(pe.device("cuda").stream().context())
        for _ in range(3):
            routine()
            f.on("numpy")(want)
        assert np.array_equal(p.numpy(), want)
        routine.context.finalize()

    return run


def of_blocks_that_count(made: CompiledCuda) -> Run:
    """One routine, whose last block adds parts that each call takes memory for."""
    f = pe.cd_from_source("def f(s, x):\n    s[:] = x.sum(axis=0)\n    x[i, j] = x[i, j] * 2\n")
    s, x = pe.tensor("s", (100,), "float64"), pe.tensor("x", (37, 100), "float64", init=1.0)
    routine = f.compile(s, x).link(pe.device("cuda").stream().context())
    assert "comes_last(" in f.on("cuda").explain(np.zeros(100), np.zeros((37, 100))).code

    def run() -> None:
        x[...] = 1.0
        for k in range(3):
            routine()
            assert np.array_equal(s.numpy(), np.full(100, 37.0 * 2**k))

    return run


def _used_in_the_end(made: CompiledCuda, wanted: list[int]) -> list[int]:
    """Return the bytes in use on each device, once the threads of streams have let go of what they
    ran last, which may take a moment."""
    for _ in range(500):
        gc.collect()
        if (used := [made.opened(k).pool.used for k in range(2)]) == wanted:
            break
        time.sleep(0.01)
    return used


RUNS = (of_the_host, of_others, of_streams, of_temporaries, of_blocks_that_count)


@pytest.mark.parametrize("make", RUNS)
@pytest.mark.parametrize("verb", VERBS)
def test_a_run_that_fails_anywhere_leaves_all_as_it_was(
    made: CompiledCuda, verb: str, make: Callable[[CompiledCuda], Run]
) -> None:
    driver: Any = made.driver()
    run = make(made)
    run()
    gc.collect()
    used = [made.opened(k).pool.used for k in range(2)]
    for at in range(1, MOST):
        for device in map(made.opened, range(2)):
            device.pool.trim()
            device.spare.clear()
            device.staging = staging.StagingPool(device.context)
        if verb in ("allocate", "pinned"):
            driver.arm(verb, at, OutOfMemory, times=2)  # also where it is asked for again
        else:
            driver.arm(verb, at)
        try:
            run()
        except CdError as error:
            assert error.code in ("CD0884", "CD0880"), str(error)
            assert "as asked" in str(error) or error.code == "CD0880"
            error.__traceback__ = None
        failed = driver.failed
        driver.arm("", 0)
        gc.collect()
        run()
        assert _used_in_the_end(made, used) == used
        if not failed:
            return
    assert verb in ("launch", "record", "synchronize", "upload", "download", "copy"), "so many?"


@pytest.mark.parametrize("make", RUNS)
@pytest.mark.parametrize("verb", ["synchronize", "launch"])
def test_a_device_that_is_lost_says_so_every_time(
    made: CompiledCuda, verb: str, make: Callable[[CompiledCuda], Run]
) -> None:
    driver: Any = made.driver()
    run = make(made)
    run()
    driver.arm(verb, 1, sticky=True)
    for _ in range(3):
        with pytest.raises(CdError) as caught:
            run()
        assert caught.value.code == "CD0884"
        caught.value.__traceback__ = None
    driver.arm("", 0)


def test_memory_that_is_short_for_a_moment_is_not_missed(made: CompiledCuda) -> None:
    driver: Any = made.driver()
    run = of_the_host(made)
    for at in (1, 2, 3):
        driver.arm("allocate", at, OutOfMemory)
        run()
        assert driver.failed, "what was kept went, and it was asked again"
        made.opened(0).pool.trim()
