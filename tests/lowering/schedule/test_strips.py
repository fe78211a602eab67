"""Sums down columns in strips: not a bit changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from plusequals.lowering import settings
from plusequals.lowering.ir.loops import For, Program
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.target import Target

from .scheduled import function, interpreted, of_any_size, scheduled

TINY = Target(vector_bits=128)
BODIES = {
    "a sum": "y[j] = sum(x[i, j])",
    "added to": "y[j] += x[i, j] * z[i, j]",
    "weights": "y[j] = sum(w[i] * x[i, j])",
    "greatest": "y[j] = max(x[i, j])",
    "scaled": "y[j] = sum(x[i, j]) / 3 + y[j]",
    "shifted": "y[j] = sum((x[i, j] - y[j]) ** 2)",
}
SIZES = [(3, 1), (5, 4), (9, 17), (4, 40), (0, 20), (6, 0), (1, 23)]


def _arrays(text: str, size: tuple[int, int], dtype: str = "f4") -> list[Any]:
    rng = np.random.default_rng(2)
    shapes = {"y": size[1:], "x": size, "z": size, "w": size[:1]}
    return [rng.standard_normal(s).astype(dtype) for n, s in shapes.items() if f"{n}[" in text]


def _made(text: str) -> Any:
    names = [name for name in "yxzw" if f"{name}[" in text]
    return function(f"def f({', '.join(names)}):\n    {text}\n")


def _strips(program: Program) -> int:
    loops = (s for k in program.kernels for s in statements(k.body) if isinstance(s, For))
    return sum(loop.kind == "vector" for loop in loops)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", BODIES)
def test_not_a_bit_changes(name: str, size: tuple[int, int]) -> None:
    arrays, made = _arrays(BODIES[name], size), _made(BODIES[name])
    procedure = made.procedure(*arrays)
    before = interpreted(scheduled(procedure, TINY), *arrays)
    program = scheduled(procedure, replace(TINY, schedule=True))
    after = interpreted(program, *arrays)
    assert [one.tobytes() for one in before] == [one.tobytes() for one in after]
    if size[1] >= 4 and size[0] > 1:
        assert _strips(program)


@pytest.mark.parametrize("name", BODIES)
def test_sizes_of_the_run_change_no_bit(name: str) -> None:
    made = _made(BODIES[name])
    arrays = _arrays(BODIES[name], (7, 21))
    target = replace(TINY, schedule=True, reorders=True, fma=True)
    fixed = interpreted(scheduled(made.procedure(*arrays), target), *arrays)
    program = scheduled(of_any_size(made, *arrays), target)
    assert _strips(program)
    run = interpreted(program, *arrays)
    assert [one.tobytes() for one in fixed] == [one.tobytes() for one in run]


@pytest.mark.parametrize("name", ["a sum", "scaled"])
def test_c_gives_the_bits_of_the_loops(name: str) -> None:
    arrays, made = _arrays(BODIES[name], (5, 75), "f8"), _made(BODIES[name])
    plain = interpreted(scheduled(made.procedure(*arrays), TINY), *arrays)
    with settings.override(schedule=True, profile="strict"):
        made.on("cc")(*arrays)
    assert [one.tobytes() for one in arrays] == [one.tobytes() for one in plain]


def test_columns_that_need_each_other_stay_in_order() -> None:
    text = "def f(y, x):\n    for j in range(1, 20):\n        y[j] = y[j - 1] + sum(x[i, j])\n"
    arrays = _arrays("y[x[", (4, 20))
    made = function(text)
    before = interpreted(scheduled(made.procedure(*arrays), TINY), *arrays)
    after = interpreted(scheduled(made.procedure(*arrays), replace(TINY, schedule=True)), *arrays)
    assert before[0].tobytes() == after[0].tobytes()
