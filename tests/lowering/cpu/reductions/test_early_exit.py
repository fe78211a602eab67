"""Questions that are left once they are answered: the same answers, and fewer rounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plusequals.base import settings
from plusequals.lowering import thresholds
from plusequals.lowering.cpu.reductions.early_exit import insert_early_exits
from plusequals.lowering.ir.loops import Program
from plusequals.lowering.target import Target

from ...scheduled import function, interpreted, scheduled
from ...shown import lowered

TARGET = Target(schedule=True)
BODIES = {
    "any": "y[0] = any(x[i, j] > 0)",
    "all": "y[0] = all(x[i, j] < 1)",
    "any of rows": "z[i] = any(x[i, j] > 0)",
    "all of columns": "w[j] = all(x[i, j] < 1)",
    "more to an answer": "y[0] |= any(x[i, j] > 0)",
    "a triangle": "y[0] = any[i, j <= i](x[i, j] > 0)",
    "of one row": "y[0] = any(x[0, j] > 0)",
}
SHAPES = [(0, 5), (5, 0), (1, 1), (3, 7), (13, 13), (1, 40), (40, 1)]


def arrays(shape: tuple[int, int], hit: int | None, dtype: str = "f4") -> dict[str, Any]:
    x = np.zeros(shape, dtype)
    if hit is not None and x.size:
        x.flat[hit % x.size] = 1
    y, z, w = np.zeros(1, bool), np.zeros(shape[0], bool), np.zeros(shape[1], bool)
    return {"x": x, "y": y, "z": z, "w": w}


def made(body: str) -> tuple[Any, list[str]]:
    names = [name for name in "xyzw" if f"{name}[" in body]
    return function(f"def f({', '.join(names)}):\n    {body}\n"), names


@pytest.mark.parametrize("name", BODIES)
def test_answers_are_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    f, names = made(BODIES[name])
    for shape in SHAPES:
        if name == "of one row" and not shape[0]:
            continue
        for hit in (None, 0, 6, -1):
            given = [arrays(shape, hit)[one] for one in names]
            found = []
            for block in (4, 1 << 40):
                monkeypatch.setattr(thresholds, "EARLY_EXIT_BLOCK_ITERATIONS", block)
                program = scheduled(f.procedure(*given), TARGET)
                found.append([one.tobytes() for one in interpreted(program, *given)])
            assert found[0] == found[1]


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_compiled_code_says_what_numpy_says(threads: int) -> None:
    f = function("def f(x):\n    return np.any(x > 0), np.all(x < 1), np.any(x > 0, axis=1)\n")
    for hit in (None, 0, 5000, -1):
        x = arrays((3, 40_000), hit)["x"]
        with settings.override(threads=threads, parallel_from=10_000):
            one, two, three = f(x)
        assert (one, two) == (np.any(x > 0), np.all(x < 1))
        np.testing.assert_array_equal(three, np.any(x > 0, axis=1))


def _is_changed(text: str, **types: str) -> bool:
    program = lowered(text, **types)
    made: Program = insert_early_exits(program, TARGET).program
    assert (made != program) == bool(insert_early_exits(program, TARGET).decisions)
    return made != program


def test_what_is_left_early() -> None:
    assert _is_changed("y[0] = any(x[i] > 0)", y="b[1]", x="f32[5000]")
    assert _is_changed("y[0] = any(x[i, j] > 0)", y="b[1]", x="f32[9, 500]")
    assert _is_changed("y[i] = all(x[i, j] > 0)", y="b[9]", x="f32[9, 5000]")


def test_what_is_not() -> None:
    assert not _is_changed("y[0] = any(x[i] > 0)", y="b[1]", x="f32[500]")
    assert not _is_changed("y[0] = sum(x[i])", y="f32[1]", x="f32[5000]")
    assert not _is_changed("y[k[i]] |= x[i] > 0", y="b[9]", x="f32[5000]", k="i64[5000]")
