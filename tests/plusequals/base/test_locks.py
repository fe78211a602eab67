"""Locks that a forked child gets anew."""

from __future__ import annotations

import subprocess
import sys
import threading

from plusequals.backends.cc.backend import CompiledC
from plusequals.backends.runtime.printed_output import PrintCapture
from plusequals.base.locks import ReentrantLock
from plusequals.dsl.instrument.recording import Recorder
from plusequals.dsl.specialize.specialization import SpecializationCache
from plusequals.dsl.tracing.log import Logger


def _printed(program: str) -> str:
    """What a process prints that runs a program."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    return done.stdout


def test_a_forked_child_does_not_wait_for_threads_that_it_does_not_have() -> None:
    program = (
        "import os, signal, threading\n"
        "from plusequals.base.locks import ReentrantLock\n"
        "one, held, over = ReentrantLock(), threading.Event(), threading.Event()\n"
        "def hold():\n"
        "    with one._lock:\n"
        "        held.set()\n"
        "        over.wait()\n"
        "thread = threading.Thread(target=hold)\n"
        "thread.start()\n"
        "held.wait()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    signal.alarm(20)\n"
        "    with one._lock:\n"
        "        os._exit(3)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "over.set()\n"
    )
    assert _printed(program) == "3\n"


def test_what_is_asked_of_several_threads_while_tracing_has_such_locks() -> None:
    for kind in (Recorder, Logger, PrintCapture, SpecializationCache):
        assert issubclass(kind, ReentrantLock)
    short = CompiledC().fast_path
    short._lock.acquire()
    short.after_fork()
    assert short._lock.acquire(blocking=False)


def test_a_child_that_is_forked_with_a_lock_held_gives_it_back() -> None:
    program = (
        "import os, signal\n"
        "from plusequals.base.locks import ReentrantLock\n"
        "one = ReentrantLock()\n"
        "with one._lock:\n"
        "    child = os.fork()\n"
        "if child == 0:\n"
        "    signal.alarm(20)\n"
        "    with one._lock:\n"
        "        os._exit(4)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    assert _printed(program) == "4\n"


def test_a_thread_does_not_wait_for_itself() -> None:
    one, other = ReentrantLock(), ReentrantLock()
    with one.turn() as first, one.turn() as again, other.turn() as second:
        assert (first, again, second) == (True, False, True)
        assert one.is_held_here and other.is_held_here
    assert not one.is_held_here
    with one.turn() as later:
        assert later


def test_threads_do_not_wait_for_each_other() -> None:
    locks, both, held = (
        [ReentrantLock(), ReentrantLock(), ReentrantLock()],
        threading.Barrier(3),
        [],
    )

    def take(number: int) -> None:
        with locks[number].turn():
            both.wait(10)
            with locks[(number + 1) % 3].turn() as is_held:
                held.append(is_held)

    threads = [threading.Thread(target=take, args=(n,), daemon=True) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(held) == 3 and not all(held)
    assert not any(lock._owner for lock in locks)


def test_who_waits_has_the_lock_when_it_is_free() -> None:
    one, inside, order = ReentrantLock(), threading.Event(), []

    def wait() -> None:
        inside.wait(10)
        with one.turn() as is_held:
            order.append(("waited", is_held))

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    with one.turn():
        inside.set()
        thread.join(0.05)
        order.append(("first", True))
    thread.join(10)
    assert order == [("first", True), ("waited", True)]
