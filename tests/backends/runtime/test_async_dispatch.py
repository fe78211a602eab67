"""What a device has of a stream: in order with all else, and waited for when it has to be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.runtime import hazards
from plusequals.backends.runtime.async_dispatch import LaunchEvent, launch_path
from plusequals.backends.runtime.failure import Failure
from plusequals.backends.runtime.memory import Buffer
from plusequals.backends.runtime.prepared_calls import RoutineAccesses
from plusequals.backends.runtime.queue import Event, Queue
from plusequals.backends.runtime.state import RUNTIME
from plusequals.base.diagnostic import CdBackendError, Diagnostic


@dataclass
class Life:
    live: bool = True


@dataclass
class Device:
    """A device that does what is queued when somebody waits."""

    queued: list[Callable[[], None]] = field(default_factory=list)
    waited: int = 0
    fails: str = ""

    def prepare_launch(self, arrays: object) -> None:
        return None

    def finish(self) -> None:
        self.waited += 1
        while self.queued:
            self.queued.pop(0)()
        if self.fails:
            said, self.fails = self.fails, ""
            raise CdBackendError(Diagnostic("CD0884", said))

    def is_finished(self) -> bool:
        return not self.queued


class Scene:
    """A stream of a device, a field with an array there, and a run that adds one."""

    def __init__(self) -> None:
        self.device, self.life = Device(), Life()
        self.queue = Queue("cuda:0/s0", threaded=True)
        self.field = pe.tensor("p", (2,), dtype="float64").field("value")
        self.source, self.buffer = (Buffer(name, np.ones(2), None) for name in "xp")
        self.field.copies.add(self.buffer)
        self.step = self.stepping("add", self.source, self.buffer)

    def stepping(
        self, name: str, source: Buffer, target: Buffer, code: Device | None = None
    ) -> Callable[[], bool]:
        def run() -> None:
            target.array += source.array

        def start() -> None:
            if self.device.fails == "at once":
                raise CdBackendError(Diagnostic("CD0884", "it is refused"))
            self.device.queued.append(run)

        pairs = ((self.field, target),)
        uses = RoutineAccesses((source, target), pairs, pairs)
        return launch_path(self.queue, name, code or self.device, start, self.life, uses)


def test_it_is_queued_and_a_write_that_others_wait_for() -> None:
    scene = Scene()
    assert scene.step() and scene.step()
    assert scene.buffer.array.tolist() == [1.0, 1.0], "nobody waited"
    assert scene.buffer.tick == scene.field.clock == 2
    event = scene.buffer.writer
    assert isinstance(event, LaunchEvent) and not event.done and not event.query()
    other = Queue("other", threaded=True)
    seen: list[float] = []
    with RUNTIME.scheduling.lock:
        RUNTIME.scheduling.decisions += 1
        there = hazards.enqueue(
            other, lambda: seen.append(scene.buffer.array[0]), [scene.buffer], []
        )
    there.wait()
    assert seen == [3.0] and event.done and scene.device.waited == 1
    assert scene.queue.query()


def test_a_step_of_the_thread_comes_behind_it() -> None:
    scene = Scene()
    scene.step()
    seen: list[float] = []
    scene.queue.submit(lambda: seen.append(scene.buffer.array[0])).wait()
    assert seen == [2.0]
    assert scene.step(), "the thread has nothing to do any more"


def lent(scene: Scene) -> None:
    scene.buffer.lent[None] = lambda: None


def newer(scene: Scene) -> None:
    with RUNTIME.scheduling.lock:
        scene.field.record_host_write()


def ended(scene: Scene) -> None:
    with RUNTIME.scheduling.lock:
        scene.life.live = False


def written(scene: Scene) -> None:
    with RUNTIME.scheduling.lock:
        scene.source.writer = Event.of(Queue("other", threaded=True).worker)


def read(scene: Scene) -> None:
    event = Event.of(Queue("other", threaded=True).worker)
    assert event.worker is not None
    with RUNTIME.scheduling.lock:
        scene.buffer.readers[event.worker] = event


def failed(scene: Scene) -> None:
    with RUNTIME.scheduling.lock:
        scene.queue.worker.failure = Failure(ValueError("it is wrong"), quiet=True)


@pytest.mark.parametrize("before", [0, 2])
@pytest.mark.parametrize("change", [lent, newer, ended, written, read, failed])
def test_it_does_nothing_where_something_is_in_the_way(
    change: Callable[[Scene], None], before: int
) -> None:
    scene = Scene()
    for _ in range(before):
        assert scene.step()
    with RUNTIME.scheduling.lock:
        RUNTIME.scheduling.decisions += 1
        change(scene)
    assert not scene.step()
    assert len(scene.device.queued) == scene.buffer.tick == before
    if not scene.life.live:
        return


def test_nothing_while_a_trace_or_a_profile_is_taken() -> None:
    scene = Scene()
    assert scene.step()
    with pe.profile():
        assert not scene.step()
    with pe.trace():
        assert not scene.step()
    assert scene.step()


def test_what_waits_for_it_has_an_event_of_its_own() -> None:
    scene = Scene()
    scene.step()
    event = scene.queue.record()
    scene.step()
    assert scene.buffer.writer is not event
    event.wait()
    assert event.done and scene.buffer.writer.done, "the device did all of it"
    scene.step()
    assert not scene.buffer.writer.done and event.done


def test_two_of_one_stream_need_not_be_noted_again() -> None:
    scene = Scene()
    other = scene.stepping("back", scene.buffer, scene.source)
    for _ in range(2):
        assert scene.step() and other()
    decisions = RUNTIME.scheduling.decisions
    for _ in range(3):
        assert scene.step() and other()
    assert RUNTIME.scheduling.decisions == decisions
    scene.queue.synchronize()
    assert scene.buffer.array.tolist() == [89.0, 89.0]


def test_what_the_device_fails_of_is_told_once() -> None:
    scene = Scene()
    other = scene.stepping("back", scene.buffer, scene.source)
    scene.step(), other()
    scene.device.fails = "it was lost"
    with pytest.raises(CdBackendError, match="it was lost") as caught:
        scene.queue.synchronize()
    assert "of `add`, `back`, not waited for on cuda:0/s0" in str(caught.value)
    scene.queue.synchronize()
    assert scene.step()
    scene.queue.synchronize()
    assert scene.buffer.array.tolist() == [5.0, 5.0]


def test_what_fails_is_told_as_of_what_was_queued() -> None:
    scene, code = Scene(), Device()
    other = scene.stepping("back", scene.buffer, scene.source, code)
    scene.step(), other()
    scene.queue.synchronize()
    assert other()
    code.fails = "`back` failed"
    with pytest.raises(CdBackendError, match="`back` failed") as caught:
        scene.queue.synchronize()
    assert "of `back`, not waited for on cuda:0/s0" in str(caught.value)


def test_what_the_device_refuses_is_told_by_the_next_wait() -> None:
    scene = Scene()
    scene.device.fails = "at once"
    assert scene.step()
    scene.device.fails = ""
    with pytest.raises(CdBackendError, match="it is refused") as caught:
        scene.queue.synchronize()
    assert "in the routine `add` on cuda:0/s0" in str(caught.value)


def test_a_forked_child_does_nothing_of_it() -> None:
    scene = Scene()
    scene.step()
    failure = Failure(ValueError("of the parent"), quiet=True)
    scene.queue.worker.after_fork(failure)
    assert scene.buffer.writer.done and scene.buffer.writer.failure is failure
    assert scene.device.waited == 0
