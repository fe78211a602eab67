"""Runs that are queued on a device while the host goes on: few calls, and all in order."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.cuda import launch_sequence
from plusequals.backends.cuda.backend import CompiledCuda
from plusequals.backends.gpu.driver_protocol import OutOfMemory
from plusequals.backends.runtime.async_dispatch import LaunchEvent
from plusequals.backends.runtime.state import RUNTIME
from plusequals.base.diagnostic import CdError
from tests.backends.runtime.random_program import Program

from .faulty import FaultyDriver
from .on_cpu import backend, installed, needs_gxx

pytestmark = needs_gxx
STEP = "def step(p):\n    p[i] = p[i] * 2 + 1\n"


def on(text: str) -> Any:
    return pe.cd_from_source(text, {"np": np})


def p_of(n: int = 3, label: str = "p", init: float = 1.0) -> Any:
    return pe.tensor(label, (n,), "float64", init=init)


def log_of(made: CompiledCuda) -> list[Any]:
    found: list[Any] = made.opened(0).context.driver.log  # type: ignore[attr-defined]
    return found


def is_ahead(routine: Any) -> bool:
    return isinstance(routine.context.stream.worker.latest, LaunchEvent)


@pytest.fixture
def driver() -> Iterator[FaultyDriver]:
    """Devices that do everything late, and may be told to fail."""
    found = FaultyDriver()
    found.devices = 4
    with installed(backend(found)):
        yield found
        for device in list(RUNTIME.devices.values()):
            device.synchronize()


@pytest.fixture
def made(driver: FaultyDriver) -> CompiledCuda:
    found = RUNTIME.backend("cuda")
    assert isinstance(found, CompiledCuda)
    return found


def test_a_kernel_is_one_call_of_the_driver(made: CompiledCuda) -> None:
    p = p_of()
    stream = pe.device("cuda").stream()
    routine = on(STEP).compile(p).link(stream.context())
    routine(), routine()
    stream.synchronize()
    log_of(made).clear()
    for _ in range(5):
        routine()
    assert not log_of(made), "nothing is waited for"
    queues: Any = made.opened(0).context.queues  # type: ignore[attr-defined]
    assert sorted(map(len, queues.values()))[-2:] in ([5], [0, 5]), "nothing but the kernels"
    assert is_ahead(routine) and not stream.worker.latest.done
    assert np.array_equal(p.numpy(), np.full(3, 255.0))
    assert [what[1] for what in log_of(made)].count("synchronize") <= 3
    assert stream.query()


@pytest.mark.parametrize("rounds", [2, 3])
def test_an_argument_that_trades_places_comes_home(made: CompiledCuda, rounds: int) -> None:
    p, q = p_of(40), p_of(40, "q", 0.0)
    text = (
        f"def f(q, p):\n    u, v = p.copy(), p.copy()\n    for t in range({rounds}):\n"
        "        v[1:-1] = u[:-2] + u[2:] * (t + 1)\n        u, v = v, u\n    q[...] = u\n"
    )
    routine = on(text).compile(q, p).link(pe.device("cuda").stream().context())
    want = np.zeros(40)
    on(text).on("numpy")(want, np.ones(40))
    for _ in range(3):
        routine()
    assert is_ahead(routine)
    assert np.array_equal(q.numpy(), want)


def test_temporaries_are_kept_and_cleared_for_each_run(made: CompiledCuda) -> None:
    p, q = p_of(100), p_of(100, "q", 0.0)
    text = (
        "def f(p, q):\n    m = np.zeros(100)\n    for t in range(3):\n"
        "        m[p.shape[0] - 1 - t] += p[t]\n        q[i] += m[i] * (t + 1)\n"
    )
    routine = on(text).compile(p, q).link(pe.device("cuda").stream().context())
    want = np.zeros(100)
    for _ in range(4):
        routine()
        on(text).on("numpy")(np.ones(100), want)
    assert is_ahead(routine)
    assert np.array_equal(q.numpy(), want)
    used = made.opened(0).pool.used
    del routine
    gc.collect()
    assert made.opened(0).pool.used < used


def test_finalizers_of_what_goes_with_a_routine_may_call_it(made: CompiledCuda) -> None:
    """Its thread is there, and so are its temporaries, which nobody else has meanwhile."""
    p, q = p_of(100), p_of(100, "q", 0.0)
    text = (
        "def f(p, q):\n    m = np.zeros(100)\n    for t in range(3):\n"
        "        m[p.shape[0] - 1 - t] += p[t]\n        q[i] += m[i] * (t + 1)\n"
    )
    opened, mine = made.opened(0), np.arange(100.0)
    want, taken = np.zeros(100), []
    for _ in range(5):
        on(text).on("numpy")(np.ones(100), want)

    class Holder:
        """One of a circle that holds a routine, and its stream."""

        def __init__(self) -> None:
            self.routine, self.itself = _routine(), self
            for _ in range(3):
                self.routine()

        def __del__(self) -> None:
            taken.append(opened.pool.take(800, "m", "other", opened.plain))
            opened.upload(taken[0], mine, opened.plain)
            opened.wait(opened.plain)
            self.routine(), self.routine()
            self.routine.context.stream.synchronize()
            taken.append(q.numpy())

    def _routine() -> Any:
        return on(text).compile(p, q).link(pe.device("cuda").stream().context())

    Holder()
    gc.collect()
    address, found = taken
    assert np.array_equal(found, want)
    still = np.zeros(100)
    opened.download(still, address, opened.plain)
    assert np.array_equal(still, mine), "nobody else had it"
    opened.pool.give_back([address], opened.plain)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def f(p):\n    p[i] = p[i] * 2 + 1\n    print(p[0])\n", "it prints"),
        ("def f(p):\n    p[i] = p[int(p[0]) % 4]\n", "it may fail"),
        ("def f(p):\n    p[i] = p[int(p[0]) % 2]\n", "the host looks up where"),
    ],
    ids=lambda one: one if " " in one and "\n" not in one else "",
)  # fmt: skip
def test_other_runs_are_waited_for(made: CompiledCuda, text: str, why: str) -> None:
    p, want = p_of(), np.ones(3)
    with pe.override(pipeline="short"):
        routine = on(text).compile(p).link(pe.device("cuda").stream().context())
        for _ in range(3):
            routine()
            on(text).on("numpy")(want)
    assert np.array_equal(p.numpy(), want)
    assert not is_ahead(routine), why


LARGE = (
    "def f(p):\n    m = np.zeros(40)\n    m[3::2] = p[0]\n    m[4::2] = p[1]\n"
    "    p[:] = m[7:10] + m.sum()\n"
)


@pytest.fixture
def borrowed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Temporaries are taken by each call."""
    monkeypatch.setattr(launch_sequence, "MAX_KEPT_BYTES", 300)
    with pe.override(pipeline="short"):
        yield


