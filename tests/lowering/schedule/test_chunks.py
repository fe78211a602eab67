"""Reductions in parts, by many blocks."""

from __future__ import annotations

import pytest

from plusequals.lowering.ir.loops import For
from plusequals.lowering.schedule.chunks import apart, blocks_for
from plusequals.lowering.schedule.tree import sums

from .kernels import Case


@pytest.mark.parametrize(
    "text", ["s[0] += x[i, j]", "s[0] = x.max()", "s[0] = x.argmin()", "s[0] += x[i, j] * x[i, j]"]
)
@pytest.mark.parametrize("shape", ["9000, 1", "3, 3001", "91, 97"])
def test_parts_are_summed(text: str, shape: str) -> None:
    kind = "i64[1]" if "arg" in text else "f32[1]"
    case = Case(text, s=kind, x=f"f32[{shape}]")
    at = max(k for k, stmt in enumerate(case.body) if isinstance(stmt, For))
    loop = case.loop(at)
    found = sums(loop, case.facts.private(loop), case.facts)
    made = apart(loop, found, case.facts, case.fresh, case.nodes)
    assert made is not None
    case.assert_same(made.body, at)
    kernel, *last = made.body
    assert isinstance(kernel, For) and kernel.kind == "block"
    assert len(last) == (4 if "arg" in text else 1), "which part has the best, and what it found"


def test_small_sums_are_one_blocks() -> None:
    def blocks(shape: str) -> int:
        case = Case("s[0] += x[i, j]", s="f32[1]", x=f"f32[{shape}]")
        return blocks_for(case.loop())

    assert blocks("4, 40") == 1
    assert blocks("64, 64") == 1
    assert blocks("64, 65") == 2
    assert blocks("9000, 9000") == 1024
