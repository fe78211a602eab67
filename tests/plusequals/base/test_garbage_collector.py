"""The collector pauses while a program is compiled, and is afterwards what it was."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from plusequals.base.garbage_collector import gc_paused
from plusequals.lowering.ir.assignments import Procedure
from plusequals.lowering.lower import lower
from plusequals.lowering.pipeline import optimize
from plusequals.lowering.target import HOST


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    gc.enable()


@pytest.mark.parametrize("enabled", [True, False])
def test_it_is_what_it_was(enabled: bool) -> None:
    (gc.enable if enabled else gc.disable)()
    with gc_paused():
        assert not gc.isenabled()
        with gc_paused():
            assert not gc.isenabled()
        assert not gc.isenabled(), "the outer one is not over"
    assert gc.isenabled() is enabled


def test_it_goes_on_after_an_error() -> None:
    with pytest.raises(ValueError, match="here"), gc_paused():
        raise ValueError("here")
    assert gc.isenabled()


def test_passes_run_without_it() -> None:
    program, seen = lower(Procedure("f", (), (), (), ())), []
    optimize(program, HOST, lambda name, now: seen.append(gc.isenabled()))
    assert seen and not any(seen)
    assert gc.isenabled()


def test_it_is_paused_until_the_last_thread_leaves() -> None:
    inside, over = threading.Event(), threading.Event()

    def other() -> None:
        with gc_paused():
            inside.set()
            over.wait()

    thread = threading.Thread(target=other)
    with gc_paused():
        thread.start()
        inside.wait()
    assert not gc.isenabled(), "the other thread still compiles"
    over.set()
    thread.join()
    assert gc.isenabled()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_has_no_pauses_of_threads_that_it_lacks() -> None:
    text = (
        "import gc, os, threading\n"
        "from plusequals.base.garbage_collector import gc_paused\n"
        "inside, over = threading.Event(), threading.Event()\n"
        "def other():\n"
        "    with gc_paused():\n"
        "        inside.set()\n"
        "        over.wait()\n"
        "thread = threading.Thread(target=other)\n"
        "thread.start()\n"
        "inside.wait()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(0 if gc.isenabled() else 1)\n"
        "status = os.waitpid(child, 0)[1]\n"
        "print(gc.isenabled(), os.waitstatus_to_exitcode(status))\n"
        "over.set()\n"
        "thread.join()\n"
        "print(gc.isenabled())\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", text], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False 0\nTrue\n"
