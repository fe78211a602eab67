"""The memory that a run takes: the plan's own arrays, temporaries of routines, the peak."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd
from plusequals.backends.runtime.plan.memory_report import PlanMemory
from plusequals.backends.runtime.state import RUNTIME
from plusequals.lowering.lower import lower
from plusequals.lowering.operation_counts import count_operations
from plusequals.lowering.pipeline import optimize

from .scenes import SIZE, Scene, double

TUTORIAL = Path(__file__).parents[4] / "tutorials" / "01_digits.py"


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


def test_temporaries_of_steps_that_run_at_once_lie_apart() -> None:
    one, size = _plan(parallel=False)
    two, same = _plan(parallel=True)
    assert size == same >= 4096 * 8
    room, array = _room(one), SIZE * 8
    stack = size - room
    arena = room + array
    assert one.memory() == PlanMemory(
        arena, 2 * room + array, {"double": 0, "turned": size}, arena + stack
    )
    assert two.memory().arena == 2 * room + array
    assert two.memory().peak == two.stats()["peak_bytes"] == 2 * size + array


def _room(plan: pe.Plan) -> int:
    """Return what the plan lends each of its steps that has temporaries."""
    (room,) = {scratch.size for scratch in plan.program.memory.lent}
    return room


def test_a_loop_takes_what_its_iterations_take() -> None:
    scene = Scene()
    step = scene.link(turned, scene.b, scene.a)
    with pe.plan() as plan:
        with plan.while_(lambda n: n < 2):
            step()
    assert plan.memory().arena == _room(plan)
    assert plan.memory().peak == plan.memory().temporaries["turned"]


@cd
def told(y, x):
    t = np.empty(4096)
    for k in range(4096):
        t[k] = x[0] + k
    y[0] = np.sort(t[::-1])[7]
    print(y[0])


def test_what_prints_allocates_its_temporaries() -> None:
    scene = Scene()
    step = scene.link(told, scene.b, scene.a)
    with pe.plan() as plan:
        step()
    memory = plan.memory()
    assert memory.arena == 0 and memory.peak == memory.temporaries["told"] >= 4096 * 8


# ------------------------------------------------------------------------------- the digits


@cd
def hidden(r, x, w1, b1):
    r[n, j] = max(sum(x[n, i] * w1[i, j]) + b1[j], 0)


@cd
def scores(z, r, w2, b2):
    z[n, c] = sum(r[n, j] * w2[j, c]) + b2[c]


@cd
def softmax(d, loss, z, y):
    top[n] = max(z[n, c])
    e[n, c] = exp(z[n, c] - top[n])
    total[n] = sum(e[n, c])
    error[n] = log(total[n]) + top[n] - z[n, y[n]]
    loss[0] = error.mean()
    d[n, c] = (e[n, c] / total[n] - where(c == y[n], 1.0, 0.0)) / d.shape[0]


@cd
def second_layer(r, d, w2, b2):
    w2.grad[j, c] = sum(r[n, j] * d[n, c])
    b2.grad[c] = sum(d[n, c])


@cd
def through(g, r, d, w2):
    g[n, j] = where(r[n, j] > 0, sum(d[n, c] * w2[j, c]), 0.0)


@cd
def first_layer(x, g, w1, b1):
    w1.grad[i, j] = sum(x[n, i] * g[n, j])
    b1.grad[j] = sum(g[n, j])


def _digits(batch: int, max_streams: int | None) -> tuple[pe.Plan, int]:
    """Return a step of training as the plan of its routines, and the bytes that the fused function
    takes, of which the gradients are derived."""
    tutorial = runpy.run_path(str(TUTORIAL), run_name="tutorial")
    w1, b1, w2, b2 = network = tutorial["new_network"](np.random.default_rng(6))
    plan = pe.plan(max_streams=max_streams)
    r, z, d, g = (
        plan.tensor(name, (batch, width), dtype="float32")
        for name, width in (("r", 96), ("z", 10), ("d", 10), ("g", 96))
    )
    x = pe.tensor("x", (batch, 64), dtype="float32")
    y, loss = pe.tensor("y", batch, dtype="int64"), pe.tensor("loss", 1, dtype="float32")
    scene = Scene("")
    routines = [
        scene.link(hidden, r, x, w1, b1),
        scene.link(scores, z, r, w2, b2),
        scene.link(softmax, d, loss, z, y),
        scene.link(second_layer, r, d, w2, b2),
        scene.link(through, g, r, d, w2),
        scene.link(first_layer, x, g, w1, b1),
        *(scene.link(tutorial["descend"], p, 0.1, 0.9, 1e-4) for p in network),
    ]
    with plan:
        for routine in routines:
            routine()
    arrays = np.zeros((batch, 64), np.float32), np.zeros(batch, np.int64)
    fused = tutorial["train"].procedure(*network, *arrays, 0.1, 0.9, 1e-4)
    target = RUNTIME.backend("cc").target()
    program, placement = optimize(lower(fused), target)
    return plan, count_operations(program, None, placement.memory).temporary


@pytest.mark.parametrize(("batch", "max_streams"), [(32, None), (32, 1), (128, 1)])
def test_the_digits_as_separate_routines_take_little_more_than_the_fused_function(
    batch: int, max_streams: int | None
) -> None:
    plan, fused = _digits(batch, max_streams)
    memory = plan.memory()
    assert memory.peak <= 1.1 * fused
    assert memory.arena < memory.unshared


def test_it_is_a_table() -> None:
    text = str(PlanMemory(64, 128, {"step": 1_000_000}, 1_000_064))
    assert text.splitlines() == [
        "arena                         64 bytes",
        "its arrays one by one        128 bytes",
        "peak                   1,000,064 bytes",
        "temporaries of step    1,000,000 bytes",
    ]
