"""What is recorded: nodes with what they read and write, merge buffers, places in the source."""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from typing import Any

import pytest

import plusequals as pe
from plusequals.backends.runtime.plan.recording import Recorder
from plusequals.backends.runtime.plan.steps import Loop, Step
from plusequals.backends.runtime.state import RUNTIME

from .scenes import Scene, add, count_up, double, merged, shift


def test_steps_name_what_they_read_and_write_and_where_they_are() -> None:
    scene = Scene()
    step = scene.link(add, scene.c, scene.a, scene.b)
    with pe.plan() as plan:
        step()
    (node,) = plan.program.body.nodes
    assert isinstance(node, Step)
    assert [r.label for r in node.reads] == ["a", "b"]
    assert [w.label for w in node.writes] == ["c"]
    assert node.line.startswith("test_recording.py:")
    assert (node.name, node.kind, node.devices) == ("add", "routine", ("cc:0",))


def test_a_loop_reads_what_it_may_not_write() -> None:
    scene = Scene()
    step = scene.link(double, scene.b, scene.a)
    with pe.plan() as plan:
        with plan.while_(lambda count: False):
            step()
    (node,) = plan.program.body.nodes
    assert isinstance(node, Loop)
    assert {r.label for r in node.reads} == {"a", "b"}
    assert {w.label for w in node.writes} == {"b"}


def test_a_merge_in_place_is_copied_before_its_source_is_written() -> None:
    scene, other = Scene(), Scene("")
    home, consumer = scene.link(count_up, scene.a), other.link(merged, scene.a)

    def names(written: bool) -> list[str]:
        with pe.plan() as plan:
            home.context.merge_into(consumer, scene.a, mode="streaming")
            if written:
                home()
            consumer()
        return [node.name for node in plan.program.body.nodes]

    assert names(written=False) == ["merged"]
    assert names(written=True) == ["merge a", "count_up", "merged"]


def test_a_routine_linked_with_a_source_merges_by_itself() -> None:
    scene, other = Scene(), Scene("")
    home = scene.link(count_up, scene.a)
    other.link(count_up, scene.a)
    consumer = merged.compile(scene.a).link(other.context, merge_from=home.context)
    with pe.plan() as plan:
        home()
        consumer()
    plan()
    assert consumer.context.numpy(scene.a)[0] == 1


def test_what_nothing_has_written_is_known_at_once() -> None:
    labels = [pe.tensor(label, 4, dtype="float64") for label in "xyz"]
    stream = pe.device("cc").stream(threaded=False)
    first = double.compile(labels[1], labels[0]).link(stream.context())
    second = double.compile(labels[2], labels[1]).link(first.context)
    with pe.plan(), pytest.raises(pe.CdError, match="CD0850.*reads `y`"):
        second()
    with pe.plan() as plan:
        first()
        second()
    plan()


def test_routines_load_what_was_copied_to_the_host() -> None:
    scene, other = Scene(), Scene("")
    home, away = scene.link(count_up, scene.a), other.link(count_up, scene.a)

    def calls() -> None:
        home()
        home.context.to_host(scene.a)
        home()
        away()
        home()

    with pe.plan() as plan:
        calls()
    for run in (plan, plan, calls):
        run()
    assert home.context.numpy(scene.a)[0] == 9
    assert away.context.numpy(scene.a)[0] == 8


def test_steps_outside_of_branches_are_refused() -> None:
    scene = Scene()
    step = scene.link(count_up, scene.a)
    with pe.plan() as plan:
        case = plan.case_of(lambda: 0)
        with pytest.raises(pe.CdError, match="CD0868.*`count_up` is in no branch"), case:
            step()


def test_a_recorder_takes_the_calls_of_its_thread_alone() -> None:
    recorder = Recorder(None)
    RUNTIME.plan(recorder)
    try:
        assert RUNTIME.planned() is recorder
    finally:
        RUNTIME.plan(None)
    assert RUNTIME.planned() is None
    assert recorder.recorded().nodes == ()


