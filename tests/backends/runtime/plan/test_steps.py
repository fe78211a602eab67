"""Nodes: what a predicate gets, what frames stand for, what bodies contain."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.runtime.memory import Buffer
from plusequals.backends.runtime.plan.steps import (
    Counter,
    Frame,
    Predicate,
    conditional_accesses,
    copy_step,
    scheduled,
)

from .scenes import Scene, count_up


def test_a_predicate_gets_numbers_counters_and_copies() -> None:
    number, array = (Buffer(n, np.array(v), None) for n, v in (("n", 2.5), ("v", [1.0, 2.0])))
    counter = Counter("loop")
    frame = Frame({}, {}, {counter: 7})
    got = Predicate(lambda *values: values, (number, array, counter), counted=True).evaluate(
        frame, 3
    )
    assert got[:2] == (3, 2.5)
    assert got[2].tolist() == [1, 2]
    assert got[2] is not array.array
    assert got[3] == 7
    assert Predicate(None, (number,)).evaluate(frame) == 2.5


def test_names_stand_for_arrays_in_a_frame() -> None:
    one, two = (Buffer(n, np.array([v]), None) for n, v in (("x", 1.0), ("y", 2.0)))
    other = np.array([5.0])
    step = copy_step("copy", "copy", "cc:0", (one, two), lambda: None, "")
    step.bind(Frame({one: other}, {}, {}))()
    assert two.array[0] == 5
    step.bind(Frame({}, {}, {}))()
    assert two.array[0] == 1


def test_a_body_has_the_steps_inside_of_its_nodes() -> None:
    scene = Scene()
    step = scene.link(count_up, scene.a)
    with pe.plan() as plan:
        step()
        with plan.while_(lambda count: count < 2) as loop:
            with loop.before():
                step()
            with plan.case_of(lambda: 0) as case:
                with case.branch():
                    step()
    body = plan.program.body
    assert [s.name for s in body.steps] == ["count_up"] * 3
    assert len(list(body.notes)) == 3
    assert body.has_control_flow
    assert not scheduled((), None).has_control_flow


@pytest.mark.parametrize("tested", [False, True])
def test_what_may_be_written_is_read(tested: bool) -> None:
    one, two = (Buffer(n, np.zeros(1), None) for n in "xy")
    scene = Scene()
    step = scene.link(count_up, scene.a)
    with pe.plan() as plan:
        step()
    reads, writes = conditional_accesses([plan.program.body], [one, two] if tested else [], [])
    assert [r.label for r in reads] == ["x", "y"] * tested + ["a"]
    assert [w.label for w in writes] == ["a"]
