"""What is better for a band."""

from __future__ import annotations

import pytest

from plusequals.lowering.analysis.parallel_band import Band, find_band
from plusequals.lowering.gpu.mapping import prefers_blocks, prefers_host

from .kernels import Case


def of(case: Case) -> Band:
    found = find_band(case.loop(), case.facts)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "x", "rows"),
    [
        ("y[i] = sum[j](x[i, j])", "f32[9000, 900]", True),
        ("y[i] = sum[j](x[i, j])", "f32[9000, 20]", False),
        ("y[i] = sum[j](x[j, i])", "f32[900, 9000]", False),
        ("y[i] = sum[j](exp(x[i, j])) * z[i] + z[i] * z[i]", "f32[9000, 900]", True),
    ],
)
def test_rows_are_read_along_what_lies_together(text: str, x: str, rows: bool) -> None:
    case = Case(text, y="f32[9000]", x=x, z="f32[9000]")
    assert prefers_blocks(of(case), case.facts, case.nodes) is rows


STEPS = """
for t in range(3):
    for i in range(len(y)):
        for j in range(y.shape[1]):
            x[i, j] = y[i, j] * 2
        for j in range(y.shape[1]):
            y[i, j] = x[i, clamp(j * j - 1)] + t
"""


@pytest.mark.parametrize(
    ("shape", "steps"), [("8, 9000", True), ("8, 900", False), ("300, 9000", False)]
)
def test_the_host_goes_through_steps_of_few_large_points(shape: str, steps: bool) -> None:
    case = Case(STEPS, y=f"f32[{shape}]", x=f"f32[{shape}]")
    assert prefers_host(of(case), case.loop(), case.facts) is steps
