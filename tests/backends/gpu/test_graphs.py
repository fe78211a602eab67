"""Captures: nodes have the dependences of the steps, and nothing is left after errors."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from plusequals.backends.captures import GraphPlace, GraphStep, NotCapturable
from plusequals.backends.gpu.driver_protocol import DriverError
from plusequals.backends.gpu.residency import DeviceMemory
from plusequals.base.diagnostic import CdBackendError
from tests.backends.cuda.captures import CapturingContext, CapturingDriver
from tests.backends.cuda.on_cpu import CpuDriver


class Bytes:
    """Bytes of a played device, and copies and clears of them as steps."""

    def __init__(self, driver: Any, count: int = 4) -> None:
        self.opened = driver.opened(0)
        self.memory = DeviceMemory(self.opened)
        self.lane = self.memory.lane()
        self.arrays = [self.memory.empty((8,), "u1", f"x{n}", self.lane) for n in range(count)]

    @property
    def context(self) -> CapturingContext:
        found = self.opened.context
        assert isinstance(found, CapturingContext)
        return found

    def put(self, *values: int) -> None:
        for array, value in zip(self.arrays, values, strict=True):
            self.opened.upload(array.address, np.full(8, value, np.uint8), self.lane)
        self.opened.wait(self.lane)

    def get(self) -> list[int]:
        return [int(array.numpy()[0]) for array in self.arrays]

    def move(self, to: int, source: int | None, stream: int = 0, waits: Any = ()) -> GraphStep:
        """The step that copies an array to another one, or clears it."""
        target = self.arrays[to].address

        def prepare(place: GraphPlace) -> Callable[[], object]:
            if source is None:
                return lambda: self.opened.context.clear(target, 8, place.stream)
            start = self.arrays[source].address
            return lambda: self.opened.copy(target, start, 8, place.stream)

        return GraphStep(prepare, stream, waits)


def diamond(on: Bytes, missing: bool = False) -> list[GraphStep]:
    """0 to 1 and 2, these to 3 and 0: by two streams."""
    return [
        on.move(1, 0), on.move(2, 0, 1), on.move(0, None, 0, () if missing else (1,)),
        on.move(3, 2, 1),
    ]  # fmt: skip


def test_steps_are_nodes_with_the_dependences_of_streams_and_waits() -> None:
    driver = CapturingDriver()
    on = Bytes(driver)
    launch = on.memory.graph("f", diamond(on), on.lane)
    (graph,) = driver.graphs
    assert [sorted(before) for _, before in graph.nodes] == [[], [], [0, 1], [1]]
    for value in (5, 7):
        on.put(value, 0, 0, 0)
        launch()
        assert on.get() == [0, value, value, value]
    assert not on.context.captures


def test_a_wait_that_is_missing_gives_other_numbers_in_some_order() -> None:
    driver = CapturingDriver()
    on = Bytes(driver)
    launch = on.memory.graph("f", diamond(on, missing=True), on.lane)
    found = set()
    for _ in range(20):
        on.put(5, 0, 0, 0)
        launch()
        found.add(tuple(on.get()))
    assert len(found) > 1


def test_all_streams_join_the_first_one() -> None:
    driver = CapturingDriver()
    on = Bytes(driver)
    steps = [on.move(0, 3), on.move(1, 3, 1), on.move(2, 3, 2)]
    launch = on.memory.graph("f", steps, on.lane)
    on.put(0, 0, 0, 9)
    launch()
    assert on.get() == [9] * 4
    assert [sorted(before) for _, before in driver.graphs[0].nodes] == [[], [], []]


def test_streams_of_captures_are_used_again_and_do_nothing_else() -> None:
    driver = CapturingDriver()
    on = Bytes(driver)
    for _ in range(3):
        on.memory.graph("f", diamond(on), on.lane)()
    streams = on.opened.graphs._streams
    assert len(streams) == 2
    assert all(on.context.queued[stream] == 0 for stream in streams)


def test_a_graph_that_nobody_can_launch_is_destroyed_by_the_next_capture() -> None:
    driver = CapturingDriver()
    on = Bytes(driver)
    launch = on.memory.graph("f", diamond(on), on.lane)
    launch()
    del launch
    assert not driver.graphs[0].destroyed, "a finalizer asks the driver for nothing"
    keep = on.memory.graph("f", diamond(on), on.lane)
    assert [graph.destroyed for graph in driver.graphs] == [True, False]
    keep()


@pytest.mark.parametrize("verb", ["begin_capture", "end_capture", "record", "wait", "copy"])
def test_after_an_error_no_stream_is_captured(verb: str) -> None:
    driver = CapturingDriver()
    on = Bytes(driver)
    steps = diamond(on)
    if verb == "copy":

        def fails() -> None:
            raise DriverError("it fails")

        steps[1] = GraphStep(lambda place: fails, 1, ())
    else:
        driver.arm(verb, 1)
    with pytest.raises(CdBackendError, match="CD0884.*`f` failed"):
        on.memory.graph("f", steps, on.lane)
    assert not on.context.captures
    assert all(graph.destroyed for graph in driver.graphs)
    on.put(5, 0, 0, 0)
    on.memory.graph("f", diamond(on), on.lane)()
    assert on.get() == [0, 5, 5, 5]


def test_a_launch_that_fails_is_an_error_of_that_run() -> None:
    driver = CapturingDriver()
    on = Bytes(driver)
    launch = on.memory.graph("f", diamond(on), on.lane)
    driver.arm("launch_graph", 1)
    with pytest.raises(CdBackendError, match="CD0884.*`f` failed"):
        launch()
    on.put(5, 0, 0, 0)
    launch()
    assert on.get() == [0, 5, 5, 5]


def test_a_driver_without_captures_gives_the_reason() -> None:
    on = Bytes(CpuDriver())
    with pytest.raises(NotCapturable, match="has no capture of streams"):
        on.memory.graph("f", diamond(on), on.lane)


def test_a_forked_process_captures_and_launches_nothing() -> None:
    on = Bytes(CapturingDriver())
    launch = on.memory.graph("f", diamond(on), on.lane)
    on.opened.lost = True
    for ask in (launch, lambda: on.memory.graph("f", diamond(on), on.lane)):
        with pytest.raises(CdBackendError, match="CD0882"):
            ask()


def test_who_waits_for_the_device_waits_for_the_capture() -> None:
    driver = CapturingDriver()
    on = Bytes(driver)
    begun, waits = threading.Event(), threading.Event()
    problems: list[BaseException] = []

    def finish() -> None:
        begun.wait(10)
        waits.set()
        try:
            on.context.finish()
        except BaseException as problem:
            problems.append(problem)

    def prepare(place: GraphPlace) -> Callable[[], object]:
        def queue() -> None:
            begun.set()
            waits.wait(10)

        return queue

    thread = threading.Thread(target=finish)
    thread.start()
    on.memory.graph("f", [GraphStep(prepare, 0, ()), *diamond(on)[:2]], on.lane)
    thread.join()
    assert not problems