@pytest.mark.usefixtures("borrowed")
def test_large_temporaries_are_taken_by_each_call_and_shared_by_those_of_a_stream(
    made: CompiledCuda,
) -> None:
    both, wants = [p_of(label=name) for name in "pq"], [np.ones(3), np.ones(3)]
    stream, pool = pe.device("cuda").stream(), made.opened(0).pool
    routines = [on(LARGE).compile(p).link(stream.context()) for p in both]
    for routine in routines * 2:
        routine()
    stream.synchronize()
    log_of(made).clear()
    used, kept = pool.used, pool.pooled_bytes
    for _ in range(4):
        for routine, want in zip(routines, wants, strict=True):
            routine()
            on(LARGE).on("numpy")(want)
    assert is_ahead(routines[0]) and not stream.worker.latest.done
    assert not [what for what in log_of(made) if what[1] in ("allocate", "synchronize", "wait")]
    assert (pool.used, pool.pooled_bytes) == (used, kept), "none is held behind a call"
    for p, want in zip(both, wants, strict=True):
        on(LARGE).on("numpy")(want), on(LARGE).on("numpy")(want)
        assert np.array_equal(p.numpy(), want)


@pytest.mark.usefixtures("borrowed")
def test_large_temporaries_that_lie_elsewhere_the_next_time(made: CompiledCuda) -> None:
    p, want, pool = p_of(), np.ones(3), made.opened(0).pool
    one, two = (pe.device("cuda").stream() for _ in range(2))
    routine = on(LARGE).compile(p).link(one.context())
    sizes = [size for size, pieces in pool._free.items() for _ in pieces]
    held: list[int] = []
    for k in range(6):
        routine()
        on(LARGE).on("numpy")(want)
        assert is_ahead(routine) or not k, "the first one has to be loaded"
        if k % 2:  # somebody else has what it had, on another stream: it waits on the device
            held += [pool.take(size, "x", "other", two.lane) for size in sizes]
        elif held:
            pool.give_back([held.pop()], two.lane)
    assert np.array_equal(p.numpy(), want)
    pool.give_back(held, two.lane)


@pytest.mark.usefixtures("borrowed")
def test_large_temporaries_that_do_not_fit_are_told_by_the_next_wait(
    made: CompiledCuda, driver: FaultyDriver
) -> None:
    p, want = p_of(), np.ones(3)
    opened, stream = made.opened(0), pe.device("cuda").stream()
    routine = on(LARGE).compile(p).link(stream.context())
    routine(), routine()
    stream.synchronize()
    for _ in range(2):
        on(LARGE).on("numpy")(want)
    routine()
    on(LARGE).on("numpy")(want)
    sizes = [size for size, pieces in opened.pool._free.items() for _ in pieces]
    held = [opened.pool.take(size, "x", "other", stream.lane) for size in sizes]
    driver.arm("allocate", 1, OutOfMemory, times=2)
    routine()
    with pytest.raises(CdError, match="CD0880"):
        stream.synchronize()
    opened.pool.give_back(held, stream.lane)
    assert np.array_equal(p.numpy(), want), "what came before it is done"
    routine()
    on(LARGE).on("numpy")(want)
    assert np.array_equal(p.numpy(), want)


