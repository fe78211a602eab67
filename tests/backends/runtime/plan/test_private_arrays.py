"""The tensors of a plan: memory that they share, and their use elsewhere, which is refused."""

from __future__ import annotations

import gc
import pickle
import random
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd
from plusequals.backends.runtime.plan.private_arrays import is_in_order
from plusequals.backends.runtime.plan.steps import scheduled

from .scenes import SIZE, Scene, add, count_up, double, merged

BYTES = SIZE * 8


def chain(scene: Scene, length: int, on_host: bool) -> pe.Plan:
    """Return the plan that doubles `a` again and again, into `b` in the end."""
    plan = pe.plan(name="chain")
    between = [plan.tensor(f"h{n}", SIZE, dtype="float64") for n in range(length - 1)]
    tensors = [scene.a, *between, scene.b]
    pairs = list(zip(tensors[1:], tensors, strict=False))
    calls = [(double, pair) for pair in pairs] if on_host else [
        (scene.link(double, *pair), ()) for pair in pairs
    ]  # fmt: skip
    with plan:
        for function, arguments in calls:
            function(*arguments)
    return plan


@pytest.mark.parametrize("on_host", [True, False])
def test_a_chain_of_them_takes_two_places(on_host: bool) -> None:
    scene = Scene()
    scene.a[...] = 1.0
    plan = chain(scene, 6, on_host)
    for _ in range(2):
        plan()
        assert scene.first(scene.b) == [64.0]
    stats = plan.stats()
    assert stats["unshared_bytes"] == 5 * BYTES and stats["arena_bytes"] == 64 + BYTES


def test_their_memory_is_counted_once_and_ends_with_the_plan() -> None:
    gc.collect()
    scene, device = Scene(), pe.device("cc")
    before = device.used_memory
    plan = chain(scene, 6, on_host=False)
    assert device.used_memory - before == 64 + BYTES + BYTES, "two places, and that of b"
    gone = weakref.ref(plan.program)
    del plan, scene
    gc.collect()
    assert gone() is None and device.used_memory == before


def test_merge_buffers_share_their_memory() -> None:
    scene = Scene()
    routines = [scene.link(merged, scene.a)]
    source = scene.link(count_up, scene.a).context
    with pe.plan() as plan:
        for _ in range(3):
            source.merge_into(routines[0], scene.a, mode="copy")
            routines[0]()
    stats = plan.stats()
    assert stats["unshared_bytes"] == 3 * BYTES and stats["arena_bytes"] == BYTES
    plan()
    assert scene.context.numpy(scene.a)[0] == 0.0


def test_two_plans_may_have_their_own_at_once() -> None:
    scene, plans = Scene(), []
    for target in (scene.b, scene.c):
        plan = pe.plan()
        between = plan.tensor("h", SIZE, dtype="float64")
        first, second = scene.link(double, between, scene.d), scene.link(double, target, between)
        with plan:
            first()
            second()
        plans.append(plan)
    runs = [plan.run(on=pe.device("cc").stream()) for plan in plans * 5]
    for run in runs:
        run.wait()
    assert scene.first(scene.b, scene.c) == [12.0, 12.0]


