"""Queues: order, events, failures told once, full queues, forks and ends of the process."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref
from functools import partial

import pytest

from plusequals.backends.runtime import queue as queues
from plusequals.backends.runtime.failure import Failure
from plusequals.backends.runtime.queue import DONE, Event, Queue

BOTH = pytest.mark.parametrize("threaded", [False, True])


def test_nothing_is_done_from_the_start() -> None:
    assert DONE.query() and DONE.settle() is None
    assert Queue("q", True).query()


def test_trap_a_device_is_asked_while_no_lock_of_the_queue_is_held() -> None:
    queue, free = Queue("q", True), []

    class Asked(Event):
        def query(self) -> bool:
            thread = threading.Thread(target=lambda: free.append(submits()))
            thread.start()
            thread.join(5)
            return self.done

    def submits() -> bool:
        if is_free := queue.worker._lock.acquire(timeout=1):
            queue.worker._lock.release()
        return is_free

    queue.worker.latest = Asked.of(queue.worker)
    assert not queue.worker.is_idle_soon() and free and all(free)


@BOTH
def test_steps_run_in_order(threaded: bool) -> None:
    queue, seen = Queue("q", threaded), []
    events = [queue.submit(lambda n=n: seen.append(n)) for n in range(100)]
    assert queue.record() is events[-1]
    queue.synchronize()
    assert seen == list(range(100)) and all(event.query() for event in events)


def test_an_inline_queue_has_run_when_submit_returns() -> None:
    queue, seen = Queue("q", False), []
    assert queue.submit(lambda: seen.append(threading.current_thread())).done
    assert seen == [threading.current_thread()]


def test_a_queue_waits_for_an_event_of_another() -> None:
    one, two, gate, seen = Queue("one", True), Queue("two", True), threading.Event(), []
    first = one.submit(gate.wait)
    two.wait(first)
    last = two.submit(lambda: seen.append(first.done))
    assert not last.query() and not one.query()
    gate.set()
    two.synchronize()
    assert seen == [True]


def test_an_inline_queue_waits_for_a_threaded_one() -> None:
    one, two, seen = Queue("one", True), Queue("two", False), []
    event = one.submit(lambda: seen.append("threaded"))
    two.wait(event)
    two.submit(lambda: seen.append("inline"))
    assert seen == ["threaded", "inline"]


def fails() -> None:
    raise ZeroDivisionError("here")


def test_what_a_step_raises_is_raised_once_and_what_was_queued_is_dropped() -> None:
    queue, gate, seen = Queue("q", True), threading.Event(), []
    queue.submit(gate.wait)
    queue.submit(fails)
    dropped = queue.submit(lambda: seen.append("dropped"))
    gate.set()
    with pytest.raises(ZeroDivisionError, match="here"):
        queue.synchronize()
    queue.synchronize()
    dropped.wait()
    queue.submit(lambda: seen.append("goes on"))
    queue.synchronize()
    assert seen == ["goes on"]


def test_a_failure_is_raised_by_the_next_submit() -> None:
    queue = Queue("q", True)
    queue.submit(fails).settle()
    with pytest.raises(ZeroDivisionError):
        queue.submit(fails)
    queue.synchronize()


def test_an_inline_queue_raises_at_once_and_goes_on() -> None:
    queue, seen = Queue("q", False), []
    with pytest.raises(ZeroDivisionError):
        queue.submit(fails)
    queue.submit(lambda: seen.append(1))
    queue.synchronize()
    assert seen == [1]


@BOTH
def test_what_waits_for_a_failure_in_another_queue_is_dropped(threaded: bool) -> None:
    one, two, seen = Queue("one", True), Queue("two", threaded), []
    event = one.submit(fails)
    with pytest.raises(ZeroDivisionError):
        two.submit(lambda: seen.append("dropped"), (event,)).wait()
    one.synchronize()
    two.synchronize()
    assert not seen


def test_what_is_submitted_after_the_failure_was_told_is_not_dropped() -> None:
    one, two, gate, seen = Queue("one", True), Queue("two", True), threading.Event(), []
    two.submit(gate.wait)
    event = one.submit(fails)
    two.submit(lambda: seen.append("dropped"), (event,))
    with pytest.raises(ZeroDivisionError):
        one.synchronize()
    two.submit(lambda: seen.append("kept"))
    gate.set()
    two.synchronize()
    assert seen == ["kept"]


def test_who_submits_to_a_full_queue_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "MAX_PENDING", 4)
    queue, gate, longest = Queue("q", True), threading.Event(), []
    queue.submit(gate.wait)

    def many() -> None:
        for _ in range(20):
            queue.submit(lambda: longest.append(len(queue.worker.tasks)))

    other = threading.Thread(target=many)
    other.start()
    other.join(0.05)
    assert other.is_alive(), "it waits for room"
    gate.set()
    other.join()
    queue.synchronize()
    assert len(longest) == 20 and max(longest) <= 4


@BOTH
def test_many_threads_submit_and_wait(threaded: bool) -> None:
    queue, seen = Queue("q", threaded), []

    def many() -> None:
        for n in range(50):
            queue.submit(partial(seen.append, n)).wait()

    threads = [threading.Thread(target=many) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(seen) == 200 and not queue.worker.tasks


def test_a_queue_that_is_collected_finishes_its_work_and_ends_its_thread() -> None:
    queue, seen = Queue("q", True), []
    event = queue.submit(lambda: seen.append(1))
    worker, there = queue.worker, weakref.ref(queue)
    del queue
    gc.collect()
    event.wait()
    thread = worker.thread
    assert thread is not None
    thread.join(10)
    assert there() is None and seen == [1] and not thread.is_alive()


def test_the_last_step_is_not_kept_alive() -> None:
    class Array:
        def touch(self) -> None:
            pass

    queue, array = Queue("q", True), Array()
    there = weakref.ref(array)
    queue.submit(array.touch)
    queue.synchronize()
    del array
    queue.submit(int).wait()
    assert there() is None


def child(program: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own."""
    head = "import time, numpy as np, plusequals as pe\nfrom plusequals import cd\n"
    head += "from plusequals.idx import i\n"
    command = [sys.executable, "-W", "error", "-c", head + program]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_a_process_ends_with_work_in_flight() -> None:
    done = child(
        "s = pe.device('numpy').stream()\n"
        "s.submit(lambda: (time.sleep(0.2), print('done', flush=True)))\n"
        "del s\n"
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "done\n")


