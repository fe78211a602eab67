"""Foreign code in the order of all routines: what it sees, who waits for it, what is refused."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.runtime.state import RUNTIME
from tests.backends.runtime.test_queue import BOTH

TWICE = pe.cd_from_source("def twice(p):\n    p[i] = p[i] * 2\n")
INTO = pe.cd_from_source("def into(q, p):\n    q[i] = p[i] + 1\n")
ANSWER = pe.cd_from_source("def answer(p):\n    return p.sum()\n", {"np": np})
PLACES = pytest.mark.parametrize("place", ["numpy", "numpy:1", "cc"])
WRITING = pytest.mark.parametrize("mode", ["w", "rw"])
SOON = 0.05


@pytest.fixture(autouse=True)
def _nothing_is_held_afterwards() -> Iterator[None]:
    yield
    assert RUNTIME.holds == []


def tensor(label: str = "p", init: Any = (1, 2), **more: Any) -> Any:
    return pe.tensor(label, 2, dtype="float64", init=init, **more)


def stream_of(place: str = "numpy", threaded: bool = True) -> pe.Stream:
    return pe.device(place).stream(threaded)


def linked(p: Any, place: str = "numpy", threaded: bool = True) -> Any:
    return TWICE.compile(p).link(stream_of(place, threaded).context())


@contextmanager
def stopped(stream: pe.Stream) -> Iterator[threading.Event]:
    """Let a stream stand still until the event is set, at the latest at the end."""
    gate = threading.Event()
    stream.submit(gate.wait)
    try:
        yield gate
    finally:
        gate.set()


class Other:
    """What another thread does, and whether it has done it."""

    def __init__(self, run: Callable[[], Any]) -> None:
        self.got: list[Any] = []
        self.errors: list[BaseException] = []
        self._run = run
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()

    def _work(self) -> None:
        try:
            self.got.append(self._run())
        except BaseException as error:
            self.errors.append(error)

    def is_waiting(self) -> bool:
        self.thread.join(SOON)
        return self.thread.is_alive()

    def result(self) -> Any:
        self.thread.join(20)
        assert not self.thread.is_alive()
        if self.errors:
            raise self.errors[0]
        return self.got[0]


# ---------------------------------------------------------------- what is seen


@PLACES
@BOTH
def test_routines_and_the_host_see_what_foreign_code_wrote(place: str, threaded: bool) -> None:
    p = tensor()
    routine = linked(p, place, threaded)
    routine()
    with routine.context.device_pointer(p, "rw") as a:
        assert a.tolist() == [2, 4]
        a += 1
    assert p.numpy().tolist() == routine.context.numpy(p).tolist() == [3, 5]
    routine()
    assert p.numpy().tolist() == [6, 10] and np.asarray(p).tolist() == [6, 10]
    with routine.context.device_pointer(p.value, "w") as a:
        a[:] = [7, 8]
    routine()
    assert p[0] == 14 and ANSWER(p) == 30


@PLACES
@BOTH
def test_reading_loads_what_the_host_wrote_as_a_call_does(place: str, threaded: bool) -> None:
    p = tensor()
    routine = linked(p, place, threaded)
    for n, mode in enumerate(("r", "rw", "r")):
        p[...] = n
        with routine.context.device_pointer(p, mode) as a:
            assert a.tolist() == [n, n]
    tick = p.value.clock
    with routine.context.device_pointer(p) as a:
        assert not a.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            a[0] = 1
    assert p.value.clock == tick, "a look is no version"


@BOTH
def test_writing_all_of_it_loads_nothing(threaded: bool) -> None:
    p = tensor()
    routine = linked(p, "numpy:1", threaded)
    p[...] = 5
    with pe.profile() as timeline, routine.context.device_pointer(p, "w") as a:
        a[:] = 3
    assert not [work for work in timeline.works if work.kind == "copy"]
    assert p.numpy().tolist() == [3, 3]


def test_what_was_given_is_read_only_afterwards() -> None:
    p = tensor()
    with linked(p).context.device_pointer(p, "w") as a:
        a[:] = 3
    with pytest.raises(ValueError, match="read-only"):
        a[0] = 1


@WRITING
def test_a_new_version_goes_where_that_of_a_routine_goes(mode: str) -> None:
    p = tensor()
    one, two = linked(p), linked(p)
    with one.context.device_pointer(p, mode) as a:
        a[:] = 10
    two()
    assert two.context.numpy(p).tolist() == [2, 4], "streams do not follow each other"
    two.context.copy_from(one.context, p)
    two()
    assert two.context.numpy(p).tolist() == [20, 20]
    third = linked(p)
    third()
    assert third.context.numpy(p).tolist() == [40, 40], "what is made starts as the newest version"


def test_an_error_inside_ends_it_and_what_was_written_counts() -> None:
    p = tensor()
    routine = linked(p)
    with pytest.raises(ZeroDivisionError), routine.context.device_pointer(p, "rw") as a:
        a[0] = 9
        raise ZeroDivisionError
    routine()
    assert p.numpy().tolist() == [18, 4]


# ---------------------------------------------------------------- who waits for whom


@pytest.mark.parametrize("mode", ["r", "w", "rw"])
def test_it_begins_when_what_writes_the_array_is_done(mode: str) -> None:
    p = tensor()
    routine = linked(p)

    def use() -> Any:
        with routine.context.device_pointer(p, mode) as a:
            return a.tolist()

    with stopped(routine.context.stream) as gate:
        routine()
        other = Other(use)
        assert other.is_waiting()
        gate.set()
        assert other.result() == [2, 4]


@WRITING
def test_a_write_begins_when_what_reads_the_array_is_done_and_a_read_at_once(mode: str) -> None:
    p, q = tensor(), tensor("q")
    context = linked(p).context
    reader = INTO.compile(q, p).link(context)
    reading, writing = context.device_pointer(p, "r"), context.device_pointer(p, mode)
    with stopped(context.stream) as gate:
        reader()
        with reading as a:
            assert a.tolist() == [1, 2]

        def write() -> None:
            with writing as a:
                a[:] = 100

        other = Other(write)
        assert other.is_waiting()
        gate.set()
        other.result()
    assert q.numpy().tolist() == [2, 3] and p.numpy().tolist() == [100, 100]


@PLACES
@WRITING
@BOTH
def test_everything_of_other_threads_waits_for_a_write(
    place: str, mode: str, threaded: bool
) -> None:
    p, q = tensor(), tensor("q")
    routine = linked(p, place, threaded)
    reader = INTO.compile(q, p).link(routine.context)
    away = linked(p, "numpy:2", threaded)

    def reads() -> Any:
        reader()
        return q.numpy().tolist()

    with routine.context.device_pointer(p, mode) as a:
        others = [Other(p.numpy), Other(lambda: np.from_dlpack(p)), Other(reads)]
        others.append(Other(lambda: routine.context.numpy(p)))
        others.append(Other(lambda: away.context.copy_from(routine.context, p) or away.context))
        waiting = [other.is_waiting() for other in others[:4]]
        assert all(waiting), waiting
        a[:] = 6
    assert [np.asarray(other.result()).tolist() for other in others[:2]] == [[6, 6]] * 2
    assert others[2].result() == [7, 7] and others[3].result().tolist() == [6, 6]
    assert others[4].result().numpy(p).tolist() == [6, 6]


@BOTH
def test_writes_of_others_wait_for_a_read(threaded: bool) -> None:
    p, q = tensor(), tensor("q")
    routine = linked(p, threaded=threaded)
    reader = INTO.compile(q, p).link(routine.context)
    with routine.context.device_pointer(p) as a:
        reader()
        assert q.numpy().tolist() == [2, 3], "reads go on"
        other = Other(lambda: (routine(), routine.context.numpy(p).tolist()))
        assert other.is_waiting() and a.tolist() == [1, 2]
    assert other.result()[1] == [2, 4]


def test_two_read_at_once_in_one_thread_and_in_two() -> None:
    p = tensor()
    context = linked(p).context
    with context.device_pointer(p) as a, context.device_pointer(p, "r") as b:
        assert a.tolist() == b.tolist() == [1, 2]

        def read() -> Any:
            with context.device_pointer(p) as c:
                return c.tolist()

        assert Other(read).result() == [1, 2]


def test_what_reads_in_place_takes_its_copy_first() -> None:
    p = tensor()
    one = (
        pe.cd_from_source("def f(p):\n    p.grad[i] = 5.0\n").compile(p).link(stream_of().context())
    )
    merge = pe.cd_from_source("def g(p):\n    p.grad += p.grad.merge\n").compile(p)
    two = merge.link(stream_of().context())
    one()
    one.context.merge_into(two, p.grad, mode="streaming")
    with one.context.device_pointer(p.grad, "w") as a:
        a[:] = 100
    two()
    assert two.context.numpy(p.grad).tolist() == [5, 5]


@BOTH
def test_many_threads_add_one_each_time(threaded: bool) -> None:
    p = tensor(init=0)
    routine = linked(p, threaded=threaded)

    def count() -> None:
        for _ in range(50):
            with routine.context.device_pointer(p, "rw") as a:
                a += 1

    others = [Other(count) for _ in range(4)]
    for other in others:
        other.result()
    assert p.numpy().tolist() == [200, 200]


@WRITING
def test_routines_of_the_thread_itself_are_queued_behind_it(mode: str) -> None:
    p = tensor()
    routine = linked(p)
    with routine.context.device_pointer(p, mode) as a:
        routine()
        a[:] = 3
    assert p.numpy().tolist() == [6, 6]


def test_a_plan_that_was_recorded_before_waits_for_it() -> None:
    p = tensor()
    routine = linked(p)
    with pe.plan() as plan:
        routine()
    with routine.context.device_pointer(p, "w") as a:
        other = Other(plan)
        assert other.is_waiting()
        a[:] = 4
    other.result()
    assert p.numpy().tolist() == [8, 8]


# ---------------------------------------------------------------- what is refused


@WRITING
@BOTH
def test_what_would_wait_for_the_thread_itself_is_refused(mode: str, threaded: bool) -> None:
    p, q = tensor(), tensor("q")
    routine = linked(p, threaded=threaded)
    reader = INTO.compile(q, p).link(routine.context)
    compiled = pe.cd_from_source("def f(p):\n    return p[0]\n").compile(p)
    summed = compiled.link(routine.context)
    context = routine.context

    def again() -> None:
        with context.device_pointer(p, "r"):
            raise AssertionError

    uses: list[Callable[[], Any]] = [
        p.numpy, lambda: p[0], lambda: p.__setitem__(0, 1.0), lambda: ANSWER(p), again, summed,
        lambda: context.numpy(p), lambda: np.from_dlpack(p), lambda: TWICE(p),
    ]  # fmt: skip
    with context.device_pointer(p, mode) as a:
        for use in uses:
            with pytest.raises(RuntimeError, match=r"CD0877.*`with context.device_pointer\(p\)`"):
                use()
        if not threaded:
            for call in (routine, reader):
                with pytest.raises(RuntimeError, match="CD0877"):
                    call()
        a[:] = 1
    assert p.numpy().tolist() == [1, 1] and q.numpy().tolist() == [1, 2]
    routine()
    assert p.numpy().tolist() == [2, 2]


def test_a_write_inside_of_a_read_of_the_same_thread_is_refused() -> None:
    p = tensor()
    context = linked(p).context
    with context.device_pointer(p):
        for mode in ("w", "rw"):
            with pytest.raises(pe.CdError, match="CD0877"), context.device_pointer(p, mode):
                raise AssertionError
    with context.device_pointer(p, "w") as a:
        a[:] = 0
    assert p.numpy().tolist() == [0, 0]


def test_a_wait_for_what_waits_for_the_thread_itself_is_refused() -> None:
    p, q = tensor(), tensor("q")
    routine = linked(p)
    reader = INTO.compile(q, p).link(routine.context)
    behind = linked(q)
    stream = routine.context.stream
    with routine.context.device_pointer(p, "w") as a:
        Other(reader).result()  # it is queued
        while not stream.worker.running:
            time.sleep(0.001)
        behind.context.copy_from(reader.context, q)
        for wait in (stream.synchronize, q.numpy, behind.context.stream.synchronize):
            with pytest.raises(pe.CdError, match="CD0877"):
                wait()
        a[:] = 8
    assert q.numpy().tolist() == [9, 9]


def test_a_wait_for_what_was_queued_before_is_none_for_the_thread_itself() -> None:
    p, q = tensor(), tensor("q")
    routine = linked(p)
    reader = INTO.compile(q, p).link(routine.context)
    stream, gate = routine.context.stream, threading.Event()
    with routine.context.device_pointer(p, "w") as a:
        running, queued = stream.submit(gate.wait), stream.submit(int)
        reader()
        timer = threading.Timer(SOON, gate.set)
        timer.start()
        running.wait()
        queued.wait()
        timer.join()
        a[:] = 8
    assert q.numpy().tolist() == [9, 9]


def test_two_threads_that_wait_for_each_other_notice() -> None:
    p, q = tensor(), tensor("q")
    one, two = linked(p), linked(q)
    both = threading.Barrier(2)

    def first() -> Any:
        with one.context.device_pointer(p, "w") as a:
            both.wait()
            a[:] = 3
            with two.context.device_pointer(q, "rw") as b:
                return b.tolist()

    def second() -> Any:
        with two.context.device_pointer(q, "w") as b:
            both.wait()
            b[:] = 4
            with one.context.device_pointer(p, "rw") as a:
                return a.tolist()

    others = [Other(first), Other(second)]
    for other in others:
        other.thread.join(20)
        assert not other.thread.is_alive()
    errors = [error for other in others for error in other.errors]
    assert errors and all("CD0877" in str(error) for error in errors)
    assert p.numpy().tolist() == [3, 3] and q.numpy().tolist() == [4, 4]


def test_what_cannot_be_opened_says_why() -> None:
    p, q, c = tensor(), tensor("q"), tensor("c", constant=True)
    context = linked(p).context
    reader = INTO.compile(q, c).link(context)
    for mode in ("", "a", "wr", "r+", None):
        with pytest.raises(ValueError, match="CD0839"), context.device_pointer(p, mode):
            raise AssertionError
    with reader.context.device_pointer(c) as a:
        assert a.tolist() == [1, 2]
    for mode in ("w", "rw"):
        with pytest.raises(TypeError, match="CD0804"), reader.context.device_pointer(c, mode):
            raise AssertionError
    with pytest.raises(pe.CdError, match="CD0842"), context.device_pointer(q):
        raise AssertionError
    with pytest.raises(TypeError, match="CD0852"):
        context.device_pointer(np.ones(2))
    with pytest.raises(TypeError, match="CD0575"):
        context.device_pointer(pe.tensor("t", 2, memory="virtual"))
    with pe.plan(), pytest.raises(TypeError, match="CD0862.*`p`"), context.device_pointer(p):
        raise AssertionError
    context.finalize()
    with pytest.raises(pe.CdError, match="CD0845"), context.device_pointer(p):
        raise AssertionError


def test_one_stream_writes_what_is_shared() -> None:
    p, q = tensor(), tensor("q")
    one = INTO.compile(q, p).link(stream_of().context()).context
    two = INTO.compile(tensor("r"), p).link(stream_of().context()).context
    with one.device_pointer(p, "rw") as a:
        a[:] = 9
    with pytest.raises(ValueError, match="CD0843"), two.device_pointer(p, "w"):
        raise AssertionError
    with pytest.raises(ValueError, match="CD0843"):
        TWICE.compile(p).link(two)
    with two.device_pointer(p) as a:
        assert a.tolist() == [9, 9], "it is one array"


@WRITING
@BOTH
def test_the_error_of_what_was_to_compute_it_is_raised_once(mode: str, threaded: bool) -> None:
    p = tensor()
    routine = linked(p)
    context = routine.context
    with pe.checked():
        fails = pe.cd_from_source("def f(p, x):\n    p[i] = p[i] // x[i]\n")
        broken = fails.compile(p, np.ones(2)).link(context)
    broken(np.zeros(2))
    before = p.value.clock
    with pytest.raises(pe.CdError, match="zero"), broken.context.device_pointer(p, mode):
        raise AssertionError
    assert broken.context.find(p.value).tick == before, "no version that nobody wrote"
    with broken.context.device_pointer(p, mode) as a:
        a[:] = 5
    assert p.numpy().tolist() == [5, 5]


def test_trap_an_entry_that_was_interrupted_keeps_the_order() -> None:
    p, q = tensor(), tensor("q")
    routine = linked(p)
    reader = INTO.compile(q, p).link(routine.context)
    context = routine.context
    with stopped(context.stream) as gate:
        reader()
        opened = context.device_pointer(p, "w")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(context.stream.worker), "reach", _interrupted)
            with pytest.raises(KeyboardInterrupt):
                opened.__enter__()

        def write() -> None:
            with context.device_pointer(p, "w") as a:
                a[:] = 50

        late = Other(write)
        assert late.is_waiting(), "the reader goes first"
        gate.set()
        late.result()
    assert q.numpy().tolist() == [2, 3] and p.numpy().tolist() == [50, 50]


def _interrupted(self: object, event: object) -> None:
    raise KeyboardInterrupt


@BOTH
def test_a_context_that_ends_meanwhile_waits_or_is_refused(threaded: bool) -> None:
    p = tensor()
    context = linked(p, threaded=threaded).context
    with context.device_pointer(p, "w") as a:
        if not threaded:
            with pytest.raises(pe.CdError, match="CD0877"):
                context.finalize()
        other = Other(context.finalize)
        assert other.is_waiting()
        a[:] = 4
    other.result()
    assert p.numpy().tolist() == [4, 4]