def test_other_streams_wait_for_what_was_not_waited_for(made: CompiledCuda) -> None:
    p, q = p_of(), p_of(label="q")
    one, two = (pe.device("cuda").stream() for _ in range(2))
    first = on(STEP).compile(p).link(one.context())
    then = on("def g(q, p):\n    q[i] = p[i]\n").compile(q, p).link(two.context())
    for k in range(6):
        first()
        then.context.copy_from(first.context, p)
        then()
        first()
        assert np.array_equal(q.numpy(), np.full(3, 4.0 ** (k + 1) - 1))
    assert np.array_equal(first.context.numpy(p), np.full(3, 2.0**13 - 1))


def test_the_host_reads_writes_and_runs_in_order(made: CompiledCuda) -> None:
    p = p_of()
    stream = pe.device("cuda").stream()
    routine = on(STEP).compile(p).link(stream.context())
    for value in (3.0, 5.0):
        p[...] = value
        for _ in range(3):
            routine()
        with p.edit() as held:
            assert np.array_equal(held, np.full(3, 8 * value + 7))
            held[0] = 0.0
        routine()
        assert np.array_equal(on("def f(p):\n    return p + 1\n").on("cc")(p), p.numpy() + 1)
        assert p.numpy()[0] == 1.0
    event = stream.record()
    routine()
    event.wait()
    assert event.done


def test_routines_by_turns_need_no_more_than_one_alone(made: CompiledCuda) -> None:
    p, q = p_of(), p_of(label="q", init=0.0)
    context = pe.device("cuda").stream().context()
    one = on(STEP).compile(p).link(context)
    two = on("def g(q, p):\n    q[i] += p[i]\n").compile(q, p).link(one.context)
    for _ in range(3):
        one(), two()
    decisions = RUNTIME.scheduling.decisions
    for _ in range(4):
        one(), two()
    assert RUNTIME.scheduling.decisions == decisions, "nothing is found out again"
    assert np.array_equal(p.numpy(), np.full(3, 255.0))
    assert np.array_equal(q.numpy(), np.full(3, sum(2.0 ** (k + 2) - 1 for k in range(7))))


@pytest.mark.parametrize(
    ("verb", "note"),
    [
        ("launch", "in the routine `step` on cuda:0/s0"),
        ("synchronize", "of `step`, not waited for on cuda:0/s0"),
    ],
)
def test_what_fails_is_told_once_by_the_next_wait(
    driver: FaultyDriver, verb: str, note: str
) -> None:
    p = p_of()
    stream = pe.device("cuda").stream()
    routine = on(STEP).compile(p).link(stream.context())
    routine(), routine()
    stream.synchronize()
    driver.arm(verb, 1)
    routine()
    with pytest.raises(CdError, match="CD0884") as caught:
        stream.synchronize()
    assert note in str(caught.value)
    stream.synchronize()
    p[...] = 1.0
    routine()
    assert np.array_equal(p.numpy(), np.full(3, 3.0))


@pytest.mark.parametrize("kept", [0, 1 << 20])
def test_a_forked_child_asks_the_device_for_nothing(
    made: CompiledCuda, driver: FaultyDriver, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch_sequence, "MAX_KEPT_BYTES", kept)
    p = p_of()
    with pe.override(pipeline="short"):
        routine = on(LARGE).compile(p).link(pe.device("cuda").stream().context())
    routine(), routine()
    made.after_fork()
    driver.log.clear()
    routine()
    with pytest.raises(CdError, match="a forked process cannot use"):
        routine.context.stream.synchronize()
    assert not driver.log


def test_what_was_queued_behind_a_failure_is_dropped(driver: FaultyDriver) -> None:
    p = p_of()
    stream = pe.device("cuda").stream()
    routine = on(STEP).compile(p).link(stream.context())
    add = on("def add(p, x):\n    p[i] += x[i]\n").compile(p, np.ones(3)).link(routine.context)
    routine(), add(np.ones(3))
    stream.synchronize()
    driver.arm("launch", 1)
    routine()
    with pytest.raises(CdError, match="CD0884"):
        add(np.ones(3))
    assert np.array_equal(p.numpy(), np.full(3, 4.0))


def test_threads_that_call_and_wait(driver: FaultyDriver) -> None:
    fields = [p_of(label=f"p{n}") for n in range(3)]
    streams = [pe.device("cuda").stream() for _ in fields]
    routines = [
        on(STEP).compile(p).link(stream.context())
        for p, stream in zip(fields, streams, strict=True)
    ]

    def work(n: int) -> None:
        for k in range(30):
            routines[n]()
            if k % 7 == n:
                streams[n].synchronize()
            if k % 11 == n:
                fields[n].numpy()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for p in fields:
        assert np.array_equal(p.numpy(), np.full(3, 2.0**31 - 1))


def test_random_programs(driver: FaultyDriver) -> None:
    assert all(Program(seed, "cuda").run(40) > 0 for seed in range(30))