@pytest.mark.parametrize(("depth", "is_taken"), [(64, True), (65, False), (1000, False)])
def test_loops_are_nested_as_deep_as_the_stack_allows(depth: int, is_taken: bool) -> None:
    scene = Scene()
    up = scene.link(count_up, scene.a)
    with nullcontext() if is_taken else pytest.raises(pe.CdError, match="CD0866.*deeper than 64"):
        with pe.plan() as plan, ExitStack() as loops:
            for _ in range(depth):
                loops.enter_context(plan.while_(lambda count: count < 1))
            up()
        plan()
        assert scene.first(scene.a) == [1.0] and str(plan) and plan.to_dot()


class Merging:
    """Two routines that write versions of one tensor, and one that merges them on its stream."""

    def __init__(self) -> None:
        self.scene, other, third = Scene(), Scene(""), Scene("")
        self.a = self.scene.a
        one, two = self.scene.link(shift, self.a, 0.0), third.link(shift, self.a, 0.0)
        self.consumer = other.link(merged, self.a)
        one(amount=1.0)
        two(amount=100.0)
        self.contexts = one.context, two.context

    def fill(self, number: int, mode: str = "copy") -> None:
        self.contexts[number].merge_into(self.consumer, self.a, mode=mode)

    @property
    def value(self) -> float:
        return float(self.consumer.context.numpy(self.a)[0])


def fill_then_merge(scene: Merging) -> None:
    scene.fill(1)
    scene.consumer()


def merge_then_fill(scene: Merging) -> None:
    scene.consumer()
    scene.fill(1)


@pytest.mark.parametrize("body", [fill_then_merge, merge_then_fill, lambda scene: scene.fill(1)])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_merge_buffer_filled_in_a_loop_is_that_of_the_stream(body: Any, count: int) -> None:
    calls, planned = Merging(), Merging()
    calls.fill(0)
    for _ in range(count):
        body(calls)
    calls.consumer()
    with pe.plan() as plan:
        planned.fill(0)
        with plan.while_(lambda at: at < count):
            body(planned)
        planned.consumer()
    plan()
    assert planned.value == calls.value


@pytest.mark.parametrize("index", [-1, 0, 1])
def test_a_merge_buffer_filled_in_a_branch_is_that_of_the_stream(index: int) -> None:
    scene = Merging()
    with pe.plan() as plan:
        scene.fill(0)
        with plan.case_of(lambda: index) as case:
            with case.branch():
                scene.fill(1)
            with case.branch():
                scene.consumer()
        scene.consumer()
    plan()
    assert scene.value == [1, 100, 2][index + 1]


def test_what_a_loop_may_have_put_into_a_merge_buffer_is_not_merged() -> None:
    scene = Merging()
    with pe.plan() as plan:
        scene.fill(0)
        with plan.while_(lambda count: count < 2):
            scene.fill(1, "streaming")
            scene.consumer()
        with pytest.raises(pe.CdError, match="CD0866.*`merged` merges `a`"):
            scene.consumer()
        scene.fill(0)
        scene.consumer()
    plan()
    assert scene.value == 201
    with pe.plan() as plan:
        scene.fill(0)
        with pytest.raises(pe.CdError, match="CD0866.*an earlier step of the loop merges `a`"):
            with plan.while_(lambda count: count < 2):
                scene.consumer()
                scene.fill(1, "streaming")


def test_a_merge_takes_over_what_a_function_wrote_before_it() -> None:
    merging = Merging()
    put_seven = pe.cd_from_source("def put_seven(x):\n    x[i] = 7.0\n")
    with pe.plan() as plan:
        put_seven(merging.a)
        merging.fill(0)
        merging.consumer()
    plan()
    assert merging.value == 14


@pytest.mark.parametrize("to_host", [False, True])
def test_trap_a_copy_into_an_array_that_is_the_hosts_is_no_write_of_the_host(to_host: bool) -> None:
    def found(planned: bool) -> list[float]:
        one, two, three = Scene("abc", "cc"), Scene("", "cc:1"), Scene("", "cc:2")
        one.a[...] = 1.0
        here, there = one.link(double, one.b, one.a), three.link(double, one.c, one.a)
        up = two.link(count_up, one.a)
        here(), there()

        def calls() -> None:
            up()
            one.context.copy_from(two.context, one.a)
            if to_host:
                two.context.to_host(one.a)
            here(), there()

        if planned:
            with pe.plan() as plan:
                calls()
            plan()
        else:
            calls()
        there()
        return one.first(one.a, one.b, one.c)

    assert found(True) == found(False) == [2, 4, 4 if to_host else 2]
