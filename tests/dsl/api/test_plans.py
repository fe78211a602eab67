"""Functions on tensors in plans, and blocks that put calls off."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from tests.backends.runtime.plan.scenes import add, count_up, double, shift


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


def test_an_error_in_a_deferred_block_runs_nothing(tensors: list[Any]) -> None:
    with pytest.raises(RuntimeError), pe.deferred():
        count_up(tensors[0])
        raise RuntimeError
    assert tensors[0].numpy()[0] == 0