class Random:
    """A plan of random steps between three tensors, tensors of its own and results."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self.plan = pe.plan(max_streams=rng.choice((None, 1, 2, 3)))
        self.context = pe.device("cc").stream(threaded=False).context()
        public = [pe.tensor(f"p{k}", SIZE, dtype="float64", init=k + 1.0) for k in range(3)]
        self.results = [pe.tensor(f"r{k}", SIZE, dtype="float64") for k in range(4)]
        own = [self.plan.tensor(f"h{k}", SIZE, dtype="float64") for k in range(6)]
        self.values = {t.label: k + 1.0 for k, t in enumerate(public)}
        self.steps: dict[str, tuple[pe.Tensor, pe.Tensor]] = {}
        routines: list[Any] = []
        for number in range(14):
            written = list(dict.fromkeys(target for target, _ in self.steps.values()))
            target, source = rng.choice(own + self.results), rng.choice(public + written)
            if target is not source:
                self.steps[f"step {number}"] = target, source
                compiled = double.compile(target, source, name=f"step {number}")
                routines.append(compiled.link(self.context))
                self.context = routines[-1].context
        with self.plan:
            for routine in routines:
                routine()

    def follow(self, names: set[str]) -> None:
        """Do some of the steps one after another."""
        for name, (target, source) in self.steps.items():
            if name in names:
                self.values[target.label] = 2 * self.values[source.label]

    def check(self) -> None:
        written = {target.label for target, _ in self.steps.values()}
        for result in self.results:
            if result.label in written and result.label in self.values:
                found = self.context.numpy(result)[0]
                assert found == self.values[result.label], (result.label, self.steps)


@pytest.mark.parametrize("seed", range(60))
def test_values_are_right_also_traced_and_of_parts(seed: int) -> None:
    """A trace runs steps in program order, and a part has a schedule of its own."""
    given = Random(seed)
    given.follow(set(given.steps))
    given.plan()
    given.check()
    with pe.trace():
        given.plan()
    given.check()
    last = [name for name, (target, _) in given.steps.items() if target in given.results]
    for name in last[-3:]:
        part = given.plan.partial(destinations=[name])
        given.follow({node.name for node in part.program.body.nodes})
        part.run(on=pe.device("cc").stream()).wait()
        given.check()


def test_another_schedule_of_the_same_steps_may_need_them_at_once() -> None:
    scene, plan = Scene(), pe.plan(max_streams=1)
    routines = []
    for target, label in ((scene.c, "h0"), (scene.d, "h1")):
        own = plan.tensor(label, SIZE, dtype="float64")
        routines += [scene.link(double, own, scene.a), scene.link(double, target, own)]
    with plan:
        for routine in routines:
            routine()
    program = plan.program
    assert program.memory.size == BYTES, "one after another they share"
    for streams, expected in ((1, True), (None, False)):
        body = scheduled(program.body.nodes, streams)
        assert is_in_order(body, program.recorded.private, program.memory) is expected


USES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "a read": lambda h, scene, routine: h.numpy(),
    "an element": lambda h, scene, routine: h[0],
    "a write": lambda h, scene, routine: h.__setitem__(0, 1.0),
    "np.asarray": lambda h, scene, routine: np.asarray(h),
    "edit": lambda h, scene, routine: h.edit().__enter__(),
    "a call": lambda h, scene, routine: double(scene.b, h),
    "a routine": lambda h, scene, routine: routine(),
    "a read of a context": lambda h, scene, routine: routine.context.numpy(h),
    "a copy to the host": lambda h, scene, routine: routine.context.to_host(h),
    "a copy from the host": lambda h, scene, routine: routine.context.from_host(h),
    "a copy": lambda h, scene, routine: routine.context.copy_from(routine.context, h),
    "foreign code": lambda h, scene, routine: routine.context.device_pointer(h).__enter__(),
    "DLPack": lambda h, scene, routine: h.__dlpack__(),
    "a pickle": lambda h, scene, routine: pickle.dumps(h),
    "a field": lambda h, scene, routine: h.grad.numpy(),
    "another plan": lambda h, scene, routine: _recorded(routine),
    "another plan, by a function": lambda h, scene, routine: _recorded(double, scene.b, h),
}


def _recorded(function: Any, *arguments: Any) -> None:
    with pe.plan():
        function(*arguments)


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
@pytest.mark.parametrize("recorded", [False, True])
def test_nobody_else_uses_them(use: Callable[[Any, Any, Any], Any], recorded: bool) -> None:
    scene, plan = Scene(), pe.plan(name="step")
    h = plan.tensor("h", SIZE, dtype="float64")
    routine = scene.link(double, h, scene.a)
    if recorded:
        with plan:
            routine()
    with pytest.raises(pe.CdError, match="CD0876.*outside of `step`"):
        use(h, scene, routine)


IN_LOOPS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "a predicate": lambda plan, h, x: plan.while_(lambda n, v: n < 1, reads=[h]),
    "a tensor as predicate": lambda plan, h, x: plan.case_of(h),
    "a carried target": lambda plan, h, x: plan.while_(lambda n: n < 1, carry={h: x}),
    "a carried source": lambda plan, h, x: plan.while_(lambda n: n < 1, carry={x: h}),
    "what is passed through": lambda plan, h, x: plan.case_of(lambda: -1, otherwise={x: h}),
}


@pytest.mark.parametrize("use", IN_LOOPS.values(), ids=IN_LOOPS.keys())
@pytest.mark.parametrize("other", [False, True])
def test_loops_and_branches_use_those_of_their_plan_that_are_written(
    use: Callable[[Any, Any, Any], Any], other: bool
) -> None:
    plan, owner, x = pe.plan(name="step"), pe.plan(name="other"), pe.tensor("x", 1, "float64")
    h = (owner if other else plan).tensor("h", 1, "float64")
    with pytest.raises(pe.CdError, match="CD0876"), plan, use(plan, h, x):
        pass


def test_what_branches_write_themselves_counts_as_written() -> None:
    scene = Scene()
    for own in (True, False):
        plan = pe.plan()
        h = plan.tensor("h", SIZE, "float64") if own else pe.tensor("h", SIZE, "float64")
        before = scene.link(double, h, scene.a)
        after = scene.link(double, scene.c, h)
        with plan:
            with plan.case_of(lambda: -1, otherwise={h: scene.b}):
                pass
            after()
            before()
        plan()
        assert scene.first(scene.c) == [2.0]


def test_a_copy_of_them_is_refused_in_the_plan_itself() -> None:
    scene, plan = Scene(), pe.plan(name="step")
    h = plan.tensor("h", SIZE, dtype="float64")
    routine = scene.link(double, h, scene.a)
    with pytest.raises(pe.CdError, match="CD0876"), plan:
        routine()
        routine.context.to_host(h)


def test_what_is_read_before_it_is_written_is_refused_and_the_plan_can_be_recorded_again() -> None:
    scene, plan = Scene(), pe.plan(name="step")
    h = plan.tensor("h", SIZE, dtype="float64")
    second, first = scene.link(add, scene.b, scene.a, h), scene.link(double, h, scene.a)
    with pytest.raises(pe.CdError, match="CD0876.*`add` may read `h`.*\n.*test_private_arrays"):
        with plan:
            second()
            first()
    with plan:
        first()
        second()
    with pytest.raises(pe.CdError, match="CD0876.*`add` may read `h`, which `part of step`"):
        plan.partial(sources=["add"])
    scene.a[...] = 1.0
    plan.partial(destinations=["add"])()
    assert scene.first(scene.b) == [3.0]
    with pytest.raises(pe.CdError, match="CD0868"):
        plan.tensor("late", SIZE)


def test_they_are_carried_and_asked_as_others_are() -> None:
    scene, plan = Scene(), pe.plan()
    new, old = (plan.tensor(label, SIZE, dtype="float64") for label in ("new", "old"))
    begin, step = scene.link(double, old, scene.b), scene.link(double, new, old)
    end = scene.link(double, scene.c, new)
    with plan:
        begin()
        with plan.while_(lambda n, x: bool(x[0] < 40), reads=[new], carry={old: new}) as loop:
            with loop.before():
                step()
        end()
    plan()
    assert scene.first(scene.c) == [128.0], "2, 4, 8, 16, 32, 64"


# ---------------------------------------------------------------------------- temporaries


@cd
def ranked(y, x, more):
    t = np.empty(1024)
    for k in range(1024):
        t[k] = x[k % 4] + more[k % 4] + k
    s = np.sort(t[::-1])
    for k in range(4):
        y[k] = s[k]


def test_temporaries_of_routines_with_arguments_and_in_runs_on_two_streams() -> None:
    scene = Scene()
    h = (plan := pe.plan()).tensor("h", SIZE, dtype="float64")
    more = np.full(SIZE, 3.0)
    first, second = scene.link(ranked, h, scene.b, more), scene.link(ranked, scene.a, h, more)
    with plan:
        first(more)
        second(more)
    (one, other) = plan.program.memory.lent
    assert one.size == other.size == first.arena_bytes >= 1024 * 8
    assert plan.stats()["arena_bytes"] == one.size + BYTES, "the steps share it"
    runs = [plan.run(on=pe.device("cc").stream()) for _ in range(6)]
    for run in runs:
        run.wait()
    assert scene.first(scene.a) == [7.0]
    plan(more=np.full(SIZE, 5.0))
    assert scene.first(scene.a) == [11.0]


def test_a_part_whose_steps_run_in_another_order_allocates_its_temporaries() -> None:
    scene, plan = Scene(), pe.plan()
    more = np.zeros(SIZE)
    routines = [
        scene.link(ranked, scene.b, scene.a, more),
        scene.link(double, scene.c, scene.b),
        scene.link(ranked, scene.d, scene.c, more),
    ]
    with plan:
        routines[0](more)
        routines[1]()
        routines[2](more)
    assert plan.stats()["arena_bytes"] == routines[0].arena_bytes
    part = plan.program.of([plan.program.body.nodes[at] for at in (0, 2)], "part", None)
    assert part.body.schedule.devices == ("cc:0", "cc:0") and not part.memory.lent
    assert plan.program.of(plan.program.body.nodes[:2], "part", None).memory.lent
