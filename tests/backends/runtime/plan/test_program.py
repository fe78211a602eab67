"""Recorded plans: who runs them when, and what they take."""

from __future__ import annotations

import array
import copy
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import plusequals as pe

from .scenes import SIZE, Scene, count_up, double, put, take

ROOT = Path(__file__).resolve().parents[4]


def test_a_plan_is_not_run_by_its_own_predicate() -> None:
    scene = Scene()
    step = scene.link(count_up, scene.a)
    with pe.plan() as plan:
        step()
        with plan.while_(lambda n: plan() or False):
            step()
    for _ in range(2):
        with pytest.raises(pe.CdError, match="CD0862|CD0868"):
            plan()


def test_a_failed_run_is_forgotten_by_the_next_ones() -> None:
    scene = Scene()
    up, at = scene.link(count_up, scene.b), scene.link(put, scene.a, 0)
    for order in ((up, at), (at, up)):
        with pe.plan() as plan:
            for step in order:
                step(**({"at": 0} if step is at else {}))
        stream = pe.device("cc").stream()
        for index in (0, SIZE, 0, SIZE + 1, 0, 0):
            run = plan.run(on=stream, at=index)
            if index < SIZE:
                run.wait()
            else:
                with pytest.raises(pe.CdError, match="CD0601"):
                    run.wait()
                run.wait()


def test_inputs_are_what_they_are_when_a_run_is_queued() -> None:
    scene = Scene()
    step = scene.link(take, scene.a, np.zeros(SIZE))
    with pe.plan() as plan:
        step(values=np.zeros(SIZE))
    scene.b[...] = 4.0
    plan(values=scene.b)
    assert scene.first(scene.a) == [5]
    stream = pe.device("cc").stream()
    buffer = array.array("d", [3.0] * SIZE)
    given: tuple[tuple[Any, int], ...] = (
        ([1.0] * SIZE, 2), (np.full(SIZE, 2.0), 3), (buffer, 4),
    )  # fmt: skip
    for values, expected in given:
        begin = threading.Event()
        stream.submit(begin.wait)
        run = plan.run(on=stream, values=values)
        values[0] = 100.0
        begin.set()
        run.wait()
        assert scene.first(scene.a) == [expected]


def test_what_is_given_has_to_be_of_the_kind_that_is_asked_for() -> None:
    scene = Scene()
    step = scene.link(count_up, scene.a)
    with pe.plan() as plan:
        step()
    for wrong in ("cc", pe.device("cc"), 3, scene.context):
        with pytest.raises(pe.CdError, match="CD0852.*stream"):
            plan.run(on=wrong)
    for sources in ([3], [count_up], "count_up"):
        with pytest.raises(pe.CdError, match="CD0852"):
            plan.partial(sources=sources)
    with pytest.raises(TypeError, match="is a plan of this process"):
        copy.deepcopy(plan)


def test_arguments_that_overlap_what_is_written_are_read_before() -> None:
    scene = Scene()
    text = "def double(out, x, p):\n    out[i] = x[i] * 2.0 + p[i]\n"
    step = pe.cd_from_source(text).compile(np.zeros(3), np.zeros(3), pe.tensor("p", 3, "float64"))
    routine, array = step.link(scene.context), np.arange(4.0)
    with pe.plan() as plan:
        routine(out=array[1:], x=array[:-1])
    plan()
    assert array.tolist() == [0, 0, 2, 4]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_runs_a_plan_that_its_parent_is_running() -> None:
    scene = Scene()
    step, going = scene.link(count_up, scene.a), threading.Event()

    def goes_on(count: int) -> bool:
        going.set()
        time.sleep(0.001)
        return not stop.is_set()

    stop = threading.Event()
    with pe.plan() as plan:
        with plan.while_(goes_on):
            step()
    run = plan.run(on=pe.device("cc").stream())
    going.wait()
    pid = os.fork()
    if pid == 0:
        stop.set()
        ended = 0
        for _ in range(3):
            try:
                plan()
                ended += 1
            except pe.CdError:
                pass
        os._exit(0 if ended >= 2 else 1)
    stop.set()
    run.wait()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


INTERRUPTED = """
import contextlib, signal
import plusequals as pe
from tests.backends.runtime.plan.scenes import Scene, count_up

scene = Scene()
steps = [scene.link(count_up, tensor) for tensor in (scene.a, scene.b, scene.c)]
with pe.plan() as plan:
    with plan.while_(lambda n: n < 50):
        for step in steps:
            step()

class Interrupt(Exception):
    pass

def interrupt(*_):
    raise Interrupt

signal.signal(signal.SIGALRM, interrupt)
for n in range(12):
    with contextlib.suppress(Interrupt):
        signal.setitimer(signal.ITIMER_REAL, 0.0005 + n * 0.0007)
        for _ in range(100):
            plan()
    signal.setitimer(signal.ITIMER_REAL, 0)
value = scene.first(scene.a)[0]
plan()
assert scene.first(scene.a)[0] == value + 50
print("went on")
"""


def test_an_interrupt_ends_a_run_and_the_plan_goes_on() -> None:
    """In a process of its own, as an interrupt may come at any place of the run time."""
    command = [sys.executable, "-c", INTERRUPTED]
    ended = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert "went on" in ended.stdout, ended.stderr


@pytest.mark.parametrize("looping", [False, True])
@pytest.mark.parametrize("own", [False, True])
def test_the_end_of_a_context_waits_for_the_runs_that_use_it(looping: bool, own: bool) -> None:
    scene, plan = Scene(), pe.plan()
    between = plan.tensor("h", SIZE, dtype="float64") if own else scene.d
    first, second = scene.link(double, between, scene.b), scene.link(double, scene.c, between)
    up = scene.link(count_up, scene.c)
    with plan:
        first()
        second()
        with plan.while_(lambda n: n < (30 if looping else 1)):
            up()
    stream, gate = pe.device("cc").stream(), threading.Event()
    stream.submit(gate.wait)
    runs = [plan.run(on=stream) for _ in range(2)]
    threading.Timer(0.05, gate.set).start()
    first.context.finalize()
    assert all(run.done for run in runs)
    assert scene.c.numpy()[0] == 4.0 + (30 if looping else 1)
    with pytest.raises(pe.CdError, match="CD0845"):
        plan()
