"""Loops that the threads of a block share, with their rounds counted."""

from __future__ import annotations

import numpy as np
import pytest

from plusequals.lowering import thresholds
from plusequals.lowering.analysis.accumulators import find_accumulators
from plusequals.lowering.gpu.cyclic_distribution import (
    CyclicLoop,
    build_cyclic_loop,
    find_cyclic_loop,
    strip_mine_loop,
)
from plusequals.lowering.gpu.mapping import map_program
from plusequals.lowering.gpu.reductions.block_reduction import build_block_reduction
from plusequals.lowering.ir.loops import For, Stmt
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.target import Target
from tests.lowering.test_examples import in_kind

from .kernels import Case, backwards, ran


def shared_out(case: Case) -> tuple[tuple[Stmt, ...], tuple[Stmt, ...]]:
    """Return the loops of threads that make a sum, and what all do behind them."""
    loop = case.loop()
    found = find_accumulators(loop, frozenset(), case.facts)
    made = build_block_reduction(loop, found, case.facts, case.fresh, {})
    return made.threads, made.all


def of(loop: Stmt) -> CyclicLoop:
    assert isinstance(loop, For)
    found = find_cyclic_loop(loop)
    assert found is not None
    return found


@pytest.mark.parametrize("n", [8, 255, 256, 257, 512, 700, 9000])
def test_points_that_are_dealt_out_have_counted_rounds(n: int) -> None:
    case = Case("y[i] += x[i] * 2", y=f"f32[{n}]", x=f"f32[{n}]")
    found = of(in_kind(case.loop(), "thread"))
    assert (found.count, found.size, found.max_iterations) == (n, min(n, 256), -(-n // 256))
    case.assert_same((build_cyclic_loop(found, found.body, case.fresh),))


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("n", [40, 256, 300, 1024, 9000])
def test_sums_that_are_shared_out_have_counted_rounds(n: int, rows: int) -> None:
    case = Case("s[0] += x[i, j]", s="f32[1]", x=f"f32[{rows}, {n}]")
    threads, behind = shared_out(case)
    found = [of(loop) for loop in threads]
    assert found[0].count in (n, rows * n)
    made = [build_cyclic_loop(one, one.body, case.fresh) for one in found]
    case.assert_same((*made, *behind))
    written = made[0] if n > 256 else made[-1]
    rounds = [s for s in statements(written.body) if isinstance(s, For)]
    assert all((loop.hi - loop.lo).constant is not None for loop in rounds)


def test_what_is_done_before_is_done_in_all_rounds_first() -> None:
    case = Case("y[i] += x[i]", y="f32[600]", x="f32[600]")
    found = of(in_kind(case.loop(), "thread"))
    made = build_cyclic_loop(found, found.body, case.fresh, found.body)
    assert len(made.body) == 4
    assert made.body[:2] == made.body[2:]


@pytest.mark.parametrize(
    "text",
    [
        "for i in range(n[0]):\n    y[i] = x[i]",
        "for i in range(30):\n    y[i] = x[n[i]]",
        "y[i] = sum[j](x[j] * n[i])",
    ],
    ids=["sizes that are data", "what may fail", "loops in it"],
)
def test_other_loops_stay(text: str) -> None:
    case = Case(text, y="f32[30]", x="f32[30]", n="i64[30]")
    loop = in_kind(case.loop(), "thread")
    assert isinstance(loop, For)
    assert find_cyclic_loop(loop) is None


def test_shares_of_other_steps_stay() -> None:
    case = Case("s[0] += x[i]", s="f32[1]", x="f32[3000]")
    (first, *_), _ = shared_out(case)
    assert isinstance(first, For)
    inside = tuple(
        For(s.symbol, s.lo, s.hi, 3, s.body, s.kind) if isinstance(s, For) else s
        for s in first.body
    )
    assert find_cyclic_loop(For(first.symbol, first.lo, first.hi, 1, inside, "thread")) is None


@pytest.mark.parametrize(
    "n",
    [
        8,
        thresholds.CYCLIC_STRIP_ITERATIONS,
        thresholds.CYCLIC_STRIP_ITERATIONS + 1,
        2 * thresholds.CYCLIC_STRIP_ITERATIONS,
        100,
    ],
)
def test_strips_have_so_many_rounds(n: int) -> None:
    case = Case("s[0] += x[i]", s="f32[1]", x=f"f32[{n}]")
    made = strip_mine_loop(case.loop(), case.fresh)
    case.assert_same(made)
    assert (made == (case.loop(),)) == (n <= thresholds.CYCLIC_STRIP_ITERATIONS)


@pytest.mark.parametrize("rounds", [39, 64, 200, 700])
@pytest.mark.parametrize(
    "body",
    [
        "if x[i] == 1.5:\n        n = i",
        "n = max(n, -7 - i)",
        "y[i] = x[i] * 2\n    if x[i] > 1:\n        continue\n    z[i] = 1",
    ],
)
def test_an_iteration_that_ends_early_leaves_those_of_the_same_thread(
    body: str, rounds: int
) -> None:
    early = "if x[i] < 2:\n        continue"
    text = f"n = -999\nfor i in range({rounds}):\n    {early}\n    {body}\nz[0] = n"
    arrays = dict.fromkeys(("x", "y", "z"), f"f64[{rounds}]")
    case = Case(text, True, **arrays)
    program = case.program
    given = [np.random.default_rng(rounds).standard_normal(rounds) * 3 for _ in arrays]
    wanted = ran(program, given)
    made = map_program(program, Target("cuda"), exact=True).program
    for one in (made, backwards(made)):
        assert [a.tobytes() for a in ran(one, given)] == [a.tobytes() for a in wanted]
