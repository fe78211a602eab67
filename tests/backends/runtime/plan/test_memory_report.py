"""The memory that a run takes: the plan's own arrays, temporaries of routines, the peak."""

from __future__ import annotations

import numpy as np

import plusequals as pe
from plusequals import cd
from plusequals.backends.runtime.plan.memory_report import PlanMemory

from .scenes import SIZE, Scene, double


@cd
def turned(y, x):
    t = np.empty(4096)
    for k in range(4096):
        t[k] = x[0] + k
    y[0] = t[::-1][:4].sum() + np.sort(t)[7]


def _plan(parallel: bool) -> tuple[pe.Plan, int]:
    scene, plan = Scene(), pe.plan()
    h = plan.tensor("h", SIZE, dtype="float64")
    first = scene.link(double, h, scene.a)
    second, third = scene.link(turned, scene.b, h), scene.link(turned, scene.c, h)
    with plan:
        first()
        second()
        (third if parallel else second)()
    return plan, plan.memory().temporaries["turned"]


def test_temporaries_of_steps_that_run_at_once_count_together() -> None:
    one, size = _plan(parallel=False)
    two, same = _plan(parallel=True)
    assert size == same >= 4096 * 8
    arena = SIZE * 8
    assert one.memory() == PlanMemory(arena, arena, {"double": 0, "turned": size}, arena + size)
    assert two.memory().peak == arena + 2 * size


def test_a_loop_takes_what_its_iterations_take() -> None:
    scene = Scene()
    step = scene.link(turned, scene.b, scene.a)
    with pe.plan() as plan:
        with plan.while_(lambda n: n < 2):
            step()
    assert plan.memory().peak == plan.memory().temporaries["turned"]


def test_it_is_a_table() -> None:
    text = str(PlanMemory(64, 128, {"step": 1_000_000}, 1_000_064))
    assert text.splitlines() == [
        "arena                         64 bytes",
        "its arrays one by one        128 bytes",
        "peak                   1,000,064 bytes",
        "temporaries of step    1,000,000 bytes",
    ]
