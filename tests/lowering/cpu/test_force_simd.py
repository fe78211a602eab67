"""Which loops over neighbours become lanes because data picks their rows."""

from __future__ import annotations

import pytest

from plusequals.lowering.cpu.force_simd import force_simd
from plusequals.lowering.ir.loops import For
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.target import Target

from ..shown import lowered


def kinds(text: str, t: str = "f32[9, 16]") -> list[str]:
    program = lowered(text, t=t, p="i64[1]")
    (kernel,) = force_simd(program, Target(schedule=True)).kernels
    return [stmt.kind for stmt in statements(kernel.body) if isinstance(stmt, For)]


def test_rows_that_data_picks_are_lanes() -> None:
    text = "for b in range(16):\n    t[clamp(p[0]), b] = t[clamp(p[0] + 1), b] * 2"
    assert kinds(text) == ["vector"]


@pytest.mark.parametrize(
    ("text", "t"),
    [
        ("for b in range(16):\n    t[1, b] = t[2, b] * 2", "f32[9, 16]"),  # compilers see that
        ("for b in range(15):\n    t[1, b] = t[clamp(p[0]), b + 1]", "f32[9, 16]"),  # it is shared
        ("for b in range(9):\n    t[1, b] = t[clamp(p[0]), b]", "f32[9, 9]"),  # not full vectors
        ("for b in range(256):\n    t[1, b] = t[clamp(p[0]), b]", "f32[9, 256]"),  # long enough
    ],
)
def test_others_stay_loops(text: str, t: str) -> None:
    assert set(kinds(text, t)) == {"serial"}
