"""Steps that are run at once: only when nothing is in their way, and in order with all others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.runtime import hazards, transfer
from plusequals.backends.runtime.field import Field
from plusequals.backends.runtime.memory import Buffer
from plusequals.backends.runtime.prepared_calls import RoutineAccesses, run_path
from plusequals.backends.runtime.prepared_calls import queue_path as queued
from plusequals.backends.runtime.queue import Event, Queue


@dataclass
class Life:
    live: bool = True


class Scene:
    """A stream without a thread, a field with an array there, and a step that adds one."""

    def __init__(self) -> None:
        self.queue = Queue("inline", threaded=False)
        self.life = Life()
        self.field = pe.tensor("p", (2,), dtype="float64").field("value")
        self.source = Buffer("x", np.ones(2), None)
        self.buffer = Buffer("p", np.zeros(2), None)
        self.field.copies.add(self.buffer)
        pairs: tuple[tuple[Field, Buffer], ...] = ((self.field, self.buffer),)
        self.uses = RoutineAccesses((self.source, self.buffer), pairs, pairs)
        self.step = run_path(self.queue, self.run, self.life, self.uses)

    def run(self) -> None:
        self.buffer.array += self.source.array


def lent(scene: Scene) -> None:
    scene.buffer.lent[None] = lambda: None


def newer(scene: Scene) -> None:
    scene.field.record_host_write()


def ended(scene: Scene) -> None:
    scene.life.live = False


def test_it_runs_and_is_a_write() -> None:
    scene = Scene()
    assert scene.step() and scene.step()
    assert scene.buffer.array.tolist() == [2.0, 2.0]
    assert scene.buffer.tick == scene.field.clock == 2
    assert scene.field.newest() is scene.buffer
    assert scene.queue.query() and scene.buffer.writer.done


def test_it_does_nothing_where_it_would_have_to_wait() -> None:
    pending = Event.of(Queue("other", threaded=True).worker)

    def written(scene: Scene) -> None:
        scene.source.writer = pending

    def read(scene: Scene) -> None:
        assert pending.worker is not None
        scene.buffer.readers[pending.worker] = pending

    def queued(scene: Scene) -> None:
        scene.queue.worker.submit(lambda: None, ())

    for change in (written, read, lent, newer, ended, queued):
        scene = Scene()
        change(scene)
        tick = scene.buffer.tick
        assert not scene.step(), change.__name__
        assert scene.buffer.array.tolist() == [0.0, 0.0] and scene.buffer.tick == tick


@contextmanager
def stopped(
    scene: Scene, body: Callable[[], None], fails: bool = False
) -> Iterator[Callable[[], bool]]:
    """Give a step that another thread has begun; its body runs when the `with` ends."""
    started, go_on = threading.Event(), threading.Event()

    def run() -> None:
        started.set()
        assert go_on.wait(10)
        body()

    def work() -> None:
        with pytest.raises(ValueError, match="no") if fails else nullcontext():
            step()

    step = run_path(scene.queue, run, scene.life, scene.uses)
    thread = threading.Thread(target=work)
    thread.start()
    assert started.wait(10)
    yield step
    go_on.set()
    thread.join()


def reading(scene: Scene, seen: list[float]) -> Event:
    """Have another stream read the array of the scene."""
    other = Queue("other", threaded=True)
    return hazards.enqueue(other, lambda: seen.append(scene.buffer.array[0]), (scene.buffer,), ())


def test_a_profile_has_every_step_queued() -> None:
    scene = Scene()
    with pe.profile():
        assert not scene.step()
    assert scene.step()


def test_what_others_schedule_while_it_runs_waits_for_it() -> None:
    scene = Scene()
    seen: list[float] = []

    def slow() -> None:
        scene.buffer.array[:] = 7.0

    with stopped(scene, slow) as step:
        event = reading(scene, seen)
        assert not event.query() and not scene.queue.query() and not step()
    event.wait()
    assert seen == [7.0]


def test_what_it_raises_is_raised_once_and_leaves_the_stream_usable() -> None:
    scene = Scene()

    def wrong() -> None:
        raise ValueError("no")

    step = run_path(scene.queue, wrong, scene.life, scene.uses)
    with pytest.raises(ValueError, match="no"):
        step()
    scene.queue.synchronize()
    assert scene.step()


def test_a_step_inside_of_a_step_is_queued() -> None:
    scene = Scene()
    inner: list[bool] = []
    outer = run_path(scene.queue, lambda: inner.append(scene.step()), scene.life, scene.uses)
    assert outer() and inner == [False]


def test_what_waits_for_a_step_that_fails_is_dropped() -> None:
    scene = Scene()
    seen: list[float] = []

    def wrong() -> None:
        raise ValueError("no")

    with stopped(scene, wrong, fails=True):
        event = reading(scene, seen)
    assert event.settle() is not None and seen == []


def test_what_was_recorded_stays_done_while_the_step_runs_again() -> None:
    scene = Scene()
    assert scene.step() and scene.step()
    before = scene.queue.record()
    with stopped(scene, lambda: None):
        pass
    again = run_path(scene.queue, lambda: seen.append(before.done), scene.life, scene.uses)
    seen: list[bool] = []
    assert again() and again()
    first = scene.queue.record()
    with stopped(scene, lambda: None) as step:
        running = scene.queue.record()
        assert before.done and first.done and not running.done and not step()
    assert running.done and seen == [True, True]
    assert step() and scene.queue.record() is not running


def test_what_waited_for_one_run_does_not_wait_for_the_next() -> None:
    scene, seen = Scene(), list[float]()
    go_on = [threading.Event(), threading.Event()]
    begun, calls = threading.Semaphore(0), iter(go_on)

    def run() -> None:
        begun.release()
        assert next(calls).wait(10)

    step = run_path(scene.queue, run, scene.life, scene.uses)
    threads = [threading.Thread(target=step) for _ in range(2)]
    threads[0].start()
    assert begun.acquire(timeout=10)
    event = reading(scene, seen)
    go_on[0].set()
    threads[0].join()
    event.wait()
    threads[1].start()
    assert begun.acquire(timeout=10) and event.done and not scene.queue.query()
    go_on[1].set()
    threads[1].join()
    assert seen == [0.0]


def test_steps_of_several_threads_on_one_array_are_never_at_work_together() -> None:
    scene, second = Scene(), Queue("second", threaded=False)
    pair = ((scene.field, scene.buffer),)

    def add() -> None:
        before = scene.buffer.array[0]
        time.sleep(0)  # lets another thread go on, if it may
        scene.buffer.array[0] = before + 1

    def work(queue: Queue, steps: tuple[Callable[[], bool], ...]) -> None:
        for n in range(150):
            if not steps[n % len(steps)]():

                def decision() -> None:
                    hazards.enqueue(queue, add, (scene.source, scene.buffer), (scene.buffer,))
                    scene.field.record_write(scene.buffer)

                transfer.decide(decision, queue)

    uses = RoutineAccesses((scene.source, scene.buffer), (), pair)
    one, two = (
        tuple(run_path(queue, add, scene.life, uses) for _ in range(2))
        for queue in (scene.queue, second)
    )
    jobs = [(scene.queue, one), (second, two), (scene.queue, one[:1]), (second, two[1:])]
    for rounds in range(1, 9):
        threads = [threading.Thread(target=work, args=job) for job in jobs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = scene.buffer.array[0], scene.buffer.tick, scene.field.clock
        assert found == (rounds * 600,) * 3


def test_readers_that_are_done_do_not_pile_up() -> None:
    scene = Scene()
    for _ in range(100):
        assert scene.step()
    assert len(scene.source.readers) < 20


def test_a_thread_does_it_behind_what_uses_the_arrays() -> None:
    scene, other = Scene(), Queue("other", threaded=True)
    queue, gate = Queue("threaded", threaded=True), threading.Event()
    step = queued(queue, scene.run, scene.life, scene.uses)
    hazards.enqueue(other, gate.wait, (scene.buffer,), ())
    assert step() and step() and not queue.query()
    assert scene.buffer.array.tolist() == [0.0, 0.0] and scene.buffer.tick == 2
    gate.set()
    queue.synchronize()
    assert scene.buffer.array.tolist() == [2.0, 2.0] and list(scene.source.readers) == [
        queue.worker
    ]


def test_a_thread_is_given_nothing_before_what_has_to_be_queued_first() -> None:
    for change in (lent, newer, ended):
        scene, queue = Scene(), Queue("threaded", threaded=True)
        change(scene)
        assert not queued(queue, scene.run, scene.life, scene.uses)(), change.__name__
        assert queue.query() and scene.buffer.tick == 0
