"""Places at which a round has what the others need: which there are."""

from __future__ import annotations

import pytest

from plusequals.lowering.analysis.conflicting_iterations import (
    conflicting_iterations,
    has_conflicting_iterations,
)
from plusequals.lowering.ir.bounds import bounds_of
from plusequals.lowering.ir.loops import For

from ..shown import lowered


@pytest.mark.parametrize("text, found", [
    ("d[i, 0] = d[k, 0] * x[k, i]", ["k"]),
    ("d[i, 3] = d[5, 3] + 1", ["5"]),
    ("d[k, i] = d[k, k] + d[i, k]", ["k"]),
    ("d[k, i + 1] = d[k, k + 1] + 1", ["k"]),
    ("d[i, 0] += d[11, 0]", []),  # no round of a loop that ends before
    ("d[i, k] = x[k, i]", []),
    ("d[i, 0] = d[i, 0] * 2", []),
    ("d[2 * i, 0] = d[k, 0]", []),
])  # fmt: skip
def test_places(text: str, found: list[str]) -> None:
    sizes = {"d": "f32[30, 30]", "x": "f32[30, 30]"}
    program = lowered(f"for k in range(9):\n    for i in range(10):\n        {text}", **sizes)
    (outer,) = program.kernels[0].body
    assert isinstance(outer, For)
    loop = next(stmt for stmt in outer.body if isinstance(stmt, For))
    known = bounds_of(parameter.node for parameter in program.parameters).inside(outer)
    assert [str(place) for place in conflicting_iterations(loop, known)] == found
    assert has_conflicting_iterations(program) is bool(found)
