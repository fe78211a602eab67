"""Strip-mining: chunks have every iteration once, in the order of the loop."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plusequals.lowering.ir.fresh import fresh_for
from plusequals.lowering.ir.indexing import const
from plusequals.lowering.ir.loops import For
from plusequals.lowering.ir.rewrite import substitute
from plusequals.lowering.transform.strip_mine import chunk, with_static_end

from ..shown import lowered


def chunks_of(n: int, count: int) -> tuple[For, list[tuple[int, int]]]:
    """Return the loop, and where each of its chunks begins and ends."""
    program = lowered(f"for k in range(2, {n}):\n    y[k] = 1", y=f"f32[{n}]")
    (loop,) = (stmt for stmt in program.kernels[0].body if isinstance(stmt, For))
    fresh = fresh_for(program)
    group = fresh.symbol("g")
    part, body = chunk(loop, group, count, loop.body, fresh)
    ends = []
    for at in range(count):
        (one,) = substitute((replace(part, body=body),), {group: const(at)})
        assert isinstance(one, For)
        lo, hi = one.lo.constant, one.hi.constant
        assert lo is not None and hi is not None
        ends.append((lo, hi))
    return loop, ends


@pytest.mark.parametrize(("n", "count"), [(10, 4), (10, 8), (3, 1), (66, 8)])
def test_every_iteration_is_in_one_chunk(n: int, count: int) -> None:
    _, ends = chunks_of(n, count)
    assert [k for lo, hi in ends for k in range(lo, hi)] == list(range(n - 2))


def test_chunks_of_one_size_have_an_end_of_their_own() -> None:
    program = lowered("y[i] = 1", y="f32[12]")
    (loop,) = (stmt for stmt in program.kernels[0].body if isinstance(stmt, For))
    fresh = fresh_for(program)
    part, _ = chunk(loop, fresh.symbol("g"), 4, loop.body, fresh)
    assert with_static_end(part, loop, 4).hi == part.lo + 3
    assert with_static_end(part, loop, 5) is part
