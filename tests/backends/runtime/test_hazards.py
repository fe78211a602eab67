"""Who waits for whom, by arrays: read after write, write after read, write after write."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from plusequals.backends.runtime.hazards import dependences_of, enqueue
from plusequals.backends.runtime.memory import Buffer
from plusequals.backends.runtime.queue import Event, Queue


class Held:
    """A step on a queue that goes on until it is let go."""

    def __init__(self) -> None:
        self.queue, self.gate = Queue("held", True), threading.Event()

    def use(self, reads: list[Buffer], writes: list[Buffer]) -> Event:
        return enqueue(self.queue, self.gate.wait, reads, writes)


def buffer() -> Buffer:
    return Buffer("p", np.zeros(3), None)


def test_a_read_waits_for_the_write() -> None:
    held, one, other = Held(), buffer(), Queue("other", True)
    event = held.use([], [one])
    assert dependences_of(other, [one], []) == [event]
    assert dependences_of(held.queue, [one], []) == [], "one queue is in order by itself"
    held.gate.set()
    event.wait()
    assert dependences_of(other, [one], [one]) == []


def test_trap_a_write_waits_for_every_reader() -> None:
    held, also, one, other = Held(), Held(), buffer(), Queue("other", True)
    events = [held.use([one], []), also.use([one], [])]
    assert dependences_of(other, [], [one]) == events and dependences_of(other, [one], []) == []
    held.gate.set()
    also.gate.set()
    held.queue.synchronize()
    also.queue.synchronize()


def test_a_write_waits_for_the_write_before_it() -> None:
    held, one = Held(), buffer()
    event = held.use([], [one])
    assert dependences_of(Queue("other", False), [], [one]) == [event]
    held.gate.set()
    event.wait()


def test_readers_that_are_done_are_forgotten() -> None:
    one, queue = buffer(), Queue("q", False)
    for _ in range(10):
        queue.flush(enqueue(queue, int, [one], []))
    assert len(one.readers) <= 1


def test_reads_of_a_queue_are_one_and_those_of_many_are_forgotten_when_done() -> None:
    held, one = Held(), buffer()
    events = [held.use([one], []) for _ in range(100)]
    assert list(one.readers.values()) == events[-1:], "it is done when all of them are"
    for _ in range(100):  # the host's looks have a queue each
        enqueue(Queue("look", False), int, [one], []).settle()
    assert len(one.readers) < 20 and events[-1] in one.readers.values()
    held.gate.set()
    held.queue.synchronize()


def test_a_read_inside_of_a_read_does_not_hide_it() -> None:
    one, queue, gate, started = buffer(), Queue("q", False), threading.Event(), threading.Event()

    def outer() -> None:
        queue.flush(enqueue(queue, int, [one], []))
        started.set()
        gate.wait(10)

    event = enqueue(queue, outer, [one], [])
    thread = threading.Thread(target=event.wait)
    thread.start()
    assert started.wait(10)
    assert dependences_of(Queue("other", True), [], [one]) == [event]
    gate.set()
    thread.join()


def test_what_reads_a_failed_array_gets_the_failure() -> None:
    one, queue, other = buffer(), Queue("q", True), Queue("other", False)
    enqueue(queue, lambda: 1 // 0, [], [one]).settle()
    with pytest.raises(ZeroDivisionError):
        other.flush(enqueue(other, int, [one], []))
    other.flush(enqueue(other, int, [one], []))


def test_trap_a_step_that_is_dropped_does_not_end_before_what_it_waits_for() -> None:
    held, one, two = Held(), buffer(), buffer()
    broken, queue, other = Queue("broken", True), Queue("q", True), Queue("other", True)
    event = held.use([two], [])
    failing = enqueue(broken, lambda: 1 // 0, [], [one])
    dropped = enqueue(queue, int, [one], [two])
    with pytest.raises(ZeroDivisionError):
        failing.wait()
    time.sleep(0.05)
    assert dependences_of(other, [], [two]) == [dropped], "the reader goes on"
    held.gate.set()
    assert dropped.settle() is failing.failure and event.done


def test_trap_a_step_that_is_dropped_behind_a_failure_does_not_end_early() -> None:
    held, two, gate = Held(), buffer(), threading.Event()
    queue, other = Queue("q", True), Queue("other", True)
    event = held.use([two], [])
    queue.submit(gate.wait)
    failing = queue.submit(lambda: 1 // 0)
    ran: list[int] = []
    first = enqueue(queue, lambda: ran.append(1), [], [buffer()])
    dropped = enqueue(queue, lambda: ran.append(2), [], [two])
    last = enqueue(queue, lambda: ran.append(3), [], [buffer()])
    gate.set()
    with pytest.raises(ZeroDivisionError):
        failing.wait()
    assert dependences_of(other, [], [two]) == [dropped], "the reader goes on"
    again = queue.submit(lambda: ran.append(4))
    assert first.done and not last.done
    held.gate.set()
    assert again.settle() is None and event.done and ran == [4]
    assert {one.failure for one in (first, dropped, last)} == {failing.failure}


def test_what_is_lent_is_asked_for_before_it_is_written() -> None:
    one, seen, queue = buffer(), [], Queue("q", False)
    one.lent[None] = lambda: seen.append("copy")
    queue.flush(enqueue(queue, lambda: seen.append("read"), [one], []))
    queue.flush(enqueue(queue, lambda: seen.append("write"), [], [one]))
    assert seen == ["read", "copy", "write"] and not one.lent
