"""Plans: what they compute, what they count, what waits for what, and what is refused."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plusequals as pe

from .scenes import SIZE, Scene, add, count_up, double, give, merged, put, shift, take


@pytest.fixture
def scene() -> Iterator[Any]:
    yield Scene()


def diamond(scene: Any) -> Any:
    steps = [
        scene.link(count_up, scene.a), scene.link(double, scene.b, scene.a),
        scene.link(double, scene.c, scene.a), scene.link(add, scene.d, scene.b, scene.c),
    ]  # fmt: skip
    with pe.plan(name="diamond") as plan:
        for step in steps:
            step()
    return plan


def test_nothing_runs_while_it_is_recorded(scene: Any) -> None:
    plan = diamond(scene)
    assert scene.first(scene.a, scene.d) == [0, 3]
    plan()
    assert scene.first(scene.a, scene.b, scene.c, scene.d) == [1, 2, 2, 4]
    plan()
    assert scene.first(scene.a, scene.d) == [2, 8]


def test_a_run_takes_over_what_the_host_wrote(scene: Any) -> None:
    plan = diamond(scene)
    plan()
    scene.a[...] = 10.0
    plan()
    assert scene.first(scene.d) == [44]


def test_counts_follow_by_hand(scene: Any) -> None:
    assert diamond(scene).stats() == {
        "nodes": 4, "streams": 2, "events": 2, "waits": 2, "edges": 4, "removed_edges": 0,
        "added_edges": 0, "arena_bytes": 0, "unshared_bytes": 0, "peak_bytes": 0,
    }  # fmt: skip


# ------------------------------------------------------------------------------------- loops


@pytest.mark.parametrize("n", [0, 1, 5])
def test_the_part_before_the_test_runs_once_more(scene: Any, n: int) -> None:
    before, after = scene.link(count_up, scene.a), scene.link(count_up, scene.b)
    asked: list[int] = []

    def goes_on(count: int) -> bool:
        asked.append(count)
        return count < n

    with pe.plan() as plan:
        with plan.while_(goes_on) as loop:
            with loop.before():
                before()
            after()
    plan()
    assert scene.first(scene.a, scene.b) == [n + 1, 1 + n]
    assert asked == list(range(n + 1))


def test_a_predicate_sees_the_values_of_its_iteration(scene: Any) -> None:
    step = scene.link(count_up, scene.a)
    seen: list[float] = []

    def goes_on(count: int, values: Any) -> bool:
        seen.append(float(values[0]))
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 1.0
        return bool(values[0] < 3)

    with pe.plan() as plan:
        with plan.while_(goes_on, reads=[scene.a]):
            step()
    plan.run(on=pe.device("cc").stream()).wait()
    assert seen == [0, 1, 2, 3]
    assert scene.first(scene.a) == [3]


def test_a_tensor_may_be_the_predicate(scene: Any) -> None:
    left = pe.tensor("left", 1, dtype="int64", init=3)
    less = pe.cd_from_source("def less(n):\n    n[0] -= 1\n")
    one, two = scene.link(less, left), scene.link(count_up, scene.a)
    number = pe.tensor("number", (), dtype="int64", init=2)
    with pe.plan() as plan:
        with plan.case_of(number) as case:
            for _ in range(2):
                with case.branch():
                    one()
            with case.branch():
                two()
        with plan.while_(pe.tensor("never", (), dtype="float64")):
            two()
    plan()
    assert scene.first(scene.a) == [1]
    assert left.numpy()[0] == 3


@pytest.mark.parametrize("n", range(6))
def test_arrays_change_places(scene: Any, n: int) -> None:
    """The first value of the input stays; the output has the last value, or the first input."""
    step = scene.link(double, scene.b, scene.a)
    other = scene.link(double, scene.c, scene.a)
    scene.a[...] = 3.0
    with pe.plan() as plan:
        with plan.while_(lambda count: count < n, carry={scene.a: scene.b}):
            step()
        other()
    plan()
    assert scene.first(scene.a, scene.b, scene.c) == [3, 3 * 2**n, 6]


@pytest.mark.parametrize("n", range(7))
def test_a_chain_of_three_changes_places(n: int) -> None:
    """x0 <- x1 <- x2 <- x3, where x3 = x0 + x2: the numbers of a recurrence."""
    scene: Any = Scene("pqrs")
    step = scene.link(add, scene.s, scene.p, scene.r)
    with pe.plan() as plan:
        carry = {scene.p: scene.q, scene.q: scene.r, scene.r: scene.s}
        with plan.while_(lambda count: count < n, carry=carry):
            step()
    plan()
    numbers = [0.0, 1.0, 2.0]
    for _ in range(n):
        numbers.append(numbers[-3] + numbers[-1])
    assert scene.first(scene.p, scene.q, scene.r, scene.s) == [0, 1, 2, numbers[-1]]


def test_loops_are_nested(scene: Any) -> None:
    inner_step, outer_step = scene.link(count_up, scene.a), scene.link(count_up, scene.b)
    with pe.plan() as plan:
        with plan.while_(lambda count: count < 5, name="outer"):
            with plan.while_(lambda count: count < 5, name="inner"):
                inner_step()
            outer_step()
    plan()
    assert scene.first(scene.a, scene.b) == [25, 6]


def test_routines_are_given_the_number_of_the_iteration(scene: Any) -> None:
    step = scene.link(shift, scene.a, 0)
    with pe.plan() as plan:
        with plan.while_(lambda count: count < 5) as loop:
            step(amount=loop.count)
            with plan.case_of(lambda count: -abs(count - 3), reads=[loop.count]) as case:
                with case.branch():
                    step(amount=100)
    plan()
    assert scene.first(scene.a) == [0 + 1 + 2 + 3 + 4 + 100]


def test_a_loop_blocks_only_what_depends_on_it(scene: Any) -> None:
    """It goes on until a routine that is recorded after it has run."""
    step, other = scene.link(count_up, scene.a), scene.link(count_up, scene.b)
    array = next(held.array for held in other.buffers.values())
    with pe.plan() as plan:
        with plan.while_(lambda count: array[0] == 1.0, at_most=100_000):
            step()
        other()
    plan()
    assert scene.first(scene.b) == [2]
    plan = pe.plan()
    array[...] = 1.0
    with plan:
        other()
        with plan.while_(lambda count: array[0] == 1.0, at_most=100_000):
            pass
    plan.run(on=pe.device("cc").stream()).wait()


# ---------------------------------------------------------------------------------- branches


@pytest.mark.parametrize(
    ("value", "found"), [(0.0, [0, 1, 2]), (1.0, [1, 2, 2]), (2.0, [2, 1, 4]), (-5.0, [-5, 1, -5])]
)
def test_one_branch_runs_or_the_value_passes_through(
    scene: Any, value: float, found: list[float]
) -> None:
    one, two = scene.link(double, scene.b, scene.a), scene.link(double, scene.c, scene.a)
    scene.a[...] = value
    with pe.plan() as plan:
        with plan.case_of(
            lambda values: int(values[0]) - 1, reads=[scene.a], otherwise={scene.c: scene.a}
        ) as case:
            with case.branch():
                one()
            with case.branch():
                two()
    plan()
    if value == 0.0:
        found = [0, 1, 0]
    assert scene.first(scene.a, scene.b, scene.c) == found


def test_a_branch_in_a_loop_of_four(scene: Any) -> None:
    up, down = scene.link(count_up, scene.a), scene.link(shift, scene.a, 0)
    with pe.plan() as plan:
        with plan.while_(lambda count: count < 4):
            with plan.case_of(lambda values: int(values[0]) % 2, reads=[scene.a]) as case:
                with case.branch():
                    up()
                with case.branch():
                    down(amount=2)
    plan()
    assert scene.first(scene.a) == [7]


# ---------------------------------------------------------------------------- running elsewhere


def test_a_run_on_a_stream_is_one_step_of_it(scene: Any) -> None:
    plan = diamond(scene)
    stream = pe.device("cc").stream()
    runs = [plan.run(on=stream) for _ in range(3)]
    event = stream.record()
    event.wait()
    assert all(run.done for run in runs)
    assert scene.first(scene.a) == [3]


def test_runs_on_two_streams_are_in_order_where_they_share_arrays(scene: Any) -> None:
    plan = diamond(scene)
    runs = [plan.run(on=pe.device("cc").stream()) for _ in range(4)]
    assert scene.first(scene.d) == [4 * 4]  # a look waits for what computes it
    for run in runs:
        run.wait()


def test_a_run_is_awaitable(scene: Any) -> None:
    plan = diamond(scene)

    async def run() -> None:
        await plan.run(on=pe.device("cc").stream())

    asyncio.run(run())
    assert scene.first(scene.d) == [4]


def test_a_plan_of_one_stream_starts_no_thread(scene: Any) -> None:
    step = scene.link(count_up, scene.a)
    with pe.plan() as plan:
        step()
        step()
    threads = threading.active_count()
    plan()
    assert threading.active_count() <= threads


def test_a_cancelled_run_ends_and_the_plan_goes_on(scene: Any) -> None:
    step = scene.link(count_up, scene.a)
    started = threading.Event()

    def goes_on(count: int) -> bool:
        started.set()
        return not limited[0] or count < 2

    limited = [False]
    with pe.plan() as plan:
        with plan.while_(goes_on):
            step()
    run = plan.run(on=pe.device("cc").stream())
    started.wait()
    run.cancel()
    run.wait()
    assert run.cancelled
    assert run.done
    reached = scene.first(scene.a)[0]
    limited[0] = True
    plan()
    assert scene.first(scene.a) == [reached + 2]


# ------------------------------------------------------------------------------------- inputs


def test_inputs_are_given_by_name(scene: Any) -> None:
    one, two = scene.link(shift, scene.a, 0.0), scene.link(shift, scene.b, 0.0)
    with pe.plan() as plan:
        one(amount=1.0)
        two(amount=2.0)
    plan()
    assert scene.first(scene.a, scene.b) == [1, 3]
    plan(amount=10.0)
    assert scene.first(scene.a, scene.b) == [11, 13]
    plan()
    assert scene.first(scene.a, scene.b) == [12, 15]


def test_arrays_of_arguments_are_read_when_the_plan_runs(scene: Any) -> None:
    reads, writes = (
        scene.link(take, scene.a, np.zeros(SIZE)),
        scene.link(give, scene.a, np.zeros(SIZE)),
    )
    given, out = np.arange(SIZE) + 1.0, np.zeros(SIZE)
    with pe.plan() as plan:
        reads(values=given)
        writes(out=out)
        reads(values=out)
    plan()
    assert out.tolist() == [4, 6, 8, 10]
    assert scene.a.numpy().tolist() == [5, 7, 9, 11]
    given[...] = 0.0
    plan()
    assert out.tolist() == [2] * SIZE
    run = plan.run(on=pe.device("cc").stream(), values=np.full(SIZE, 4.0))
    run.wait()
    assert out.tolist() == [10] * SIZE


def test_an_input_that_does_not_fit_is_refused(scene: Any) -> None:
    step = scene.link(take, scene.a, np.zeros(SIZE))
    with pe.plan() as plan:
        step(values=np.zeros(SIZE))
    with pytest.raises(pe.CdError, match="CD0702"):
        plan(values=np.zeros(SIZE + 1))
    with pytest.raises(pe.CdError, match=r"CD0869.*\n.*they take values"):
        plan(value=np.zeros(SIZE))


def test_a_part_of_a_plan(scene: Any) -> None:
    plan = diamond(scene)
    plan.partial(sources=["double"], destinations=["double"])()
    assert scene.first(scene.a, scene.b, scene.c, scene.d) == [0, 0, 0, 3]
    plan.partial(sources=["double"])()
    assert scene.first(scene.a, scene.d) == [0, 0]
    plan.partial(destinations=["count_up"])()
    assert scene.first(scene.a, scene.b) == [1, 0]
    with pytest.raises(pe.CdError, match="CD0869.*\n.*\n.*did you mean `double`"):
        plan.partial(sources=["duoble"])


# ----------------------------------------------------------------------------------- failures


@pytest.mark.parametrize("how", ["here", "on a stream", "on one stream"])
def test_a_fault_names_its_line_and_iteration_and_the_plan_goes_on(scene: Any, how: str) -> None:
    step, independent = scene.link(put, scene.a, 0), scene.link(count_up, scene.b)
    last = [SIZE + 2]
    with pe.plan(max_streams=1 if how == "on one stream" else None) as plan:
        with plan.while_(lambda count: count < last[0], name="fill") as loop:
            step(at=loop.count)
        independent()
    with pytest.raises(pe.CdError, match=r"(?s)CD0601.*x\[at\] = 7.0.*iteration 4 of `fill`"):
        if how == "here":
            plan()
        else:
            plan.run(on=pe.device("cc").stream()).wait()
    last[0] = SIZE
    plan()
    assert scene.a.numpy().tolist() == [7] * SIZE


def test_what_a_predicate_raises_is_raised(scene: Any) -> None:
    step = scene.link(count_up, scene.a)
    with pe.plan() as plan:
        step()
        with plan.case_of(lambda values: 1 // 0, reads=[scene.a]) as case:
            with case.branch():
                step()
    with pytest.raises(ZeroDivisionError):
        plan()
    assert scene.first(scene.a) == [1]


# ------------------------------------------------------------------------ between other contexts


def test_copies_and_merges_are_steps(scene: Any) -> None:
    other: Any = Scene("")
    home, away = scene.link(count_up, scene.a), other.link(count_up, scene.a)
    consumer = other.link(merged, scene.a)
    for mode, found in (("copy", 2 + 1), ("streaming", 2 + 1)):
        with pe.plan() as plan:
            home.context.from_host(scene.a)
            away.context.copy_from(home.context, scene.a)
            home()
            home.context.merge_into(consumer, scene.a, mode=mode)
            home()
            away()
            consumer()
        plan()
        assert away.context.numpy(scene.a)[0] == found - 1
        assert home.context.numpy(scene.a)[0] == 2


def test_a_merge_for_one_call_serves_one(scene: Any) -> None:
    other: Any = Scene("")
    home, consumer = scene.link(count_up, scene.a), other.link(merged, scene.a)
    with pe.plan() as plan:
        home.context.merge_into(consumer, scene.a, mode="streaming")
        consumer()
        with pytest.raises(pe.CdError, match="CD0844"):
            consumer()
        home.context.merge_into(consumer, scene.a, mode="copy")
        consumer()
        consumer()
    plan()
    assert consumer.context.numpy(scene.a)[0] == 0


def test_work_of_other_threads_waits_for_a_run(scene: Any) -> None:
    step, slow = scene.link(count_up, scene.a), scene.link(count_up, scene.b)

    def goes_on(count: int) -> bool:
        time.sleep(0.002)
        return count < 5

    with pe.plan() as plan:
        with plan.while_(goes_on):
            step()
            slow()
    run = plan.run(on=pe.device("cc").stream())
    step()
    assert scene.first(scene.a) == [6]
    run.wait()


# ------------------------------------------------------------------------------------- watching


def test_a_profile_has_the_steps_of_a_plan(scene: Any) -> None:
    plan = diamond(scene)
    with pe.profile() as timeline:
        plan()
    names = [work.name for work in timeline.works if work.kind == "routine"]
    assert sorted(names) == ["add", "count_up", "double", "double"]


def test_a_trace_has_the_values_of_a_plan(scene: Any) -> None:
    plan = diamond(scene)
    with pe.trace() as trace:
        plan()
    assert "z[0]" in str(trace)


# ---------------------------------------------------------------------------------- what is not


def test_plans_are_recorded_once_and_not_in_one_another(scene: Any) -> None:
    plan = diamond(scene)
    with pytest.raises(pe.CdError, match="CD0868.*recorded already"):
        plan.__enter__()
    with pe.plan(), pytest.raises(pe.CdError, match="CD0868.*inside of another"):
        pe.plan().__enter__()
    with pytest.raises(pe.CdError, match="CD0868.*outside of the `with`"):
        plan.while_(lambda count: False)
    with pytest.raises(pe.CdError, match="CD0868.*0 streams"):
        pe.plan(max_streams=0)


def test_after_an_error_the_thread_records_no_more(scene: Any) -> None:
    step = scene.link(count_up, scene.a)
    with pytest.raises(RuntimeError), pe.plan() as plan:
        step()
        raise RuntimeError
    step()
    assert scene.first(scene.a) == [1]
    assert repr(plan) == "<plan plan: not recorded>"


def test_another_thread_is_not_recorded(scene: Any) -> None:
    step = scene.link(count_up, scene.a)
    with pe.plan() as plan:
        thread = threading.Thread(target=step)
        thread.start()
        thread.join()
    plan()
    assert scene.first(scene.a) == [1]


def test_an_empty_plan_runs(scene: Any) -> None:
    with pe.plan() as plan:
        pass
    plan()
    assert plan.stats()["nodes"] == 0