def test_work_can_still_be_queued_while_the_process_ends() -> None:
    done = child(
        "import atexit\n"
        "from plusequals.backends.runtime import state\n"
        "atexit.unregister(state.RUNTIME._finish)\n"
        "s = pe.device('numpy').stream()\n"
        "s.submit(int).wait()\n"
        "atexit.register(lambda: (s.submit(lambda: print('late')), s.synchronize()))\n"
        "atexit.register(state.RUNTIME._finish)\n"
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "late\n")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_gives_up_what_was_queued_and_says_so_once() -> None:
    done = child(
        "import os, threading, warnings\n"
        "warnings.simplefilter('ignore')\n"
        "s, quiet = pe.device('numpy').stream(), pe.device('numpy').stream()\n"
        "quiet.submit(int).wait()\n"
        "gate = threading.Event()\n"
        "e = s.submit(gate.wait)\n"
        "threading.Thread(target=lambda: e.wait(), daemon=True).start()\n"
        "time.sleep(0.05)\n"
        "if os.fork() == 0:\n"
        "    quiet.submit(int).wait()\n"
        "    try:\n"
        "        s.synchronize()\n"
        "    except pe.CdError as error:\n"
        "        print(str(error)[:13], flush=True)\n"
        "    s.submit(lambda: print('goes on', flush=True)).wait()\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "gate.set()\n"
        "s.synchronize()\n"
    )
    wanted = (0, "", "error[CD0841]\ngoes on\n")
    assert (done.returncode, done.stderr, done.stdout) == wanted


def test_a_failure_knows_whether_it_was_told() -> None:
    failure = Failure(ValueError("x"))
    assert not failure.reported and isinstance(failure.tell(), ValueError) and failure.reported


