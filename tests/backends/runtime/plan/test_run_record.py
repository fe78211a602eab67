"""What a run records while a profile is taken: its steps, and what each waited for."""

from __future__ import annotations

import re
import threading
from typing import Any

import pytest

import plusequals as pe

from .scenes import Scene, add, count_up, double


def diamond(scene: Scene) -> pe.Plan:
    up, twice = scene.link(count_up, scene.a), scene.link(double, scene.b, scene.a)
    other, both = scene.link(double, scene.c, scene.a), scene.link(add, scene.d, scene.b, scene.c)
    with pe.plan(name="net") as plan:
        for routine in (up, twice, other, both):
            routine()
    return plan


@pytest.mark.parametrize("streamed", [True, False])
def test_a_run_has_its_own_works_among_those_of_the_profile(streamed: bool) -> None:
    scene = Scene()
    plan, alone = diamond(scene), scene.link(count_up, scene.a)
    stream = pe.device("cc").stream() if streamed else None
    with pe.profile() as profile:
        alone()
        run = plan.run(on=stream)
        run.wait()
        alone()
    names = [work.name for work in run.timeline.works]
    assert sorted(names) == ["add", "count_up", "double", "double"]
    assert names[0] == "count_up" and names[-1] == "add"
    assert set(run.timeline.works) <= set(profile.works)
    assert len({work.where for work in run.timeline.works}) == 2


def test_it_says_what_a_step_waited_for() -> None:
    plan = diamond(Scene())
    with pe.profile():
        run = plan.run()
    text = re.sub(r"\d+\.\d", "T", run.explain("add"))
    first, *waits = text.splitlines()
    assert re.fullmatch(r"3 `add`: queued at T us, ran on cc:0/s\d+ from T to T us", first)
    assert len(waits) == 1 and re.fullmatch(
        r"    waited for [12] `double` until T us: RAW [bc]", waits[0]
    )
    with pytest.raises(pe.CdError, match="CD0869.*\n.*\n.*did you mean `add`"):
        run.explain("ad")


def test_iterations_are_told_apart_and_few_are_shown() -> None:
    scene = Scene()
    up = scene.link(count_up, scene.a)
    with pe.plan() as plan:
        with plan.while_(lambda n: n < 25):
            up()
    with pe.profile():
        run = plan.run()
    lines = [line for line in run.explain(up).splitlines() if not line.startswith(" ")]
    assert len(lines) == 11 and lines[-1] == "and 15 more"
    assert "`count_up`, iteration 3 of `while`: queued at " in lines[3]
    assert len(run.timeline.works) == 25


def test_without_a_profile_it_says_how_to_take_one() -> None:
    run = diamond(Scene()).run()
    for look in (lambda: run.timeline, lambda: run.explain("add")):
        with pytest.raises(pe.CdError, match=r"CD0868.*nothing was recorded.*\n.*pe.profile"):
            look()


def test_a_run_that_was_queued_is_recorded_to_its_end() -> None:
    scene = Scene()
    plan, stream, gate = diamond(scene), pe.device("cc").stream(), threading.Event()
    stream.submit(gate.wait)
    threading.Timer(0.05, gate.set).start()
    with pe.profile() as profile:
        run = plan.run(on=stream)
    assert run.done and len(run.timeline.works) == 4
    assert set(run.timeline.works) <= set(profile.works)


@pytest.mark.parametrize("given", [3, None])
def test_only_names_and_routines_are_explained(given: Any) -> None:
    plan = diamond(Scene())
    with pe.profile():
        run = plan.run()
    for explain in (plan.explain, run.explain):
        with pytest.raises(pe.CdError, match="CD0852"):
            explain(given)
