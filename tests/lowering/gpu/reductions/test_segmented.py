"""Few points with long sums: where they are cut, and that the parts mean what the points meant."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plusequals.lowering import thresholds
from plusequals.lowering.analysis.parallel_band import find_band
from plusequals.lowering.gpu.mapping import map_program
from plusequals.lowering.gpu.reductions.segmented import Segment, split_segments
from plusequals.lowering.ir.assignments import Let
from plusequals.lowering.ir.expressions import Read
from plusequals.lowering.ir.indexing import const, var
from plusequals.lowering.ir.loops import Check, For, LastBlock
from plusequals.lowering.ir.walk import statements
from plusequals.lowering.target import Target

from ..kernels import Case, backwards, filled, ran

SUM = "y[j] = sum[i](x[i, j]) * 2"


def cut(case: Case) -> tuple[Segment, ...] | None:
    found = find_band(case.loop(), case.facts)
    assert found is not None
    return split_segments(found, case.facts, case.fresh, case.nodes)


@pytest.mark.parametrize(
    ("points", "rounds"), [(64, 9000), (3, thresholds.MIN_REDUCTION_BLOCK_TERMS), (3, 50)]
)
def test_many_points_and_short_sums_stay_whole(points: int, rounds: int) -> None:
    assert cut(Case(SUM, y=f"f32[{points}]", x=f"f32[{rounds}, {points}]")) is None


def test_only_sums_are_alone() -> None:
    made = cut(Case(SUM, y="f32[3]", x="f32[9000, 3]"))
    assert made is not None
    assert [len(part.sums) for part in made] == [0, 1, 0]
    assert len(made[1].point.body) == 1


def test_where_a_check_may_fail_points_stay_whole() -> None:
    case = Case("y[j] = sum[i](x[k[i], j])", y="f32[3]", x="f32[8, 3]", k="i64[9000]")
    found = find_band(case.loop(), case.facts)
    assert found is not None and cut(case) is not None
    check = next(stmt for stmt in statements(case.body) if isinstance(stmt, Check))
    found = replace(found, inner=(check, *found.inner))
    assert split_segments(found, case.facts, case.fresh, case.nodes) is None


@pytest.mark.parametrize(
    "text",
    [SUM, "y[j] = max[i](x[i, j])", "m = x.mean(axis=0)\ny[:] = ((x - m) ** 2).sum(axis=0)"],
)
def test_the_parts_mean_the_same(text: str) -> None:
    case = Case(text, y="f64[2]", x="f64[4200, 2]")
    made = map_program(case.program, Target("cuda"))
    blocks = [s for s in statements(made.program.kernels[0].body) if isinstance(s, For)]
    assert any(loop.symbol.name == "part" and loop.kind == "block" for loop in blocks)
    rng = np.random.default_rng(1)
    arrays = [filled(p.node, rng) for p in case.program.parameters]
    for got, want in zip(ran(made.program, arrays), ran(case.program, arrays), strict=True):
        np.testing.assert_allclose(got, want, 1e-12, 1e-12)


def test_numbers_that_the_points_find_stay_where_they_are_used() -> None:
    case = Case("y[j] = sum[i](x[i, j]) * 2", y="f32[3]", x="f32[9000, 3]")
    made = cut(case)
    assert made is not None
    found = find_band(case.loop(), case.facts)
    assert found is not None
    (at,) = (n for n, stmt in enumerate(found.inner) if isinstance(stmt, For))
    symbol = case.fresh.symbol("bound")
    long = replace(found.inner[at], hi=var(symbol))  # type: ignore[type-var]
    inner = (Let(symbol, Read(case.program.parameters[0].node, (const(0),))),
             *found.inner[:at], long, *found.inner[at + 1 :])  # fmt: skip
    case.facts.tell(inner, found.private)
    moved = replace(found, inner=inner)
    assert split_segments(moved, case.facts, case.fresh, case.nodes) is None


@pytest.mark.parametrize(
    ("rows", "cuts"),
    [
        (70, True),
        (thresholds.MIN_OCCUPYING_SEGMENTS - 1, True),
        (thresholds.MIN_OCCUPYING_SEGMENTS, False),
    ],
)
def test_rows_are_cut_while_blocks_are_few(rows: int, cuts: bool) -> None:
    case = Case("y[j] = sum[i](x[j, i])", y=f"f32[{rows}]", x=f"f32[{rows}, 9000]")
    assert (cut(case) is not None) is cuts


WIDE = "m[j] = max[i](x[j, i])\ny[j, i] = exp(x[j, i] - m[j])"


def test_wide_loops_are_alone_and_read_what_waits_for_the_sums() -> None:
    case = Case(WIDE, y="f32[3, 9000]", x="f32[3, 9000]", m="f32[3]")
    made = cut(case)
    assert made is not None
    assert [(len(part.sums), part.wide) for part in made if part.sums or part.wide] == [
        (1, False), (0, True),
    ]  # fmt: skip
    program = map_program(case.program, Target("cuda")).program
    rng = np.random.default_rng(1)
    arrays = [filled(p.node, rng) for p in case.program.parameters]
    for got, want in zip(ran(program, arrays), ran(case.program, arrays), strict=True):
        np.testing.assert_allclose(got, want, 1e-5, 1e-5)
    parts, elements = (s for s in program.kernels[0].body if isinstance(s, For))
    assert [s.kind for s in parts.body if isinstance(s, For)] == ["block"]
    assert isinstance(parts.body[-1], LastBlock)
    assert [s.kind for s in elements.body if isinstance(s, For)] == ["block"]


def test_what_points_have_of_their_own_gets_an_axis_in_front() -> None:
    case = Case("e[j, i] = exp(x[j, i])\ny[j, i] = e[j, i] / sum[k](e[j, k])",
                y="f32[3, 9000]", x="f32[3, 9000]")  # fmt: skip
    assert cut(case) is not None
    shapes = {node.static_shape for node in case.fresh.nodes if node.label == "e"}
    assert shapes <= {(3, 9000)}


@pytest.mark.parametrize(
    "text", ["y[:] = x.argmax(axis=1)", "y[:] = x.argmin(axis=1) * 2 - x.argmax(axis=1)"]
)
@pytest.mark.parametrize("rounds", [300, 60])
def test_parts_of_each_row_find_where_its_best_is(
    text: str, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a thread where parts are few, by the threads of a block where they are many."""
    monkeypatch.setattr(thresholds, "MIN_REDUCTION_BLOCK_TERMS", rounds)
    case = Case(text, y="i64[3]", x="f32[3, 2100]")
    program = map_program(case.program, Target("cuda")).program
    x = np.random.default_rng(1).integers(0, 40, (3, 2100)).astype("f4")
    x[1, 1500:1700] = np.nan
    arrays = [np.zeros(3, "i8"), x]
    for one in (program, backwards(program)):
        for got, want in zip(ran(one, arrays), ran(case.program, arrays), strict=True):
            assert got.tobytes() == want.tobytes()
    every = statements(program.kernels[0].body)
    assert sum(isinstance(s, LastBlock) for s in every) == 1
    alone = [
        s
        for s in every
        if isinstance(s, For) and s.kind == "thread" and (s.hi - s.lo).constant == 1
    ]
    inside = [s for loop in alone for s in statements(loop.body) if isinstance(s, For)]
    assert not inside, "no thread puts all parts together by itself"
