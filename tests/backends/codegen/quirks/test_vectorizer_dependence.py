"""Loops that compilers would make vectors of against their meaning, and those that they may."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.codegen.quirks.vectorizer_dependence import is_miscompiled
from plusequals.lowering.ir.loops import For
from plusequals.lowering.ir.walk import statements

from ....lowering.shown import lowered

TURNS = {
    "a short loop inside": (
        "for i in range(50):\n    for j in range(4):\n"
        "        x[i + 1, j] = y[i, j]\n        z[i, j] = x[i, j]"
    ),
    "written out": (
        "for i in range(50):\n    x[i + 1, 0] = y[i, 0]\n    z[i, 0] = x[i, 0]\n"
        "    x[i + 1, 1] = y[i, 1]\n    z[i, 1] = x[i, 1]"
    ),
    "columns that overlap": (
        "for i in range(49):\n    for j in range(2):\n"
        "        x[i + 1, j + 1] = y[i, j]\n        z[i, j] = x[i, j]"
    ),
    "a row for two rounds": (
        "for i in range(50):\n    for j in range(4):\n"
        "        x[i // 2 + 1, j] = y[i, j]\n        z[i, j] = x[i // 2, j]"
    ),
}
TURNS["a long body"] = TURNS["written out"] + "".join(
    f"\n    z[i, {at}] = y[i, {at}] * y[i, {at - 1}]" for at in range(2, 80)
)
OTHERS = {
    "rounds that need nothing": TURNS["a short loop inside"].replace("x[i + 1, j]", "x[i, j]"),
    "one write": "for i in range(50):\n    x[i + 1, 0] = y[i, 0]\n    z[i, 0] = x[i, 0]",
    "another array": TURNS["a short loop inside"].replace("= x[i, j]", "= y[i, j]"),
    "a long loop inside": (
        "for i in range(50):\n    for j in range(90):\n        x[i + 1, j] = x[i, j] * y[i, j]"
    ),
}


def outermost(body: str) -> For:
    sizes = {"x": "f32[51, 90]", "y": "f32[50, 90]", "z": "f32[50, 90]"}
    program = lowered(body, **sizes)
    return next(s for s in statements(program.kernels[0].body) if isinstance(s, For))


@pytest.mark.parametrize("name", TURNS)
def test_rounds_that_take_turns_with_one_array_are_kept_apart(name: str) -> None:
    assert is_miscompiled(outermost(TURNS[name]))


@pytest.mark.parametrize("name", OTHERS)
def test_others_may_become_vectors(name: str) -> None:
    assert not is_miscompiled(outermost(OTHERS[name]))


@pytest.mark.parametrize("back", [1, 2])
@pytest.mark.parametrize("width", [2, 3, 4, 5, 8, 16])
@pytest.mark.parametrize("schedule", [True, False])
def test_compiled_rounds_read_what_was_written(schedule: bool, width: int, back: int) -> None:
    text = (
        "def f(x):\n    for _ in range(2):\n"
        "        x[1:-1, 1:-1] = -0.125 * x[2:, 1:-1] + 0.5 * x[2:, 1:-1]\n"
        f"        x[1:-1, 1:-1] = -0.125 * x[:-2, {2 - back}:{-back}]\n"
    )
    made = pe.cd_from_source(text)
    given = np.random.default_rng(2).standard_normal((103, width + 2)).astype("f4")
    wanted, got = given.copy(), given.copy()
    made.on("numpy")(wanted)
    with pe.settings.override(schedule=schedule):
        made.on("cc")(got)
    assert np.array_equal(wanted, got)
