"""Captured plans: results and versions of the plan, on a device whose graphs run in any order."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.cuda.backend import CompiledCuda
from plusequals.backends.runtime.state import RUNTIME
from tests.backends.cuda.captures import CapturingDriver, captured_devices
from tests.backends.cuda.faulty import FaultyDriver
from tests.backends.cuda.on_cpu import backend, installed, needs_gxx

from .random_plans import OWN, Sides, functions
from .scenes import SIZE, Scene

pytestmark = needs_gxx
TEXTS = {
    "double": "def double(y, x):\n    y[i] = x[i] * 2.0\n",
    "add": "def add(z, x, y):\n    z[i] = x[i] + y[i]\n",
    "count_up": "def count_up(x):\n    x[i] += 1.0\n",
    "shift": "def shift(x, amount):\n    x[i] += amount\n",
    "take": "def take(x, values):\n    x[i] = values[i] + 1.0\n",
    "give": "def give(x, out):\n    out[i] = x[i] * 2.0\n",
    "merged": "def merged(x):\n    x += x.merge\n",
    "put": "def put(x, at):\n    x[at] = 7.0\n",
    "rows": "def rows(x):\n    m = np.zeros(40)\n    m[3::2] = x[0]\n    x[:] = m[2:6] + m.sum()\n",
    "show": "def show(x):\n    x[i] += 1.0\n    print(x[0])\n",
    "look": "def look(x):\n    x[i] = x[int(x[0]) % 2]\n",
}


@pytest.fixture
def driver() -> Iterator[CapturingDriver]:
    with captured_devices() as found:
        yield found


@pytest.fixture
def scene(driver: CapturingDriver) -> Scene:
    return Scene("abcd", "cuda:0")


def link(scene: Scene, name: str, *arguments: Any) -> Any:
    return scene.link(pe.cd_from_source(TEXTS[name], {"np": np}), *arguments)


def diamond(scene: Any) -> pe.Plan:
    """A plan of `b = 2 a`, `c = 2 a`, `d = b + c`, `a += 1`."""
    calls = [
        link(scene, "double", scene.b, scene.a), link(scene, "double", scene.c, scene.a),
        link(scene, "add", scene.d, scene.b, scene.c), link(scene, "count_up", scene.a),
    ]  # fmt: skip
    with pe.plan(name="diamond") as plan:
        for call in calls:
            call()
    return plan


# ------------------------------------------------------------------------------------------ runs


def test_a_chain_is_a_chain_of_nodes(driver: CapturingDriver, scene: Any) -> None:
    up, double = link(scene, "count_up", scene.a), link(scene, "double", scene.b, scene.a)
    with pe.plan() as plan:
        up(), double(), up()
    captured = plan.capture()
    assert driver.dependences() == [[], [0], [1]]
    for run in range(3):
        captured()
        assert scene.first(scene.a, scene.b) == [2 * run + 2, 4 * run + 2]


def test_a_diamond_has_the_edges_of_its_waits(driver: CapturingDriver, scene: Any) -> None:
    plan = diamond(scene)
    captured = plan.capture()
    assert driver.dependences() == [[], [], [0, 1], [0, 1]]
    assert repr(captured) == "<plan captured diamond: 4 nodes>"
    for run in range(8):
        (captured if run % 3 else plan)()
        assert scene.first(scene.a, scene.b, scene.d) == [run + 1, 2 * run, 4 * run]
    driver.log.clear()
    captured()
    asked = [what[1] for what in driver.log if what[1] not in ("launch", "record")]
    assert asked == ["launch_graph", "synchronize"], "one call, and one wait"


def test_independent_chains_are_not_in_order(driver: CapturingDriver, scene: Any) -> None:
    ups = [link(scene, "count_up", x) for x in (scene.a, scene.b, scene.c)]
    with pe.plan() as plan:
        for up in ups * 2:
            up()
    captured = plan.capture()
    assert sorted(map(len, driver.dependences())) == [0, 0, 0, 1, 1, 1]
    captured()
    assert scene.first(scene.a, scene.b, scene.c) == [2, 3, 4]


@pytest.mark.parametrize("mode", ["copy", "streaming"])
def test_contexts_of_two_streams_with_merges_and_copies(driver: CapturingDriver, mode: str) -> None:
    one, two = Scene("a", "cuda:0"), Scene("", "cuda:0")
    double_up = pe.cd_from_source(TEXTS["shift"])
    first, second = one.link(double_up, one.a, 1.0), two.link(double_up, one.a, 1.0)
    into = link(two, "merged", one.a)
    with pe.plan() as plan:
        first(), second()
        one.context.merge_into(into, one.a, mode=mode)
        first()
        into()
        one.context.copy_from(two.context, one.a)
    wanted: list[list[float]] = []
    for run in (plan, plan.capture()):
        one.a[...] = 3.0
        for _ in range(3):
            run()
            wanted.append([float(c.numpy(one.a)[0]) for c in (one.context, two.context)])
    assert wanted[:3] == wanted[3:]
    assert wanted[0] == [8, 8]


def test_newer_values_of_the_host_are_loaded_before_a_run(scene: Any) -> None:
    captured = diamond(scene).capture()
    for value in (5.0, 7.0):
        scene.a[...] = value
        captured()
        assert scene.first(scene.a, scene.d) == [value + 1, 4 * value]
    with pe.override(automatic_host_transfers=False):
        scene.a[...] = 100.0
        captured()
        assert float(scene.context.numpy(scene.d)[0]) == 32


def test_numbers_are_those_of_the_recording(scene: Any) -> None:
    shift = link(scene, "shift", scene.a, 1.0)
    with pe.plan(name="shifts") as plan:
        shift(), shift(amount=2.5)
    captured = plan.capture()
    plan(amount=10.0), captured(), captured()
    assert scene.first(scene.a) == [27]
    whole = link(scene, "shift", scene.b, 1)
    with pe.plan() as of_whole:
        whole(), whole(amount=5)
    again = of_whole.capture()
    again(), of_whole(), again()
    assert scene.first(scene.b) == [19]
    with pytest.raises(pe.CdError) as caught:
        captured(amount=1.0)
    assert str(caught.value) == (
        "error[CD0870]: `captured shifts` is given `amount`, and a graph has its numbers\n"
        "  = help: run the plan that was captured, or let a tensor have the number"
    )


def test_runs_on_streams_are_in_order_with_everything_else(driver: Any, scene: Any) -> None:
    plan, up = diamond(scene), link(scene, "count_up", scene.d)
    captured, other = plan.capture(), plan.capture()
    stream, second = (pe.device("cuda").stream() for _ in range(2))
    runs = [captured.run(on=stream), other.run(on=stream), captured.run(on=second)]
    up()
    runs.append(other.run(on=pe.device("cc").stream()))
    up()
    assert scene.first(scene.a, scene.d) == [4, 13]
    for run in runs:
        run.wait()
        assert run.done
    captured.run().wait()
    assert scene.first(scene.a, scene.d) == [5, 16]


def test_a_run_that_is_cancelled_launches_nothing(driver: CapturingDriver, scene: Any) -> None:
    captured, stream, hold = diamond(scene).capture(), pe.device("cuda").stream(), Event()
    stream.submit(hold.wait)
    run = captured.run(on=stream)
    run.cancel()
    hold.set()
    run.wait()
    assert driver.graphs[-1].launches == 0
    captured()
    assert driver.graphs[-1].launches == 1


def test_temporaries_live_as_long_as_the_captured_plan(driver: Any, scene: Any) -> None:
    pool = RUNTIME.backend("cuda").opened(0).pool  # type: ignore[attr-defined]  # of CUDA
    with pe.override(pipeline="short"):
        rows = link(scene, "rows", scene.a)
    twin = pe.tensor("t", SIZE, dtype="float64", init=0.0)
    with pe.override(pipeline="short"):
        single = pe.cd_from_source(TEXTS["rows"], {"np": np}).compile(twin)
    on_twin = single.link(pe.device("cuda").stream().context())
    with pe.plan() as plan:
        rows(), rows()
    plan()
    on_twin(), on_twin()
    gc.collect()
    used = pool.used
    captured = plan.capture()
    assert pool.used >= used + 2 * 40 * 8
    held = [pool.take(320, "x", "other", scene.stream.lane) for _ in range(4)]
    for _ in range(3):
        captured(), on_twin(), on_twin()
        assert np.array_equal(scene.a.numpy(), twin.numpy())
    pool.give_back(held, scene.stream.lane)
    del captured
    gc.collect()
    assert pool.used == used


def test_a_profile_has_the_launch_and_a_trace_the_steps(driver: Any, scene: Any) -> None:
    captured = diamond(scene).capture()
    with pe.profile() as timeline:
        captured()
    assert [(work.kind, work.name) for work in timeline.works if work.kind != "host"] == [
        ("graph", "captured diamond")
    ]
    launches = driver.graphs[-1].launches
    with pe.trace() as trace:
        captured()
    assert len(trace) == 4 * SIZE
    assert driver.graphs[-1].launches == launches
    captured()
    assert scene.first(scene.a, scene.d) == [3, 8]


def test_captures_and_runs_beside_other_work_of_the_device(driver: Any) -> None:
    scenes, problems = [Scene("abcd", "cuda:0") for _ in range(3)], list[BaseException]()
    plans = [diamond(scene) for scene in scenes]

    def work(number: int) -> None:
        try:
            for run in range(12):
                if number == 2:
                    pe.device("cuda:0").trim()
                    plans[2]()
                    continue
                captured = plans[number].capture()
                captured(), plans[number](), captured()
                assert scenes[number].first(scenes[number].a) == [3 * run + 3]
        except BaseException as problem:
            problems.append(problem)

    threads = [Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert scenes[2].first(scenes[2].a) == [12]


# ---------------------------------------------------------------------------------- random plans


def _versions(sides: Sides) -> list[Any]:
    """The arrays of all contexts with their versions, by clocks of their fields."""
    found = []
    for context, home in enumerate(sides.homes):
        for number in range(OWN + 1):
            if (context, number) in sides.private:
                continue
            field = sides._tensor(context, number).field()
            held = home.find(field)
            array = home.numpy(field).tobytes()
            found.append((array, field.clock, field.host_tick, held.tick, field.newest().tick))
    return found


def test_random_plans_have_the_results_and_versions_of_the_uncaptured(driver: Any) -> None:
    made = functions()
    for seed in range(40):
        sides = [Sides(seed, "cuda", False, made, straight=True) for _ in range(2)]
        plans = []
        for each in sides:
            with each.plan as plan:
                each.record(plan, each.operations)
            plans.append(plan)
        captured, rng = plans[0].capture(), random.Random(seed)
        for _ in range(4):
            how, value = rng.choice(("call", "stream", "plan")), rng.choice((None, 2.0, 3.0))
            number = rng.randrange(len(sides[0].tensors))
            for each in sides:
                if divmod(number, OWN) in each.private:
                    continue
                if value is not None:
                    each.tensors[number][...] = value
            if how == "stream":
                captured.run(on=pe.device("cuda").stream()).wait()
            else:
                (captured if how == "call" else plans[0])()
            plans[1]()
            assert _versions(sides[0]) == _versions(sides[1]), (seed, sides[0].operations)
    assert sum(graph.launches for graph in driver.graphs) > 60


# -------------------------------------------------------------------------------------- refusals


def _line(why: str) -> str:
    return f"{why}\n  = note: it was recorded at test_capture.py:"


@pytest.mark.parametrize(
    ("name", "given", "why"),
    [
        ("put", (0,), "`put` checks indices or values, and the host reads whether they are right"),
        ("take", (np.zeros(SIZE),), "`take` reads the array `values`, which the call gives"),
        ("give", (np.zeros(SIZE),), "`give` writes the array `out`, which the call gives"),
        ("show", (), "`show` prints"),
        ("look", (), "`look` computes values that the host reads"),
    ],
)
def test_a_routine_that_needs_the_host_is_refused(
    scene: Any, name: str, given: tuple[Any, ...], why: str
) -> None:
    with pe.override(pipeline="short"):
        routine = link(scene, name, scene.a, *given)
    up = link(scene, "count_up", scene.a)
    used = RUNTIME.backend("cuda").opened(0).pool.used  # type: ignore[attr-defined]  # of CUDA
    with pe.plan() as plan:
        up(), routine(*given)
    with pytest.raises(pe.CdError) as caught:
        plan.capture()
    text = str(caught.value)
    assert text.startswith(_line(f"error[CD0870]: `plan` cannot be captured: {why}")), text
    assert text.endswith("\n  = help: run the plan itself: `plan()`")
    del caught
    gc.collect()
    assert RUNTIME.backend("cuda").opened(0).pool.used == used  # type: ignore[attr-defined]
    plan()


def test_control_flow_is_refused_with_its_predicate(scene: Any) -> None:
    up = link(scene, "count_up", scene.a)
    one = pe.tensor("one", (), dtype="int64")
    for predicate, reads, why in (
        (lambda n, v: n < 2, [scene.a], "`while` has a predicate that is a function of the host"),
        (one, [], "`while` has `one` as its predicate, an array of the host"),
    ):  # fmt: skip
        with pe.plan() as plan:
            up()
            with plan.while_(predicate, reads=reads):
                up()
        with pytest.raises(pe.CdError) as caught:
            plan.capture()
        assert _line(why) in str(caught.value)


def test_steps_elsewhere_are_refused(scene: Any) -> None:
    up = link(scene, "count_up", scene.a)
    for device, why in (
        ("cc:0", "`count_up` runs on cc:0, which has no graphs"),
        ("cuda:1", "`count_up` runs on cuda:1, and other steps on cuda:0"),
    ):
        other = Scene("b", device)
        there = link(other, "count_up", other.b)
        with pe.plan() as plan:
            up(), there()
        with pytest.raises(pe.CdError) as caught:
            plan.capture()
        assert _line(why) in str(caught.value)


def test_copies_of_the_host_and_functions_are_refused(scene: Any) -> None:
    up = link(scene, "count_up", scene.a)
    for ask, why in (
        (lambda: scene.context.to_host(scene.a), "`copy a` copies an array of the host"),
        (lambda: scene.context.from_host(scene.a), "`copy a` copies an array of the host"),
        (lambda: pe.cd_from_source(TEXTS["count_up"]).on("cuda")(scene.b),
         "`count_up` is a function: it uses the host's arrays"),
    ):  # fmt: skip
        with pe.plan() as plan:
            up(), ask()
        with pytest.raises(pe.CdError) as caught:
            plan.capture()
        assert _line(why) in str(caught.value)


def test_an_empty_plan_is_refused_and_one_that_is_being_recorded(driver: Any) -> None:
    with pe.plan() as plan:
        pass
    with pytest.raises(pe.CdError, match="CD0870.*it has no steps"):
        plan.capture()
    with pe.plan() as plan, pytest.raises(pe.CdError, match="CD0868"):
        plan.capture()


def test_a_driver_without_captures_is_the_reason() -> None:
    with installed(backend(FaultyDriver())):
        plan = diamond(Scene("abcd", "cuda:0"))
        with pytest.raises(pe.CdError) as caught:
            plan.capture()
    assert str(caught.value) == (
        "error[CD0870]: `diamond` cannot be captured: a played driver of this kind has no capture "
        "of streams\n  = help: run the plan itself: `plan()`"
    )


def test_a_context_that_was_finalized_is_a_clear_error(scene: Any) -> None:
    plan = diamond(scene)
    captured = plan.capture()
    captured()
    scene.context.finalize()
    for ask in (captured, plan.capture, lambda: captured.run(on=pe.device("cuda").stream())):
        with pytest.raises(pe.CdError, match="CD0845.*was finalized"):
            ask()


def test_a_forked_child_neither_captures_nor_launches(driver: Any, scene: Any) -> None:
    plan = diamond(scene)
    captured = plan.capture()
    captured()
    made = RUNTIME.backend("cuda")
    assert isinstance(made, CompiledCuda)
    made.after_fork()
    driver.log.clear()
    for ask in (captured, plan.capture):
        with pytest.raises(pe.CdError, match="a forked process cannot use"):
            ask()
    assert not driver.log


@pytest.mark.parametrize("verb", ["allocate", "begin_capture", "launch", "end_capture"])
def test_a_capture_that_fails_leaves_nothing(driver: Any, scene: Any, verb: str) -> None:
    with pe.override(pipeline="short"):
        rows = link(scene, "rows", scene.b)
    with pe.plan() as plan:
        rows(), rows()
    plan()
    pool = RUNTIME.backend("cuda").opened(0).pool  # type: ignore[attr-defined]  # of CUDA
    pool.trim()
    used = pool.used
    driver.arm(verb, 2 if verb in ("allocate", "launch") else 1)
    with pytest.raises(pe.CdError, match="CD0884"):
        plan.capture()
    gc.collect()
    assert pool.used == used
    captured = plan.capture()
    first = scene.first(scene.b)
    captured()
    assert scene.first(scene.b) != first
