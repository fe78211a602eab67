"""Loops with a period are two loops: the same rounds in their order, also for sizes of the run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plusequals.base import settings
from plusequals.lowering import thresholds
from plusequals.lowering.cpu.delinearize import delinearize_loops
from plusequals.lowering.ir.loops import For
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.lower import lower

from ..scheduled import function, interpreted, of_any_size, scheduled

FUNCTIONS = {
    "laid side by side": "return np.tile(x, 3), np.tile(x[None] + x[:, None], (1, 2))",
    "with what is beside": "return np.tile(x, 2) + np.repeat(x, 2)",
    "repeated": "return np.repeat(x, 20), np.repeat(x[:, None], 3, axis=0)",
    "by hand": "y = np.zeros(5 * len(x))\nfor i in range(5 * len(x)):\n"
    "    y[i] = x[i % len(x)] * (i // len(x)) + i\nreturn y",
    "some of it": "y = np.zeros(70)\nfor i in range(70):\n    y[i] = x[i % 20]\nreturn y",
    "twice": "y = np.zeros(160)\nfor i in range(160):\n"
    "    y[i] = x[i % 20] - x[i % 40 // 4] + x[i // 80]\nreturn y",
}


def text(name: str) -> str:
    body = FUNCTIONS[name].replace("\n", "\n    ")
    return f"def f(x):\n    {body}\n"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_is_what_the_loop_was(name: str) -> None:
    made = function(text(name))
    for size in (20, 45):
        x = np.arange(size) ** 1.5
        expected = [np.asarray(one) for one in plain(name, x)]
        for procedure in (made.procedure(x), of_any_size(function(text(name)), x)):
            for found, one in zip(interpreted(scheduled(procedure), x), expected, strict=True):
                np.testing.assert_array_equal(found, one)
        for threads in (1, 2):
            with settings.override(schedule=True, threads=threads, parallel_from=100):
                ran = made.on("cc")(x)
            for found, one in zip(ran if isinstance(ran, tuple) else (ran,), expected, strict=True):
                np.testing.assert_array_equal(found, one)


def plain(name: str, x: Any) -> tuple[Any, ...]:
    """Return what Python makes of it."""
    scope: dict[str, Any] = {"np": np}
    exec(text(name), scope)
    found = scope["f"](x)
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize(
    "number",
    [thresholds.MIN_DELINEARIZED_ITERATIONS - 1, thresholds.MIN_DELINEARIZED_ITERATIONS, 33],
)
def test_long_periods_are_loops_of_their_own(number: int) -> None:
    made = function(
        f"def f(x):\n    for i in range({3 * number}):\n        x[i] = i % {number} + i\n"
    )
    program = delinearize_loops(lower(made.procedure(np.ones(3 * number))))
    loops = [s for k in program.kernels for s in statements(k.body) if isinstance(s, For)]
    assert [(one.hi - one.lo).constant for one in loops] == (
        [3, number] if number >= thresholds.MIN_DELINEARIZED_ITERATIONS else [3 * number]
    )
