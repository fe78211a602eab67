"""Loops and branches of graphs: they do what the plan does, and errors are its errors."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator
from typing import Any

import pytest

import plusequals as pe
from plusequals.backends.gpu.driver_protocol import NotSupported
from plusequals.backends.runtime.state import RUNTIME
from tests.backends.cuda.captures import CapturingContext, CapturingDriver, captured_devices
from tests.backends.cuda.on_cpu import needs_gxx
from tests.backends.runtime.plan.scenes import Scene

pytestmark = needs_gxx
TEXTS = {
    "count_up": "def count_up(x):\n    x[i] += 1.0\n",
    "shift": "def shift(x, amount):\n    x[i] += amount\n",
    "test": "def test(n, least, go_on):\n    go_on[0] = n[0] < least[0]\n",
    "step": "def step(n, least, go_on):\n    n[0] += 1\n    go_on[0] = n[0] < least[0]\n",
    "start": "def start(n):\n    n[0] = n[0] // 2\n",
    "choose": "def choose(which, n):\n    which[0] = n[0]\n",
}


@pytest.fixture
def driver() -> Iterator[CapturingDriver]:
    with captured_devices() as found:
        yield found


@pytest.fixture
def scene(driver: CapturingDriver) -> Scene:
    return Scene("abcd", "cuda:0")


def link(scene: Scene, name: str, *arguments: Any) -> Any:
    return scene.link(pe.cd_from_source(TEXTS[name], {}), *arguments)


def quoted(why: str) -> str:
    return f"{why}\n  = note: it was recorded at test_conditions.py:"


class Counting:
    """A number that a routine counts, whether it is below a limit, and which branch is chosen."""

    def __init__(self, scene: Any, dtype: str = "int64", which: str = "int64") -> None:
        kinds = {"n": "int64", "least": "int64", "go_on": dtype, "which": which}
        self.n, self.least, self.go_on, self.which = (
            pe.tensor(label, (1,), dtype=kind, init=0) for label, kind in kinds.items()
        )
        self.scene = scene
        tensors = self.n, self.least, self.go_on
        self.test = link(scene, "test", *tensors)
        self.step = link(scene, "step", *tensors)
        self.start = link(scene, "start", self.n)
        self.choose = link(scene, "choose", self.which, self.n)
        self.ups = [link(scene, "count_up", x) for x in (scene.a, scene.b, scene.c)]

    def values(self) -> list[float]:
        scene = self.scene
        return scene.first(self.n, self.go_on, self.which, scene.a, scene.b, scene.c, scene.d)


def both(
    plan: pe.Plan,
    counting: Counting,
    starts: Any = ((0, 3), (0, 0), (2, 7)),
    beside: Counting | None = None,
) -> None:
    """Check that a plan and its graph do the same, from several numbers and limits."""
    captured, found = plan.capture(), list[Any]()
    for run in (plan, captured):
        for tensor, value in zip("abcd", range(4), strict=True):
            getattr(counting.scene, tensor)[...] = float(value)
        counting.go_on[...] = 0
        counting.which[...] = -1
        for n, least in starts:
            counting.n[...], counting.least[...] = n, least
            if beside is not None:
                beside.n[...], beside.least[...] = 0, 2
            run()
            found.append(counting.values())
    assert found[: len(starts)] == found[len(starts) :]


@pytest.mark.parametrize("dtype", ["int64", "bool", "uint8", "float16", "float64"])
def test_a_loop_is_a_node_that_repeats_its_body(driver: Any, scene: Any, dtype: str) -> None:
    counting = Counting(scene, dtype)
    with pe.plan() as plan:
        counting.test()
        with plan.while_(counting.go_on):
            counting.step(), counting.ups[0]()
        counting.ups[1]()
    both(plan, counting)


def test_the_part_before_the_predicate_runs_once_more(driver: Any, scene: Any) -> None:
    counting = Counting(scene)
    with pe.plan() as plan:
        with plan.while_(counting.go_on) as loop:
            with loop.before():
                counting.test(), counting.ups[1]()
            counting.step(), counting.ups[0]()
    both(plan, counting)


def test_a_branch_is_chosen_on_the_device(driver: Any, scene: Any) -> None:
    counting, fourth = Counting(scene), link(scene, "count_up", scene.d)
    with pe.plan() as plan:
        counting.choose(), fourth()
        with plan.case_of(counting.which, otherwise={scene.d: scene.a}) as case:
            for up in counting.ups:
                with case.branch():
                    up(), counting.step()
        counting.choose()
    both(plan, counting, [(n, 0) for n in (0, 1, 2, -1, 1, -5)])


def test_trap_a_branch_that_writes_its_predicate_is_the_only_one(driver: Any, scene: Any) -> None:
    counting = Counting(scene)
    with pe.plan() as plan:
        counting.choose()
        with plan.case_of(counting.which) as case:
            for up in counting.ups:
                with case.branch():
                    up(), counting.step(), counting.choose()
    both(plan, counting, [(n, 0) for n in (0, 1, 2, 0)])


def test_loops_and_branches_are_nested(driver: Any, scene: Any) -> None:
    counting, inner = Counting(scene), Counting(scene)
    with pe.plan() as plan:
        counting.test()
        with plan.while_(counting.go_on):
            counting.choose()
            with plan.case_of(counting.which) as case:
                with case.branch():
                    inner.test()
                    with plan.while_(inner.go_on):
                        inner.step(), inner.ups[2]()
                with case.branch():
                    counting.ups[1]()
                for _ in range(6):
                    with case.branch():
                        counting.ups[0]()
            counting.step()
    both(plan, counting, beside=inner)


def record(plan: pe.Plan, rng: random.Random, levels: list[Counting], last: Any) -> None:
    """Record random calls, loops and branches, those of each level with numbers of its own."""
    for _ in range(rng.randint(1, 4)):
        kind = rng.choice(("up", "loop", "case")) if levels else "up"
        if kind == "up":
            rng.choice(last)()
            continue
        own, *inner = levels
        if kind == "loop":
            own.start()
            with plan.while_(own.go_on) as loop:
                with loop.before():
                    if rng.random() < 0.5:
                        record(plan, rng, inner, last)
                    own.test()
                record(plan, rng, inner, last)
                own.step()
            continue
        own.choose()
        with plan.case_of(own.which) as case:
            for _ in range(8):
                with case.branch():
                    record(plan, rng, inner[1:], last)


def test_random_loops_and_branches_are_those_of_the_plan(driver: Any, scene: Any) -> None:
    levels = [Counting(scene) for _ in range(3)]
    last = [link(scene, "count_up", x) for x in (scene.a, scene.b, scene.c, scene.d)]
    for seed in range(20):
        rng = random.Random(seed)
        with pe.plan() as plan:
            record(plan, rng, levels, last)
        captured, found = plan.capture(), list[Any]()
        for run in (plan, captured):
            for each in (scene.a, scene.b, scene.c, scene.d):
                each[...] = 0.0
            for start in (0, 2, 1):
                for level, counting in enumerate(levels):
                    counting.n[...], counting.least[...] = start, (start + level) % 4
                    counting.go_on[...] = counting.which[...] = 0
                run()
                found.append([value for each in levels for value in each.values()])
        assert found[:3] == found[3:], seed


def test_beside_a_loop_other_streams_go_on(driver: CapturingDriver, scene: Any) -> None:
    counting = Counting(scene)
    with pe.plan() as plan:
        counting.test()
        with plan.while_(counting.go_on):
            counting.step()
        counting.ups[0](), counting.ups[0]()
    both(plan, counting)
    roots = [before for before in driver.dependences() if before == [0]]
    assert len(roots) > 1, "after the clear of what is wrong"


def test_errors_of_loops_and_branches_are_those_of_the_plan(driver: Any, scene: Any) -> None:
    counting = Counting(scene)
    with pe.plan() as plan:
        counting.test()
        with plan.while_(counting.go_on, at_most=3):
            counting.step()
        counting.choose()
        with plan.case_of(counting.which) as case:
            with case.branch():
                counting.ups[0]()
    captured = plan.capture()
    for start, code in (((0, 0), None), ((0, 4), "CD0865"), ((1, 1), "CD0864"), ((-3, 0), None)):
        found = []
        for run in (plan, captured):
            counting.n[...], counting.least[...] = start
            try:
                run()
            except pe.CdError as problem:
                found.append(str(problem))
        assert len(set(found)) == (code is not None)
        assert code is None or (len(found) == 2 and code in found[0])


def test_what_conditional_nodes_do_not_take_is_refused(scene: Any) -> None:
    counting, moved = Counting(scene), link(scene, "shift", scene.a, 1.0)
    real = Counting(scene, which="float64")

    def carried(plan: Any) -> None:
        counting.test()
        with plan.while_(counting.go_on, carry={scene.b: scene.a}):
            counting.step(), counting.ups[0]()

    def counted(plan: Any) -> None:
        counting.test()
        with plan.while_(counting.go_on) as loop:
            counting.step(), moved(amount=loop.count)

    def fraction(plan: Any) -> None:
        real.choose()
        with plan.case_of(real.which) as case:
            with case.branch():
                counting.ups[0]()

    def replaced(plan: Any) -> None:
        counting.choose()
        passed = {scene.a: scene.b, scene.c: scene.a}
        with plan.case_of(counting.which, otherwise=passed) as case:
            with case.branch():
                counting.ups[0](), counting.ups[1](), counting.ups[2]()

    def elsewhere(plan: Any) -> None:
        counting.choose()
        with plan.case_of(counting.which, otherwise={scene.d: scene.a}) as case:
            with case.branch():
                counting.ups[0]()

    def host(plan: Any) -> None:
        counting.test()
        with plan.while_(counting.go_on):
            counting.step()
            with plan.while_(lambda n: n < 2):
                counting.ups[0]()

    for record, why in (
        (carried, "`while` has tensors that change places in each iteration"),
        (counted, "`shift` is given the iterations of `while`"),
        (fraction, "`case` has `which` as its predicate, which is no whole number"),
        (replaced, "`case` passes a value on that it has replaced before"),
        (elsewhere, "`case` copies an array of the host"),
        (host, "`while` has a predicate that is a function of the host"),
    ):
        with pe.plan() as plan:
            record(plan)
        with pytest.raises(pe.CdError) as caught:
            plan.capture()
        assert quoted(why) in str(caught.value), str(caught.value)


@pytest.mark.parametrize("verb", ["condition", "conditional", "begin_body", "end_body"])
def test_a_conditional_node_that_fails_leaves_nothing(driver: Any, scene: Any, verb: str) -> None:
    counting = Counting(scene)
    with pe.plan() as plan:
        counting.test()
        with plan.while_(counting.go_on):
            counting.step()
    plan()
    gc.collect()
    cuda: Any = RUNTIME.backend("cuda")
    pool = cuda.opened(0).pool
    used = pool.used
    driver.arm(verb, 1)
    with pytest.raises(pe.CdError, match="CD0884"):
        plan.capture()
    gc.collect()
    assert pool.used == used
    both(plan, counting)


def test_a_driver_without_conditional_nodes_is_the_reason(scene: Any) -> None:
    counting = Counting(scene)
    with pe.plan() as plan:
        counting.test()
        with plan.while_(counting.go_on):
            counting.step()

    def condition(self: Any, stream: Any) -> int:
        raise NotSupported("the driver has none")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CapturingContext, "condition", condition)
        with pytest.raises(pe.CdError) as caught:
            plan.capture()
    assert quoted("`while` needs a conditional node, and the driver has none") in str(caught.value)
    plan.capture()()
