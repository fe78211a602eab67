"""Functions on tensors in plans, and blocks that put calls off."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd
from plusequals.idx import i
from tests.backends.runtime.plan.scenes import Scene, add, count_up, double, merged, shift, take
from tests.dsl.api.random_calls import differs


@pytest.fixture
def tensors() -> list[Any]:
    return [pe.tensor(name, 4, dtype="float64", init=float(n)) for n, name in enumerate("abcd")]


def test_functions_on_tensors_are_steps(tensors: list[Any], backend: str) -> None:
    a, b, c, _ = tensors
    functions = [each.on(backend) for each in (count_up, double, add)]
    with pe.plan() as plan:
        functions[0](a)
        functions[1](b, a)
        functions[2](c, a, b)
    assert a.numpy()[0] == 0
    plan()
    plan()
    assert [t.numpy()[0] for t in (a, b, c)] == [2, 4, 6]
    a[...] = 5.0
    plan()
    assert c.numpy()[0] == 18


def test_a_plan_sees_what_was_written_between_its_runs(tensors: list[Any]) -> None:
    a, b, *_ = tensors
    with pe.plan() as first:
        count_up(a)
    with pe.plan() as second:
        double(b, a)
        count_up(a)
    for _ in range(2):
        first()
        second()
    count_up(a)
    second()
    assert (a.numpy()[0], b.numpy()[0]) == (6, 10)


def test_counters_and_inputs_are_arguments(tensors: list[Any]) -> None:
    a, b, *_ = tensors
    with pe.plan() as plan:
        shift(b, 1.0)
        with plan.while_(lambda count: count < 4) as loop:
            shift(a, loop.count)
    plan(amount=3.0)
    assert (a.numpy()[0], b.numpy()[0]) == (6, 4)


def test_functions_of_arrays_alone_are_called(tensors: list[Any]) -> None:
    array = np.zeros(4)
    with pe.plan() as plan:
        count_up(array)
        count_up(tensors[0])
    assert array[0] == 1
    assert plan.stats()["nodes"] == 1


def test_what_returns_something_is_not_put_off(tensors: list[Any]) -> None:
    total = pe.cd_from_source("def total(x):\n    return sum(x)\n")
    with pe.plan(), pytest.raises(pe.CdError, match="CD0862.*`total` returns something"):
        total(tensors[0])
    with pe.deferred():
        count_up(tensors[0])
        assert total(tensors[0]) == 4
        count_up(tensors[0])
    assert total(tensors[0]) == 8


def test_deferred_calls_run_at_the_end_or_when_a_value_is_looked_at(tensors: list[Any]) -> None:
    a, b, c, _ = tensors
    with pe.deferred():
        count_up(a)
        double(b, a)
        assert b.numpy()[0] == 2
        a[...] = 10.0
        double(c, a)
    assert [t.numpy()[0] for t in (a, b, c)] == [10, 2, 20]


def test_eval_and_sync_run_what_was_put_off(tensors: list[Any]) -> None:
    a, b, *_ = tensors
    stream = pe.device("cc").stream()
    routine = count_up.compile(b).link(stream.context())
    stream.synchronize()
    array = next(held.array for held in routine.buffers.values())
    with pe.deferred():
        count_up(a)
        routine()
        assert array[0] == 1
        pe.eval(a, b)
        assert array[0] == 2
        routine()
        pe.sync()
        assert array[0] == 3
    routine()
    pe.sync(pe.device("cc"))
    assert array[0] == 4
    with pytest.raises(pe.CdError, match="CD0852"):
        pe.sync("cc")  # type: ignore[arg-type]  # that is the point


def test_what_came_before_an_error_in_a_deferred_block_has_run(tensors: list[Any]) -> None:
    with pytest.raises(RuntimeError), pe.deferred():
        count_up(tensors[0])
        raise RuntimeError
    assert tensors[0].numpy()[0] == 1


def test_functions_have_one_array_of_a_tensor_whatever_comes_first(tensors: list[Any]) -> None:
    a, b, c, d = tensors
    copied = pe.cd_from_source("def copied(y, x):\n    y[i] = x[i]\n")
    with pe.plan() as plan:
        copied(a, b)
        shift(c, 1.0)
        count_up(d)
        copied(a, c)
    plan()
    assert [t.numpy()[0] for t in (a, c, d)] == [3, 3, 4]


def test_functions_of_several_devices_write_the_same_tensor(tensors: list[Any]) -> None:
    a, *_ = tensors
    other = count_up.on("numpy")
    with pe.plan() as plan:
        other(a)
        count_up(a)
        other(a)
    plan()
    plan()
    assert a.numpy()[0] == 6
    with pe.deferred():
        count_up(a)
        with pe.override(backend="numpy"):
            count_up(a)
    assert a.numpy()[0] == 8


def test_functions_and_routines_follow_one_another_as_calls_do(tensors: list[Any]) -> None:
    a, b, *_ = tensors
    context = pe.device("cc").stream(threaded=False).context()
    up = count_up.compile(a).link(context)
    twice = double.compile(b, a).link(up.context)

    def calls() -> None:
        count_up(a)
        twice()
        up()
        count_up(a)
        twice()

    with pe.plan() as plan:
        calls()
    found = []
    for run in (plan, plan, calls, plan, calls):
        run()
        found.append((a.numpy()[0], b.numpy()[0]))
    value, expected = 0.0, []
    for _ in found:
        value += 3
        expected.append((value, 2 * value))
    assert found == expected


def test_a_plan_in_a_deferred_block_comes_after_what_was_put_off(tensors: list[Any]) -> None:
    a, *_ = tensors
    with pe.plan() as plan:
        double(a, a)
    with pe.deferred():
        count_up(a)
        plan()
        count_up(a)
    assert a.numpy()[0] == 3
    with pe.plan(), pytest.raises(pe.CdError, match="CD0862.*`plan`"):
        plan()


def test_deferred_calls_have_the_arrays_of_their_time(tensors: list[Any]) -> None:
    a, *_ = tensors
    values, out = np.ones(4), np.zeros(4)
    taken = pe.cd_from_source("def taken(x, v):\n    x[i] += v[i]\n")
    given = pe.cd_from_source("def given(v, x):\n    v[i] = x[i]\n")
    with pe.deferred():
        taken(a, values)
        values[...] = 10.0
        taken(a, values)
        given(out, a)
        assert out[0] == 11
    assert a.numpy()[0] == 11


def test_a_run_that_fails_leaves_other_values_alone(tensors: list[Any]) -> None:
    a, b, *_ = tensors
    put = pe.cd_from_source("def put(x, n):\n    x[n] = 7.0\n")
    with pe.plan() as plan:
        with plan.while_(lambda n: n < 2 and 1 // ok[0]):
            count_up(b)
        put(a, 0)
    ok = [1]
    plan()
    a[...] = 2.0
    ok[0] = 0
    with pytest.raises(ZeroDivisionError):
        plan()
    assert a.numpy()[0] == 2
    count_up(a)
    assert a.numpy()[0] == 3


def test_predicates_use_no_tensors_but_their_values(tensors: list[Any]) -> None:
    a, b, *_ = tensors
    for wrong in (lambda: bool(a.numpy()[0]), lambda: count_up(a) or True, lambda: pe.sync() or 1):
        with pe.plan() as plan:
            with plan.while_(wrong):
                count_up(b)
        with pytest.raises(pe.CdError, match="CD0862.*predicate of `while`"):
            plan()
    for value in (None, "s", [1]):
        with pe.plan() as plan:
            with plan.while_(partial(getattr, SimpleNamespace(value=value), "value")):
                count_up(b)
        with pytest.raises(pe.CdError, match="CD0863.*not true or false"):
            plan()


@pytest.mark.parametrize("seed", range(4))
def test_random_calls_are_the_same_in_plans(seed: int) -> None:
    for number in range(30):
        assert not differs(1000 * seed + number)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_a_tensor_with_one_element_picks_a_branch(shape: tuple[int, ...]) -> None:
    which = pe.tensor("which", shape, dtype="int64", init=1)
    a = pe.tensor("a", 4, dtype="float64", init=0.0)
    with pe.plan() as plan, plan.case_of(which) as case:
        with case.branch():
            count_up(a)
        with case.branch():
            count_up(a)
            count_up(a)
    plan()
    assert a.numpy()[0] == 2


TABLE = np.ones(4)


@cd
def add_table(x):
    x[i] += TABLE[i]


@cd
def add_held(x, held):
    x[i] += held.v[i]


@cd
def add_rows(x, rows):
    x[i] += rows[0][i] * rows[1][i]


def with_table(x: Any, value: float) -> None:
    global TABLE
    TABLE = np.full(4, value)
    add_table(x)


@pytest.mark.parametrize(
    "call",
    [
        with_table,
        lambda x, value: add_held(x, SimpleNamespace(v=np.full(4, value))),
        lambda x, value: add_rows(x, [np.full(4, value), np.ones(4)]),
    ],
    ids=["captured", "attribute", "list"],
)
@pytest.mark.parametrize("block", [pe.plan, pe.deferred])
def test_each_call_has_the_arrays_that_it_is_given(
    call: Any, block: Any, tensors: list[Any]
) -> None:
    a, b, *_ = tensors
    with block() as made:
        for x, value in ((a, 1.0), (a, 10.0), (b, 100.0)):
            call(x, value)
    if block is pe.plan:
        made()
    assert (a.numpy().tolist(), b.numpy().tolist()) == ([11.0] * 4, [101.0] * 4)


def changed_table(x: Any) -> None:
    add_table(x)
    TABLE[...] = 7.0


def changed_rows(x: Any) -> None:
    rows = [[3.0] * 4, [1.0] * 4]
    add_rows(x, rows)
    rows[0][:] = [7.0] * 4


def changed_binding(x: Any) -> None:
    routine = take.compile(x, np.ones(4)).link(pe.device("cc").stream().context())
    values = routine.bindings["values"] = np.full(4, 2.0)
    routine()
    values[...] = 7.0


@pytest.mark.parametrize("call", [changed_table, changed_rows, changed_binding])
def test_deferred_calls_have_the_elements_of_their_time(call: Any, tensors: list[Any]) -> None:
    a, *_ = tensors
    TABLE[...] = 3.0
    with pe.deferred():
        call(a)
    assert a.numpy().tolist() == [3.0] * 4


def test_merge_buffers_are_the_same_inside_and_outside_of_a_deferred_block() -> None:
    scene, other, third = Scene(), Scene(""), Scene("")
    home, away = scene.link(count_up, scene.a), third.link(count_up, scene.a)
    consumer = other.link(merged, scene.a)
    home()
    away()
    away()
    home.context.merge_into(consumer, scene.a)
    with pe.deferred():
        consumer()
        away.context.merge_into(consumer, scene.a)
        assert other.context.numpy(scene.a)[0] == 1
        consumer()
    consumer()
    assert other.context.numpy(scene.a)[0] == 5


def test_a_routine_linked_in_a_block_has_what_was_written_before_it(tensors: list[Any]) -> None:
    a, b, c, _ = tensors
    stream = pe.device("cc").stream(threaded=False)
    up = count_up.compile(a).link(stream.context())
    away = pe.device("cc").stream().context()
    with pe.deferred():
        up()
        double.compile(b, a).link(away)()
        count_up(c)
        add.compile(c, c, a).link(away)()
    assert (b.numpy()[0], c.numpy()[0]) == (2, 4)
    with pe.plan() as plan:
        up()
        with pytest.raises(pe.CdError, match="CD0862.*`double` is linked, with an array of `a`"):
            double.compile(b, a).link(away)
        with pytest.raises(pe.CdError, match="CD0862.*`double` is linked, with an array of `a`"):
            pe.Batch(double.compile(b, a)).link(away)
        double.compile(b, a).link(up.context)()
    plan()
    assert b.numpy()[0] == 4


@pytest.mark.parametrize("observed", [pe.trace, pe.profile])
def test_an_observer_sees_the_deferred_calls_of_its_block(observed: Any, tensors: Any) -> None:
    a, b, *_ = tensors
    with pe.deferred():
        count_up(a)
        with observed() as found:
            double(b, a)
        count_up(a)
    assert "double" in str(found) and "count_up" not in str(found)
    assert (a.numpy()[0], b.numpy()[0]) == (2, 2)