class Picky(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def test_a_failure_can_be_told_again_and_keeps_no_frames() -> None:
    for problem in (ValueError("x"), Picky(1, 2)):
        try:
            raise problem from KeyError("y")
        except Exception as error:
            failure = Failure(error)
        for _ in range(2):
            with pytest.raises(type(problem), match=str(problem)):
                raise failure.tell()
        cause = problem.__cause__
        assert cause is not None and cause.__traceback__ is None
    again = Failure(ValueError("x"))
    with pytest.raises(ValueError, match="x"):
        raise again.tell()
    assert again.error.__traceback__ is None


def test_a_queue_that_failed_is_collected_like_any_other_and_its_thread_ends() -> None:
    queue = Queue("q", True)
    queue.submit(fails)
    try:
        queue.synchronize()
    except ZeroDivisionError:
        pass
    thread, gone = queue.worker.thread, weakref.ref(queue)
    del queue
    gc.collect()
    assert thread is not None and gone() is None
    thread.join(10)
    assert not thread.is_alive()


def test_an_event_says_whose_it_is() -> None:
    queue = Queue("q", False)
    assert Event.of(queue.worker).worker is queue.worker and repr(queue) == "<queue q>"


def test_threads_that_drive_two_inline_queues_do_not_wait_for_each_other_for_ever() -> None:
    one, two = Queue("one", False), Queue("two", False)
    events: list[Event] = []
    lock = threading.Lock()

    def drive(queue: Queue) -> None:
        for _ in range(300):
            with lock:  # each step waits for the latest one of the other queue
                event = queue.worker.submit(int, tuple(events[-1:]))
                events.append(event)
            event.wait()

    threads = [threading.Thread(target=drive, args=(queue,), daemon=True) for queue in (one, two)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads) and all(e.done for e in events)


def test_a_step_is_done_or_at_work_whenever_somebody_looks() -> None:
    class Slow(list[Event]):
        def remove(self, event: Event) -> None:
            seen.append(event.done)
            super().remove(event)

    queue, seen = Queue("q", False), list[bool]()
    queue.worker.running = Slow()
    for _ in range(3):
        queue.submit(int)
    assert seen == [True] * 3


@BOTH
def test_a_step_that_waits_for_its_own_end_says_so(threaded: bool) -> None:
    queue = Queue("q", threaded)
    with pytest.raises(RuntimeError, match="waits for its own end"):
        queue.submit(queue.synchronize).wait()


def test_a_step_may_queue_more_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "MAX_PENDING", 4)
    queue, seen = Queue("q", True), []
    queue.submit(lambda: [queue.submit(partial(seen.append, n)) for n in range(20)]).wait()
    queue.synchronize()
    assert seen == list(range(20))


def test_no_lock_is_held_when_work_lets_go_of_what_it_used() -> None:
    queue, gate, free = Queue("q", True), threading.Event(), []

    class Last:
        def use(self) -> None:
            pass

        def __del__(self) -> None:
            thread = threading.Thread(target=self.probe)
            thread.start()
            thread.join()

        def probe(self) -> None:
            free.append(queue.worker._lock.acquire(timeout=5))
            queue.worker._lock.release()

    queue.submit(Last().use).wait()
    queue.submit(gate.wait)
    queue.submit(fails)
    queue.submit(Last().use)  # it is dropped
    gate.set()
    with pytest.raises(ZeroDivisionError):
        queue.synchronize()
    queue.submit(int).wait()
    assert free == [True, True]


FAILS = "f = pe.cd_from_source('def f(p, n):\\n    p[n] = 1.0\\n', backend='numpy')\n"
FAILS += "p = pe.tensor('p', 3)\nr = f.compile(p, 1).link(pe.device('numpy').stream().context())\n"


@pytest.mark.parametrize(
    ("body", "is_said"),
    [
        ("[r(9) for _ in range(1)]\n", True),
        ("r(9)\ntry: p.numpy()\nexcept pe.CdError: pass\n", False),
        ("r(1)\n", False),
    ],
    ids=["nobody waits", "reported", "no failure"],
)
def test_what_nobody_waited_for_is_said_when_the_process_ends(body: str, is_said: bool) -> None:
    done = child(FAILS + body)
    assert done.returncode == 0 and done.stdout == ""
    assert done.stderr.count("plusequals: work failed, and nothing waited for it") == is_said
    assert ("CdIndexError" in done.stderr) == is_said


def test_what_nobody_can_be_told_any_more_is_said_once(capfd: pytest.CaptureFixture[str]) -> None:
    failures = [Failure(ValueError("lost")), Failure(ValueError("quiet"), quiet=True)]
    failures[0].say()
    failures.append(Failure(ValueError("reported")))
    assert failures[2].tell()
    failures.append(Failure(ValueError("collected")))
    del failures
    gc.collect()
    said = capfd.readouterr().err
    assert [said.count(name) for name in ("lost", "quiet", "reported", "collected")] == [1, 0, 0, 1]


@pytest.mark.parametrize("kind", [RuntimeError, KeyError])
def test_an_interrupt_while_a_thread_starts_is_what_is_raised(
    kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        try:
            raise KeyboardInterrupt
        finally:
            raise kind(thread)  # as `start` does where it undoes what the thread has undone

    queue, done = Queue("interrupted", threaded=True), list[int]()
    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        queue.submit(lambda: done.append(1))
    monkeypatch.undo()
    queue.submit(lambda: done.append(2))
    queue.synchronize()
    assert done == [2]
