"""Segments of loops: how many run again, with a stack of checkpoints in the best order."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.lowering.adjoint.segments import sweeps


@cache
def fewest(segments: int, checkpoints: int) -> int:
    """Return how many segments run at least, the first state being held, by trying all places."""
    if segments == 1:
        return 0
    if checkpoints == 1:
        return segments * (segments - 1) // 2
    return min(
        at + fewest(segments - at, checkpoints - 1) + fewest(at, checkpoints)
        for at in range(1, segments)
    )


@pytest.mark.parametrize("checkpoints", [1, 2, 3, 5])
def test_no_other_order_runs_fewer_segments(checkpoints: int) -> None:
    for segments in range(1, 30):
        assert sweeps(segments, checkpoints) == fewest(segments, checkpoints)


@pytest.mark.parametrize("memory", [2, 4, 7])
def test_the_loop_runs_as_often_as_planned(memory: int) -> None:
    """The text is run by Python, which counts the evaluations of a sine."""
    text = "def f(x):\n    s = x\n    for t in range(STEPS):\n        s = np.sin(s)\n    return s\n"
    for steps in (memory + 1, 23, 60):
        f = pe.cd_from_source(text.replace("STEPS", str(steps)), {"np": np}, backend="numpy")
        g = pe.gradient(f, wrt="x", memory=memory)
        runs = 0

        def sin(value: float) -> float:
            nonlocal runs
            runs += 1
            return float(np.sin(value))

        scope: dict[str, Any] = {"sin": sin, "cos": np.cos, "i64": np.int64, "np": np}
        exec(g.text(0.5), scope)
        found = scope["f_gradient"](0.5)
        assert found == pytest.approx(g(0.5), rel=1e-12)
        kept = g.kept(0.5).arrays
        checkpoints = sum(one.shape[0] for one in kept if one.is_checkpoint)
        length = next(one.shape[0] for one in kept if not one.is_checkpoint)
        assert isinstance(checkpoints, int) and isinstance(length, int)
        segments = -(-steps // length)
        again = sweeps(segments, checkpoints) * length
        assert runs <= again + 2 * steps  # the loop itself runs to its end; values are kept once
