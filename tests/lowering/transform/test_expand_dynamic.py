"""Arrays of sizes of the run that each round fills for itself: which have one for each round."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.lowering import thresholds
from plusequals.lowering.analysis.parallel_band import facts_of
from plusequals.lowering.gpu.passes import normalized
from plusequals.lowering.ir.fresh import fresh_for
from plusequals.lowering.ir.loops import Program
from plusequals.lowering.ir.printer import print_program
from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.target import Target
from plusequals.lowering.transform.expand_dynamic import expand_dynamic

from ..scheduled import function, interpreted, of_any_size, scheduled

TEXT = """
def f(y, x):
    n = x.shape[1]
    t = np.zeros(n)
    for k in range(x.shape[0] - 1, -1, -1):
        {}
        for i in range(1, n):
            t[i] = x[k, i] + 0.5 * t[i - 1]
        for i in range(n):
            y[k, i] = t[n - 1] - t[i]
"""
FILLED = TEXT.format("t[0] = x[k, 0]")


def given(rows: int, columns: int) -> list[np.ndarray]:
    rng = np.random.default_rng(rows)
    return [np.zeros((rows, columns)), rng.random((rows, columns))]


def made_of(text: str) -> tuple[Program, Program]:
    """Return loops for any size, and what becomes of them."""
    program = scheduled(of_any_size(function(text), *given(5, 6)), Target("cuda"))
    fresh = fresh_for(program)
    return program, fresh.declared(expand_dynamic(program, facts_of(program), fresh))


@pytest.mark.parametrize("most", [1 << 30, 100])
def test_rounds_have_their_own_where_there_is_room(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thresholds, "MAX_EXPANDED_BYTES", most)
    program, made = made_of(FILLED)
    assert "alloc t_expanded: f64[x_1, x_0]" in print_program(made)
    for one in (made, normalized(program)):
        verify_program(one)
        for sizes in ((5, 6), (2, 2), (7, 3)):
            want = interpreted(program, *given(*sizes))
            got = interpreted(one, *given(*sizes))
            assert [a.tobytes() for a in got] == [a.tobytes() for a in want]


@pytest.mark.parametrize(
    "text",
    [
        TEXT.format("t[0] += x[k, 0]"),  # rounds need each other
        FILLED + "    y[0, 0] = t[0]",  # others need what the last round has left
    ],
)
def test_others_stay_as_they_are(text: str) -> None:
    program, made = made_of(text)
    assert made == program
