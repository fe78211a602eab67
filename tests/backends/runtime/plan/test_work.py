"""Steps of routines: arguments by reference, by copy and by counter, and their checks."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.runtime.plan.steps import Counter, Frame
from plusequals.backends.runtime.plan.work import ARGUMENTS, routine_step

from .scenes import SIZE, Scene, count_up, give, shift, take

EMPTY = Frame({}, {}, {})


def test_a_call_without_arguments_is_the_routines_own() -> None:
    scene = Scene()
    routine = scene.link(count_up, scene.a)
    step = routine_step(routine, (), {}, None, "here:1")
    assert step.bind(EMPTY) is routine.static_run
    assert step.arguments == {}
    assert step.line == "here:1"


def test_arrays_are_read_when_it_runs_also_those_that_have_to_be_converted() -> None:
    scene = Scene()
    routine = scene.link(take, scene.a, np.zeros(SIZE))
    swapped = np.arange(SIZE).astype(">f8")
    for values in (np.arange(SIZE) * 1.0, np.arange(2.0 * SIZE)[::2], swapped):
        step = routine_step(routine, (values,), {}, None, "")
        run = step.bind(EMPTY)
        values[...] = 6.0
        run()
        step.note()
        assert scene.a.numpy().tolist() == [7] * SIZE


def test_arguments_conflict_where_one_is_written() -> None:
    scene = Scene()
    reads = routine_step(scene.link(take, scene.a, np.zeros(SIZE)), (np.zeros(SIZE),), {}, None, "")
    writes = routine_step(
        scene.link(give, scene.b, np.zeros(SIZE)), (np.zeros(SIZE),), {}, None, ""
    )
    assert ARGUMENTS in reads.reads
    assert ARGUMENTS in writes.writes
    assert (reads.arguments, writes.arguments) == ({"values": False}, {"out": True})


def test_a_counter_is_no_input() -> None:
    scene = Scene()
    counter = Counter("loop")
    step = routine_step(scene.link(shift, scene.a, 0), (), {"amount": counter}, None, "")
    assert step.arguments == {}
    step.bind(Frame({}, {"amount": 100}, {counter: 5}))()
    step.note()
    assert scene.first(scene.a) == [5]


def test_what_does_not_fit_is_refused_when_it_is_recorded_or_given() -> None:
    scene = Scene()
    routine = scene.link(shift, scene.a, 0)
    with pytest.raises(pe.CdError, match="CD0702"):
        routine_step(routine, (1.5,), {}, None, "")
    with pytest.raises(pe.CdError, match="CD0436"):
        routine_step(routine, (), {"amonut": 1}, None, "")
    step = routine_step(routine, (1,), {}, None, "")
    assert step.require is not None
    with pytest.raises(pe.CdError, match="CD0702"):
        step.require({"amount": 1.5})


def test_a_number_in_an_array_is_read_after_what_writes_it() -> None:
    scene, other = Scene(), Scene("")
    total = pe.cd_from_source("def total(x, s):\n    s += sum(x)\n")
    number = np.zeros(())
    sums, shifts = scene.link(total, scene.b, number), scene.link(shift, scene.c, number)
    independent = other.link(count_up, scene.d)
    with pe.plan() as plan:
        sums(s=number)
        shifts(amount=number)
        independent()
        with plan.while_(lambda count: count < 2):
            sums(s=number)
            shifts(amount=number)
    plan()
    assert scene.first(scene.c, scene.d) == [2 + 4 + 8 + 12, 4]
